//! `DELETE /tenant/hubs/{hubUuid}` and `/platform/hubs/{hubUuid}/release`.

use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, post_with};
use axum::extract::State;
use hub_base::error::Result;
use hub_core::http::answer::{Answer, NoContent};
use hub_core::http::extract::Path;
use hub_core::http::operation::operation;
use hub_fleet::hubs::Hubs;
use hub_fleet::hubs::http::HubPath;
use hub_identity::authz::{Authorized, PlatformAdmin, permission as perm};
use hub_protocol::{HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/hubs/{hubUuid}",
            delete_with(
                release,
                operation(
                    "hubs.release",
                    "tenant-hubs",
                    "Release a hub: end its credentials and free its hardware",
                ),
            ),
        )
        .api_route(
            "/platform/hubs/{hubUuid}/release",
            post_with(
                release_any,
                operation(
                    "platformHubs.release",
                    "platform",
                    "Release a hub of any tenant and free its hardware",
                ),
            ),
        )
}

/// A hub that no longer belongs to anyone.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubReleaseResponse {
    /// The hub. Its hardware becomes another hub when it is claimed.
    hub_uuid: HubUuid,
    /// When it was released.
    released_at: Timestamp,
}

/// The hub is not found any more, but its records are until they are too old. Hardware that is
/// blocked stays blocked.
async fn release(
    auth: Authorized<perm::HubsOperate>,
    State(hubs): State<Hubs>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
) -> Result<NoContent> {
    super::release(&hubs, &auth.scope, hub_uuid).await?;
    Ok(NoContent)
}

/// The request is idempotent. Hardware that is blocked stays blocked until the hub is unblocked.
async fn release_any(
    PlatformAdmin(admin): PlatformAdmin,
    State(hubs): State<Hubs>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
) -> Result<Answer<HubReleaseResponse>> {
    let released_at = super::release_any(&hubs, &admin, hub_uuid).await?;
    Ok(Answer(HubReleaseResponse {
        hub_uuid,
        released_at,
    }))
}
