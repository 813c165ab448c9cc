//! User tokens: what is in one, how one is made, and the extractor for endpoints that concern a person and no single tenant.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use hub_protocol::{PersonaUuid, Timestamp, UserUuid};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::keys::ISSUER;
use super::{api_key, oidc};
use crate::app::App;
use crate::error::{Error, Result};

pub const AUDIENCE: &str = "hub-cloud/users";
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
    /// The login the token belongs to; when it ends, so does the token.
    sid: Uuid,
    pub user_uuid: UserUuid,
    /// The user's default persona; inside a tenant, the tenant's own is looked up.
    pub persona_uuid: PersonaUuid,
    pub roles: Vec<String>,
}

/// A person whose token is good.
#[derive(Clone, Copy, Debug)]
pub struct User {
    pub user_uuid: UserUuid,
    pub persona_uuid: PersonaUuid,
    pub is_platform_admin: bool,
    pub session: Session,
}

/// What keeps a person logged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Session {
    /// A login of ours, which can be revoked.
    Login(Uuid),
    /// Another issuer's token, good until it expires.
    External,
}

/// A fresh access token of a login, and when it expires.
pub fn issue(app: &App, user: &User, login_uuid: Uuid, now: Timestamp) -> Result<(String, Timestamp)> {
    let expires_at = Timestamp::from_micros(now.plus_secs(LIFETIME_SECS).as_secs() * 1_000_000);
    let roles = if user.is_platform_admin { vec![PLATFORM_ADMIN.to_owned()] } else { Vec::new() };
    let claims = UserClaims {
        iss: ISSUER.to_owned(),
        aud: AUDIENCE.to_owned(),
        sub: user.user_uuid.to_string(),
        exp: expires_at.as_secs(),
        iat: now.as_secs(),
        jti: Uuid::new_v4(),
        sid: login_uuid,
        user_uuid: user.user_uuid,
        persona_uuid: user.persona_uuid,
        roles,
    };
    Ok((app.keys.sign(&claims, now)?, expires_at))
}

/// Checks the bearer token of a request from a person: signature, issuer, audience and time. Whether the login it belongs to still lives is
/// checked together with what the person may do, see `authz`.
pub async fn verify(app: &App, parts: &Parts) -> Result<User> {
    let token = super::bearer(&parts.headers)?;
    let now = app.clock.now();
    if let Some(oidc) = &app.oidc
        && oidc::issuer_of(token).is_some_and(|issuer| issuer == oidc.issuer())
    {
        return oidc.verify(app, token, now).await;
    }
    if !app.config.builtin_login {
        return Err(super::invalid_token());
    }
    let claims = app.keys.verify_user(&app.db, now, token).await?;
    if claims.exp <= now.as_secs() {
        return Err(super::invalid_token());
    }
    let is_platform_admin = claims.roles.iter().any(|role| role == PLATFORM_ADMIN);
    Ok(User {
        user_uuid: claims.user_uuid,
        persona_uuid: claims.persona_uuid,
        is_platform_admin,
        session: Session::Login(claims.sid),
    })
}

/// A person who is logged in. A key is nobody, so that one is refused, good or bad.
pub async fn authenticate(app: &App, parts: &Parts) -> Result<User> {
    if api_key::is_present(parts) {
        api_key::authenticate(app, parts).await?;
        return Err(keys_are_nobody());
    }
    let user = verify(app, parts).await?;
    app.permissions.require_session(&app.db, &user).await?;
    Ok(user)
}

/// 403 for a good API key where a person is needed.
pub fn keys_are_nobody() -> Error {
    let message = "an API key stands for a tenant and not for a person; call this with a user's access token";
    Error::forbidden("PERSON_REQUIRED", message)
}

impl FromRequestParts<App> for User {
    type Rejection = crate::error::Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        authenticate(app, parts).await
    }
}
