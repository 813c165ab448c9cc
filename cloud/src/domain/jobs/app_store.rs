//! SQL of the apps of hubs, as desired and as reported.

use hub_protocol::job::{HubJobStatus, HubJobType, InstalledApp, InstalledAppState};
use hub_protocol::{AppUuid, HubJobUuid, HubUuid, ReleaseUuid, Timestamp};

use super::HubJob;
use crate::authn::hub::Hub;
use crate::authz::Scope;
use crate::db::{Conn, Tx, sql};
use crate::error::Result;

/// An app that an operator installed or removed, with its last job.
#[derive(Debug, sqlx::FromRow)]
pub struct HubApp {
    pub app_uuid: AppUuid,
    /// The release of the last successful installation.
    pub release_uuid: Option<ReleaseUuid>,
    pub version: Option<String>,
    pub updated_at: Timestamp,
    pub hub_job_uuid: HubJobUuid,
    #[sqlx(try_from = "String")]
    pub job_type: HubJobType,
    #[sqlx(try_from = "String")]
    pub job_status: HubJobStatus,
    pub job_release_uuid: Option<ReleaseUuid>,
    pub job_version: Option<String>,
}

/// Of any tenant's hub: the caller has checked the tenant.
pub async fn of_hub(conn: &mut Conn, hub_uuid: HubUuid, limit: i64) -> Result<Vec<HubApp>> {
    sql(
        "SELECT a.app_uuid, a.release_uuid, a.version, a.updated_at, j.hub_job_uuid, j.job_type, \
         j.status AS job_status, j.release_uuid AS job_release_uuid, j.version AS job_version \
         FROM hub_apps a JOIN hub_jobs j ON j.hub_job_uuid = a.hub_job_uuid WHERE a.hub_uuid = $1 \
         ORDER BY a.app_uuid LIMIT $2",
    )
    .bind(hub_uuid)
    .bind(limit)
    .all(conn)
    .await
}

pub async fn count(conn: &mut Conn, hub_uuid: HubUuid) -> Result<i64> {
    sql("SELECT COUNT(*) FROM hub_apps WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .scalar(conn)
        .await
}

pub async fn set_desired(
    tx: &mut Tx,
    job: &HubJob,
    app_uuid: AppUuid,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO hub_apps (hub_uuid, app_uuid, tenant_uuid, hub_job_uuid, updated_at) \
         VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (hub_uuid, app_uuid) DO UPDATE SET hub_job_uuid = excluded.hub_job_uuid, \
         updated_at = excluded.updated_at",
    )
    .bind(job.hub_uuid)
    .bind(app_uuid)
    .bind(job.tenant_uuid)
    .bind(job.hub_job_uuid)
    .bind(now)
    .run(tx)
    .await
}

/// The row may be missing: a later job of the app was created and cancelled.
pub async fn installed(tx: &mut Tx, job: &HubJob, app_uuid: AppUuid, now: Timestamp) -> Result<()> {
    sql(
        "INSERT INTO hub_apps (hub_uuid, app_uuid, tenant_uuid, hub_job_uuid, release_uuid, \
         version, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7) \
         ON CONFLICT (hub_uuid, app_uuid) DO UPDATE SET release_uuid = excluded.release_uuid, \
         version = excluded.version, updated_at = excluded.updated_at",
    )
    .bind(job.hub_uuid)
    .bind(app_uuid)
    .bind(job.tenant_uuid)
    .bind(job.hub_job_uuid)
    .bind(job.release_uuid)
    .bind(job.version.as_deref())
    .bind(now)
    .run(tx)
    .await
}

pub async fn removed(tx: &mut Tx, job: &HubJob, app_uuid: AppUuid, now: Timestamp) -> Result<()> {
    sql(
        "UPDATE hub_apps SET release_uuid = NULL, version = NULL, updated_at = $3 \
         WHERE hub_uuid = $1 AND app_uuid = $2",
    )
    .bind(job.hub_uuid)
    .bind(app_uuid)
    .bind(now)
    .run(tx)
    .await
}

/// Deletes the app whose last job this was, unless it is installed.
pub async fn forget_undesired(tx: &mut Tx, job: &HubJob) -> Result<()> {
    sql("DELETE FROM hub_apps WHERE hub_job_uuid = $1 AND release_uuid IS NULL")
        .bind(job.hub_job_uuid)
        .run(tx)
        .await
}

/// The apps whose last job at the hub is the given one. The list must be short and not empty.
pub async fn still_last(
    conn: &mut Conn,
    hub_uuid: HubUuid,
    jobs: &[HubJobUuid],
) -> Result<Vec<AppUuid>> {
    sql("SELECT app_uuid FROM hub_apps WHERE hub_uuid = $1 AND hub_job_uuid IN ")
        .bind(hub_uuid)
        .push_list(jobs.iter().copied())
        .push(" ORDER BY app_uuid")
        .scalars(conn)
        .await
}

/// Deletes the apps of the hub, as desired and as reported.
pub async fn delete_all(tx: &mut Tx, hub_uuid: HubUuid) -> Result<()> {
    sql("DELETE FROM hub_apps WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .run(tx)
        .await?;
    sql("DELETE FROM hub_installed_apps WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .run(tx)
        .await
}

pub async fn replace_installed(
    tx: &mut Tx,
    hub: &Hub,
    apps: &[InstalledApp],
    now: Timestamp,
) -> Result<()> {
    sql("DELETE FROM hub_installed_apps WHERE hub_uuid = $1")
        .bind(hub.hub_uuid)
        .execute(tx)
        .await?;
    for app in apps {
        sql(
            "INSERT INTO hub_installed_apps (hub_uuid, app_uuid, tenant_uuid, release_uuid, \
             version, state, message, since, restarts, reported_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        )
        .bind(hub.hub_uuid)
        .bind(app.app_uuid)
        .bind(hub.tenant_uuid)
        .bind(app.release_uuid)
        .bind(app.version.as_str())
        .bind(app.state.name())
        .bind(app.message.as_deref())
        .bind(app.since)
        .bind(app.restarts)
        .bind(now)
        .execute(tx)
        .await?;
    }
    Ok(())
}

/// An app as reported by the hub.
#[derive(Debug, sqlx::FromRow)]
pub struct ReportedApp {
    pub app_uuid: AppUuid,
    pub release_uuid: ReleaseUuid,
    pub version: String,
    #[sqlx(try_from = "String")]
    pub state: InstalledAppState,
    pub message: Option<String>,
    pub since: Timestamp,
    pub restarts: i64,
    pub reported_at: Timestamp,
}

pub async fn reported(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuid: HubUuid,
    limit: i64,
) -> Result<Vec<ReportedApp>> {
    sql(
        "SELECT app_uuid, release_uuid, version, state, message, since, restarts, reported_at \
         FROM hub_installed_apps WHERE hub_uuid = $1 AND tenant_uuid = $2 \
         ORDER BY app_uuid LIMIT $3",
    )
    .bind(hub_uuid)
    .bind(scope.tenant_uuid())
    .bind(limit)
    .all(conn)
    .await
}
