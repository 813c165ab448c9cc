//! Requests and responses of device instances, a file for each kind of caller.

mod platform;
mod request;
mod tenant;

pub use tenant::NearestHub;

use aide::axum::ApiRouter;
use axum::extract::FromRef;

use crate::authn::Authn;
use crate::core::Core;

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
{
    ApiRouter::new()
        .merge(platform::routes())
        .merge(tenant::routes())
}
