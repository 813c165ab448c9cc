//! Answers a client need not be sent again: entity tags and `If-None-Match` (RFC 9110, 8.8.3 and 13.1.2).

use std::convert::Infallible;

use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use aide::{OperationInput, OperationOutput};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use super::answer::Answer;

/// What the client already has.
#[derive(Debug)]
pub struct IfNoneMatch(Vec<String>);

impl IfNoneMatch {
    fn read(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        // The tags of this service hold no comma.
        let tags = values.flat_map(|value| value.split(',')).map(|tag| tag.trim().to_owned());
        Self(tags.filter(|tag| !tag.is_empty()).collect())
    }

    /// Whether nothing is said about what the client has.
    pub fn is_absent(&self) -> bool {
        self.0.is_empty()
    }

    /// The comparison is weak, as the header asks: a cache in between may have weakened the tag.
    pub fn matches(&self, etag: &str) -> bool {
        let opaque = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
        self.0.iter().any(|tag| tag == "*" || opaque(tag) == opaque(etag))
    }
}

impl<S: Sync> FromRequestParts<S> for IfNoneMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::read(&parts.headers))
    }
}

impl OperationInput for IfNoneMatch {}

/// 200 with the tag of what is sent, or 304 with the tag alone.
pub struct Tagged<T> {
    pub etag: String,
    /// Nothing when the client has it.
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
        // Kept by whoever asked, and asked about each time.
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        response
    }
}

impl<T: JsonSchema> OperationOutput for Tagged<T> {
    type Inner = T;
    fn inferred_responses(ctx: &mut GenContext, operation: &mut Operation) -> Vec<(Option<u16>, ApiResponse)> {
        let unchanged = ApiResponse { description: "The client has it already.".to_owned(), ..ApiResponse::default() };
        let mut responses = Answer::<T>::inferred_responses(ctx, operation);
        responses.push((Some(304), unchanged));
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
        for values in [&["\"7.1\""][..], &["*"], &["W/\"7.1\""], &["\"a\", \"7.1\""], &["\"a\"", "\"7.1\""]] {
            assert!(given(values).matches("\"7.1\""), "{values:?}");
        }
        for values in [&[][..], &["7.1"], &["\"7\""], &["\"7.10\""], &[","]] {
            assert!(!given(values).matches("\"7.1\""), "{values:?}");
        }
        assert!(given(&[","]).is_absent() && !given(&["*"]).is_absent());
    }
}
