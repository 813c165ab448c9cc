//! The parameters of an action and the values of a form: whether a schema can be checked against,
//! and whether what is given fits it. A schema comes from a tenant, so what a check can cost is
//! bounded: patterns take linear time, and a schema refers to nothing.

use hub_base::error::{Error, Result};
use hub_core::http::json;
use hub_protocol::FieldError;
use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value};

/// Parameters of one command, as JSON.
const MAX_BYTES: usize = 16 * 1024;
const MAX_DEPTH: usize = 32;
/// The size of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 256 * 1024;
/// The most errors that are reported for one command.
const MAX_ERRORS: usize = 20;
/// Keywords that make a schema refer to itself or to others: a few lines of them can take forever.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The error in a schema, as a sentence for its author.
pub fn check(schema: &str) -> Result<(), String> {
    let schema: Value =
        serde_json::from_str(schema).map_err(|_| "must be a JSON Schema: an object".to_owned())?;
    compile(&schema).map(drop)
}

fn compile(schema: &Value) -> Result<Validator, String> {
    if let Some(keyword) = reference_in(schema) {
        return Err(format!(
            "must not use `{keyword}`: write the schema out where it is needed"
        ));
    }
    let patterns = PatternOptions::regex().size_limit(MAX_PATTERN_BYTES);
    jsonschema::options()
        .with_pattern_options(patterns)
        .build(schema)
        .map_err(|error| {
            let message: String = error.masked().to_string().chars().take(300).collect();
            format!(
                "must be a JSON Schema that can be checked against: {message} at {:?}",
                error.schema_path().as_str()
            )
        })
}

fn reference_in(schema: &Value) -> Option<&'static str> {
    match schema {
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            let keyword = REFERENCES
                .into_iter()
                .find(|keyword| *keyword == name.as_str());
            // The name of a property may be anything, and then has a schema.
            keyword
                .filter(|_| value.is_string())
                .or_else(|| reference_in(value))
        }),
        Value::Array(items) => items.iter().find_map(reference_in),
        _ => None,
    }
}

/// Fails with 400 unless the parameters fit the schema; without one there are no parameters. Errors
/// name their place as a JSON pointer.
pub fn validate(schema: Option<&str>, parameters: &Map<String, Value>) -> Result<()> {
    let text = serde_json::to_string(parameters).map_err(Error::internal)?;
    if text.len() > MAX_BYTES || json::depth(&text) > MAX_DEPTH {
        let message = format!(
            "must have at most {} KiB and {MAX_DEPTH} levels",
            MAX_BYTES / 1024
        );
        return Err(Error::field("parameters", message));
    }
    let Some(schema) = schema else {
        return match parameters.keys().next() {
            None => Ok(()),
            Some(name) => Err(Error::field(
                at(&format!("/{}", escaped(name))),
                "is not known: the action takes none",
            )),
        };
    };
    let schema: Value = serde_json::from_str(schema).map_err(Error::internal)?;
    let validator = compile(&schema).map_err(|reason| {
        let message = format!(
            "this action cannot be used: its `parameters` {reason}; its supplier has to mend it"
        );
        Error::conflict("ACTION_NOT_USABLE", message)
    })?;
    fits(&validator, parameters, at)
}

/// Fails with 400 unless what was entered into a step of a form fits the schema of its `fields`.
/// The endpoint alone decides about a schema that cannot be checked against: forms may have any.
pub fn validate_values(schema: &str, values: &Map<String, Value>) -> Result<()> {
    let schema: Value = serde_json::from_str(schema).map_err(Error::internal)?;
    match compile(&schema) {
        Ok(validator) => fits(&validator, values, |pointer| format!("/values{pointer}")),
        Err(_) => Ok(()),
    }
}

fn fits(
    validator: &Validator,
    given: &Map<String, Value>,
    place: impl Fn(&str) -> String,
) -> Result<()> {
    let given = Value::Object(given.clone());
    let errors: Vec<FieldError> = validator
        .iter_errors(&given)
        .take(MAX_ERRORS)
        .map(|error| {
            let message: String = error.masked().to_string().chars().take(300).collect();
            FieldError {
                field: place(error.instance_path().as_str()),
                message,
            }
        })
        .collect();
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Error::fields(errors)),
    }
}

/// A place in the parameters as a JSON pointer into the request.
pub fn at(pointer: &str) -> String {
    format!("/parameters{pointer}")
}

/// A name as a JSON pointer has it (RFC 6901).
pub fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SCHEMA: &str = r#"{"type": "object", "required": ["level"], "additionalProperties": false,
        "properties": {"level": {"type": "integer", "minimum": 0, "maximum": 100}, "color/hex": {"pattern": "^[0-9a-f]{6}$"}}}"#;

    fn given(parameters: Value) -> std::result::Result<(), Error> {
        validate(Some(SCHEMA), parameters.as_object().unwrap_or(&Map::new()))
    }

    #[test]
    fn parameters_fit_their_schema() {
        assert!(given(json!({"level": 7, "color/hex": "00ff00"})).is_ok());
        for (parameters, place) in [
            (json!({"level": 101}), "/parameters/level"),
            (json!({"level": "7"}), "/parameters/level"),
            (json!({}), "/parameters"),
            (json!({"level": 1, "other": 2}), "/parameters"),
            (
                json!({"level": 1, "color/hex": "red"}),
                "/parameters/color~1hex",
            ),
        ] {
            let error = given(parameters.clone())
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            assert!(
                error.starts_with(&format!("`{place}` is not valid")),
                "{parameters}: {error}"
            );
        }
        assert!(validate(None, &Map::new()).is_ok());
        let some = Map::from_iter([("a".to_owned(), json!(1))]);
        assert!(
            validate(None, &some).is_err_and(|error| error.to_string().contains("/parameters/a"))
        );
        let large = Map::from_iter([("level".to_owned(), json!("x".repeat(MAX_BYTES)))]);
        assert!(validate(Some(SCHEMA), &large).is_err());
    }

    #[test]
    fn values_are_not_repeated_in_errors() {
        let error = given(json!({"level": "1234-secret"}))
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(!error.contains("1234"), "{error}");
    }

    #[test]
    fn values_of_a_form_fit_its_fields_where_these_can_be_checked() {
        let values = Map::from_iter([("level".to_owned(), json!(101))]);
        assert!(
            validate_values(SCHEMA, &values)
                .is_err_and(|error| error.to_string().contains("`/values/level`"))
        );
        assert!(
            validate_values(r##"{"properties": {"level": {"$ref": "#/no"}}}"##, &values).is_ok()
        );
    }

    #[test]
    fn what_cannot_be_checked_cheaply_is_refused() {
        assert_eq!(check(SCHEMA), Ok(()));
        assert_eq!(
            check(r#"{"properties": {"$ref": {"type": "string"}}}"#),
            Ok(()),
            "a property of that name"
        );
        for schema in [
            r##"{"properties": {"a": {"$ref": "#"}}}"##,
            r#"{"properties": {"a": {"$ref": "https://example.com/schema"}}}"#,
            r#"{"properties": {"a": {"pattern": "("}}}"#,
            r#"{"properties": {"a": {"pattern": "(a)\\1"}}}"#,
            r#"{"properties": {"a": {"pattern": "((a{1000}){1000}){1000}"}}}"#,
            r#"{"properties": {"a": {"type": "whole"}}}"#,
        ] {
            assert!(check(schema).is_err(), "{schema}");
        }
    }
}
