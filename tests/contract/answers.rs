//! Every operation, asked by whom it is for: it answers with the status and the shape that the document says, and a change leaves an entry in the
//! audit log.

use hub_cloud::db::sql;
use hub_tests::{Call, SimulatedHub, TestApp, backends};
use serde_json::Value;

use super::document::{object, operations, resolve};
use super::world::{Objects, World};

/// Operations that change something and leave no entry, and why.
const UNAUDITED: [(&str, &str); 9] = [
    ("POST /v1/hubs/{hubUuid}/logs", "is data, kept in a log of its own"),
    ("POST /v1/hubs/{hubUuid}/telemetry", "is data"),
    ("POST /v1/ble/events", "is data"),
    ("POST /v1/ble/events/windowed", "is data"),
    ("POST /v1/hubs/adapters", "is what the hub sees, told again and again"),
    ("PUT /v1/hubs/{hubUuid}/installed-apps", "is what the hub sees, told again and again"),
    ("POST /v1/hubs/{hubUuid}/jobs/{hubJobUuid}/events", "is kept with its job"),
    (
        "POST /auth/password/forgot",
        "changes nothing yet: the work behind it has its entry, if there is such an account",
    ),
    ("POST /auth/refresh", "goes on with a login that has its entry, every 15 minutes"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_does_what_its_description_says() {
    for backend in backends() {
        let mut world = World::new(backend).await;
        for operation in operations() {
            if operation.access() == "hub" {
                // A refresh ends the token before it, a block the hub's all.
                world.hub = SimulatedHub::claim(&world.tenant).await;
            }
            let name = operation.name();
            let (status, response) = operation.success().unwrap_or_else(|| panic!("{name} describes no success"));
            let caller = world.rightful_caller(&operation);
            let request = world.request(&caller, &operation, Objects::Real).await;
            let entries = audit_entries(&world.app).await;
            let reply = request.call().await.expect(status);
            let written = audit_entries(&world.app).await - entries;
            let content = object(&response["content"]);
            let media_type = reply.header("content-type").split(';').next().unwrap_or_default();
            match content.keys().next() {
                None => assert_eq!(reply.body, "", "{name} describes no body"),
                Some(described) => assert_eq!(media_type, described, "{name}"),
            }
            if media_type == "application/json"
                && let Some(schema) = content["application/json"].get("schema")
            {
                let mut faults = Vec::new();
                check(resolve(schema), &reply.json(), "", &mut faults);
                assert!(faults.is_empty(), "{name}: {faults:#?} in {}", reply.body);
            }
            let unaudited = UNAUDITED.iter().any(|(operation, _)| *operation == name);
            let expects_entry = operation.method != "GET" && !unaudited;
            assert_eq!(written > 0, expects_entry, "{name} wrote {written} audit entries");
        }
    }
}

async fn audit_entries(app: &TestApp) -> i64 {
    let mut conn = app.app.db.read().await.expect("a connection");
    let (count,): (i64,) = sql("SELECT COUNT(*) FROM audit_logs").one(&mut conn).await.expect("a count");
    count
}

#[test]
fn every_exception_is_an_operation() {
    let names: Vec<String> = operations().iter().map(super::document::Operation::name).collect();
    let unknown: Vec<_> = UNAUDITED.iter().filter(|(name, _)| !names.iter().any(|other| other == name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// Whether a value is what a schema says, as far as this service's schemas go.
fn check(schema: &'static Value, value: &Value, place: &str, faults: &mut Vec<String>) {
    let schema = resolve(schema);
    for choice in ["anyOf", "oneOf"] {
        let Some(choices) = schema[choice].as_array() else { continue };
        let fits = |choice| {
            let mut faults = Vec::new();
            check(choice, value, place, &mut faults);
            faults.is_empty()
        };
        if !choices.iter().any(fits) {
            faults.push(format!("{place}: {value} fits none of {choices:?}"));
        }
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        check(part, value, place, faults);
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
        Value::Object(members) => {
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !members.contains_key(name) {
                    faults.push(format!("{place}.{name} is missing"));
                }
            }
            let properties = object(&schema["properties"]);
            for (name, value) in members {
                match (properties.get(name), schema.get("additionalProperties")) {
                    (Some(property), _) => check(property, value, &format!("{place}.{name}"), faults),
                    (None, Some(others)) if others.is_object() => {
                        check(others, value, &format!("{place}.{name}"), faults)
                    }
                    // A description that lists members lists them all.
                    (None, None | Some(Value::Bool(false))) if !properties.is_empty() => {
                        faults.push(format!("{place}.{name} is not described"));
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            items
                .iter()
                .enumerate()
                .for_each(|(index, item)| check(schema, item, &format!("{place}[{index}]"), faults));
        }
        _ => {}
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
