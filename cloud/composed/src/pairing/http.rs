//! `/app/hubs/pairing-codes` and the pairing page.

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::client_address::ClientAddress;
use hub_core::http::extract::Json;
use hub_core::http::operation::operation_failing;
use hub_fleet::claim_codes::{ClaimCode, http::ClaimCodeResponse};
use hub_identity::authz::EndUser;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Parts;

const TAG: &str = "app";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(super::page::routes())
        .api_route(
            "/app/hubs/pairing-codes",
            post_with(
                create,
                operation_failing(
                    &[403, 404, 409, 429],
                    "appPairing.create",
                    TAG,
                    "Make a claim code for a hub",
                ),
            ),
        )
        .api_route(
            "/app/hubs/pairing-codes/offer",
            post_with(
                offer,
                operation_failing(
                    &[404, 429],
                    "appPairing.offer",
                    TAG,
                    "What a claim code offers the caller",
                ),
            ),
        )
}

/// The future owner of the hub.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PairingCodeRequest {
    /// The supplier of the hub, which has to allow pairing.
    supplier_uuid: TenantUuid,
}

/// A code that the caller has.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PairingOfferRequest {
    /// The claim code, in any spelling.
    #[schemars(length(min = 1, max = 64))]
    claim_code: String,
}

/// The offer of a claim code.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PairingOfferResponse {
    /// The supplier that the hub will belong to.
    supplier_uuid: TenantUuid,
    /// The name of the supplier.
    supplier_name: String,
    /// The label that the hub will have, if the code sets one.
    hub_identifier: Option<String>,
    /// The end of the code's validity.
    expires_at: Timestamp,
    /// The hub that has used it; null while none has.
    hub_uuid: Option<HubUuid>,
}

async fn create(
    EndUser { user, .. }: EndUser,
    State(core): State<Core>,
    Json(request): Json<PairingCodeRequest>,
) -> Result<Answer<ClaimCodeResponse>> {
    let (code, stored) = super::create(&core, &user, request.supplier_uuid).await?;
    Ok(Answer(ClaimCodeResponse::new(&core, &code, stored, true)))
}

/// The response for a code that is unknown, has expired or has another owner is 404 in each case,
/// so that the cases are indistinguishable.
async fn offer(
    EndUser { user, .. }: EndUser,
    State(core): State<Core>,
    ClientAddress(address): ClientAddress,
    Json(request): Json<PairingOfferRequest>,
) -> Result<Answer<PairingOfferResponse>> {
    let code = ClaimCode::parse(&request.claim_code);
    let message = "must be 16 letters and digits such as 7K3M-9QXT-0V4B-HD2R";
    let code = code.ok_or_else(|| Error::field("claimCode", message))?;
    let super::Offer {
        code,
        supplier_name,
    } = super::offer(&core, &user, address, &code).await?;
    Ok(Answer(PairingOfferResponse {
        supplier_uuid: code.tenant_uuid,
        supplier_name,
        hub_identifier: code.hub_identifier,
        expires_at: code.expires_at,
        hub_uuid: code.claimed_hub_uuid,
    }))
}
