//! Requests and responses of hubs, a file for each kind of caller.

mod platform;
mod protocol;
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
        .merge(platform::routes())
        .merge(protocol::routes())
        .merge(tenant::routes())
}
