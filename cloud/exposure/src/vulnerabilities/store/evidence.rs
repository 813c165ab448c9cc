//! SQL of evidence: what hubs ran, and the jobs that changed it, page by page.

use hub_base::db::{Conn, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{AppUuid, HubJobUuid, HubUuid, ReleaseUuid, Timestamp};
use serde::Serialize;
use uuid::Uuid;

use super::super::evidence::Ran;

/// Where a page begins: after this row of this hub.
#[derive(Clone, Copy, Debug)]
pub struct After<T> {
    pub hub_uuid: HubUuid,
    pub row: T,
}

/// What hubs of the tenant ran and began to run until a time, by hub and time.
pub async fn ran(
    conn: &mut Conn,
    scope: &Scope,
    after: After<Timestamp>,
    until: Timestamp,
    limit: i64,
) -> Result<Vec<Ran>> {
    sql(
        "SELECT hub_uuid, began_at, ended_at, list_sha256 FROM hub_software \
         WHERE tenant_uuid = $1 AND (hub_uuid, began_at) > ($2, $3) AND began_at <= $4 \
         ORDER BY hub_uuid, began_at LIMIT $5",
    )
    .bind((scope.tenant_uuid(), after.hub_uuid, after.row, until, limit))
    .all(conn)
    .await
}

/// A release that a hub had, with the list of what it consists of.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct HadRelease {
    pub hub_uuid: HubUuid,
    pub app_uuid: AppUuid,
    pub began_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub list_sha256: Vec<u8>,
}

/// The releases whose components are known that hubs of the tenant had until a time, by hub, app
/// and time.
pub async fn releases(
    conn: &mut Conn,
    scope: &Scope,
    after: After<(AppUuid, Timestamp)>,
    until: Timestamp,
    limit: i64,
) -> Result<Vec<HadRelease>> {
    let (app_uuid, began_at) = after.row;
    sql(
        "SELECT p.hub_uuid, p.app_uuid, p.began_at, p.ended_at, s.list_sha256 \
         FROM hub_app_periods p JOIN release_software s ON s.tenant_uuid = p.tenant_uuid \
         AND s.release_uuid = p.release_uuid WHERE p.tenant_uuid = $1 \
         AND (p.hub_uuid, p.app_uuid, p.began_at) > ($2, $3, $4) AND p.began_at <= $5 \
         ORDER BY p.hub_uuid, p.app_uuid, p.began_at LIMIT $6",
    )
    .bind((
        scope.tenant_uuid(),
        after.hub_uuid,
        app_uuid,
        began_at,
        until,
        limit,
    ))
    .all(conn)
    .await
}

/// A job that installed a release, or was to.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    pub hub_uuid: HubUuid,
    hub_job_uuid: HubJobUuid,
    #[serde(skip)]
    pub revision: i64,
    job_type: String,
    app_uuid: Option<AppUuid>,
    release_uuid: Option<ReleaseUuid>,
    version: Option<String>,
    /// The update policy that has rolled it out.
    policy_uuid: Option<Uuid>,
    status: String,
    detail: Option<String>,
    created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

/// Jobs of these hubs that were created until a time, by hub and in the order of the hub. The hubs
/// must not be none.
pub async fn jobs(
    conn: &mut Conn,
    scope: &Scope,
    hubs: &[HubUuid],
    after: After<i64>,
    until: Timestamp,
    limit: i64,
) -> Result<Vec<Job>> {
    sql(
        "SELECT hub_uuid, hub_job_uuid, revision, job_type, app_uuid, release_uuid, version, \
         policy_uuid, status, detail, created_at, finished_at FROM hub_jobs \
         WHERE tenant_uuid = $1 AND (hub_uuid, revision) > ($2, $3) AND created_at <= $4 \
         AND job_type IN ('APP_INSTALL', 'APP_REMOVE', 'SELF_UPDATE') AND hub_uuid IN ",
    )
    .bind((scope.tenant_uuid(), after.hub_uuid, after.row, until))
    .push_list(hubs.iter().copied())
    .push(" ORDER BY hub_uuid, revision LIMIT ")
    .push_bind(limit)
    .all(conn)
    .await
}
