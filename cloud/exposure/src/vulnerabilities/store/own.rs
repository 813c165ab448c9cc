//! SQL of a tenant's own advisories, and of what hubs run of its apps.

use hub_base::db::{Conn, Slice, Tx, sql};
use hub_base::error::{Error, Result};
use hub_identity::authz::Scope;
use hub_protocol::{AppUuid, HubUuid, ReleaseUuid, Timestamp};
use serde::de::DeserializeOwned;

use super::super::own::Advisory;
use crate::severity::VulnerabilitySeverity;

/// Ids that one query asks for.
pub const AT_ONCE: usize = 500;

#[derive(sqlx::FromRow)]
struct Row {
    advisory_id: String,
    title: String,
    description: Option<String>,
    severity: i64,
    cvss_vector: Option<String>,
    aliases: String,
    links: String,
    affected: String,
    author: String,
    created_at: Timestamp,
    updated_at: Timestamp,
}

fn read<T: DeserializeOwned>(json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(Error::internal)
}

impl TryFrom<Row> for Advisory {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            severity: VulnerabilitySeverity::of_rank(row.severity),
            aliases: read(&row.aliases)?,
            references: read(&row.links)?,
            affected: read(&row.affected)?,
            advisory_id: row.advisory_id,
            title: row.title,
            description: row.description,
            cvss_vector: row.cvss_vector,
            author: row.author,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

const COLUMNS: &str = "advisory_id, title, description, severity, cvss_vector, aliases, links, \
    affected, author, created_at, updated_at";

/// One page, newest first, and the total number.
pub async fn list(conn: &mut Conn, scope: &Scope, slice: Slice) -> Result<(Vec<Advisory>, i64)> {
    let order: &[&str] = &["created_at DESC, advisory_id DESC"];
    let (rows, total): (Vec<Row>, i64) = sql("FROM tenant_advisories WHERE tenant_uuid = $1")
        .bind(scope.tenant_uuid())
        .page(conn, COLUMNS, order, slice)
        .await?;
    let advisories: Result<Vec<Advisory>> = rows.into_iter().map(Advisory::try_from).collect();
    Ok((advisories?, total))
}

pub async fn count(conn: &mut Conn, scope: &Scope) -> Result<i64> {
    sql("FROM tenant_advisories WHERE tenant_uuid = $1")
        .bind(scope.tenant_uuid())
        .count(conn)
        .await
}

pub async fn get(conn: &mut Conn, scope: &Scope, advisory_id: &str) -> Result<Option<Advisory>> {
    let row: Option<Row> = sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM tenant_advisories WHERE tenant_uuid = $1 AND advisory_id = $2")
        .bind((scope.tenant_uuid(), advisory_id))
        .optional(conn)
        .await?;
    row.map(Advisory::try_from).transpose()
}

/// Those of the advisories that are there. The list must be short and not empty.
pub async fn some(conn: &mut Conn, scope: &Scope, ids: &[&str]) -> Result<Vec<Advisory>> {
    let rows: Vec<Row> = sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM tenant_advisories WHERE tenant_uuid = ")
        .push_bind(scope.tenant_uuid())
        .push(" AND advisory_id IN ")
        .push_list(ids.iter().copied())
        .all(conn)
        .await?;
    rows.into_iter().map(Advisory::try_from).collect()
}

pub async fn put(tx: &mut Tx, scope: &Scope, advisory: &Advisory) -> Result<()> {
    let text = |value: serde_json::Result<String>| value.map_err(Error::internal);
    sql(
        "INSERT INTO tenant_advisories (tenant_uuid, advisory_id, title, description, severity, \
         cvss_vector, aliases, links, affected, author, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
         ON CONFLICT (tenant_uuid, advisory_id) DO UPDATE SET title = excluded.title, \
         description = excluded.description, severity = excluded.severity, \
         cvss_vector = excluded.cvss_vector, aliases = excluded.aliases, links = excluded.links, \
         affected = excluded.affected, author = excluded.author, updated_at = excluded.updated_at",
    )
    .bind((
        scope.tenant_uuid(),
        advisory.advisory_id.as_str(),
        advisory.title.as_str(),
        advisory.description.as_deref(),
        advisory.severity.rank(),
        advisory.cvss_vector.as_deref(),
        text(serde_json::to_string(&advisory.aliases))?,
        text(serde_json::to_string(&advisory.references))?,
        text(serde_json::to_string(&advisory.affected))?,
        advisory.author.as_str(),
        advisory.created_at,
        advisory.updated_at,
    ))
    .run(tx)
    .await
}

/// Makes the advisory one of the tenant's vulnerabilities.
pub async fn put_fact(tx: &mut Tx, scope: &Scope, advisory: &Advisory) -> Result<()> {
    sql(
        "INSERT INTO tenant_vulnerabilities (tenant_uuid, vulnerability_id, title, severity, \
         exploited, first_seen_at, source) VALUES ($1, $2, $3, $4, FALSE, $5, 'OWN') \
         ON CONFLICT (tenant_uuid, vulnerability_id) DO UPDATE SET title = excluded.title, \
         severity = excluded.severity",
    )
    .bind((
        scope.tenant_uuid(),
        advisory.advisory_id.as_str(),
        advisory.title.as_str(),
        advisory.severity.rank(),
        advisory.created_at,
    ))
    .run(tx)
    .await
}

/// Deletes an advisory with what is stated about it.
pub async fn delete(tx: &mut Tx, scope: &Scope, advisory_id: &str) -> Result<()> {
    for statement in [
        "DELETE FROM tenant_advisories WHERE tenant_uuid = $1 AND advisory_id = $2",
        "DELETE FROM tenant_vulnerabilities WHERE tenant_uuid = $1 AND vulnerability_id = $2",
        "DELETE FROM vulnerability_statements WHERE tenant_uuid = $1 AND vulnerability_id = $2",
    ] {
        sql(statement)
            .bind((scope.tenant_uuid(), advisory_id))
            .run(tx)
            .await?;
    }
    Ok(())
}

/// A release that a hub reports to run.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Installed {
    pub hub_uuid: HubUuid,
    pub app_uuid: AppUuid,
    pub release_uuid: ReleaseUuid,
    pub since: Timestamp,
}

/// What the tenant's hubs report to run of these apps.
pub async fn installed(conn: &mut Conn, scope: &Scope, apps: &[AppUuid]) -> Result<Vec<Installed>> {
    let mut found = Vec::new();
    for some in apps.chunks(AT_ONCE) {
        let rows: Vec<Installed> = sql(
            "SELECT i.hub_uuid, i.app_uuid, i.release_uuid, i.since FROM hub_installed_apps i \
             JOIN hubs h ON h.hub_uuid = i.hub_uuid WHERE i.tenant_uuid = $1 \
             AND h.tenant_uuid = $1 AND h.released_at IS NULL AND i.app_uuid IN ",
        )
        .bind(scope.tenant_uuid())
        .push_list(some.iter().copied())
        .all(conn)
        .await?;
        found.extend(rows);
    }
    Ok(found)
}

/// The releases that the tenant's hubs run or ran of these apps, up to `limit`. The list must be
/// short.
pub async fn ran(
    conn: &mut Conn,
    scope: &Scope,
    apps: &[AppUuid],
    limit: i64,
) -> Result<Vec<(AppUuid, ReleaseUuid)>> {
    if apps.is_empty() {
        return Ok(Vec::new());
    }
    sql(
        "SELECT DISTINCT app_uuid, release_uuid FROM hub_app_periods WHERE tenant_uuid = $1 \
         AND app_uuid IN ",
    )
    .bind(scope.tenant_uuid())
    .push_list(apps.iter().copied())
    .push(" LIMIT ")
    .push_bind(limit)
    .all(conn)
    .await
}

/// What a hub reports to run.
pub async fn of_hub(
    conn: &mut Conn,
    scope: &Scope,
    hub_uuid: HubUuid,
) -> Result<Vec<(AppUuid, ReleaseUuid)>> {
    sql("SELECT app_uuid, release_uuid FROM hub_installed_apps \
         WHERE tenant_uuid = $1 AND hub_uuid = $2")
    .bind((scope.tenant_uuid(), hub_uuid))
    .all(conn)
    .await
}

/// The hubs on which a job that installs one of these apps is open, each with the app.
pub async fn updating(
    conn: &mut Conn,
    scope: &Scope,
    apps: &[AppUuid],
) -> Result<Vec<(HubUuid, AppUuid)>> {
    let mut found = Vec::new();
    for some in apps.chunks(AT_ONCE) {
        let rows: Vec<(HubUuid, AppUuid)> = sql(
            "SELECT DISTINCT hub_uuid, app_uuid FROM hub_jobs WHERE tenant_uuid = $1 \
             AND finished_at IS NULL AND job_type = 'APP_INSTALL' AND app_uuid IN ",
        )
        .bind(scope.tenant_uuid())
        .push_list(some.iter().copied())
        .all(conn)
        .await?;
        found.extend(rows);
    }
    Ok(found)
}
