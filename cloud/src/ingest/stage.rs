//! The stage between validation and commit. Every upload passes it within its own request, before
//! it waits for the writer. Records are recognised and decoded here. The result is stored and
//! streamed with the record, so the writer and the readers of the log never decode.

use std::sync::Arc;

use hub_protocol::text_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Upload;

/// How far the service has processed a BLE event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ProcessingStatus {
    /// Stored, not processed yet.
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

/// Amends the records of one upload. It does no I/O and must not block, since the request waits for
/// it.
pub type Stage = Arc<dyn Fn(&mut Upload) + Send + Sync>;
