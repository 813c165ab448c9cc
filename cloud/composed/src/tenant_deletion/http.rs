//! `DELETE /tenant/tenants/{tenantUuid}`.

use aide::axum::ApiRouter;
use aide::axum::routing::delete_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::http::answer::Empty;
use hub_core::http::operation::operation;
use hub_fleet::hubs::Hubs;
use hub_identity::authz::Member;
use hub_identity::authz::permission::TenantOwn;

use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/tenant/tenants/{tenantUuid}",
        delete_with(
            delete,
            operation(
                "tenants.delete",
                "tenant-tenants",
                "Delete a tenant and revoke everything that acts for it",
            ),
        ),
    )
}

async fn delete(auth: Member<TenantOwn>, State(hubs): State<Hubs>) -> Result<Empty> {
    super::delete(&hubs, &auth.scope).await?;
    Ok(Empty)
}
