//! The actor of a change: a person, an API key, a hub, or the service itself.

use hub_protocol::{HubUuid, PersonaUuid, UserUuid, text_enum};
use uuid::Uuid;

/// The actor of a change.
#[derive(Clone, Debug)]
pub enum Actor {
    User {
        user_uuid: UserUuid,
        persona_uuid: PersonaUuid,
    },
    /// The API key's id.
    ApiKey(i64),
    Hub(HubUuid),
    /// The name of a background worker or of the command line.
    System(&'static str),
}

/// The kinds of actor.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ActorType {
    /// A person.
    User,
    /// An API key.
    ApiKey,
    /// A hub.
    Hub,
    /// A background worker or the command line.
    System,
}

text_enum!(ActorType { User = "USER", ApiKey = "API_KEY", Hub = "HUB", System = "SYSTEM" });

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

    /// The name of a background worker.
    pub const fn name(&self) -> Option<&'static str> {
        match self {
            Self::System(name) => Some(name),
            Self::User { .. } | Self::ApiKey(_) | Self::Hub(_) => None,
        }
    }

    /// A unique text for the actor, such as `API_KEY:7`.
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
