//! `/tenant/tenants/{tenantUuid}/transfer` and `/tenant/transfer-requests/**`.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::http::answer::Answer;
use hub_core::http::check::{Check, filled};
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authn::Authn;
use hub_identity::authn::user::User;
use hub_identity::authz::Member;
use hub_identity::authz::permission::TenantOwn;
use hub_protocol::{PersonaUuid, TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{MESSAGE_MAX_CHARS, Status, Step, Target, Transfer};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/tenants/{tenantUuid}/transfer",
            post_with(
                initiate,
                operation_failing(
                    &[409],
                    "transfers.initiate",
                    "tenant-tenants",
                    "Offer a tenant to another owner",
                ),
            ),
        )
        .api_route(
            "/tenant/transfer-requests/incoming",
            get_with(
                incoming,
                operation(
                    "transfers.incoming",
                    "tenant-transfers",
                    "Transfers you may accept or reject",
                ),
            ),
        )
        .api_route(
            "/tenant/transfer-requests/outgoing",
            get_with(
                outgoing,
                operation(
                    "transfers.outgoing",
                    "tenant-transfers",
                    "Transfers you may cancel",
                ),
            ),
        )
        .api_route(
            "/tenant/transfer-requests/{requestUuid}/accept",
            post_with(
                accept,
                operation_failing(
                    &[409],
                    "transfers.accept",
                    "tenant-transfers",
                    "Accept a transfer and become the owner",
                ),
            ),
        )
        .api_route(
            "/tenant/transfer-requests/{requestUuid}/reject",
            post_with(
                reject,
                operation_failing(
                    &[409],
                    "transfers.reject",
                    "tenant-transfers",
                    "Reject a transfer",
                ),
            ),
        )
        .api_route(
            "/tenant/transfer-requests/{requestUuid}/cancel",
            post_with(
                cancel,
                operation_failing(
                    &[409],
                    "transfers.cancel",
                    "tenant-transfers",
                    "Cancel a transfer",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TransferPath {
    /// The transfer request.
    pub request_uuid: Uuid,
}

/// The recipient of the offer: a person or another tenant, exactly one of them.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitiateTransferRequest {
    /// The default persona of a person (`personaUuid` of a login), or the one that the person has
    /// in this tenant.
    target_persona_uuid: Option<PersonaUuid>,
    /// Another tenant; any member of it may accept or reject.
    target_tenant_uuid: Option<TenantUuid>,
    /// A message to the recipient.
    #[schemars(length(max = MESSAGE_MAX_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    message: Option<String>,
}

impl InitiateTransferRequest {
    fn checked(self) -> Result<(Target, Option<String>)> {
        let mut check = Check::new();
        check.lines("message", self.message.as_deref(), MESSAGE_MAX_CHARS);
        check.done()?;
        let target = match (self.target_persona_uuid, self.target_tenant_uuid) {
            (Some(persona_uuid), None) => Target::Persona(persona_uuid),
            (None, Some(unit)) => Target::Unit(unit),
            (Some(_), Some(_)) => {
                let message = "must not be given together with `targetPersonaUuid`";
                return Err(Error::field("targetTenantUuid", message));
            }
            (None, None) => {
                let message = "is required unless `targetTenantUuid` is given";
                return Err(Error::field("targetPersonaUuid", message));
            }
        };
        Ok((target, self.message))
    }
}

/// A request to transfer a tenant to another owner.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantTransferRequestResponse {
    /// The request.
    request_uuid: Uuid,
    /// The tenant to transfer.
    tenant_uuid: TenantUuid,
    /// The name of that tenant.
    tenant_name: String,
    /// The status of the request.
    status: Status,
    /// The persona of the requester in the tenant.
    requested_by_persona_uuid: PersonaUuid,
    /// The e-mail address of the requester, for the requester, the person who is asked, and the
    /// ADMIN or OWNER of either tenant; null for others, and where the requester has none.
    requested_by_email: Option<String>,
    /// The persona that the tenant is offered to.
    target_persona_uuid: Option<PersonaUuid>,
    /// The tenant that it is offered to.
    target_tenant_uuid: Option<TenantUuid>,
    /// The message to the recipient.
    message: Option<String>,
    /// When the request was created.
    created_at: Timestamp,
    /// When the request expires.
    expires_at: Timestamp,
    /// When it was accepted, rejected or cancelled, or expired.
    settled_at: Option<Timestamp>,
}

impl From<Transfer> for TenantTransferRequestResponse {
    fn from(transfer: Transfer) -> Self {
        Self {
            request_uuid: transfer.request_uuid,
            tenant_uuid: transfer.tenant_uuid,
            tenant_name: transfer.tenant_name,
            status: transfer.status,
            requested_by_persona_uuid: transfer.requested_by_persona_uuid,
            requested_by_email: transfer.requested_by_email,
            target_persona_uuid: transfer.target_persona_uuid,
            target_tenant_uuid: transfer.target_tenant_uuid,
            message: transfer.message,
            created_at: transfer.created_at,
            expires_at: transfer.expires_at,
            settled_at: transfer.settled_at,
        }
    }
}

async fn initiate(
    auth: Member<TenantOwn>,
    State(authn): State<Authn>,
    Json(request): Json<InitiateTransferRequest>,
) -> Result<Answer<TenantTransferRequestResponse>> {
    let (target, message) = request.checked()?;
    let transfer = super::initiate(&authn, &auth.scope, target, filled(message.as_deref())).await?;
    Ok(Answer(transfer.into()))
}

/// The requests you may accept or reject: the newest thousand, newest first.
async fn incoming(
    user: User,
    State(authn): State<Authn>,
) -> Result<Answer<Vec<TenantTransferRequestResponse>>> {
    let mut conn = authn.core.db.read().await?;
    let transfers = super::incoming(&mut conn, user.user_uuid, authn.core.clock.now()).await?;
    Ok(Answer(
        transfers
            .into_iter()
            .map(TenantTransferRequestResponse::from)
            .collect(),
    ))
}

/// The requests you may cancel: the newest thousand, newest first.
async fn outgoing(
    user: User,
    State(authn): State<Authn>,
) -> Result<Answer<Vec<TenantTransferRequestResponse>>> {
    let mut conn = authn.core.db.read().await?;
    let transfers = super::outgoing(&mut conn, user.user_uuid, authn.core.clock.now()).await?;
    Ok(Answer(
        transfers
            .into_iter()
            .map(TenantTransferRequestResponse::from)
            .collect(),
    ))
}

async fn accept(
    user: User,
    State(authn): State<Authn>,
    Path(TransferPath { request_uuid }): Path<TransferPath>,
) -> Result<Answer<TenantTransferRequestResponse>> {
    resolve(&authn, &user, request_uuid, Step::Accept).await
}

async fn reject(
    user: User,
    State(authn): State<Authn>,
    Path(TransferPath { request_uuid }): Path<TransferPath>,
) -> Result<Answer<TenantTransferRequestResponse>> {
    resolve(&authn, &user, request_uuid, Step::Reject).await
}

async fn cancel(
    user: User,
    State(authn): State<Authn>,
    Path(TransferPath { request_uuid }): Path<TransferPath>,
) -> Result<Answer<TenantTransferRequestResponse>> {
    resolve(&authn, &user, request_uuid, Step::Cancel).await
}

async fn resolve(
    authn: &Authn,
    user: &User,
    request_uuid: Uuid,
    step: Step,
) -> Result<Answer<TenantTransferRequestResponse>> {
    super::resolve(authn, user, request_uuid, step)
        .await
        .map(|transfer| Answer(transfer.into()))
}
