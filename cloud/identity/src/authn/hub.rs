//! Hub tokens: a signed JWT that names the hub, its tenant and its own id. A hub has one token in
//! force, whose id is stored in the hub's row. Every request is checked against that row, so a
//! replaced or revoked token is refused from the next request on.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use futures_util::future::BoxFuture;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::extract::path_parameter;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use super::bearer::{bearer, invalid_token};
use super::claims::{HUBS as AUDIENCE, ISSUER};
use super::client_certificate::CertificateInfo;
use super::{Authn, client_certificate, store};

pub use super::claims::HubClaims;

impl Hub {
    /// Returns 401 if the token was replaced or revoked.
    pub async fn require_in_force(&self, core: &Core) -> Result<()> {
        let mut conn = core.db.read().await?;
        match store::hub_token_in_force(&mut conn, self.hub_uuid).await? {
            Some(token_id) if token_id == self.token_id => Ok(()),
            _ => Err(invalid_token()),
        }
    }
}

/// A hub whose token is in force. If the service requires client certificates, it presented its
/// own.
#[derive(Clone, Debug)]
pub struct Hub {
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
    pub token_id: Uuid,
}

/// A hub whose token is genuine and not expired. Whether the token is still in force is checked
/// when the upload is committed, for all uploads of that commit together.
#[derive(Clone, Debug)]
pub struct UploadingHub(pub Hub);

/// As [`Hub`], with or without a client certificate: for the paths by which a hub gets one.
#[derive(Clone, Debug)]
pub struct EnrollingHub {
    pub hub: Hub,
    /// What the hub presented, good or not.
    pub certificate: Option<Arc<CertificateInfo>>,
}

/// A hub that requests a new token. The token it presents is genuine, but may have expired or been
/// replaced; the refresh checks that itself.
#[derive(Clone, Debug)]
pub struct RefreshingHub(pub HubClaims);

/// Issues a token with the id `token_id` and returns it with its expiry.
pub fn issue(
    authn: &Authn,
    hub_uuid: HubUuid,
    tenant_uuid: TenantUuid,
    token_id: Uuid,
    now: Timestamp,
) -> Result<(String, Timestamp)> {
    let lifetime_secs = authn.core.config.hub_token_lifetime.as_secs().cast_signed();
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
    Ok((authn.keys.sign(&claims, now)?, expires_at))
}

/// Checks that the bearer token was issued by this service to a hub and has not expired. A hub
/// named by the path must be the token's own.
fn unexpired<'a>(parts: &'a mut Parts, authn: &'a Authn) -> BoxFuture<'a, Result<Hub>> {
    Box::pin(async move {
        let now = authn.core.clock.now();
        let claims = authn
            .keys
            .verify_hub(&authn.core.db, now, bearer(&parts.headers)?)
            .await?;
        if claims.exp <= now.as_secs() {
            return Err(invalid_token());
        }
        check_path(parts, authn, claims.hub_uuid).await?;
        Ok(Hub {
            hub_uuid: claims.hub_uuid,
            tenant_uuid: claims.tenant_uuid,
            token_id: claims.jti,
        })
    })
}

/// A hub acts only for itself: `{hubUuid}` in a path must be the token's own.
async fn check_path(parts: &mut Parts, authn: &Authn, hub_uuid: HubUuid) -> Result<()> {
    let Some(value) = path_parameter(parts, authn, "hubUuid").await? else {
        return Ok(());
    };
    match value.parse::<HubUuid>() {
        Ok(named) if named == hub_uuid => Ok(()),
        Ok(_) => Err(Error::forbidden(
            "OTHER_HUB",
            "the access token belongs to another hub than the path names",
        )),
        Err(_) => Err(Error::field("hubUuid", "must be a uuid")),
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Hub
where
    Authn: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let authn = &Authn::from_ref(state);
        // Boxed, since the request may wait for a long time after this and would hold the future.
        let EnrollingHub { hub, .. } =
            Box::pin(EnrollingHub::from_request_parts(parts, state)).await?;
        Box::pin(client_certificate::check(parts, &authn.core, hub.hub_uuid)).await?;
        Ok(hub)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for EnrollingHub
where
    Authn: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let authn = &Authn::from_ref(state);
        let hub = unexpired(parts, authn).await?;
        hub.require_in_force(&authn.core).await?;
        Ok(Self {
            hub,
            certificate: client_certificate::presented(parts),
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for UploadingHub
where
    Authn: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let authn = &Authn::from_ref(state);
        let hub = Self(unexpired(parts, authn).await?);
        client_certificate::check(parts, &authn.core, hub.0.hub_uuid).await?;
        Ok(hub)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RefreshingHub
where
    Authn: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let authn = &Authn::from_ref(state);
        let (now, token) = (authn.core.clock.now(), bearer(&parts.headers)?);
        let claims = authn
            .keys
            .verify_refreshing_hub(&authn.core.db, now, token)
            .await?;
        Ok(Self(claims))
    }
}
