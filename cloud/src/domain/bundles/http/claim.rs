//! `/v1/hubs/claim`: a claim, with what bundles bring to the hub.

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use axum::extract::{FromRef, State};
use hub_protocol::claim::{HubClaimRequest, HubCredentials};

use super::super::expansion::Expansion;
use crate::authz::Public;
use crate::core::Core;
use crate::domain::hubs::{self, Hubs};
use crate::error::Result;
use crate::http::answer::Created;
use crate::http::extract::Json;
use crate::http::idempotency::IdempotencyKey;
use crate::http::operation::operation_failing;

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Hubs: FromRef<S>,
{
    ApiRouter::new().api_route(
        "/v1/hubs/claim",
        post_with(
            claim,
            operation_failing(
                &[409, 423],
                "hub.claim",
                "hub-api",
                "Claim a hub for the code's tenant",
            ),
        ),
    )
}

async fn claim(
    _: Public,
    State(hubs): State<Hubs>,
    IdempotencyKey(key): IdempotencyKey,
    Json(request): Json<HubClaimRequest>,
) -> Result<Created<HubCredentials>> {
    let expansion = Expansion {
        changes: hubs.changes.clone(),
    };
    hubs::claim(&hubs, &expansion, &request, key?.as_deref())
        .await
        .map(Created)
}
