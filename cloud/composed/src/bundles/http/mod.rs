//! Requests and responses of bundles, a file for each kind of caller.

mod app;
mod claim;
mod hub;
mod parts;
mod tenant;

use aide::axum::ApiRouter;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(tenant::routes())
        .merge(parts::routes())
        .merge(hub::routes())
        .merge(app::routes())
        .merge(claim::routes())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundlePath {
    /// The bundle.
    pub bundle_uuid: Uuid,
}

const TAG: &str = "tenant-bundles";
