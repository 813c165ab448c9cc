//! SQL of the vulnerabilities of all tenants together.

use hub_base::db::{Conn, Slice, sql};
use hub_base::error::Result;
use hub_protocol::Timestamp;

use super::Filters;
use crate::severity::VulnerabilitySeverity;

/// A vulnerability of all tenants together.
#[derive(Debug, sqlx::FromRow)]
pub struct OfAll {
    pub vulnerability_id: String,
    pub title: String,
    severity: i64,
    pub exploited: bool,
    pub tenants: i64,
    pub first_seen_at: Timestamp,
}

impl OfAll {
    pub fn severity(&self) -> VulnerabilitySeverity {
        VulnerabilitySeverity::of_rank(self.severity)
    }
}

/// One page of those of all tenants, the worst first, and the total number.
pub async fn list(conn: &mut Conn, filters: &Filters, slice: Slice) -> Result<(Vec<OfAll>, i64)> {
    let mut list = sql(
        "FROM (SELECT vulnerability_id, MAX(title) AS title, MAX(severity) AS severity, \
         MAX(CASE WHEN exploited THEN 1 ELSE 0 END) AS is_exploited, COUNT(*) AS tenants, \
         MIN(first_seen_at) AS first_seen_at FROM tenant_vulnerabilities \
         WHERE source = 'FEED' GROUP BY vulnerability_id) AS v WHERE v.tenants > 0",
    );
    if let Some(search) = &filters.search {
        let lower = search.to_lowercase();
        list = list
            .push(" AND (")
            .push_contains_text("LOWER(v.vulnerability_id)", &lower)
            .push(" OR ")
            .push_contains_text("LOWER(v.title)", &lower)
            .push(")");
    }
    if let Some(severity) = filters.severity {
        list = list.push(" AND v.severity = ").push_bind(severity.rank());
    }
    if let Some(exploited) = filters.exploited {
        list = list
            .push(" AND (v.is_exploited = 1) = ")
            .push_bind(exploited);
    }
    let columns = "v.vulnerability_id, v.title, v.severity, v.is_exploited = 1 AS exploited, \
        v.tenants, v.first_seen_at";
    let order: &[&str] = &["v.is_exploited DESC, v.severity DESC, v.vulnerability_id DESC"];
    list.page(conn, columns, order, slice).await
}

/// How many hubs have a package that each of these vulnerabilities affects.
pub async fn hubs(conn: &mut Conn, ids: &[&str]) -> Result<Vec<(String, i64)>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    sql(
        "SELECT e.vulnerability_id, CAST(SUM(n.hubs) AS BIGINT) FROM \
         (SELECT DISTINCT x.tenant_uuid, x.vulnerability_id, x.list_sha256 \
         FROM tenant_vulnerabilities t JOIN exposures x ON x.tenant_uuid = t.tenant_uuid \
         AND x.vulnerability_id = t.vulnerability_id WHERE t.vulnerability_id IN ",
    )
    .push_list(ids.iter().copied())
    .push(
        ") AS e JOIN (SELECT tenant_uuid, list_sha256, COUNT(*) AS hubs FROM hub_software \
         WHERE ended_at IS NULL GROUP BY tenant_uuid, list_sha256) AS n \
         ON n.tenant_uuid = e.tenant_uuid AND n.list_sha256 = e.list_sha256 \
         GROUP BY e.vulnerability_id",
    )
    .all(conn)
    .await
}

/// How many hubs run a release with a component that each of these vulnerabilities affects, and
/// have no affected package.
pub async fn hubs_by_release(conn: &mut Conn, ids: &[&str]) -> Result<Vec<(String, i64)>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    sql(
        "SELECT e.vulnerability_id, COUNT(DISTINCT p.hub_uuid) FROM exposures e \
         JOIN release_software s ON s.tenant_uuid = e.tenant_uuid \
         AND s.list_sha256 = e.list_sha256 \
         JOIN hub_app_periods p ON p.tenant_uuid = s.tenant_uuid \
         AND p.release_uuid = s.release_uuid AND p.ended_at IS NULL \
         WHERE NOT EXISTS (SELECT 1 FROM hub_software h JOIN exposures x \
         ON x.tenant_uuid = h.tenant_uuid AND x.list_sha256 = h.list_sha256 \
         WHERE h.hub_uuid = p.hub_uuid AND h.tenant_uuid = p.tenant_uuid \
         AND h.ended_at IS NULL AND x.vulnerability_id = e.vulnerability_id) \
         AND (e.tenant_uuid, e.vulnerability_id) IN \
         (SELECT t.tenant_uuid, t.vulnerability_id FROM tenant_vulnerabilities t \
         WHERE t.vulnerability_id IN ",
    )
    .push_list(ids.iter().copied())
    .push(") GROUP BY e.vulnerability_id")
    .all(conn)
    .await
}
