//! BLE advertisements on their way from hub to service, one by one or as windows of one device.
//!
//! Keys of `manufacturerData` are company identifiers, 4 lower-case hex digits (Bluetooth assigned numbers); keys of `serviceData` and
//! the items of `serviceUuids` are 16-bit service UUIDs in 4 such digits, or longer UUIDs in full (lower case, with dashes).
//! Payloads are base64 (RFC 4648, with padding) and do not repeat the identifier.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{BatchUuid, Timestamp};

/// Most events, or devices, one upload may carry.
pub const MAX_EVENTS_PER_UPLOAD: usize = 10_000;

/// `POST /v1/ble/events`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BleEventUpload {
    /// Stored once however often it is sent, for 7 days.
    pub batch_uuid: BatchUuid,
    pub events: Vec<BleEvent>,
}

/// One advertisement as one adapter heard it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BleEvent {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_uuid: Option<uuid::Uuid>,
    pub observed_at: Timestamp,
    #[serde(flatten)]
    pub payload: Advertisement,
}

/// `POST /v1/ble/events/windowed`: what was heard of each device between two times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WindowedBleUpload {
    pub batch_uuid: BatchUuid,
    pub window_start: Timestamp,
    pub window_end: Timestamp,
    pub devices: Vec<BleDeviceWindow>,
}

/// One device within a window, with the payload it sent last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BleDeviceWindow {
    /// Advertisements heard.
    pub count: i64,
    /// dBm.
    pub rssi_min: i16,
    pub rssi_max: i16,
    pub rssi_mean: f64,
    pub first_seen_at: Timestamp,
    pub last_seen_at: Timestamp,
    #[serde(flatten)]
    pub payload: Advertisement,
}

/// Who advertised what, and how strongly it arrived.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Advertisement {
    /// The adapter that heard it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter_address: Option<String>,
    /// The advertiser, `AA:BB:CC:DD:EE:FF`.
    pub address: String,
    /// `public` or `random`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_type: Option<String>,
    /// dBm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rssi: Option<i16>,
    /// dBm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_power: Option<i16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub manufacturer_data: BTreeMap<String, Payload>,
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub service_data: BTreeMap<String, Payload>,
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub service_uuids: Vec<String>,
    /// The registered device this is, where the hub knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_instance_id: Option<i64>,
}

/// `null` says the same as no field.
fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The answer to both kinds of upload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BleUploadResult {
    /// Events, or devices, that were stored.
    pub accepted: i64,
    /// Those that were not, and why. Sending them again will not help.
    pub rejected: Vec<RejectedEvent>,
    /// True when this batch had been stored by an earlier request.
    pub duplicate: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RejectedEvent {
    /// Position in the upload, from 0.
    pub index: i64,
    pub message: String,
}

/// Bytes that are base64 in JSON.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Payload(pub Vec<u8>);

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(&self.0))
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Payload;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a base64 string")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Payload, E> {
                STANDARD.decode(text).map(Payload).map_err(|_| E::custom("not base64 (RFC 4648, with padding)"))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Payload {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Payload".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "contentEncoding": "base64"})
    }
}
