//! Requests and responses of releases, a file for each kind of caller.

mod apps;
mod downloads;
mod installer;
mod platform;
pub mod protocol;
mod tenant;

use aide::axum::ApiRouter;
use hub_protocol::ReleaseUuid;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(apps::routes())
        .merge(downloads::routes())
        .merge(installer::routes())
        .merge(platform::routes())
        .merge(protocol::routes())
        .merge(tenant::routes())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleasePath {
    /// The release.
    pub release_uuid: ReleaseUuid,
}
