//! Requests and responses of forms, manuals and actions, a file for each resource.

mod actions;
mod manuals;
mod uis;

use aide::axum::ApiRouter;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::Parts;
pub use actions::ActionDefinitionResponse;
pub use uis::DeviceUiResponse;

const TAG: &str = "tenant-catalog";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(uis::routes())
        .merge(manuals::routes())
        .merge(actions::routes())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionPath {
    /// The action, as its supplier named it.
    pub action_id: String,
}

/// Filters of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OfModelQuery {
    /// Only objects of this device model.
    device_uuid: Option<Uuid>,
}
