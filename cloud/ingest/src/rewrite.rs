//! What the service says of BLE events that are stored already. Their texts and ids stay.

use std::collections::BTreeMap;
use std::sync::Arc;

use hub_base::db::Tx;
use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::months::Month;
use hub_base::error::Result;
use hub_protocol::{TenantUuid, Timestamp};

use super::quota::lower_stored;
use super::{Kind, ProcessingStatus};

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

/// Writes what events are now, and counts their bytes. Returns false if some of them are gone: then
/// the transaction must not be committed.
pub async fn rewrite(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    events: &[Rewritten],
    now: Timestamp,
) -> Result<bool> {
    let written = Bulk {
        head: "WITH given (tenant_uuid, ble_event_id, device_instance_id, processing_status, \
               reading, reprocessed_at) AS (",
        columns: vec![
            Column::Uuid(vec![tenant_uuid.0; events.len()]),
            Column::Int(events.iter().map(|event| event.ble_event_id).collect()),
            Column::OptionalInt(
                events
                    .iter()
                    .map(|event| event.device_instance_id)
                    .collect(),
            ),
            Column::Word(
                events
                    .iter()
                    .map(|event| event.processing_status.name())
                    .collect(),
            ),
            Column::OptionalText(events.iter().map(|event| event.reading.clone()).collect()),
            Column::Time(vec![now; events.len()]),
        ],
        tail: ") UPDATE ble_events SET device_instance_id = given.device_instance_id, \
               processing_status = given.processing_status, reading = given.reading, \
               reprocessed_at = given.reprocessed_at FROM given \
               WHERE ble_events.tenant_uuid = COALESCE(given.tenant_uuid, NULL) \
               AND ble_events.ble_event_id = COALESCE(given.ble_event_id, NULL)",
    }
    .execute(tx)
    .await?;
    if usize::try_from(written) != Ok(events.len()) {
        return Ok(false);
    }
    // Bytes are counted by the month.
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
    Ok(true)
}
