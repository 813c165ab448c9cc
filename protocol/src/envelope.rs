//! The two shapes every JSON answer of the service has: `{"data": ...}` or a problem.

use serde::{Deserialize, Serialize};

/// A success: the payload under `data`, and nothing beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Data<T> {
    pub data: T,
}

/// A failure. `message` is for a person, `code` for a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// One plain sentence that says what is wrong and, where it helps, what to do next.
    pub message: String,
    /// Stable, SCREAMING_SNAKE_CASE.
    pub code: String,
    /// The same value as the `X-Request-Id` header and the service's logs.
    pub request_id: String,
    /// The fields that are wrong, when the request's content is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

/// What is wrong with one field of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FieldError {
    /// The path to the field, such as `events[3].observedAt`, or a query parameter or header by its name.
    pub field: String,
    pub message: String,
}
