//! SQL of actions.

use hub_base::db::{Conn, Slice, Sql, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{TenantUuid, Timestamp};
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct ActionRow {
    pub action_id: String,
    pub device_uuid: Option<Uuid>,
    pub name: String,
    pub description: Option<String>,
    /// JSON.
    pub parameters: Option<String>,
    pub confirm: bool,
    /// JSON.
    pub transport: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

const COLUMNS: &str = "action_id, device_uuid, name, description, parameters, confirm, transport, \
    created_at, updated_at";

pub async fn insert(tx: &mut Tx, scope: &Scope, row: &ActionRow) -> Result<()> {
    sql(
        "INSERT INTO action_definitions (tenant_uuid, action_id, device_uuid, name, description, \
         parameters, confirm, transport, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind((
        scope.tenant_uuid(),
        row.action_id.as_str(),
        row.device_uuid,
        row.name.as_str(),
        row.description.as_deref(),
        row.parameters.as_deref(),
        row.confirm,
        row.transport.as_str(),
        row.created_at,
        row.updated_at,
    ))
    .run(tx)
    .await
}

pub async fn update(tx: &mut Tx, scope: &Scope, row: &ActionRow) -> Result<()> {
    sql(
        "UPDATE action_definitions SET device_uuid = $3, name = $4, description = $5, \
         parameters = $6, confirm = $7, transport = $8, updated_at = $9 \
         WHERE tenant_uuid = $1 AND action_id = $2",
    )
    .bind((
        scope.tenant_uuid(),
        row.action_id.as_str(),
        row.device_uuid,
        row.name.as_str(),
        row.description.as_deref(),
        row.parameters.as_deref(),
        row.confirm,
        row.transport.as_str(),
        row.updated_at,
    ))
    .run(tx)
    .await
}

pub async fn get(conn: &mut Conn, scope: &Scope, action_id: &str) -> Result<Option<ActionRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM action_definitions WHERE tenant_uuid = $1 AND action_id = $2")
        .bind((scope.tenant_uuid(), action_id))
        .optional(conn)
        .await
}

/// The newest first.
const ORDER: &[&str] = &["created_at DESC, action_id DESC"];

/// The size of one page's documents.
pub async fn page_bytes(
    conn: &mut Conn,
    scope: &Scope,
    device_uuid: Option<Uuid>,
    slice: Slice,
) -> Result<i64> {
    of_tenant(scope, device_uuid)
        .page_bytes(conn, "COALESCE(parameters, '') || transport", ORDER, slice)
        .await
}

/// One page, newest first, and the total number. With a model: those for its devices.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    device_uuid: Option<Uuid>,
    slice: Slice,
) -> Result<(Vec<ActionRow>, i64)> {
    of_tenant(scope, device_uuid)
        .page(conn, COLUMNS, ORDER, slice)
        .await
}

fn of_tenant(scope: &Scope, device_uuid: Option<Uuid>) -> Sql {
    let all = sql("FROM action_definitions WHERE tenant_uuid = $1").bind(scope.tenant_uuid());
    match device_uuid {
        Some(device_uuid) => all
            .push(" AND (device_uuid IS NULL OR device_uuid = ")
            .push_bind(device_uuid)
            .push(")"),
        None => all,
    }
}

/// The given tenants with an action of this id. The list must not be empty.
pub async fn suppliers_of(
    conn: &mut Conn,
    action_id: &str,
    tenants: &[TenantUuid],
) -> Result<Vec<TenantUuid>> {
    sql("SELECT tenant_uuid FROM action_definitions WHERE action_id = $1 AND tenant_uuid IN ")
        .bind(action_id)
        .push_list(tenants.iter().copied())
        .push(" ORDER BY tenant_uuid LIMIT 2")
        .scalars(conn)
        .await
}

pub async fn delete(tx: &mut Tx, scope: &Scope, action_id: &str) -> Result<()> {
    sql("DELETE FROM action_definitions WHERE tenant_uuid = $1 AND action_id = $2")
        .bind((scope.tenant_uuid(), action_id))
        .run(tx)
        .await
}

/// An action with this external endpoint. Documents are JSON of this program, so a UUID has one
/// form.
pub async fn of_endpoint(conn: &mut Conn, scope: &Scope, endpoint: Uuid) -> Result<Option<String>> {
    sql("SELECT action_id FROM action_definitions \
         WHERE tenant_uuid = $1 AND transport LIKE $2 LIMIT 1")
    .bind((scope.tenant_uuid(), format!("%\"{endpoint}\"%")))
    .optional_scalar(conn)
    .await
}
