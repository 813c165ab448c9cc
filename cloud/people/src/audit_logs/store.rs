//! SQL of the audit log. A list is read from one index, in the order of that index. A list that is
//! filtered by neither actor nor object is read for each type of actor and merged. So no filter
//! reads more entries than the page and the count need.

use std::collections::{BTreeSet, HashMap};

use hub_base::db::{Conn, Direction, Slice, Sql, sql};
use hub_base::error::Result;
use hub_core::audit::ActorType;
use hub_identity::authz::Scope;
use hub_protocol::{PersonaUuid, TenantUuid, Timestamp};
use serde::Serialize;
use serde_json::Value;
use sqlx::types::Json;
use uuid::Uuid;

use super::Narrowed;

/// The tenants whose entries are visible.
#[derive(Clone, Copy, Debug)]
pub enum Reach<'a> {
    Tenant(&'a Scope),
    /// Entries of all tenants, or of one.
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

/// An entry as stored.
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

/// One page, ordered by time.
pub async fn list(
    conn: &mut Conn,
    reach: Reach<'_>,
    narrowed: &Narrowed,
    direction: Direction,
    Slice { size, offset }: Slice,
) -> Result<Vec<EntryRow>> {
    let (order, outer_order) = match direction {
        Direction::Ascending => (
            " ORDER BY created_at ASC, audit_log_id ASC",
            " ORDER BY a.created_at ASC, a.audit_log_id ASC",
        ),
        Direction::Descending => (
            " ORDER BY created_at DESC, audit_log_id DESC",
            " ORDER BY a.created_at DESC, a.audit_log_id DESC",
        ),
    };
    let mut query = sql(
        "SELECT a.audit_log_id, a.tenant_uuid, a.actor, a.actor_uuid, \
         a.actor_name, a.persona_uuid, a.api_key_id, a.action, a.object_type, a.target, \
         a.before_state, a.after_state, a.detail, a.address, a.request_id, a.created_at \
         FROM (SELECT audit_log_id FROM (",
    );
    query = branches(
        conn,
        query,
        reach,
        narrowed,
        "audit_log_id, created_at",
        order,
        offset + size,
    );
    query
        .push(") AS merged")
        .push(order)
        .push(" LIMIT ")
        .push_bind(size)
        .push(" OFFSET ")
        .push_bind(offset)
        .push(") AS page JOIN audit_logs a ON a.audit_log_id = page.audit_log_id")
        .push(outer_order)
        .all(conn)
        .await
}

/// The number of entries, counted up to `limit`.
pub async fn count(
    conn: &mut Conn,
    reach: Reach<'_>,
    narrowed: &Narrowed,
    limit: i64,
) -> Result<i64> {
    let query = branches(
        conn,
        sql("SELECT COUNT(*) FROM ("),
        reach,
        narrowed,
        "1 AS one",
        "",
        limit,
    );
    let count: i64 = query.push(") AS counted").scalar(conn).await?;
    Ok(count.min(limit))
}

/// The entries as a UNION. Each part reads a range of one index, at most `limit` entries.
fn branches(
    conn: &Conn,
    mut query: Sql,
    reach: Reach<'_>,
    narrowed: &Narrowed,
    columns: &'static str,
    order: &'static str,
    limit: i64,
) -> Sql {
    let tenant_uuid = reach.tenant_uuid();
    let index = index(tenant_uuid.is_some(), narrowed);
    for (number, actor) in (0..).zip(&narrowed.actors) {
        let union = if number > 0 { " UNION ALL " } else { "" };
        query = query
            .push(union)
            .push("SELECT * FROM (SELECT ")
            .push(columns);
        query = query
            .push(" FROM audit_logs")
            .indexed_by(conn, index)
            .push(" WHERE ");
        // With a filter on the object, PostgreSQL must use the object's index. `|| ''` hides the
        // other columns from the planner, which would otherwise read all entries of an actor.
        let equals = if narrowed.object_id.is_some() {
            " || '' = "
        } else {
            " = "
        };
        let actor_column = if narrowed.names_actors {
            "actor_key"
        } else {
            "actor"
        };
        query = query
            .push(actor_column)
            .push(equals)
            .push_bind(actor.as_str());
        if let Some(tenant_uuid) = tenant_uuid {
            query = query.push(" AND tenant_uuid = ").push_bind(tenant_uuid);
        }
        for (column, value) in [
            ("action", &narrowed.action),
            ("object_type", &narrowed.object_type),
        ] {
            if let Some(value) = value {
                query = query
                    .push(" AND ")
                    .push(column)
                    .push(equals)
                    .push_bind(value.as_str());
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
        query = query
            .push(order)
            .push(" LIMIT ")
            .push_bind(limit)
            .push(") AS part")
            .push_number(number);
    }
    query
}

/// The index that selects the filtered entries most narrowly.
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

/// The e-mail addresses of people, by the id of their account or persona.
pub async fn emails(conn: &mut Conn, people: &BTreeSet<Uuid>) -> Result<HashMap<Uuid, String>> {
    if people.is_empty() {
        return Ok(HashMap::new());
    }
    let emails: Vec<(Uuid, String)> =
        sql("SELECT user_uuid, email FROM users WHERE email <> '' AND user_uuid IN ")
            .push_list(people.iter().copied())
            .push(
                " UNION ALL SELECT p.persona_uuid, u.email FROM personas p \
                 JOIN users u ON u.user_uuid = p.user_uuid \
                 WHERE u.email <> '' AND p.persona_uuid IN ",
            )
            .push_list(people.iter().copied())
            .all(conn)
            .await?;
    Ok(emails.into_iter().collect())
}

/// The latest entries of an action at a target: when, from where, and the details.
pub async fn latest_of_target(
    conn: &mut Conn,
    target: &str,
    action: &str,
    limit: i64,
) -> Result<Vec<(Timestamp, Option<String>, Json<Value>)>> {
    sql("SELECT created_at, address, detail FROM audit_logs \
         WHERE target = $1 AND action = $2 ORDER BY created_at DESC, audit_log_id DESC LIMIT $3")
    .bind((target, action, limit))
    .all(conn)
    .await
}

/// A change of an object.
#[derive(Clone, Debug, Serialize, sqlx::FromRow)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    pub audit_log_id: i64,
    /// Such as `API_KEY:7`.
    #[serde(rename = "author")]
    pub actor_key: String,
    pub before_state: Option<Json<Value>>,
    pub after_state: Option<Json<Value>>,
    pub created_at: Timestamp,
}

const CHANGE: &str = "audit_log_id, actor_key, before_state, after_state, created_at";

/// The changes of an object by some kinds of actions, the oldest first, after a time and an id.
pub async fn changes_of(
    conn: &mut Conn,
    scope: &Scope,
    actions: &[&str],
    object_id: &str,
    (time, audit_log_id): (Timestamp, i64),
    limit: i64,
) -> Result<Vec<Change>> {
    sql("SELECT ")
        .push(CHANGE)
        .push(
            " FROM audit_logs WHERE target = $1 AND tenant_uuid = $2 \
             AND (created_at, audit_log_id) > ($3, $4) AND action IN ",
        )
        .bind((object_id, scope.tenant_uuid(), time, audit_log_id))
        .push_list(actions.iter().copied())
        .push(" ORDER BY created_at, audit_log_id LIMIT ")
        .push_bind(limit)
        .all(conn)
        .await
}

/// One page of the same, the last first, and how many there are.
pub async fn history_of(
    conn: &mut Conn,
    scope: &Scope,
    actions: &[&str],
    object_id: &str,
    slice: Slice,
) -> Result<(Vec<Change>, i64)> {
    let order: &[&str] = &["created_at DESC, audit_log_id DESC"];
    sql("FROM audit_logs WHERE target = $1 AND tenant_uuid = $2 AND action IN ")
        .bind((object_id, scope.tenant_uuid()))
        .push_list(actions.iter().copied())
        .page(conn, CHANGE, order, slice)
        .await
}
