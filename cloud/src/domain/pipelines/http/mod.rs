//! Requests and responses of pipelines, a file for each resource.

mod dead_letters;
mod deliveries;
mod pipelines;
mod replays;
mod trials;

use aide::axum::ApiRouter;
use axum::extract::FromRef;

use super::Pipelines;
use crate::authn::Authn;
use crate::core::Core;

const TAG: &str = "tenant-pipelines";

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
    Pipelines: FromRef<S>,
{
    ApiRouter::new()
        .merge(pipelines::routes())
        .merge(replays::routes())
        .merge(deliveries::routes())
        .merge(dead_letters::routes())
        .merge(trials::routes())
}
