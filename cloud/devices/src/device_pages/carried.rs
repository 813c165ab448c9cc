//! What an action comes to with the parameters of one command: a call of an external endpoint, or
//! the bytes of steps over GATT.

use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_identity::authz::Scope;
use hub_protocol::command::{DeviceCommandStep, GattOperation, MAX_VALUE_BYTES};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::parameters::{self, at, escaped};
use super::transport::{GattStep, Transport, TransportKind};
use super::{EndpointMethod, actions};

/// The base UUID of the short forms (Bluetooth Core Specification, Vol 3, Part B, 2.5.1).
const BASE_UUID: u128 = 0x0000_0000_0000_1000_8000_0080_5f9b_34fb;

/// An action, with the parameters of one command.
pub struct Prepared {
    pub action_id: String,
    parameters_schema: Option<String>,
    transport: String,
}

/// The means of carrying an action out.
pub enum Carried {
    Http {
        external_endpoint_id: Uuid,
        path: String,
        method: EndpointMethod,
    },
    Gatt(Vec<DeviceCommandStep>),
}

/// The tenant's action, if it is for devices of the model.
pub async fn prepare(
    conn: &mut Conn,
    scope: &Scope,
    action_id: &str,
    device_uuid: Uuid,
) -> Result<Prepared> {
    let row = actions::get(conn, scope, action_id).await?;
    if row.device_uuid.is_some_and(|model| model != device_uuid) {
        return Err(Error::not_found("action"));
    }
    Ok(Prepared {
        action_id: row.action_id,
        parameters_schema: row.parameters,
        transport: row.transport,
    })
}

impl Prepared {
    /// Fails with 400 if the parameters do not fit. It takes a while for a large schema: not for a
    /// thread that serves requests.
    pub fn carried(self, parameters: &Map<String, Value>) -> Result<Carried> {
        parameters::validate(self.parameters_schema.as_deref(), parameters)?;
        let transport: Transport =
            serde_json::from_str(&self.transport).map_err(Error::internal)?;
        let incomplete = || Error::internal("a stored action lacks a part of its transport");
        match transport.kind {
            TransportKind::Http => Ok(Carried::Http {
                external_endpoint_id: transport.external_endpoint_id.ok_or_else(incomplete)?,
                path: transport.path.ok_or_else(incomplete)?,
                method: transport.method.ok_or_else(incomplete)?,
            }),
            TransportKind::Gatt => {
                let steps = transport.steps.ok_or_else(incomplete)?;
                Ok(Carried::Gatt(
                    steps
                        .iter()
                        .map(|step| carried_step(step, parameters))
                        .collect::<Result<_>>()?,
                ))
            }
        }
    }
}

fn carried_step(step: &GattStep, parameters: &Map<String, Value>) -> Result<DeviceCommandStep> {
    let uuid = |text: &str| {
        full_uuid(text).ok_or_else(|| Error::internal("a stored action has a malformed UUID"))
    };
    let is_written = matches!(
        step.operation,
        GattOperation::Write | GattOperation::WriteWithoutResponse
    );
    let value = match &step.value {
        Some(value) if is_written => Some(hex::encode(bytes(value, parameters)?)),
        _ => None,
    };
    Ok(DeviceCommandStep {
        service: uuid(&step.service)?,
        characteristic: uuid(&step.characteristic)?,
        operation: step.operation,
        value,
        timeout_millis: step.timeout_millis,
    })
}

fn full_uuid(text: &str) -> Option<Uuid> {
    match text.len() {
        4 | 8 => {
            let short = u32::from_str_radix(text, 16).ok()?;
            Some(Uuid::from_u128((u128::from(short) << 96) | BASE_UUID))
        }
        _ => Uuid::try_parse(text).ok(),
    }
}

/// The bytes that a step writes.
fn bytes(value: &Value, parameters: &Map<String, Value>) -> Result<Vec<u8>> {
    let malformed = || Error::internal("a stored action has a malformed value");
    let mut written = Vec::new();
    match value {
        Value::String(text) => {
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (digits, place) = rest
                    .split_once('{')
                    .map_or((rest, None), |(digits, after)| (digits, Some(after)));
                written.extend(hex::decode(digits).map_err(Error::internal)?);
                rest = "";
                if let Some((name, after)) = place.and_then(|place| place.split_once('}')) {
                    written.extend(in_place(name, parameters)?);
                    rest = after;
                }
            }
        }
        Value::Array(parts) => {
            for part in parts {
                let text = |name: &str| part.get(name).and_then(Value::as_str);
                match (text("hex"), text("parameter"), text("type")) {
                    (Some(digits), _, _) => {
                        written.extend(hex::decode(digits).map_err(Error::internal)?)
                    }
                    (None, Some(name), Some(kind)) => {
                        written.extend(typed(name, kind, parameters)?)
                    }
                    _ => return Err(malformed()),
                }
            }
        }
        _ => return Err(malformed()),
    }
    if !(1..=MAX_VALUE_BYTES).contains(&written.len()) {
        let message = format!(
            "come to {} bytes in a step, which has to write 1 to {MAX_VALUE_BYTES}",
            written.len()
        );
        return Err(Error::field(at(""), message));
    }
    Ok(written)
}

fn refused(name: &str, message: impl Into<String>) -> Error {
    Error::field(at(&format!("/{}", escaped(name))), message)
}

fn given<'p>(name: &str, parameters: &'p Map<String, Value>) -> Result<&'p Value> {
    parameters
        .get(name)
        .ok_or_else(|| refused(name, "is required: a step writes it"))
}

/// A parameter between hexadecimal digits: bytes in hexadecimal text, one byte as a number, or a
/// boolean as 01 or 00.
fn in_place(name: &str, parameters: &Map<String, Value>) -> Result<Vec<u8>> {
    let given = given(name, parameters)?;
    let number = || given.as_u64().and_then(|number| u8::try_from(number).ok());
    let found = match given {
        Value::Bool(is_set) => Some(vec![u8::from(*is_set)]),
        Value::String(digits) => hex::decode(digits).ok(),
        _ => number().map(|byte| vec![byte]),
    };
    found.ok_or_else(|| {
        refused(
            name,
            "must be bytes in hexadecimal text, a number from 0 to 255, or a boolean",
        )
    })
}

/// A parameter in the bytes of a type. Numbers are little-endian without `be` in the type.
fn typed(name: &str, kind: &str, parameters: &Map<String, Value>) -> Result<Vec<u8>> {
    let given = given(name, parameters)?;
    let is_big_endian = kind.ends_with("be");
    let base = kind
        .strip_suffix("le")
        .or_else(|| kind.strip_suffix("be"))
        .unwrap_or(kind);
    let mut little_endian = match base {
        "text" => {
            let text = given
                .as_str()
                .ok_or_else(|| refused(name, "must be text"))?;
            return Ok(text.as_bytes().to_vec());
        }
        "hex" => {
            let digits = given.as_str().and_then(|digits| hex::decode(digits).ok());
            return digits.ok_or_else(|| refused(name, "must be bytes in hexadecimal text"));
        }
        "f32" | "f64" => {
            let number = given
                .as_f64()
                .ok_or_else(|| refused(name, "must be a number"))?;
            match base {
                "f32" => (number as f32).to_le_bytes().to_vec(),
                _ => number.to_le_bytes().to_vec(),
            }
        }
        _ => {
            let bits: u32 = base
                .get(1..)
                .and_then(|bits| bits.parse().ok())
                .unwrap_or(64);
            integer(given, base.starts_with('i'), bits).ok_or_else(|| {
                let kind = if base.starts_with('i') {
                    "a whole number"
                } else {
                    "a whole number that is not negative"
                };
                refused(name, format!("must be {kind} of {bits} bits"))
            })?
        }
    };
    if is_big_endian {
        little_endian.reverse();
    }
    Ok(little_endian)
}

/// An integer of this many bits, little-endian. A number with a fraction of zero is whole.
fn integer(given: &Value, is_signed: bool, bits: u32) -> Option<Vec<u8>> {
    let whole =
        |number: f64| (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i128);
    let number = match (given.as_i64(), given.as_u64()) {
        (Some(number), _) => i128::from(number),
        (None, Some(number)) => i128::from(number),
        (None, None) => given.as_f64().and_then(whole)?,
    };
    let range = match is_signed {
        true => -(1_i128 << (bits - 1))..(1_i128 << (bits - 1)),
        false => 0..(1_i128 << bits),
    };
    let count = usize::try_from(bits / 8).ok()?;
    range
        .contains(&number)
        .then(|| number.to_le_bytes().into_iter().take(count).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(value: Value, parameters: Value) -> Result<String, String> {
        let parameters = parameters.as_object().cloned().unwrap_or_default();
        bytes(&value, &parameters)
            .map(hex::encode)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn values_become_bytes() {
        let parameters = json!({"level": 200, "on": true, "code": "0aFF", "name": "Ada", "t": -2.0, "big": 66051, "f": 1.5});
        for (value, expected) in [
            (json!("01{level}ff{on}"), "01c8ff01"),
            (json!("{code}"), "0aff"),
            (
                json!([{"hex": "7E"}, {"parameter": "big", "type": "u24be"}]),
                "7e010203",
            ),
            (json!([{"parameter": "big", "type": "u32"}]), "03020100"),
            (
                json!([{"parameter": "t", "type": "i16le"}, {"parameter": "name", "type": "text"}]),
                "feff416461",
            ),
            (json!([{"parameter": "f", "type": "f32be"}]), "3fc00000"),
            (json!([{"parameter": "code", "type": "hex"}]), "0aff"),
            (json!([{"parameter": "level", "type": "u8"}]), "c8"),
        ] {
            assert_eq!(
                written(value.clone(), parameters.clone()),
                Ok(expected.to_owned()),
                "{value}"
            );
        }
    }

    #[test]
    fn what_has_no_bytes_is_refused_by_its_place() {
        for (value, parameters, place) in [
            (json!("{level}"), json!({}), "/parameters/level"),
            (json!("{level}"), json!({"level": 256}), "/parameters/level"),
            (json!("{level}"), json!({"level": "0"}), "/parameters/level"),
            (json!("{a/b}"), json!({"a/b": null}), "/parameters/a~1b"),
            (json!("{level}"), json!({"level": ""}), "/parameters"),
            (
                json!("{level}"),
                json!({"level": "00".repeat(513)}),
                "/parameters",
            ),
            (
                json!([{"parameter": "level", "type": "i8"}]),
                json!({"level": 128}),
                "/parameters/level",
            ),
            (
                json!([{"parameter": "level", "type": "u8"}]),
                json!({"level": -1}),
                "/parameters/level",
            ),
            (
                json!([{"parameter": "level", "type": "u64"}]),
                json!({"level": 1.5}),
                "/parameters/level",
            ),
            (
                json!([{"parameter": "level", "type": "text"}]),
                json!({"level": 1}),
                "/parameters/level",
            ),
        ] {
            let error = written(value.clone(), parameters).err().unwrap_or_default();
            assert!(
                error.starts_with(&format!("`{place}` is not valid")),
                "{value}: {error}"
            );
        }
    }

    #[test]
    fn short_uuids_are_those_of_bluetooth() {
        let battery = "0000180f-0000-1000-8000-00805f9b34fb";
        for text in ["180f", "0000180F", battery] {
            assert_eq!(
                full_uuid(text).map(|uuid| uuid.to_string()).as_deref(),
                Some(battery),
                "{text}"
            );
        }
    }
}
