//! What the service says of BLE events that are stored already. Their texts and ids stay.

use std::collections::BTreeMap;
use std::sync::Arc;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::months::Month;
use hub_base::db::{Tx, sql};
use hub_base::error::{Error, Result};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

use super::MAX_EVENTS;
use super::heads::{self, Head};
use super::hours::HourCounts;
use super::texts::Texts;
use super::write::Contents;
use crate::quota::lower_stored;
use crate::{Kind, ProcessingStatus};

/// A stored event, and what it is now.
#[derive(Clone, Debug)]
pub struct Rewritten {
    pub ble_event_id: i64,
    pub device_instance_id: Option<i64>,
    pub processing_status: ProcessingStatus,
    pub reading: Option<Arc<str>>,
    /// By how much the reading has become longer.
    pub more_bytes: i64,
}

#[derive(sqlx::FromRow)]
struct Row {
    first_id: i64,
    hub_uuid: HubUuid,
    heads: Vec<u8>,
    texts: Vec<u8>,
}

/// Writes what events of the database are now, and counts their bytes. Returns false if some of
/// them are gone: then the transaction must not be committed. Their batches are locked.
pub async fn rewrite(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    events: &[Rewritten],
    now: Timestamp,
) -> Result<bool> {
    let changes: BTreeMap<i64, &Rewritten> = events
        .iter()
        .map(|event| (event.ble_event_id, event))
        .collect();
    let (Some((&first, _)), Some((&last, _))) =
        (changes.first_key_value(), changes.last_key_value())
    else {
        return Ok(true);
    };
    let rows: Vec<Row> = sql("SELECT first_id, hub_uuid, heads, texts FROM ble_batches \
         WHERE tenant_uuid = $1 AND first_id > $2 AND first_id <= $3 ORDER BY first_id")
    .bind((tenant_uuid, first.saturating_sub(MAX_EVENTS), last))
    .for_update(tx)
    .all(tx)
    .await?;
    let mut changed = Changed::default();
    for row in rows {
        changed.add(tenant_uuid, row, &changes, now)?;
    }
    if changed.events != changes.len() {
        return Ok(false);
    }
    changed.update(tx, tenant_uuid).await?;
    count_bytes(tx, tenant_uuid, events).await?;
    Ok(true)
}

/// Counts by how much readings have become longer, by the month.
pub(crate) async fn count_bytes(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    events: &[Rewritten],
) -> Result<()> {
    let mut more_bytes: BTreeMap<Month, i64> = BTreeMap::new();
    for event in events {
        *more_bytes
            .entry(Month::of(Timestamp::from_micros(event.ble_event_id)))
            .or_default() += event.more_bytes;
    }
    for (month, more_bytes) in more_bytes
        .into_iter()
        .filter(|(_, more_bytes)| *more_bytes != 0)
    {
        lower_stored(tx, tenant_uuid, Kind::BleEvents, month, -more_bytes).await?;
    }
    Ok(())
}

/// The batches that changes are in, as they are after them.
#[derive(Default)]
struct Changed {
    contents: Contents,
    hours: HourCounts,
    events: usize,
}

impl Changed {
    fn add(
        &mut self,
        tenant_uuid: TenantUuid,
        row: Row,
        changes: &BTreeMap<i64, &Rewritten>,
        now: Timestamp,
    ) -> Result<()> {
        let first_id = row.first_id;
        let damaged = || Error::internal(format!("the stored batch {first_id} cannot be read"));
        let before = heads::decode(first_id, &row.heads).ok_or_else(damaged)?;
        let is_changed = (first_id..)
            .zip(&before)
            .any(|(id, _)| changes.contains_key(&id));
        if !is_changed {
            return Ok(());
        }
        let stored = Texts::unpack(&row.texts, &before).ok_or_else(damaged)?;
        let mut after: Vec<Head> = Vec::with_capacity(before.len());
        let (mut events, mut readings): (Vec<String>, Vec<String>) = Default::default();
        for ((index, head), id) in before.iter().enumerate().zip(first_id..) {
            let (event, reading) = stored.at(index, head).ok_or_else(damaged)?;
            events.push(event);
            let (head, reading) = match changes.get(&id) {
                None => (*head, reading),
                Some(change) => {
                    self.events += 1;
                    let reading = change.reading.as_deref().map(str::to_owned);
                    let head = Head {
                        processing_status: change.processing_status,
                        reading_bytes: reading.as_ref().map(String::len),
                        device_instance_id: change.device_instance_id,
                        reprocessed_at: Some(now),
                        ..*head
                    };
                    (head, reading)
                }
            };
            after.push(head);
            readings.extend(reading);
        }
        let events = events.iter().map(String::as_str);
        let readings = readings.iter().map(String::as_str);
        self.contents.push(first_id, &after, events, readings)?;
        let hub = (tenant_uuid, row.hub_uuid);
        self.hours.subtract(hub, first_id, &before);
        self.hours.add(hub, first_id, &after);
        Ok(())
    }

    async fn update(self, tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
        Bulk {
            head: "WITH given (tenant_uuid, first_id, bytes, statuses, heads, texts) AS (",
            columns: vec![
                Column::Uuid(vec![tenant_uuid.0; self.contents.first_ids.len()]),
                Column::Int(self.contents.first_ids),
                Column::Int(self.contents.bytes),
                Column::Int(self.contents.statuses),
                Column::Bytes(self.contents.heads),
                Column::Bytes(self.contents.texts),
            ],
            tail: ") UPDATE ble_batches SET bytes = given.bytes, statuses = given.statuses, \
                   heads = given.heads, texts = given.texts FROM given \
                   WHERE ble_batches.tenant_uuid = COALESCE(given.tenant_uuid, NULL) \
                   AND ble_batches.first_id = COALESCE(given.first_id, NULL)",
        }
        .execute(tx)
        .await?;
        self.hours.write(tx).await
    }
}
