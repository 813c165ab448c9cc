//! `/tenant/personas/**`, `/invitations/accept` and `/public/invitations/{token}`.

use axum::extract::State;
use hub_protocol::{PersonaUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::store::{self, Invitation};
use super::{MAX_CANDIDATES, MAX_LISTED, Status};
use crate::app::App;
use crate::authn::user::User;
use crate::authz::permission::{MembersManage, MembersRead, Role};
use crate::authz::{Member, Public};
use crate::domain::tenants::http::{TenantMemberResponse, TenantResponse};
use crate::domain::tenants::{self, Acquaintance};
use crate::error::{Error, Result};
use crate::http::answer::{Answer, Empty};
use crate::http::extract::{Json, Path};
use crate::sealing;

/// An invitation as the tenant's members see it: without its token, which only the mail has.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantInvitationResponse {
    invitation_id: i64,
    email: String,
    role: Role,
    status: Status,
    invited_by_user_uuid: UserUuid,
    created_at: Timestamp,
    /// When the mail was last asked for.
    sent_at: Timestamp,
    /// Seven days later.
    expires_at: Timestamp,
}

impl TenantInvitationResponse {
    fn new(invitation: Invitation, now: Timestamp) -> Self {
        Self {
            status: invitation.status(now),
            invitation_id: invitation.invitation_id,
            email: invitation.email,
            role: invitation.role,
            invited_by_user_uuid: invitation.invited_by_user_uuid,
            created_at: invitation.created_at,
            sent_at: invitation.sent_at,
            expires_at: invitation.expires_at,
        }
    }
}

/// Who belongs to a tenant, and who might.
#[derive(Serialize, JsonSchema)]
pub struct TenantPersonasResponse {
    /// All of them, in the order they came in.
    members: Vec<TenantMemberResponse>,
    /// Those that are PENDING or EXPIRED, the last sent first; at most 500.
    invitations: Vec<TenantInvitationResponse>,
}

pub async fn list(auth: Member<MembersRead>, State(app): State<App>) -> Result<Answer<TenantPersonasResponse>> {
    let mut conn = app.db.read().await?;
    let members = tenants::members(&mut conn, &auth.scope).await?;
    let invitations = store::list_open(&mut conn, &auth.scope, MAX_LISTED).await?;
    let now = app.clock.now();
    Ok(Answer(TenantPersonasResponse {
        members: members.into_iter().map(TenantMemberResponse::from).collect(),
        invitations: invitations.into_iter().map(|invitation| TenantInvitationResponse::new(invitation, now)).collect(),
    }))
}

/// An e-mail to invite, or a persona to let in at once: exactly one of them.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersonaInviteRequest {
    /// Gets a mail with a token, which is good for seven days.
    email: Option<String>,
    /// Somebody's default persona, or the one they had in this tenant.
    persona_uuid: Option<PersonaUuid>,
    /// VIEWER when absent. OWNER is granted by an OWNER alone.
    role: Option<Role>,
}

/// What came of it: an invitation for an e-mail, a member for a persona; the other is null.
#[derive(Serialize, JsonSchema)]
pub struct InviteResponse {
    invitation: Option<TenantInvitationResponse>,
    member: Option<TenantMemberResponse>,
}

pub async fn invite(
    auth: Member<MembersManage>,
    State(app): State<App>,
    Json(request): Json<PersonaInviteRequest>,
) -> Result<Answer<InviteResponse>> {
    let role = request.role.unwrap_or(Role::Viewer);
    let response = match (request.email, request.persona_uuid) {
        (Some(email), None) => {
            let invitation = super::invite(&app, &auth.scope, &auth.user, &email, role).await?;
            let invitation = TenantInvitationResponse::new(invitation, app.clock.now());
            InviteResponse { invitation: Some(invitation), member: None }
        }
        (None, Some(persona_uuid)) => {
            let member = super::let_in(&app, &auth.scope, persona_uuid, role).await?;
            InviteResponse { invitation: None, member: Some(member.into()) }
        }
        (Some(_), Some(_)) => return Err(Error::field("personaUuid", "give this or `email`, not both")),
        (None, None) => return Err(Error::field("email", "must be given, or `personaUuid` in its place")),
    };
    Ok(Answer(response))
}

/// Somebody who could be let in by their persona.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InviteCandidate {
    /// Their default persona.
    persona_uuid: PersonaUuid,
    user_uuid: UserUuid,
    email: String,
    nickname: Option<String>,
}

impl From<Acquaintance> for InviteCandidate {
    fn from(Acquaintance { persona_uuid, user_uuid, email, nickname }: Acquaintance) -> Self {
        Self { persona_uuid, user_uuid, email, nickname }
    }
}

/// Members of the caller's other tenants who do not belong to this one, by e-mail; the first 100.
pub async fn candidates(auth: Member<MembersManage>, State(app): State<App>) -> Result<Answer<Vec<InviteCandidate>>> {
    let mut conn = app.db.read().await?;
    let found = tenants::acquaintances(&mut conn, &auth.scope, auth.user.user_uuid, MAX_CANDIDATES).await?;
    Ok(Answer(found.into_iter().map(InviteCandidate::from).collect()))
}

/// What to change; absent or null stays.
#[derive(Deserialize, JsonSchema)]
pub struct UpdatePersonaRoleRequest {
    /// To and from OWNER, an OWNER alone changes it.
    role: Option<Role>,
}

pub async fn change_role(
    auth: Member<MembersManage>,
    State(app): State<App>,
    Path(persona_uuid): Path<PersonaUuid>,
    Json(UpdatePersonaRoleRequest { role }): Json<UpdatePersonaRoleRequest>,
) -> Result<Answer<TenantMemberResponse>> {
    let member = match role {
        Some(role) => tenants::change_role(&app, &auth.scope, persona_uuid, role).await?,
        None => tenants::member(&mut app.db.read().await?, &auth.scope, persona_uuid).await?,
    };
    Ok(Answer(member.into()))
}

pub async fn remove(
    auth: Member<MembersManage>,
    State(app): State<App>,
    Path(persona_uuid): Path<PersonaUuid>,
) -> Result<Empty> {
    tenants::remove_member(&app, &auth.scope, persona_uuid).await?;
    Ok(Empty)
}

pub async fn revoke(
    auth: Member<MembersManage>,
    State(app): State<App>,
    Path(invitation_id): Path<i64>,
) -> Result<Empty> {
    super::revoke(&app, &auth.scope, invitation_id).await?;
    Ok(Empty)
}

/// Another token, another seven days; the token before it ends.
pub async fn resend(
    auth: Member<MembersManage>,
    State(app): State<App>,
    Path(invitation_id): Path<i64>,
) -> Result<Answer<TenantInvitationResponse>> {
    let invitation = super::resend(&app, &auth.scope, &auth.user, invitation_id).await?;
    Ok(Answer(TenantInvitationResponse::new(invitation, app.clock.now())))
}

#[derive(Deserialize, JsonSchema)]
pub struct AcceptRequest {
    /// From the mail.
    token: String,
}

/// Answers the tenant that the caller belongs to now.
pub async fn accept(
    user: User,
    State(app): State<App>,
    Json(AcceptRequest { token }): Json<AcceptRequest>,
) -> Result<Answer<TenantResponse>> {
    let membership = super::accept(&app, &user, &token).await?;
    Ok(Answer(membership.into()))
}

/// An invitation as whoever has its token sees it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublicInvitationResponse {
    tenant_name: String,
    role: Role,
    /// PENDING or ACCEPTED; any other is 410.
    status: Status,
    /// Masked: enough to remember which of one's addresses it was.
    email: String,
    expires_at: Timestamp,
}

pub async fn show(
    _: Public,
    State(app): State<App>,
    Path(token): Path<String>,
) -> Result<Answer<PublicInvitationResponse>> {
    let mut conn = app.db.read().await?;
    let invitation = store::find_by_token(&mut conn, &sealing::hash(&token)).await?;
    let invitation = invitation.ok_or_else(|| Error::not_found("invitation"))?;
    let status = invitation.status(app.clock.now());
    if let Some(how) = super::over(status) {
        return Err(super::gone(how));
    }
    let tenant_name = store::tenant_name(&mut conn, invitation.tenant_uuid).await?;
    let tenant_name = tenant_name.ok_or_else(|| super::gone(super::TENANT_DELETED))?;
    let Invitation { role, email, expires_at, .. } = invitation;
    Ok(Answer(PublicInvitationResponse { tenant_name, role, status, email: masked(&email), expires_at }))
}

/// The first character, and the domain.
fn masked(email: &str) -> String {
    let (local, domain) = email.rsplit_once('@').unwrap_or((email, ""));
    local.chars().take(1).chain("***@".chars()).chain(domain.chars()).collect()
}
