//! The reports of a hub about itself, and the state that the service requests of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::job::{DesiredJob, MaintenanceWindow};
use crate::{AppUuid, HubUuid, ReleaseUuid, TenantUuid, text_enum};

/// `POST /v1/hubs/adapters`: every Bluetooth adapter that the hub has now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdapterSnapshot {
    /// All adapters; one that is missing counts as powered off.
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub adapters: Vec<Adapter>,
}

/// One adapter as `org.bluez.Adapter1` of BlueZ shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Adapter {
    /// The address of the adapter, such as `AA:BB:CC:DD:EE:FF`, which identifies it: names such as
    /// `hci0` change across resets, addresses do not.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = crate::patterns::ADDRESS)))]
    pub address: String,
    /// The name that the kernel gave it, such as `hci0`.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 64), regex(pattern = crate::patterns::FILLED_LINE)))]
    pub name: String,
    /// The name that it advertises.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 248), regex(pattern = crate::patterns::LINE)))]
    pub alias: Option<String>,
    /// Whether it is switched on.
    pub powered: bool,
    /// Whether it is scanning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovering: Option<bool>,
    /// `public` or `random`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 32), regex(pattern = crate::patterns::LINE)))]
    pub address_type: Option<String>,
    /// Company identifier of the maker of the controller (Bluetooth assigned numbers), or its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 100), regex(pattern = crate::patterns::LINE)))]
    pub manufacturer: Option<String>,
    /// The hardware as the kernel names it, such as `usb:v1D6Bp0246d0542`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(max = 100), regex(pattern = crate::patterns::LINE)))]
    pub modalias: Option<String>,
}

/// The answer to an adapter snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AdapterSnapshotResult {
    /// Adapters of the snapshot that were stored.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub upserted: i64,
    /// Adapters that were known before, are missing from the snapshot and now count as powered off.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub powered_off: i64,
}

/// What an adapter is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AdapterRole {
    /// It scans for advertisements.
    Scanner,
    /// It is kept free for connections.
    Connector,
    /// It is not used.
    Disabled,
}

text_enum!(AdapterRole { Scanner = "SCANNER", Connector = "CONNECTOR", Disabled = "DISABLED" });

/// `GET /v1/hubs/{hubUuid}/desired-state`: all that is desired of the hub.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DesiredState {
    /// Grows with every change.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub revision: i64,
    /// Which release of the agent the hub should run, as far as a policy says so.
    pub agent: DesiredAgent,
    /// The apps that should be installed once all jobs are finished.
    pub apps: Vec<DesiredApp>,
    /// The jobs that are not finished, oldest first. A hub runs one at a time.
    pub jobs: Vec<DesiredJob>,
    /// Fetch `GET /v1/hubs/scan-config` again when this differs from the revision last seen.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub scan_config_revision: i64,
    /// What operators set for this hub.
    pub settings: HubSettings,
}

/// What the update policy that applies to this hub says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DesiredAgent {
    /// The release channel that the hub follows, such as `stable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The version that the hub stays at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When in the day an update may be applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<MaintenanceWindow>,
}

/// An app that should be installed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DesiredApp {
    /// The app.
    pub app_uuid: AppUuid,
    /// The release of it.
    pub release_uuid: ReleaseUuid,
    /// The version of that release.
    pub version: String,
}

/// What operators set for a hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HubSettings {
    /// The label of the hub, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub_identifier: Option<String>,
    /// Role by adapter address. An adapter that is not named scans.
    #[serde(default)]
    pub adapter_roles: BTreeMap<String, AdapterRole>,
    /// When the hub uploads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uploads: Option<UploadPauses>,
    /// Whether the hub reports no BLE events: its owner has not consented to it.
    #[serde(default)]
    pub withhold_events: bool,
}

/// The pauses between the uploads of a hub. They follow from the limit of its tenant and the number
/// of hubs that share it: a hub that keeps to them is not answered 429. With a pause of P, uploads
/// are due when the milliseconds since 1970, by the service's clock, divided by P leave a rest of
/// `phase` times P.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UploadPauses {
    /// Milliseconds between two uploads of telemetry.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub telemetry_pause_ms: i64,
    /// Milliseconds between two uploads of BLE events, single and windowed together.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub ble_events_pause_ms: i64,
    /// Milliseconds between two uploads of log entries.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub logs_pause_ms: i64,
    /// The hub's place between the beginning and the end of a pause: 0 or more, less than 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub phase: f64,
}

/// `GET /v1/test`: the caller as the service identifies it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HubTest {
    /// The hub.
    pub hub_uuid: HubUuid,
    /// The tenant that the hub belongs to.
    pub tenant_uuid: TenantUuid,
    /// The time of the service.
    pub time: crate::Timestamp,
}
