//! `/platform/tenants`: all tenants, for platform administrators.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, put_with};
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::check::searched;
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::PlatformAdmin;
use hub_protocol::TenantUuid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::limits::{self, TenantLimits};
use super::super::limits_store;
use super::super::store::{self, PlatformTenantRow};
use crate::Parts;

/// Longest text to search for.
const MAX_SEARCH_CHARS: usize = 200;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/platform/tenants",
            get_with(
                list,
                operation("platformTenants.list", "platform", "Tenants, newest first"),
            ),
        )
        .api_route(
            "/platform/tenants/{tenantUuid}",
            get_with(
                get,
                operation("platformTenants.get", "platform", "A tenant and its limits"),
            ),
        )
        .api_route(
            "/platform/tenants/{tenantUuid}/limits",
            put_with(
                set_limits,
                operation(
                    "platformTenants.setLimits",
                    "platform",
                    "Replace the limits of a tenant",
                ),
            ),
        )
}

/// A path of the platform, which names any tenant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantPath {
    /// The tenant.
    pub tenant_uuid: TenantUuid,
}

/// The search text.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct TenantSearch {
    /// A part of the name, in any case, or the uuid.
    #[schemars(length(max = MAX_SEARCH_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    q: Option<String>,
}

/// A tenant as the platform sees it, with its limits.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlatformTenantDetailResponse {
    #[serde(flatten)]
    tenant: PlatformTenantRow,
    /// Its own limits.
    limits: TenantLimits,
}

async fn list(
    _: PlatformAdmin,
    State(core): State<Core>,
    Query(search): Query<TenantSearch>,
    page: Page,
) -> Result<Listed<PlatformTenantRow>> {
    let search = searched(search.q.as_deref(), MAX_SEARCH_CHARS)?;
    let mut conn = core.db.read().await?;
    let (tenants, total) = store::list_all(&mut conn, search, page.slice()).await?;
    Ok(page.listed(tenants, total))
}

async fn get(
    _: PlatformAdmin,
    State(core): State<Core>,
    Path(TenantPath { tenant_uuid }): Path<TenantPath>,
) -> Result<Answer<PlatformTenantDetailResponse>> {
    let mut conn = core.db.read().await?;
    let tenant = store::get_any(&mut conn, tenant_uuid)
        .await?
        .ok_or_else(|| Error::not_found("tenant"))?;
    let limits = limits_store::get(&mut conn, tenant_uuid)
        .await?
        .unwrap_or_default();
    Ok(Answer(PlatformTenantDetailResponse { tenant, limits }))
}

/// Limits that the body does not state become the service's defaults.
async fn set_limits(
    PlatformAdmin(admin): PlatformAdmin,
    State(core): State<Core>,
    Path(TenantPath { tenant_uuid }): Path<TenantPath>,
    Json(limits): Json<TenantLimits>,
) -> Result<Answer<TenantLimits>> {
    limits::replace(&core, &admin, tenant_uuid, limits)
        .await
        .map(Answer)
}
