//! `/v1/hubs/claim`: a claim, with what bundles bring to the hub.

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::http::answer::Created;
use hub_core::http::extract::Json;
use hub_core::http::idempotency::IdempotencyKey;
use hub_core::http::operation::operation_failing;
use hub_fleet::hubs::{self, Hubs};
use hub_identity::authz::Public;
use hub_protocol::claim::{HubClaimRequest, HubCredentials};

use super::super::expansion::Expansion;
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
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
