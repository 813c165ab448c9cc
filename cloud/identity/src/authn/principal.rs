//! Who a request can be from: a person, or a tenant's back-end with its key.

use hub_core::audit::{Actor, Author};
use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid};
use uuid::Uuid;

use super::grants::KeyScopes;

/// A person whose token is valid.
#[derive(Clone, Copy, Debug)]
pub struct User {
    pub user_uuid: UserUuid,
    pub persona_uuid: PersonaUuid,
    pub is_platform_admin: bool,
    pub session: Session,
}

/// What a person's session depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Session {
    /// A login at this service, which can be revoked.
    Login(Uuid),
    /// A token of an external issuer, valid until it expires.
    External,
}

impl From<&User> for Author {
    fn from(user: &User) -> Self {
        let User {
            user_uuid,
            persona_uuid,
            ..
        } = *user;
        Self {
            tenant_uuid: None,
            actor: Actor::User {
                user_uuid,
                persona_uuid,
            },
        }
    }
}

/// Secret scanners recognise the keys of this service by this prefix.
pub const PREFIX: &str = "hmk_";

/// An active key.
#[derive(Clone, Debug)]
pub struct ApiKey {
    pub api_key_id: i64,
    pub tenant_uuid: TenantUuid,
    /// The public part of the key, which lists show.
    pub key_prefix: String,
    pub name: String,
    pub scopes: KeyScopes,
    pub rate_limit_per_minute: i64,
    pub expires_at: Option<Timestamp>,
}

impl ApiKey {
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }
}

/// The public part of the key with this id.
pub fn prefix_of(id: &str) -> String {
    format!("{PREFIX}{id}")
}
