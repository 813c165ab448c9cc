//! Taking back what update policies made.

use hub_protocol::job::MaintenanceWindow;
use hub_protocol::{HubUuid, ReleaseUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use super::store;
use crate::db::Tx;
use crate::domain::hubs;
use crate::error::Result;

/// Jobs that update policies made. Unless it says otherwise, only those that no hub was given yet.
#[derive(Clone, Debug)]
pub enum Which {
    /// Of any policy, for a hub.
    OfHub(HubUuid),
    /// Of a policy.
    OfPolicy(Uuid),
    /// Of a policy, for the hubs of a tenant.
    OfTenant(Uuid, TenantUuid),
    /// Of a policy, to any of these releases.
    To(Uuid, Vec<ReleaseUuid>),
    /// The same, also those that hubs were given and have not ended: a hub that has only prepared for it drops it, one that has begun to change itself goes on.
    OpenTo(Uuid, Vec<ReleaseUuid>),
    /// Of a policy, with another window than this one.
    OutsideOf(Uuid, Option<MaintenanceWindow>),
    /// Of a policy, for hubs that have one of their own.
    OverruledByHub(Uuid),
    /// Of a policy, for hubs of tenants that have one of their own.
    OverruledByUnit(Uuid),
}

/// What is taken back, and why.
#[derive(Clone, Debug)]
pub struct Withdrawal {
    pub which: Which,
    pub because: &'static str,
}

/// Cancels such jobs: those of up to `limit` hubs, which the caller keeps to some hundreds. The hubs are locked in the order in which everybody locks them, so a
/// transaction does this before it locks any other. Answers whose desired state changed; call [`hubs::desired::changed`] for them after the commit. The caller
/// writes the audit entry, one for all.
pub async fn withdraw(tx: &mut Tx, withdrawals: &[Withdrawal], limit: i64, now: Timestamp) -> Result<Vec<HubUuid>> {
    if withdrawals.is_empty() {
        return Ok(Vec::new());
    }
    let hubs = store::hubs_to_withdraw_from(tx, withdrawals, limit).await?;
    if hubs.is_empty() {
        return Ok(hubs);
    }
    hubs::lock_all(tx, &hubs).await?;
    let mut cancelled = Vec::new();
    for withdrawal in withdrawals {
        // A hub that was given its job before it was locked keeps it.
        cancelled.extend(store::cancel_of_policies(tx, withdrawal, &hubs, now).await?);
    }
    cancelled.sort_unstable();
    cancelled.dedup();
    hubs::desired::bump_all(tx, &cancelled).await?;
    Ok(cancelled)
}
