//! SQL of UI schemas.

use hub_base::db::{Conn, Slice, Sql, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;
use uuid::Uuid;

use super::super::uis::UiKind;

#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct UiRow {
    pub device_ui_id: i64,
    pub device_uuid: Uuid,
    #[sqlx(try_from = "String")]
    pub kind: UiKind,
    pub name: String,
    pub locale: Option<String>,
    /// JSON.
    pub config: String,
    pub revision: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

const COLUMNS: &str =
    "device_ui_id, device_uuid, kind, name, locale, config, revision, created_at, updated_at";

/// Inserts the UI schema, under an id of its own.
pub async fn insert(tx: &mut Tx, scope: &Scope, row: &UiRow) -> Result<UiRow> {
    sql(
        "INSERT INTO device_ui_schemas (tenant_uuid, device_uuid, kind, name, locale, config, \
         revision, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING ",
    )
    .push(COLUMNS)
    .bind((
        scope.tenant_uuid(),
        row.device_uuid,
        row.kind.name(),
        row.name.as_str(),
        row.locale.as_deref(),
        row.config.as_str(),
        row.revision,
        row.created_at,
        row.updated_at,
    ))
    .one(tx)
    .await
}

pub async fn update(tx: &mut Tx, scope: &Scope, row: &UiRow) -> Result<()> {
    sql(
        "UPDATE device_ui_schemas SET kind = $3, name = $4, locale = $5, config = $6, \
         revision = $7, updated_at = $8 WHERE device_ui_id = $1 AND tenant_uuid = $2",
    )
    .bind((
        row.device_ui_id,
        scope.tenant_uuid(),
        row.kind.name(),
        row.name.as_str(),
        row.locale.as_deref(),
        row.config.as_str(),
        row.revision,
        row.updated_at,
    ))
    .run(tx)
    .await
}

pub async fn get(conn: &mut Conn, scope: &Scope, device_ui_id: i64) -> Result<Option<UiRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM device_ui_schemas WHERE device_ui_id = $1 AND tenant_uuid = $2")
        .bind((device_ui_id, scope.tenant_uuid()))
        .optional(conn)
        .await
}

/// The newest first.
const ORDER: &[&str] = &["device_ui_id DESC"];

/// The size of one page's documents.
pub async fn page_bytes(
    conn: &mut Conn,
    scope: &Scope,
    device_uuid: Option<Uuid>,
    slice: Slice,
) -> Result<i64> {
    of_tenant(scope, device_uuid)
        .page_bytes(conn, "config", ORDER, slice)
        .await
}

/// One page, newest first, and the total number.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    device_uuid: Option<Uuid>,
    slice: Slice,
) -> Result<(Vec<UiRow>, i64)> {
    of_tenant(scope, device_uuid)
        .page(conn, COLUMNS, ORDER, slice)
        .await
}

fn of_tenant(scope: &Scope, device_uuid: Option<Uuid>) -> Sql {
    let all = sql("FROM device_ui_schemas WHERE tenant_uuid = $1").bind(scope.tenant_uuid());
    match device_uuid {
        Some(device_uuid) => all.push(" AND device_uuid = ").push_bind(device_uuid),
        None => all,
    }
}

fn setup(scope: &Scope) -> Sql {
    of_tenant(scope, None)
        .push(" AND kind = ")
        .push_bind(UiKind::Setup.name())
}

/// The size of the documents that [`list_setup`] reads.
pub async fn setup_bytes(conn: &mut Conn, scope: &Scope, slice: Slice) -> Result<i64> {
    setup(scope).page_bytes(conn, "config", ORDER, slice).await
}

/// Setup forms, newest first, and their number.
pub async fn list_setup(conn: &mut Conn, scope: &Scope, slice: Slice) -> Result<(Vec<UiRow>, i64)> {
    setup(scope).page(conn, COLUMNS, ORDER, slice).await
}

pub async fn delete(tx: &mut Tx, scope: &Scope, device_ui_id: i64) -> Result<()> {
    sql("DELETE FROM device_ui_schemas WHERE device_ui_id = $1 AND tenant_uuid = $2")
        .bind((device_ui_id, scope.tenant_uuid()))
        .run(tx)
        .await
}

/// A form with this external endpoint. Documents are JSON of this program, so a UUID has one form.
pub async fn of_endpoint(conn: &mut Conn, scope: &Scope, endpoint: Uuid) -> Result<Option<String>> {
    sql("SELECT name FROM device_ui_schemas WHERE tenant_uuid = $1 AND config LIKE $2 LIMIT 1")
        .bind((scope.tenant_uuid(), format!("%\"{endpoint}\"%")))
        .optional_scalar(conn)
        .await
}
