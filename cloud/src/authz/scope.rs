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

/// The kinds of actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ActorType {
    User,
    ApiKey,
    Hub,
    /// A background worker or the command line.
    System,
}

impl ActorType {
    pub const ALL: [Self; 4] = [Self::User, Self::ApiKey, Self::Hub, Self::System];

    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "USER",
            Self::ApiKey => "API_KEY",
            Self::Hub => "HUB",
            Self::System => "SYSTEM",
        }
    }
}

/// As the database holds it.
impl TryFrom<String> for ActorType {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| format!("unknown kind of actor {name}"))
    }
}

impl Actor {
    pub const fn kind(&self) -> ActorType {
        match self {
            Self::User { .. } => ActorType::User,
            Self::ApiKey(_) => ActorType::ApiKey,
            Self::Hub(_) => ActorType::Hub,
            Self::System(_) => ActorType::System,
        }
    }

    pub fn uuid(&self) -> Option<Uuid> {
        match self {
            Self::User { user_uuid, .. } => Some(user_uuid.0),
            Self::Hub(hub_uuid) => Some(hub_uuid.0),
            Self::ApiKey(_) | Self::System(_) => None,
        }
    }

    /// A worker's name.
    pub const fn name(&self) -> Option<&'static str> {
        match self {
            Self::System(name) => Some(name),
            Self::User { .. } | Self::ApiKey(_) | Self::Hub(_) => None,
        }
    }

    /// One text for each actor there is, such as `API_KEY:7`.
    pub fn key(&self) -> String {
        let kind = self.kind().name();
        match self {
            Self::User { user_uuid, .. } => format!("{kind}:{user_uuid}"),
            Self::ApiKey(api_key_id) => format!("{kind}:{api_key_id}"),
            Self::Hub(hub_uuid) => format!("{kind}:{hub_uuid}"),
            Self::System(name) => format!("{kind}:{name}"),
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
