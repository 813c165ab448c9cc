//! Whose data a statement may touch, and on whose behalf. Every store function on a tenant's table takes one; only `authz` makes them.

use hub_protocol::{HubUuid, PersonaUuid, TenantUuid, UserUuid};
use uuid::Uuid;

use crate::authn::hub::Hub;
use crate::authn::user::User;

/// Who acts.
#[derive(Clone, Debug)]
pub enum Actor {
    User {
        user_uuid: UserUuid,
        persona_uuid: PersonaUuid,
    },
    /// By its id.
    ApiKey(i64),
    Hub(HubUuid),
    /// A background worker or the command line, by name.
    System(&'static str),
}

impl Actor {
    /// `USER`, `API_KEY`, `HUB`, or a worker's name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::User { .. } => "USER",
            Self::ApiKey(_) => "API_KEY",
            Self::Hub(_) => "HUB",
            Self::System(name) => name,
        }
    }

    pub fn uuid(&self) -> Option<Uuid> {
        match self {
            Self::User { user_uuid, .. } => Some(user_uuid.0),
            Self::Hub(hub_uuid) => Some(hub_uuid.0),
            Self::ApiKey(_) | Self::System(_) => None,
        }
    }
}

/// One tenant, and who acts in it.
#[derive(Clone, Debug)]
pub struct Scope {
    tenant_uuid: TenantUuid,
    actor: Actor,
}

impl Scope {
    pub(super) const fn of_member(tenant_uuid: TenantUuid, user_uuid: UserUuid, persona_uuid: PersonaUuid) -> Self {
        Self { tenant_uuid, actor: Actor::User { user_uuid, persona_uuid } }
    }

    pub(super) const fn of_api_key(tenant_uuid: TenantUuid, api_key_id: i64) -> Self {
        Self { tenant_uuid, actor: Actor::ApiKey(api_key_id) }
    }

    /// A person who acts on what was offered to them, or on what they offered, and who need not be a member: with their default persona.
    pub const fn of_person(user: &User, tenant_uuid: TenantUuid) -> Self {
        Self { tenant_uuid, actor: Actor::User { user_uuid: user.user_uuid, persona_uuid: user.persona_uuid } }
    }

    /// A hub acts within the tenant that claimed it.
    pub const fn of_hub(hub: &Hub) -> Self {
        Self { tenant_uuid: hub.tenant_uuid, actor: Actor::Hub(hub.hub_uuid) }
    }

    /// Background work and the command line.
    pub const fn system(name: &'static str, tenant_uuid: TenantUuid) -> Self {
        Self { tenant_uuid, actor: Actor::System(name) }
    }

    pub const fn tenant_uuid(&self) -> TenantUuid {
        self.tenant_uuid
    }

    pub const fn actor(&self) -> &Actor {
        &self.actor
    }
}
