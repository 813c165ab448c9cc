//! SQL of the outbox of registration events.

use std::sync::Arc;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, MAX_COUNT, Slice, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{TenantUuid, Timestamp};
use serde_json::Value;
use uuid::Uuid;

use super::{Event, EventType, Status};

/// An event as the platform sees it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Stored {
    pub registration_event_id: i64,
    pub tenant_uuid: TenantUuid,
    #[sqlx(try_from = "String")]
    pub event_type: EventType,
    payload: String,
    #[sqlx(try_from = "String")]
    pub status: Status,
    pub attempts: i64,
    pub next_attempt_at: Option<Timestamp>,
    pub last_error: Option<String>,
    pub created_at: Timestamp,
    pub delivered_at: Option<Timestamp>,
}

impl Stored {
    /// The object that is sent.
    pub fn payload(&self) -> Value {
        serde_json::from_str(&self.payload).unwrap_or_default()
    }
}

const COLUMNS: &str = "registration_event_id, tenant_uuid, event_type, payload, status, attempts, \
    next_attempt_at, last_error, created_at, delivered_at";

pub async fn insert(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    events: &[Event],
    now: Timestamp,
) -> Result<()> {
    let mut payloads = Vec::with_capacity(events.len());
    for event in events {
        payloads.push(Arc::from(event.payload(tenant_uuid, now)?));
    }
    Bulk {
        head: "INSERT INTO registration_events (event_uuid, tenant_uuid, event_type, payload, \
               status, attempts, next_attempt_at, created_at)",
        columns: vec![
            Column::Uuid(events.iter().map(|_| Uuid::now_v7()).collect()),
            Column::Uuid(vec![tenant_uuid.0; events.len()]),
            Column::Word(events.iter().map(|event| event.event_type.name()).collect()),
            Column::Text(payloads),
            Column::Word(vec![Status::Pending.name(); events.len()]),
            Column::Int(vec![0; events.len()]),
            Column::Time(vec![now; events.len()]),
            Column::Time(vec![now; events.len()]),
        ],
        tail: "",
    }
    .execute(tx)
    .await
    .map(|_| ())
}

/// Filters of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filters {
    pub status: Option<Status>,
    pub tenant_uuid: Option<TenantUuid>,
    pub event_type: Option<EventType>,
    /// Whether there was an attempt to send the event.
    pub attempted: Option<bool>,
}

/// One page of all tenants, newest first, and the total number.
pub async fn list(conn: &mut Conn, filters: Filters, slice: Slice) -> Result<(Vec<Stored>, i64)> {
    let mut list = sql("FROM registration_events WHERE true");
    if let Some(status) = filters.status {
        list = list.push(" AND status = ").push_bind(status.name());
    }
    if let Some(tenant_uuid) = filters.tenant_uuid {
        list = list.push(" AND tenant_uuid = ").push_bind(tenant_uuid);
    }
    if let Some(event_type) = filters.event_type {
        list = list.push(" AND event_type = ").push_bind(event_type.name());
    }
    list = match filters.attempted {
        Some(true) => list.push(" AND attempts > 0"),
        Some(false) => list.push(" AND attempts = 0"),
        None => list,
    };
    list.page(conn, COLUMNS, &["registration_event_id DESC"], slice)
        .await
}

/// The event, locked until the transaction ends.
pub async fn find(tx: &mut Tx, id: i64) -> Result<Option<Stored>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM registration_events WHERE registration_event_id = $1")
        .for_update(tx)
        .bind(id)
        .optional(tx)
        .await
}

/// The event is due now, as if it had never been tried.
pub async fn retry(tx: &mut Tx, id: i64, now: Timestamp) -> Result<Stored> {
    sql(
        "UPDATE registration_events SET status = 'PENDING', attempts = 0, next_attempt_at = $2, \
         delivered_at = NULL, settled_at = NULL WHERE registration_event_id = $1 RETURNING ",
    )
    .push(COLUMNS)
    .bind((id, now))
    .one(tx)
    .await
}

/// An event that is being tried.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Claimed {
    pub registration_event_id: i64,
    pub event_uuid: Uuid,
    #[sqlx(try_from = "String")]
    pub event_type: EventType,
    pub payload: String,
    /// This try included.
    pub attempts: i64,
}

const DUE: &str = "FROM registration_events \
    WHERE tenant_uuid = $1 AND status = 'PENDING' AND next_attempt_at <= $2";

/// Begins up to `limit` deliveries of the tenant that are due, the longest due first. They are due
/// again at `leased_until` if they do not end before.
pub async fn claim_due(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    now: Timestamp,
    leased_until: Timestamp,
    limit: i64,
) -> Result<Vec<Claimed>> {
    let ids: Vec<i64> = sql("SELECT registration_event_id ")
        .push(DUE)
        .push(" ORDER BY next_attempt_at, registration_event_id LIMIT $3")
        .skip_locked(tx)
        .bind((tenant_uuid, now, limit))
        .scalars(tx)
        .await?;
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    sql(
        "UPDATE registration_events SET attempts = attempts + 1, next_attempt_at = $1 \
         WHERE registration_event_id IN ",
    )
    .bind(leased_until)
    .push_list(ids)
    .push(" RETURNING registration_event_id, event_uuid, event_type, payload, attempts")
    .all(tx)
    .await
}

/// When the next event of the tenant is due.
pub async fn next_due(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Option<Timestamp>> {
    sql("SELECT next_attempt_at FROM registration_events \
         WHERE tenant_uuid = $1 AND status = 'PENDING' ORDER BY next_attempt_at LIMIT 1")
    .bind(tenant_uuid)
    .optional_scalar(conn)
    .await
}

/// The end of an attempt.
#[derive(Clone, Debug)]
pub enum Settled {
    Delivered,
    /// The next attempt is at this time.
    Retry(Timestamp, String),
    Failed(String),
}

/// Stores how a try ended, unless the event was put back meanwhile.
pub async fn settle(
    tx: &mut Tx,
    claimed: &Claimed,
    settled: &Settled,
    now: Timestamp,
) -> Result<()> {
    let (status, next, error) = match settled {
        Settled::Delivered => (Status::Delivered, None, None),
        Settled::Retry(at, error) => (Status::Pending, Some(*at), Some(error.clone())),
        Settled::Failed(error) => (Status::Failed, None, Some(error.clone())),
    };
    sql(
        "UPDATE registration_events SET status = $3, next_attempt_at = $4, last_error = $5, \
         delivered_at = $6, settled_at = $7 \
         WHERE registration_event_id = $1 AND attempts = $2 AND status = 'PENDING'",
    )
    .bind((
        claimed.registration_event_id,
        claimed.attempts,
        status.name(),
        next,
        error,
        Some(now).filter(|_| status == Status::Delivered),
        Some(now).filter(|_| status != Status::Pending),
    ))
    .run(tx)
    .await
}

/// Gives up events of the tenant that are due, up to `limit`, and returns their number.
pub async fn fail_due(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    error: &'static str,
    now: Timestamp,
    limit: i64,
) -> Result<u64> {
    sql(
        "UPDATE registration_events SET status = 'FAILED', next_attempt_at = NULL, \
         settled_at = $2, last_error = $3 WHERE registration_event_id IN \
         (SELECT registration_event_id ",
    )
    .push(DUE)
    .push(" ORDER BY next_attempt_at, registration_event_id LIMIT $4)")
    .bind((tenant_uuid, now, error, limit))
    .execute(tx)
    .await
}

/// Deletes pending events of the tenant, up to `limit`, and returns how many.
pub async fn delete_pending(tx: &mut Tx, tenant_uuid: TenantUuid, limit: i64) -> Result<u64> {
    sql(
        "DELETE FROM registration_events WHERE registration_event_id IN \
         (SELECT registration_event_id FROM registration_events \
         WHERE tenant_uuid = $1 AND status = 'PENDING' LIMIT $2)",
    )
    .bind((tenant_uuid, limit))
    .execute(tx)
    .await
}

/// Whether an event was delivered or given up before `before`.
pub async fn has_settled_before(conn: &mut Conn, before: Timestamp) -> Result<bool> {
    sql("SELECT 1 FROM registration_events WHERE settled_at < $1 LIMIT 1")
        .bind(before)
        .exists(conn)
        .await
}

/// Deletes those events, the oldest first, up to `limit`, and returns how many.
pub async fn delete_settled_before(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    sql(
        "DELETE FROM registration_events WHERE registration_event_id IN \
         (SELECT registration_event_id FROM registration_events WHERE settled_at < $1 \
         ORDER BY settled_at LIMIT $2)",
    )
    .bind((before, limit))
    .execute(tx)
    .await
}

/// The number of pending events, counted up to 100,000, and the time of the oldest.
pub async fn backlog(conn: &mut Conn) -> Result<(i64, Option<Timestamp>)> {
    let pending: i64 = sql(
        "SELECT COUNT(*) FROM (SELECT 1 AS one FROM registration_events \
         WHERE status = 'PENDING' LIMIT $1) AS counted",
    )
    .bind(MAX_COUNT)
    .scalar(conn)
    .await?;
    let oldest = sql(
        "SELECT created_at FROM registration_events WHERE status = 'PENDING' \
         ORDER BY registration_event_id LIMIT 1",
    )
    .optional_scalar(conn)
    .await?;
    Ok((pending, oldest))
}

/// Whether the end of a link, named by the text, is still to be sent to the tenant.
pub async fn awaits_end_of_link(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    text: &str,
) -> Result<bool> {
    sql(
        "SELECT 1 FROM registration_events WHERE tenant_uuid = $1 AND status = 'PENDING' \
         AND event_type = 'supplier_link.revoked' AND payload LIKE $2 LIMIT 1",
    )
    .bind((tenant_uuid, format!("%{text}%")))
    .exists(conn)
    .await
}

/// Deletes at most `limit` events of the tenant that contain the text.
pub async fn delete_with(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    text: &str,
    limit: i64,
) -> Result<u64> {
    sql(
        "DELETE FROM registration_events WHERE registration_event_id IN \
         (SELECT registration_event_id FROM registration_events WHERE tenant_uuid = $1 \
         AND payload LIKE $2 LIMIT $3)",
    )
    .bind((tenant_uuid, format!("%{text}%"), limit))
    .execute(tx)
    .await
}
