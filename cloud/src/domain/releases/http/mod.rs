//! Requests and responses of releases, a file for each kind of caller.

mod apps;
mod downloads;
mod installer;
mod platform;
pub mod protocol;
mod tenant;

use aide::axum::ApiRouter;
use axum::extract::FromRef;

use crate::authn::Authn;
use crate::core::Core;
use crate::domain::releases::Releases;

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
    Releases: FromRef<S>,
{
    ApiRouter::new()
        .merge(apps::routes())
        .merge(downloads::routes())
        .merge(installer::routes())
        .merge(platform::routes())
        .merge(protocol::routes())
        .merge(tenant::routes())
}
