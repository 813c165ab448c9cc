//! What a hub tells about itself, and what the service wants of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::job::{DesiredJob, MaintenanceWindow};
use crate::{AppUuid, HubUuid, ReleaseUuid, TenantUuid};

/// `POST /v1/hubs/adapters`: every Bluetooth adapter the hub has now. At most 64.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdapterSnapshot {
    pub adapters: Vec<Adapter>,
}

/// One adapter as BlueZ's `org.bluez.Adapter1` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Adapter {
    /// `AA:BB:CC:DD:EE:FF`, the adapter's key: `hciN` names change across resets, addresses do not.
    pub address: String,
    /// The kernel's name, such as `hci0`.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    pub powered: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovering: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_type: Option<String>,
    /// Company identifier of the controller's maker (Bluetooth assigned numbers) or its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manufacturer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modalias: Option<String>,
}

/// The answer to an adapter snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AdapterSnapshotResult {
    /// Adapters of the snapshot that were written.
    pub upserted: i64,
    /// Adapters known before and absent from the snapshot, now marked as powered off.
    pub powered_off: i64,
}

/// What an operator wants an adapter to be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AdapterRole {
    Scanner,
    Connector,
    Disabled,
}

/// `GET /v1/hubs/{hubUuid}/desired-state`: all the service wants of the hub. `revision` grows with every change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DesiredState {
    pub revision: i64,
    /// Which release of the agent the hub should run, as far as a policy says so.
    pub agent: DesiredAgent,
    /// The apps that should be installed once all jobs are done.
    pub apps: Vec<DesiredApp>,
    /// What is to be done, oldest first, one at a time.
    pub jobs: Vec<DesiredJob>,
    /// Fetch `GET /v1/hubs/scan-config` again when this differs from the one last seen.
    pub scan_config_revision: i64,
    pub settings: HubSettings,
}

/// What the update policy that holds for this hub says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DesiredAgent {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The version it is to stay at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<MaintenanceWindow>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DesiredApp {
    pub app_uuid: AppUuid,
    pub release_uuid: ReleaseUuid,
    pub version: String,
}

/// What a supplier's operator set for this hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HubSettings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub_identifier: Option<String>,
    /// Role by adapter address; an adapter that is not named scans.
    #[serde(default)]
    pub adapter_roles: BTreeMap<String, AdapterRole>,
}

/// `GET /v1/hubs/scan-config`: what the tenant's hubs should know to recognise its devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScanConfig {
    pub revision: i64,
    pub devices: Vec<Value>,
    pub identifiers: Vec<Value>,
    pub protocols: Vec<Value>,
    pub routes: Vec<Value>,
}

/// `GET /v1/test`: who the service takes the caller for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HubTest {
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
    pub time: crate::Timestamp,
}
