//! BLE advertisements sent from hub to service, one by one or as windows of one device.
//!
//! Keys of `manufacturerData` are company identifiers, 4 lower-case hex digits (Bluetooth assigned
//! numbers). Keys of `serviceData` and the items of `serviceUuids` are 16-bit service UUIDs in 4
//! such digits, or longer UUIDs in full (lower case, with dashes). Payloads are base64 (RFC 4648,
//! with padding) and do not repeat the identifier.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{BatchUuid, Timestamp, TraceContext};

/// The most events, or devices, in one upload.
pub const MAX_EVENTS_PER_UPLOAD: usize = 10_000;

/// `POST /v1/ble/events`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BleEventUpload {
    /// Stored once however often it is sent, for 7 days.
    pub batch_uuid: BatchUuid,
    pub events: Vec<BleEvent>,
}

/// One advertisement as one adapter received it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BleEvent {
    /// Identifies the event, where the hub gave it an id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_uuid: Option<uuid::Uuid>,
    /// When the adapter received it, by the clock of the hub.
    pub observed_at: Timestamp,
    /// The trace that begins with it, as `traceparent` of W3C Trace Context. Most events have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub traceparent: Option<TraceContext>,
    #[serde(flatten)]
    pub payload: Advertisement,
}

/// `POST /v1/ble/events/windowed`: what was received from each device between two times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WindowedBleUpload {
    pub batch_uuid: BatchUuid,
    pub window_start: Timestamp,
    pub window_end: Timestamp,
    pub devices: Vec<BleDeviceWindow>,
}

/// One device within a window, with the payload that it sent last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BleDeviceWindow {
    /// Advertisements received.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub count: i64,
    /// The weakest signal, in dBm.
    #[cfg_attr(feature = "schema", schemars(range(min = -128, max = 127)))]
    pub rssi_min: i16,
    /// The strongest signal, in dBm.
    #[cfg_attr(feature = "schema", schemars(range(min = -128, max = 127)))]
    pub rssi_max: i16,
    /// The mean of the signal strengths, in dBm.
    pub rssi_mean: f64,
    /// The first advertisement of the window.
    pub first_seen_at: Timestamp,
    /// The last advertisement of the window.
    pub last_seen_at: Timestamp,
    #[serde(flatten)]
    pub payload: Advertisement,
}

/// What was advertised, by which device, and how strong the signal was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Advertisement {
    /// The adapter that received it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = crate::patterns::ADDRESS)))]
    pub adapter_address: Option<String>,
    /// The address of the advertiser, such as `AA:BB:CC:DD:EE:FF`.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = crate::patterns::ADDRESS)))]
    pub address: String,
    /// `public` or `random`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^(public|random)$")))]
    pub address_type: Option<String>,
    /// Signal strength in dBm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = -128, max = 127)))]
    pub rssi: Option<i16>,
    /// Transmit power in dBm, as advertised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = -128, max = 127)))]
    pub tx_power: Option<i16>,
    /// The name of the device, at most 248 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 248)))]
    pub name: Option<String>,
    /// Payload by company identifier: 4 lower-case hex digits (Bluetooth assigned numbers).
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = serde_json::json!({"pattern": crate::patterns::COMPANY}), "maxProperties" = 64)))]
    pub manufacturer_data: BTreeMap<String, Payload>,
    /// Payload by service UUID: 4 lower-case hex digits, or a longer UUID in full.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = serde_json::json!({"pattern": crate::patterns::SERVICE}), "maxProperties" = 64)))]
    pub service_data: BTreeMap<String, Payload>,
    /// Services: 4 lower-case hex digits, or a longer UUID in full.
    #[serde(
        default,
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[cfg_attr(feature = "schema", schemars(length(max = 64), inner(regex(pattern = crate::patterns::SERVICE))))]
    pub service_uuids: Vec<String>,
    /// The registered device that sent it, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub device_instance_id: Option<i64>,
}

/// Reads `null` as an absent field.
fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The answer to an upload of BLE events or windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BleUploadResult {
    /// Events, or devices, that were stored, or dropped by the route of the tenant.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub accepted: i64,
    /// Events that were not stored, and why. Sending them again does not help.
    pub rejected: Vec<RejectedEvent>,
    /// Whether an earlier request had stored this batch.
    pub duplicate: bool,
}

/// An event, or a device, that was not stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RejectedEvent {
    /// Its position in the upload, from 0.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub index: i64,
    /// What is wrong with it.
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
        // An advertisement's payload fits, and then needs no allocation.
        let mut short = [0; 352];
        let text = match STANDARD.encode_slice(&self.0, &mut short) {
            Ok(length) => short
                .get(..length)
                .and_then(|text| std::str::from_utf8(text).ok()),
            Err(_) => None,
        };
        match text {
            Some(text) => serializer.serialize_str(text),
            None => serializer.serialize_str(&STANDARD.encode(&self.0)),
        }
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
                STANDARD
                    .decode(text)
                    .map(Payload)
                    .map_err(|_| E::custom("not base64 (RFC 4648, with padding)"))
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
        schemars::json_schema!({
            "type": "string",
            "description": "Bytes in base64 (RFC 4648, with padding).",
            "contentEncoding": "base64",
            "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
            "maxLength": 2204,
        })
    }
}
