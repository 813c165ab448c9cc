//! Holds every answer that a test gets to the service's own description: its status, its headers,
//! its media type and its body have to be described for the operation. What was reached is noted in
//! the file that `HUB_TESTS_REACHED` names, if any.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};

use hub_cloud::http::router;
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value};

pub static DOCUMENT: LazyLock<Value> = LazyLock::new(|| router::describe(true));

/// Headers that every answer may have: of the connection, for browsers, of the encoding.
const GENERAL_HEADERS: [&str; 12] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-security-policy",
    "content-type",
    "date",
    "referrer-policy",
    "strict-transport-security",
    "transfer-encoding",
    "vary",
    "x-content-type-options",
    "x-frame-options",
];

/// The file of what was reached has a line for each: `hubs.list<TAB>200`.
static REACHED: LazyLock<Mutex<BTreeSet<(String, u16)>>> = LazyLock::new(Mutex::default);

/// A path of the document: its parts, and its operations by method.
type Template = (Vec<&'static str>, &'static Value);

/// Those with few parameters first: a path that is spelled out goes before one with a parameter in
/// its place.
static TEMPLATES: LazyLock<Vec<Template>> = LazyLock::new(|| {
    let paths = object(&DOCUMENT["paths"]).iter();
    let mut templates: Vec<Template> = paths
        .map(|(path, item)| (path.split('/').collect(), item))
        .collect();
    templates.sort_by_key(|(parts, _)| parts.iter().filter(|part| part.starts_with('{')).count());
    templates
});

/// The operation that a request goes to, if the document has one.
fn operation(method: &Method, path: &str) -> Option<&'static Value> {
    let method = if method == Method::HEAD {
        "get".to_owned()
    } else {
        method.as_str().to_lowercase()
    };
    let parts: Vec<&str> = path.split('/').collect();
    let fits = |template: &[&str]| {
        template.len() == parts.len()
            && template
                .iter()
                .zip(&parts)
                .all(|(name, part)| name.starts_with('{') || name == part)
    };
    let (_, item) = TEMPLATES.iter().find(|(template, _)| fits(template))?;
    item.get(method)
}

/// An answer; its body also as JSON, if it is some.
pub struct Answer<'a> {
    pub status: u16,
    pub headers: &'a HeaderMap,
    pub body: &'a str,
    pub json: Option<&'a Value>,
}

/// Says what of an answer is not described.
pub fn check(method: &Method, path: &str, answer: &Answer<'_>) -> Result<(), String> {
    let Answer {
        status,
        headers,
        body,
        json,
    } = *answer;
    // Answers of other servers, of the router or what is below it, and those before a page may
    // call.
    if !headers.contains_key("x-request-id")
        || matches!(status, 405 | 431)
        || *method == Method::OPTIONS
    {
        return Ok(());
    }
    let Some(operation) = operation(method, path) else {
        return match status {
            404 => Ok(()),
            _ => Err("is no operation of the document".to_owned()),
        };
    };
    let id = operation["operationId"].as_str().unwrap_or_default();
    let Some(response) = operation["responses"].get(status.to_string()).map(resolve) else {
        return Err(format!("{id}: the status {status} is not described"));
    };
    note(id, status);
    let described = object(&response["headers"]);
    for name in headers.keys().map(reqwest::header::HeaderName::as_str) {
        let is_described = described
            .keys()
            .any(|known| known.eq_ignore_ascii_case(name));
        if !is_described && !GENERAL_HEADERS.contains(&name) && !name.starts_with("access-control-")
        {
            return Err(format!(
                "{id}: the header {name} of status {status} is not described"
            ));
        }
    }
    let media_type = headers
        .get("content-type")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default();
    if body.is_empty() || *method == Method::HEAD {
        return Ok(());
    }
    let Some(media) = response["content"].get(media_type) else {
        return Err(format!(
            "{id}: a body of {media_type} with status {status} is not described"
        ));
    };
    if media_type == "application/json"
        && !media["schema"].is_null()
        && let Some(value) = json
    {
        let mut faults = Vec::new();
        conforms(&media["schema"], value, Place::Root, &mut faults);
        if !faults.is_empty() {
            return Err(format!(
                "{id}: the body with status {status} is not as described: {faults:?}"
            ));
        }
    }
    Ok(())
}

fn note(id: &str, status: u16) {
    let mut reached = REACHED.lock().unwrap_or_else(PoisonError::into_inner);
    if !reached.insert((id.to_owned(), status)) {
        return;
    }
    if let Some(file) = std::env::var_os("HUB_TESTS_REACHED") {
        let file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(file);
        file.and_then(|mut file| file.write_all(format!("{id}\t{status}\n").as_bytes()))
            .expect("the file is written");
    }
}

/// What a `$ref` points at, or the value itself.
pub fn resolve(value: &'static Value) -> &'static Value {
    let mut value = value;
    while let Some(reference) = value.get("$ref").and_then(Value::as_str) {
        value = target(reference).unwrap_or_else(|| panic!("{reference} points at nothing"));
    }
    value
}

pub fn target(reference: &str) -> Option<&'static Value> {
    DOCUMENT.pointer(reference.strip_prefix('#')?)
}

pub fn object(value: &Value) -> &Map<String, Value> {
    static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    value.as_object().unwrap_or(&EMPTY)
}

/// Where in a value something stands. It becomes text only where there is a fault.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    Root,
    Member(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Whether a value is what a schema says, as far as this service's schemas go.
pub fn conforms(schema: &'static Value, value: &Value, place: Place<'_>, faults: &mut Vec<String>) {
    let schema = resolve(schema);
    for choice in ["anyOf", "oneOf"] {
        let Some(choices) = schema[choice].as_array() else {
            continue;
        };
        let fits = |choice| {
            let mut faults = Vec::new();
            conforms(choice, value, place, &mut faults);
            faults.is_empty()
        };
        if !choices.iter().any(fits) {
            faults.push(format!("{place}: {value} fits none of {choices:?}"));
        }
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        conforms(part, value, place, faults);
    }
    if let Some(values) = schema["enum"].as_array()
        && !values.contains(value)
    {
        faults.push(format!("{place}: {value} is none of {values:?}"));
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => kind.as_str().into_iter().collect(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is_a(kind, value)) {
        faults.push(format!("{place}: {value} is no {kinds:?}"));
    }
    match value {
        Value::Object(members) => members_conform(schema, members, place, faults),
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else {
                return;
            };
            for (index, item) in items.iter().enumerate() {
                conforms(schema, item, Place::Item(&place, index), faults);
            }
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            if schema["minimum"]
                .as_f64()
                .is_some_and(|minimum| number < minimum)
                || schema["maximum"]
                    .as_f64()
                    .is_some_and(|maximum| number > maximum)
            {
                faults.push(format!("{place}: {value} is out of bounds"));
            }
        }
        _ => {}
    }
}

fn members_conform(
    schema: &'static Value,
    members: &Map<String, Value>,
    place: Place<'_>,
    faults: &mut Vec<String>,
) {
    for name in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if !members.contains_key(name) {
            faults.push(format!("{place}.{name} is missing"));
        }
    }
    let properties = object(&schema["properties"]);
    for (name, value) in members {
        match (properties.get(name), schema.get("additionalProperties")) {
            (Some(property), _) => conforms(property, value, Place::Member(&place, name), faults),
            (None, Some(others)) if others.is_object() => {
                conforms(others, value, Place::Member(&place, name), faults)
            }
            // A description that lists members lists them all.
            (None, None | Some(Value::Bool(false))) if !properties.is_empty() => {
                faults.push(format!("{place}.{name} is not described"));
            }
            _ => {}
        }
    }
}

fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => value.is_object(),
    }
}
