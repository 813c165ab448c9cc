//! `/platform/hubs/{hub_uuid}/block` and `/unblock`.

use axum::extract::State;
use hub_protocol::{HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::super as hubs;
use crate::app::App;
use crate::authz::PlatformAdmin;
use crate::error::Result;
use crate::http::answer::Answer;
use crate::http::extract::Path;

/// Whether a hub is shut out.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubBlockResponse {
    hub_uuid: HubUuid,
    blocked: bool,
    blocked_at: Option<Timestamp>,
}

pub async fn block(
    PlatformAdmin(admin): PlatformAdmin,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
) -> Result<Answer<HubBlockResponse>> {
    let blocked_at = hubs::block(&app, &admin, hub_uuid).await?;
    Ok(Answer(HubBlockResponse { hub_uuid, blocked: true, blocked_at: Some(blocked_at) }))
}

pub async fn unblock(
    PlatformAdmin(admin): PlatformAdmin,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
) -> Result<Answer<HubBlockResponse>> {
    hubs::unblock(&app, &admin, hub_uuid).await?;
    Ok(Answer(HubBlockResponse { hub_uuid, blocked: false, blocked_at: None }))
}
