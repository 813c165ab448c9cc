//! What the values of a device mean, for programs that do not know this service: a W3C Thing
//! Description (version 1.1, https://www.w3.org/TR/wot-thing-description11/) and a JSON Schema
//! (2020-12) of one item of its values. Properties are the quantities that it has sent; units are
//! those of SenML (RFC 8428).

pub mod http;

use std::collections::BTreeMap;

use hub_adverts::quantity::quantity;
use hub_adverts::{Kind, Quantity};
use hub_devices::ble::split_key;
use hub_devices::device_instances::LastValue;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// A device, as its description needs it.
struct Thing {
    device_instance_id: i64,
    /// The name to show.
    title: String,
    model_uuid: Uuid,
    model_name: String,
    serial_number: Option<String>,
    /// Seconds between two values.
    interval_secs: Option<i64>,
    state: BTreeMap<String, LastValue>,
}

/// Where a reader gets the values.
struct Place {
    /// The URL of the service; None where it does not know it.
    base: Option<String>,
    /// The URL of the description, and of the values without their `quantity`.
    own: String,
    values: String,
    stream: &'static str,
    /// What the bearer token is.
    token: &'static str,
}

/// The JSON type of values, by their quantity or else by the last value.
fn json_type(known: Option<&Quantity>, last: &Value) -> &'static str {
    match last {
        _ if known.is_some_and(Quantity::is_number) => "number",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        _ => "string",
    }
}

const fn meaning(kind: Kind) -> &'static str {
    match kind {
        Kind::Measurement => "a physical value that is sampled",
        Kind::State => "a state that lasts until it changes",
        Kind::Event => "something that happened",
        Kind::Counter => "a number that only rises until it starts over",
    }
}

/// The JSON Schema of the values under a key.
fn schema_of(key: &str, last: &LastValue) -> Map<String, Value> {
    let (name, index) = split_key(key);
    let known = quantity(name);
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!(json_type(known, &last.value)));
    let mut title = name.replace('_', " ");
    if let Some(index) = index {
        title = format!("{title} {index}");
    }
    schema.insert("title".to_owned(), json!(title));
    if let Some(known) = known {
        let description = format!("{} ({})", known.description, meaning(known.kind));
        schema.insert("description".to_owned(), json!(description));
    }
    if let Some(unit) = known.and_then(|known| known.unit).or(last.unit.as_deref()) {
        schema.insert("unit".to_owned(), json!(unit));
    }
    if let Some((least, most)) = known.and_then(|known| known.range) {
        schema.insert("minimum".to_owned(), json!(least));
        schema.insert("maximum".to_owned(), json!(most));
    }
    schema
}

/// The Thing Description.
fn description(thing: &Thing, place: &Place) -> Value {
    let property = |(key, last): (&String, &LastValue)| {
        let mut property = schema_of(key, last);
        let value = format!("{}quantity={}", place.values, encoded(key));
        property.insert("readOnly".to_owned(), json!(true));
        property.insert("observable".to_owned(), json!(true));
        property.insert(
            "forms".to_owned(),
            json!([
                {"op": "readproperty", "href": value, "contentType": "application/json"},
                {
                    "op": "observeproperty", "href": place.stream, "subprotocol": "sse",
                    "contentType": "text/event-stream",
                },
            ]),
        );
        (key.clone(), Value::Object(property))
    };
    let properties: Map<String, Value> = thing.state.iter().map(property).collect();
    let mut described = json!({
        "@context": [
            "https://www.w3.org/2022/wot/td/v1.1",
            {"hub": "urn:hub-cloud:terms:", "schema": "https://schema.org/"},
        ],
        "@type": "Thing",
        "id": format!("urn:hub-cloud:device:{}", thing.device_instance_id),
        "title": thing.title,
        "description": format!(
            "A device of the model {}. Values come as items that have a time, a hub and units.",
            thing.model_name
        ),
        "schema:model": thing.model_name,
        "hub:modelUuid": thing.model_uuid,
        "securityDefinitions": {"bearer": {
            "scheme": "bearer", "in": "header", "name": "Authorization",
            "description": place.token,
        }},
        "security": ["bearer"],
        "properties": properties,
        "links": [{"rel": "self", "href": place.own, "type": "application/td+json"}],
    });
    let known = [
        ("base", place.base.as_ref().map(|base| json!(base))),
        (
            "hub:intervalSeconds",
            thing.interval_secs.map(|secs| json!(secs)),
        ),
        (
            "schema:serialNumber",
            thing.serial_number.as_ref().map(|number| json!(number)),
        ),
    ];
    let known = known
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    if let Some(members) = described.as_object_mut() {
        members.extend(known);
    }
    described
}

/// The JSON Schema of an item of the values.
fn value_schema(thing: &Thing) -> Value {
    let properties: Map<String, Value> = thing
        .state
        .iter()
        .map(|(key, last)| (key.clone(), Value::Object(schema_of(key, last))))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("Values of {}", thing.title),
        "description": "One reception of the device by a hub.",
        "type": "object",
        "required": ["observedAt", "receivedAt", "values"],
        "properties": {
            "observedAt": {
                "type": "string", "format": "date-time",
                "description": "When the hub received it, by the clock of the hub",
            },
            "receivedAt": {
                "type": "string", "format": "date-time",
                "description": "When the service received it",
            },
            "hubUuid": {"type": "string", "format": "uuid", "description": "The hub"},
            "rssiDbm": {
                "type": ["integer", "null"], "unit": "dBm",
                "description": "The signal strength at the hub",
            },
            "values": {"type": "object", "properties": properties},
            "units": {
                "type": "object", "additionalProperties": {"type": "string"},
                "description": "The units of the values that have one, in SenML (RFC 8428)",
            },
        },
    })
}

/// A key as a value of a query.
fn encoded(key: &str) -> String {
    form_urlencoded::byte_serialize(key.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use hub_protocol::Timestamp;

    use super::*;

    #[test]
    fn properties_have_unit_range_and_meaning() {
        let last = |value: Value| LastValue {
            value,
            unit: None,
            at: Timestamp::from_micros(0),
        };
        let temperature = schema_of("temperature", &last(json!(21.5)));
        assert_eq!(temperature["type"], json!("number"));
        assert_eq!(temperature["unit"], json!("Cel"));
        assert!(temperature["minimum"].as_f64() < Some(-40.0));
        let second = schema_of("voltage[1]", &last(json!(3.1)));
        assert_eq!(second["title"], json!("voltage 1"));
        assert_eq!(second["unit"], json!("V"));
        let own = schema_of("our_own_word", &last(json!(true)));
        assert_eq!(own.get("unit"), None);
        assert_eq!(own["type"], json!("boolean"));
        assert_eq!(encoded("voltage[1]"), "voltage%5B1%5D");
    }
}
