//! A hub trades its access token for a fresh one.

use hub_protocol::claim::{HubAccess, HubRefreshRequest};
use uuid::Uuid;

use super::{blocked, desired, store};
use crate::app::App;
use crate::authn;
use crate::authn::hub::{self, Hub, HubClaims};
use crate::authz::Scope;
use crate::domain::audit::Audit;
use crate::error::{Error, Result};
use crate::sealing;

/// Issues an access token in place of the one in force, which is refused at once.
///
/// The right refresh token is asked for always. Beside it the hub shows an access token, expired or not, which must be one that the hub may
/// truly be holding. Answers get lost, so that is not the newest alone: the last token a hub has *shown* it surely holds, and every
/// token issued since may or may not have reached it. All of these are accepted, however many answers in a row were lost and in whatever order late
/// requests arrive. A token older than the one last shown is refused: the hub has moved on from it, so whoever shows it is somebody else.
/// Token ids grow with each one issued to a hub (see [`next_token_id`]), which makes "since" a comparison.
pub async fn refresh(app: &App, claims: &HubClaims, request: &HubRefreshRequest) -> Result<HubAccess> {
    let _turn = app.credential_turns.next().await?;
    let now = app.clock.now();
    let hub_uuid = claims.hub_uuid;
    let mut tx = app.db.begin().await?;
    let held = store::credentials(&mut tx, hub_uuid).await?.ok_or_else(authn::invalid_token)?;
    if held.blocked_at.is_some() {
        return Err(blocked(axum::http::StatusCode::FORBIDDEN));
    }
    let Some(newest) = held.access_token_id else {
        return Err(Error::forbidden("TOKEN_REVOKED", "the hub's tokens have been revoked; claim it again"));
    };
    let oldest = held.shown_access_token_id.unwrap_or(newest);
    if claims.tenant_uuid != held.tenant_uuid || !(oldest..=newest).contains(&claims.jti) {
        return Err(authn::invalid_token());
    }
    // Both sides are hashes, so the time a comparison takes tells nothing about the token.
    let matches = held.refresh_token_hash.as_deref() == Some(sealing::hash(&request.refresh_token).as_slice());
    if !matches || held.refresh_expires_at.is_none_or(|at| at <= now) {
        return Err(Error::unauthorized("INVALID_REFRESH_TOKEN", "invalid refresh token; claim the hub again"));
    }
    let token_id = next_token_id(newest);
    let (access_token, expires_at) = hub::issue(app, hub_uuid, held.tenant_uuid, token_id, now)?;
    let refresh_expires_at = now.plus_secs(app.config.hub_refresh_lifetime.as_secs().cast_signed());
    store::replace_token(&mut tx, hub_uuid, token_id, claims.jti, refresh_expires_at, now).await?;
    let scope = Scope::of_hub(&Hub { hub_uuid, tenant_uuid: held.tenant_uuid, token_id });
    tx.commit(Audit::new(&scope, "hub.refresh", hub_uuid, now)).await?;
    // A request that waits under the token that was replaced ends.
    desired::changed(app, hub_uuid).await;
    Ok(HubAccess { hub_uuid, access_token, expires_at })
}

/// An id above `newest`, also where this machine's clock is behind that of the one that issued `newest`.
fn next_token_id(newest: Uuid) -> Uuid {
    Uuid::now_v7().max(Uuid::from_u128(newest.as_u128().wrapping_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_ids_grow_whatever_the_clock_says() {
        let ahead = Uuid::from_u128(Uuid::now_v7().as_u128() + (3_600_000 << 80));
        let next = next_token_id(ahead);
        assert!(next > ahead && next_token_id(next) > next);
        let now = Uuid::now_v7();
        assert!(next_token_id(now) > now);
    }
}
