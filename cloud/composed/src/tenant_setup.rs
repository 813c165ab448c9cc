//! `/tenant/setup`: which optional parts of a tenant are set up, so that a page asks for none that
//! is not there.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::operation::operation;
use hub_fleet::consent;
use hub_identity::authz::{Authorized, permission as perm};
use hub_people::supplier_oauth;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/tenant/setup",
        get_with(
            setup,
            operation(
                "tenants.getSetup",
                "tenant-tenants",
                "Which optional parts of the tenant are set up",
            ),
        ),
    )
}

/// The optional parts of a tenant.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantSetup {
    /// Whether the service has a billing service; if not, `/tenant/billing/balance` is 503.
    billing: bool,
    /// Whether a consent version is in force; if not, `/tenant/consent-settings` is 404.
    consent: bool,
    /// Whether a configuration is in force; if not, `/tenant/supplier-oauth-config` is 404.
    supplier_oauth: bool,
}

async fn setup(
    auth: Authorized<perm::DashboardRead>,
    State(core): State<Core>,
) -> Result<Answer<TenantSetup>> {
    let mut conn = core.db.read().await?;
    Ok(Answer(TenantSetup {
        billing: core.config.billing.is_some(),
        consent: consent::is_set_up(&mut conn, auth.scope.tenant_uuid()).await?,
        supplier_oauth: supplier_oauth::is_set_up(&mut conn, &auth.scope).await?,
    }))
}
