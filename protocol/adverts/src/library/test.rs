//! Frames with what they say, which try a definition.

use std::collections::BTreeMap;
use std::fmt;

use uuid::Uuid;

use crate::frame::{Address, AddressType, Frame, LONGEST_PAYLOAD};
use crate::language::{DefinitionError, Node, uuid_of};
use crate::measurement::{Measurement, Value};
use crate::outcome::Keys;

/// A frame that owns its parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OwnedFrame {
    pub address: Option<Address>,
    pub address_type: Option<AddressType>,
    pub name: Option<String>,
    pub manufacturer_data: Vec<(u16, Vec<u8>)>,
    pub service_data: Vec<(Uuid, Vec<u8>)>,
    pub service_uuids: Vec<Uuid>,
}

/// `{"name"?, "address"?, "manufacturerData"?, "serviceData"?, "serviceUuids"?, "secrets"?,
/// "expect"}`. Payloads and secrets are hexadecimal. `expect` has a value for each quantity, under
/// `quantity[index]` where a quantity has an index, and null where the quantity must be absent.
#[derive(Debug, Clone)]
pub struct ModelTest {
    pub frame: OwnedFrame,
    pub bind_key: Option<Vec<u8>>,
    pub expect: BTreeMap<String, Option<Value>>,
}

/// A quantity that a test expected otherwise. `found` and `expected` are values in words, such as
/// `23.4` or `absent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// `quantity`, or `quantity[index]`.
    pub quantity: String,
    pub found: String,
    pub expected: String,
}

/// The difference as text, such as `temperature is 23.4, expected is 23.5`.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is {}, expected is {}",
            self.quantity, self.found, self.expected
        )
    }
}

impl OwnedFrame {
    /// Calls `with` with the frame as decoders take it.
    pub fn with<T>(&self, call: impl FnOnce(&Frame<'_>) -> T) -> T {
        let manufacturer: Vec<(u16, &[u8])> = self
            .manufacturer_data
            .iter()
            .map(|(id, data)| (*id, data.as_slice()))
            .collect();
        let service: Vec<(Uuid, &[u8])> = self
            .service_data
            .iter()
            .map(|(id, data)| (*id, data.as_slice()))
            .collect();
        call(&Frame {
            address: self.address,
            address_type: self.address_type,
            name: self.name.as_deref(),
            manufacturer_data: &manufacturer,
            service_data: &service,
            service_uuids: &self.service_uuids,
            ..Frame::default()
        })
    }

    /// Parses the members of a JSON object that describe a frame, and ignores others.
    pub fn parse(value: &serde_json::Value) -> Result<OwnedFrame, DefinitionError> {
        OwnedFrame::of(&Node::root(value))
    }

    fn of(node: &Node<'_>) -> Result<OwnedFrame, DefinitionError> {
        let object = node.map()?;
        let mut frame = OwnedFrame::default();
        if let Some(address) = object.get("address") {
            let bytes = address.hex(6, 6)?;
            frame.address = bytes.try_into().ok();
        }
        frame.name = object
            .get("name")
            .map(|name| name.text().map(str::to_owned))
            .transpose()?;
        if let Some(data) = object.get("manufacturerData") {
            for (id, payload) in data.map()?.entries() {
                let id = u16::from_str_radix(id, 16)
                    .map_err(|_| payload.error("its name must be a company identifier"))?;
                frame
                    .manufacturer_data
                    .push((id, payload.hex(0, LONGEST_PAYLOAD)?));
            }
        }
        if let Some(data) = object.get("serviceData") {
            for (id, payload) in data.map()?.entries() {
                let id =
                    uuid_of(id).ok_or_else(|| payload.error("its name must be a service UUID"))?;
                frame
                    .service_data
                    .push((id, payload.hex(0, LONGEST_PAYLOAD)?));
            }
        }
        if let Some(uuids) = object.get("serviceUuids") {
            for uuid in uuids.array()? {
                let id =
                    uuid_of(uuid.text()?).ok_or_else(|| uuid.error("must be a service UUID"))?;
                frame.service_uuids.push(id);
            }
        }
        Ok(frame)
    }
}

impl ModelTest {
    /// Parses a JSON object. The error names the member at fault.
    pub fn parse(value: &serde_json::Value) -> Result<ModelTest, DefinitionError> {
        ModelTest::of(&Node::root(value))
    }

    pub(super) fn of(node: &Node<'_>) -> Result<ModelTest, DefinitionError> {
        let known = [
            "name",
            "address",
            "manufacturerData",
            "serviceData",
            "serviceUuids",
            "secrets",
            "expect",
        ];
        let object = node.object(&known)?;
        let bind_key = match object.get("secrets") {
            None => None,
            Some(secrets) => {
                let key = secrets.object(&["bindKey"])?.required("bindKey")?;
                let bytes = key.hex(12, 16)?;
                if Keys::with_bind_key(&bytes).is_none() {
                    return Err(key.error("must be 16 bytes, or 12 of an old MiBeacon device"));
                }
                Some(bytes)
            }
        };
        let mut expect = BTreeMap::new();
        for (name, value) in object.required("expect")?.map()?.entries() {
            let expected = match value.value {
                serde_json::Value::Null => None,
                serde_json::Value::Bool(value) => Some(Value::Bool(*value)),
                serde_json::Value::String(text) => Some(Value::Text(text.clone())),
                serde_json::Value::Number(number) => number.as_f64().map(Value::Number),
                _ => return Err(value.error("must be a number, a text, true, false or null")),
            };
            expect.insert(name.to_owned(), expected);
        }
        Ok(ModelTest {
            frame: OwnedFrame::of(node)?,
            bind_key,
            expect,
        })
    }

    /// Calls `with` with the frame and the keys as decoders take them.
    pub fn with<T>(&self, call: impl FnOnce(&Frame<'_>, Keys<'_>) -> T) -> T {
        let keys = self
            .bind_key
            .as_deref()
            .and_then(Keys::with_bind_key)
            .unwrap_or_default();
        self.frame.with(|frame| call(frame, keys))
    }

    /// The differences from the expected values. Unnamed quantities may occur.
    pub fn differences(&self, measurements: &[Measurement]) -> Vec<Difference> {
        let mut differences = Vec::new();
        for (name, expected) in &self.expect {
            let found = measurements
                .iter()
                .find(|measurement| measurement.key() == *name)
                .map(|one| &one.value);
            let same = match (expected, found) {
                (Some(expected), Some(found)) => equal(expected, found),
                (None, None) => true,
                _ => false,
            };
            if !same {
                let (found, expected) = (shown(found), shown(expected.as_ref()));
                differences.push(Difference {
                    quantity: name.clone(),
                    found,
                    expected,
                });
            }
        }
        differences
    }

    /// The quantities that are there and not named.
    pub fn unexpected(&self, measurements: &[Measurement]) -> Vec<String> {
        measurements
            .iter()
            .map(Measurement::key)
            .filter(|key| !self.expect.contains_key(key))
            .collect()
    }
}

/// Numbers are equal if their JSON texts of 12 digits are.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            (left - right).abs() <= 1e-12 * left.abs().max(right.abs())
        }
        _ => left == right,
    }
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None => "absent".to_owned(),
        Some(Value::Number(value)) => value.to_string(),
        Some(Value::Bool(value)) => value.to_string(),
        Some(Value::Text(text)) => format!("{text:?}"),
    }
}
