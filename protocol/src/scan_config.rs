//! The configuration with which a hub recognises the devices of its tenant, reads their
//! advertisements, and selects the ones that it reports.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::HubUuid;

/// `GET /v1/hubs/scan-config`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScanConfig {
    /// Grows with every change, but not with a change of `keys`.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub revision: i64,
    /// Device models, and the registered devices.
    pub devices: Vec<ScanDevice>,
    /// What advertisements of the models are recognised by.
    pub identifiers: Vec<ScanIdentifier>,
    /// How their payloads are read.
    pub protocols: Vec<ScanProtocol>,
    /// What a hub does with an advertisement: the first rule that fits decides.
    pub routes: Vec<RouteRule>,
    /// What hubs do with an advertisement that no rule fits.
    pub otherwise: Otherwise,
    /// Keys of devices whose advertisements this hub has to read. Never logged.
    pub keys: Vec<ScanKeys>,
}

/// A device model, or a registered device if it has a `deviceInstanceId`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScanDevice {
    /// The model.
    pub device_uuid: Uuid,
    /// The registered device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub device_instance_id: Option<i64>,
    /// The name of the model, or of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Seconds between two advertisements that are expected of the model's devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub expected_interval_seconds: Option<i64>,
    /// What reads its advertisements; of a device, where its version names another one than its
    /// model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub device_protocol_id: Option<i64>,
    /// The public or static address of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = crate::patterns::ADDRESS)))]
    pub address: Option<String>,
    /// What the payload identifies the device by: `{"uuid", "major", "minor"}` or `{"namespace",
    /// "instance"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beacon: Option<Map<String, Value>>,
    /// By quantity: the value times `scale`, plus `offset`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calibration: BTreeMap<String, ScanCalibration>,
}

/// A correction of a measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScanCalibration {
    /// Added after scaling, in the unit of the quantity.
    pub offset: f64,
    /// A factor.
    pub scale: f64,
}

/// Conditions that must all hold of an advertisement of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScanIdentifier {
    /// The identifier.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub id: i64,
    /// The model.
    pub device_uuid: Uuid,
    /// As in the catalog: `{"kind", "value", "mask"?}`.
    pub conditions: Vec<Map<String, Value>>,
}

/// A decoder of the catalog.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScanProtocol {
    /// The protocol.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub device_protocol_id: i64,
    /// It changes with `kind` and `definition`.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub revision: i64,
    /// `BUILTIN` or `DECLARATIVE`.
    pub kind: String,
    /// The name of a built-in decoder, or a definition.
    pub definition: Map<String, Value>,
}

/// Keys of a registered device. It has no `Debug` of its own that would show them.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ScanKeys {
    /// The device.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub device_instance_id: i64,
    /// 12 or 16 bytes as hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind_key: Option<String>,
    /// 16 bytes as hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_resolving_key: Option<String>,
}

impl std::fmt::Debug for ScanKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScanKeys")
            .field("device_instance_id", &self.device_instance_id)
            .finish_non_exhaustive()
    }
}

/// Where a rule is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RouteLayer {
    /// On the hub, before anything is stored there.
    Hub,
    /// In the service, before the event is stored.
    Cloud,
}

/// What becomes of an advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RouteAction {
    /// It is passed on.
    Forward,
    /// It is dropped.
    Drop,
    /// One in `everySeconds` of each device is passed on.
    Sample,
    /// The advertisements of a device are folded into one for each `everySeconds`.
    Window,
    /// It is passed on when one of `quantities` has changed by its delta.
    OnChange,
}

/// What becomes of an advertisement that no rule fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Otherwise {
    /// It is passed on.
    #[default]
    Forward,
    /// It is dropped.
    Drop,
    /// Hubs fold the advertisements of a device into windows.
    Window,
}

/// What a rule fits. All members that are given must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RouteMatch {
    /// Advertisements of this model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_uuid: Option<Uuid>,
    /// Advertisements of this registered device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub device_instance_id: Option<i64>,
    /// What this hub receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub_uuid: Option<HubUuid>,
    /// Whether the device model is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<bool>,
    /// The weakest signal, in dBm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = -128, max = 127)))]
    pub min_rssi_dbm: Option<i16>,
    /// A company identifier of its manufacturer data: 4 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[0-9a-fA-F]{4}$")))]
    pub company_id: Option<String>,
    /// A service that it advertises, or has data of: 4 hex digits, or a longer UUID in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_uuid: Option<String>,
}

/// One rule of a route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RouteRule {
    /// Where it is applied.
    pub layer: RouteLayer,
    /// What it fits; everything if it has no members.
    #[serde(rename = "match", default)]
    pub fits: RouteMatch,
    /// What becomes of it.
    pub action: RouteAction,
    /// Of `SAMPLE`, `WINDOW`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 86_400)))]
    pub every_seconds: Option<i64>,
    /// Of `ON_CHANGE`: the least change by quantity, in its unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quantities: BTreeMap<String, f64>,
    /// The pipelines that see the event, in a `CLOUD` rule; all if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 100)))]
    pub pipeline_uuids: Vec<Uuid>,
}
