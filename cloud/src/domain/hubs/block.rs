//! Blocking a hub, and unblocking it so that it can claim again. Only the platform does either, and
//! repeating them changes nothing. Deleting a tenant also revokes its hubs' tokens.

use hub_protocol::{HubUuid, Timestamp};
use serde_json::{Value, json};

use super::{Hubs, store};
use crate::audit::Audit;
use crate::authn::user::User;
use crate::authz::Scope;
use crate::db::Tx;
use crate::domain::certificates::{self, RevocationReason};
use crate::error::{Error, Result};

/// Revokes all tokens and certificates of the hub. It can neither claim nor refresh until it is
/// unblocked. Returns the time at which it was blocked.
pub async fn block(hubs: &Hubs, admin: &User, hub_uuid: HubUuid) -> Result<Timestamp> {
    let now = hubs.core.clock.now();
    let mut tx = hubs.core.db.begin().await?;
    let (tenant_uuid, blocked_at) =
        store::block_state(&mut tx, hub_uuid).await?.ok_or_else(|| Error::not_found("hub"))?;
    if let Some(blocked_at) = blocked_at {
        return Ok(blocked_at);
    }
    store::block(&mut tx, hub_uuid, now).await?;
    let detail =
        json!({"certificates": certificates::revoke(&mut tx, hub_uuid, RevocationReason::Blocked, now).await?});
    let audit = Audit::new(admin, "hub.block", hub_uuid, now).in_tenant(tenant_uuid).with(detail);
    // Ends a waiting request of the hub.
    hubs.changes.notify_after(&mut tx, hub_uuid);
    tx.commit(audit.changed(Some(state(None)), Some(state(Some(now))))).await?;
    Ok(now)
}

/// Allows the hub to claim again with a new code. It keeps its identity; its earlier tokens stay
/// revoked.
pub async fn unblock(hubs: &Hubs, admin: &User, hub_uuid: HubUuid) -> Result<()> {
    let now = hubs.core.clock.now();
    let mut tx = hubs.core.db.begin().await?;
    let (tenant_uuid, blocked_at) =
        store::block_state(&mut tx, hub_uuid).await?.ok_or_else(|| Error::not_found("hub"))?;
    if blocked_at.is_none() {
        return Ok(());
    }
    store::unblock(&mut tx, hub_uuid).await?;
    let audit = Audit::new(admin, "hub.unblock", hub_uuid, now).in_tenant(tenant_uuid);
    tx.commit(audit.changed(Some(state(blocked_at)), Some(state(None)))).await
}

/// The representation in the audit log.
fn state(blocked_at: Option<Timestamp>) -> Value {
    json!({"blockedAt": blocked_at})
}

/// Revokes the tokens of all hubs of a tenant that is being deleted, and returns the number of
/// hubs. Their waiting requests find out by polling, and end.
pub async fn revoke_all(tx: &mut Tx, scope: &Scope) -> Result<u64> {
    store::revoke_all(tx, scope).await
}
