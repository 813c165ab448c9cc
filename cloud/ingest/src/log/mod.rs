//! The log of BLE events as its readers see it. Events are rows of the database (`batches`) until
//! their day is closed, and in files from then on (`history`). No reader needs to know which.

use std::ops::ControlFlow;

use hub_base::db::{Conn, Direction, MAX_COUNT, Slice, Tx};
use hub_base::error::Result;
use hub_core::{Core, EventLog};
use hub_history::StoredEvent;
use hub_protocol::{TenantUuid, Timestamp};

use crate::batches::{self, Rewritten, Wanted};
use crate::history::{self, Replacements};
use crate::place::Found;
pub use crate::place::Place;

/// The wanted events that are in files, and those that are not.
fn parts(wanted: &Wanted, closed_to: i64) -> (Option<Wanted>, Option<Wanted>) {
    let old = Wanted {
        last_id: wanted.last_id.min(closed_to),
        ..*wanted
    };
    let new = Wanted {
        first_id: wanted.first_id.max(closed_to.saturating_add(1)),
        ..*wanted
    };
    let some = |part: Wanted| (part.first_id <= part.last_id).then_some(part);
    (some(old), some(new))
}

/// The last event of the tenant that is in a file; less than any id without files.
pub async fn closed_to(log: &EventLog, tenant_uuid: TenantUuid) -> Result<i64> {
    history::closed_to(&mut log.db.read().await?, tenant_uuid).await
}

/// Goes through the wanted events in the order of their ids, until `visit` breaks.
pub async fn walk(
    log: &EventLog,
    wanted: &Wanted,
    direction: Direction,
    mut visit: impl FnMut(Found<'_>) -> ControlFlow<()> + Send,
) -> Result<()> {
    let mut conn = log.db.read().await?;
    let (mut old, mut new) = parts(
        wanted,
        history::closed_to(&mut conn, wanted.tenant_uuid).await?,
    );
    if direction == Direction::Ascending {
        // What is closed while files are read is read from files too.
        while let Some(part) = old {
            drop(conn);
            if history::walk(log, &part, direction, &mut visit)
                .await?
                .is_break()
            {
                return Ok(());
            }
            let rest = Wanted {
                first_id: part.last_id.saturating_add(1),
                ..*wanted
            };
            conn = log.db.read().await?;
            (old, new) = parts(
                &rest,
                history::closed_to(&mut conn, wanted.tenant_uuid).await?,
            );
        }
    }
    if let Some(part) = new
        && walk_batches(&mut conn, &part, direction, &mut visit)
            .await?
            .is_break()
    {
        return Ok(());
    }
    drop(conn);
    if let Some(part) = old {
        let _ = history::walk(log, &part, direction, &mut visit).await?;
    }
    Ok(())
}

async fn walk_batches(
    conn: &mut Conn,
    wanted: &Wanted,
    direction: Direction,
    visit: &mut (impl FnMut(Found<'_>) -> ControlFlow<()> + Send),
) -> Result<ControlFlow<()>> {
    let mut walked = ControlFlow::Continue(());
    batches::walk(conn, wanted, direction, |found| {
        walked = visit(Found::of_batch(found));
        walked
    })
    .await?;
    Ok(walked)
}

/// The events at these places, in this order. One that is gone since is left out.
pub async fn load(
    log: &EventLog,
    tenant_uuid: TenantUuid,
    places: &[Place],
) -> Result<Vec<StoredEvent>> {
    let (mut in_batches, mut in_files) = (Vec::new(), Vec::new());
    for place in places {
        match place {
            Place::Batch(place) => in_batches.push(*place),
            Place::File(ble_event_id, row) => in_files.push((*ble_event_id, row.clone())),
        }
    }
    let mut of_batches = Vec::new();
    if !in_batches.is_empty() {
        let mut conn = log.db.read().await?;
        of_batches = batches::load(&mut conn, tenant_uuid, &in_batches).await?;
    }
    if in_files.is_empty() {
        return Ok(of_batches);
    }
    let mut events = history::load(log, tenant_uuid, &in_files).await?;
    events.extend(
        of_batches
            .into_iter()
            .map(|event| (event.ble_event_id, event)),
    );
    let ids = places.iter().map(Place::ble_event_id);
    Ok(ids.filter_map(|id| events.remove(&id)).collect())
}

/// One page of the wanted events, and how many there are, counted up to [`MAX_COUNT`].
pub async fn page(
    log: &EventLog,
    wanted: &Wanted,
    direction: Direction,
    slice: Slice,
) -> Result<(Vec<StoredEvent>, i64)> {
    let (old, new) = parts(wanted, closed_to(log, wanted.tenant_uuid).await?);
    let (mut places, mut total) = (Vec::new(), 0);
    let in_order = match direction {
        Direction::Ascending => [(old, true), (new, false)],
        Direction::Descending => [(new, false), (old, true)],
    };
    for (part, is_old) in in_order {
        let Some(part) = part.filter(|_| total < MAX_COUNT) else {
            continue;
        };
        let left = Slice {
            size: slice.size - i64::try_from(places.len()).unwrap_or(slice.size),
            offset: (slice.offset - total).max(0),
        };
        let (found, events) = match is_old {
            true => history::places(log, &part, direction, left).await?,
            false => {
                let mut conn = log.db.read().await?;
                let (found, events) = batches::places(&mut conn, &part, direction, left).await?;
                (found.into_iter().map(Place::Batch).collect(), events)
            }
        };
        places.extend(found);
        total += events;
    }
    let total = total.min(MAX_COUNT);
    let most = usize::try_from((total - slice.offset).max(0)).unwrap_or(0);
    places.truncate(most);
    Ok((load(log, wanted.tenant_uuid, &places).await?, total))
}

/// Up to `limit` of the wanted events.
pub async fn some(
    log: &EventLog,
    wanted: &Wanted,
    direction: Direction,
    limit: usize,
) -> Result<Vec<StoredEvent>> {
    let mut places = Vec::new();
    walk(log, wanted, direction, |found| {
        places.push(found.place());
        match places.len() < limit {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })
    .await?;
    load(log, wanted.tenant_uuid, &places).await
}

/// The id of the first of the wanted events of a tenant, which are narrowed by their ids alone.
pub async fn first_of(log: &EventLog, wanted: &Wanted) -> Result<Option<i64>> {
    Ok(count(log, wanted, 1).await?.0)
}

/// The first id of the wanted events of a tenant, which are narrowed by their ids alone, and how
/// many there are. Counting may end when they are `limit` or more.
pub async fn count(log: &EventLog, wanted: &Wanted, limit: i64) -> Result<(Option<i64>, i64)> {
    let (old, new) = parts(wanted, closed_to(log, wanted.tenant_uuid).await?);
    let (mut first, mut events) = (None, 0);
    if let Some(old) = old {
        (first, events) = history::count(log, &old, limit).await?;
    }
    if let Some(new) = new.filter(|_| events < limit) {
        let mut conn = log.db.read().await?;
        let (first_of_new, more) = batches::count(&mut conn, &new, limit - events).await?;
        first = first.or(first_of_new);
        events += more;
    }
    Ok((first, events))
}

/// Where the events with these ids are, oldest first. The list must be short.
async fn places_of(log: &EventLog, tenant_uuid: TenantUuid, ids: &[i64]) -> Result<Vec<Place>> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    let closed_to = closed_to(log, tenant_uuid).await?;
    let (old, new) = ids.split_at(ids.partition_point(|id| *id <= closed_to));
    let mut places = match old.is_empty() {
        true => Vec::new(),
        false => history::locate(log, tenant_uuid, old).await?,
    };
    if !new.is_empty() {
        let mut conn = log.db.read().await?;
        let found = batches::places_of(&mut conn, tenant_uuid, new).await?;
        places.extend(found.into_iter().map(Place::Batch));
    }
    Ok(places)
}

/// The events with these ids, oldest first. The list must be short.
pub async fn events_at(
    log: &EventLog,
    tenant_uuid: TenantUuid,
    ids: &[i64],
) -> Result<Vec<StoredEvent>> {
    let places = places_of(log, tenant_uuid, ids).await?;
    load(log, tenant_uuid, &places).await
}

/// A later reception of a frame.
pub struct Repeat {
    /// The id of the first one.
    pub observation_id: i64,
    pub event: StoredEvent,
}

/// Up to `limit` receptions of frames whose first receptions have these ids.
pub async fn repeats(
    log: &EventLog,
    tenant_uuid: TenantUuid,
    first_ids: &[i64],
    limit: usize,
) -> Result<Vec<Repeat>> {
    let mut conn = log.db.read().await?;
    let closed_to = history::closed_to(&mut conn, tenant_uuid).await?;
    let in_batches = batches::repeats(&mut conn, tenant_uuid, closed_to, first_ids, limit).await?;
    drop(conn);
    let mut found: Vec<Place> = in_batches.places.into_iter().map(Place::Batch).collect();
    for (first_id, last_id) in ranges(&in_batches.closed) {
        let wanted = Wanted {
            first_id,
            last_id,
            ..Wanted::all_of(tenant_uuid)
        };
        let _ = history::walk(log, &wanted, Direction::Ascending, &mut |one| {
            let is_repeat = one.observation_id.is_some_and(|id| first_ids.contains(&id));
            if is_repeat && found.len() < limit {
                found.push(one.place());
            }
            ControlFlow::Continue(())
        })
        .await?;
    }
    found.sort_by_key(Place::ble_event_id);
    let events = load(log, tenant_uuid, &found).await?;
    Ok(events
        .into_iter()
        .filter_map(|event| {
            Some(Repeat {
                observation_id: event.observation_id?,
                event,
            })
        })
        .collect())
}

/// The ids of batches that begin with these, which are in their order. Batches that are near each
/// other are in one range.
fn ranges(batch_ids: &[i64]) -> Vec<(i64, i64)> {
    const NEAR_MICROS: i64 = 60_000_000;
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for first_id in batch_ids {
        let last_id = first_id.saturating_add(batches::MAX_EVENTS - 1);
        match ranges.last_mut() {
            Some((_, end)) if first_id - *end < NEAR_MICROS => *end = last_id,
            _ => ranges.push((*first_id, last_id)),
        }
    }
    ranges
}

/// Changes of events, ready to be stored: what is in files is written already.
pub struct Rewrite {
    tenant_uuid: TenantUuid,
    in_files: Replacements,
    in_batches: Vec<Rewritten>,
    now: Timestamp,
}

/// Prepares to store what events are now.
pub async fn rewrite(
    core: &Core,
    tenant_uuid: TenantUuid,
    events: Vec<Rewritten>,
    now: Timestamp,
) -> Result<Rewrite> {
    let closed_to = closed_to(&core.event_log, tenant_uuid).await?;
    let (in_files, in_batches): (Vec<_>, Vec<_>) = events
        .into_iter()
        .partition(|event| event.ble_event_id <= closed_to);
    Ok(Rewrite {
        tenant_uuid,
        in_files: history::rewrite(core, tenant_uuid, in_files, now).await?,
        in_batches,
        now,
    })
}

impl Rewrite {
    /// Stores the changes, and counts their bytes. Returns false if some of the events are gone, or
    /// have moved meanwhile: then the transaction must not be committed.
    pub async fn apply(&self, tx: &mut Tx) -> Result<bool> {
        let (tenant_uuid, now) = (self.tenant_uuid, self.now);
        if !self.in_files.apply(tx, tenant_uuid, now).await?
            || !batches::rewrite(tx, tenant_uuid, &self.in_batches, now).await?
        {
            return Ok(false);
        }
        // Batches that are locked by now may have moved to a file before.
        let first_id = self.in_batches.iter().map(|event| event.ble_event_id).min();
        let closed_to = history::closed_to(tx, tenant_uuid).await?;
        Ok(first_id.is_none_or(|first_id| first_id > closed_to))
    }

    /// Whether files are to be removed from the store after the commit.
    pub fn replaces_files(&self) -> bool {
        self.in_files.replaces_files()
    }
}
