//! The records of the API, with the members that programs of this repository use. The service may
//! send further members.

use std::collections::BTreeMap;

use hub_protocol::{AppUuid, HubJobUuid, HubUuid, ReleaseUuid, TenantUuid, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// How users log in at the service.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignInMethods {
    pub password: bool,
    pub oidc: Option<SignInIssuer>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignInIssuer {
    pub issuer: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tenant {
    pub tenant_uuid: TenantUuid,
    pub name: String,
    pub role: String,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hub {
    pub hub_uuid: HubUuid,
    pub device_instance_id: String,
    pub hub_identifier: Option<String>,
    pub hostname: Option<String>,
    pub agent_version: Option<String>,
    pub status: String,
    pub last_seen_at: Option<Timestamp>,
    pub last_telemetry_at: Option<Timestamp>,
    pub claimed_at: Timestamp,
    pub refresh_expires_at: Option<Timestamp>,
    #[serde(default)]
    pub suspected_clone: bool,
    #[serde(default)]
    pub flooding: bool,
}

impl Hub {
    /// The name to show.
    pub fn label(&self) -> &str {
        self.hub_identifier
            .as_deref()
            .or(self.hostname.as_deref())
            .unwrap_or(&self.device_instance_id)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Adapter {
    pub name: String,
    pub address: String,
    pub powered: bool,
    pub discovering: Option<bool>,
    pub role: Option<String>,
    pub last_seen_at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HubDetail {
    #[serde(flatten)]
    pub hub: Hub,
    pub description: Option<String>,
    pub blocked_at: Option<Timestamp>,
    pub adapters: Vec<Adapter>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HubBlock {
    pub hub_uuid: HubUuid,
    pub blocked: bool,
    pub blocked_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HubLog {
    pub hub_uuid: HubUuid,
    pub received_at: Timestamp,
    pub data: Value,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimCode {
    pub id: Uuid,
    pub claim_code: String,
    pub status: String,
    pub max_uses: i64,
    pub use_count: i64,
    pub hub_identifier: Option<String>,
    pub note: Option<String>,
    pub pairing_url: Option<String>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// The BLE events of a tenant that are in Parquet files.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    pub after_secs: Option<i64>,
    pub location: String,
    pub closed_to: Option<Timestamp>,
    pub files: i64,
    pub events: i64,
    pub file_bytes: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryFile {
    pub name: Uuid,
    pub path: String,
    pub from: Timestamp,
    pub to: Timestamp,
    pub events: i64,
    pub file_bytes: i64,
    pub sha256: String,
    pub url: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AffectedPackage {
    pub ecosystem: String,
    pub name: String,
    pub version: String,
    pub fixed_in: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VulnerableHubs {
    pub exposed: i64,
    pub not_affected: i64,
    pub fixed: i64,
    pub updating: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Vulnerability {
    pub id: String,
    pub severity: String,
    pub exploited: bool,
    pub title: String,
    pub packages: Vec<AffectedPackage>,
    pub hubs: VulnerableHubs,
    pub first_seen_at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VulnerableHub {
    pub hub_uuid: HubUuid,
    pub hub_identifier: Option<String>,
    pub status: String,
    pub packages: Vec<AffectedPackage>,
    pub since: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DependencyTrack {
    pub url: Option<String>,
    pub project: Option<String>,
    pub sent: i64,
    pub refused: i64,
    pub waiting: i64,
    pub releases: DependencyTrackReleases,
    pub last_sent_at: Option<Timestamp>,
    pub last_error: Option<String>,
    pub last_error_at: Option<Timestamp>,
    pub retry_at: Option<Timestamp>,
}

/// How far a server has releases.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DependencyTrackReleases {
    pub sent: i64,
    pub refused: i64,
    pub waiting: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NearestHub {
    pub hub_uuid: HubUuid,
    pub rssi_dbm: Option<i64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    pub device_instance_id: i64,
    pub device_uuid: Uuid,
    pub device_name: String,
    pub name: Option<String>,
    pub display_name: String,
    pub address: Option<String>,
    pub activation_status: String,
    pub online: bool,
    pub last_seen_at: Option<Timestamp>,
    pub nearest_hub: Option<NearestHub>,
    pub state: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Measurement {
    pub quantity: String,
    pub index: Option<u8>,
    pub value: Value,
    pub unit: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BleEvent {
    pub hub_uuid: HubUuid,
    pub device_instance_id: Option<i64>,
    pub device_uuid: Option<Uuid>,
    pub address: String,
    pub name: Option<String>,
    pub rssi: Option<i16>,
    pub processing_status: String,
    pub measurements: Vec<Measurement>,
    #[serde(default)]
    pub manufacturer_data: BTreeMap<String, String>,
    #[serde(default)]
    pub service_data: BTreeMap<String, String>,
    pub observed_at: Timestamp,
    pub received_at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct App {
    pub app_uuid: AppUuid,
    pub name: String,
    pub description: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppRelease {
    pub release_uuid: ReleaseUuid,
    pub version: String,
    pub architecture: String,
    pub counter: i64,
    pub status: String,
    pub sha256: String,
    pub upload_url: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseFile {
    pub release_uuid: ReleaseUuid,
    pub status: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    pub hub_job_uuid: HubJobUuid,
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub progress: Option<i64>,
    pub detail: Option<String>,
    pub version: Option<String>,
    pub created_at: Timestamp,
}

impl Job {
    pub fn has_finished(&self) -> bool {
        matches!(
            self.status.as_str(),
            "SUCCEEDED" | "FAILED" | "CANCELLED" | "EXPIRED"
        )
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    pub version: String,
    pub architecture: String,
    pub state: String,
    pub percent: i64,
    pub started: i64,
    pub succeeded: i64,
    pub failed: i64,
    pub silent: i64,
    pub reason: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    pub policy_uuid: Uuid,
    pub scope: String,
    pub hub_uuid: Option<HubUuid>,
    pub channel: String,
    pub auto_update: bool,
    pub version: Option<String>,
    pub rollouts: Vec<Rollout>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pipeline {
    pub pipeline_uuid: Uuid,
    pub name: String,
    pub status: String,
    pub destination: Value,
    pub lag_events: i64,
    pub last_delivered_at: Option<Timestamp>,
    pub last_error: Option<String>,
}
