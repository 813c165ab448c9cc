//! The claims of the tokens that this service issues (RFC 7519).

use hub_protocol::{HubUuid, PersonaUuid, TenantUuid, UserUuid};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The `iss` of every token that this service issues.
pub const ISSUER: &str = "hub-cloud";
/// The `aud` of user tokens.
pub const USERS: &str = "hub-cloud/users";
/// The `aud` of hub tokens.
pub const HUBS: &str = "hub-cloud/hubs";
/// The role of those who operate the service.
pub const PLATFORM_ADMIN: &str = "PLATFORM_ADMIN";

/// The claims of a user token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UserClaims {
    pub(super) iss: String,
    pub(super) aud: String,
    pub(super) sub: String,
    pub(super) exp: i64,
    pub(super) iat: i64,
    pub(super) jti: Uuid,
    /// The login that the token belongs to. The token ends with it.
    pub(super) sid: Uuid,
    pub user_uuid: UserUuid,
    /// The user's default persona. Inside a tenant, the persona of that tenant is looked up.
    pub persona_uuid: PersonaUuid,
    pub roles: Vec<String>,
    /// The external issuer at which the person signed in, if not here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) idp: Option<String>,
}

/// The claims of a hub token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HubClaims {
    pub(super) iss: String,
    pub(super) aud: String,
    pub(super) sub: String,
    pub(super) exp: i64,
    pub(super) iat: i64,
    pub jti: Uuid,
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
}
