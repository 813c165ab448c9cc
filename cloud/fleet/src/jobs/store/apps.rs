//! SQL of the apps of hubs, as desired and as reported.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authn::hub::Hub;
use hub_identity::authz::Scope;
use hub_protocol::job::{HubJobStatus, HubJobType, InstalledApp, InstalledAppState};
use hub_protocol::{AppUuid, HubJobUuid, HubUuid, ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::HubJob;

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

/// The apps of a hub of any tenant: the caller has checked the tenant.
pub async fn of_hub(conn: &mut Conn, hub_uuid: HubUuid, limit: i64) -> Result<Vec<HubApp>> {
    sql(
        "SELECT a.app_uuid, a.release_uuid, a.version, a.updated_at, j.hub_job_uuid, j.job_type, \
         j.status AS job_status, j.release_uuid AS job_release_uuid, j.version AS job_version \
         FROM hub_apps a JOIN hub_jobs j ON j.hub_job_uuid = a.hub_job_uuid WHERE a.hub_uuid = $1 \
         ORDER BY a.app_uuid LIMIT $2",
    )
    .bind((hub_uuid, limit))
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
    .bind((
        job.hub_uuid,
        app_uuid,
        job.tenant_uuid,
        job.hub_job_uuid,
        now,
    ))
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
    .bind((
        job.hub_uuid,
        app_uuid,
        job.tenant_uuid,
        job.hub_job_uuid,
        job.release_uuid,
        job.version.as_deref(),
        now,
    ))
    .run(tx)
    .await
}

pub async fn removed(tx: &mut Tx, job: &HubJob, app_uuid: AppUuid, now: Timestamp) -> Result<()> {
    sql(
        "UPDATE hub_apps SET release_uuid = NULL, version = NULL, updated_at = $3 \
         WHERE hub_uuid = $1 AND app_uuid = $2",
    )
    .bind((job.hub_uuid, app_uuid, now))
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
        .bind((
            hub.hub_uuid,
            app.app_uuid,
            hub.tenant_uuid,
            app.release_uuid,
            app.version.as_str(),
            app.state.name(),
            app.message.as_deref(),
            app.since,
            app.restarts,
            now,
        ))
        .execute(tx)
        .await?;
    }
    Ok(())
}

/// An app as the hub last reported it.
#[derive(Debug, sqlx::FromRow, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "InstalledAppView")]
pub struct ReportedApp {
    /// The app.
    pub app_uuid: AppUuid,
    /// The release that is installed.
    pub release_uuid: ReleaseUuid,
    /// The version of that release.
    pub version: String,
    /// Whether it runs.
    #[sqlx(try_from = "String")]
    pub state: InstalledAppState,
    /// The reason of the state.
    pub message: Option<String>,
    /// When it entered its state, by the clock of the hub.
    pub since: Timestamp,
    /// The number of restarts since its installation.
    #[schemars(range(min = 0))]
    pub restarts: i64,
    /// When the hub reported it.
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
    .bind((hub_uuid, scope.tenant_uuid(), limit))
    .all(conn)
    .await
}
