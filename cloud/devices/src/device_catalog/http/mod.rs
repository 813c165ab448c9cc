//! Requests and responses of the device catalog, a file for each resource.

mod identifiers;
mod library;
mod models;
mod protocols;
mod versions;

use aide::axum::ApiRouter;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::Parts;

const TAG: &str = "tenant-catalog";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(models::routes())
        .merge(identifiers::routes())
        .merge(protocols::routes())
        .merge(versions::routes())
        .merge(library::routes())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceModelPath {
    /// The device model.
    pub device_uuid: Uuid,
}

/// Filters of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OfModelQuery {
    /// Only objects of this device model.
    device_uuid: Option<Uuid>,
}
