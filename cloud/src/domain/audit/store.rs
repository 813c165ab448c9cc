//! SQL of the audit log. A list is read from one index, in its order: what is narrowed to neither one actor nor one object is read kind by kind of
//! actor and put together. So no filter looks at more entries than the page and the count ask for.

use hub_protocol::{PersonaUuid, TenantUuid, Timestamp};
use serde_json::Value;
use sqlx::types::Json;
use uuid::Uuid;

use super::{Audit, Narrowed, object_type_of};
use crate::authz::{Actor, ActorType, Scope};
use crate::db::{Conn, Sql, Tx, sql};
use crate::error::Result;
use crate::http::page::Direction;
use crate::http::{client_address, request_id};

pub async fn insert(tx: &mut Tx, audit: Audit) -> Result<()> {
    let request_id = request_id::current();
    let (persona_uuid, api_key_id) = match audit.actor {
        Actor::User { persona_uuid, .. } => (Some(persona_uuid), None),
        Actor::ApiKey(api_key_id) => (None, Some(api_key_id)),
        Actor::Hub(_) | Actor::System(_) => (None, None),
    };
    sql("INSERT INTO audit_logs (tenant_uuid, actor, actor_uuid, action, target, detail, request_id, created_at, \
         persona_uuid, api_key_id, address, object_type, before_state, after_state, actor_name, actor_key) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)")
    .bind(audit.tenant_uuid)
    .bind(audit.actor.kind().name())
    .bind(audit.actor.uuid())
    .bind(audit.action)
    .bind(audit.target)
    .bind(audit.detail)
    .bind(Some(request_id).filter(|id| !id.is_empty()))
    .bind(audit.at)
    .bind(persona_uuid)
    .bind(api_key_id)
    .bind(client_address::current().map(|address| address.to_string()))
    .bind(object_type_of(audit.action))
    .bind(audit.before)
    .bind(audit.after)
    .bind(audit.actor.name())
    .bind(audit.actor.key())
    .execute(tx)
    .await?;
    Ok(())
}

/// Whose entries may be seen.
#[derive(Clone, Copy, Debug)]
pub enum Reach<'a> {
    Tenant(&'a Scope),
    /// Everybody's, or one tenant's.
    Platform(Option<TenantUuid>),
}

impl Reach<'_> {
    fn tenant_uuid(self) -> Option<TenantUuid> {
        match self {
            Self::Tenant(scope) => Some(scope.tenant_uuid()),
            Self::Platform(tenant_uuid) => tenant_uuid,
        }
    }
}

/// An entry as it is stored.
#[derive(Debug, sqlx::FromRow)]
pub struct EntryRow {
    pub audit_log_id: i64,
    pub tenant_uuid: Option<TenantUuid>,
    #[sqlx(try_from = "String")]
    pub actor: ActorType,
    pub actor_uuid: Option<Uuid>,
    pub actor_name: Option<String>,
    pub persona_uuid: Option<PersonaUuid>,
    pub api_key_id: Option<i64>,
    pub action: String,
    pub object_type: String,
    pub target: String,
    pub before_state: Option<Json<Value>>,
    pub after_state: Option<Json<Value>>,
    pub detail: Json<Value>,
    pub address: Option<String>,
    pub request_id: Option<String>,
    pub created_at: Timestamp,
}

/// One page, in the order of time.
pub async fn list(
    conn: &mut Conn,
    reach: Reach<'_>,
    narrowed: &Narrowed,
    direction: Direction,
    (size, offset): (i64, i64),
) -> Result<Vec<EntryRow>> {
    let order = format!(" ORDER BY created_at {0}, audit_log_id {0}", direction.sql());
    let mut query = sql(
        "SELECT a.audit_log_id, a.tenant_uuid, a.actor, a.actor_uuid, a.actor_name, a.persona_uuid, a.api_key_id, a.action, a.object_type, \
         a.target, a.before_state, a.after_state, a.detail, a.address, a.request_id, a.created_at \
         FROM (SELECT audit_log_id FROM (",
    );
    query = branches(conn, query, reach, narrowed, "audit_log_id, created_at", &order, offset + size);
    query
        .push(") AS merged")
        .push(&order)
        .push(" LIMIT ")
        .push_bind(size)
        .push(" OFFSET ")
        .push_bind(offset)
        .push(") AS page JOIN audit_logs a ON a.audit_log_id = page.audit_log_id")
        .push(&format!(" ORDER BY a.created_at {0}, a.audit_log_id {0}", direction.sql()))
        .all(conn)
        .await
}

/// How many there are, counted up to `limit`.
pub async fn count(conn: &mut Conn, reach: Reach<'_>, narrowed: &Narrowed, limit: i64) -> Result<i64> {
    let query = branches(conn, sql("SELECT COUNT(*) FROM ("), reach, narrowed, "1 AS one", "", limit);
    let (count,): (i64,) = query.push(") AS counted").one(conn).await?;
    Ok(count.min(limit))
}

/// The entries as a union, each part of which is a stretch of one index: at most `limit` of each.
fn branches(
    conn: &Conn,
    mut query: Sql,
    reach: Reach<'_>,
    narrowed: &Narrowed,
    columns: &str,
    order: &str,
    limit: i64,
) -> Sql {
    let tenant_uuid = reach.tenant_uuid();
    let index = conn.dialect().indexed_by(index(tenant_uuid.is_some(), narrowed));
    for (number, actor) in narrowed.actors.iter().enumerate() {
        let union = if number > 0 { " UNION ALL " } else { "" };
        query = query.push(&format!("{union}SELECT * FROM (SELECT {columns} FROM audit_logs{index} WHERE "));
        // Where the object's index serves, nothing else may look as if another index did: PostgreSQL would walk all that an actor ever did.
        let equals = if narrowed.object_id.is_some() { " || '' = " } else { " = " };
        let actor_column = if narrowed.names_actors { "actor_key" } else { "actor" };
        query = query.push(actor_column).push(equals).push_bind(actor.as_str());
        if let Some(tenant_uuid) = tenant_uuid {
            query = query.push(" AND tenant_uuid = ").push_bind(tenant_uuid);
        }
        for (column, value) in [("action", &narrowed.action), ("object_type", &narrowed.object_type)] {
            if let Some(value) = value {
                query = query.push(" AND ").push(column).push(equals).push_bind(value.as_str());
            }
        }
        if let Some(object_id) = &narrowed.object_id {
            query = query.push(" AND target = ").push_bind(object_id.as_str());
        }
        if let Some(from) = narrowed.from {
            query = query.push(" AND created_at >= ").push_bind(from);
        }
        if let Some(to) = narrowed.to {
            query = query.push(" AND created_at < ").push_bind(to);
        }
        query = query.push(order).push(" LIMIT ").push_bind(limit).push(&format!(") AS part{number}"));
    }
    query
}

/// The index that holds what the filters leave, and little else.
fn index(of_tenant: bool, narrowed: &Narrowed) -> &'static str {
    match of_tenant {
        _ if narrowed.object_id.is_some() => "audit_logs_target",
        true if narrowed.names_actors => "audit_logs_tenant_actor",
        true if narrowed.action.is_some() => "audit_logs_tenant_action",
        true if narrowed.object_type.is_some() => "audit_logs_tenant_type",
        true => "audit_logs_tenant",
        false if narrowed.names_actors => "audit_logs_actor",
        false if narrowed.action.is_some() => "audit_logs_action",
        false if narrowed.object_type.is_some() => "audit_logs_type",
        false => "audit_logs_all",
    }
}
