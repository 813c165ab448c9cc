//! How an action reaches a device: a call of an external endpoint, or steps over GATT. It is
//! executed as it is written, so an unknown member is an error.

use std::collections::BTreeSet;

use hub_core::http::check::Check;
use hub_protocol::command::{GattOperation, MAX_VALUE_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{
    ENDPOINT_PATH, EndpointMethod, MAX_ITEMS, MAX_STEPS, MAX_TEXT_CHARS, NamedEndpoints, check_path,
};

const MAX_TIMEOUT_MILLIS: i64 = 120_000;
/// A 16-bit or 32-bit UUID in hexadecimal, or one in full.
const UUID: &str =
    "^([0-9a-fA-F]{4}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{8})$";

/// The transport of an action.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ActionTransport")]
pub struct Transport {
    /// The kind, which decides the other members: `HTTP` has the first three, `GATT` has `steps`.
    pub(super) kind: TransportKind,
    /// The external endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) external_endpoint_id: Option<Uuid>,
    /// The path at the endpoint, with or without a query.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = ENDPOINT_PATH))]
    pub(super) path: Option<String>,
    /// The method of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) method: Option<EndpointMethod>,
    /// The GATT operations, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_STEPS))]
    pub(super) steps: Option<Vec<GattStep>>,
}

/// The transport of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(rename = "ActionTransportKind")]
pub(super) enum TransportKind {
    /// An external endpoint of the supplier.
    Http,
    /// The nearest hub of the device.
    Gatt,
}

/// One operation on a characteristic.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GattStep {
    /// The service: 4 or 8 hexadecimal digits, or a UUID in full.
    #[schemars(regex(pattern = UUID))]
    pub(super) service: String,
    /// The characteristic, in the same forms.
    #[schemars(regex(pattern = UUID))]
    pub(super) characteristic: String,
    /// The operation.
    pub(super) operation: GattOperation,
    /// The value of a write operation: hexadecimal text in which `{name}` stands for the bytes of a
    /// parameter, or a list of `{"hex"}` and `{"parameter", "type"}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<Value>,
    /// The timeout of the step; the hub decides when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_TIMEOUT_MILLIS))]
    pub(super) timeout_millis: Option<i64>,
}

impl Transport {
    pub fn endpoints(&self) -> NamedEndpoints {
        let named = |endpoint| ("transport.externalEndpointId".to_owned(), endpoint);
        NamedEndpoints(self.external_endpoint_id.map(named).into_iter().collect())
    }

    /// Adds what is wrong with it, for an action that takes these parameters.
    pub fn check(&self, check: &mut Check, parameters: &BTreeSet<String>) {
        let is_http = self.kind == TransportKind::Http;
        let members = [
            (
                "externalEndpointId",
                self.external_endpoint_id.is_some(),
                is_http,
            ),
            ("path", self.path.is_some(), is_http),
            ("method", self.method.is_some(), is_http),
            ("steps", self.steps.is_some(), !is_http),
        ];
        for (name, is_there, belongs) in members {
            let message = if belongs {
                "is required for this kind"
            } else {
                "is not of this kind"
            };
            check.that(is_there == belongs, format!("transport.{name}"), message);
        }
        if let Some(path) = &self.path {
            check_path(check, "transport.path", path);
        }
        let Some(steps) = &self.steps else { return };
        let holds = (1..=MAX_STEPS).contains(&steps.len());
        check.that(
            holds,
            "transport.steps",
            format!("must have 1 to {MAX_STEPS} items"),
        );
        for (at, step) in steps.iter().take(MAX_STEPS).enumerate() {
            step.check(check, &format!("transport.steps[{at}]"), parameters);
        }
    }
}

impl GattStep {
    fn check(&self, check: &mut Check, root: &str, parameters: &BTreeSet<String>) {
        for (name, uuid) in [
            ("service", &self.service),
            ("characteristic", &self.characteristic),
        ] {
            let message = "must be 4 or 8 hexadecimal digits, or a UUID of 36 characters";
            check.that(is_uuid(uuid), format!("{root}.{name}"), message);
        }
        let timeout = self.timeout_millis.unwrap_or(1);
        let message = format!("must be from 1 to {MAX_TIMEOUT_MILLIS}");
        check.that(
            (1..=MAX_TIMEOUT_MILLIS).contains(&timeout),
            format!("{root}.timeoutMillis"),
            message,
        );
        let field = format!("{root}.value");
        let writes = matches!(
            self.operation,
            GattOperation::Write | GattOperation::WriteWithoutResponse
        );
        match &self.value {
            None => check.that(!writes, field, "is required to write"),
            Some(_) if !writes => check.that(false, field, "is only for operations that write"),
            Some(Value::String(hex)) => {
                if let Err(message) = check_hex(hex, parameters) {
                    check.that(false, field, message);
                }
            }
            Some(Value::Array(parts)) => check_parts(check, &field, parts, parameters),
            Some(_) => check.that(
                false,
                field,
                "must be hexadecimal text, or a list of fields",
            ),
        }
    }
}

/// Whether the text has four or eight digits, or 36 characters with dashes.
fn is_uuid(text: &str) -> bool {
    match text.len() {
        4 | 8 => text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        36 => Uuid::try_parse(text).is_ok(),
        _ => false,
    }
}

/// Checks bytes with parameters between them, such as `01{level}ff`.
fn check_hex(text: &str, parameters: &BTreeSet<String>) -> Result<(), String> {
    if text.is_empty() {
        return Err("must not be empty".to_owned());
    }
    let (mut rest, mut digits, mut places) = (text, 0, 0);
    while !rest.is_empty() {
        let (bytes, place) = match rest.split_once('{') {
            None => (rest, None),
            Some((bytes, after)) => (bytes, Some(after)),
        };
        if bytes.len() % 2 != 0 || !bytes.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err("must have two hexadecimal digits for each byte".to_owned());
        }
        digits += bytes.len();
        rest = "";
        if let Some(after) = place {
            let Some((name, remainder)) = after.split_once('}') else {
                return Err("has a `{` without a `}`".to_owned());
            };
            if !parameters.contains(name) {
                return Err(format!(
                    "names {name:?}, which is no property of `parameters`"
                ));
            }
            (rest, places) = (remainder, places + 1);
        }
    }
    match digits / 2 + places <= MAX_VALUE_BYTES {
        true => Ok(()),
        false => Err(format!("must have at most {MAX_VALUE_BYTES} bytes")),
    }
}

/// Checks parts such as `[{"hex": "01"}, {"parameter": "level", "type": "u8"}]`.
fn check_parts(check: &mut Check, field: &str, parts: &[Value], parameters: &BTreeSet<String>) {
    let holds = (1..=MAX_ITEMS).contains(&parts.len());
    check.that(holds, field, format!("must have 1 to {MAX_ITEMS} items"));
    for (at, part) in parts.iter().take(MAX_ITEMS).enumerate() {
        let root = format!("{field}[{at}]");
        let Value::Object(members) = part else {
            check.that(false, root, "must be an object");
            continue;
        };
        for name in members.keys() {
            let is_known = matches!(name.as_str(), "hex" | "parameter" | "type");
            check.that(
                is_known,
                format!("{root}.{name}"),
                "is not known; expected `hex`, or `parameter` and `type`",
            );
        }
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        if members.contains_key("hex") {
            let problem = text("hex").map_or(Err("must be text".to_owned()), |hex| {
                check_hex(hex, &BTreeSet::new())
            });
            if let Err(message) = problem {
                check.that(false, format!("{root}.hex"), message);
            }
            for name in ["parameter", "type"] {
                check.that(
                    !members.contains_key(name),
                    format!("{root}.{name}"),
                    "does not go with `hex`",
                );
            }
            continue;
        }
        let is_parameter = text("parameter").is_some_and(|name| parameters.contains(name));
        check.that(
            is_parameter,
            format!("{root}.parameter"),
            "must be a property of `parameters`",
        );
        let message = "must be `u8` to `u64` or `i8` to `i64` in steps of 8 bits, `f32` or `f64`, each with or \
                       without `le` or `be`; `text`; or `hex`";
        check.that(
            text("type").is_some_and(is_type),
            format!("{root}.type"),
            message,
        );
    }
}

/// The number types of decoders, and two of text.
fn is_type(name: &str) -> bool {
    let number = name
        .strip_suffix("le")
        .or_else(|| name.strip_suffix("be"))
        .unwrap_or(name);
    let sized = number.strip_prefix(['u', 'i']);
    matches!(name, "text" | "hex")
        || matches!(number, "f32" | "f64")
        || sized.is_some_and(|bits| ["8", "16", "24", "32", "40", "48", "56", "64"].contains(&bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_text_has_bytes_and_known_places() {
        let parameters = BTreeSet::from(["level".to_owned()]);
        for text in ["00", "{level}", "01{level}fF{level}", &"00".repeat(512)] {
            assert_eq!(check_hex(text, &parameters), Ok(()), "{text}");
        }
        for text in [
            "",
            "0",
            "0{level}0",
            "xx",
            "{}",
            "{other}",
            "{level",
            "level}",
            "{{level}}",
            &"00".repeat(513),
        ] {
            assert!(check_hex(text, &parameters).is_err(), "{text}");
        }
    }

    #[test]
    fn types_are_those_of_decoders() {
        for name in ["u8", "i24be", "u64le", "f32", "f64le", "text", "hex"] {
            assert!(is_type(name), "{name}");
        }
        for name in ["", "u", "u7", "u128", "f16", "i8ble", "textle", "le"] {
            assert!(!is_type(name), "{name}");
        }
    }

    #[test]
    fn uuids_have_three_forms() {
        for text in ["180f", "0000180F", "0000180f-0000-1000-8000-00805f9b34fb"] {
            assert!(is_uuid(text), "{text}");
        }
        for text in [
            "",
            "180",
            "18 f",
            "0000180f00001000800000805f9b34fb",
            "{000180f-0000-1000-8000-00805f9b34fb",
        ] {
            assert!(!is_uuid(text), "{text}");
        }
    }
}
