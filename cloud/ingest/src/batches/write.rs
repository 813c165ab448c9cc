//! Storing the batches of a group of uploads.

use std::collections::BTreeSet;

use hub_base::db::Tx;
use hub_base::db::bulk::{Bulk, Column};
use hub_base::error::{Error, Result};
use hub_protocol::{HubUuid, TenantUuid};
use uuid::Uuid;

use super::heads::{self, Head, status_bits};
use super::hours::HourCounts;
use super::{FULL_BYTES, MAX_EVENTS, texts};
use crate::upload::Record;

/// The batches of one upload: where each begins and ends among its records.
pub fn split(records: &[Record]) -> Vec<std::ops::Range<usize>> {
    let mut batches: Vec<std::ops::Range<usize>> = Vec::new();
    let mut bytes = 0;
    for (index, record) in records.iter().enumerate() {
        let size = record.text.len() + record.reading.as_deref().map_or(0, str::len);
        match batches.last_mut() {
            Some(batch)
                if bytes + size <= FULL_BYTES
                    && i64::try_from(batch.len()).is_ok_and(|events| events < MAX_EVENTS) =>
            {
                batch.end = index + 1;
                bytes += size;
            }
            _ => {
                batches.push(index..index + 1);
                bytes = size;
            }
        }
    }
    batches
}

/// The first reception of a frame: its id, and that of its batch's first event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstReception {
    pub id: i64,
    pub batch_id: i64,
}

/// The rows of three tables, filled batch by batch.
#[derive(Default)]
pub struct Batches {
    tenants: Vec<Uuid>,
    last_ids: Vec<i64>,
    hubs: Vec<Uuid>,
    contents: Contents,
    hours: HourCounts,
    repeats: RepeatRows,
    events: u64,
}

/// What batches have that depends on their events, by the ids of their first events.
#[derive(Default)]
pub(super) struct Contents {
    pub first_ids: Vec<i64>,
    pub bytes: Vec<i64>,
    pub statuses: Vec<i64>,
    pub heads: Vec<Vec<u8>>,
    pub texts: Vec<Vec<u8>>,
}

impl Contents {
    /// Adds a batch: the heads of its events, their JSON objects, and those of the readings.
    pub fn push<'a>(
        &mut self,
        first_id: i64,
        heads: &[Head],
        events: impl Iterator<Item = &'a str>,
        readings: impl Iterator<Item = &'a str>,
    ) -> Result<()> {
        self.texts
            .push(texts::pack(events, readings).map_err(Error::internal)?);
        self.first_ids.push(first_id);
        self.bytes.push(bytes_of(heads));
        self.statuses
            .push(status_bits(heads.iter().map(|head| head.processing_status)));
        self.heads.push(heads::encode(first_id, heads));
        Ok(())
    }
}

#[derive(Default)]
struct RepeatRows {
    tenants: Vec<Uuid>,
    observed_in: Vec<i64>,
    first_ids: Vec<i64>,
}

impl Batches {
    /// Adds a batch whose first event has this id. `observed` has, for each record, the first
    /// reception of its frame, where the record is a later one.
    pub fn push(
        &mut self,
        (tenant_uuid, hub_uuid): (TenantUuid, HubUuid),
        first_id: i64,
        records: &[Record],
        observed: &[Option<FirstReception>],
    ) -> Result<()> {
        let heads: Vec<Head> = records
            .iter()
            .zip(observed)
            .map(|(record, observed)| Head {
                processing_status: record.processing_status,
                event_bytes: record.text.len(),
                reading_bytes: record.reading.as_deref().map(str::len),
                device_instance_id: record.device_instance_id,
                observation_id: observed.map(|first| first.id),
                window: record.window,
                reprocessed_at: None,
            })
            .collect();
        let events = records.iter().map(|record| &*record.text);
        let readings = records
            .iter()
            .filter_map(|record| record.reading.as_deref());
        self.contents.push(first_id, &heads, events, readings)?;
        let count = i64::try_from(records.len()).unwrap_or(i64::MAX);
        self.tenants.push(tenant_uuid.0);
        self.last_ids.push(first_id + count - 1);
        self.hubs.push(hub_uuid.0);
        self.hours.add((tenant_uuid, hub_uuid), first_id, &heads);
        let repeated: BTreeSet<i64> = observed
            .iter()
            .flatten()
            .map(|first| first.batch_id)
            .collect();
        for observed_in in repeated {
            self.repeats.tenants.push(tenant_uuid.0);
            self.repeats.observed_in.push(observed_in);
            self.repeats.first_ids.push(first_id);
        }
        self.events += records.len() as u64;
        Ok(())
    }

    /// Stores the batches, and returns how many events they have.
    pub async fn insert(self, tx: &mut Tx) -> Result<u64> {
        Bulk {
            head: "INSERT INTO ble_batches \
                   (tenant_uuid, first_id, last_id, hub_uuid, bytes, statuses, heads, texts)",
            columns: vec![
                Column::Uuid(self.tenants),
                Column::Int(self.contents.first_ids),
                Column::Int(self.last_ids),
                Column::Uuid(self.hubs),
                Column::Int(self.contents.bytes),
                Column::Int(self.contents.statuses),
                Column::Bytes(self.contents.heads),
                Column::Bytes(self.contents.texts),
            ],
            tail: "",
        }
        .execute(tx)
        .await?;
        self.hours.write(tx).await?;
        Bulk {
            head: "INSERT INTO ble_batch_repeats (tenant_uuid, observed_in, first_id)",
            columns: vec![
                Column::Uuid(self.repeats.tenants),
                Column::Int(self.repeats.observed_in),
                Column::Int(self.repeats.first_ids),
            ],
            tail: "",
        }
        .execute(tx)
        .await?;
        Ok(self.events)
    }
}

/// The bytes of the texts of a batch.
fn bytes_of(heads: &[Head]) -> i64 {
    heads
        .iter()
        .map(|head| i64::try_from(head.bytes()).unwrap_or(0))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_and_complete() {
        let record = |bytes: usize| Record::on_one_line(&"1".repeat(bytes));
        assert!(split(&[]).is_empty());
        let sizes = [10, FULL_BYTES - 20, 20, 3 * FULL_BYTES, 5];
        let records = sizes.map(record);
        assert_eq!(split(&records), [0..2, 2..3, 3..4, 4..5]);
        let many = vec![record(1); 2500];
        assert_eq!(split(&many), [0..1024, 1024..2048, 2048..2500]);
    }
}
