//! The audit log: one entry for each change, written in the transaction of the change. An entry
//! never contains a secret. `hub_people::audit_logs` reads the log.

mod actor;
pub mod redaction;
pub mod retention;

use hub_base::db::{CommitEntry, Conn, sql};
use hub_base::error::Result;
use hub_base::request_id;
use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid};
use serde_json::{Value, json};

use crate::http::client_address;
pub use actor::{Actor, ActorType};

/// The actor of a change and its tenant.
#[derive(Clone, Debug)]
pub struct Author {
    pub tenant_uuid: Option<TenantUuid>,
    pub actor: Actor,
}

/// An entry that is still to be written.
#[derive(Debug)]
pub struct Audit {
    tenant_uuid: Option<TenantUuid>,
    actor: Actor,
    /// The kind of change, as `object.verb`.
    action: &'static str,
    /// The id of the changed object.
    target: String,
    before: Option<Value>,
    after: Option<Value>,
    detail: Value,
    at: Timestamp,
}

impl Audit {
    /// A change by `author`: a scope for a change inside a tenant, a user for a change outside of
    /// any tenant.
    pub fn new(
        author: impl Into<Author>,
        action: &'static str,
        target: impl ToString,
        at: Timestamp,
    ) -> Self {
        let Author { tenant_uuid, actor } = author.into();
        let target = target.to_string();
        Self {
            tenant_uuid,
            actor,
            action,
            target,
            before: None,
            after: None,
            detail: json!({}),
            at,
        }
    }

    /// A change by a person who is not logged in.
    pub fn by_person(
        user_uuid: UserUuid,
        persona_uuid: PersonaUuid,
        action: &'static str,
        target: impl ToString,
        at: Timestamp,
    ) -> Self {
        Self::new(
            Author {
                tenant_uuid: None,
                actor: Actor::User {
                    user_uuid,
                    persona_uuid,
                },
            },
            action,
            target,
            at,
        )
    }

    /// A change by the command line or by background work that belongs to no tenant.
    pub fn by_system(
        name: &'static str,
        action: &'static str,
        target: impl ToString,
        at: Timestamp,
    ) -> Self {
        Self::new(
            Author {
                tenant_uuid: None,
                actor: Actor::System(name),
            },
            action,
            target,
            at,
        )
    }

    /// The tenant whose audit log shows the entry.
    pub fn in_tenant(mut self, tenant_uuid: TenantUuid) -> Self {
        self.tenant_uuid = Some(tenant_uuid);
        self
    }

    /// The changed values before and after the change; never a secret.
    pub fn changed(mut self, before: Option<Value>, after: Option<Value>) -> Self {
        self.before = before;
        self.after = after;
        self
    }

    /// Further details; never a secret.
    pub fn with(mut self, detail: Value) -> Self {
        self.detail = detail;
        self
    }
}

/// Changes that the log mentions, for an operator who looks for what has changed.
const LOGGED: [&str; 12] = [
    "certificate_authority.create",
    "hub.block",
    "hub.unblock",
    "hub.release",
    "pipeline.resume",
    "signing_key.create",
    "tenant.delete",
    "tenant.set_limits",
    "update_rollout.begin",
    "update_rollout.halt",
    "update_rollout.resume",
    "update_rollout.abort",
];

impl CommitEntry for Audit {
    fn log_line(&self) -> Option<String> {
        let by = || {
            self.actor.uuid().map_or_else(
                || self.actor.kind().name().to_owned(),
                |uuid| uuid.to_string(),
            )
        };
        LOGGED
            .contains(&self.action)
            .then(|| format!("{} {} by {}", self.action, self.target, by()))
    }

    async fn insert(self, conn: &mut Conn) -> Result<()> {
        insert(conn, self).await
    }
}

/// Writes an additional entry, besides the one that the transaction commits with.
pub async fn insert(conn: &mut Conn, audit: Audit) -> Result<()> {
    let request_id = request_id::current();
    let (persona_uuid, api_key_id) = match audit.actor {
        Actor::User { persona_uuid, .. } => (Some(persona_uuid), None),
        Actor::ApiKey(api_key_id) => (None, Some(api_key_id)),
        Actor::Hub(_) | Actor::System(_) => (None, None),
    };
    sql(
        "INSERT INTO audit_logs (tenant_uuid, actor, actor_uuid, action, target, detail, \
         request_id, created_at, persona_uuid, api_key_id, address, object_type, before_state, \
         after_state, actor_name, actor_key) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
    )
    .bind((
        audit.tenant_uuid,
        audit.actor.kind().name(),
        audit.actor.uuid(),
        audit.action,
        audit.target,
        audit.detail,
        Some(request_id).filter(|id| !id.is_empty()),
        audit.at,
        persona_uuid,
        api_key_id,
        client_address::current().map(|address| address.to_string()),
        object_type_of(audit.action),
        audit.before,
        audit.after,
        audit.actor.name(),
        audit.actor.key(),
    ))
    .run(conn)
    .await
}

/// The `object` of an action `object.verb`.
pub fn object_type_of(action: &str) -> &str {
    action.split('.').next().unwrap_or_default()
}
