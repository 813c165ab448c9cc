//! SQL of apps.

use hub_protocol::{AppUuid, Timestamp};

use crate::authz::Scope;
use crate::db::{Conn, Tx, sql};
use crate::error::Result;
use crate::http::page::{MAX_OFFSET, Page};

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct AppRow {
    pub app_uuid: AppUuid,
    pub name: String,
    pub description: Option<String>,
    pub created_at: Timestamp,
}

const COLUMNS: &str = "app_uuid, name, description, created_at";

/// Whether it was added: not when the tenant has an app of this name.
pub async fn insert(tx: &mut Tx, scope: &Scope, app: &AppRow) -> Result<bool> {
    let added =
        sql("INSERT INTO apps (app_uuid, tenant_uuid, name, description, created_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (tenant_uuid, name) DO NOTHING")
        .bind(app.app_uuid)
        .bind(scope.tenant_uuid())
        .bind(app.name.as_str())
        .bind(app.description.as_deref())
        .bind(app.created_at)
        .execute(tx)
        .await?;
    Ok(added > 0)
}

pub async fn get(conn: &mut Conn, scope: &Scope, app_uuid: AppUuid) -> Result<Option<AppRow>> {
    sql(&format!("SELECT {COLUMNS} FROM apps WHERE app_uuid = $1 AND tenant_uuid = $2"))
        .bind(app_uuid)
        .bind(scope.tenant_uuid())
        .optional(conn)
        .await
}

/// The app, of which no release is added by anybody else until the transaction ends.
pub async fn lock(tx: &mut Tx, scope: &Scope, app_uuid: AppUuid) -> Result<Option<AppRow>> {
    let lock = tx.dialect().for_update();
    sql(&format!("SELECT {COLUMNS} FROM apps WHERE app_uuid = $1 AND tenant_uuid = $2"))
        .push(lock)
        .bind(app_uuid)
        .bind(scope.tenant_uuid())
        .optional(tx)
        .await
}

/// How many the tenant has.
pub async fn count(conn: &mut Conn, scope: &Scope) -> Result<i64> {
    let (count,): (i64,) = sql("SELECT COUNT(*) FROM (SELECT 1 FROM apps WHERE tenant_uuid = $1 LIMIT $2) AS counted")
        .bind(scope.tenant_uuid())
        .bind(MAX_OFFSET)
        .one(conn)
        .await?;
    Ok(count)
}

/// Newest first.
pub async fn list(conn: &mut Conn, scope: &Scope, page: &Page) -> Result<Vec<AppRow>> {
    sql(&format!(
        "SELECT {COLUMNS} FROM apps WHERE tenant_uuid = $1 ORDER BY created_at DESC, app_uuid DESC LIMIT $2 OFFSET $3"
    ))
    .bind(scope.tenant_uuid())
    .bind(page.size)
    .bind(page.offset)
    .all(conn)
    .await
}
