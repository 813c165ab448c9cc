//! Identifies the caller of a request: a person with a user token, a tenant's back-end with an API
//! key, a hub with its token. Reads and verifies credentials; `authz` decides what the caller may
//! do.

pub mod api_key;
mod bearer;
mod cache;
mod claims;
pub mod client_certificate;
pub mod fields;
pub mod grants;
pub mod hub;
pub mod key_shares;
mod key_windows;
pub mod keys;
mod lease;
pub mod oidc;
mod principal;
pub mod store;
pub mod user;

use std::sync::Arc;

use hub_core::Core;

pub use bearer::{bearer, invalid_token};
pub use cache::{Permissions, Statistics};
pub use claims::ISSUER;
pub use lease::LEASE;
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
        let permissions = Permissions::new(core.config.second_factor);
        Self {
            core,
            keys,
            oidc: oidc.map(Arc::new),
            permissions,
            key_shares,
        }
    }
}
