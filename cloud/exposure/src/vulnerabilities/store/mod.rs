//! SQL of vulnerabilities and exposures; how hubs stand to them is in `fleet`.

pub mod evidence;
pub mod fleet;
pub mod own;
pub mod platform;
pub mod report;
pub mod statements;

use std::sync::Arc;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Slice, Sql, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, ReleaseUuid, TenantUuid, Timestamp, text_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::severity::VulnerabilitySeverity;
use crate::software::ListKey;

/// A package of a list that a vulnerability affects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, sqlx::FromRow)]
pub struct Exposure {
    pub vulnerability_id: String,
    pub ecosystem: String,
    pub package: String,
    pub version: String,
    pub fixed_in: Option<String>,
    pub advisory_id: String,
}

/// What is known of a vulnerability.
#[derive(Clone, Debug)]
pub struct Fact {
    pub vulnerability_id: String,
    pub title: String,
    pub severity: VulnerabilitySeverity,
    pub is_exploited: bool,
}

/// What a list is exposed to.
pub async fn of_list(conn: &mut Conn, key: &ListKey) -> Result<Vec<Exposure>> {
    sql(
        "SELECT vulnerability_id, ecosystem, package, version, fixed_in, advisory_id \
         FROM exposures WHERE tenant_uuid = $1 AND list_sha256 = $2",
    )
    .bind((key.tenant_uuid, key.list_sha256.as_slice()))
    .all(conn)
    .await
}

fn texts(exposures: &[&Exposure], value: fn(&Exposure) -> &str) -> Column {
    let text = |exposure: &&Exposure| Arc::from(value(exposure));
    Column::Text(exposures.iter().map(text).collect())
}

pub async fn insert(tx: &mut Tx, key: &ListKey, exposures: &[&Exposure]) -> Result<()> {
    let fixed = |exposure: &&Exposure| exposure.fixed_in.as_deref().map(Arc::from);
    Bulk {
        head: "INSERT INTO exposures (tenant_uuid, list_sha256, vulnerability_id, ecosystem, \
            package, version, fixed_in, advisory_id)",
        columns: vec![
            Column::Uuid(vec![key.tenant_uuid.0; exposures.len()]),
            Column::Bytes(vec![key.list_sha256.clone(); exposures.len()]),
            texts(exposures, |exposure| &exposure.vulnerability_id),
            texts(exposures, |exposure| &exposure.ecosystem),
            texts(exposures, |exposure| &exposure.package),
            texts(exposures, |exposure| &exposure.version),
            Column::OptionalText(exposures.iter().map(fixed).collect()),
            texts(exposures, |exposure| &exposure.advisory_id),
        ],
        tail: "",
    }
    .execute(tx)
    .await?;
    Ok(())
}

/// Deletes exposures of a list.
pub async fn delete(tx: &mut Tx, key: &ListKey, exposures: &[&Exposure]) -> Result<()> {
    const AT_ONCE: usize = 400;
    for some in exposures.chunks(AT_ONCE) {
        let statement = sql(
            "DELETE FROM exposures WHERE tenant_uuid = $1 AND list_sha256 = $2 \
             AND (vulnerability_id, ecosystem, package, version) IN (",
        )
        .bind((key.tenant_uuid, key.list_sha256.as_slice()));
        let statement = some
            .iter()
            .enumerate()
            .fold(statement, |statement, (at, exposure)| {
                statement
                    .push(if at > 0 { ", " } else { "VALUES " })
                    .push_list([
                        exposure.vulnerability_id.as_str(),
                        exposure.ecosystem.as_str(),
                        exposure.package.as_str(),
                        exposure.version.as_str(),
                    ])
            });
        statement.push(")").run(tx).await?;
    }
    Ok(())
}

/// Notes vulnerabilities of a tenant. Of one that is there, only what has changed is written.
pub async fn put_facts(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    facts: &[Fact],
    now: Timestamp,
) -> Result<()> {
    let text = |value: fn(&Fact) -> &str| {
        Column::Text(facts.iter().map(|fact| value(fact).into()).collect())
    };
    Bulk {
        head: "INSERT INTO tenant_vulnerabilities (tenant_uuid, vulnerability_id, title, severity, \
            exploited, first_seen_at)",
        columns: vec![
            Column::Uuid(vec![tenant_uuid.0; facts.len()]),
            text(|fact| &fact.vulnerability_id),
            text(|fact| &fact.title),
            Column::Int(facts.iter().map(|fact| fact.severity.rank()).collect()),
            Column::Bool(facts.iter().map(|fact| fact.is_exploited).collect()),
            Column::Time(vec![now; facts.len()]),
        ],
        tail: "ON CONFLICT (tenant_uuid, vulnerability_id) DO UPDATE SET title = excluded.title, \
            severity = excluded.severity, exploited = excluded.exploited \
            WHERE tenant_vulnerabilities.source = 'FEED' \
            AND (tenant_vulnerabilities.title <> excluded.title \
            OR tenant_vulnerabilities.severity <> excluded.severity \
            OR tenant_vulnerabilities.exploited <> excluded.exploited)",
    }
    .execute(tx)
    .await?;
    Ok(())
}

/// Deletes the tenant's vulnerabilities that no list has any more.
pub async fn forget_gone(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    sql(
        "DELETE FROM tenant_vulnerabilities WHERE tenant_uuid = $1 AND source = 'FEED' \
         AND NOT EXISTS \
         (SELECT 1 FROM exposures e WHERE e.tenant_uuid = tenant_vulnerabilities.tenant_uuid \
         AND e.vulnerability_id = tenant_vulnerabilities.vulnerability_id)",
    )
    .bind(tenant_uuid)
    .run(tx)
    .await
}

pub async fn forget_all(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    for statement in [
        "DELETE FROM tenant_vulnerabilities WHERE tenant_uuid = $1",
        "DELETE FROM tenant_advisories WHERE tenant_uuid = $1",
        "DELETE FROM vulnerability_statements WHERE tenant_uuid = $1",
        "DELETE FROM release_statements WHERE tenant_uuid = $1",
    ] {
        sql(statement).bind(tenant_uuid).run(tx).await?;
    }
    Ok(())
}

/// A vulnerability that was first seen lately.
#[derive(Debug, sqlx::FromRow)]
pub struct New {
    pub vulnerability_id: String,
    pub title: String,
    severity: i64,
    pub exploited: bool,
    pub first_seen_at: Timestamp,
}

impl New {
    pub fn severity(&self) -> VulnerabilitySeverity {
        VulnerabilitySeverity::of_rank(self.severity)
    }
}

pub async fn new_since(
    conn: &mut Conn,
    scope: &Scope,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<New>> {
    sql(
        "SELECT vulnerability_id, title, severity, exploited, first_seen_at \
         FROM tenant_vulnerabilities WHERE tenant_uuid = $1 AND first_seen_at > $2 \
         AND source = 'FEED' AND (severity <> $3 OR exploited) \
         ORDER BY exploited DESC, severity DESC, vulnerability_id LIMIT $4",
    )
    .bind((
        scope.tenant_uuid(),
        since,
        VulnerabilitySeverity::None.rank(),
        limit,
    ))
    .all(conn)
    .await
}

/// What a list of vulnerabilities is narrowed by.
#[derive(Debug, Default)]
pub struct Filters {
    /// A part of the id or the title in any case, or the name of a package.
    pub search: Option<String>,
    /// Those that affect the hub now.
    pub hub_uuid: Option<HubUuid>,
    /// Those that affect hubs which run the release of an app.
    pub release_uuid: Option<ReleaseUuid>,
    pub severity: Option<VulnerabilitySeverity>,
    pub exploited: Option<bool>,
    pub source: Option<VulnerabilitySource>,
    /// Advisories of the tenant that fit the hub and the release.
    pub own: Vec<String>,
}

/// Where a vulnerability is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum VulnerabilitySource {
    /// A feed of what is published.
    Feed,
    /// An advisory of the tenant.
    Own,
}

text_enum!(VulnerabilitySource { Feed = "FEED", Own = "OWN" });

/// A vulnerability of a tenant.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Listed {
    pub vulnerability_id: String,
    pub title: String,
    severity: i64,
    pub exploited: bool,
    pub first_seen_at: Timestamp,
    #[sqlx(try_from = "String")]
    pub source: VulnerabilitySource,
}

impl Listed {
    pub fn severity(&self) -> VulnerabilitySeverity {
        VulnerabilitySeverity::of_rank(self.severity)
    }
}

const COLUMNS: &str = "v.vulnerability_id, v.title, v.severity, v.exploited, v.first_seen_at, \
    v.source";
const ORDER: &[&str] = &["v.exploited DESC, v.severity DESC, v.vulnerability_id DESC"];

/// One page, the worst first, and the total number.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    filters: &Filters,
    slice: Slice,
) -> Result<(Vec<Listed>, i64)> {
    let mut list =
        sql("FROM tenant_vulnerabilities v WHERE v.tenant_uuid = $1").bind(scope.tenant_uuid());
    if let Some(search) = &filters.search {
        let lower = search.to_lowercase();
        list = list
            .push(" AND (")
            .push_contains_text("LOWER(v.vulnerability_id)", &lower)
            .push(" OR ")
            .push_contains_text("LOWER(v.title)", &lower)
            .push(
                " OR EXISTS (SELECT 1 FROM exposures e WHERE e.tenant_uuid = v.tenant_uuid \
                 AND e.vulnerability_id = v.vulnerability_id AND e.package = ",
            )
            .push_bind(search.as_str())
            .push("))");
    }
    if let Some(hub_uuid) = filters.hub_uuid {
        list = list
            .push(
                " AND (v.vulnerability_id IN (SELECT e.vulnerability_id FROM exposures e \
                 JOIN hub_software h ON h.tenant_uuid = e.tenant_uuid \
                 AND h.list_sha256 = e.list_sha256 WHERE h.ended_at IS NULL AND h.tenant_uuid = ",
            )
            .push_bind(scope.tenant_uuid())
            .push(" AND h.hub_uuid = ")
            .push_bind(hub_uuid)
            .push(
                " UNION SELECT e.vulnerability_id FROM exposures e \
                 JOIN release_software s ON s.tenant_uuid = e.tenant_uuid \
                 AND s.list_sha256 = e.list_sha256 \
                 JOIN hub_app_periods p ON p.tenant_uuid = s.tenant_uuid \
                 AND p.release_uuid = s.release_uuid \
                 WHERE p.ended_at IS NULL AND p.tenant_uuid = ",
            )
            .push_bind(scope.tenant_uuid())
            .push(" AND p.hub_uuid = ")
            .push_bind(hub_uuid)
            .push(")");
        list = or_own(list, &filters.own);
    }
    if let Some(release_uuid) = filters.release_uuid {
        list = list
            .push(
                " AND (v.vulnerability_id IN (SELECT e.vulnerability_id FROM exposures e \
                 WHERE e.tenant_uuid = v.tenant_uuid AND e.list_sha256 IN \
                 (SELECT h.list_sha256 FROM hub_software h \
                 JOIN hub_app_periods p ON p.hub_uuid = h.hub_uuid \
                 AND p.tenant_uuid = h.tenant_uuid AND p.ended_at IS NULL \
                 WHERE h.ended_at IS NULL AND h.tenant_uuid = ",
            )
            .push_bind(scope.tenant_uuid())
            .push(" AND p.release_uuid = ")
            .push_bind(release_uuid)
            .push(" UNION SELECT s.list_sha256 FROM release_software s WHERE s.tenant_uuid = ")
            .push_bind(scope.tenant_uuid())
            .push(" AND s.release_uuid = ")
            .push_bind(release_uuid)
            .push("))");
        list = or_own(list, &filters.own);
    }
    if let Some(severity) = filters.severity {
        list = list.push(" AND v.severity = ").push_bind(severity.rank());
    }
    if let Some(exploited) = filters.exploited {
        list = list.push(" AND v.exploited = ").push_bind(exploited);
    }
    if let Some(source) = filters.source {
        list = list.push(" AND v.source = ").push_bind(source.name());
    }
    list.page(conn, COLUMNS, ORDER, slice).await
}

/// Ends a condition that these advisories of the tenant fit too.
fn or_own(list: Sql, own: &[String]) -> Sql {
    match own.is_empty() {
        true => list.push(")"),
        false => list
            .push(" OR v.vulnerability_id IN ")
            .push_list(own.iter().map(String::as_str))
            .push(")"),
    }
}

pub async fn get(conn: &mut Conn, scope: &Scope, vulnerability_id: &str) -> Result<Option<Listed>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM tenant_vulnerabilities v WHERE v.tenant_uuid = ")
        .push_bind(scope.tenant_uuid())
        .push(" AND v.vulnerability_id = ")
        .push_bind(vulnerability_id)
        .optional(conn)
        .await
}

pub async fn has(conn: &mut Conn, scope: &Scope, vulnerability_id: &str) -> Result<bool> {
    Ok(get(conn, scope, vulnerability_id).await?.is_some())
}

/// A package of a list that one of several vulnerabilities affects.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Affected {
    pub list_sha256: Vec<u8>,
    #[sqlx(flatten)]
    pub exposure: Exposure,
}

/// What these vulnerabilities affect. The list must not be empty.
pub async fn affected(conn: &mut Conn, scope: &Scope, ids: &[String]) -> Result<Vec<Affected>> {
    sql(
        "SELECT list_sha256, vulnerability_id, ecosystem, package, version, fixed_in, advisory_id \
         FROM exposures WHERE tenant_uuid = $1 AND vulnerability_id IN ",
    )
    .bind(scope.tenant_uuid())
    .push_list(ids.iter().map(String::as_str))
    .all(conn)
    .await
}
