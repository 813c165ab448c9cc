//! SQL of apps.

use hub_base::db::{Conn, Slice, Sql, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{AppUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

/// An app of a tenant.
#[derive(Clone, Debug, sqlx::FromRow, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AppResponse")]
pub struct AppRow {
    /// The app.
    pub app_uuid: AppUuid,
    /// Its name, as the manifests of its releases have it.
    pub name: String,
    /// Free-text description.
    pub description: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
}

const COLUMNS: &str = "app_uuid, name, description, created_at";

/// Returns false when the tenant has an app of this name.
pub async fn insert(tx: &mut Tx, scope: &Scope, app: &AppRow) -> Result<bool> {
    let added = sql(
        "INSERT INTO apps (app_uuid, tenant_uuid, name, description, created_at) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT (tenant_uuid, name) DO NOTHING",
    )
    .bind((
        app.app_uuid,
        scope.tenant_uuid(),
        app.name.as_str(),
        app.description.as_deref(),
        app.created_at,
    ))
    .execute(tx)
    .await?;
    Ok(added > 0)
}

pub async fn get(conn: &mut Conn, scope: &Scope, app_uuid: AppUuid) -> Result<Option<AppRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM apps WHERE app_uuid = $1 AND tenant_uuid = $2")
        .bind((app_uuid, scope.tenant_uuid()))
        .optional(conn)
        .await
}

/// The given apps of the tenant. The list must be short and not empty.
pub async fn own(conn: &mut Conn, scope: &Scope, apps: &[AppUuid]) -> Result<Vec<AppUuid>> {
    sql("SELECT app_uuid FROM apps WHERE tenant_uuid = $1 AND app_uuid IN ")
        .bind(scope.tenant_uuid())
        .push_list(apps.iter().copied())
        .scalars(conn)
        .await
}

/// The releases, of which no release is added by anybody else until the transaction ends.
pub async fn lock(tx: &mut Tx, scope: &Scope, app_uuid: AppUuid) -> Result<Option<AppRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM apps WHERE app_uuid = $1 AND tenant_uuid = $2")
        .for_update(tx)
        .bind((app_uuid, scope.tenant_uuid()))
        .optional(tx)
        .await
}

/// The number of apps of the tenant, counted up to [`hub_base::db::MAX_COUNT`].
pub async fn count(conn: &mut Conn, scope: &Scope) -> Result<i64> {
    of_tenant(scope).count(conn).await
}

/// One page, newest first, and the total number.
pub async fn list(conn: &mut Conn, scope: &Scope, slice: Slice) -> Result<(Vec<AppRow>, i64)> {
    of_tenant(scope)
        .page(conn, COLUMNS, &["created_at DESC, app_uuid DESC"], slice)
        .await
}

fn of_tenant(scope: &Scope) -> Sql {
    sql("FROM apps WHERE tenant_uuid = $1").bind(scope.tenant_uuid())
}
