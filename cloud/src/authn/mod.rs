//! Who sends a request: a person with a user token, a tenant's back-end with an API key, a hub with its token. Reads credentials and checks them; what the caller may then do is
//! decided in `authz`.

pub mod api_key;
pub mod client_certificate;
pub mod hub;
pub mod key_shares;
pub mod keys;
pub mod oidc;
pub mod user;

use axum::http::{HeaderMap, header};

use crate::error::{Error, Result};

/// Longer than any token: what is longer is not looked at.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// The token of `Authorization: Bearer ...`.
pub fn bearer(headers: &HeaderMap) -> Result<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        let message = "this endpoint needs the header `Authorization: Bearer <token>`";
        return Err(Error::unauthorized("UNAUTHENTICATED", message));
    };
    // A proxy in front may have gone by the other one.
    if values.next().is_some() {
        return Err(Error::unauthorized("UNAUTHENTICATED", "the `Authorization` header must be sent once"));
    }
    let token = value.to_str().ok().and_then(|value| value.split_once(' '));
    match token {
        Some((_, token)) if token.len() > MAX_TOKEN_BYTES => Err(invalid_token()),
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() => Ok(token.trim()),
        _ => Err(Error::unauthorized("UNAUTHENTICATED", "the `Authorization` header must be `Bearer <token>`")),
    }
}

/// 401 for a token that is malformed, expired or not ours. One answer for all: a guesser learns nothing.
pub fn invalid_token() -> Error {
    Error::unauthorized("INVALID_TOKEN", "the access token is not valid, or no longer; get a new one")
}
