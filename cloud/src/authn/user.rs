//! User tokens: what is in one, how one is made, and the extractor for endpoints that concern a person and no single tenant.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use hub_protocol::{PersonaUuid, Timestamp, UserUuid};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::keys::ISSUER;
use crate::app::App;
use crate::error::{Error, Result};

const AUDIENCE: &str = "hub-cloud/users";
const API_KEY_HEADER: &str = "x-api-key";
pub const LIFETIME_SECS: i64 = 15 * 60;
pub const PLATFORM_ADMIN: &str = "PLATFORM_ADMIN";

/// The claims of a user token (RFC 7519).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UserClaims {
    iss: String,
    aud: String,
    sub: String,
    exp: i64,
    iat: i64,
    jti: Uuid,
    pub user_uuid: UserUuid,
    /// The user's default persona; inside a tenant, the tenant's own is looked up.
    pub persona_uuid: PersonaUuid,
    pub roles: Vec<String>,
}

/// A person whose token is good.
#[derive(Clone, Debug)]
pub struct User {
    pub user_uuid: UserUuid,
    pub persona_uuid: PersonaUuid,
    pub is_platform_admin: bool,
}

/// A fresh access token and when it expires.
pub fn issue(app: &App, user: &User, now: Timestamp) -> Result<(String, Timestamp)> {
    let expires_at = Timestamp::from_micros(now.plus_secs(LIFETIME_SECS).as_secs() * 1_000_000);
    let roles = if user.is_platform_admin { vec![PLATFORM_ADMIN.to_owned()] } else { Vec::new() };
    let claims = UserClaims {
        iss: ISSUER.to_owned(),
        aud: AUDIENCE.to_owned(),
        sub: user.user_uuid.to_string(),
        exp: expires_at.as_secs(),
        iat: now.as_secs(),
        jti: Uuid::new_v4(),
        user_uuid: user.user_uuid,
        persona_uuid: user.persona_uuid,
        roles,
    };
    Ok((app.keys.sign(&claims)?, expires_at))
}

/// Checks the bearer token of a request from a person.
pub async fn authenticate(app: &App, parts: &Parts) -> Result<User> {
    // An API key goes before a user token, and there is no falling through from one to the other.
    if parts.headers.contains_key(API_KEY_HEADER) && parts.uri.path().starts_with("/tenant/") {
        return Err(Error::unauthorized("INVALID_API_KEY", "the API key is not valid, or no longer"));
    }
    let now = app.clock.now();
    let claims: UserClaims = app.keys.verify(&app.db, now, super::bearer(&parts.headers)?, AUDIENCE).await?;
    if claims.exp <= now.as_secs() {
        return Err(super::invalid_token());
    }
    let is_platform_admin = claims.roles.iter().any(|role| role == PLATFORM_ADMIN);
    Ok(User { user_uuid: claims.user_uuid, persona_uuid: claims.persona_uuid, is_platform_admin })
}

impl FromRequestParts<App> for User {
    type Rejection = crate::error::Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        authenticate(app, parts).await
    }
}
