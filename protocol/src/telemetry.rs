//! Telemetry and logs as `hub-agent` sends them. The service accepts any JSON on both endpoints (an
//! array is one record for each element, at most 1,000). These are the shapes that the agent of
//! this project sends and that readers may rely on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;

/// `POST /v1/hubs/{hubUuid}/telemetry`: the machine, and the agent itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentTelemetry {
    pub observed_at: Timestamp,
    pub agent_version: String,
    /// The kernel's boot id, which distinguishes a reboot from a restart.
    pub boot_id: String,
    pub machine: MachineTelemetry,
    pub agent: AgentHealth,
    pub spool: SpoolHealth,
    /// By adapter address.
    pub adapters: BTreeMap<String, ScanHealth>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineTelemetry {
    pub uptime_secs: u64,
    pub load_1m: f64,
    pub memory_total_bytes: u64,
    pub memory_available_bytes: u64,
    pub disk_total_bytes: u64,
    pub disk_available_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_celsius: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentHealth {
    pub uptime_secs: u64,
    pub resident_bytes: u64,
    pub cpu_secs: f64,
    /// How long the path to the service holds a request, where that is less than wanted: something
    /// in between ends requests that wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_holds_secs: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpoolHealth {
    pub batches: u64,
    pub events: u64,
    pub bytes: u64,
    pub oldest_age_secs: u64,
    /// Events dropped since the spool was created, because it was full.
    pub dropped_events: u64,
    /// Events since the spool was created that came faster than they could be stored.
    #[serde(default)]
    pub lost_events: u64,
    /// Records since the spool was created that belonged to an owner whom the hub no longer has.
    #[serde(default)]
    pub discarded_records: u64,
    /// Bytes that another version of the agent wrote and this one cannot read. They are uploaded
    /// when such a version runs.
    #[serde(default)]
    pub set_aside_bytes: u64,
    /// Why nothing can be written to the disk, while that is so: it is full, or broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// The scanning state of one adapter. A gap in a device's data is caused by the device if the hub
/// was listening, and by the hub otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScanHealth {
    pub state: ScanState,
    /// Why the hub is blind, as text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub advertisements: u64,
    pub advertisements_per_sec: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heard_at: Option<Timestamp>,
    pub restarts: u64,
    /// Blind periods of this adapter within the reporting period. Silence outside of them is caused
    /// by the devices.
    pub blind: Vec<BlindPeriod>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ScanState {
    /// Listening, and advertisements were received recently.
    Listening,
    /// Listening, all checks pass, and there are no advertisements nearby.
    Silent,
    /// Not listening: see `reason`.
    Blind,
    /// An operator assigned another role to the adapter.
    Disabled,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlindPeriod {
    pub from: Timestamp,
    /// Absent while the period lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    pub reason: String,
}

/// One entry of `POST /v1/hubs/{hubUuid}/logs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry {
    pub at: Timestamp,
    /// `ERROR`, `WARN`, `INFO` or `DEBUG`.
    pub level: String,
    pub target: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, Value>,
}
