//! Withdrawal of jobs that update policies created.

use hub_base::db::Tx;
use hub_base::error::Result;
use hub_protocol::job::MaintenanceWindow;
use hub_protocol::{HubUuid, ReleaseUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use super::store;
use crate::hubs::{self, Changes};

/// Selects jobs that update policies created. Unless stated otherwise, only those that were not
/// dispatched yet.
#[derive(Clone, Debug)]
pub enum Selection {
    /// Jobs of any policy, for a hub.
    OfHub(HubUuid),
    /// Jobs of a policy.
    OfPolicy(Uuid),
    /// Jobs of a policy, for the hubs of a tenant.
    OfTenant(Uuid, TenantUuid),
    /// Jobs of a policy, to any of these releases.
    To(Uuid, Vec<ReleaseUuid>),
    /// Like `To`, including dispatched jobs that are not finished: a hub that has only prepared the
    /// update drops it, one that has started to change itself continues.
    OpenTo(Uuid, Vec<ReleaseUuid>),
    /// Jobs of a policy, with another window than this.
    OutsideOf(Uuid, Option<MaintenanceWindow>),
    /// Jobs of a policy, for hubs that have one of their own.
    OverriddenByHub(Uuid),
    /// Jobs of a policy, for hubs of tenants that have one of their own.
    OverriddenByUnit(Uuid),
}

/// The jobs to withdraw, and the reason.
#[derive(Clone, Debug)]
pub struct Withdrawal {
    pub selection: Selection,
    pub reason: &'static str,
}

/// Cancels the selected jobs of up to `limit` hubs (the caller keeps it to some hundreds). The hubs
/// are locked in the common lock order, so a transaction must call this before it locks any other
/// hub. Returns the hubs whose desired state changed. The caller writes a single audit entry.
pub async fn withdraw(
    tx: &mut Tx,
    changes: &Changes,
    withdrawals: &[Withdrawal],
    limit: i64,
    now: Timestamp,
) -> Result<Vec<HubUuid>> {
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
        // A job that was dispatched before its hub was locked is kept.
        cancelled.extend(store::cancel_of_policies(tx, withdrawal, &hubs, now).await?);
    }
    cancelled.sort_unstable();
    cancelled.dedup();
    changes.bump_all(tx, &cancelled).await?;
    Ok(cancelled)
}
