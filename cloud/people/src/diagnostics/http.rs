//! `/tenant/test`, `/tenant/units/{tenantUuid}/test` and `/platform/permission-cache`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_base::request_id;
use hub_core::http::answer::Answer;
use hub_core::http::client_address::ClientAddress;
use hub_core::http::operation::operation;
use hub_identity::authn::Authn;
use hub_identity::authn::{LEASE, Statistics};
use hub_identity::authz::permission::{BITS, Diagnostics, Role};
use hub_identity::authz::{Authorized, Caller, PlatformAdmin};
use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Parts;
use crate::{accounts, tenants};

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/test",
            get_with(
                test,
                operation(
                    "diagnostics.test",
                    "tenant-diagnostics",
                    "The caller as the service sees it",
                ),
            ),
        )
        .api_route(
            "/tenant/units/{tenantUuid}/test",
            get_with(
                test,
                operation(
                    "diagnostics.testUnit",
                    "tenant-diagnostics",
                    "The caller as the service sees it in a tenant",
                ),
            ),
        )
        .api_route(
            "/platform/permission-cache",
            get_with(
                permission_cache,
                operation(
                    "permissionCache.get",
                    "platform",
                    "Statistics of this replica's permission cache",
                ),
            )
            .delete_with(
                forget_permissions,
                operation(
                    "permissionCache.clear",
                    "platform",
                    "Clear the permission cache on every replica",
                ),
            ),
        )
}

/// The kind of credential of a request.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Credential {
    /// The access token of a user.
    UserToken,
    /// An API key.
    ApiKey,
}

/// The person who calls.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosedUser {
    /// The account.
    user_uuid: UserUuid,
    /// The persona in the tenant.
    persona_uuid: PersonaUuid,
    /// The e-mail address of the account; null where it has none.
    email: Option<String>,
    /// The name shown to others.
    nickname: Option<String>,
    /// Whether the person is a platform administrator.
    platform_admin: bool,
}

/// The API key that calls.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosedApiKey {
    /// The id of the key.
    #[schemars(range(min = 1))]
    api_key_id: i64,
    /// The beginning of the key.
    key_prefix: String,
    /// The name of the key.
    name: String,
    /// The scopes of the key.
    scopes: Vec<String>,
    /// Requests allowed a minute.
    #[schemars(range(min = 1))]
    rate_limit_per_minute: i64,
    /// When the key expires; null when it does not.
    expires_at: Option<Timestamp>,
}

/// The caller as the service recognises it, and its permissions.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosticsResponse {
    /// The tenant.
    tenant_uuid: TenantUuid,
    /// The name of the tenant.
    tenant_name: String,
    /// The kind of credential of the request.
    credential: Credential,
    /// The person, where the credential is a user token.
    user: Option<DiagnosedUser>,
    /// The key, where the credential is an API key.
    api_key: Option<DiagnosedApiKey>,
    /// The role of the person in the tenant.
    role: Option<Role>,
    /// The permissions of the role by name, or the scopes of the API key.
    permissions: Vec<String>,
    /// The permission bits of the role, added up; 0 for an API key, which has scopes instead.
    permission_code: u8,
    /// The `X-Request-Id` of this request.
    request_id: String,
    /// The client address of the request.
    address: Option<String>,
    /// The time of the service.
    server_time: Timestamp,
}

async fn test(
    auth: Authorized<Diagnostics>,
    State(authn): State<Authn>,
    ClientAddress(address): ClientAddress,
) -> Result<Answer<DiagnosticsResponse>> {
    let mut conn = authn.core.db.read().await?;
    let mut response = DiagnosticsResponse {
        tenant_uuid: auth.scope.tenant_uuid(),
        tenant_name: tenants::name(&mut conn, auth.scope.tenant_uuid())
            .await?
            .unwrap_or_default(),
        credential: Credential::ApiKey,
        user: None,
        api_key: None,
        role: None,
        permissions: Vec::new(),
        permission_code: 0,
        request_id: request_id::current(),
        address: address.map(|address| address.to_string()),
        server_time: authn.core.clock.now(),
    };
    match auth.caller {
        Caller::Member {
            user,
            persona_uuid,
            role,
        } => {
            let (email, nickname) = accounts::profile(&mut conn, user.user_uuid)
                .await?
                .unwrap_or_default();
            let (user_uuid, platform_admin) = (user.user_uuid, user.is_platform_admin);
            response.credential = Credential::UserToken;
            response.user = Some(DiagnosedUser {
                user_uuid,
                persona_uuid,
                email,
                nickname,
                platform_admin,
            });
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

/// The permission cache of this replica. The counts start with the process.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionCacheResponse {
    /// The lifetime of an entry, in milliseconds.
    lease_millis: u64,
    /// Cached entries.
    entries: u64,
    /// Lookups that found an entry.
    hits: u64,
    /// Lookups that read the database.
    misses: u64,
    /// The number of times that the whole cache was cleared.
    invalidations: u64,
}

impl From<Statistics> for PermissionCacheResponse {
    fn from(
        Statistics {
            entries,
            hits,
            misses,
            invalidations,
        }: Statistics,
    ) -> Self {
        Self {
            lease_millis: LEASE.as_millis().try_into().unwrap_or(u64::MAX),
            entries,
            hits,
            misses,
            invalidations,
        }
    }
}

async fn permission_cache(
    _: PlatformAdmin,
    State(authn): State<Authn>,
) -> Answer<PermissionCacheResponse> {
    Answer(authn.permissions.statistics().into())
}

/// When this returns, no replica uses permissions it cached before. The response shows the
/// statistics from just before the clearing.
async fn forget_permissions(
    PlatformAdmin(admin): PlatformAdmin,
    State(authn): State<Authn>,
) -> Result<Answer<PermissionCacheResponse>> {
    Ok(Answer(
        super::forget_permissions(&authn, &admin).await?.into(),
    ))
}
