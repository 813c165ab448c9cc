//! Reading events. Heads are walked first, in the order of ids, which finds and counts events
//! without their texts; then the texts of those that were chosen are loaded.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use hub_base::db::{Conn, Direction, MAX_COUNT, Slice, Sql, Tx, sql};
use hub_base::error::{Error, Result};
use hub_history::StoredEvent;
use hub_protocol::{HubUuid, TenantUuid};

use super::MAX_EVENTS;
use super::heads::{self, Head, status_bits};
use super::hours::HOUR_MICROS;
use super::texts::Texts;
use crate::ProcessingStatus;

/// Batches that the first statement of a walk reads, and those after it: each begins at the hour at
/// which the one before ended, and a busy hub has hundreds in an hour.
const FIRST_BATCHES: i64 = 16;
const FURTHER_BATCHES: i64 = 512;
/// Batches with their texts that one statement reads for a file.
const OLDEST_BATCHES: i64 = 128;
/// Batches whose events one statement counts.
const COUNTED_BATCHES: i64 = 2_000;
/// Batches whose texts one statement loads.
const LOADED_BATCHES: usize = 64;

/// Which events of a tenant.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub tenant_uuid: TenantUuid,
    /// The first and the last id.
    pub first_id: i64,
    pub last_id: i64,
    pub hub_uuid: Option<HubUuid>,
    pub device_instance_id: Option<i64>,
    /// A bit for each status, as [`status_bits`] has them.
    pub statuses: i64,
    /// Of several receptions of a frame, the first alone.
    pub only_first: bool,
}

impl Wanted {
    pub fn all_of(tenant_uuid: TenantUuid) -> Self {
        Self {
            tenant_uuid,
            first_id: 0,
            last_id: i64::MAX - 1,
            hub_uuid: None,
            device_instance_id: None,
            statuses: status_bits(ProcessingStatus::ALL),
            only_first: false,
        }
    }

    /// What the first ids of the batches are between, neither of them included.
    fn batches(&self) -> (i64, i64) {
        (
            self.first_id.saturating_sub(MAX_EVENTS),
            self.last_id.saturating_add(1),
        )
    }

    /// Whether all events of a batch are wanted that are of the device and between the ids.
    pub(crate) fn are_whole_batches(&self) -> bool {
        self.statuses == status_bits(ProcessingStatus::ALL) && !self.only_first
    }

    /// Whether an event of a hub that is wanted is wanted.
    pub(crate) fn admits(
        &self,
        ble_event_id: i64,
        processing_status: ProcessingStatus,
        device_instance_id: Option<i64>,
        observation_id: Option<i64>,
    ) -> bool {
        (self.first_id..=self.last_id).contains(&ble_event_id)
            && self.statuses & status_bits([processing_status]) != 0
            && self
                .device_instance_id
                .is_none_or(|device| device_instance_id == Some(device))
            && !(self.only_first && observation_id.is_some())
    }
}

/// Where an event is: its batch, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The id of the batch's first event.
    pub batch_id: i64,
    pub index: usize,
}

impl Place {
    pub fn ble_event_id(&self) -> i64 {
        self.batch_id
            .saturating_add(i64::try_from(self.index).unwrap_or(i64::MAX))
    }
}

/// An event that a walk came to.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    pub place: Place,
    pub hub_uuid: HubUuid,
    pub head: &'a Head,
}

#[derive(sqlx::FromRow)]
struct HeadsRow {
    first_id: i64,
    hub_uuid: HubUuid,
    heads: Vec<u8>,
}

#[derive(sqlx::FromRow)]
struct BatchRow {
    first_id: i64,
    hub_uuid: HubUuid,
    heads: Vec<u8>,
    texts: Vec<u8>,
}

/// A row that cannot be read is left out, so that it does not block those after it.
fn damaged(tenant_uuid: TenantUuid, first_id: i64) {
    tracing::error!(%tenant_uuid, first_id, "a stored batch of BLE events cannot be read; it is skipped");
}

/// Goes through the wanted events in the order of their ids, until `visit` breaks.
pub async fn walk(
    conn: &mut Conn,
    wanted: &Wanted,
    direction: Direction,
    visit: impl FnMut(Found<'_>) -> ControlFlow<()> + Send,
) -> Result<()> {
    walk_batches(conn, wanted, wanted.batches(), direction, visit).await
}

/// The same, of the batches whose first ids are between these, neither of them included.
async fn walk_batches(
    conn: &mut Conn,
    wanted: &Wanted,
    (mut after, mut before): (i64, i64),
    direction: Direction,
    mut visit: impl FnMut(Found<'_>) -> ControlFlow<()> + Send,
) -> Result<()> {
    let mut limit = FIRST_BATCHES;
    loop {
        let columns = "b.first_id, b.hub_uuid, b.heads";
        let query = select(conn, columns, wanted, (after, before), direction, limit);
        let rows: Vec<HeadsRow> = query.all(conn).await?;
        let is_last = i64::try_from(rows.len()).unwrap_or(i64::MAX) < limit;
        for row in &rows {
            match direction {
                Direction::Ascending => after = row.first_id,
                Direction::Descending => before = row.first_id,
            }
            let Some(heads) = heads::decode(row.first_id, &row.heads) else {
                damaged(wanted.tenant_uuid, row.first_id);
                continue;
            };
            let mut events = (row.first_id..).zip(&heads).enumerate();
            let mut visit_one = |(index, (id, head)): (usize, (i64, &Head))| {
                let (device, observation) = (head.device_instance_id, head.observation_id);
                if !wanted.admits(id, head.processing_status, device, observation) {
                    return ControlFlow::Continue(());
                }
                visit(Found {
                    place: Place {
                        batch_id: row.first_id,
                        index,
                    },
                    hub_uuid: row.hub_uuid,
                    head,
                })
            };
            let walked = match direction {
                Direction::Ascending => events.try_for_each(&mut visit_one),
                Direction::Descending => {
                    let events: Vec<_> = events.collect();
                    events.into_iter().rev().try_for_each(&mut visit_one)
                }
            };
            if walked.is_break() {
                return Ok(());
            }
        }
        if is_last {
            return Ok(());
        }
        limit = FURTHER_BATCHES;
    }
}

/// Selects up to `limit` of the batches that may have wanted events, in their order. `after` and
/// `before` bound their first ids.
fn select(
    conn: &Conn,
    columns: &'static str,
    wanted: &Wanted,
    (after, before): (i64, i64),
    direction: Direction,
    limit: i64,
) -> Sql {
    if let Some(device_instance_id) = wanted.device_instance_id {
        let bounds = (after, before);
        return select_of_device(
            conn,
            columns,
            wanted,
            device_instance_id,
            bounds,
            direction,
            limit,
        );
    }
    let mut query = sql("SELECT ").push(columns).push(" FROM ble_batches b");
    if wanted.hub_uuid.is_some() {
        query = query.indexed_by(conn, "ble_batches_hub");
    }
    query = query
        .push(" WHERE b.tenant_uuid = ")
        .push_bind(wanted.tenant_uuid)
        .push(" AND b.first_id > ")
        .push_bind(after)
        .push(" AND b.first_id < ")
        .push_bind(before)
        .push(" AND b.last_id >= ")
        .push_bind(wanted.first_id);
    if let Some(hub_uuid) = wanted.hub_uuid {
        query = query.push(" AND b.hub_uuid = ").push_bind(hub_uuid);
    }
    push_statuses(query, wanted)
        .push(" ORDER BY b.first_id ")
        .push(direction.sql())
        .push(" LIMIT ")
        .push_bind(limit)
}

/// Those of the hubs and hours in which the device was heard, without batches that do not have it.
fn select_of_device(
    conn: &Conn,
    columns: &'static str,
    wanted: &Wanted,
    device_instance_id: i64,
    (after, before): (i64, i64),
    direction: Direction,
    limit: i64,
) -> Sql {
    let condition = |query: Sql| {
        let query = query
            .push("b.tenant_uuid = ")
            .push_bind(wanted.tenant_uuid)
            .push(
                " AND b.hub_uuid = h.hub_uuid AND b.first_id >= h.hour_id \
                 AND b.first_id < h.hour_id + ",
            )
            .push_number(HOUR_MICROS)
            .push(" AND b.first_id > ")
            .push_bind(after)
            .push(" AND b.first_id < ")
            .push_bind(before)
            .push(" AND ")
            .push_contains(conn, "b.heads", heads::device_bytes(device_instance_id));
        push_statuses(query, wanted)
    };
    let query = sql("SELECT ")
        .push(columns)
        .push(" FROM ble_device_hours h")
        .join_each(conn, ("ble_batches", "ble_batches_hub"), condition);
    push_hours(
        query.push(" WHERE "),
        wanted,
        device_instance_id,
        (after, before),
    )
    .push(" ORDER BY h.hour_id ")
    .push(direction.sql())
    .push(", b.first_id ")
    .push(direction.sql())
    .push(" LIMIT ")
    .push_bind(limit)
}

/// Appends which hours of a device have batches between these first ids.
fn push_hours(
    query: Sql,
    wanted: &Wanted,
    device_instance_id: i64,
    (after, before): (i64, i64),
) -> Sql {
    let query = query
        .push("h.tenant_uuid = ")
        .push_bind(wanted.tenant_uuid)
        .push(" AND h.device_instance_id = ")
        .push_bind(device_instance_id)
        .push(" AND h.hour_id > ")
        .push_bind(after.saturating_sub(HOUR_MICROS))
        .push(" AND h.hour_id < ")
        .push_bind(before);
    match wanted.hub_uuid {
        Some(hub_uuid) => query.push(" AND h.hub_uuid = ").push_bind(hub_uuid),
        None => query,
    }
}

fn push_statuses(query: Sql, wanted: &Wanted) -> Sql {
    match wanted.statuses == status_bits(ProcessingStatus::ALL) {
        true => query,
        false => query
            .push(" AND b.statuses & ")
            .push_bind(wanted.statuses)
            .push(" <> 0"),
    }
}

/// Where one page of the wanted events is, and how many there are, counted up to [`MAX_COUNT`].
pub async fn places(
    conn: &mut Conn,
    wanted: &Wanted,
    direction: Direction,
    Slice { size, offset }: Slice,
) -> Result<(Vec<Place>, i64)> {
    let spans = match (wanted.are_whole_batches(), wanted.device_instance_id) {
        (false, _) => counted(conn, wanted, wanted.batches(), direction).await?,
        (true, Some(device)) => hours_of_device(conn, wanted, device, direction).await?,
        (true, None) => whole_batches(conn, wanted, direction).await?,
    };
    let (mut begin, mut total) = (None, 0);
    for span in spans {
        if begin.is_none() && total + span.events > offset {
            begin = Some((span.batches, offset - total));
        }
        total += span.events;
    }
    let total = total.min(MAX_COUNT);
    let size = size.min(total - offset);
    let Some((begin, mut skipped)) = begin.filter(|_| size > 0) else {
        return Ok((Vec::new(), total));
    };
    // On from there, also into the spans after it.
    let (after, before) = wanted.batches();
    let batches = match direction {
        Direction::Ascending => (begin.0, before),
        Direction::Descending => (after, begin.1),
    };
    let mut places = Vec::new();
    walk_batches(conn, wanted, batches, direction, |found| {
        if skipped > 0 {
            skipped -= 1;
            return ControlFlow::Continue(());
        }
        places.push(found.place);
        match i64::try_from(places.len()).is_ok_and(|found| found < size) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })
    .await?;
    Ok((places, total))
}

/// Batches whose first ids are between two ids, neither of them included, and how many wanted
/// events they have.
struct Span {
    batches: (i64, i64),
    events: i64,
}

impl Span {
    const fn of_batch(batch_id: i64, events: i64) -> Self {
        Self {
            batches: (batch_id - 1, batch_id + 1),
            events,
        }
    }
}

/// The batches with wanted events between two first ids, which are counted one by one, up to
/// [`MAX_COUNT`].
async fn counted(
    conn: &mut Conn,
    wanted: &Wanted,
    batches: (i64, i64),
    direction: Direction,
) -> Result<Vec<Span>> {
    let (mut spans, mut total): (Vec<Span>, i64) = (Vec::new(), 0);
    walk_batches(conn, wanted, batches, direction, |found| {
        let span = Span::of_batch(found.place.batch_id, 1);
        match spans.last_mut().filter(|last| last.batches == span.batches) {
            Some(last) => last.events += 1,
            None => spans.push(span),
        }
        total += 1;
        match total < MAX_COUNT {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })
    .await?;
    Ok(spans)
}

/// The hours of a device, in their order, up to the one that makes its events [`MAX_COUNT`].
async fn hours_of_device(
    conn: &mut Conn,
    wanted: &Wanted,
    device_instance_id: i64,
    direction: Direction,
) -> Result<Vec<Span>> {
    let query =
        sql("SELECT h.hour_id, CAST(SUM(h.events) AS BIGINT) FROM ble_device_hours h WHERE ");
    // No hour is empty.
    let hours: Vec<(i64, i64)> = push_hours(query, wanted, device_instance_id, wanted.batches())
        .push(" GROUP BY h.hour_id ORDER BY h.hour_id ")
        .push(direction.sql())
        .push(" LIMIT ")
        .push_bind(MAX_COUNT)
        .all(conn)
        .await?;
    let (mut spans, mut total) = (Vec::new(), 0);
    for (hour_id, events) in hours {
        let batches = (hour_id - 1, hour_id + HOUR_MICROS);
        // The last batch of an hour may end in the next one.
        let is_whole =
            wanted.first_id <= hour_id && batches.1.saturating_add(MAX_EVENTS) <= wanted.last_id;
        let of_hour = match is_whole {
            true => vec![Span { batches, events }],
            false => counted(conn, wanted, batches, direction).await?,
        };
        total += of_hour.iter().map(|span| span.events).sum::<i64>();
        spans.extend(of_hour);
        if total >= MAX_COUNT {
            break;
        }
    }
    Ok(spans)
}

/// The batches with wanted events, in their order, up to the one that makes these [`MAX_COUNT`].
async fn whole_batches(
    conn: &mut Conn,
    wanted: &Wanted,
    direction: Direction,
) -> Result<Vec<Span>> {
    let (mut after, mut before) = wanted.batches();
    let (mut spans, mut total) = (Vec::new(), 0);
    while total < MAX_COUNT {
        let columns = "b.first_id, b.last_id";
        let bounds = (after, before);
        let query = select(conn, columns, wanted, bounds, direction, COUNTED_BATCHES);
        let rows: Vec<(i64, i64)> = query.all(conn).await?;
        let is_last = i64::try_from(rows.len()).unwrap_or(i64::MAX) < COUNTED_BATCHES;
        for (first_id, last_id) in rows {
            match direction {
                Direction::Ascending => after = first_id,
                Direction::Descending => before = first_id,
            }
            let events = last_id.min(wanted.last_id) - first_id.max(wanted.first_id) + 1;
            total += events;
            spans.push(Span::of_batch(first_id, events));
        }
        if is_last {
            break;
        }
    }
    Ok(spans)
}

/// The events at these places, in this order. One that is gone since is left out.
pub async fn load(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    places: &[Place],
) -> Result<Vec<StoredEvent>> {
    let mut events = Vec::with_capacity(places.len());
    let mut rest = places;
    while !rest.is_empty() {
        // Neighbours are mostly of one batch.
        let mut batch_ids: Vec<i64> = Vec::new();
        let end = rest.iter().position(|place| {
            if batch_ids.last() != Some(&place.batch_id) {
                batch_ids.push(place.batch_id);
            }
            batch_ids.len() > LOADED_BATCHES
        });
        let (now, later) = rest.split_at(end.unwrap_or(rest.len()));
        batch_ids.truncate(LOADED_BATCHES);
        rest = later;
        let rows: Vec<BatchRow> = sql("SELECT first_id, hub_uuid, heads, texts FROM ble_batches \
                 WHERE tenant_uuid = $1 AND first_id IN ")
        .bind(tenant_uuid)
        .push_list(batch_ids)
        .all(conn)
        .await?;
        let batches: BTreeMap<i64, Unpacked> = rows
            .into_iter()
            .filter_map(|row| Some((row.first_id, unpacked(tenant_uuid, row)?)))
            .collect();
        events.extend(now.iter().filter_map(|place| {
            let batch = batches.get(&place.batch_id)?;
            batch.event(*place)
        }));
    }
    Ok(events)
}

/// The oldest batches of a tenant, to be written to a file.
pub struct Oldest {
    pub events: Vec<StoredEvent>,
    /// By the first ids of the batches. A batch that changes gets other heads.
    pub heads: Vec<(i64, Vec<u8>)>,
}

/// The oldest batches that begin between two ids, neither included, with `limit` events at most.
/// Fails if one is damaged: it must not be left out.
pub async fn oldest(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    (after, before): (i64, i64),
    limit: usize,
) -> Result<Oldest> {
    let mut oldest = Oldest {
        events: Vec::new(),
        heads: Vec::new(),
    };
    let mut after = after;
    loop {
        let rows: Vec<BatchRow> = sql(
            "SELECT first_id, hub_uuid, heads, texts FROM ble_batches WHERE tenant_uuid = $1 \
             AND first_id > $2 AND first_id < $3 ORDER BY first_id LIMIT $4",
        )
        .bind((tenant_uuid, after, before, OLDEST_BATCHES))
        .all(conn)
        .await?;
        let is_last = i64::try_from(rows.len()).unwrap_or(i64::MAX) < OLDEST_BATCHES;
        for row in rows {
            let (first_id, heads) = (row.first_id, row.heads.clone());
            let batch = unpacked(tenant_uuid, row).ok_or_else(|| {
                Error::internal(format!("the stored batch {first_id} cannot be read"))
            })?;
            if !oldest.events.is_empty() && oldest.events.len() + batch.heads.len() > limit {
                return Ok(oldest);
            }
            let count = batch.heads.len();
            let places = (0..count).map(|index| Place {
                batch_id: first_id,
                index,
            });
            let events: Vec<_> = places.filter_map(|place| batch.event(place)).collect();
            if events.len() != count {
                let message = format!("an event of the stored batch {first_id} cannot be read");
                return Err(Error::internal(message));
            }
            oldest.events.extend(events);
            oldest.heads.push((first_id, heads));
            after = first_id;
        }
        if is_last {
            return Ok(oldest);
        }
    }
}

/// Locks batches, and returns whether they are as they were read, and no others are between them.
pub async fn are_unchanged(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    heads: &[(i64, Vec<u8>)],
) -> Result<bool> {
    let (Some((first, _)), Some((last, _))) = (heads.first(), heads.last()) else {
        return Ok(true);
    };
    let now: Vec<(i64, Vec<u8>)> = sql(
        "SELECT first_id, heads FROM ble_batches WHERE tenant_uuid = $1 AND first_id >= $2 \
         AND first_id <= $3 ORDER BY first_id",
    )
    .bind((tenant_uuid, *first, *last))
    .for_update(tx)
    .all(tx)
    .await?;
    Ok(now == heads)
}

struct Unpacked {
    hub_uuid: HubUuid,
    heads: Vec<Head>,
    texts: Texts,
}

fn unpacked(tenant_uuid: TenantUuid, row: BatchRow) -> Option<Unpacked> {
    let read = || {
        let heads = heads::decode(row.first_id, &row.heads)?;
        let texts = Texts::unpack(&row.texts, &heads)?;
        Some(Unpacked {
            hub_uuid: row.hub_uuid,
            heads,
            texts,
        })
    };
    let unpacked = read();
    if unpacked.is_none() {
        damaged(tenant_uuid, row.first_id);
    }
    unpacked
}

impl Unpacked {
    fn event(&self, place: Place) -> Option<StoredEvent> {
        let head = self.heads.get(place.index)?;
        let (event, reading) = self.texts.at(place.index, head)?;
        Some(StoredEvent {
            ble_event_id: place.ble_event_id(),
            hub_uuid: self.hub_uuid,
            device_instance_id: head.device_instance_id,
            processing_status: head.processing_status,
            window: head.window,
            observation_id: head.observation_id,
            reprocessed_at: head.reprocessed_at,
            event,
            reading,
        })
    }
}

/// Where the events with these ids are, oldest first. The list must be short.
pub async fn places_of(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    ids: &[i64],
) -> Result<Vec<Place>> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    let ranges = id_ranges(&ids);
    if ranges.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = sql("SELECT first_id, last_id FROM ble_batches WHERE tenant_uuid = $1 AND (")
        .bind(tenant_uuid);
    for (index, (first, last)) in ranges.into_iter().enumerate() {
        query = query
            .push(if index > 0 { " OR " } else { "" })
            .push("(first_id > ")
            .push_bind(first.saturating_sub(MAX_EVENTS))
            .push(" AND first_id <= ")
            .push_bind(last)
            .push(" AND last_id >= ")
            .push_bind(first)
            .push(")");
    }
    let batches: Vec<(i64, i64)> = query.push(") ORDER BY first_id").all(conn).await?;
    let place_of = |id: i64| {
        let at = batches.partition_point(|(first_id, _)| *first_id <= id);
        let (batch_id, _) = batches
            .get(at.checked_sub(1)?)
            .filter(|(_, last_id)| id <= *last_id)?;
        Some(Place {
            batch_id: *batch_id,
            index: usize::try_from(id - batch_id).ok()?,
        })
    };
    Ok(ids.into_iter().filter_map(place_of).collect())
}

/// The first id of the wanted events of a tenant, which are narrowed by their ids alone, and how
/// many there are. Counting ends with the batch that makes them `limit` or more.
pub async fn count(conn: &mut Conn, wanted: &Wanted, limit: i64) -> Result<(Option<i64>, i64)> {
    // No batch is empty.
    let (between, ascending) = (wanted.batches(), Direction::Ascending);
    let columns = "b.first_id, b.last_id";
    let query = select(conn, columns, wanted, between, ascending, limit);
    let batches: Vec<(i64, i64)> = query.all(conn).await?;
    let (mut first, mut events) = (None, 0);
    for (first_id, last_id) in batches {
        let (first_id, last_id) = (first_id.max(wanted.first_id), last_id.min(wanted.last_id));
        first = first.or(Some(first_id));
        events += last_id - first_id + 1;
        if events >= limit {
            break;
        }
    }
    Ok((first, events))
}

/// Receptions of frames whose first receptions are known.
#[derive(Default)]
pub struct Repeats {
    pub places: Vec<Place>,
    /// The first ids of the batches with further ones that are in files, in their order.
    pub closed: Vec<i64>,
}

/// Up to `limit` receptions of frames whose first receptions have these ids. Batches up to
/// `closed_to` are in files.
pub async fn repeats(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    closed_to: i64,
    first_ids: &[i64],
    limit: usize,
) -> Result<Repeats> {
    let mut ids = first_ids.to_vec();
    ids.sort_unstable();
    let mut query = sql(
        "SELECT repeats.first_id, b.heads FROM (SELECT DISTINCT r.tenant_uuid, \
         r.first_id FROM ble_batch_repeats r WHERE r.tenant_uuid = $1 AND (",
    )
    .bind(tenant_uuid);
    let ranges = id_ranges(&ids);
    if ranges.is_empty() {
        return Ok(Repeats::default());
    }
    for (index, (first, last)) in ranges.into_iter().enumerate() {
        query = query
            .push(if index > 0 { " OR " } else { "" })
            .push("(r.observed_in > ")
            .push_bind(first.saturating_sub(MAX_EVENTS))
            .push(" AND r.observed_in <= ")
            .push_bind(last)
            .push(")");
    }
    let rows: Vec<(i64, Option<Vec<u8>>)> = query
        .push(") ORDER BY r.first_id LIMIT ")
        .push_bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .push(
            ") AS repeats LEFT JOIN ble_batches b ON b.tenant_uuid = repeats.tenant_uuid \
             AND b.first_id = repeats.first_id ORDER BY repeats.first_id",
        )
        .all(conn)
        .await?;
    let mut found = Repeats::default();
    for (first_id, heads) in rows {
        if first_id <= closed_to {
            found.closed.push(first_id);
            continue;
        }
        // An entry may be of a batch that is gone.
        let Some(heads) = heads else {
            continue;
        };
        let Some(heads) = heads::decode(first_id, &heads) else {
            damaged(tenant_uuid, first_id);
            continue;
        };
        for (index, head) in heads.iter().enumerate() {
            let observation = head.observation_id.filter(|id| first_ids.contains(id));
            if observation.is_some() && found.places.len() < limit {
                found.places.push(Place {
                    batch_id: first_id,
                    index,
                });
            }
        }
    }
    Ok(found)
}

/// Ranges with these ids, which are in their order. Ids near each other are mostly of one batch.
fn id_ranges(ids: &[i64]) -> Vec<(i64, i64)> {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for id in ids {
        match ranges.last_mut() {
            Some((_, last)) if id - *last < MAX_EVENTS => *last = *id,
            _ => ranges.push((*id, *id)),
        }
    }
    ranges
}
