//! Follows the tenants' logs of events, and adds what they say of devices to the hours in which it
//! was observed. An event is in a rollup once: the cursor is committed with the hours. Work is done
//! in short transactions with rests between them, so that uploads do not wait for it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hub_base::db::{Direction, Tx};
use hub_base::error::Result;
use hub_core::Core;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use super::hour::{Hour, hour_of};
use super::store::{self, Behind};
use crate::{ble, device_instances};

/// Hours of devices that are kept: a year, and what a comparison with it needs.
const KEPT_SECS: i64 = 400 * 86_400;
/// Tenants that one query finds.
const TENANTS: i64 = 100;
/// Events that one query reads.
const READ: i64 = 2000;
/// A transaction has no more events than this,
const MAX_EVENTS: i64 = 50_000;
/// and begins when it has as many hours of devices.
const ENOUGH_HOURS: usize = 1000;
/// The time after which another task is run.
const RUN_TIME: Duration = Duration::from_secs(30);
/// Hours of devices that one transaction rebuilds.
const RECOUNTED: usize = 20;
/// The longest rest between two transactions. A rest is as long as the work before it.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// Adds to the rollups what is new. Returns whether there is more.
pub async fn roll_up(core: &Core) -> Result<bool> {
    let ends_at = Instant::now() + RUN_TIME;
    // The scan begins at a random tenant, so that one with many events does not delay others.
    let start = Uuid::new_v4();
    let mut after = start;
    let mut has_wrapped = false;
    loop {
        let behind = store::behind(&mut core.db.read().await?, after, TENANTS).await?;
        for tenant in &behind {
            if has_wrapped && tenant.tenant_uuid.0 > start {
                return Ok(false);
            }
            if !follow(core, tenant, ends_at).await? {
                return Ok(true);
            }
        }
        match behind.last() {
            Some(last) => after = last.tenant_uuid.0,
            None if has_wrapped => return Ok(false),
            None => (after, has_wrapped) = (Uuid::nil(), true),
        }
    }
}

/// Brings a tenant's rollups up to date. Returns false when the time is over.
async fn follow(core: &Core, behind: &Behind, ends_at: Instant) -> Result<bool> {
    let mut cursor = behind.cursor;
    while cursor < behind.last_id {
        if core.shutdown.is_cancelled() || Instant::now() >= ends_at || core.storage.is_full() {
            return Ok(false);
        }
        let began = Instant::now();
        match step(core, behind.tenant_uuid, cursor, behind.last_id).await? {
            Some(next) => cursor = next,
            // Another replica holds the cursor.
            None => return Ok(true),
        }
        tokio::time::sleep(began.elapsed().min(LONGEST_REST)).await;
    }
    Ok(true)
}

/// Adds the next events, and returns the id of the last one; None if somebody else did.
async fn step(
    core: &Core,
    tenant_uuid: TenantUuid,
    cursor: i64,
    last_id: i64,
) -> Result<Option<i64>> {
    let mut hours: BTreeMap<(i64, i64), Hour> = BTreeMap::new();
    let mut next = cursor;
    let mut events = 0;
    while next < last_id && events < MAX_EVENTS && hours.len() < ENOUGH_HOURS {
        let batch = ble::receptions_after(core, tenant_uuid, (next, last_id), READ).await?;
        next = batch.last_id.unwrap_or(last_id);
        events += READ;
        for reception in batch.receptions {
            let key = (reception.device_instance_id, hour_of(reception.observed_at));
            hours.entry(key).or_default().add(reception);
        }
    }
    let mut devices: Vec<i64> = hours
        .keys()
        .map(|(device_instance_id, _)| *device_instance_id)
        .collect();
    devices.dedup();

    let mut tx = core.db.begin().await?;
    // Events outlive their device, and hours go with it.
    let devices = device_instances::hold_existing(&mut tx, tenant_uuid, &devices).await?;
    hours.retain(|(device_instance_id, _), _| devices.contains(device_instance_id));
    if store::lock_cursor(&mut tx, tenant_uuid).await? != cursor {
        return Ok(None);
    }
    let keys: Vec<(i64, i64)> = hours.keys().copied().collect();
    for (key, before) in store::stored(&mut tx, tenant_uuid, &keys).await? {
        if let Some(hour) = hours.get_mut(&key) {
            let new = std::mem::replace(hour, before);
            hour.join(new);
        }
    }
    store::put(&mut tx, tenant_uuid, hours.into_iter().collect()).await?;
    store::set_cursor(&mut tx, tenant_uuid, next).await?;
    tx.commit_unaudited("what was heard, by the hour").await?;
    Ok(Some(next))
}

/// An event that became one of a device, or ceased to be one, or has other values.
#[derive(Clone, Copy, Debug)]
pub struct Changed {
    pub device_instance_id: i64,
    pub ble_event_id: i64,
    pub observed_at: Timestamp,
}

/// Rebuilds the hours of these events, once their change is committed.
pub async fn recount(core: &Core, tenant_uuid: TenantUuid, changed: &[Changed]) -> Result<()> {
    let mut hours = Hours::new();
    for one in changed {
        let id = one.ble_event_id;
        let observed_at = one.observed_at.min(Timestamp::from_micros(id));
        let range = hours
            .entry((one.device_instance_id, hour_of(observed_at)))
            .or_insert((id, id));
        *range = (range.0.min(id), range.1.max(id));
    }
    let mut hours = hours.into_iter().peekable();
    while hours.peek().is_some() {
        let began = Instant::now();
        let some = hours.by_ref().take(RECOUNTED).collect();
        recount_some(core, tenant_uuid, some).await?;
        tokio::time::sleep(began.elapsed().min(LONGEST_REST)).await;
    }
    Ok(())
}

/// The hours, each with the first and the last id of its events.
type Hours = BTreeMap<(i64, i64), (i64, i64)>;

/// The events are read before the transaction, which would delay others. An hour with events that
/// were added meanwhile is read again.
async fn recount_some(core: &Core, tenant_uuid: TenantUuid, mut some: Hours) -> Result<()> {
    while !some.is_empty() {
        let mut conn = core.db.read().await?;
        let keys: Vec<(i64, i64)> = some.keys().copied().collect();
        let devices: Vec<i64> = keys
            .iter()
            .map(|(device_instance_id, _)| *device_instance_id)
            .collect();
        let present = device_instances::existing(&mut conn, tenant_uuid, &devices).await?;
        some.retain(|(device_instance_id, _), _| present.contains(device_instance_id));
        let cursor = store::cursor(&mut conn, tenant_uuid).await?;
        let before: BTreeMap<(i64, i64), Hour> = store::stored(&mut conn, tenant_uuid, &keys)
            .await?
            .into_iter()
            .collect();
        drop(conn);
        let mut counted = Vec::with_capacity(some.len());
        for (key, (first, last)) in &some {
            let (mut first, mut last) = (*first, *last);
            if let Some(hour) = before.get(key) {
                (first, last) = (hour.first_id.min(first), hour.last_id.max(last));
            }
            // The rollup reaches later events by itself.
            let hour = count(core, tenant_uuid, *key, (first, last.min(cursor))).await?;
            counted.push((*key, hour));
        }
        let mut tx = core.db.begin().await?;
        store::lock_cursor(&mut tx, tenant_uuid).await?;
        let now: BTreeMap<(i64, i64), Hour> = store::stored(&mut tx, tenant_uuid, &keys)
            .await?
            .into_iter()
            .collect();
        counted.retain(|(key, _)| before.get(key) == now.get(key));
        // The hours of a device that was deleted meanwhile are gone with it.
        let present = device_instances::hold_existing(&mut tx, tenant_uuid, &devices).await?;
        some.retain(|(device_instance_id, _), _| present.contains(device_instance_id));
        counted.retain(|((device_instance_id, _), _)| present.contains(device_instance_id));
        for (key, _) in &counted {
            some.remove(key);
        }
        store::put(&mut tx, tenant_uuid, counted).await?;
        tx.commit_unaudited("what was heard, by the hour").await?;
    }
    Ok(())
}

/// The summary of an hour by the events of a device.
async fn count(
    core: &Core,
    tenant_uuid: TenantUuid,
    (device_instance_id, start): (i64, i64),
    (mut first, last): (i64, i64),
) -> Result<Hour> {
    let mut hour = Hour::default();
    while first <= last {
        let (range, direction) = ((first, last), Direction::Ascending);
        let batch = ble::receptions_of(
            core,
            tenant_uuid,
            device_instance_id,
            range,
            direction,
            READ,
        )
        .await?;
        for reception in batch
            .receptions
            .into_iter()
            .filter(|one| hour_of(one.observed_at) == start)
        {
            hour.add(reception);
        }
        let Some(last_id) = batch.last_id else { break };
        first = last_id.saturating_add(1);
    }
    // An hour without any event is as good as none.
    Ok(hour)
}

/// The beginning of the time of which hours are kept.
pub fn kept_from(core: &Core, now: Timestamp) -> Timestamp {
    let events = i64::try_from(core.config.retention.ble_events.as_secs()).unwrap_or(i64::MAX);
    now.plus_secs(-KEPT_SECS.max(events))
}

/// Deletes at most `limit` hours of a tenant's devices that are older than the retention of hours
/// and of events.
pub async fn forget(
    core: &Core,
    tenant_uuid: TenantUuid,
    now: Timestamp,
    limit: i64,
) -> Result<u64> {
    let mut tx = core.db.begin().await?;
    let before = kept_from(core, now);
    let deleted = store::delete_before(&mut tx, tenant_uuid, before, limit).await?;
    tx.commit_unaudited("hours that were kept for long enough")
        .await?;
    Ok(deleted)
}

/// Deletes at most `limit` hours that ended before a time, of the devices that a hub of the tenant
/// hears best. The caller counts and commits.
pub async fn forget_of_hub(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    hub_uuid: HubUuid,
    before: Timestamp,
    limit: i64,
) -> Result<u64> {
    store::delete_of_hub(tx, tenant_uuid, hub_uuid, before, limit).await
}
