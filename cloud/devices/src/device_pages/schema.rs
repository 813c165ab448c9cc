//! JSON Schemas of objects: what a form asks for, what an action takes. They are checked to be such
//! schemas in outline; every keyword beyond that is for the programs that read them.

use std::collections::BTreeSet;

use hub_core::http::json;
use serde_json::{Map, Value};

use super::{MAX_DOCUMENT_BYTES, MAX_ITEMS};

/// The names of the object's members, or what is wrong with the schema.
pub fn members(text: &str) -> Result<BTreeSet<String>, String> {
    if text.len() > MAX_DOCUMENT_BYTES {
        return Err(format!(
            "must have at most {} KiB",
            MAX_DOCUMENT_BYTES / 1024
        ));
    }
    if json::depth(text) > json::MAX_DEPTH {
        return Err(format!(
            "must not be nested deeper than {} levels",
            json::MAX_DEPTH
        ));
    }
    let schema: Map<String, Value> =
        serde_json::from_str(text).map_err(|_| "must be a JSON Schema: an object".to_owned())?;
    if !schema.contains_key("type") && !schema.contains_key("properties") {
        return Err(
            "must be the JSON Schema of an object: `type` or `properties` is missing".to_owned(),
        );
    }
    if schema.get("type").is_some_and(|kind| kind != "object") {
        return Err("must be the JSON Schema of an object: its `type` is another".to_owned());
    }
    let no_properties = Map::new();
    let properties = match schema.get("properties") {
        None => &no_properties,
        Some(Value::Object(properties)) => properties,
        Some(_) => return Err("must have an object for `properties`".to_owned()),
    };
    if properties.len() > MAX_ITEMS {
        return Err(format!("must have at most {MAX_ITEMS} properties"));
    }
    if let Some((name, _)) = properties
        .iter()
        .find(|(_, value)| !value.is_object() && !value.is_boolean())
    {
        return Err(format!("must have a JSON Schema for the property {name:?}"));
    }
    let required = schema.get("required");
    let is_list = |value: &Value| {
        value
            .as_array()
            .is_some_and(|names| names.iter().all(Value::is_string))
    };
    if !required.is_none_or(is_list) {
        return Err("must have a list of names for `required`".to_owned());
    }
    Ok(properties.keys().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::members;

    #[test]
    fn outline_of_a_schema_is_checked() {
        let names =
            members(r#"{"type": "object", "properties": {"b": {}, "a": true}, "required": ["a"]}"#);
        assert_eq!(
            names.map(Vec::from_iter),
            Ok(vec!["a".to_owned(), "b".to_owned()])
        );
        assert!(members(r#"{"type": "object"}"#).is_ok_and(|names| names.is_empty()));
        for text in [
            "1",
            "[]",
            "{}",
            r#"{"type": "string"}"#,
            r#"{"type": ["object"]}"#,
            r#"{"properties": []}"#,
            r#"{"properties": {"a": 1}}"#,
            r#"{"properties": {}, "required": "a"}"#,
            r#"{"properties": {}, "required": [1]}"#,
            &format!(
                r#"{{"properties": {{"a": {}1{}}}}}"#,
                "[".repeat(70),
                "]".repeat(70)
            ),
            &format!(r#"{{"type": "object", "title": "{}"}}"#, "x".repeat(65_536)),
        ] {
            assert!(members(text).is_err(), "{text}");
        }
    }
}
