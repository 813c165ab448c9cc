//! Blocking a hub, and unblocking it so that it can claim again. Only the platform does either, and
//! repeating them changes nothing. A block outlasts the hub's release: its hardware cannot be
//! claimed until the hub is unblocked.

use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_core::audit::Audit;
use hub_identity::authn::user::User;
use hub_protocol::{HubUuid, Timestamp};
use serde_json::{Value, json};

use super::Hubs;
use super::store::{self, BlockState};
use crate::certificates::{self, RevocationReason};

/// Revokes all tokens and certificates of the hub. It can neither claim nor refresh until it is
/// unblocked. Returns the time at which it was blocked.
pub async fn block(hubs: &Hubs, admin: &User, hub_uuid: HubUuid) -> Result<Timestamp> {
    let now = hubs.core.clock.now();
    let mut tx = hubs.core.db.begin().await?;
    let BlockState {
        tenant_uuid,
        blocked_at,
        released_at,
    } = state_of(&mut tx, hub_uuid).await?;
    if let Some(blocked_at) = blocked_at {
        return Ok(blocked_at);
    }
    if released_at.is_some() {
        let message = "this hub was released; block the hub that its hardware is now";
        return Err(Error::conflict("HUB_RELEASED", message));
    }
    store::block(&mut tx, hub_uuid, now).await?;
    let detail = json!({"certificates": certificates::revoke(&mut tx, hub_uuid, RevocationReason::Blocked, now).await?});
    let audit = Audit::new(admin, "hub.block", hub_uuid, now)
        .in_tenant(tenant_uuid)
        .with(detail);
    // Ends a waiting request of the hub.
    hubs.changes.notify_after(&mut tx, hub_uuid);
    tx.commit(audit.changed(Some(state(None)), Some(state(Some(now)))))
        .await?;
    Ok(now)
}

/// Allows the hub to claim again with a new code. It keeps its identity; its earlier tokens stay
/// revoked.
pub async fn unblock(hubs: &Hubs, admin: &User, hub_uuid: HubUuid) -> Result<()> {
    let now = hubs.core.clock.now();
    let mut tx = hubs.core.db.begin().await?;
    let BlockState {
        tenant_uuid,
        blocked_at,
        ..
    } = state_of(&mut tx, hub_uuid).await?;
    if blocked_at.is_none() {
        return Ok(());
    }
    store::unblock(&mut tx, hub_uuid).await?;
    let audit = Audit::new(admin, "hub.unblock", hub_uuid, now).in_tenant(tenant_uuid);
    tx.commit(audit.changed(Some(state(blocked_at)), Some(state(None))))
        .await
}

async fn state_of(tx: &mut Tx, hub_uuid: HubUuid) -> Result<BlockState> {
    store::block_state(tx, hub_uuid)
        .await?
        .ok_or_else(|| Error::not_found("hub"))
}

/// The representation in the audit log.
fn state(blocked_at: Option<Timestamp>) -> Value {
    json!({"blockedAt": blocked_at})
}
