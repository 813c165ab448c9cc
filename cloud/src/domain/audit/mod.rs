//! Who changed what: one entry a change, written in the change's own transaction. An entry never holds a secret.

pub mod http;
mod store;

use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::authn::user::User;
use crate::authz::{Actor, ActorType, Scope};

/// An entry about to be written.
#[derive(Debug)]
pub struct Audit {
    tenant_uuid: Option<TenantUuid>,
    actor: Actor,
    /// What happened, as `thing.verb`.
    action: &'static str,
    /// The id of the thing.
    target: String,
    before: Option<Value>,
    after: Option<Value>,
    detail: Value,
    at: Timestamp,
}

impl Audit {
    /// A change inside a tenant.
    pub fn new(scope: &Scope, action: &'static str, target: impl ToString, at: Timestamp) -> Self {
        Self {
            tenant_uuid: Some(scope.tenant_uuid()),
            actor: scope.actor().clone(),
            action,
            target: target.to_string(),
            before: None,
            after: None,
            detail: json!({}),
            at,
        }
    }

    /// A change by a person that belongs to no tenant, such as a login.
    pub fn by_user(user: &User, action: &'static str, target: impl ToString, at: Timestamp) -> Self {
        Self::by_person(user.user_uuid, user.persona_uuid, action, target, at)
    }

    /// As [`Audit::by_user`], of somebody who is not logged in.
    pub fn by_person(
        user_uuid: UserUuid,
        persona_uuid: PersonaUuid,
        action: &'static str,
        target: impl ToString,
        at: Timestamp,
    ) -> Self {
        Self::outside_tenants(Actor::User { user_uuid, persona_uuid }, action, target, at)
    }

    /// A change from the command line or by background work that belongs to no tenant.
    pub fn by_system(name: &'static str, action: &'static str, target: impl ToString, at: Timestamp) -> Self {
        Self::outside_tenants(Actor::System(name), action, target, at)
    }

    fn outside_tenants(actor: Actor, action: &'static str, target: impl ToString, at: Timestamp) -> Self {
        let target = target.to_string();
        Self { tenant_uuid: None, actor, action, target, before: None, after: None, detail: json!({}), at }
    }

    /// The tenant whose own log shows the entry.
    pub fn in_tenant(mut self, tenant_uuid: TenantUuid) -> Self {
        self.tenant_uuid = Some(tenant_uuid);
        self
    }

    /// What was there before and what is there now, as far as it changed; never a secret.
    pub fn changed(mut self, before: Option<Value>, after: Option<Value>) -> Self {
        self.before = before;
        self.after = after;
        self
    }

    /// What else there is to know; never a secret.
    pub fn with(mut self, detail: Value) -> Self {
        self.detail = detail;
        self
    }
}

pub(crate) use store::insert;

/// What a list is narrowed by, put in terms of the indexes.
#[derive(Debug)]
struct Narrowed {
    /// Kinds of actor, or actors, see [`Actor::key`]; nobody else's entries are listed.
    actors: Vec<String>,
    /// Whether it is actors that are named, and not kinds.
    names_actors: bool,
    action: Option<String>,
    /// Where no action says it.
    object_type: Option<String>,
    object_id: Option<String>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

/// Filters as they are asked for.
#[derive(Debug, Default)]
struct Filters {
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    actor_type: Option<ActorType>,
    actor_uuid: Option<Uuid>,
    api_key_id: Option<i64>,
    action: Option<String>,
    object_type: Option<String>,
    object_id: Option<String>,
}

impl Filters {
    /// Nothing when they contradict each other, so that there is nothing to look for.
    fn narrowed(self) -> Option<Narrowed> {
        if let (Some(action), Some(object_type)) = (&self.action, &self.object_type)
            && object_type_of(action) != object_type
        {
            return None;
        }
        let kinds: Vec<ActorType> =
            ActorType::ALL.into_iter().filter(|kind| self.actor_type.is_none_or(|wanted| wanted == *kind)).collect();
        let keys = |of: &[ActorType], id: &dyn ToString| -> Vec<String> {
            let kinds = kinds.iter().filter(|kind| of.contains(kind));
            kinds.map(|kind| format!("{}:{}", kind.name(), id.to_string())).collect()
        };
        let (actors, names_actors) = match (self.actor_uuid, self.api_key_id) {
            (None, None) => (kinds.iter().map(|kind| kind.name().to_owned()).collect(), false),
            (Some(uuid), None) => (keys(&[ActorType::User, ActorType::Hub], &uuid), true),
            (None, Some(api_key_id)) => (keys(&[ActorType::ApiKey], &api_key_id), true),
            (Some(_), Some(_)) => return None,
        };
        if actors.is_empty() {
            return None;
        }
        let object_type = self.object_type.filter(|_| self.action.is_none());
        let Self { from, to, action, object_id, .. } = self;
        Some(Narrowed { actors, names_actors, action, object_type, object_id, from, to })
    }
}

/// An action is called `thing.verb`.
fn object_type_of(action: &str) -> &str {
    action.split('.').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actors(filters: Filters) -> Option<Vec<String>> {
        filters.narrowed().map(|narrowed| narrowed.actors)
    }

    #[test]
    fn filters_name_kinds_or_actors() {
        let uuid = Uuid::nil();
        let all = ["USER", "API_KEY", "HUB", "SYSTEM"].map(str::to_owned).to_vec();
        assert_eq!(actors(Filters::default()), Some(all));
        let hubs = || Filters { actor_type: Some(ActorType::Hub), ..Filters::default() };
        assert_eq!(actors(hubs()), Some(vec!["HUB".to_owned()]));
        assert_eq!(actors(Filters { actor_uuid: Some(uuid), ..hubs() }), Some(vec![format!("HUB:{uuid}")]));
        let either = vec![format!("USER:{uuid}"), format!("HUB:{uuid}")];
        assert_eq!(actors(Filters { actor_uuid: Some(uuid), ..Filters::default() }), Some(either));
        assert_eq!(actors(Filters { api_key_id: Some(7), ..Filters::default() }), Some(vec!["API_KEY:7".to_owned()]));
    }

    #[test]
    fn contradictions_find_nothing() {
        let hubs = || Filters { actor_type: Some(ActorType::Hub), ..Filters::default() };
        assert_eq!(actors(Filters { api_key_id: Some(7), ..hubs() }), None);
        assert_eq!(actors(Filters { api_key_id: Some(7), actor_uuid: Some(Uuid::nil()), ..Filters::default() }), None);
        let action = || Filters { action: Some("hub.claim".to_owned()), ..Filters::default() };
        assert!(actors(Filters { object_type: Some("hub".to_owned()), ..action() }).is_some());
        assert_eq!(actors(Filters { object_type: Some("user".to_owned()), ..action() }), None);
    }
}
