//! How jobs get to a hub: with its desired state. That a hub is given a job is noted without a new revision, or the hub would ask for ever.

use hub_protocol::HubUuid;
use hub_protocol::job::DesiredJob;

use super::{HubJob, MAX_OPEN, store};
use crate::app::App;
use crate::domain::hubs;
use crate::error::Result;

/// A hub that was given a job is trusted to be at it for so long; it has said something by then, or is given the job again as soon as it asks.
pub(super) const LEASE_SECS: i64 = 60;

/// What the hub is still to do, oldest first. What is handed out for the first time counts as an attempt, and so does what is handed out again after a
/// silence: the first in line, since a hub says nothing about a job that waits behind another. Of several requests of the hub at once, one counts it.
pub async fn hand_out(app: &App, hub_uuid: HubUuid) -> Result<Vec<DesiredJob>> {
    let now = app.clock.now();
    let mut conn = app.db.read().await?;
    let open = store::open(&mut conn, hub_uuid, now, MAX_OPEN).await?;
    drop(conn);
    let is_due = |(place, job): (usize, &HubJob)| job.leased_until.is_none_or(|until| place == 0 && until <= now);
    if !open.iter().enumerate().any(is_due) {
        return Ok(open.iter().map(HubJob::desired).collect());
    }
    let mut tx = app.db.begin().await?;
    // What is cancelled before this is not handed out, what is cancelled after it was.
    hubs::lock_any(&mut tx, hub_uuid).await?;
    store::dispatch(&mut tx, hub_uuid, now, now.plus_secs(LEASE_SECS)).await?;
    let open = store::open(&mut tx, hub_uuid, now, MAX_OPEN).await?;
    tx.commit_unaudited("a hub is told of what somebody else decided").await?;
    Ok(open.iter().map(HubJob::desired).collect())
}
