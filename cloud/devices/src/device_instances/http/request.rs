//! The bodies that register and change a device, and what is checked of them.

use std::collections::BTreeMap;

use hub_adverts::measurement::Kind;
use hub_adverts::quantity::quantity;
use hub_base::error::Result;
use hub_core::http::check::{Check, filled};
use hub_core::http::patch::{self, Change};
use hub_fleet::hubs;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::super::{
    AddressType, Beacon, Calibration, DeviceKey, MAX_CALIBRATION, NewInstance, Update,
};

const MAX_NAME_CHARS: usize = 200;
const MAX_SERIAL_NUMBER_CHARS: usize = 100;
const MAX_LABELS: usize = 64;
const MAX_LABEL_NAME_CHARS: usize = 64;
const MAX_LABEL_CHARS: usize = 256;
/// The most bytes of all names and values of a device together, which are part of every list.
const MAX_LABELS_BYTES: usize = 8 * 1024;
const BIND_KEY: &str = "^([0-9A-Fa-f]{24}|[0-9A-Fa-f]{32})$";
const IDENTITY_RESOLVING_KEY: &str = "^[0-9A-Fa-f]{32}$";

type Labels = BTreeMap<String, String>;
type Calibrations = BTreeMap<String, Calibration>;

/// A device to register. Without a beacon, an identity resolving key or an address, nothing that is
/// received is ever taken for it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateDeviceInstanceRequest {
    /// The model of the device.
    device_uuid: Uuid,
    /// Display name.
    #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    name: Option<String>,
    /// The address that the device advertises with, such as `C4:11:7D:DA:71:13`; of a device whose
    /// address changes, none.
    #[schemars(regex(pattern = "^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$"))]
    address: Option<String>,
    /// The kind of the address.
    address_type: Option<AddressType>,
    /// The beacon that the device sends.
    beacon: Option<Beacon>,
    /// The serial number, as its maker writes it.
    #[schemars(length(max = MAX_SERIAL_NUMBER_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    serial_number: Option<String>,
    /// The version of the model that the device is.
    device_version_uuid: Option<Uuid>,
    /// The key that its advertisements are encrypted with: 16 bytes, or 12 of older MiBeacon
    /// devices, as hex digits. It is never answered.
    #[schemars(regex(pattern = BIND_KEY))]
    bind_key: Option<String>,
    /// The key that its changing addresses are made from: 16 bytes as hex digits. It is never
    /// answered.
    #[schemars(regex(pattern = IDENTITY_RESOLVING_KEY))]
    identity_resolving_key: Option<String>,
    /// Names and values for users and programs: at most 64, with names of 1 to 64 characters and
    /// values of at most 256, and 8 KiB in all.
    #[schemars(extend("maxProperties" = MAX_LABELS))]
    labels: Option<Labels>,
    /// Corrections by quantity.
    calibration: Option<Calibrations>,
}

/// A member of a device that a change can remove.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeviceInstanceRemovable")]
enum Removable {
    Name,
    SerialNumber,
    DeviceVersionUuid,
    BindKey,
    IdentityResolvingKey,
    Labels,
    Calibration,
}

/// The most members that a change names to remove: each of them once.
const MAX_CLEAR: usize = 7;

/// Changes to a device. A member that is absent or null leaves the stored value unchanged.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateDeviceInstanceRequest {
    /// Display name.
    #[serde(default)]
    #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    name: Change<String>,
    /// The serial number, as its maker writes it.
    #[serde(default)]
    #[schemars(length(max = MAX_SERIAL_NUMBER_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    serial_number: Change<String>,
    /// The version of the model that the device is.
    #[serde(default)]
    device_version_uuid: Change<Uuid>,
    /// The key that its advertisements are encrypted with: 16 bytes, or 12 of older MiBeacon
    /// devices, as hex digits. It is never answered.
    #[serde(default)]
    #[schemars(regex(pattern = BIND_KEY))]
    bind_key: Change<String>,
    /// The key that its changing addresses are made from: 16 bytes as hex digits. It is never
    /// answered.
    #[serde(default)]
    #[schemars(regex(pattern = IDENTITY_RESOLVING_KEY))]
    identity_resolving_key: Change<String>,
    /// All names and values, which replace the stored ones: at most 64, with names of 1 to 64
    /// characters and values of at most 256, and 8 KiB in all.
    #[serde(default)]
    #[schemars(extend("maxProperties" = MAX_LABELS))]
    labels: Change<Labels>,
    /// All corrections by quantity, which replace the stored ones.
    #[serde(default)]
    calibration: Change<Calibrations>,
    /// The members whose stored values are removed; of `labels` and `calibration`, all entries.
    #[schemars(length(max = MAX_CLEAR))]
    clear: Option<Vec<Removable>>,
}

impl CreateDeviceInstanceRequest {
    pub fn checked(self) -> Result<NewInstance> {
        let mut check = Check::new();
        check.line("name", self.name.as_deref(), MAX_NAME_CHARS);
        check.line(
            "serialNumber",
            self.serial_number.as_deref(),
            MAX_SERIAL_NUMBER_CHARS,
        );
        let address = self.address.as_deref().and_then(hubs::normalized_address);
        let is_address = self.address.is_none() || address.is_some();
        check.that(
            is_address,
            "address",
            "must be an address such as C4:11:7D:DA:71:13",
        );
        let is_typed = self.address_type.is_none() || self.address.is_some();
        check.that(
            is_typed,
            "addressType",
            "must not be given without `address`",
        );
        if let Some(beacon) = &self.beacon {
            beacon.check(&mut check);
        }
        let bind_key = bind_key(&mut check, self.bind_key.as_deref());
        let identity_resolving_key =
            identity_resolving_key(&mut check, self.identity_resolving_key.as_deref());
        check_labels(&mut check, self.labels.as_ref());
        check_calibration(&mut check, self.calibration.as_ref());
        check.done()?;
        Ok(NewInstance {
            device_uuid: self.device_uuid,
            device_version_uuid: self.device_version_uuid,
            name: filled(self.name.as_deref()).map(str::to_owned),
            address,
            address_type: self.address_type,
            beacon: self.beacon,
            serial_number: filled(self.serial_number.as_deref()).map(str::to_owned),
            bind_key,
            identity_resolving_key,
            labels: self.labels.unwrap_or_default(),
            calibration: self.calibration.unwrap_or_default(),
        })
    }
}

impl UpdateDeviceInstanceRequest {
    pub fn checked(mut self) -> Result<Update> {
        let mut check = Check::new();
        let clear = self.clear.take();
        patch::clear(&mut check, clear, MAX_CLEAR, |member| match member {
            Removable::Name => self.name.clear(),
            Removable::SerialNumber => self.serial_number.clear(),
            Removable::DeviceVersionUuid => self.device_version_uuid.clear(),
            Removable::BindKey => self.bind_key.clear(),
            Removable::IdentityResolvingKey => self.identity_resolving_key.clear(),
            Removable::Labels => self.labels.clear(),
            Removable::Calibration => self.calibration.clear(),
        });
        check.line(
            "name",
            self.name.value().map(String::as_str),
            MAX_NAME_CHARS,
        );
        let serial_number = self.serial_number.value().map(String::as_str);
        check.line("serialNumber", serial_number, MAX_SERIAL_NUMBER_CHARS);
        let bind_key = bind_key(&mut check, self.bind_key.value().map(String::as_str));
        let resolving_key = self.identity_resolving_key.value().map(String::as_str);
        let resolving_key = identity_resolving_key(&mut check, resolving_key);
        check_labels(&mut check, self.labels.value());
        check_calibration(&mut check, self.calibration.value());
        check.done()?;
        Ok(Update {
            device_version_uuid: self.device_version_uuid,
            name: text(self.name),
            serial_number: text(self.serial_number),
            bind_key: key(&self.bind_key, bind_key),
            identity_resolving_key: key(&self.identity_resolving_key, resolving_key),
            labels: self.labels,
            calibration: self.calibration,
        })
    }
}

/// A blank text removes the value.
fn text(change: Change<String>) -> Change<String> {
    match change {
        Change::Set(text) => {
            filled(Some(&text)).map_or(Change::Clear, |text| Change::Set(text.to_owned()))
        }
        other => other,
    }
}

/// The change with the key that its digits have become.
fn key(change: &Change<String>, key: Option<DeviceKey>) -> Change<DeviceKey> {
    match (change, key) {
        (Change::Set(_), Some(key)) => Change::Set(key),
        (Change::Clear, _) => Change::Clear,
        (Change::Keep | Change::Set(_), _) => Change::Keep,
    }
}

fn bind_key(check: &mut Check, digits: Option<&str>) -> Option<DeviceKey> {
    let key = digits.and_then(DeviceKey::bind_key);
    let message = "must be 32 hex digits, or the 24 of an older MiBeacon key";
    check.that(digits.is_none() || key.is_some(), "bindKey", message);
    key
}

fn identity_resolving_key(check: &mut Check, digits: Option<&str>) -> Option<DeviceKey> {
    let key = digits.and_then(DeviceKey::identity_resolving_key);
    check.that(
        digits.is_none() || key.is_some(),
        "identityResolvingKey",
        "must be 32 hex digits",
    );
    key
}

fn check_labels(check: &mut Check, labels: Option<&Labels>) {
    let Some(labels) = labels else { return };
    check.that(
        labels.len() <= MAX_LABELS,
        "labels",
        format!("may have at most {MAX_LABELS} entries"),
    );
    let bytes: usize = labels
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    check.that(
        bytes <= MAX_LABELS_BYTES,
        "labels",
        format!("may have at most {MAX_LABELS_BYTES} bytes in all"),
    );
    let is_name = |name: &str| {
        (1..=MAX_LABEL_NAME_CHARS).contains(&name.chars().count())
            && name.trim() == name
            && !name.contains(char::is_control)
    };
    let message = format!(
        "names must have 1 to {MAX_LABEL_NAME_CHARS} characters, without spaces around them"
    );
    check.that(labels.keys().all(|name| is_name(name)), "labels", message);
    for (name, value) in labels
        .iter()
        .filter(|(name, _)| is_name(name))
        .take(MAX_LABELS)
    {
        check.line(&format!("labels.{name}"), Some(value), MAX_LABEL_CHARS);
    }
}

fn check_calibration(check: &mut Check, calibration: Option<&Calibrations>) {
    let Some(calibration) = calibration else {
        return;
    };
    let is_measured = |name: &str| {
        quantity(name)
            .is_some_and(|quantity| matches!(quantity.kind, Kind::Measurement | Kind::Counter))
    };
    let message = "must name quantities that are measured as numbers, such as `temperature`";
    check.that(
        calibration.keys().all(|name| is_measured(name)),
        "calibration",
        message,
    );
    for (name, Calibration { offset, scale }) in
        calibration.iter().filter(|(name, _)| is_measured(name))
    {
        let field = format!("calibration.{name}");
        check.that(
            offset.is_some() || scale.is_some(),
            &field,
            "must have `offset` or `scale`",
        );
        let in_range =
            |number: &Option<f64>| number.is_none_or(|number| number.abs() <= MAX_CALIBRATION);
        let message = format!("must be between -{MAX_CALIBRATION} and {MAX_CALIBRATION}");
        check.that(in_range(offset), format!("{field}.offset"), message.clone());
        check.that(in_range(scale), format!("{field}.scale"), message);
        check.that(
            *scale != Some(0.0),
            format!("{field}.scale"),
            "must not be 0",
        );
    }
}
