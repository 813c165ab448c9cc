//! SQL of dashboards.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;
use serde_json::json;
use sqlx::types::Json;
use uuid::Uuid;

use super::Tile;

/// A tenant's page of tiles.
#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct Dashboard {
    pub dashboard_uuid: Uuid,
    pub name: String,
    pub is_on_overview: bool,
    pub tiles: Json<Vec<Tile>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

const COLUMNS: &str = "dashboard_uuid, name, is_on_overview, tiles, created_at, updated_at";

/// The tenant's dashboards by name.
pub async fn list(conn: &mut Conn, scope: &Scope, limit: i64) -> Result<Vec<Dashboard>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM dashboards WHERE tenant_uuid = $1 ORDER BY name, dashboard_uuid LIMIT $2")
        .bind((scope.tenant_uuid(), limit))
        .all(conn)
        .await
}

pub async fn count(conn: &mut Conn, scope: &Scope) -> Result<i64> {
    sql("SELECT COUNT(*) FROM dashboards WHERE tenant_uuid = $1")
        .bind(scope.tenant_uuid())
        .scalar(conn)
        .await
}

pub async fn get(conn: &mut Conn, scope: &Scope, id: Uuid) -> Result<Option<Dashboard>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM dashboards WHERE dashboard_uuid = $1 AND tenant_uuid = $2")
        .bind((id, scope.tenant_uuid()))
        .optional(conn)
        .await
}

pub async fn lock(tx: &mut Tx, scope: &Scope, id: Uuid) -> Result<Option<Dashboard>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM dashboards WHERE dashboard_uuid = $1 AND tenant_uuid = $2")
        .bind((id, scope.tenant_uuid()))
        .for_update(tx)
        .optional(tx)
        .await
}

/// Stores a new dashboard, or the new state of one.
pub async fn put(tx: &mut Tx, scope: &Scope, dashboard: &Dashboard) -> Result<()> {
    sql(
        "INSERT INTO dashboards (dashboard_uuid, tenant_uuid, name, is_on_overview, tiles, \
         created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7) \
         ON CONFLICT (dashboard_uuid) DO UPDATE SET name = excluded.name, \
         is_on_overview = excluded.is_on_overview, tiles = excluded.tiles, \
         updated_at = excluded.updated_at",
    )
    .bind((
        dashboard.dashboard_uuid,
        scope.tenant_uuid(),
        dashboard.name.as_str(),
        dashboard.is_on_overview,
        json!(dashboard.tiles.0),
        dashboard.created_at,
        dashboard.updated_at,
    ))
    .run(tx)
    .await
}

/// Takes all other dashboards of the tenant off the overview.
pub async fn clear_overview(tx: &mut Tx, scope: &Scope, but: Uuid) -> Result<()> {
    sql("UPDATE dashboards SET is_on_overview = $3 \
         WHERE tenant_uuid = $1 AND dashboard_uuid <> $2 AND is_on_overview = $4")
    .bind((scope.tenant_uuid(), but, false, true))
    .run(tx)
    .await
}

/// The dashboard must be locked.
pub async fn delete(tx: &mut Tx, id: Uuid) -> Result<()> {
    sql("DELETE FROM dashboards WHERE dashboard_uuid = $1")
        .bind(id)
        .run(tx)
        .await
}

/// Deletes all dashboards of a tenant that is deleted. The caller writes the audit entry.
pub async fn delete_all(tx: &mut Tx, scope: &Scope) -> Result<u64> {
    sql("DELETE FROM dashboards WHERE tenant_uuid = $1")
        .bind(scope.tenant_uuid())
        .execute(tx)
        .await
}
