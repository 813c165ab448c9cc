//! `/tenant/tenants/**`.

use axum::extract::State;
use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::store;
use super::{MemberRow, Membership};
use crate::app::App;
use crate::authn::user::User;
use crate::authz::Member;
use crate::authz::permission::{MembersManage, MembersRead, Role, TenantOwn, TenantUpdate};
use crate::error::Result;
use crate::http::answer::{Answer, Empty};
use crate::http::extract::{Json, Path};

/// A tenant as one of its members sees it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantResponse {
    /// Also the supplier's uuid.
    tenant_uuid: TenantUuid,
    name: String,
    /// Your role in it.
    role: Role,
    /// Your persona in it.
    persona_uuid: PersonaUuid,
    created_at: Timestamp,
}

impl From<Membership> for TenantResponse {
    fn from(Membership { tenant_uuid, name, role, persona_uuid, created_at }: Membership) -> Self {
        Self { tenant_uuid, name, role, persona_uuid, created_at }
    }
}

#[derive(Deserialize, JsonSchema)]
pub struct CreateTenantRequest {
    /// 1 to 200 characters.
    name: String,
}

/// What to change; absent or null stays.
#[derive(Deserialize, JsonSchema)]
pub struct UpdateTenantRequest {
    /// 1 to 200 characters.
    name: Option<String>,
}

/// All of them, newest first; nobody belongs to more than a thousand.
pub async fn list(user: User, State(app): State<App>) -> Result<Answer<Vec<TenantResponse>>> {
    let mut conn = app.db.read().await?;
    let memberships = store::memberships(&mut conn, user.user_uuid, super::MAX_TENANTS).await?;
    Ok(Answer(memberships.into_iter().map(TenantResponse::from).collect()))
}

pub async fn create(
    user: User,
    State(app): State<App>,
    Json(request): Json<CreateTenantRequest>,
) -> Result<Answer<TenantResponse>> {
    let membership = super::create(&app, &user, &request.name).await?;
    Ok(Answer(membership.into()))
}

pub async fn update(
    auth: Member<TenantUpdate>,
    State(app): State<App>,
    Json(request): Json<UpdateTenantRequest>,
) -> Result<Answer<TenantResponse>> {
    let membership = super::update(&app, &auth.scope, &auth.user, request.name.as_deref()).await?;
    Ok(Answer(membership.into()))
}

pub async fn delete(auth: Member<TenantOwn>, State(app): State<App>) -> Result<Empty> {
    super::delete(&app, &auth.scope).await?;
    Ok(Empty)
}

/// A member of a tenant.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantMemberResponse {
    /// The member's persona in this tenant.
    persona_uuid: PersonaUuid,
    user_uuid: UserUuid,
    email: String,
    nickname: Option<String>,
    role: Role,
    /// When the member first came in.
    created_at: Timestamp,
}

impl From<MemberRow> for TenantMemberResponse {
    fn from(MemberRow { persona_uuid, user_uuid, email, nickname, role, created_at }: MemberRow) -> Self {
        Self { persona_uuid, user_uuid, email, nickname, role, created_at }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantAccessRequest {
    /// Someone's default persona (`personaUuid` of their login), or the one they have in this tenant.
    persona_uuid: PersonaUuid,
    /// OWNER is granted by an OWNER alone.
    role: Role,
}

/// All of them, in the order they came in; a tenant has at most a thousand.
pub async fn list_members(
    auth: Member<MembersRead>,
    State(app): State<App>,
) -> Result<Answer<Vec<TenantMemberResponse>>> {
    let mut conn = app.db.read().await?;
    let members = super::members(&mut conn, &auth.scope).await?;
    Ok(Answer(members.into_iter().map(TenantMemberResponse::from).collect()))
}

pub async fn grant_access(
    auth: Member<MembersManage>,
    State(app): State<App>,
    Json(GrantAccessRequest { persona_uuid, role }): Json<GrantAccessRequest>,
) -> Result<Answer<TenantMemberResponse>> {
    let member = super::grant_access(&app, &auth.scope, persona_uuid, role).await?;
    Ok(Answer(member.into()))
}

pub async fn remove_member(
    auth: Member<MembersManage>,
    State(app): State<App>,
    Path((_, persona_uuid)): Path<(TenantUuid, PersonaUuid)>,
) -> Result<Empty> {
    super::remove_member(&app, &auth.scope, persona_uuid).await?;
    Ok(Empty)
}
