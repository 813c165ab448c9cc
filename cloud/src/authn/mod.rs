//! Identifies the caller of a request: a person with a user token, a tenant's back-end with an API
//! key, a hub with its token. Reads and verifies credentials; `authz` decides what the caller may
//! do.

pub mod api_key;
mod cache;
pub mod client_certificate;
pub mod fields;
pub mod grants;
pub mod hub;
pub mod key_shares;
mod key_windows;
pub mod keys;
pub mod oidc;
pub mod store;
pub mod user;

use std::sync::Arc;

use axum::http::{HeaderMap, header};

use crate::core::Core;
use crate::error::{Error, Result};
pub use cache::{LEASE, Permissions, Statistics};
pub use store::Member;

/// What authentication needs: the signing keys, the external issuer, and the cache of permissions.
/// Cheap to clone.
#[derive(Clone)]
pub struct Authn {
    pub core: Core,
    pub keys: keys::Keys,
    /// The external issuer of user tokens, if one is configured.
    pub oidc: Option<Arc<oidc::Oidc>>,
    pub permissions: Permissions,
    pub key_shares: Arc<key_shares::Shares>,
}

impl Authn {
    pub fn new(core: Core, keys: keys::Keys, oidc: Option<oidc::Oidc>) -> Self {
        let key_shares = Arc::new(key_shares::Shares::new());
        Self {
            core,
            keys,
            oidc: oidc.map(Arc::new),
            permissions: Permissions::new(),
            key_shares,
        }
    }
}

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
