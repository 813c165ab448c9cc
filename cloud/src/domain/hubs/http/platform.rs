//! `/platform/hubs/{hub_uuid}/block` and `/unblock`.

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use axum::extract::{FromRef, State};
use hub_protocol::{HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::super as hubs;
use crate::authn::Authn;
use crate::authz::PlatformAdmin;
use crate::core::Core;
use crate::domain::hubs::Hubs;
use crate::error::Result;
use crate::http::answer::Answer;
use crate::http::extract::Path;
use crate::http::operation::operation;
use crate::http::paths::SnakeCaseHubPath;

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
    Hubs: FromRef<S>,
{
    ApiRouter::new()
        .api_route(
            "/platform/hubs/{hub_uuid}/block",
            post_with(block, operation("hubs.block", "platform", "Block a hub and revoke its tokens")),
        )
        .api_route(
            "/platform/hubs/{hub_uuid}/unblock",
            post_with(unblock, operation("hubs.unblock", "platform", "Unblock a hub, so that it can claim again")),
        )
}

/// Whether a hub is blocked.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubBlockResponse {
    /// The hub.
    hub_uuid: HubUuid,
    /// Whether it is blocked.
    blocked: bool,
    /// Since when it is blocked.
    blocked_at: Option<Timestamp>,
}

async fn block(
    PlatformAdmin(admin): PlatformAdmin,
    State(hubs): State<Hubs>,
    Path(SnakeCaseHubPath { hub_uuid }): Path<SnakeCaseHubPath>,
) -> Result<Answer<HubBlockResponse>> {
    let blocked_at = hubs::block(&hubs, &admin, hub_uuid).await?;
    Ok(Answer(HubBlockResponse { hub_uuid, blocked: true, blocked_at: Some(blocked_at) }))
}

async fn unblock(
    PlatformAdmin(admin): PlatformAdmin,
    State(hubs): State<Hubs>,
    Path(SnakeCaseHubPath { hub_uuid }): Path<SnakeCaseHubPath>,
) -> Result<Answer<HubBlockResponse>> {
    hubs::unblock(&hubs, &admin, hub_uuid).await?;
    Ok(Answer(HubBlockResponse { hub_uuid, blocked: false, blocked_at: None }))
}
