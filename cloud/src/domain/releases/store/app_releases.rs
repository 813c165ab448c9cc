//! SQL of the releases of apps.

use hub_protocol::release::ReleaseManifest;
use hub_protocol::{AppUuid, ReleaseUuid, TenantUuid, Timestamp};

use super::super::{AppReleaseSummary, Existing, Status};
use crate::authz::Scope;
use crate::db::{Conn, Tx, sql};
use crate::error::Result;
use crate::http::page::{MAX_OFFSET, Page};

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct AppReleaseRow {
    pub release_uuid: ReleaseUuid,
    pub tenant_uuid: TenantUuid,
    pub app_uuid: AppUuid,
    pub version: String,
    pub architecture: String,
    pub counter: i64,
    pub size_bytes: i64,
    pub sha256: String,
    pub downgrade: bool,
    pub manifest: String,
    pub signature: String,
    #[sqlx(try_from = "String")]
    pub status: Status,
    pub created_at: Timestamp,
    pub ready_at: Option<Timestamp>,
}

const COLUMNS: &str = "release_uuid, tenant_uuid, app_uuid, version, architecture, counter, size_bytes, sha256, downgrade, \
    manifest, signature, status, created_at, ready_at";

pub async fn insert(tx: &mut Tx, row: &AppReleaseRow) -> Result<()> {
    sql(&format!(
        "INSERT INTO app_releases ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
    ))
    .bind(row.release_uuid)
    .bind(row.tenant_uuid)
    .bind(row.app_uuid)
    .bind(row.version.as_str())
    .bind(row.architecture.as_str())
    .bind(row.counter)
    .bind(row.size_bytes)
    .bind(row.sha256.as_str())
    .bind(row.downgrade)
    .bind(row.manifest.as_str())
    .bind(row.signature.as_str())
    .bind(row.status.name())
    .bind(row.created_at)
    .bind(row.ready_at)
    .execute(tx)
    .await?;
    Ok(())
}

/// Those of the app that a new one could be confused with: of the same counter, or of the same version for the same architecture. A version that hubs may go
/// back to is signed once more, as a downgrade.
pub async fn alike(conn: &mut Conn, app_uuid: AppUuid, new: &ReleaseManifest, counter: i64) -> Result<Vec<Existing>> {
    sql("SELECT release_uuid, counter, status, manifest, signature FROM app_releases \
         WHERE app_uuid = $1 AND (counter = $2 OR (version = $3 AND architecture = $4 AND downgrade = $5))")
    .bind(app_uuid)
    .bind(counter)
    .bind(new.version.as_str())
    .bind(new.architecture.as_str())
    .bind(new.downgrade)
    .all(conn)
    .await
}

/// The highest counter of the app that a hub which can run the architecture may have seen: a hub counts once for all it runs, so `any` is held against all
/// architectures. 0 when it has none.
pub async fn highest_counter(conn: &mut Conn, app_uuid: AppUuid, architecture: &str) -> Result<i64> {
    let (highest,): (i64,) = sql("SELECT COALESCE(MAX(counter), 0) FROM app_releases \
         WHERE app_uuid = $1 AND ($2 = 'any' OR architecture IN ($2, 'any'))")
    .bind(app_uuid)
    .bind(architecture)
    .one(conn)
    .await?;
    Ok(highest)
}

pub async fn count(conn: &mut Conn, scope: &Scope, app_uuid: AppUuid) -> Result<i64> {
    let (count,): (i64,) = sql("SELECT COUNT(*) FROM \
         (SELECT 1 FROM app_releases WHERE app_uuid = $1 AND tenant_uuid = $2 LIMIT $3) AS counted")
    .bind(app_uuid)
    .bind(scope.tenant_uuid())
    .bind(MAX_OFFSET)
    .one(conn)
    .await?;
    Ok(count)
}

/// Newest first.
pub async fn list(conn: &mut Conn, scope: &Scope, app_uuid: AppUuid, page: &Page) -> Result<Vec<AppReleaseRow>> {
    sql(&format!(
        "SELECT {COLUMNS} FROM app_releases WHERE app_uuid = $1 AND tenant_uuid = $2 \
         ORDER BY created_at DESC, release_uuid DESC LIMIT $3 OFFSET $4"
    ))
    .bind(app_uuid)
    .bind(scope.tenant_uuid())
    .bind(page.size)
    .bind(page.offset)
    .all(conn)
    .await
}

/// Of the tenant's apps, and only when its file is there.
pub async fn ready(conn: &mut Conn, scope: &Scope, release_uuid: ReleaseUuid) -> Result<Option<AppReleaseRow>> {
    sql(&format!(
        "SELECT {COLUMNS} FROM app_releases WHERE release_uuid = $1 AND tenant_uuid = $2 AND status = 'READY'"
    ))
    .bind(release_uuid)
    .bind(scope.tenant_uuid())
    .optional(conn)
    .await
}

/// As [`ready`], as much of it as a job needs.
pub async fn summary(conn: &mut Conn, scope: &Scope, release_uuid: ReleaseUuid) -> Result<Option<AppReleaseSummary>> {
    sql("SELECT release_uuid, app_uuid, version, architecture FROM app_releases \
         WHERE release_uuid = $1 AND tenant_uuid = $2 AND status = 'READY'")
    .bind(release_uuid)
    .bind(scope.tenant_uuid())
    .optional(conn)
    .await
}

/// Begins the time anew that its file is awaited for.
pub async fn renew(tx: &mut Tx, release_uuid: ReleaseUuid, now: Timestamp) -> Result<()> {
    sql("UPDATE app_releases SET created_at = $2 WHERE release_uuid = $1 AND status = 'AWAITING_FILE'")
        .bind(release_uuid)
        .bind(now)
        .execute(tx)
        .await?;
    Ok(())
}

/// Of whichever tenant, while that is not deleted: who has a signed URL of the file may have the file.
pub async fn of_any_tenant(conn: &mut Conn, release_uuid: ReleaseUuid) -> Result<Option<AppReleaseRow>> {
    sql(&format!(
        "SELECT {COLUMNS} FROM app_releases WHERE release_uuid = $1 \
         AND tenant_uuid IN (SELECT tenant_uuid FROM tenants WHERE deleted_at IS NULL)"
    ))
    .bind(release_uuid)
    .optional(conn)
    .await
}

/// Whether a release that awaited its file was there to be marked.
pub async fn mark_ready(tx: &mut Tx, release_uuid: ReleaseUuid, now: Timestamp) -> Result<bool> {
    let marked = sql(
        "UPDATE app_releases SET status = 'READY', ready_at = $2 WHERE release_uuid = $1 AND status = 'AWAITING_FILE'",
    )
    .bind(release_uuid)
    .bind(now)
    .execute(tx)
    .await?;
    Ok(marked > 0)
}

/// Up to `limit` of those that nobody brought a file for since then.
pub async fn abandoned(conn: &mut Conn, before: Timestamp, limit: i64) -> Result<Vec<(ReleaseUuid,)>> {
    sql("SELECT release_uuid FROM app_releases WHERE status = 'AWAITING_FILE' AND created_at < $1 LIMIT $2")
        .bind(before)
        .bind(limit)
        .all(conn)
        .await
}

/// Whether it was there and nobody has asked anew for a place to upload its file to.
pub async fn forget(tx: &mut Tx, release_uuid: ReleaseUuid, before: Timestamp) -> Result<bool> {
    let deleted =
        sql("DELETE FROM app_releases WHERE release_uuid = $1 AND status = 'AWAITING_FILE' AND created_at < $2")
            .bind(release_uuid)
            .bind(before)
            .execute(tx)
            .await?;
    Ok(deleted > 0)
}
