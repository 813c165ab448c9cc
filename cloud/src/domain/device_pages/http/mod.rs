//! Requests and responses of forms, manuals and actions, a file for each resource.

mod actions;
mod manuals;
mod uis;

pub use actions::ActionDefinitionResponse;
pub use manuals::DeviceManualResponse;
pub use uis::DeviceUiResponse;

use aide::axum::ApiRouter;
use axum::extract::FromRef;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::authn::Authn;
use crate::core::Core;

const TAG: &str = "tenant-catalog";

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
{
    ApiRouter::new()
        .merge(uis::routes())
        .merge(manuals::routes())
        .merge(actions::routes())
}

/// What of a list is wanted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OfModelQuery {
    /// Only of this device model.
    device_uuid: Option<Uuid>,
}
