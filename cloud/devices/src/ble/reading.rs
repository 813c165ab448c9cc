//! What the service has read from a BLE event, as it is stored beside it.

use std::collections::BTreeMap;

use hub_adverts::Address;
use hub_adverts::advertisement::address_text;
use hub_adverts::catalog::{Read, Status};
use hub_adverts::quantity::quantity;
use hub_adverts::{Kind, Measurement};
use schemars::JsonSchema;
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The recognised model and the values of an event. Absent members cost no space: most stored bytes
/// of a busy tenant are readings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reading {
    pub device_uuid: Uuid,
    /// The identifier that the event fits best, and how many bits it fixes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identifier_id: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub specificity: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_protocol_id: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_revision: Option<i64>,
    /// Values by quantity, or by `quantity[index]` for a quantity that occurs more than once.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub values: serde_json::Map<String, serde_json::Value>,
    /// The kinds of values that are not of their quantity's usual kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter_status: Option<CounterStatus>,
    /// The reason why it could not be decoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The address that the payload names, where it is not that of the advertiser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_address: Option<String>,
}

/// A problem with an event's counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CounterStatus {
    /// The authenticated counter is lower than an earlier one: the event may be a recording.
    Replayed,
}

/// A [`Reading`] as it is written, straight from what was read: every event of a known device has
/// one.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewReading<'a> {
    device_uuid: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    identifier_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    specificity: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_protocol_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol_revision: Option<i64>,
    #[serde(skip_serializing_if = "Values::is_empty")]
    values: Values<'a>,
    #[serde(skip_serializing_if = "Kinds::is_empty")]
    kinds: Kinds<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_address: Option<String>,
}

/// Values by key, of measurements.
struct Values<'a>(&'a [Measurement]);

impl Values<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for measurement in self.0 {
            match measurement.index {
                None => map.serialize_entry(measurement.quantity.name, &measurement.value)?,
                Some(_) => map.serialize_entry(&measurement.key(), &measurement.value)?,
            }
        }
        map.end()
    }
}

/// The kinds of those that are not of their quantity's usual kind, by key.
struct Kinds<'a>(&'a [Measurement]);

impl Kinds<'_> {
    fn unusual(&self) -> impl Iterator<Item = &Measurement> {
        self.0
            .iter()
            .filter(|measurement| measurement.kind != measurement.quantity.kind)
    }

    fn is_empty(&self) -> bool {
        self.unusual().next().is_none()
    }
}

impl Serialize for Kinds<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.unusual()
                .map(|measurement| (measurement.key(), kind_name(measurement.kind))),
        )
    }
}

/// The recognition of an event.
#[derive(Clone, Copy, Debug)]
pub struct Recognised {
    device_uuid: Uuid,
    identifier_id: Option<i64>,
    specificity: Option<u32>,
    payload_address: Option<Address>,
}

impl Recognised {
    /// The reading; None for an event of an unknown model.
    pub fn of(read: &Read<'_>) -> Option<Self> {
        Some(Self {
            device_uuid: read.model?.device_uuid,
            identifier_id: read.identifier.map(|found| found.identifier_id),
            specificity: read.identifier.map(|found| found.specificity),
            payload_address: read.payload_address,
        })
    }

    /// The text of a [`Reading`]. A protocol is its id and its revision.
    pub fn reading_text(
        self,
        protocol: Option<(i64, i64)>,
        measurements: &[Measurement],
        error: Option<&str>,
    ) -> Option<String> {
        let reading = NewReading {
            device_uuid: self.device_uuid,
            identifier_id: self.identifier_id,
            specificity: self.specificity,
            device_protocol_id: protocol.map(|(device_protocol_id, _)| device_protocol_id),
            protocol_revision: protocol.map(|(_, revision)| revision),
            values: Values(measurements),
            kinds: Kinds(measurements),
            error,
            payload_address: self.payload_address.map(address_text),
        };
        serde_json::to_string(&reading).ok()
    }
}

/// The text of a [`Reading`]; None of an event of which no model is known.
pub fn reading_text(read: &Read<'_>, measurements: &[Measurement]) -> Option<String> {
    let protocol = read.protocol.filter(|_| read.status != Status::Matched);
    let protocol = protocol.map(|protocol| (protocol.device_protocol_id, protocol.revision));
    Recognised::of(read)?.reading_text(protocol, measurements, read.error)
}

/// The text of a [`Reading`] with what is wrong with the event's counter.
pub fn with_counter_status(text: &str, status: CounterStatus) -> serde_json::Result<String> {
    let mut reading: Reading = serde_json::from_str(text)?;
    reading.counter_status = Some(status);
    serde_json::to_string(&reading)
}

impl Reading {
    /// The values as measurements. A quantity that this version does not know has no unit.
    pub fn measurements(&self) -> Vec<MeasurementResponse> {
        let measurement = |(key, value): (&String, &serde_json::Value)| {
            let (name, index) = split_key(key);
            let known = quantity(name);
            let kind = match self.kinds.get(key) {
                Some(kind) => kind.clone(),
                None => {
                    kind_name(known.map_or(Kind::Measurement, |quantity| quantity.kind)).to_owned()
                }
            };
            MeasurementResponse {
                quantity: name.to_owned(),
                value: value.clone(),
                unit: known.and_then(|quantity| quantity.unit).map(str::to_owned),
                kind: (kind != "MEASUREMENT").then_some(kind),
                index,
            }
        };
        self.values.iter().map(measurement).collect()
    }
}

/// The quantity's name and the index in a key.
pub fn split_key(key: &str) -> (&str, Option<u8>) {
    let parts = key
        .split_once('[')
        .and_then(|(name, rest)| Some((name, rest.strip_suffix(']')?.parse().ok()?)));
    parts.map_or((key, None), |(name, index)| (name, Some(index)))
}

/// The unit of a key's quantity.
pub fn unit_of(key: &str) -> Option<&'static str> {
    quantity(split_key(key).0).and_then(|quantity| quantity.unit)
}

const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Measurement => "MEASUREMENT",
        Kind::State => "STATE",
        Kind::Event => "EVENT",
        Kind::Counter => "COUNTER",
    }
}

/// A value that was read from an advertisement.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MeasurementResponse {
    /// A quantity of `GET /public/quantities`.
    pub quantity: String,
    /// A number, a text or a boolean.
    #[schemars(extend("type" = ["number", "string", "boolean"]))]
    pub value: serde_json::Value,
    /// The unit of a number, from the SenML registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// `STATE`, `EVENT` or `COUNTER`; absent for a measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The place of a quantity that occurs more than once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u8>,
}
