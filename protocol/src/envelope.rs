//! The two shapes of every JSON response of the service: `{"data": ...}` or a problem.

use serde::{Deserialize, Serialize};

/// A success: the payload under `data`, and no other member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Data<T> {
    pub data: T,
}

/// Named as in the API documentation: `ApiResponse`, followed by the name of its content.
#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> schemars::JsonSchema for Data<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        let payload = T::schema_name();
        match payload.strip_prefix("Array_of_") {
            Some(item) => format!("ApiResponseList{item}").into(),
            None if payload == "null" => "ApiResponseVoid".into(),
            None => format!("ApiResponse{payload}").into(),
        }
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut data = generator.subschema_for::<T>();
        // A schema that is referred to has its own description.
        if data.get("$ref").is_none() {
            data.ensure_object()
                .entry("description")
                .or_insert_with(|| "What was asked for.".into());
        }
        schemars::json_schema!({
            "type": "object",
            "description": "A success.",
            "properties": {"data": data},
            "required": ["data"],
        })
    }
}

/// A failure. `message` is for a person, `code` for a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// One plain sentence that says what is wrong and, where it helps, what to do next.
    pub message: String,
    /// Stable, in SCREAMING_SNAKE_CASE.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[A-Z][A-Z0-9_]*$")))]
    pub code: String,
    /// The same value as the `X-Request-Id` header, which the log of the service has too.
    pub request_id: String,
    /// The fields that are not valid, where the content of the request is at fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

/// What is wrong with one field of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FieldError {
    /// The path to the field, such as `events[3].observedAt`, or the name of a parameter or header.
    pub field: String,
    /// What the field must be.
    pub message: String,
}
