//! The background task of the history. It may end anywhere, and any replica continues: what is to
//! be done is read from the tables.

use std::time::{Duration, Instant};

use hub_base::error::Result;
use hub_core::Core;
use hub_core::pace::Pace;
use hub_core::tasks::Done;
use hub_protocol::Timestamp;
use uuid::Uuid;

use super::close::{clear, close, remove_files};
use crate::kinds::Kind;
use crate::retention::{BLE_EVENTS, holders};

/// The lane, and the kind of task.
pub const LANE: &str = "history";
/// The time after which other tasks of the lane are served.
const RUN_TIME: Duration = Duration::from_secs(45);
/// The pause after a run that has found nothing more.
const PAUSE_SECS: i64 = 600;
/// The rest after a batch while no upload runs, as a multiple of the batch's duration.
const IDLE_REST: f64 = 0.5;
/// Tenants that one query reads.
const TENANTS: i64 = 100;

/// Moves days that ended long enough ago to files, and deletes what is in files by now.
pub async fn perform(core: &Core) -> Result<Done> {
    let ends_at = Instant::now() + RUN_TIME;
    let is_over = || core.shutdown.is_cancelled() || Instant::now() >= ends_at;
    let mut pace = pace(core);
    let closed = close_all(core, &mut pace, is_over).await;
    // What is in files already does not wait for the store.
    let is_cleared = clear(core, &mut pace, is_over).await?;
    let closed = closed?;
    let is_done = remove_files(core, is_over).await? && closed != Closed::Partly && is_cleared;
    let is_behind = closed != Closed::Everything;
    core.metrics.history_behind.set(i64::from(is_behind));
    let pause_secs = if is_done { PAUSE_SECS } else { 0 };
    Ok(Done::RunAt(core.clock.now().plus_secs(pause_secs)))
}

/// The pace of moving events beside ingest.
pub fn pace(core: &Core) -> Pace {
    let duration = core.metrics.history_batch_duration.clone();
    Pace::new(core, IDLE_REST, duration)
}

/// What a run has moved of what was to be moved.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Closed {
    Everything,
    /// All but the events of tenants whose events cannot be moved.
    EverythingPossible,
    /// The time was over, or events changed meanwhile.
    Partly,
}

/// Moves the events of all tenants. The scan begins at a random tenant, so that one with much to
/// move does not delay others.
async fn close_all(
    core: &Core,
    pace: &mut Pace,
    is_over: impl Fn() -> bool + Copy,
) -> Result<Closed> {
    let Some(before) = core.config.history_after.map(|after| {
        let after_secs = i64::try_from(after.as_secs()).unwrap_or(i64::MAX);
        core.clock.now().plus_secs(-after_secs)
    }) else {
        return Ok(Closed::Everything);
    };
    let start = Uuid::new_v4();
    let (mut after, mut has_wrapped, mut closed) = (start, false, Closed::Everything);
    loop {
        let mut conn = core.db.read().await?;
        let tenants = holders(&mut conn, Kind::BleEvents, BLE_EVENTS, after, TENANTS).await?;
        drop(conn);
        for tenant in &tenants {
            if has_wrapped && tenant.tenant_uuid.0 > start {
                return Ok(closed);
            }
            let tenant_uuid = tenant.tenant_uuid;
            after = tenant_uuid.0;
            let received_before = |id: i64| Timestamp::from_micros(id) < before;
            if tenant.oldest_id.is_some_and(received_before) {
                match close(core, tenant_uuid, before, pace, is_over).await {
                    Ok(true) => {}
                    Ok(false) => closed = Closed::Partly,
                    // The database or the store fails all tenants.
                    Err(error) if !error.is_internal() => return Err(error),
                    Err(error) => {
                        tracing::error!(%tenant_uuid, %error, "a tenant's events stay in the database: they cannot be moved to files");
                        closed = closed.max(Closed::EverythingPossible);
                    }
                }
            }
            if is_over() {
                return Ok(Closed::Partly);
            }
        }
        if tenants.is_empty() {
            if has_wrapped {
                return Ok(closed);
            }
            (after, has_wrapped) = (Uuid::nil(), true);
        }
    }
}
