//! Requests and responses of pipelines, a file for each resource.

mod dead_letters;
mod deliveries;
mod pipelines;
mod replays;
mod trials;

use aide::axum::ApiRouter;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::Parts;

const TAG: &str = "tenant-pipelines";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(pipelines::routes())
        .merge(replays::routes())
        .merge(deliveries::routes())
        .merge(dead_letters::routes())
        .merge(trials::routes())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelinePath {
    /// The pipeline.
    pub pipeline_uuid: Uuid,
}
