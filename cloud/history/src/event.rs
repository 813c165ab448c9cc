//! An event of the log, as the database and the files have it.

use hub_adverts::catalog::Status;
use hub_protocol::{HubUuid, Timestamp, text_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far the service has processed a BLE event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ProcessingStatus {
    /// Stored as it came: the tenant has no device models.
    Received,
    /// Its device model is known.
    Matched,
    /// No device model fits.
    Unmatched,
    /// Its payload is decoded.
    Decoded,
    /// Its payload could not be decoded.
    Failed,
}

text_enum!(ProcessingStatus {
    Received = "RECEIVED",
    Matched = "MATCHED",
    Unmatched = "UNMATCHED",
    Decoded = "DECODED",
    Failed = "FAILED",
});

impl From<Status> for ProcessingStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Unmatched => Self::Unmatched,
            Status::Matched => Self::Matched,
            Status::Decoded => Self::Decoded,
            Status::Failed => Self::Failed,
        }
    }
}

/// An event as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    pub ble_event_id: i64,
    pub hub_uuid: HubUuid,
    pub device_instance_id: Option<i64>,
    pub processing_status: ProcessingStatus,
    pub window: Option<(Timestamp, Timestamp)>,
    /// The id of the first reception of the same frame; None of the first.
    pub observation_id: Option<i64>,
    /// When the event was last reprocessed with a change.
    pub reprocessed_at: Option<Timestamp>,
    /// The JSON object as the hub sent it.
    pub event: String,
    /// A JSON object: how the event was recognised, and what it says.
    pub reading: Option<String>,
}

impl StoredEvent {
    /// The bytes of its JSON.
    pub fn text_bytes(&self) -> usize {
        self.event.len() + self.reading.as_deref().map_or(0, str::len)
    }
}
