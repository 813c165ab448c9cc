//! The stored BLE events as lists, streams and counts need them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use hub_base::db::{Direction, LogRange, Slice};
use hub_base::error::Result;
use hub_core::{Core, EventLog};
use hub_identity::authz::Scope;
use hub_ingest::batches::{Wanted, status_bits};
use hub_ingest::{ProcessingStatus, StoredEvent, log};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

use super::View;

/// The filters of a list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub hub_uuid: Option<HubUuid>,
    pub device_instance_id: Option<i64>,
    pub processing_status: Option<ProcessingStatus>,
    /// Only events after this one.
    pub after_id: Option<i64>,
    /// Only events before this one.
    pub before_id: Option<i64>,
    pub view: View,
}

impl Filter {
    fn wanted(&self, scope: &Scope) -> Wanted {
        let all = Wanted::all_of(scope.tenant_uuid());
        let from = self.from.map(Timestamp::as_micros);
        let after = self.after_id.map(|after| after.saturating_add(1));
        let to = self.to.map(Timestamp::as_micros);
        let before = [to, self.before_id].into_iter().flatten().min();
        Wanted {
            first_id: from.max(after).unwrap_or(all.first_id),
            last_id: before.map_or(all.last_id, |before| before.saturating_sub(1)),
            hub_uuid: self.hub_uuid,
            device_instance_id: self.device_instance_id,
            statuses: self
                .processing_status
                .map_or(all.statuses, |status| status_bits([status])),
            only_first: self.view == View::Observations,
            ..all
        }
    }
}

/// The events by their time of receipt, and how many there are.
pub async fn list(
    core: &Core,
    scope: &Scope,
    filter: &Filter,
    direction: Direction,
    slice: Slice,
) -> Result<(Vec<StoredEvent>, i64)> {
    log::page(&core.event_log, &filter.wanted(scope), direction, slice).await
}

/// Up to `limit` of the events, by their time of receipt.
pub async fn some_of(
    core: &Core,
    scope: &Scope,
    filter: &Filter,
    direction: Direction,
    limit: usize,
) -> Result<Vec<StoredEvent>> {
    log::some(&core.event_log, &filter.wanted(scope), direction, limit).await
}

pub async fn get(core: &Core, scope: &Scope, ble_event_id: i64) -> Result<Option<StoredEvent>> {
    let mut found = log::events_at(&core.event_log, scope.tenant_uuid(), &[ble_event_id]).await?;
    Ok(found.pop())
}

/// The tenant's events in a range of their ids, oldest first.
pub async fn after(
    log: &EventLog,
    tenant_uuid: TenantUuid,
    range: LogRange,
) -> Result<Vec<StoredEvent>> {
    let wanted = Wanted {
        first_id: range.after.saturating_add(1),
        last_id: range.last,
        ..Wanted::all_of(tenant_uuid)
    };
    bounded(
        log,
        &wanted,
        Direction::Ascending,
        range.max_rows,
        range.max_bytes,
    )
    .await
}

/// The tenant's last events before an id, oldest first. The first may have more bytes than
/// `max_bytes`, so that each one can be read.
pub async fn last_before(
    core: &Core,
    scope: &Scope,
    before: i64,
    max_rows: i64,
    max_bytes: i64,
) -> Result<Vec<StoredEvent>> {
    let wanted = Wanted {
        last_id: before.saturating_sub(1),
        ..Wanted::all_of(scope.tenant_uuid())
    };
    let mut events = bounded(
        &core.event_log,
        &wanted,
        Direction::Descending,
        max_rows,
        max_bytes,
    )
    .await?;
    events.reverse();
    Ok(events)
}

/// Wanted events, bounded in number and in the bytes of what hubs sent. The first may have more
/// bytes, so that each one can be read.
async fn bounded(
    log: &EventLog,
    wanted: &Wanted,
    direction: Direction,
    max_rows: i64,
    max_bytes: i64,
) -> Result<Vec<StoredEvent>> {
    let max_rows = usize::try_from(max_rows).unwrap_or(0);
    let (mut places, mut bytes) = (Vec::new(), 0_i64);
    log::walk(log, wanted, direction, |found| {
        let size = i64::try_from(found.event_bytes).unwrap_or(i64::MAX);
        bytes = bytes.saturating_add(size);
        let has_room = places.len() < max_rows && (places.is_empty() || bytes <= max_bytes);
        if !has_room {
            return ControlFlow::Break(());
        }
        places.push(found.place());
        ControlFlow::Continue(())
    })
    .await?;
    log::load(log, wanted.tenant_uuid, &places).await
}

/// The first event after an id and up to another, and how many there are, counted up to `limit`.
pub async fn count_between(
    core: &Core,
    tenant_uuid: TenantUuid,
    (after, last): (i64, i64),
    limit: i64,
) -> Result<(Option<i64>, i64)> {
    let wanted = Wanted {
        first_id: after.saturating_add(1),
        last_id: last,
        ..Wanted::all_of(tenant_uuid)
    };
    let (first, events) = log::count(&core.event_log, &wanted, limit).await?;
    Ok((first, events.min(limit)))
}

/// Some events of the tenant, oldest first. The list must be short.
pub async fn some(core: &Core, scope: &Scope, ids: &[i64]) -> Result<Vec<StoredEvent>> {
    log::events_at(&core.event_log, scope.tenant_uuid(), ids).await
}

/// The counts of a minute since 1970.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct MinuteCount {
    pub minute: i64,
    pub events: i64,
    pub decoded: i64,
}

/// The microseconds of a minute: the id of an event is when it was received, in microseconds.
const MINUTE_MICROS: i64 = 60_000_000;

/// The events of minutes, the last of which is not included.
fn of_minutes(tenant_uuid: TenantUuid, (from, to): (i64, i64)) -> Wanted {
    Wanted {
        first_id: from.saturating_mul(MINUTE_MICROS),
        last_id: to.saturating_mul(MINUTE_MICROS).saturating_sub(1),
        ..Wanted::all_of(tenant_uuid)
    }
}

/// When the tenant received its first event of these minutes, the last of which is not included.
pub async fn first_received(
    core: &Core,
    tenant_uuid: TenantUuid,
    minutes: (i64, i64),
) -> Result<Option<Timestamp>> {
    let wanted = of_minutes(tenant_uuid, minutes);
    let id = log::first_of(&core.event_log, &wanted).await?;
    Ok(id.map(Timestamp::from_micros))
}

/// The events that the tenant received in these minutes, the last of which is not included, by
/// minute. Reads all of them: for few minutes.
pub async fn count_minutes(
    core: &Core,
    tenant_uuid: TenantUuid,
    minutes: (i64, i64),
) -> Result<Vec<MinuteCount>> {
    let wanted = of_minutes(tenant_uuid, minutes);
    let mut counts: BTreeMap<i64, MinuteCount> = BTreeMap::new();
    log::walk(&core.event_log, &wanted, Direction::Ascending, |found| {
        let minute = found.ble_event_id / MINUTE_MICROS;
        let count = counts.entry(minute).or_insert(MinuteCount {
            minute,
            events: 0,
            decoded: 0,
        });
        count.events += 1;
        count.decoded += i64::from(found.processing_status == ProcessingStatus::Decoded);
        ControlFlow::Continue(())
    })
    .await?;
    Ok(counts.into_values().collect())
}
