//! The constraints that the schema of a body states about its texts: lengths and patterns. They
//! are stated once, in the schema, and every body is validated against it. What a schema cannot
//! state, handlers validate with [`super::check::Check`].

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use hub_base::error::{Error, Result};
use hub_protocol::{FieldError, patterns};
use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{ValidationError, Validator};
use schemars::JsonSchema;
use serde_json::Value;

use super::check::{NOT_A_LINE, NOT_A_WORD, NOT_EMPTY, NOT_TEXT, too_long};

/// One validator for each type of a body, made when the first body of the type arrives.
static VALIDATORS: LazyLock<RwLock<HashMap<TypeId, Arc<Validator>>>> =
    LazyLock::new(RwLock::default);

/// Returns 400 with all texts that violate a constraint. The shape of the body was parsed before.
pub fn validate<T: JsonSchema + 'static>(body: &Value) -> Result<()> {
    let errors = violations(&*validator::<T>()?, body);
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Error::fields(errors)),
    }
}

fn validator<T: JsonSchema + 'static>() -> Result<Arc<Validator>> {
    let known = VALIDATORS.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(validator) = known.get(&TypeId::of::<T>()) {
        return Ok(validator.clone());
    }
    drop(known);
    let validator = compile(schemars::schema_for!(T).as_value())?;
    let mut known = VALIDATORS.write().unwrap_or_else(PoisonError::into_inner);
    known.insert(TypeId::of::<T>(), validator.clone());
    Ok(validator)
}

fn compile(schema: &Value) -> Result<Arc<Validator>> {
    let validator = jsonschema::validator_for(schema);
    validator
        .map(Arc::new)
        .map_err(|error| Error::internal(error.to_string()))
}

fn violations(validator: &Validator, body: &Value) -> Vec<FieldError> {
    if validator.is_valid(body) {
        return Vec::new();
    }
    let errors = validator.iter_errors(body);
    errors
        .filter_map(|error| violated(&error))
        .flatten()
        .collect()
}

/// The violated constraints of a text; none of an error of another kind, which is parsing's or a
/// handler's to report.
fn violated(error: &ValidationError<'_>) -> Option<Vec<FieldError>> {
    let message = match error.kind() {
        ValidationErrorKind::MaxLength { limit } => too_long(*limit),
        ValidationErrorKind::MinLength { limit: 1 } => NOT_EMPTY.to_owned(),
        ValidationErrorKind::MinLength { limit } => {
            format!("must have at least {limit} characters")
        }
        ValidationErrorKind::Pattern { pattern } => {
            let is_blank = error.instance().as_str()?.trim().is_empty();
            match pattern.as_str() {
                patterns::FILLED_LINE if is_blank => NOT_EMPTY.to_owned(),
                patterns::FILLED_LINE | patterns::LINE => NOT_A_LINE.to_owned(),
                patterns::LINES => NOT_TEXT.to_owned(),
                patterns::WORD => NOT_A_WORD.to_owned(),
                _ => return None,
            }
        }
        // The alternative whose shape the value has differs from the value in texts alone.
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            return context.iter().find_map(|alternative| {
                let found: Option<Vec<Vec<FieldError>>> =
                    alternative.iter().map(violated).collect();
                found.map(|found| found.into_iter().flatten().collect())
            });
        }
        _ => return None,
    };
    let field = field(error.instance_path());
    Some(vec![FieldError { field, message }])
}

/// The path of a member as parsing names it, such as `apps[0].version`.
fn field(location: &Location) -> String {
    let mut path = String::new();
    for segment in location {
        match segment {
            LocationSegment::Index(index) => path.push_str(&format!("[{index}]")),
            LocationSegment::Property(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&name);
            }
        }
    }
    match path.is_empty() {
        true => "body".to_owned(),
        false => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Body {
        #[schemars(length(max = 5), regex(pattern = patterns::FILLED_LINE))]
        name: String,
        #[schemars(regex(pattern = patterns::LINES))]
        note: Option<String>,
        inner: Option<Inner>,
        #[schemars(inner(length(max = 2)))]
        list: Option<Vec<String>>,
        #[schemars(range(max = 3))]
        count: Option<i64>,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Inner {
        #[schemars(regex(pattern = patterns::WORD))]
        channel: String,
    }

    fn errors_of(body: Value) -> Vec<(String, String)> {
        let schema = schemars::schema_for!(Body);
        let validator = compile(schema.as_value()).expect("a schema");
        violations(&validator, &body)
            .into_iter()
            .map(|one| (one.field, one.message))
            .collect()
    }

    fn named(field: &str, message: &str) -> (String, String) {
        (field.to_owned(), message.to_owned())
    }

    #[test]
    fn texts_within_their_constraints_are_accepted() {
        let body = json!({"name": "äöüß€", "note": "a\nb", "inner": {"channel": "stable"},
            "list": ["ab"], "count": null});
        assert_eq!(errors_of(body), []);
        assert_eq!(
            errors_of(json!({"name": "a", "note": null, "inner": null})),
            []
        );
    }

    #[test]
    fn every_violated_constraint_is_named() {
        let body = json!({"name": " ", "note": "\u{7}", "inner": {"channel": "A"},
            "list": ["ab", "abc"]});
        assert_eq!(
            errors_of(body),
            [
                named("inner.channel", NOT_A_WORD),
                named("list[1]", "must have at most 2 characters"),
                named("name", NOT_EMPTY),
                named("note", NOT_TEXT),
            ]
        );
        assert_eq!(
            errors_of(json!({"name": "two\nlines"})),
            [
                named("name", "must have at most 5 characters"),
                named("name", NOT_A_LINE),
            ]
        );
    }

    #[test]
    fn ranges_and_shapes_are_left_to_handlers_and_parsing() {
        assert_eq!(errors_of(json!({"name": "a", "count": 4, "inner": 3})), []);
    }
}
