//! Token refresh: a hub exchanges its access token for a new one. Its refresh token is the proof,
//! and lasts for `hub-refresh-lifetime` after each use, by the setting in force at the next.

use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_core::audit::Audit;
use hub_core::config::Config;
use hub_core::http::check::Check;
use hub_identity::authn;
use hub_identity::authn::hub::{self, Hub, HubClaims};
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;
use hub_protocol::claim::{HubAccess, HubRefreshRequest};
use uuid::Uuid;

use super::store::{Credentials, Shown};
use super::{Hubs, blocked, clones, refreshes, store};

/// The longest id of a boot.
const MAX_BOOT_ID_CHARS: usize = 64;

/// Issues an access token that replaces the current one, which is refused from then on.
///
/// The valid refresh token is always required. The hub also presents an access token, which names
/// it: any that it was ever issued, expired or not. Responses get lost, and a hub whose disk lost
/// writes, or whose image was restored, holds an old token. Whether a second machine has the
/// credentials is recognised by the tokens that are shown ([`clones`]): the ids of a hub's tokens
/// increase (see [`next_token_id`]).
pub async fn refresh(
    hubs: &Hubs,
    claims: &HubClaims,
    request: &HubRefreshRequest,
) -> Result<HubAccess> {
    let mut request_check = Check::new();
    request_check.line("bootId", request.boot_id.as_deref(), MAX_BOOT_ID_CHARS);
    request_check.done()?;
    let now = hubs.core.clock.now();
    let hub_uuid = claims.hub_uuid;
    let config = &hubs.core.config;
    // A request that will be refused neither counts nor begins a transaction.
    let mut conn = hubs.core.db.read().await?;
    check(
        config,
        store::credentials(&mut conn, hub_uuid).await?,
        claims,
        request,
        now,
    )?;
    let per_hour = refreshes::per_hour(config);
    refreshes::require_allowance(&mut conn, hub_uuid, per_hour, now).await?;
    drop(conn);
    let _turn = hubs.core.turns.refreshes.take(hub_uuid.0).await?;
    let _permit = hubs.permits.acquire().await?;
    let mut tx = hubs.core.db.begin().await?;
    let (stored, newest) = check(
        config,
        store::lock_credentials(&mut tx, hub_uuid).await?,
        claims,
        request,
        now,
    )?;
    // The token is newer than all others where the service's database was restored.
    let token_id = next_token_id(newest.max(claims.jti));
    let (access_token, expires_at) =
        hub::issue(&hubs.authn, hub_uuid, stored.tenant_uuid, token_id, now)?;
    let shown = Shown {
        token_id: claims.jti,
        after: clones::shown_after(&stored, claims.jti, newest),
    };
    store::replace_token(&mut tx, hub_uuid, token_id, shown, now).await?;
    store::note_contact(&mut tx, stored.tenant_uuid, hub_uuid, now).await?;
    let is_other_branch = clones::is_of_other_branch(&stored, claims.jti);
    let boot_id = request.boot_id.as_deref();
    clones::note_refresh(&mut tx, hub_uuid, boot_id, is_other_branch, now).await?;
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

/// When the refresh token of a hub expires; None without one.
pub fn expires_at(
    config: &Config,
    refreshed_at: Option<Timestamp>,
    readmitted_until: Option<Timestamp>,
) -> Option<Timestamp> {
    let lifetime_secs = config.hub_refresh_lifetime.as_secs().cast_signed();
    let expires_at = refreshed_at?.plus_secs(lifetime_secs);
    Some(readmitted_until.map_or(expires_at, |until| until.max(expires_at)))
}

/// Whether the hub may refresh. Returns its credentials and the id of its newest access token.
fn check(
    config: &Config,
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
    if claims.tenant_uuid != stored.tenant_uuid {
        return Err(authn::invalid_token());
    }
    // Both sides are hashes, so the duration of the comparison reveals nothing about the token.
    let matches = stored.refresh_token_hash.as_deref()
        == Some(sealing::hash(&request.refresh_token).as_slice());
    if !matches {
        return Err(Error::unauthorized(
            "INVALID_REFRESH_TOKEN",
            "invalid refresh token; claim the hub again",
        ));
    }
    let expires_at = expires_at(config, stored.refreshed_at, stored.readmitted_until);
    if expires_at.is_none_or(|at| at <= now) {
        return Err(Error::unauthorized(
            "INVALID_REFRESH_TOKEN",
            "the refresh token was not used for too long; have the hub readmitted \
             (POST /tenant/hubs/{hubUuid}/readmit), or claim it again",
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
