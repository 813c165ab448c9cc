//! Hubs that were away for longer than their refresh token lasts. An operator readmits one: the
//! refresh token that it has works once more, for a while. Tokens that were revoked stay revoked.

use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_core::audit::Audit;
use hub_core::config::Config;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, Timestamp};
use serde_json::json;

use super::store::{self, ExpiringRow};
use super::{Hubs, refresh};
use crate::certificates;

const DAY_SECS: i64 = 24 * 3600;
/// How long a hub may take to come back, and the bounds of what an operator may set.
pub const DEFAULT_SECS: i64 = 7 * DAY_SECS;
pub const LEAST_SECS: i64 = 60;
pub const MOST_SECS: i64 = 90 * DAY_SECS;

/// Lets the hub refresh within this time with the refresh token it has, and get a first certificate
/// again.
pub async fn readmit(
    hubs: &Hubs,
    scope: &Scope,
    hub_uuid: HubUuid,
    valid_for_secs: i64,
) -> Result<()> {
    let now = hubs.core.clock.now();
    let mut tx = hubs.core.db.begin().await?;
    let hub = super::lock(&mut tx, scope, hub_uuid).await?;
    if hub.blocked_at.is_some() {
        let message = "this hub is blocked; a platform administrator has to unblock it, and it is then claimed again";
        return Err(Error::conflict("HUB_BLOCKED", message));
    }
    let stored = store::credentials(&mut tx, hub_uuid).await?;
    let Some(refreshed_at) = stored.and_then(|stored| stored.refreshed_at) else {
        let message = "the tokens of this hub were revoked; claim it again with a claim code";
        return Err(Error::conflict("HUB_WITHOUT_CREDENTIALS", message));
    };
    let until = now.plus_secs(valid_for_secs);
    store::readmit(&mut tx, hub_uuid, until).await?;
    certificates::allow_first(&mut tx, hub_uuid).await?;
    let detail = json!({"lastRefreshAt": refreshed_at, "until": until});
    tx.commit(Audit::new(scope, "hub.readmit", hub_uuid, now).with(detail))
        .await
}

/// A hub whose refresh token expires soon, or has expired.
#[derive(Clone, Debug)]
pub struct Expiring {
    pub hub_uuid: HubUuid,
    pub hub_identifier: Option<String>,
    pub expires_at: Timestamp,
}

/// The tenant's hubs whose refresh tokens expire within `ahead_secs`, up to `limit`. Of a short
/// lifetime, a quarter at most is announced: a hub that is there refreshes earlier.
pub async fn expiring(
    conn: &mut Conn,
    config: &Config,
    scope: &Scope,
    ahead_secs: i64,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<Expiring>> {
    let lifetime_secs = config.hub_refresh_lifetime.as_secs().cast_signed();
    let before = now.plus_secs(ahead_secs.min(lifetime_secs / 4));
    let refreshed_before = before.plus_secs(-lifetime_secs);
    let rows = store::expiring(conn, scope, refreshed_before, before, limit).await?;
    let expiring = |row: ExpiringRow| {
        let until = row.readmitted_until;
        refresh::expires_at(config, Some(row.refreshed_at), until).map(|expires_at| Expiring {
            hub_uuid: row.hub_uuid,
            hub_identifier: row.hub_identifier,
            expires_at,
        })
    };
    Ok(rows.into_iter().filter_map(expiring).collect())
}
