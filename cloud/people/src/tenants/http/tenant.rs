//! `/tenant/tenants/**`.

use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with, patch_with, post_with};
use axum::extract::State;
use hub_base::error::Result;
use hub_core::http::answer::{Answer, Empty};
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authn::Authn;
use hub_identity::authn::user::User;
use hub_identity::authz::permission::{MANAGE, MembersManage, MembersRead, Role, TenantUpdate};
use hub_identity::authz::{Member, MemberOrSelf};
use hub_protocol::{PersonaUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{self as tenants, MemberRow, Membership};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/tenants",
            get_with(
                list,
                operation(
                    "tenants.list",
                    "tenant-tenants",
                    "Tenants you are a member of",
                ),
            )
            .post_with(
                create,
                operation_failing(
                    &[409],
                    "tenants.create",
                    "tenant-tenants",
                    "Create a tenant, as its OWNER",
                ),
            ),
        )
        .api_route(
            "/tenant/tenants/{tenantUuid}/members",
            get_with(
                list_members,
                operation(
                    "tenants.listMembers",
                    "tenant-tenants",
                    "Members of a tenant",
                ),
            ),
        )
        .api_route(
            "/tenant/tenants/{tenantUuid}/members/{targetPersonaUuid}",
            delete_with(
                remove_member,
                operation_failing(
                    &[409],
                    "tenants.removeMember",
                    "tenant-tenants",
                    "Remove a member, or leave",
                ),
            ),
        )
        .api_route(
            "/tenant/tenants/{tenantUuid}/accept",
            post_with(
                accept,
                operation_failing(
                    &[409],
                    "tenants.accept",
                    "tenant-tenants",
                    "Accept a membership that somebody else gave you",
                ),
            ),
        )
        .api_route(
            "/tenant/tenants/{tenantUuid}",
            patch_with(
                update,
                operation("tenants.update", "tenant-tenants", "Rename a tenant"),
            ),
        )
}

/// The access extractor reads the tenant of the path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberPath {
    /// The persona of the member in the tenant.
    pub target_persona_uuid: PersonaUuid,
}

/// A tenant to create.
#[derive(Deserialize, JsonSchema)]
pub struct CreateTenantRequest {
    /// Its name.
    #[schemars(length(min = 1, max = 200), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: String,
}

/// Changes to make. An absent or null member leaves the stored value unchanged.
#[derive(Deserialize, JsonSchema)]
pub struct UpdateTenantRequest {
    /// Its name.
    #[schemars(length(min = 1, max = 200), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: Option<String>,
}

/// All memberships that the caller joined, of which there are at most a thousand, and the last
/// hundred that others gave the caller; newest first.
async fn list(user: User, State(authn): State<Authn>) -> Result<Answer<Vec<Membership>>> {
    let mut conn = authn.core.db.read().await?;
    let memberships = tenants::memberships(&mut conn, user.user_uuid).await?;
    Ok(Answer(memberships))
}

async fn create(
    user: User,
    State(authn): State<Authn>,
    Json(request): Json<CreateTenantRequest>,
) -> Result<Answer<Membership>> {
    let membership = tenants::create(&authn, &user, &request.name).await?;
    Ok(Answer(membership))
}

async fn update(
    auth: Member<TenantUpdate>,
    State(authn): State<Authn>,
    Json(request): Json<UpdateTenantRequest>,
) -> Result<Answer<Membership>> {
    let membership =
        tenants::update(&authn, &auth.scope, &auth.user, request.name.as_deref()).await?;
    Ok(Answer(membership))
}

/// A member of a tenant.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantMemberResponse {
    /// The persona of the member in this tenant.
    persona_uuid: PersonaUuid,
    /// The account of the member.
    user_uuid: UserUuid,
    /// The e-mail address of the account, for an ADMIN or OWNER; null for others, and where the
    /// account has none.
    email: Option<String>,
    /// The name shown to others.
    nickname: Option<String>,
    /// The role of the member.
    role: Role,
    /// When the member first joined.
    created_at: Timestamp,
}

/// The e-mail of somebody else, as a member with this role sees it.
pub fn visible_email(reader: Role, email: Option<String>) -> Option<String> {
    email.filter(|email| !email.is_empty() && reader.allows(MANAGE))
}

impl TenantMemberResponse {
    /// The member as one with the role `reader` sees it.
    pub fn new(row: MemberRow, reader: Role) -> Self {
        let MemberRow {
            persona_uuid,
            user_uuid,
            email,
            nickname,
            role,
            created_at,
        } = row;
        Self {
            persona_uuid,
            user_uuid,
            email: visible_email(reader, email),
            nickname,
            role,
            created_at,
        }
    }
}

/// All members, in the order in which they joined; a tenant has at most a thousand.
async fn list_members(
    auth: Member<MembersRead>,
    State(authn): State<Authn>,
) -> Result<Answer<Vec<TenantMemberResponse>>> {
    let mut conn = authn.core.db.read().await?;
    let members = tenants::members(&mut conn, &auth.scope).await?;
    Ok(Answer(
        members
            .into_iter()
            .map(|member| TenantMemberResponse::new(member, auth.role))
            .collect(),
    ))
}

/// Members may remove themselves. The last OWNER stays.
async fn remove_member(
    auth: MemberOrSelf<MembersManage>,
    State(authn): State<Authn>,
    Path(MemberPath {
        target_persona_uuid: persona_uuid,
    }): Path<MemberPath>,
) -> Result<Empty> {
    tenants::remove_member(&authn, &auth.scope, persona_uuid).await?;
    Ok(Empty)
}

/// Repeating it changes nothing.
async fn accept(
    auth: Member<MembersRead>,
    State(authn): State<Authn>,
) -> Result<Answer<Membership>> {
    Ok(Answer(
        tenants::accept(&authn, &auth.scope, &auth.user).await?,
    ))
}
