//! `/tenant/tenants/**`.

use axum::extract::State;
use hub_protocol::{PersonaUuid, TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::store::{self, Membership};
use crate::app::App;
use crate::authn::user::User;
use crate::authz::permission::Role;
use crate::error::Result;
use crate::http::answer::Answer;
use crate::http::extract::Json;
use crate::http::page::{Listed, Page};

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

/// Newest first.
pub async fn list(user: User, State(app): State<App>, page: Page) -> Result<Listed<TenantResponse>> {
    let mut conn = app.db.read().await?;
    let memberships = store::memberships(&mut conn, user.user_uuid, &page).await?;
    let total = store::count_memberships(&mut conn, user.user_uuid).await?;
    Ok(page.listed(memberships.into_iter().map(TenantResponse::from).collect(), total))
}

pub async fn create(
    user: User,
    State(app): State<App>,
    Json(request): Json<CreateTenantRequest>,
) -> Result<Answer<TenantResponse>> {
    let membership = super::create(&app, &user, &request.name).await?;
    Ok(Answer(membership.into()))
}
