//! BLE events. Uploads are validated here event by event and passed to `ingest`. Stored events are
//! returned as they were sent, with what the service knows about them.

mod check;
pub mod delivered;
pub mod http;
mod read;
mod reading;
mod receptions;
mod reprocess;
mod runs;
pub mod scripts;
mod spans;
mod store;
mod trace;

use hub_adverts::advertisement::frame_of;
use hub_base::error::{Error, Result};
use hub_ingest::Record;
pub use hub_ingest::StoredEvent;
use hub_protocol::ble::Advertisement;
use hub_protocol::{HubUuid, Timestamp, TraceContext};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::ble_routes::{Facts, Route};
use crate::delivery_status::DeliveryStatus;
pub use check::{Checked, event as check_event, member_at_fault};
pub use reading::{CounterStatus, MeasurementResponse, Reading, split_key, unit_of};
pub use receptions::{Reception, Strength, receptions_after, receptions_of};
pub use reprocess::{
    Change, Processed, ReprocessedEvent, Selection, bytes_of, proved_keys, reprocess, stored_events,
};
pub use store::{
    MinuteCount, after, count_between, count_minutes, first_received, last_before, some,
};
pub use trace::{
    CandidateResponse, MatchedResponse, ProtocolUsedResponse, RouteDecisionResponse, Trace,
    run_scripts, trace,
};

/// The meaning of an item of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "BleEventView")]
pub enum View {
    /// An event as a hub received it.
    #[default]
    Receptions,
    /// Events that are of one frame as one: the first of them.
    Observations,
}

/// One of the receptions of a frame.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceptionResponse {
    /// The event.
    #[schemars(range(min = 1))]
    pub ble_event_id: i64,
    /// The hub that received it.
    pub hub_uuid: HubUuid,
    /// The signal strength in dBm; of a window, the mean. Null if it is not known.
    pub rssi_dbm: Option<i64>,
    /// When the service received it.
    pub received_at: Timestamp,
}

/// One BLE event as lists and streams show it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BleEventResponse {
    /// The id: `receivedAt` in microseconds since 1970, unique and rising within the tenant.
    #[schemars(range(min = 1))]
    pub ble_event_id: i64,
    /// When the service received it.
    pub received_at: Timestamp,
    /// The hub that uploaded it.
    pub hub_uuid: HubUuid,
    /// The registered device that sent it; null if it is not known.
    #[schemars(range(min = 1))]
    pub device_instance_id: Option<i64>,
    /// The model of the device that sent it; null if it is not known.
    pub device_uuid: Option<Uuid>,
    /// The values that were read from it.
    pub measurements: Vec<MeasurementResponse>,
    /// The revision of the protocol that read it; null if none did.
    pub protocol_revision: Option<i64>,
    /// The state of its counter; null if the counter is valid or absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter_status: Option<CounterStatus>,
    /// The address that the payload names, where it is not that of the advertiser.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_address: Option<String>,
    /// The processing state of the event.
    #[schemars(with = "hub_ingest::ProcessingStatus")]
    pub processing_status: String,
    /// Whether it has reached its destinations.
    #[schemars(with = "DeliveryStatus")]
    pub delivery_status: String,
    /// The event's id, set by the hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_uuid: Option<Uuid>,
    /// When the hub received it; of a window, the last time.
    pub observed_at: Timestamp,
    /// The trace of the event, if it is recorded (W3C Trace Context).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub traceparent: Option<TraceContext>,
    #[serde(flatten)]
    pub advertisement: Advertisement,
    /// The summary of the window of a windowed upload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowResponse>,
    /// With `view=observations`, in lists: all receptions of the frame, this one first; 64 at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_RECEPTIONS))]
    pub receptions: Option<Vec<ReceptionResponse>>,
}

/// Receptions of one frame that a list shows.
pub const MAX_RECEPTIONS: usize = 64;

/// The summary of the receptions of one device in a period.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowResponse {
    /// When the window began.
    pub window_start: Timestamp,
    /// When the window ended.
    pub window_end: Timestamp,
    /// Advertisements received.
    #[schemars(range(min = 1))]
    pub count: i64,
    /// The weakest signal, in dBm.
    pub rssi_min: i16,
    /// The strongest signal, in dBm.
    pub rssi_max: i16,
    /// The mean of the signal strengths, in dBm.
    pub rssi_mean: f64,
    /// The first advertisement of the window.
    pub first_seen_at: Timestamp,
    /// The last advertisement of the window.
    pub last_seen_at: Timestamp,
}

/// One BLE event with all its details.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BleEventDetailResponse {
    #[serde(flatten)]
    pub event: BleEventResponse,
    /// With `includeRaw=true`: base64 of the JSON object exactly as the hub sent it, including
    /// members that the service does not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// The fields of an event beside its advertisement. Each structure is parsed from the whole text on
/// its own and skips unknown members. A flattened structure would also build the unknown members,
/// and some values that JSON allows cannot be built.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventHead {
    event_uuid: Option<Uuid>,
    observed_at: Timestamp,
    traceparent: Option<Box<RawValue>>,
}

/// The fields of a window of a device beside its advertisement.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WindowHead {
    traceparent: Option<Box<RawValue>>,
    count: i64,
    rssi_min: i16,
    rssi_max: i16,
    rssi_mean: f64,
    first_seen_at: Timestamp,
    last_seen_at: Timestamp,
}

/// An event that was just committed, equal to what the database would return.
pub fn committed(
    id: i64,
    hub_uuid: HubUuid,
    observation_id: Option<i64>,
    record: Record,
) -> StoredEvent {
    StoredEvent {
        ble_event_id: id,
        hub_uuid,
        device_instance_id: record.device_instance_id,
        processing_status: record.processing_status,
        window: record.window,
        reading: record.reading.as_deref().map(str::to_owned),
        observation_id,
        reprocessed_at: None,
        event: record.text.as_ref().to_owned(),
    }
}

/// A stored event as lists and streams show it. Its delivery status is not stored.
pub fn response(stored: StoredEvent) -> Result<BleEventResponse> {
    // Stored events have passed validation.
    let parse_failed = |error: serde_json::Error| {
        Error::internal(format!("stored event {}: {error}", stored.ble_event_id))
    };
    let mut advertisement: Advertisement =
        serde_json::from_str(&stored.event).map_err(parse_failed)?;
    let (event_uuid, observed_at, traceparent, window) = match stored.window {
        Some((window_start, window_end)) => {
            let device: WindowHead = serde_json::from_str(&stored.event).map_err(parse_failed)?;
            let window = WindowResponse {
                window_start,
                window_end,
                count: device.count,
                rssi_min: device.rssi_min,
                rssi_max: device.rssi_max,
                rssi_mean: device.rssi_mean,
                first_seen_at: device.first_seen_at,
                last_seen_at: device.last_seen_at,
            };
            (None, device.last_seen_at, device.traceparent, Some(window))
        }
        None => {
            let event: EventHead = serde_json::from_str(&stored.event).map_err(parse_failed)?;
            (event.event_uuid, event.observed_at, event.traceparent, None)
        }
    };
    let reading: Reading = match stored.reading.as_deref() {
        Some(reading) => serde_json::from_str(reading).map_err(parse_failed)?,
        None => Reading::default(),
    };
    // The device is what the service recognised, not what the hub named.
    advertisement.device_instance_id = None;
    Ok(BleEventResponse {
        ble_event_id: stored.ble_event_id,
        received_at: Timestamp::from_micros(stored.ble_event_id),
        hub_uuid: stored.hub_uuid,
        device_instance_id: stored.device_instance_id,
        device_uuid: stored.reading.is_some().then_some(reading.device_uuid),
        measurements: reading.measurements(),
        protocol_revision: reading.protocol_revision,
        counter_status: reading.counter_status,
        payload_address: reading.payload_address,
        processing_status: stored.processing_status.name().to_owned(),
        delivery_status: DeliveryStatus::None.name().to_owned(),
        event_uuid,
        observed_at,
        traceparent: traceparent.as_deref().and_then(spans::context_of),
        advertisement,
        window,
        receptions: None,
    })
}

/// Whether the tenant's route passes the event, which is of this model, to a pipeline.
pub fn is_for(
    stored: &StoredEvent,
    route: &Route,
    pipeline_uuid: Uuid,
    device_uuid: Option<Uuid>,
) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Strongest {
        rssi_max: Option<i16>,
    }
    let Ok(advertisement) = serde_json::from_str::<Advertisement>(&stored.event) else {
        return true;
    };
    let strongest = serde_json::from_str::<Strongest>(&stored.event)
        .ok()
        .and_then(|window| window.rssi_max);
    with_facts(
        stored.hub_uuid,
        (device_uuid, stored.device_instance_id),
        strongest,
        &advertisement,
        |facts| route.is_for(pipeline_uuid, facts),
    )
}

/// Calls with what rules of a route are tried on. `strongest` is the strongest signal of a window.
fn with_facts<T>(
    hub_uuid: HubUuid,
    (device_uuid, device_instance_id): (Option<Uuid>, Option<i64>),
    strongest: Option<i16>,
    advertisement: &Advertisement,
    call: impl FnOnce(&Facts<'_>) -> T,
) -> T {
    let rssi_dbm = strongest.or(advertisement.rssi).filter(|dbm| *dbm != 127);
    frame_of(advertisement).with(|frame| {
        call(&Facts {
            device_uuid,
            device_instance_id,
            hub_uuid,
            rssi_dbm,
            frame,
        })
    })
}

impl BleEventResponse {
    /// The pipelines that the tenant's route passes the event to; None for all.
    fn pipelines(&self, route: &Route) -> Option<Vec<Uuid>> {
        let strongest = self.window.as_ref().map(|window| window.rssi_max);
        with_facts(
            self.hub_uuid,
            (self.device_uuid, self.device_instance_id),
            strongest,
            &self.advertisement,
            |facts| route.pipelines(facts).map(<[Uuid]>::to_vec),
        )
    }

    /// The signal strength in dBm; of a window, the strongest. None if it is not known.
    pub fn strongest_dbm(&self) -> Option<i16> {
        let strongest = self.window.as_ref().map(|window| window.rssi_max);
        strongest
            .or(self.advertisement.rssi)
            .filter(|dbm| *dbm != 127)
    }

    /// The event as one of the receptions of its frame.
    fn reception(&self) -> ReceptionResponse {
        let mean = self
            .window
            .as_ref()
            .map(|window| window.rssi_mean.round() as i64);
        ReceptionResponse {
            ble_event_id: self.ble_event_id,
            hub_uuid: self.hub_uuid,
            rssi_dbm: mean
                .or(self.advertisement.rssi.map(i64::from))
                .filter(|dbm| *dbm != 127),
            received_at: self.received_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of pipelines may name what an event has, and nothing that is misspelt.
    #[test]
    fn pipelines_know_the_members_of_an_event() {
        let schema = schemars::schema_for!(BleEventResponse);
        let members = schema
            .get("properties")
            .and_then(serde_json::Value::as_object)
            .expect("members");
        assert!(members.len() > 15);
        for name in members.keys().filter(|name| *name != "receptions") {
            assert!(
                hub_steps::EVENT_MEMBERS
                    .iter()
                    .any(|(member, _)| member == name),
                "{name}"
            );
        }
    }
}
