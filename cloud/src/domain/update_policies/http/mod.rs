//! Requests and responses of update policies, for operators and for hubs.

mod operators;
mod protocol;

use aide::axum::ApiRouter;
use axum::extract::FromRef;

use crate::authn::Authn;
use crate::core::Core;
use crate::domain::update_policies::Policies;

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
    Policies: FromRef<S>,
{
    ApiRouter::new()
        .merge(operators::routes())
        .merge(protocol::routes())
}
