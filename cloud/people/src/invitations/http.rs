//! `/tenant/personas/**`, `/invitations/accept` and `/public/invitations/{token}`.

use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with, patch_with, post_with};
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_core::Core;
use hub_core::http::answer::{Answer, Empty};
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authn::Authn;
use hub_identity::authn::user::User;
use hub_identity::authz::permission::{MembersManage, MembersRead, Role};
use hub_identity::authz::{Member, MemberOrSelf, Public};
use hub_protocol::{PersonaUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::store::{self, Invitation};
use super::{MAX_CANDIDATES, MAX_LISTED, Status};
use crate::Parts;
use crate::tenants::http::{TenantMemberResponse, visible_email};
use crate::tenants::{self, Acquaintance, Membership};

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/tenants/{tenantUuid}/members",
            post_with(
                grant_access,
                operation_failing(
                    &[409],
                    "tenants.grantAccess",
                    "tenant-tenants",
                    "Give a person access, or change their role",
                ),
            ),
        )
        .api_route(
            "/tenant/personas",
            get_with(
                list,
                operation(
                    "personas.list",
                    "tenant-personas",
                    "Members and invitations",
                ),
            ),
        )
        .api_route(
            "/tenant/personas/invite",
            post_with(
                invite,
                operation_failing(
                    &[404, 409],
                    "personas.invite",
                    "tenant-personas",
                    "Invite an e-mail, or add a persona as a member",
                ),
            ),
        )
        .api_route(
            "/tenant/personas/invite-candidates",
            get_with(
                candidates,
                operation(
                    "personas.listInviteCandidates",
                    "tenant-personas",
                    "Members of your other tenants",
                ),
            ),
        )
        .api_route(
            "/tenant/personas/{personaUuid}",
            patch_with(
                change_role,
                operation_failing(
                    &[409],
                    "personas.changeRole",
                    "tenant-personas",
                    "Change a member's role",
                ),
            )
            .delete_with(
                remove,
                operation_failing(
                    &[409],
                    "personas.remove",
                    "tenant-personas",
                    "Remove a member, or leave",
                ),
            ),
        )
        .api_route(
            "/tenant/personas/invitations/{invitationId}",
            delete_with(
                revoke,
                operation_failing(
                    &[409],
                    "invitations.revoke",
                    "tenant-personas",
                    "Revoke an invitation",
                ),
            ),
        )
        .api_route(
            "/tenant/personas/invitations/{invitationId}/resend",
            post_with(
                resend,
                operation_failing(
                    &[409],
                    "invitations.resend",
                    "tenant-personas",
                    "Send an invitation again",
                ),
            ),
        )
        .api_route(
            "/invitations/accept",
            post_with(
                accept,
                operation_failing(
                    &[403, 404, 409, 410],
                    "invitations.accept",
                    "public",
                    "Accept an invitation",
                ),
            ),
        )
        .api_route(
            "/public/invitations/{token}",
            get_with(
                show,
                operation_failing(
                    &[410],
                    "invitations.get",
                    "public",
                    "What an invitation offers",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersonaPath {
    /// The persona of the member in the tenant.
    pub persona_uuid: PersonaUuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvitationPath {
    /// The id of the invitation.
    pub invitation_id: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct InvitationTokenPath {
    /// The token of the invitation, from the mail.
    pub token: String,
}

/// An invitation as the members of the tenant see it. Its token is in the mail alone.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantInvitationResponse {
    /// The id of the invitation.
    #[schemars(range(min = 1))]
    invitation_id: i64,
    /// The e-mail of the invited person, for an ADMIN or OWNER; null for others.
    email: Option<String>,
    /// The role that the person will have.
    role: Role,
    /// The status of the invitation.
    status: Status,
    /// The user who sent it.
    invited_by_user_uuid: UserUuid,
    /// When it was created.
    created_at: Timestamp,
    /// When the mail was last requested.
    sent_at: Timestamp,
    /// When it expires: seven days after `sentAt`.
    expires_at: Timestamp,
}

impl TenantInvitationResponse {
    /// The invitation as a member with the role `reader` sees it.
    fn new(invitation: Invitation, reader: Role, now: Timestamp) -> Self {
        Self {
            status: invitation.status(now),
            invitation_id: invitation.invitation_id,
            email: visible_email(reader, Some(invitation.email)),
            role: invitation.role,
            invited_by_user_uuid: invitation.invited_by_user_uuid,
            created_at: invitation.created_at,
            sent_at: invitation.sent_at,
            expires_at: invitation.expires_at,
        }
    }
}

/// The members of a tenant, and its open invitations.
#[derive(Serialize, JsonSchema)]
pub struct TenantPersonasResponse {
    /// All members, in the order in which they joined.
    members: Vec<TenantMemberResponse>,
    /// The invitations that are PENDING or EXPIRED, the last sent first.
    #[schemars(length(max = 500))]
    invitations: Vec<TenantInvitationResponse>,
}

async fn list(
    auth: Member<MembersRead>,
    State(core): State<Core>,
) -> Result<Answer<TenantPersonasResponse>> {
    let mut conn = core.db.read().await?;
    let members = tenants::members(&mut conn, &auth.scope).await?;
    let invitations = store::list_open(&mut conn, &auth.scope, MAX_LISTED).await?;
    let (reader, now) = (auth.role, core.clock.now());
    let invitations = invitations.into_iter();
    Ok(Answer(TenantPersonasResponse {
        members: members
            .into_iter()
            .map(|member| TenantMemberResponse::new(member, reader))
            .collect(),
        invitations: invitations
            .map(|invitation| TenantInvitationResponse::new(invitation, reader, now))
            .collect(),
    }))
}

/// An e-mail address to invite, or a persona to add at once: exactly one of them.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersonaInviteRequest {
    /// Receives a mail with a token, which is valid for seven days.
    #[schemars(length(max = 254), extend("format" = "email"))]
    email: Option<String>,
    /// The default persona of a person, or the one that the person had in this tenant.
    persona_uuid: Option<PersonaUuid>,
    /// The role; VIEWER when absent. Only an OWNER may grant OWNER.
    role: Option<Role>,
}

/// The invited person: by mail, or at once by their persona.
enum Invitee {
    Email(String),
    Persona(PersonaUuid),
}

impl PersonaInviteRequest {
    fn checked(self) -> Result<(Invitee, Role)> {
        let invitee = match (self.email, self.persona_uuid) {
            (Some(email), None) => Invitee::Email(email),
            (None, Some(persona_uuid)) => Invitee::Persona(persona_uuid),
            (Some(_), Some(_)) => {
                return Err(Error::field(
                    "personaUuid",
                    "must not be given together with `email`",
                ));
            }
            (None, None) => {
                return Err(Error::field(
                    "email",
                    "is required unless `personaUuid` is given",
                ));
            }
        };
        Ok((invitee, self.role.unwrap_or(Role::Viewer)))
    }
}

/// The created object: an invitation for an e-mail address, a member for a persona; the other is
/// null.
#[derive(Serialize, JsonSchema)]
pub struct InviteResponse {
    /// The invitation.
    invitation: Option<TenantInvitationResponse>,
    /// The member.
    member: Option<TenantMemberResponse>,
}

async fn invite(
    auth: Member<MembersManage>,
    State(core): State<Core>,
    Json(request): Json<PersonaInviteRequest>,
) -> Result<Answer<InviteResponse>> {
    let (invitee, role) = request.checked()?;
    let response = match invitee {
        Invitee::Email(email) => {
            let invitation = super::invite(&core, &auth.scope, &auth.user, &email, role).await?;
            let invitation = TenantInvitationResponse::new(invitation, auth.role, core.clock.now());
            InviteResponse {
                invitation: Some(invitation),
                member: None,
            }
        }
        Invitee::Persona(persona_uuid) => {
            let member = super::add_member(&core, &auth.scope, persona_uuid, role).await?;
            InviteResponse {
                invitation: None,
                member: Some(TenantMemberResponse::new(member, auth.role)),
            }
        }
    };
    Ok(Answer(response))
}

/// A person who can be added by persona.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InviteCandidate {
    /// The default persona of the person.
    persona_uuid: PersonaUuid,
    /// The account of the person.
    user_uuid: UserUuid,
    /// The e-mail address of the account, if it has one.
    email: Option<String>,
    /// The name shown to others.
    nickname: Option<String>,
}

impl From<Acquaintance> for InviteCandidate {
    fn from(
        Acquaintance {
            persona_uuid,
            user_uuid,
            email,
            nickname,
        }: Acquaintance,
    ) -> Self {
        Self {
            persona_uuid,
            user_uuid,
            email: Some(email).filter(|email| !email.is_empty()),
            nickname,
        }
    }
}

/// Members of the caller's other tenants who are not members of this one, ordered by e-mail; the
/// first 100. A tenant counts if the caller joined it and is its ADMIN or OWNER.
async fn candidates(
    auth: Member<MembersManage>,
    State(core): State<Core>,
) -> Result<Answer<Vec<InviteCandidate>>> {
    let mut conn = core.db.read().await?;
    let found =
        tenants::acquaintances(&mut conn, &auth.scope, auth.user.user_uuid, MAX_CANDIDATES).await?;
    Ok(Answer(
        found.into_iter().map(InviteCandidate::from).collect(),
    ))
}

/// Changes to make. An absent or null member leaves the stored value unchanged.
#[derive(Deserialize, JsonSchema)]
pub struct UpdatePersonaRoleRequest {
    /// The role to set. Only an OWNER may grant or withdraw OWNER.
    role: Option<Role>,
}

async fn change_role(
    auth: Member<MembersManage>,
    State(authn): State<Authn>,
    Path(PersonaPath { persona_uuid }): Path<PersonaPath>,
    Json(UpdatePersonaRoleRequest { role }): Json<UpdatePersonaRoleRequest>,
) -> Result<Answer<TenantMemberResponse>> {
    let member = match role {
        Some(role) => tenants::change_role(&authn, &auth.scope, persona_uuid, role).await?,
        None => {
            tenants::member(&mut authn.core.db.read().await?, &auth.scope, persona_uuid).await?
        }
    };
    Ok(Answer(TenantMemberResponse::new(member, auth.role)))
}

/// Members may remove themselves. The last OWNER stays.
async fn remove(
    auth: MemberOrSelf<MembersManage>,
    State(authn): State<Authn>,
    Path(PersonaPath { persona_uuid }): Path<PersonaPath>,
) -> Result<Empty> {
    tenants::remove_member(&authn, &auth.scope, persona_uuid).await?;
    Ok(Empty)
}

async fn revoke(
    auth: Member<MembersManage>,
    State(core): State<Core>,
    Path(InvitationPath { invitation_id }): Path<InvitationPath>,
) -> Result<Empty> {
    super::revoke(&core, &auth.scope, invitation_id).await?;
    Ok(Empty)
}

/// Issues a new token, valid for seven days. The previous token becomes invalid.
async fn resend(
    auth: Member<MembersManage>,
    State(core): State<Core>,
    Path(InvitationPath { invitation_id }): Path<InvitationPath>,
) -> Result<Answer<TenantInvitationResponse>> {
    let invitation = super::resend(&core, &auth.scope, &auth.user, invitation_id).await?;
    Ok(Answer(TenantInvitationResponse::new(
        invitation,
        auth.role,
        core.clock.now(),
    )))
}

/// The invitation to accept.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "InvitationAcceptRequest")]
pub struct AcceptRequest {
    /// The token from the mail.
    token: String,
}

/// Returns the tenant that the caller is now a member of.
async fn accept(
    user: User,
    State(core): State<Core>,
    Json(AcceptRequest { token }): Json<AcceptRequest>,
) -> Result<Answer<Membership>> {
    let membership = super::accept(&core, &user, &token).await?;
    Ok(Answer(membership))
}

/// An invitation as the holder of its token sees it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublicInvitationResponse {
    /// The name of the tenant.
    tenant_name: String,
    /// The role that the person will have.
    role: Role,
    /// The status: PENDING or ACCEPTED; any other is answered with 410.
    status: Status,
    /// The e-mail of the invited person, masked but recognisable.
    email: String,
    /// When it expires.
    expires_at: Timestamp,
}

async fn show(
    _: Public,
    State(core): State<Core>,
    Path(InvitationTokenPath { token }): Path<InvitationTokenPath>,
) -> Result<Answer<PublicInvitationResponse>> {
    let mut conn = core.db.read().await?;
    let invitation = store::find_by_token(&mut conn, &sealing::hash(&token)).await?;
    let invitation = invitation.ok_or_else(|| Error::not_found("invitation"))?;
    let status = invitation.status(core.clock.now());
    if let Some(how) = super::closed_reason(status) {
        return Err(super::gone(how));
    }
    let tenant_name = tenants::name(&mut conn, invitation.tenant_uuid).await?;
    let tenant_name = tenant_name.ok_or_else(|| super::gone(super::TENANT_DELETED))?;
    let Invitation {
        role,
        email,
        expires_at,
        ..
    } = invitation;
    Ok(Answer(PublicInvitationResponse {
        tenant_name,
        role,
        status,
        email: masked(&email),
        expires_at,
    }))
}

/// The first character, and the domain.
fn masked(email: &str) -> String {
    let (local, domain) = email.rsplit_once('@').unwrap_or((email, ""));
    local
        .chars()
        .take(1)
        .chain("***@".chars())
        .chain(domain.chars())
        .collect()
}

/// A member to add, or another role for one.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantAccessRequest {
    /// The default persona of a person (`personaUuid` of a login), or the one that the person has
    /// in this tenant.
    persona_uuid: PersonaUuid,
    /// The role to grant. Only an OWNER may grant OWNER.
    role: Role,
}

async fn grant_access(
    auth: Member<MembersManage>,
    State(authn): State<Authn>,
    Json(GrantAccessRequest { persona_uuid, role }): Json<GrantAccessRequest>,
) -> Result<Answer<TenantMemberResponse>> {
    let member = super::grant_access(&authn, &auth.scope, persona_uuid, role).await?;
    Ok(Answer(TenantMemberResponse::new(member, auth.role)))
}
