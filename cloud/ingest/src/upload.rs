//! An upload, and the records in it.

use std::sync::Arc;

use hub_identity::authn::hub::Hub;
use hub_protocol::Timestamp;

use super::ProcessingStatus;
use super::derived::Heard;
use super::kinds::Kind;

/// A record to store: a BLE event, a log entry or a telemetry document.
#[derive(Clone, Debug)]
pub struct Record {
    /// JSON as the hub sent it.
    pub text: Arc<str>,
    pub device_instance_id: Option<i64>,
    /// The window of a windowed BLE upload.
    pub window: Option<(Timestamp, Timestamp)>,
    /// How far it was processed before the commit, for a BLE event.
    pub processing_status: ProcessingStatus,
    /// What was read from it, as JSON.
    pub reading: Option<Arc<str>>,
    /// Equal for all receptions of one frame, whichever hub received it.
    pub observation: Option<Observation>,
}

/// What tells that two receptions are of one frame.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// A hash of the sender and of its sequence number or its payload.
    pub hash: u64,
    pub observed_at: Timestamp,
    /// A sequence number tells frames apart; without one, a hub that receives the payload again
    /// receives another frame.
    pub has_sequence: bool,
}

impl Record {
    /// A record that streams send unchanged as one line. Line breaks can occur between the tokens
    /// of JSON, never inside of one.
    pub fn on_one_line(json: &str) -> Self {
        Self::new(
            match json.bytes().any(|byte| matches!(byte, b'\n' | b'\r')) {
                true => json.replace(['\n', '\r'], " ").into(),
                false => json.into(),
            },
        )
    }

    /// A record of which nothing but the text is known.
    pub fn new(text: Arc<str>) -> Self {
        Self {
            text,
            device_instance_id: None,
            window: None,
            processing_status: ProcessingStatus::Received,
            reading: None,
            observation: None,
        }
    }

    /// The memory that it uses.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.reading.as_deref().map_or(0, str::len) + size_of::<Self>()
    }
}

/// An upload that was validated and can be stored.
#[derive(Debug)]
pub struct Upload {
    pub hub: Hub,
    pub kind: Kind,
    /// The idempotency key, by which a retry of this upload is recognised.
    pub key: Option<String>,
    pub records: Vec<Record>,
    /// What the records say of devices.
    pub heard: Vec<Heard>,
    /// The response, now and to a retry.
    pub answer: String,
    pub agent: ReportedAgent,
}

/// What telemetry says of the agent that sent it.
#[derive(Clone, Debug, Default)]
pub struct ReportedAgent {
    pub version: Option<Arc<str>>,
    /// The kernel's id of the machine's boot.
    pub boot_id: Option<Arc<str>>,
}
