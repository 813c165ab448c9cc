//! Responses that need not be sent again: entity tags and `If-None-Match` (RFC 9110, 8.8.3 and
//! 13.1.2).

use std::convert::Infallible;

use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use aide::{OperationInput, OperationOutput};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::{JsonSchema, json_schema};
use serde::Serialize;

use super::answer::Answer;
use super::describe::{header_parameter, headers};

/// The tags that the client already has.
#[derive(Debug)]
pub struct IfNoneMatch(Vec<String>);

impl IfNoneMatch {
    fn read(headers: &HeaderMap) -> Self {
        let values = headers
            .get_all(header::IF_NONE_MATCH)
            .iter()
            .filter_map(|value| value.to_str().ok());
        // The tags of this service contain no comma.
        let tags = values
            .flat_map(|value| value.split(','))
            .map(|tag| tag.trim().to_owned());
        Self(tags.filter(|tag| !tag.is_empty()).collect())
    }

    /// Whether the request has no such header.
    pub fn is_absent(&self) -> bool {
        self.0.is_empty()
    }

    /// The comparison is weak, as the header requires: a cache on the way may have weakened the
    /// tag.
    pub fn matches(&self, etag: &str) -> bool {
        self.0
            .iter()
            .any(|tag| tag == "*" || opaque(tag) == opaque(etag))
    }
}

/// The tag without its weakness and without the encoding that compression has added to it.
fn opaque(tag: &str) -> &str {
    let tag = tag.strip_prefix("W/").unwrap_or(tag);
    let tag = tag.strip_suffix('"').unwrap_or(tag);
    ["-zstd", "-gzip"]
        .into_iter()
        .find_map(|encoding| tag.strip_suffix(encoding))
        .unwrap_or(tag)
}

impl<S: Sync> FromRequestParts<S> for IfNoneMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::read(&parts.headers))
    }
}

impl OperationInput for IfNoneMatch {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let description = "The `ETag` of the response that the client has; the response is 304 if it is unchanged.";
        header_parameter(
            operation,
            "If-None-Match",
            description,
            json_schema!({"type": "string"}),
        );
    }
}

/// A documented 304.
pub fn not_modified() -> ApiResponse {
    ApiResponse {
        description: "The client has the current response.".to_owned(),
        headers: headers(&["ETag"]),
        ..ApiResponse::default()
    }
}

/// 200 with the tag of the body, or 304 with the tag alone.
pub struct Tagged<T> {
    pub etag: String,
    /// `None` if the client already has it.
    pub body: Option<T>,
}

impl<T: Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        let mut response = match self.body {
            Some(body) => Answer(body).into_response(),
            None => StatusCode::NOT_MODIFIED.into_response(),
        };
        if let Ok(etag) = HeaderValue::from_str(&self.etag) {
            response.headers_mut().insert(header::ETAG, etag);
        }
        // The client may cache it, and must check each time whether it is current.
        response.headers_mut().insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("private, no-cache"),
        );
        response
    }
}

impl<T: JsonSchema> OperationOutput for Tagged<T> {
    type Inner = T;
    fn inferred_responses(
        ctx: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let mut responses = Answer::<T>::inferred_responses(ctx, operation);
        for (_, response) in &mut responses {
            response.headers.extend(headers::<Vec<_>>(&["ETag"]));
        }
        responses.push((Some(304), not_modified()));
        responses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_in_every_form_of_the_header() {
        let given = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::IF_NONE_MATCH, HeaderValue::from_static(value));
            }
            IfNoneMatch::read(&headers)
        };
        for values in [
            &["\"7.1\""][..],
            &["*"],
            &["W/\"7.1\""],
            &["\"a\", \"7.1\""],
            &["\"a\"", "\"7.1\""],
        ] {
            assert!(given(values).matches("\"7.1\""), "{values:?}");
        }
        for values in [&[][..], &["7.1"], &["\"7\""], &["\"7.10\""], &[","]] {
            assert!(!given(values).matches("\"7.1\""), "{values:?}");
        }
        assert!(given(&[","]).is_absent() && !given(&["*"]).is_absent());
    }
}
