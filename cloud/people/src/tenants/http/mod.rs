//! HTTP for tenants, by caller.

mod platform;
mod tenant;

use aide::axum::ApiRouter;

use crate::Parts;
pub use tenant::{TenantMemberResponse, visible_email};

pub fn routes() -> ApiRouter<Parts> {
    tenant::routes().merge(platform::routes())
}
