//! Device commands: what a hub does with a device over a connection, and what it reports of it.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The longest value of a characteristic (Bluetooth Core Specification, Vol 3, Part F, 3.2.9).
pub const MAX_VALUE_BYTES: usize = 512;
/// Values that one command reads are reported up to this size together.
pub const MAX_READ_BYTES: usize = 4 * 1024;

/// What is done with a characteristic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum GattOperation {
    /// Its value is read.
    Read,
    /// A value is written and acknowledged.
    Write,
    /// A value is written.
    WriteWithoutResponse,
    /// The next notification is awaited.
    Notify,
}

/// One operation on a characteristic, as a hub carries it out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeviceCommandStep {
    /// The service.
    pub service: Uuid,
    /// The characteristic.
    pub characteristic: Uuid,
    /// What is done.
    pub operation: GattOperation,
    /// What is written, in hexadecimal; of the two operations that write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(regex(pattern = "^([0-9a-f]{2}){1,512}$"))
    )]
    pub value: Option<String>,
    /// How long the step may take; the hub decides when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 120_000)))]
    pub timeout_millis: Option<i64>,
}

/// What a hub does with a device, once: it connects, takes the steps in their order, and
/// disconnects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeviceCommand {
    /// The device.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub device_instance_id: i64,
    /// Its address, in upper case.
    #[cfg_attr(
        feature = "schema",
        schemars(regex(pattern = "^([0-9A-F]{2}:){5}[0-9A-F]{2}$"))
    )]
    pub address: String,
    /// The steps.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 64)))]
    pub steps: Vec<DeviceCommandStep>,
}

/// What came of a step that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceCommandOutcome {
    /// The characteristic.
    pub characteristic: Uuid,
    /// What was done.
    pub operation: GattOperation,
    /// What was read or notified, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Whether there was more than is reported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}
