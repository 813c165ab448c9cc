//! Requests and responses of `/app` about hubs, devices and actions, a file for each.

mod actions;
pub mod devices;
pub mod hubs;

use aide::axum::ApiRouter;
use axum::extract::FromRef;

use crate::authn::Authn;
use crate::core::Core;

const TAG: &str = "app";

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
{
    ApiRouter::new().merge(hubs::routes()).merge(devices::routes()).merge(actions::routes())
}
