//! Whose data a statement may access, and on whose behalf. Every store function on a tenant's table
//! takes a scope, and only `authz` creates scopes.

use hub_core::audit::{Actor, Author};
use hub_protocol::{PersonaUuid, TenantUuid, UserUuid};

use crate::authn::hub::Hub;
use crate::authn::user::User;

/// One tenant, and the actor in it.
#[derive(Clone, Debug)]
pub struct Scope {
    tenant_uuid: TenantUuid,
    actor: Actor,
}

impl Scope {
    pub(super) const fn of_member(
        tenant_uuid: TenantUuid,
        user_uuid: UserUuid,
        persona_uuid: PersonaUuid,
    ) -> Self {
        Self {
            tenant_uuid,
            actor: Actor::User {
                user_uuid,
                persona_uuid,
            },
        }
    }

    pub(super) const fn of_api_key(tenant_uuid: TenantUuid, api_key_id: i64) -> Self {
        Self {
            tenant_uuid,
            actor: Actor::ApiKey(api_key_id),
        }
    }

    /// A person who acts on something that was offered to them or that they offered. They need not
    /// be a member, so they act with their default persona.
    pub const fn of_person(user: &User, tenant_uuid: TenantUuid) -> Self {
        Self {
            tenant_uuid,
            actor: Actor::User {
                user_uuid: user.user_uuid,
                persona_uuid: user.persona_uuid,
            },
        }
    }

    /// A hub acts within the tenant that claimed it.
    pub const fn of_hub(hub: &Hub) -> Self {
        Self {
            tenant_uuid: hub.tenant_uuid,
            actor: Actor::Hub(hub.hub_uuid),
        }
    }

    /// Background work and the command line.
    pub const fn system(name: &'static str, tenant_uuid: TenantUuid) -> Self {
        Self {
            tenant_uuid,
            actor: Actor::System(name),
        }
    }

    pub const fn tenant_uuid(&self) -> TenantUuid {
        self.tenant_uuid
    }

    pub const fn actor(&self) -> &Actor {
        &self.actor
    }
}

impl From<&Scope> for Author {
    fn from(scope: &Scope) -> Self {
        Self {
            tenant_uuid: Some(scope.tenant_uuid),
            actor: scope.actor.clone(),
        }
    }
}

/// One end user. Every store function behind `/app` takes one and limits its query to that user's
/// data.
#[derive(Clone, Debug)]
pub struct UserScope {
    user_uuid: UserUuid,
    persona_uuid: PersonaUuid,
}

impl UserScope {
    pub(super) const fn of(user: &User) -> Self {
        Self {
            user_uuid: user.user_uuid,
            persona_uuid: user.persona_uuid,
        }
    }

    pub const fn user_uuid(&self) -> UserUuid {
        self.user_uuid
    }
}

impl From<&UserScope> for Author {
    fn from(scope: &UserScope) -> Self {
        let UserScope {
            user_uuid,
            persona_uuid,
        } = *scope;
        Self {
            tenant_uuid: None,
            actor: Actor::User {
                user_uuid,
                persona_uuid,
            },
        }
    }
}
