//! The client crate beside the document of the service: each operation that it calls is there,
//! takes the parameters and members that it sends, and answers the members that it reads.

use std::collections::BTreeSet;

use hub_client::Shape;
use hub_client::operations::ALL;
use serde_json::{Value, json};

use super::document::{Operation, object, operations, resolve};

/// A value that fits a schema and has every member that the schema knows.
fn example(schema: &'static Value) -> Value {
    let schema = resolve(schema);
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    for one_of in ["allOf", "anyOf", "oneOf"] {
        if let Some(options) = schema[one_of].as_array() {
            let chosen = options.iter().find(|option| option["type"] != "null");
            return chosen.map(example).unwrap_or_default();
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds
            .iter()
            .find(|kind| **kind != "null")
            .and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match (kind, schema["format"].as_str()) {
        (Some("object"), _) => {
            let members = schema["properties"].as_object().into_iter().flatten();
            Value::Object(
                members
                    .map(|(name, schema)| (name.clone(), example(schema)))
                    .collect(),
            )
        }
        (Some("array"), _) => json!([example(&schema["items"])]),
        (Some("integer" | "number"), _) => schema.get("minimum").cloned().unwrap_or(json!(1)),
        (Some("boolean"), _) => json!(true),
        (Some("string"), Some("uuid")) => json!(uuid::Uuid::nil()),
        (Some("string"), Some("date-time")) => json!("2026-01-31T08:00:00.000000Z"),
        (Some("string"), _) => json!("text"),
        _ => json!({}),
    }
}

/// The members of `read` that the example does not have.
fn missing(path: &str, read: &Value, example: &Value, faults: &mut Vec<String>) {
    match (read, example) {
        (Value::Object(read), Value::Object(given)) => {
            for (name, value) in read {
                match given.get(name) {
                    Some(example) => missing(&format!("{path}/{name}"), value, example, faults),
                    None => faults.push(format!("{path}/{name} is not in the document")),
                }
            }
        }
        (Value::Array(read), Value::Array(given)) => {
            for (value, example) in read.iter().zip(given) {
                missing(path, value, example, faults);
            }
        }
        _ => {}
    }
}

/// What an operation answers, without its envelope and its list; of a stream, the data of an event.
fn answer(operation: &Operation) -> Option<Value> {
    let (_, success) = operation.success()?;
    let (_, content) = object(resolve(success))
        .get("content")?
        .as_object()?
        .iter()
        .next()?;
    match example(&content["schema"]).get("data")?.clone() {
        Value::Array(items) => items.into_iter().next(),
        data => Some(data),
    }
}

fn check(shape: Shape, schema: Option<Value>, what: &str, faults: &mut Vec<String>) {
    let Some(given) = schema else {
        if !matches!(shape, Shape::Nothing) {
            faults.push(format!("{what} has no body in the document"));
        }
        return;
    };
    match shape {
        Shape::Nothing => {}
        Shape::Members(names) => {
            let read = names
                .iter()
                .map(|name| ((*name).to_owned(), Value::Null))
                .collect();
            missing(what, &Value::Object(read), &given, faults);
        }
        Shape::Record(read) => match read(given.clone()) {
            Ok(read) => missing(what, &read, &given, faults),
            Err(error) => faults.push(format!("{what} is not read: {error}")),
        },
    }
}

#[test]
fn the_client_calls_what_the_document_describes() {
    let documented = operations();
    let mut faults = Vec::new();
    for used in ALL {
        let name = format!("{} {}", used.method, used.path);
        let Some(operation) = documented.iter().find(|operation| operation.name() == name) else {
            faults.push(format!("{name} is not in the document"));
            continue;
        };
        let known = operation.parameters("query");
        let unknown = used
            .query
            .iter()
            .filter(|parameter| !known.contains_key(**parameter));
        faults.extend(unknown.map(|parameter| format!("{name} has no parameter {parameter}")));
        let needed = known
            .iter()
            .filter(|(parameter, required)| **required && !used.query.contains(parameter));
        faults.extend(needed.map(|(parameter, _)| format!("{name} needs {parameter}")));
        let body = operation.body_schema().map(|schema| match example(schema) {
            Value::Array(items) => items.into_iter().next().unwrap_or_default(),
            body => body,
        });
        check(
            used.request,
            body,
            &format!("the request of {name}"),
            &mut faults,
        );
        check(
            used.response,
            answer(operation),
            &format!("the answer of {name}"),
            &mut faults,
        );
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The list that is checked above has all operations.
#[test]
fn every_operation_of_the_client_is_listed() {
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../clients/rust/src/operations.rs"
    );
    let source = std::fs::read_to_string(source).expect("the source");
    let declared = source
        .lines()
        .filter(|line| line.starts_with("pub static ") && line.contains(": Operation ="))
        .count();
    let listed: BTreeSet<_> = ALL
        .iter()
        .map(|operation| std::ptr::from_ref(*operation) as usize)
        .collect();
    assert_eq!((listed.len(), ALL.len()), (declared, declared));
}
