//! Who changed what: one entry a change, written in the change's own transaction. An entry never holds a secret.

use hub_protocol::{TenantUuid, Timestamp};
use serde_json::{Value, json};

use crate::authn::user::User;
use crate::authz::{Actor, Scope};
use crate::db::{Tx, sql};
use crate::error::Result;
use crate::http::request_id;

/// An entry about to be written.
#[derive(Debug)]
pub struct Audit {
    tenant_uuid: Option<TenantUuid>,
    actor: Actor,
    /// What happened, as `thing.verb`.
    action: &'static str,
    target: String,
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
            detail: json!({}),
            at,
        }
    }

    /// A change by a person that belongs to no tenant, such as a login.
    pub fn by_user(user: &User, action: &'static str, target: impl ToString, at: Timestamp) -> Self {
        let actor = Actor::User { user_uuid: user.user_uuid, persona_uuid: user.persona_uuid };
        Self { tenant_uuid: None, actor, action, target: target.to_string(), detail: json!({}), at }
    }

    /// A change from the command line or by background work that belongs to no tenant.
    pub fn by_system(name: &'static str, action: &'static str, target: impl ToString, at: Timestamp) -> Self {
        let actor = Actor::System(name);
        Self { tenant_uuid: None, actor, action, target: target.to_string(), detail: json!({}), at }
    }

    /// The tenant whose own log shows the entry.
    pub fn in_tenant(mut self, tenant_uuid: TenantUuid) -> Self {
        self.tenant_uuid = Some(tenant_uuid);
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
    sql("INSERT INTO audit_logs (tenant_uuid, actor, actor_uuid, action, target, detail, request_id, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)")
    .bind(audit.tenant_uuid)
    .bind(audit.actor.kind())
    .bind(audit.actor.uuid())
    .bind(audit.action)
    .bind(audit.target)
    .bind(audit.detail)
    .bind(Some(request_id).filter(|id| !id.is_empty()))
    .bind(audit.at)
    .execute(tx)
    .await?;
    Ok(())
}
