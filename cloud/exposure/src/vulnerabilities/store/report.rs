//! SQL of what a report says was done on hubs.

use hub_base::db::{Conn, Sql, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{ReleaseUuid, Timestamp};

use super::fleet;

/// What was done on hubs that are or were affected: the jobs about one release.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Measure {
    pub job_type: String,
    pub release_uuid: Option<ReleaseUuid>,
    pub version: Option<String>,
    /// The first of the jobs.
    pub began_at: Timestamp,
    pub hubs: i64,
    /// Hubs on which one has succeeded.
    pub succeeded: i64,
    /// Hubs on which one is still open.
    pub open: i64,
}

/// The jobs since a time on hubs that have or had what the vulnerability affects, by release, up to
/// `limit` releases.
pub async fn measures(
    conn: &mut Conn,
    scope: &Scope,
    vulnerability_id: &str,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<Measure>> {
    let hubs = sql(JOBS)
        .push("SELECT found.hub_uuid FROM ")
        .push(fleet::FOUND)
        .bind((scope.tenant_uuid(), vulnerability_id));
    by_release(hubs, since, limit).all(conn).await
}

/// The same on hubs that run or ran one of these releases. The list must not be empty.
pub async fn measures_of_releases(
    conn: &mut Conn,
    scope: &Scope,
    releases: &[ReleaseUuid],
    since: Timestamp,
    limit: i64,
) -> Result<Vec<Measure>> {
    let hubs = sql(JOBS)
        .push("SELECT p.hub_uuid FROM hub_app_periods p WHERE p.tenant_uuid = $1 ")
        .push("AND p.release_uuid IN ")
        .bind(scope.tenant_uuid())
        .push_list(releases.iter().copied());
    by_release(hubs, since, limit).all(conn).await
}

/// The jobs of the tenant `$1` on some hubs; which, follows.
const JOBS: &str = "SELECT j.job_type, j.release_uuid, j.version, MIN(j.created_at) AS began_at, \
    COUNT(DISTINCT j.hub_uuid) AS hubs, \
    COUNT(DISTINCT CASE WHEN j.status = 'SUCCEEDED' THEN j.hub_uuid END) AS succeeded, \
    COUNT(DISTINCT CASE WHEN j.finished_at IS NULL THEN j.hub_uuid END) AS open \
    FROM hub_jobs j WHERE j.tenant_uuid = $1 \
    AND j.job_type IN ('APP_INSTALL', 'APP_REMOVE', 'SELF_UPDATE') AND j.hub_uuid IN (";

fn by_release(hubs: Sql, since: Timestamp, limit: i64) -> Sql {
    hubs.push(") AND j.created_at >= ")
        .push_bind(since)
        .push(
            " GROUP BY j.job_type, j.release_uuid, j.version \
             ORDER BY MIN(j.created_at), j.release_uuid LIMIT ",
        )
        .push_bind(limit)
}
