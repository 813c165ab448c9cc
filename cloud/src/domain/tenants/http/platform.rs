//! `/platform/tenants`: all tenants, for platform administrators.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, put_with};
use axum::extract::{FromRef, State};
use hub_protocol::{TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::limits::{self, TenantLimits};
use super::super::limits_store;
use super::super::store::{self, PlatformTenantRow};
use crate::authn::Authn;
use crate::authz::PlatformAdmin;
use crate::core::Core;
use crate::error::{Error, Result};
use crate::http::answer::Answer;
use crate::http::check::searched;
use crate::http::extract::{Json, Path, Query};
use crate::http::operation::operation;
use crate::http::page::{Listed, Page};
use crate::http::paths::TenantPath;

/// Longest text to search for.
const MAX_SEARCH_CHARS: usize = 200;

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
{
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

/// What to search for.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct TenantSearch {
    /// Part of the name, in any case, or the uuid.
    #[schemars(length(max = MAX_SEARCH_CHARS))]
    q: Option<String>,
}

/// A tenant as the platform sees it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlatformTenantResponse {
    /// The tenant.
    tenant_uuid: TenantUuid,
    /// Its name.
    name: String,
    /// How many members it has.
    #[schemars(range(min = 0))]
    members: i64,
    /// When it was created.
    created_at: Timestamp,
    /// When it was deleted; null when it was not.
    deleted_at: Option<Timestamp>,
}

/// A tenant as the platform sees it, with its limits.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlatformTenantDetailResponse {
    #[serde(flatten)]
    tenant: PlatformTenantResponse,
    /// Its own limits.
    limits: TenantLimits,
}

impl From<PlatformTenantRow> for PlatformTenantResponse {
    fn from(row: PlatformTenantRow) -> Self {
        let PlatformTenantRow {
            tenant_uuid,
            name,
            members,
            created_at,
            deleted_at,
        } = row;
        Self {
            tenant_uuid,
            name,
            members,
            created_at,
            deleted_at,
        }
    }
}

async fn list(
    _: PlatformAdmin,
    State(core): State<Core>,
    Query(search): Query<TenantSearch>,
    page: Page,
) -> Result<Listed<PlatformTenantResponse>> {
    let search = searched(search.q.as_deref(), MAX_SEARCH_CHARS)?;
    let mut conn = core.db.read().await?;
    let (tenants, total) = store::list_all(&mut conn, search, page.slice()).await?;
    Ok(page.listed(
        tenants
            .into_iter()
            .map(PlatformTenantResponse::from)
            .collect(),
        total,
    ))
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
    Ok(Answer(PlatformTenantDetailResponse {
        tenant: tenant.into(),
        limits,
    }))
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
