//! How far BLE events are processed.

use hub_adverts::catalog::Status;
use hub_protocol::text_enum;
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
