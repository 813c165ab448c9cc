//! Dispatch of jobs to a hub, as part of its desired state. Recording a dispatch does not create a
//! new revision; otherwise the hub would poll in an endless loop.

use hub_base::error::Result;
use hub_core::Core;
use hub_protocol::HubUuid;
use hub_protocol::job::DesiredJob;

use super::{HubJob, MAX_OPEN, moves, store};
use crate::hubs;

/// Lease of a dispatched job. The hub reports on the job within this time, or gets it again with
/// its next poll.
pub(super) const LEASE_SECS: i64 = 60;

/// The open jobs of the hub, oldest first. The first dispatch of a job counts as an attempt. So
/// does another dispatch of the first job in line after its lease expired without a report; jobs
/// behind it do not count, since a hub reports nothing about a job that still waits. Of several
/// concurrent requests of the hub, one counts the attempt.
pub async fn dispatch(core: &Core, hub_uuid: HubUuid) -> Result<Vec<DesiredJob>> {
    let now = core.clock.now();
    let mut conn = core.db.read().await?;
    let open = store::open(&mut conn, hub_uuid, now, MAX_OPEN).await?;
    drop(conn);
    let is_due = |(place, job): (usize, &HubJob)| {
        job.leased_until
            .is_none_or(|until| place == 0 && until <= now)
    };
    if !open.iter().enumerate().any(is_due) {
        return open
            .iter()
            .map(|job| moves::dispatched(core, job))
            .collect();
    }
    let mut tx = core.db.begin().await?;
    // A job that is cancelled before this lock is not dispatched; one that is cancelled later was.
    if hubs::find_and_lock(&mut tx, hub_uuid).await?.is_none() {
        // The hub was released a moment ago, and its jobs with it.
        return Ok(Vec::new());
    }
    store::dispatch(&mut tx, hub_uuid, now, now.plus_secs(LEASE_SECS)).await?;
    let open = store::open(&mut tx, hub_uuid, now, MAX_OPEN).await?;
    tx.commit_unaudited("dispatches jobs whose creation was audited")
        .await?;
    open.iter()
        .map(|job| moves::dispatched(core, job))
        .collect()
}
