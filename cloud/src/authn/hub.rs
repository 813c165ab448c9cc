//! Hub tokens: a signed JWT that names the hub, its tenant and itself. A hub has one token in force, whose id is in the hub's row; a token that was
//! replaced or revoked is refused from the next request on, because that row is what every request is checked against.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::client_certificate;
use super::keys::ISSUER;
use crate::app::App;
use crate::domain::hubs;
use crate::error::{Error, Result};
use crate::http::extract::path_parameter;

pub const AUDIENCE: &str = "hub-cloud/hubs";

impl Hub {
    /// Refuses a token that was replaced or revoked.
    pub async fn require_in_force(&self, app: &App) -> Result<()> {
        let mut conn = app.db.read().await?;
        match hubs::token_in_force(&mut conn, self.hub_uuid).await? {
            Some(token_id) if token_id == self.token_id => Ok(()),
            _ => Err(super::invalid_token()),
        }
    }
}

/// The claims of a hub token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HubClaims {
    iss: String,
    aud: String,
    sub: String,
    exp: i64,
    iat: i64,
    pub jti: Uuid,
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
}

/// A hub whose token is the one in force, and that connected with a certificate of its own where the service asks for one.
#[derive(Clone, Debug)]
pub struct Hub {
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
    pub token_id: Uuid,
}

/// A hub whose token is genuine and not expired. Whether it is still the one in force is checked where the upload is committed, together with
/// all the others of that commit.
#[derive(Clone, Debug)]
pub struct UploadingHub(pub Hub);

/// As [`Hub`], with any certificate or none: on the paths by which a hub gets one.
#[derive(Clone, Debug)]
pub struct EnrollingHub(pub Hub);

/// A hub that asks for a fresh token: the one it shows is genuine, but may have expired or been replaced. The refresh itself decides.
#[derive(Clone, Debug)]
pub struct RefreshingHub(pub HubClaims);

/// A fresh token with the id `token_id`, and when it expires.
pub fn issue(
    app: &App,
    hub_uuid: HubUuid,
    tenant_uuid: TenantUuid,
    token_id: Uuid,
    now: Timestamp,
) -> Result<(String, Timestamp)> {
    let lifetime_secs = app.config.hub_token_lifetime.as_secs().cast_signed();
    let expires_at = Timestamp::from_micros(now.plus_secs(lifetime_secs).as_secs() * 1_000_000);
    let claims = HubClaims {
        iss: ISSUER.to_owned(),
        aud: AUDIENCE.to_owned(),
        sub: hub_uuid.to_string(),
        exp: expires_at.as_secs(),
        iat: now.as_secs(),
        jti: token_id,
        hub_uuid,
        tenant_uuid,
    };
    Ok((app.keys.sign(&claims, now)?, expires_at))
}

/// Checks that the bearer token was issued by this service to a hub, whether or not it has expired.
async fn genuine_claims(app: &App, parts: &Parts) -> Result<HubClaims> {
    app.keys.verify_hub(&app.db, app.clock.now(), super::bearer(&parts.headers)?).await
}

/// As [`genuine_claims`], for a token that has not expired, on a path that names no other hub.
async fn unexpired(parts: &mut Parts, app: &App) -> Result<Hub> {
    let claims = genuine_claims(app, parts).await?;
    if claims.exp <= app.clock.now().as_secs() {
        return Err(super::invalid_token());
    }
    check_path(parts, app, claims.hub_uuid).await?;
    Ok(Hub { hub_uuid: claims.hub_uuid, tenant_uuid: claims.tenant_uuid, token_id: claims.jti })
}

/// A hub acts for itself alone: `{hubUuid}` in a path must be the token's own.
async fn check_path(parts: &mut Parts, app: &App, hub_uuid: HubUuid) -> Result<()> {
    let Some(value) = path_parameter(parts, app, "hubUuid").await? else { return Ok(()) };
    match value.parse::<HubUuid>() {
        Ok(named) if named == hub_uuid => Ok(()),
        Ok(_) => Err(Error::forbidden("OTHER_HUB", "the access token belongs to another hub than the path names")),
        Err(_) => Err(Error::field("hubUuid", "must be a uuid")),
    }
}

impl FromRequestParts<App> for Hub {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        // Boxed: a request may wait long after this.
        let EnrollingHub(hub) = Box::pin(EnrollingHub::from_request_parts(parts, app)).await?;
        Box::pin(client_certificate::check(parts, app, hub.hub_uuid)).await?;
        Ok(hub)
    }
}

impl FromRequestParts<App> for EnrollingHub {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let hub = unexpired(parts, app).await?;
        hub.require_in_force(app).await?;
        Ok(Self(hub))
    }
}

impl FromRequestParts<App> for UploadingHub {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let hub = Self(unexpired(parts, app).await?);
        client_certificate::check(parts, app, hub.0.hub_uuid).await?;
        // For whoever reads the body.
        parts.extensions.insert(hub.clone());
        Ok(hub)
    }
}

impl FromRequestParts<App> for RefreshingHub {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        genuine_claims(app, parts).await.map(Self)
    }
}
