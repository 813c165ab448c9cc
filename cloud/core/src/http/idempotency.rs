//! The `Idempotency-Key` header of requests that a client may have to repeat.

use std::convert::Infallible;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use hub_base::error::{Error, Result};
use schemars::json_schema;

use super::describe::{header_parameter, may_fail};

/// The key, if the request has one: 1 to 200 visible ASCII characters. The handler decides when to
/// refuse a malformed key.
pub struct IdempotencyKey(pub Result<Option<String>>);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> std::result::Result<Self, Infallible> {
        Ok(Self(read(&parts.headers)))
    }
}

fn read(headers: &HeaderMap) -> Result<Option<String>> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(key)
            if (1..=200).contains(&key.len())
                && key.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            Ok(Some(key.to_owned()))
        }
        _ => Err(Error::field(
            "Idempotency-Key",
            "must be 1 to 200 visible ASCII characters",
        )),
    }
}

impl OperationInput for IdempotencyKey {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let description = "Chosen by the client. A request that is repeated with the same key within 7 days changes \
                           nothing more and gets the same answer.";
        let schema = json_schema!({"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"});
        header_parameter(operation, "Idempotency-Key", description, schema);
        may_fail(operation, &[400]);
    }
}
