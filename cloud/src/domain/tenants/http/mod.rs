//! HTTP for tenants, by caller.

mod platform;
mod tenant;

use aide::axum::ApiRouter;
use axum::extract::FromRef;

use crate::authn::Authn;
use crate::core::Core;
pub use tenant::{TenantMemberResponse, TenantResponse, visible_email};

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
{
    tenant::routes().merge(platform::routes())
}
