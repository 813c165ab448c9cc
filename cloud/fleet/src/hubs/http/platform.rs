//! `/platform/hubs`: the hubs of all tenants, and blocking them.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::check::searched;
use hub_core::http::extract::{Path, Query};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::PlatformAdmin;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super as hubs;
use super::super::store::{self, PlatformHubRow};
use super::tenant::HubSummaryResponse;
use crate::Parts;
use crate::hubs::Hubs;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/platform/hubs",
            get_with(
                list,
                operation(
                    "platformHubs.list",
                    "platform",
                    "Hubs of all tenants, newest first",
                ),
            ),
        )
        .api_route(
            "/platform/hubs/{hub_uuid}/block",
            post_with(
                block,
                operation_failing(
                    &[409],
                    "hubs.block",
                    "platform",
                    "Block a hub and revoke its tokens",
                ),
            ),
        )
        .api_route(
            "/platform/hubs/{hub_uuid}/unblock",
            post_with(
                unblock,
                operation(
                    "hubs.unblock",
                    "platform",
                    "Unblock a hub, so that it can claim again",
                ),
            ),
        )
}

/// Two paths of the platform use this spelling.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SnakeCaseHubPath {
    /// The hub.
    pub hub_uuid: HubUuid,
}

/// Longest text to search for.
const MAX_SEARCH_CHARS: usize = 255;

/// The search text.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct HubSearch {
    /// The uuid of a hub or of a tenant, or the beginning of a hardware identity, a label or a host
    /// name.
    #[schemars(length(max = MAX_SEARCH_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    q: Option<String>,
}

/// A hub of any tenant.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlatformHubResponse {
    /// The tenant that the hub belongs to.
    tenant_uuid: TenantUuid,
    /// When the tenant released it, with its hardware; null when it did not. Its records are still
    /// the tenant's.
    released_at: Option<Timestamp>,
    #[serde(flatten)]
    hub: HubSummaryResponse,
}

async fn list(
    _: PlatformAdmin,
    State(core): State<Core>,
    Query(search): Query<HubSearch>,
    page: Page,
) -> Result<Listed<PlatformHubResponse>> {
    let search = searched(search.q.as_deref(), MAX_SEARCH_CHARS)?;
    let now = core.clock.now();
    let mut conn = core.db.read().await?;
    let (hubs, total) = store::list_all(&mut conn, search, page.slice()).await?;
    let shown = hubs.into_iter().map(
        |PlatformHubRow {
             tenant_uuid,
             released_at,
             hub,
         }| {
            let hub = HubSummaryResponse::new(hub, &core.config, now);
            PlatformHubResponse {
                tenant_uuid,
                released_at,
                hub,
            }
        },
    );
    Ok(page.listed(shown.collect(), total))
}

/// Whether a hub is blocked.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubBlockResponse {
    /// The hub.
    hub_uuid: HubUuid,
    /// Whether it is blocked.
    blocked: bool,
    /// The time of the block.
    blocked_at: Option<Timestamp>,
}

async fn block(
    PlatformAdmin(admin): PlatformAdmin,
    State(hubs): State<Hubs>,
    Path(SnakeCaseHubPath { hub_uuid }): Path<SnakeCaseHubPath>,
) -> Result<Answer<HubBlockResponse>> {
    let blocked_at = hubs::block(&hubs, &admin, hub_uuid).await?;
    Ok(Answer(HubBlockResponse {
        hub_uuid,
        blocked: true,
        blocked_at: Some(blocked_at),
    }))
}

async fn unblock(
    PlatformAdmin(admin): PlatformAdmin,
    State(hubs): State<Hubs>,
    Path(SnakeCaseHubPath { hub_uuid }): Path<SnakeCaseHubPath>,
) -> Result<Answer<HubBlockResponse>> {
    hubs::unblock(&hubs, &admin, hub_uuid).await?;
    Ok(Answer(HubBlockResponse {
        hub_uuid,
        blocked: false,
        blocked_at: None,
    }))
}
