//! `DELETE /tenant/tenants/{tenantUuid}`.

use aide::axum::ApiRouter;
use aide::axum::routing::delete_with;
use axum::extract::{FromRef, State};

use crate::authn::Authn;
use crate::authz::Member;
use crate::authz::permission::TenantOwn;
use crate::core::Core;
use crate::domain::hubs::Hubs;
use crate::error::Result;
use crate::http::answer::Empty;
use crate::http::operation::operation;

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
    Hubs: FromRef<S>,
{
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
