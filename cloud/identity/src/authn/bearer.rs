//! The bearer token of a request.

use axum::http::{HeaderMap, header};
use hub_base::error::{Error, Result};

/// No valid token is longer. Longer ones are refused without parsing.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// The token of `Authorization: Bearer ...`.
pub fn bearer(headers: &HeaderMap) -> Result<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        let message = "this endpoint requires the header `Authorization: Bearer <token>`";
        return Err(Error::unauthorized("UNAUTHENTICATED", message));
    };
    // A proxy in front may have checked the other header.
    if values.next().is_some() {
        return Err(Error::unauthorized(
            "UNAUTHENTICATED",
            "the `Authorization` header must be sent only once",
        ));
    }
    let token = value.to_str().ok().and_then(|value| value.split_once(' '));
    match token {
        Some((_, token)) if token.len() > MAX_TOKEN_BYTES => Err(invalid_token()),
        Some((scheme, token))
            if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() =>
        {
            Ok(token.trim())
        }
        _ => Err(Error::unauthorized(
            "UNAUTHENTICATED",
            "the `Authorization` header must be `Bearer <token>`",
        )),
    }
}

/// 401 for a token that is malformed, expired or of another issuer. The error is always the same,
/// so that guessing reveals nothing.
pub fn invalid_token() -> Error {
    Error::unauthorized(
        "INVALID_TOKEN",
        "the access token is not valid or has expired; get a new one",
    )
}
