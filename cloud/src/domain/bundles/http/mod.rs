//! Requests and responses of bundles, a file for each kind of caller.

mod app;
mod claim;
mod hub;
mod parts;
mod tenant;

use aide::axum::ApiRouter;
use axum::extract::FromRef;

use crate::authn::Authn;
use crate::core::Core;
use crate::domain::hubs::Hubs;

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
    Hubs: FromRef<S>,
{
    ApiRouter::new()
        .merge(tenant::routes())
        .merge(parts::routes())
        .merge(hub::routes())
        .merge(app::routes())
        .merge(claim::routes())
}

const TAG: &str = "tenant-bundles";
