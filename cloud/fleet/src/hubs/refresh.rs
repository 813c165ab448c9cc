//! Token refresh: a hub exchanges its access token for a new one.

use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_core::audit::Audit;
use hub_identity::authn;
use hub_identity::authn::hub::{self, Hub, HubClaims};
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;
use hub_protocol::claim::{HubAccess, HubRefreshRequest};
use uuid::Uuid;

use super::store::Credentials;
use super::{Hubs, blocked, refreshes, store};

/// Issues an access token that replaces the current one, which is refused from then on.
///
/// The valid refresh token is always required. The hub also presents an access token, expired or
/// not, which must be one that it may hold. Responses get lost, so that is not only the newest
/// token: the hub certainly holds the last token it *presented*, and may hold any token issued
/// since. All of these are accepted, regardless of how many responses in a row were lost and in
/// which order late requests arrive. A token older than the last presented one is refused: the hub
/// has replaced it, so somebody else presents it. The ids of a hub's tokens increase (see
/// [`next_token_id`]), which makes "since" a comparison.
pub async fn refresh(
    hubs: &Hubs,
    claims: &HubClaims,
    request: &HubRefreshRequest,
) -> Result<HubAccess> {
    let now = hubs.core.clock.now();
    let hub_uuid = claims.hub_uuid;
    // A request that will be refused neither counts nor begins a transaction.
    let mut conn = hubs.core.db.read().await?;
    check(
        store::credentials(&mut conn, hub_uuid).await?,
        claims,
        request,
        now,
    )?;
    let per_hour = refreshes::per_hour(&hubs.core.config);
    refreshes::require_allowance(&mut conn, hub_uuid, per_hour, now).await?;
    drop(conn);
    let _turn = hubs.core.turns.refreshes.take(hub_uuid.0).await?;
    let _permit = hubs.permits.acquire().await?;
    let mut tx = hubs.core.db.begin().await?;
    let (stored, newest) = check(
        store::lock_credentials(&mut tx, hub_uuid).await?,
        claims,
        request,
        now,
    )?;
    let token_id = next_token_id(newest);
    let (access_token, expires_at) =
        hub::issue(&hubs.authn, hub_uuid, stored.tenant_uuid, token_id, now)?;
    let refresh_expires_at = now.plus_secs(
        hubs.core
            .config
            .hub_refresh_lifetime
            .as_secs()
            .cast_signed(),
    );
    store::replace_token(
        &mut tx,
        hub_uuid,
        token_id,
        claims.jti,
        refresh_expires_at,
        now,
    )
    .await?;
    let hub = Hub {
        hub_uuid,
        tenant_uuid: stored.tenant_uuid,
        token_id,
    };
    let has_entry = refreshes::count(&mut tx, &hub, per_hour, now).await?;
    // Ends a waiting request that uses the replaced token.
    hubs.changes.notify_after(&mut tx, hub_uuid);
    match has_entry {
        true => {
            tx.commit(Audit::new(
                &Scope::of_hub(&hub),
                "hub.refresh",
                hub_uuid,
                now,
            ))
            .await?
        }
        false => {
            tx.commit_unaudited("counted, and stated in an entry when the day is over")
                .await?
        }
    }
    Ok(HubAccess {
        hub_uuid,
        access_token,
        expires_at,
    })
}

/// Whether the hub may refresh. Returns its credentials and the id of its newest access token.
fn check(
    stored: Option<Credentials>,
    claims: &HubClaims,
    request: &HubRefreshRequest,
    now: Timestamp,
) -> Result<(Credentials, Uuid)> {
    let stored = stored.ok_or_else(authn::invalid_token)?;
    if stored.blocked_at.is_some() {
        return Err(blocked(axum::http::StatusCode::FORBIDDEN));
    }
    let Some(newest) = stored.access_token_id else {
        return Err(Error::forbidden(
            "TOKEN_REVOKED",
            "the hub's tokens have been revoked; claim it again",
        ));
    };
    let oldest = stored.shown_access_token_id.unwrap_or(newest);
    if claims.tenant_uuid != stored.tenant_uuid || !(oldest..=newest).contains(&claims.jti) {
        return Err(authn::invalid_token());
    }
    // Both sides are hashes, so the duration of the comparison reveals nothing about the token.
    let matches = stored.refresh_token_hash.as_deref()
        == Some(sealing::hash(&request.refresh_token).as_slice());
    if !matches || stored.refresh_expires_at.is_none_or(|at| at <= now) {
        return Err(Error::unauthorized(
            "INVALID_REFRESH_TOKEN",
            "invalid refresh token; claim the hub again",
        ));
    }
    Ok((stored, newest))
}

/// An id above `newest`, even if this machine's clock is behind that of the issuer of `newest`.
fn next_token_id(newest: Uuid) -> Uuid {
    Uuid::now_v7().max(Uuid::from_u128(newest.as_u128().wrapping_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_ids_increase_even_if_the_clock_does_not() {
        let ahead = Uuid::from_u128(Uuid::now_v7().as_u128() + (3_600_000 << 80));
        let next = next_token_id(ahead);
        assert!(next > ahead && next_token_id(next) > next);
        let now = Uuid::now_v7();
        assert!(next_token_id(now) > now);
    }
}
