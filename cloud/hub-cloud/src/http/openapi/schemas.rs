//! Rewrites derived schemas into forms that client generators understand: a plain `enum` instead of
//! a choice of constants, an object instead of the schema `true`, and parameters that are optional
//! and never null.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// The operations of the document, each with its path.
pub fn operations(document: &mut Value) -> impl Iterator<Item = (&str, &mut Value)> {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    paths.flat_map(|(path, item)| {
        let operations = item.as_object_mut().into_iter().flatten();
        let operations = operations.filter(|(method, _)| METHODS.contains(&method.as_str()));
        operations.map(|(_, operation)| (path.as_str(), operation))
    })
}

/// Rewrites every schema of the document.
pub fn normalize(document: &mut Value) {
    for (_, schema) in document
        .pointer_mut("/components/schemas")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
    {
        normalize_schema(schema);
    }
    for (_, operation) in operations(document) {
        for parameter in operation
            .get_mut("parameters")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            normalize_parameter(parameter);
        }
        if let Some(body) = operation.get_mut("requestBody") {
            normalize_content(body);
        }
        for (_, response) in operation
            .get_mut("responses")
            .and_then(Value::as_object_mut)
            .into_iter()
            .flatten()
        {
            normalize_content(response);
        }
    }
}

fn normalize_content(holder: &mut Value) {
    for (_, media) in holder
        .get_mut("content")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
    {
        if let Some(schema) = media.get_mut("schema") {
            normalize_schema(schema);
        }
    }
}

/// A parameter is absent or has a value: URLs and headers have no null.
fn normalize_parameter(parameter: &mut Value) {
    let Some(parameter) = parameter.as_object_mut() else {
        return;
    };
    let Some(schema) = parameter.get_mut("schema") else {
        return;
    };
    normalize_schema(schema);
    if let Some(kinds) = schema["type"].as_array() {
        let kinds: Vec<&Value> = kinds.iter().filter(|kind| *kind != "null").collect();
        schema["type"] = if let [kind] = kinds[..] {
            kind.clone()
        } else {
            json!(kinds)
        };
    } else if let Some([choice, null]) = schema["anyOf"].as_array().map(Vec::as_slice)
        && null["type"] == "null"
    {
        *schema = choice.clone();
    }
    if schema["type"].is_null()
        && let Some(schema) = schema.as_object_mut()
    {
        schema.remove("type");
        schema.remove("anyOf");
    }
    // The description belongs to the parameter and must occur only once.
    let description = schema
        .as_object_mut()
        .and_then(|schema| schema.remove("description"));
    if let Some(description) = description {
        parameter.insert("description".to_owned(), description);
    }
}

fn normalize_schema(schema: &mut Value) {
    // The members of an object state its defaults, and no client generator reads one of the object.
    if schema["default"].is_object()
        && let Some(schema) = schema.as_object_mut()
    {
        schema.remove("default");
    }
    if *schema == Value::Bool(true) {
        *schema = json!({});
    }
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    if let Some(description) = members.get_mut("description") {
        *description = json!(on_one_line(description.as_str().unwrap_or_default()));
    }
    make_plain_enum(members);
    for (keyword, value) in members {
        match keyword.as_str() {
            "items" | "not" | "contentSchema" => normalize_schema(value),
            "additionalProperties" if value.is_object() => normalize_schema(value),
            "properties" | "patternProperties" => {
                value
                    .as_object_mut()
                    .into_iter()
                    .flatten()
                    .for_each(|(_, schema)| normalize_schema(schema));
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                value
                    .as_array_mut()
                    .into_iter()
                    .flatten()
                    .for_each(normalize_schema);
            }
            _ => {}
        }
    }
}

/// Comments in the code are wrapped; the paragraphs of a description are not.
fn on_one_line(text: &str) -> String {
    let paragraphs = text
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// Converts a choice of constants into one `enum`. Enumerations with documented variants are
/// derived as such a choice. The meaning of the variants is added to the description.
fn make_plain_enum(schema: &mut Map<String, Value>) {
    let Some(choices) = schema.get("oneOf").and_then(Value::as_array) else {
        return;
    };
    let mut words = Vec::new();
    let mut meanings = String::new();
    for choice in choices {
        match (
            choice.get("const"),
            choice.get("enum").and_then(Value::as_array),
        ) {
            (Some(word), None) => {
                words.push(word.clone());
                let meaning = on_one_line(choice["description"].as_str().unwrap_or_default());
                meanings.push_str(&format!(
                    "\n- `{}`: {meaning}",
                    word.as_str().unwrap_or_default()
                ));
            }
            (None, Some(several)) => words.extend(several.iter().cloned()),
            _ => return,
        }
    }
    let description = schema
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let description = format!("{description}\n{meanings}");
    schema.remove("oneOf");
    schema.insert("type".to_owned(), json!("string"));
    schema.insert("enum".to_owned(), Value::Array(words));
    schema.insert("description".to_owned(), json!(description.trim()));
}

/// Removes components without references: the structures of queries and paths have become
/// parameters.
pub fn remove_unused_components(document: &mut Value) {
    let mut used = BTreeSet::new();
    find_references(&document["paths"], &mut used);
    let mut pending: Vec<String> = used.iter().cloned().collect();
    while let Some(reference) = pending.pop() {
        let mut found = BTreeSet::new();
        if let Some(target) = reference
            .strip_prefix('#')
            .and_then(|pointer| document.pointer(pointer))
        {
            find_references(target, &mut found);
        }
        pending.extend(
            found
                .into_iter()
                .filter(|reference| used.insert(reference.clone())),
        );
    }
    let components = &mut document["components"];
    for kind in ["schemas", "responses", "headers"] {
        if let Some(components) = components[kind].as_object_mut() {
            components.retain(|name, _| used.contains(&format!("#/components/{kind}/{name}")));
        }
    }
}

fn find_references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                found.insert(reference.to_owned());
            }
            members
                .values()
                .for_each(|value| find_references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| find_references(value, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_variants_become_one_enum() {
        let mut schema = json!({"description": "A state.", "oneOf": [
            {"type": "string", "enum": ["A", "B"]},
            {"type": "string", "const": "C", "description": "The last\none."}
        ]});
        normalize_schema(&mut schema);
        let description = "A state.\n\n- `C`: The last one.";
        assert_eq!(
            schema,
            json!({"description": description, "type": "string", "enum": ["A", "B", "C"]})
        );
    }

    #[test]
    fn schemas_that_are_true_become_objects() {
        let mut schema =
            json!({"properties": {"a": true, "b": {"items": true}}, "additionalProperties": true});
        normalize_schema(&mut schema);
        assert_eq!(
            schema,
            json!({"properties": {"a": {}, "b": {"items": {}}}, "additionalProperties": true})
        );
    }

    #[test]
    fn parameters_are_never_null() {
        let mut number = json!({"schema": {"type": ["integer", "null"], "minimum": 1, "description": "A number."}});
        normalize_parameter(&mut number);
        assert_eq!(
            number,
            json!({"schema": {"type": "integer", "minimum": 1}, "description": "A number."})
        );
        let mut word = json!({"schema": {"anyOf": [{"$ref": "#/w"}, {"type": "null"}]}});
        normalize_parameter(&mut word);
        assert_eq!(word, json!({"schema": {"$ref": "#/w"}}));
    }

    #[test]
    fn indirectly_used_components_are_kept() {
        let schemas = json!({"A": {"$ref": "#/components/schemas/B"}, "B": {}, "C": {}});
        let mut document = json!({"paths": {"/": {"$ref": "#/components/schemas/A"}}, "components": {"schemas": schemas}});
        remove_unused_components(&mut document);
        let left: Vec<&String> = document["components"]["schemas"]
            .as_object()
            .expect("schemas")
            .keys()
            .collect();
        assert_eq!(left, ["A", "B"]);
    }
}
