//! BLE events: what hubs heard. Uploads are checked here event by event and handed to `ingest`; the stored events are shown as they were sent,
//! with what the service knows about them.

mod check;
pub mod http;
mod store;

use hub_protocol::ble::Advertisement;
use hub_protocol::{HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{Error, Result};
pub use store::{StoredEvent, after};

/// What the service has made of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ProcessingStatus {
    Received,
    Matched,
    Unmatched,
    Decoded,
    Failed,
}

/// Whether an event has reached where it is routed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DeliveryStatus {
    None,
    Pending,
    Delivered,
    Failed,
    Dead,
}

/// One event as lists and streams show it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BleEventResponse {
    /// `receivedAt` in microseconds since 1970: unique and rising within the tenant.
    pub ble_event_id: i64,
    pub received_at: Timestamp,
    pub hub_uuid: HubUuid,
    pub processing_status: String,
    pub delivery_status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_uuid: Option<Uuid>,
    /// When the hub heard it; the last time, for a window.
    pub observed_at: Timestamp,
    #[serde(flatten)]
    pub advertisement: Advertisement,
    /// Of a windowed upload: what was heard of the device between two times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowResponse>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowResponse {
    pub window_start: Timestamp,
    pub window_end: Timestamp,
    /// Advertisements heard.
    pub count: i64,
    /// dBm.
    pub rssi_min: i16,
    pub rssi_max: i16,
    pub rssi_mean: f64,
    pub first_seen_at: Timestamp,
    pub last_seen_at: Timestamp,
}

/// One event with all that is known of it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BleEventDetailResponse {
    #[serde(flatten)]
    pub event: BleEventResponse,
    /// With `includeRaw=true`: base64 of the JSON object exactly as the hub sent it, fields unknown to the service included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// What an event has beside its advertisement. Each is read from the whole text by itself, passing over what it does not know: read as one flattened
/// structure, members nobody knows would be built too, and some that JSON allows cannot be.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventHead {
    event_uuid: Option<Uuid>,
    observed_at: Timestamp,
}

/// What a window of a device has beside its advertisement.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WindowHead {
    count: i64,
    rssi_min: i16,
    rssi_max: i16,
    rssi_mean: f64,
    first_seen_at: Timestamp,
    last_seen_at: Timestamp,
}

impl StoredEvent {
    pub fn response(self) -> Result<BleEventResponse> {
        // Nothing is stored that was not checked on its way in.
        let parse_failed =
            |error: serde_json::Error| Error::internal(format!("stored event {}: {error}", self.ble_event_id));
        let mut advertisement: Advertisement = serde_json::from_str(&self.event).map_err(parse_failed)?;
        let (event_uuid, observed_at, window) = match (self.window_start, self.window_end) {
            (Some(window_start), Some(window_end)) => {
                let device: WindowHead = serde_json::from_str(&self.event).map_err(parse_failed)?;
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
                (None, device.last_seen_at, Some(window))
            }
            _ => {
                let event: EventHead = serde_json::from_str(&self.event).map_err(parse_failed)?;
                (event.event_uuid, event.observed_at, None)
            }
        };
        // The service may know the device where the hub did not.
        advertisement.device_instance_id = self.device_instance_id;
        Ok(BleEventResponse {
            ble_event_id: self.ble_event_id,
            received_at: Timestamp::from_micros(self.ble_event_id),
            hub_uuid: self.hub_uuid,
            processing_status: self.processing_status,
            delivery_status: self.delivery_status,
            event_uuid,
            observed_at,
            advertisement,
            window,
        })
    }
}
