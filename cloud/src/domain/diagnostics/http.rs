//! `/tenant/test`, `/tenant/units/{tenantUuid}/test` and `/platform/permission-cache`.

use axum::extract::State;
use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::Serialize;

use super::store;
use crate::app::App;
use crate::authz::permission::{BITS, Diagnostics, Role};
use crate::authz::{Authorized, Caller, LEASE, PlatformAdmin, Statistics};
use crate::error::Result;
use crate::http::answer::Answer;
use crate::http::client_address::ClientAddress;
use crate::http::request_id;

/// What a request was recognised by.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Credential {
    UserToken,
    ApiKey,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosedUser {
    user_uuid: UserUuid,
    /// Your persona in the tenant.
    persona_uuid: PersonaUuid,
    email: String,
    nickname: Option<String>,
    platform_admin: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosedApiKey {
    api_key_id: i64,
    key_prefix: String,
    name: String,
    scopes: Vec<String>,
    rate_limit_per_minute: i64,
    expires_at: Option<Timestamp>,
}

/// Who the service takes the caller for, and what they may do.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosticsResponse {
    tenant_uuid: TenantUuid,
    tenant_name: String,
    credential: Credential,
    /// Of a user token.
    user: Option<DiagnosedUser>,
    /// Of an API key.
    api_key: Option<DiagnosedApiKey>,
    role: Option<Role>,
    /// A role's permissions by name; an API key's scopes.
    permissions: Vec<String>,
    /// A role's permission bits, added up; 0 for an API key, which has scopes instead.
    permission_code: u8,
    request_id: String,
    /// Where the request came from.
    address: Option<String>,
    server_time: Timestamp,
}

pub async fn test(
    auth: Authorized<Diagnostics>,
    State(app): State<App>,
    ClientAddress(address): ClientAddress,
) -> Result<Answer<DiagnosticsResponse>> {
    let mut conn = app.db.read().await?;
    let mut response = DiagnosticsResponse {
        tenant_uuid: auth.scope.tenant_uuid(),
        tenant_name: store::tenant_name(&mut conn, &auth.scope).await?.unwrap_or_default(),
        credential: Credential::ApiKey,
        user: None,
        api_key: None,
        role: None,
        permissions: Vec::new(),
        permission_code: 0,
        request_id: request_id::current(),
        address: address.map(|address| address.to_string()),
        server_time: app.clock.now(),
    };
    match auth.caller {
        Caller::Member { user, persona_uuid, role } => {
            let (email, nickname) = store::profile(&mut conn, user.user_uuid).await?.unwrap_or_default();
            let (user_uuid, platform_admin) = (user.user_uuid, user.is_platform_admin);
            response.credential = Credential::UserToken;
            response.user = Some(DiagnosedUser { user_uuid, persona_uuid, email, nickname, platform_admin });
            response.role = Some(role);
            let granted = BITS.iter().filter(|(_, bit)| role.bits() & bit != 0);
            response.permissions = granted.map(|(name, _)| (*name).to_owned()).collect();
            response.permission_code = role.bits();
        }
        Caller::ApiKey(key) => {
            response.permissions = key.scopes.names();
            response.api_key = Some(DiagnosedApiKey {
                api_key_id: key.api_key_id,
                key_prefix: key.key_prefix.clone(),
                name: key.name.clone(),
                scopes: key.scopes.names(),
                rate_limit_per_minute: key.rate_limit_per_minute,
                expires_at: key.expires_at,
            });
        }
    }
    Ok(Answer(response))
}

/// What this replica remembers about callers. The counts begin with its start.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionCacheResponse {
    /// How long an answer of the database is trusted.
    lease_millis: u64,
    entries: u64,
    hits: u64,
    misses: u64,
    /// How often all was forgotten.
    invalidations: u64,
}

impl From<Statistics> for PermissionCacheResponse {
    fn from(Statistics { entries, hits, misses, invalidations }: Statistics) -> Self {
        Self { lease_millis: LEASE.as_millis().try_into().unwrap_or(u64::MAX), entries, hits, misses, invalidations }
    }
}

pub async fn permission_cache(_: PlatformAdmin, State(app): State<App>) -> Answer<PermissionCacheResponse> {
    Answer(app.permissions.statistics().into())
}

/// When this is answered, no replica goes by anything it read before. The numbers are those just before.
pub async fn forget_permissions(
    PlatformAdmin(admin): PlatformAdmin,
    State(app): State<App>,
) -> Result<Answer<PermissionCacheResponse>> {
    Ok(Answer(super::forget_permissions(&app, &admin).await?.into()))
}
