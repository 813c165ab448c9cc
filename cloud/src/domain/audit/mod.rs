//! Who changed what: one entry a change, written in the change's own transaction. An entry never holds a secret.

use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid};
use serde_json::{Value, json};

use crate::authn::user::User;
use crate::authz::{Actor, Scope};
use crate::db::{Tx, sql};
use crate::error::Result;
use crate::http::{client_address, request_id};

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

pub(crate) async fn insert(tx: &mut Tx, audit: Audit) -> Result<()> {
    let request_id = request_id::current();
    let (persona_uuid, api_key_id) = match audit.actor {
        Actor::User { persona_uuid, .. } => (Some(persona_uuid), None),
        Actor::ApiKey(api_key_id) => (None, Some(api_key_id)),
        Actor::Hub(_) | Actor::System(_) => (None, None),
    };
    let object_type = audit.action.split('.').next().unwrap_or_default();
    sql("INSERT INTO audit_logs (tenant_uuid, actor, actor_uuid, action, target, detail, request_id, created_at, \
         persona_uuid, api_key_id, address, object_type, before_state, after_state) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)")
    .bind(audit.tenant_uuid)
    .bind(audit.actor.kind())
    .bind(audit.actor.uuid())
    .bind(audit.action)
    .bind(audit.target)
    .bind(audit.detail)
    .bind(Some(request_id).filter(|id| !id.is_empty()))
    .bind(audit.at)
    .bind(persona_uuid)
    .bind(api_key_id)
    .bind(client_address::current().map(|address| address.to_string()))
    .bind(object_type)
    .bind(audit.before)
    .bind(audit.after)
    .execute(tx)
    .await?;
    Ok(())
}
