//! Closing days: events move from the database to files. Whoever does it may be killed at any
//! point, and two replicas may do it at once: a file counts when the database says so, and that is
//! one transaction, which finds the rows as they were read.

use std::time::Duration;

use hub_base::db::sql;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::pace::{Held, Pace};
use hub_protocol::{TenantUuid, Timestamp};

use super::change::write;
use super::manifest::{self, Closed};
use crate::batches::{self, Wanted};

const DAY_MICROS: i64 = 24 * 3600 * 1_000_000;
/// No reader is at rows that have been in files for so long.
const READERS_SECS: i64 = 120;
/// Tenants, or files to remove, that one statement finds.
const SOME: i64 = 100;
/// How often in a row events may change while their file is written.
const MAX_CHANGED: usize = 3;

/// The first event that is not to be in files yet: those of days that ended before `before` are.
fn end_of_closed_days(before: Timestamp) -> i64 {
    let micros = before.as_micros();
    micros - micros.rem_euclid(DAY_MICROS)
}

/// Moves a tenant's events of days that ended before `before` to files. Returns whether none is
/// left.
pub async fn close(
    core: &Core,
    tenant_uuid: TenantUuid,
    before: Timestamp,
    pace: &mut Pace,
    is_over: impl Fn() -> bool,
) -> Result<bool> {
    let end_id = end_of_closed_days(before);
    let mut changed = 0;
    loop {
        if is_over() {
            return Ok(false);
        }
        let mut conn = core.db.read().await?;
        let closed_to = manifest::closed_to(&mut conn, tenant_uuid).await?;
        let rest = Wanted {
            first_id: closed_to.max(0).saturating_add(1),
            last_id: end_id.saturating_sub(1),
            ..Wanted::all_of(tenant_uuid)
        };
        let (Some(first_id), _) = batches::count(&mut conn, &rest, 1).await? else {
            return Ok(true);
        };
        let day_end = first_id - first_id.rem_euclid(DAY_MICROS) + DAY_MICROS;
        let between = (closed_to.max(0), day_end.min(end_id));
        let limit = core.event_log.history.file_events();
        let oldest = batches::oldest(&mut conn, tenant_uuid, between, limit).await?;
        drop(conn);
        let (Some(first), Some(last)) = (oldest.events.first(), oldest.events.last()) else {
            return Ok(true);
        };
        let ids = (first.ble_event_id, last.ble_event_id);
        let written = write(core, tenant_uuid, ids, oldest.events).await?;
        let now = core.clock.now();
        let mut tx = core.db.begin().await?;
        if !batches::are_unchanged(&mut tx, tenant_uuid, &oldest.heads).await?
            || !manifest::advance(&mut tx, tenant_uuid, (closed_to, ids.1), now).await?
        {
            changed += 1;
            if changed >= MAX_CHANGED {
                return Ok(false);
            }
            continue;
        }
        manifest::insert(&mut tx, &written.file, written.bytes, &written.hubs).await?;
        tx.commit_unaudited("events that are in a file now").await?;
        changed = 0;
        let events = written.file.events;
        core.metrics
            .history_closed_events
            .inc_by(events.unsigned_abs());
        // A file takes the processor from uploads and not the writer.
        pace.rest(core, Duration::ZERO, events).await;
    }
}

/// Deletes rows whose events are in files. Returns whether none is left that can be deleted by now.
pub async fn clear(core: &Core, pace: &mut Pace, is_over: impl Fn() -> bool) -> Result<bool> {
    let before = core.clock.now().plus_secs(-READERS_SECS);
    loop {
        let tenants = manifest::uncleared(&mut core.db.read().await?, before, SOME).await?;
        if tenants.is_empty() {
            return Ok(true);
        }
        for closed in tenants {
            while clear_some(core, closed, pace).await? {
                if is_over() {
                    return Ok(false);
                }
            }
        }
    }
}

/// Deletes some rows of a tenant. Returns whether there may be more.
async fn clear_some(core: &Core, closed: Closed, pace: &mut Pace) -> Result<bool> {
    let Closed {
        tenant_uuid,
        closed_to,
    } = closed;
    let size = pace.size();
    let ids: Vec<i64> = sql("SELECT first_id FROM ble_batches WHERE tenant_uuid = $1 \
         AND first_id <= $2 ORDER BY first_id LIMIT $3")
    .bind((tenant_uuid, closed_to, size))
    .scalars(&mut core.db.read().await?)
    .await?;
    let mut tx = core.db.begin().await?;
    let mut held = Held::begin();
    let (Some(&first_id), Some(&last_id)) = (ids.first(), ids.last()) else {
        manifest::cleared(&mut tx, closed).await?;
        tx.commit_unaudited("rows whose events are in files")
            .await?;
        return Ok(false);
    };
    batches::forget(&mut tx, tenant_uuid, None, false, (first_id, last_id)).await?;
    sql("DELETE FROM ble_batches WHERE tenant_uuid = $1 AND first_id >= $2 AND first_id <= $3")
        .bind((tenant_uuid, first_id, last_id))
        .run(&mut tx)
        .await?;
    held.commits();
    tx.commit_unaudited("rows whose events are in files")
        .await?;
    let rows = i64::try_from(ids.len()).unwrap_or(i64::MAX);
    let took = pace.measure(&held, rows);
    pace.rest(core, took, rows).await;
    Ok(true)
}

/// Removes files from the store that are not part of the history. Returns whether none is left.
pub async fn remove_files(core: &Core, is_over: impl Fn() -> bool) -> Result<bool> {
    loop {
        let now = core.clock.now();
        let removals = manifest::removals(&mut core.db.read().await?, now, SOME).await?;
        if removals.is_empty() {
            return Ok(true);
        }
        for removal in removals {
            if is_over() {
                return Ok(false);
            }
            core.event_log
                .history
                .delete(&removal.path())
                .await
                .map_err(|error| {
                    let message = "the store of older events is unavailable";
                    Error::unavailable("HISTORY_UNAVAILABLE", message).with_cause(error)
                })?;
            let mut tx = core.db.begin().await?;
            manifest::keep(&mut tx, removal.name).await?;
            tx.commit_unaudited("a file that is gone").await?;
        }
    }
}
