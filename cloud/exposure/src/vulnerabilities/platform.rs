//! `/platform/vulnerabilities`: the vulnerabilities of all tenants together.

use std::collections::HashMap;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::check::searched;
use hub_core::http::extract::Query;
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::PlatformAdmin;
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::store::Filters;
use super::store::platform::{self as store, OfAll};
use crate::Parts;
use crate::severity::VulnerabilitySeverity;

/// Longest text to search for.
const MAX_SEARCH_CHARS: usize = 200;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/platform/vulnerabilities",
        get_with(
            list,
            operation(
                "platform.listVulnerabilities",
                "platform",
                "Vulnerabilities of all tenants, the worst first",
            ),
        ),
    )
}

/// Filters of the list.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct PlatformVulnerabilityQuery {
    /// Part of the id or of the title, in any case.
    #[schemars(length(max = MAX_SEARCH_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    q: Option<String>,
    /// Only those of this severity.
    severity: Option<VulnerabilitySeverity>,
    /// Only those that are known to be exploited, or only the others.
    exploited: Option<bool>,
}

/// A vulnerability of what hubs of the service run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlatformVulnerabilityResponse {
    /// The CVE, or the id of the advisory where it has none.
    id: String,
    /// The severity, as those who published it judge it.
    severity: VulnerabilitySeverity,
    /// Whether it is known to be exploited.
    exploited: bool,
    /// What it is, in one line.
    title: String,
    /// Tenants that have it, or had.
    #[schemars(range(min = 1))]
    tenants: i64,
    /// Hubs that have an affected package, whatever their tenants state.
    #[schemars(range(min = 0))]
    hubs: i64,
    /// When it was first seen at a tenant.
    first_seen_at: Timestamp,
}

async fn list(
    _: PlatformAdmin,
    State(core): State<Core>,
    page: Page,
    Query(query): Query<PlatformVulnerabilityQuery>,
) -> Result<Listed<PlatformVulnerabilityResponse>> {
    let filters = Filters {
        search: searched(query.q.as_deref(), MAX_SEARCH_CHARS)?.map(str::to_owned),
        severity: query.severity,
        exploited: query.exploited,
        ..Filters::default()
    };
    let mut conn = core.db.read().await?;
    let (rows, total) = store::list(&mut conn, &filters, page.slice()).await?;
    let ids: Vec<&str> = rows
        .iter()
        .map(|row| row.vulnerability_id.as_str())
        .collect();
    let mut hubs: HashMap<String, i64> = store::hubs(&mut conn, &ids).await?.into_iter().collect();
    for (id, more) in store::hubs_by_release(&mut conn, &ids).await? {
        *hubs.entry(id).or_default() += more;
    }
    let shown = rows
        .into_iter()
        .map(|row: OfAll| PlatformVulnerabilityResponse {
            severity: row.severity(),
            hubs: hubs.get(&row.vulnerability_id).copied().unwrap_or(0),
            id: row.vulnerability_id,
            exploited: row.exploited,
            title: row.title,
            tenants: row.tenants,
            first_seen_at: row.first_seen_at,
        });
    Ok(page.listed(shown.collect(), total))
}
