//! `/tenant/tenants/{tenantUuid}/transfer` and `/tenant/transfer-requests/**`.

use axum::extract::State;
use hub_protocol::{PersonaUuid, TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{MESSAGE_MAX_CHARS, Move, Status, Target, Transfer};
use crate::app::App;
use crate::authn::user::User;
use crate::authz::Member;
use crate::authz::permission::TenantOwn;
use crate::error::{Error, Result};
use crate::http::answer::Answer;
use crate::http::check::{Check, filled};
use crate::http::extract::{Json, Path};

/// Whom the tenant is offered to: a person or a unit, one of the two.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitiateTransferRequest {
    /// Someone's default persona (`personaUuid` of their login), or the one they have in this tenant.
    target_persona_uuid: Option<PersonaUuid>,
    /// Another tenant; any member of it may accept or reject.
    target_tenant_uuid: Option<TenantUuid>,
    /// What whoever is asked gets to read; at most 1,000 characters.
    message: Option<String>,
}

/// A transfer of ownership.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantTransferRequestResponse {
    request_uuid: Uuid,
    /// The tenant that changes hands.
    tenant_uuid: TenantUuid,
    tenant_name: String,
    status: Status,
    /// The persona, in the tenant, of whoever asked.
    requested_by_persona_uuid: PersonaUuid,
    requested_by_email: Option<String>,
    target_persona_uuid: Option<PersonaUuid>,
    target_tenant_uuid: Option<TenantUuid>,
    message: Option<String>,
    created_at: Timestamp,
    expires_at: Timestamp,
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

pub async fn initiate(
    auth: Member<TenantOwn>,
    State(app): State<App>,
    Json(request): Json<InitiateTransferRequest>,
) -> Result<Answer<TenantTransferRequestResponse>> {
    let mut check = Check::new();
    check.lines("message", request.message.as_deref(), MESSAGE_MAX_CHARS);
    check.done()?;
    let target = match (request.target_persona_uuid, request.target_tenant_uuid) {
        (Some(persona_uuid), None) => Target::Persona(persona_uuid),
        (None, Some(unit)) => Target::Unit(unit),
        (Some(_), Some(_)) => {
            return Err(Error::field(
                "targetTenantUuid",
                "must not be given beside `targetPersonaUuid`: name one of the two",
            ));
        }
        (None, None) => {
            return Err(Error::field("targetPersonaUuid", "must be given, or `targetTenantUuid` in its place"));
        }
    };
    let transfer = super::initiate(&app, &auth.scope, target, filled(request.message.as_deref())).await?;
    Ok(Answer(transfer.into()))
}

/// What you may accept or reject, newest first; the newest thousand.
pub async fn incoming(user: User, State(app): State<App>) -> Result<Answer<Vec<TenantTransferRequestResponse>>> {
    let mut conn = app.db.read().await?;
    let transfers = super::incoming(&mut conn, user.user_uuid, app.clock.now()).await?;
    Ok(Answer(transfers.into_iter().map(TenantTransferRequestResponse::from).collect()))
}

/// What you may cancel, newest first; the newest thousand.
pub async fn outgoing(user: User, State(app): State<App>) -> Result<Answer<Vec<TenantTransferRequestResponse>>> {
    let mut conn = app.db.read().await?;
    let transfers = super::outgoing(&mut conn, user.user_uuid, app.clock.now()).await?;
    Ok(Answer(transfers.into_iter().map(TenantTransferRequestResponse::from).collect()))
}

pub async fn accept(
    user: User,
    State(app): State<App>,
    Path(request_uuid): Path<Uuid>,
) -> Result<Answer<TenantTransferRequestResponse>> {
    settle(&app, &user, request_uuid, Move::Accept).await
}

pub async fn reject(
    user: User,
    State(app): State<App>,
    Path(request_uuid): Path<Uuid>,
) -> Result<Answer<TenantTransferRequestResponse>> {
    settle(&app, &user, request_uuid, Move::Reject).await
}

pub async fn cancel(
    user: User,
    State(app): State<App>,
    Path(request_uuid): Path<Uuid>,
) -> Result<Answer<TenantTransferRequestResponse>> {
    settle(&app, &user, request_uuid, Move::Cancel).await
}

async fn settle(
    app: &App,
    user: &User,
    request_uuid: Uuid,
    step: Move,
) -> Result<Answer<TenantTransferRequestResponse>> {
    super::settle(app, user, request_uuid, step).await.map(|transfer| Answer(transfer.into()))
}
