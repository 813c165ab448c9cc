//! Which hubs received a device within a period, and how strongly.

use std::collections::BTreeMap;

use hub_base::db::Direction;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_protocol::{HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::MAX_EVENTS;
use super::hour::Signal;
use super::reader::{Device, Hours, Period};
use super::store::Part;
use crate::ble::Reception;

/// The reception of a device by a hub.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceReceptionsResponse {
    /// The hub.
    hub_uuid: HubUuid,
    /// Advertisements received, those of windows included.
    #[schemars(range(min = 1))]
    count: i64,
    /// The weakest signal, in dBm; null if none is known.
    rssi_min: Option<i64>,
    /// The mean of the signal strengths, in dBm.
    rssi_mean: Option<f64>,
    /// The strongest signal, in dBm.
    rssi_max: Option<i64>,
    /// When the hub last received the device.
    last_at: Timestamp,
}

/// Receptions by hub, the one with most of them first.
pub async fn read(
    core: &Core,
    device: Device,
    period: Period,
) -> Result<Vec<DeviceReceptionsResponse>> {
    let hours = Hours::read(&mut core.db.read().await?, device, period, Part::Heard).await?;
    let (first, end) = period.whole_hours();
    let is_whole = |hour: i64| first <= hour && hour < end;
    let mut hubs: BTreeMap<HubUuid, Signal> = BTreeMap::new();
    let mut add = |hub_uuid: HubUuid, signal: Signal| match hubs.get_mut(&hub_uuid) {
        Some(known) => known.join(signal),
        None => {
            hubs.insert(hub_uuid, signal);
        }
    };
    for (_, hour) in hours.hours.iter().filter(|(start, _)| is_whole(*start)) {
        for (hub_uuid, signal) in &hour.hubs {
            add(*hub_uuid, signal.clone());
        }
    }
    let take = |reception: Reception| add(reception.hub_uuid, Signal::new(&reception));
    if !hours
        .each(
            core,
            |hour| !is_whole(hour),
            Direction::Ascending,
            MAX_EVENTS,
            take,
        )
        .await?
    {
        let message =
            format!("more than {MAX_EVENTS} events would have to be read; ask for a later time");
        return Err(Error::field("from", message));
    }
    let response = |(hub_uuid, signal): (HubUuid, Signal)| DeviceReceptionsResponse {
        hub_uuid,
        count: signal.count,
        rssi_min: signal.strengths.map(|numbers| numbers.1.round() as i64),
        rssi_mean: signal
            .strengths
            .map(|numbers| numbers.3 / numbers.0.max(1) as f64),
        rssi_max: signal.strengths.map(|numbers| numbers.2.round() as i64),
        last_at: Timestamp::from_micros(signal.last_at),
    };
    let mut receptions: Vec<DeviceReceptionsResponse> = hubs.into_iter().map(response).collect();
    receptions.sort_by_key(|hub| std::cmp::Reverse(hub.count));
    Ok(receptions)
}
