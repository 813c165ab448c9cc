//! Releasing hubs: their credentials end and their hardware is free, so that anyone with a claim
//! code can claim it, as another hub. The released hub's row stays, since its records belong to it.
//! `hub_composed::hub_release` releases a hub with everything that depends on it.

use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, Timestamp};
use serde_json::{Value, json};

use super::Changes;
pub use super::store::release_all;
use super::store::{self, Releasable};
use crate::certificates::{self, RevocationReason};

/// A hub that the transaction releases.
pub struct Released {
    pub before: Releasable,
    /// The number of revoked certificates.
    pub certificates: u64,
}

impl Releasable {
    /// The representation in the audit log.
    pub fn state(&self) -> Value {
        json!({
            "deviceInstanceId": self.device_instance_id,
            "hubIdentifier": self.hub_identifier,
            "ownerUserUuid": self.owner_user_uuid,
            "blockedAt": self.blocked_at,
        })
    }
}

/// Locks the hub and releases it; without a scope, whichever tenant it belongs to. The inner error
/// is when it was released before. Fails with 404 if there is no such hub.
pub async fn release(
    tx: &mut Tx,
    changes: &Changes,
    scope: Option<&Scope>,
    hub_uuid: HubUuid,
    now: Timestamp,
) -> Result<Result<Released, Timestamp>> {
    let before = store::lock_releasable(tx, scope, hub_uuid)
        .await?
        .ok_or_else(|| Error::not_found("hub"))?;
    if let Some(released_at) = before.released_at {
        return Ok(Err(released_at));
    }
    store::release(tx, hub_uuid, now).await?;
    store::adapters::delete_all(tx, hub_uuid).await?;
    store::clones::forget_appearances(tx, hub_uuid).await?;
    let certificates = certificates::revoke(tx, hub_uuid, RevocationReason::Released, now).await?;
    // Ends a waiting request of the hub.
    changes.notify_after(tx, hub_uuid);
    Ok(Ok(Released {
        before,
        certificates,
    }))
}
