//! Telemetry and logs: free-form JSON that hubs upload and suppliers read. Each element of an
//! uploaded array is a record of its own, so that a hub can send many log entries at once and each
//! is listed and streamed individually.

mod blind;
pub mod http;
mod store;

use std::fmt;

use hub_protocol::{HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

pub use blind::{Sight, sights};
pub use store::{StoredRecord, logs_after, samples};

/// Records in one upload.
const MAX_RECORDS: usize = 1000;
/// The most bytes of a record. One page of a list holds a hundred of them.
const MAX_RECORD_BYTES: usize = 256 * 1024;

/// One log entry of a hub.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubLogResponse {
    /// The id: `receivedAt` in microseconds since 1970, unique and rising within the tenant.
    #[schemars(range(min = 1))]
    pub hub_log_id: i64,
    /// The hub.
    pub hub_uuid: HubUuid,
    /// When the service received it.
    pub received_at: Timestamp,
    /// The hub's data: any JSON.
    #[schemars(with = "serde_json::Value")]
    pub data: Box<RawValue>,
}

/// One telemetry record of a hub.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubTelemetryResponse {
    /// The id: `receivedAt` in microseconds since 1970, unique and rising within the tenant.
    #[schemars(range(min = 1))]
    pub hub_telemetry_id: i64,
    /// The hub.
    pub hub_uuid: HubUuid,
    /// When the service received it.
    pub received_at: Timestamp,
    /// The hub's data: any JSON.
    #[schemars(with = "serde_json::Value")]
    pub data: Box<RawValue>,
}

impl From<StoredRecord> for HubLogResponse {
    fn from(record: StoredRecord) -> Self {
        let received_at = Timestamp::from_micros(record.id);
        Self {
            hub_log_id: record.id,
            hub_uuid: record.hub_uuid,
            received_at,
            data: json(record.body),
        }
    }
}

impl From<StoredRecord> for HubTelemetryResponse {
    fn from(record: StoredRecord) -> Self {
        let received_at = Timestamp::from_micros(record.id);
        Self {
            hub_telemetry_id: record.id,
            hub_uuid: record.hub_uuid,
            received_at,
            data: json(record.body),
        }
    }
}

/// Stored text is valid JSON: uploads are validated.
fn json(text: String) -> Box<RawValue> {
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// JSON that any client can parse: no number out of range, no unpaired surrogate. It is checked
/// without building a value, regardless of its size.
struct Readable;

impl<'de> Deserialize<'de> for Readable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Readable)
    }
}

impl<'de> Visitor<'de> for Readable {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self, A::Error> {
        while seq.next_element::<Readable>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<Readable, Readable>()?.is_some() {}
        Ok(self)
    }
}
