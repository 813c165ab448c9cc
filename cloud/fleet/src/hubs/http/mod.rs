//! Requests and responses of hubs, a file for each kind of caller.

mod platform;
mod protocol;
mod tenant;

use aide::axum::ApiRouter;
use hub_protocol::HubUuid;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(platform::routes())
        .merge(protocol::routes())
        .merge(tenant::routes())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubPath {
    /// The hub.
    pub hub_uuid: HubUuid,
}
