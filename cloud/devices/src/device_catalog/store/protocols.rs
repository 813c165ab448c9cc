//! SQL of protocols.

use hub_base::db::{Conn, Slice, Sql, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;
use uuid::Uuid;

use super::super::protocols::ProtocolKind;

#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct ProtocolRow {
    pub device_protocol_id: i64,
    pub device_uuid: Uuid,
    pub name: String,
    #[sqlx(try_from = "String")]
    pub kind: ProtocolKind,
    /// JSON.
    pub definition: String,
    /// A JSON list.
    pub tests: String,
    pub revision: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

const COLUMNS: &str = "device_protocol_id, device_uuid, name, kind, definition, tests, revision, \
    created_at, updated_at";

/// Inserts the protocol, under an id of its own.
pub async fn insert(tx: &mut Tx, scope: &Scope, row: &ProtocolRow) -> Result<ProtocolRow> {
    sql(
        "INSERT INTO device_protocols (tenant_uuid, device_uuid, name, kind, definition, tests, \
         revision, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING ",
    )
    .push(COLUMNS)
    .bind((
        scope.tenant_uuid(),
        row.device_uuid,
        row.name.as_str(),
        row.kind.name(),
        row.definition.as_str(),
        row.tests.as_str(),
        row.revision,
        row.created_at,
        row.updated_at,
    ))
    .one(tx)
    .await
}

pub async fn update(tx: &mut Tx, scope: &Scope, row: &ProtocolRow) -> Result<()> {
    sql(
        "UPDATE device_protocols SET name = $3, kind = $4, definition = $5, tests = $6, \
         revision = $7, updated_at = $8 WHERE device_protocol_id = $1 AND tenant_uuid = $2",
    )
    .bind((
        row.device_protocol_id,
        scope.tenant_uuid(),
        row.name.as_str(),
        row.kind.name(),
        row.definition.as_str(),
        row.tests.as_str(),
        row.revision,
        row.updated_at,
    ))
    .run(tx)
    .await
}

pub async fn get(conn: &mut Conn, scope: &Scope, id: i64) -> Result<Option<ProtocolRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM device_protocols WHERE device_protocol_id = $1 AND tenant_uuid = $2")
        .bind((id, scope.tenant_uuid()))
        .optional(conn)
        .await
}

/// Whether the model has the protocol.
pub async fn exists(conn: &mut Conn, scope: &Scope, device_uuid: Uuid, id: i64) -> Result<bool> {
    sql("SELECT 1 FROM device_protocols \
         WHERE device_protocol_id = $1 AND device_uuid = $2 AND tenant_uuid = $3")
    .bind((id, device_uuid, scope.tenant_uuid()))
    .exists(conn)
    .await
}

/// The newest first.
const ORDER: &[&str] = &["device_protocol_id DESC"];

/// The size of one page's documents.
pub async fn page_bytes(
    conn: &mut Conn,
    scope: &Scope,
    device_uuid: Option<Uuid>,
    slice: Slice,
) -> Result<i64> {
    of_tenant(scope, device_uuid)
        .page_bytes(conn, "definition || tests", ORDER, slice)
        .await
}

/// One page, newest first, and the total number.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    device_uuid: Option<Uuid>,
    slice: Slice,
) -> Result<(Vec<ProtocolRow>, i64)> {
    of_tenant(scope, device_uuid)
        .page(conn, COLUMNS, ORDER, slice)
        .await
}

fn of_tenant(scope: &Scope, device_uuid: Option<Uuid>) -> Sql {
    let all = sql("FROM device_protocols WHERE tenant_uuid = $1").bind(scope.tenant_uuid());
    match device_uuid {
        Some(device_uuid) => all.push(" AND device_uuid = ").push_bind(device_uuid),
        None => all,
    }
}

pub async fn delete(tx: &mut Tx, scope: &Scope, id: i64) -> Result<()> {
    sql("DELETE FROM device_protocols WHERE device_protocol_id = $1 AND tenant_uuid = $2")
        .bind((id, scope.tenant_uuid()))
        .run(tx)
        .await
}
