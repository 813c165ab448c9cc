//! Telemetry and logs: free-form JSON that hubs upload and suppliers read. An array is one record an element, so that a hub may send many log
//! entries at once and each is listed and streamed by itself.

pub mod http;
mod store;

use std::fmt;

use hub_protocol::{HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

pub use store::{StoredRecord, logs_after};

/// Most records one upload may carry.
const MAX_RECORDS: usize = 1000;
/// The largest record: a hundred of them are one page of a list.
const MAX_RECORD_BYTES: usize = 256 * 1024;
/// How deep JSON may nest: readers with a recursion limit must be able to read it back.
pub const MAX_DEPTH: usize = 64;

/// One log entry of a hub.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubLogResponse {
    /// `receivedAt` in microseconds since 1970: unique and rising within the tenant.
    pub hub_log_id: i64,
    pub hub_uuid: HubUuid,
    pub received_at: Timestamp,
    /// What the hub sent.
    #[schemars(with = "serde_json::Value")]
    pub data: Box<RawValue>,
}

/// One telemetry document of a hub.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubTelemetryResponse {
    /// `receivedAt` in microseconds since 1970: unique and rising within the tenant.
    pub hub_telemetry_id: i64,
    pub hub_uuid: HubUuid,
    pub received_at: Timestamp,
    /// What the hub sent.
    #[schemars(with = "serde_json::Value")]
    pub data: Box<RawValue>,
}

impl From<StoredRecord> for HubLogResponse {
    fn from(record: StoredRecord) -> Self {
        let received_at = Timestamp::from_micros(record.id);
        Self { hub_log_id: record.id, hub_uuid: record.hub_uuid, received_at, data: json(record.body) }
    }
}

impl From<StoredRecord> for HubTelemetryResponse {
    fn from(record: StoredRecord) -> Self {
        let received_at = Timestamp::from_micros(record.id);
        Self { hub_telemetry_id: record.id, hub_uuid: record.hub_uuid, received_at, data: json(record.body) }
    }
}

/// Stored text is JSON: nothing else is let in.
fn json(text: String) -> Box<RawValue> {
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// How deep the JSON nests. The text must be valid JSON.
pub fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// JSON that any reader can hold: no number beyond all bounds, no half of a surrogate pair. Read without building anything, however large.
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

#[cfg(test)]
mod tests {
    #[test]
    fn depth_ignores_what_is_quoted() {
        for (json, expected) in
            [("1", 0), ("{}", 1), ("[[],[[]]]", 3), (r#"{"a":"[[[{"}"#, 1), (r#"["\"[[",{"b":[]}]"#, 3)]
        {
            assert_eq!(super::depth(json), expected, "{json}");
        }
    }
}
