//! Requests and responses of the device catalog, a file for each resource.

mod identifiers;
mod library;
mod models;
mod protocols;
mod versions;

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
        .merge(models::routes())
        .merge(identifiers::routes())
        .merge(protocols::routes())
        .merge(versions::routes())
        .merge(library::routes())
}

/// What of a list is wanted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OfModelQuery {
    /// Only of this device model.
    device_uuid: Option<Uuid>,
}
