//! Requests and responses of device instances, a file for each kind of caller.

mod platform;
mod request;
mod tenant;

use aide::axum::ApiRouter;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Parts;
pub use tenant::NearestHub;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(platform::routes())
        .merge(tenant::routes())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevicePath {
    /// The id of the device.
    pub device_instance_id: i64,
}
