//! User tokens: how they are issued and verified, and the extractor for endpoints that concern a
//! person and no single tenant.

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use futures_util::future::BoxFuture;
use hub_base::error::{Error, Result};
use hub_core::config::Config;
use hub_protocol::Timestamp;
use uuid::Uuid;

use super::bearer::{bearer, invalid_token};
use super::claims::{ISSUER, UserClaims};
use super::{Authn, api_key, oidc};

pub use super::claims::{PLATFORM_ADMIN, USERS as AUDIENCE};
pub use super::principal::{Session, User};

pub const LIFETIME_SECS: i64 = 15 * 60;

/// Issues an access token for a login and returns it with its expiry. `idp` is the external issuer
/// at which the person signed in, if not here.
pub fn issue(
    authn: &Authn,
    user: &User,
    login_uuid: Uuid,
    idp: Option<&str>,
    now: Timestamp,
) -> Result<(String, Timestamp)> {
    let expires_at = Timestamp::from_micros(now.plus_secs(LIFETIME_SECS).as_secs() * 1_000_000);
    let roles = if user.is_platform_admin {
        vec![PLATFORM_ADMIN.to_owned()]
    } else {
        Vec::new()
    };
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
        idp: idp.map(str::to_owned),
    };
    Ok((authn.keys.sign(&claims, now)?, expires_at))
}

/// Whether people may log in this way: with a password here, or at this external issuer.
pub fn is_way_in(config: &Config, idp: Option<&str>) -> bool {
    match (idp, &config.oidc) {
        (None, _) => config.builtin_login,
        (Some(idp), Some(oidc)) => idp == oidc.issuer,
        (Some(_), None) => false,
    }
}

/// Verifies the bearer token of a person: signature, issuer, audience and expiry. Whether its login
/// has ended is checked together with the person's permissions, see `authz`.
pub fn verify<'a>(authn: &'a Authn, parts: &'a Parts) -> BoxFuture<'a, Result<User>> {
    Box::pin(async move {
        let token = bearer(&parts.headers)?;
        let now = authn.core.clock.now();
        if let Some(oidc) = &authn.oidc
            && oidc::issuer_of(token).is_some_and(|issuer| issuer == oidc.issuer())
        {
            return oidc.verify(&authn.core, token, now).await;
        }
        let claims = authn.keys.verify_user(&authn.core.db, now, token).await?;
        if claims.exp <= now.as_secs() || !is_way_in(&authn.core.config, claims.idp.as_deref()) {
            return Err(invalid_token());
        }
        let is_platform_admin = claims.roles.iter().any(|role| role == PLATFORM_ADMIN);
        Ok(User {
            user_uuid: claims.user_uuid,
            persona_uuid: claims.persona_uuid,
            is_platform_admin,
            session: Session::Login(claims.sid),
        })
    })
}

async fn identify(authn: &Authn, parts: &Parts) -> Result<User> {
    if api_key::is_present(parts) {
        api_key::authenticate(authn, parts).await?;
        return Err(person_required());
    }
    verify(authn, parts).await
}

/// A logged-in person. An API key belongs to no person, so a request with one is refused, even if
/// the key is invalid.
pub fn authenticate<'a>(authn: &'a Authn, parts: &'a Parts) -> BoxFuture<'a, Result<User>> {
    Box::pin(async move {
        let user = identify(authn, parts).await?;
        authn
            .permissions
            .require_session(&authn.core.db, &user)
            .await?;
        Ok(user)
    })
}

/// A logged-in person who may have to set up a second factor before anything else.
pub struct Enrolling(pub User);

impl<S: Send + Sync> FromRequestParts<S> for Enrolling
where
    Authn: FromRef<S>,
{
    type Rejection = hub_base::error::Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let authn = Authn::from_ref(state);
        let user = identify(&authn, parts).await?;
        authn
            .permissions
            .require_login(&authn.core.db, &user)
            .await?;
        Ok(Self(user))
    }
}

/// 403 for a valid API key where a person is required.
pub fn person_required() -> Error {
    let message = "this endpoint requires a person, and an API key belongs to a tenant; use a user's access token";
    Error::forbidden("PERSON_REQUIRED", message)
}

impl<S: Send + Sync> FromRequestParts<S> for User
where
    Authn: FromRef<S>,
{
    type Rejection = hub_base::error::Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        authenticate(&Authn::from_ref(state), parts).await
    }
}
