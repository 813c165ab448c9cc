//! Requests and responses about partner projects, a file for each kind of caller.

mod app;
mod dev;
mod webhook;

use aide::axum::ApiRouter;
use hub_protocol::{TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PROJECT_ID;
use crate::Parts;
pub use dev::routes as dev_routes;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(app::routes())
        .merge(webhook::routes())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProjectPath {
    /// The project, as the partner names it.
    #[schemars(regex(pattern = PROJECT_ID))]
    project_id: String,
}

/// A tenant that takes part in a project.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProjectTenantResponse {
    /// The tenant.
    tenant_uuid: TenantUuid,
    /// Its name.
    name: String,
    /// The number of its devices that take part.
    #[schemars(range(min = 0))]
    device_count: i64,
    /// When it joined.
    joined_at: Timestamp,
}
