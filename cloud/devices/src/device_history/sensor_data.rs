//! The values of a device, one item for each reception.

use std::collections::BTreeMap;

use hub_base::db::{Direction, Slice};
use hub_base::error::Result;
use hub_core::Core;
use hub_protocol::{HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::reader::{Device, Hours, Period};
use super::store::Part;
use crate::ble::{Reception, unit_of};

/// Events that are read for one page. The list ends there.
pub const MAX_READ: i64 = 20_000;

/// The measurements of a device.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SensorItemResponse {
    /// The event that has the values.
    #[schemars(range(min = 1))]
    ble_event_id: i64,
    /// When the hub received it, by the clock of the hub; of a window, the last time.
    observed_at: Timestamp,
    /// When the service received it.
    received_at: Timestamp,
    /// The hub.
    hub_uuid: HubUuid,
    /// The signal strength at the hub in dBm; of a window, the mean.
    rssi_dbm: Option<i64>,
    /// The values by quantity, or by `quantity[index]` of one that occurs more than once: numbers,
    /// texts and booleans.
    values: Map<String, Value>,
    /// The units of the values that have one, in SenML (RFC 8428).
    units: BTreeMap<String, String>,
}

impl SensorItemResponse {
    pub fn new(reception: Reception) -> Self {
        let unit = |key: &String| Some((key.clone(), unit_of(key)?.to_owned()));
        Self {
            ble_event_id: reception.ble_event_id,
            observed_at: reception.observed_at,
            received_at: Timestamp::from_micros(reception.ble_event_id),
            hub_uuid: reception.hub_uuid,
            rssi_dbm: reception.rssi_dbm(),
            units: reception.values.keys().filter_map(unit).collect(),
            values: reception.values,
        }
    }

    /// Its values, one by one.
    pub fn each(&self) -> impl Iterator<Item = ItemValue<'_>> {
        self.values.iter().map(|(key, value)| ItemValue {
            observed_at: self.observed_at,
            received_at: self.received_at,
            hub_uuid: self.hub_uuid,
            rssi_dbm: self.rssi_dbm,
            key,
            value,
            unit: self.units.get(key).map(String::as_str),
        })
    }
}

/// A value of an item.
pub struct ItemValue<'a> {
    pub observed_at: Timestamp,
    pub received_at: Timestamp,
    pub hub_uuid: HubUuid,
    pub rssi_dbm: Option<i64>,
    /// `quantity`, or `quantity[index]` of one that occurs more than once.
    pub key: &'a str,
    pub value: &'a Value,
    pub unit: Option<&'a str>,
}

/// A page of the items with wanted values, latest first, and how many there are.
pub async fn read(
    core: &Core,
    device: Device,
    (from, to): (Option<Timestamp>, Option<Timestamp>),
    is_wanted: &(dyn Fn(&str) -> bool + Sync),
    slice: Slice,
) -> Result<(Vec<SensorItemResponse>, i64)> {
    let (earliest, latest) = (Timestamp::from_micros(0), Timestamp::from_micros(i64::MAX));
    let period = Period {
        from: from.unwrap_or(earliest),
        to: to.unwrap_or(latest),
    };
    let hours = match (from, to) {
        (None, None) => Hours::none(device, period),
        _ => Hours::read(&mut core.db.read().await?, device, period, Part::Ids).await?,
    };
    let mut items = Vec::new();
    let mut total = 0;
    let take = |mut reception: Reception| {
        reception.values.retain(|key, _| is_wanted(key));
        if reception.values.is_empty() {
            return;
        }
        if (slice.offset..slice.offset + slice.size).contains(&total) {
            items.push(SensorItemResponse::new(reception));
        }
        total += 1;
    };
    hours
        .each(core, |_| true, Direction::Descending, MAX_READ, take)
        .await?;
    Ok((items, total))
}
