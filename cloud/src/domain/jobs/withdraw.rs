//! Taking back what an update policy made: jobs that no hub was given yet.

use hub_protocol::{HubUuid, ReleaseUuid, Timestamp};
use uuid::Uuid;

use super::store;
use crate::db::Tx;
use crate::domain::hubs;
use crate::error::Result;

/// Cancels jobs that a policy made, for a release or for all, and that no hub was given yet: of up to `limit` hubs, which the caller keeps to some hundreds. Answers whose
/// desired state changed; call [`hubs::desired::changed`] for them after the commit. The caller writes the audit entry, one for all.
pub async fn withdraw(
    tx: &mut Tx,
    policy_uuid: Uuid,
    release_uuid: Option<ReleaseUuid>,
    because: &str,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<HubUuid>> {
    let waiting = store::waiting_of_policy(tx, policy_uuid, release_uuid, limit).await?;
    if waiting.is_empty() {
        return Ok(waiting);
    }
    hubs::lock_all(tx, &waiting).await?;
    // A hub that was given its job before it was locked keeps it.
    let cancelled = store::cancel_of_policy(tx, policy_uuid, release_uuid, &waiting, because, now).await?;
    hubs::desired::bump_all(tx, &cancelled).await?;
    Ok(cancelled)
}
