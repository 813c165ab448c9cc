//! Taking back what update policies made: jobs that no hub was given yet.

use hub_protocol::{HubUuid, ReleaseUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use super::store;
use crate::db::Tx;
use crate::domain::hubs;
use crate::error::Result;

/// Jobs that update policies made: those that are all that is given here.
#[derive(Clone, Copy, Debug, Default)]
pub struct MadeByPolicy {
    pub policy_uuid: Option<Uuid>,
    pub release_uuid: Option<ReleaseUuid>,
    pub tenant_uuid: Option<TenantUuid>,
    pub hub_uuid: Option<HubUuid>,
}

/// Cancels such jobs that no hub was given yet: those of up to `limit` hubs, which the caller keeps to some hundreds. Answers whose desired state changed; call
/// [`hubs::desired::changed`] for them after the commit. The caller writes the audit entry, one for all.
pub async fn withdraw(
    tx: &mut Tx,
    made: MadeByPolicy,
    because: &str,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<HubUuid>> {
    let waiting = store::waiting_of_policies(tx, made, limit).await?;
    if waiting.is_empty() {
        return Ok(waiting);
    }
    hubs::lock_all(tx, &waiting).await?;
    // A hub that was given its job before it was locked keeps it.
    let cancelled = store::cancel_of_policies(tx, made, &waiting, because, now).await?;
    hubs::desired::bump_all(tx, &cancelled).await?;
    Ok(cancelled)
}
