//! SQL of the events of jobs.

use hub_protocol::{HubJobUuid, HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use crate::authz::Scope;
use crate::db::{Conn, Db, Tx, sql};
use crate::error::Result;
use crate::http::page::{Direction, MAX_OFFSET};

/// An event as it is stored; `body` is JSON.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct StoredJobEvent {
    pub hub_job_event_id: i64,
    pub hub_uuid: HubUuid,
    pub body: String,
}

pub async fn is_known(conn: &mut Conn, hub_job_uuid: HubJobUuid, event_uuid: Uuid) -> Result<bool> {
    let found: Option<(i64,)> =
        sql("SELECT hub_job_event_id FROM hub_job_events WHERE hub_job_uuid = $1 AND event_uuid = $2")
            .bind(hub_job_uuid)
            .bind(event_uuid)
            .optional(conn)
            .await?;
    Ok(found.is_some())
}

pub async fn insert(
    tx: &mut Tx,
    scope: &Scope,
    hub_job_uuid: HubJobUuid,
    event_uuid: Uuid,
    event: &StoredJobEvent,
) -> Result<()> {
    sql("INSERT INTO hub_job_events (tenant_uuid, hub_uuid, hub_job_event_id, hub_job_uuid, event_uuid, body) \
         VALUES ($1, $2, $3, $4, $5, $6)")
    .bind(scope.tenant_uuid())
    .bind(event.hub_uuid)
    .bind(event.hub_job_event_id)
    .bind(hub_job_uuid)
    .bind(event_uuid)
    .bind(event.body.as_str())
    .execute(tx)
    .await?;
    Ok(())
}

/// The events of a job by time, and how many there are.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    hub_job_uuid: HubJobUuid,
    direction: Direction,
    (size, offset): (i64, i64),
) -> Result<(Vec<StoredJobEvent>, i64)> {
    let events = sql(
        "SELECT hub_job_event_id, hub_uuid, body FROM hub_job_events WHERE hub_job_uuid = $1 AND tenant_uuid = $2 \
         ORDER BY hub_job_event_id ",
    )
    .push(direction.sql())
    .push(" LIMIT $3 OFFSET $4")
    .bind(hub_job_uuid)
    .bind(scope.tenant_uuid())
    .bind(size)
    .bind(offset)
    .all(conn)
    .await?;
    let (total,): (i64,) = sql("SELECT COUNT(*) FROM \
         (SELECT 1 AS one FROM hub_job_events WHERE hub_job_uuid = $1 AND tenant_uuid = $2 LIMIT $3) AS counted")
    .bind(hub_job_uuid)
    .bind(scope.tenant_uuid())
    .bind(MAX_OFFSET)
    .one(conn)
    .await?;
    Ok((events, total))
}

/// The events of one of the tenant's hubs, or of all, with ids above `after`, up to `last`, oldest first.
pub async fn after(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    hub_uuid: Option<HubUuid>,
    after: i64,
    last: i64,
    limit: i64,
) -> Result<Vec<StoredJobEvent>> {
    let mut query =
        sql("SELECT hub_job_event_id, hub_uuid, body FROM hub_job_events WHERE tenant_uuid = ").push_bind(tenant_uuid);
    if let Some(hub_uuid) = hub_uuid {
        query = query.push(" AND hub_uuid = ").push_bind(hub_uuid);
    }
    query
        .push(" AND hub_job_event_id > ")
        .push_bind(after)
        .push(" AND hub_job_event_id <= ")
        .push_bind(last)
        .push(" ORDER BY hub_job_event_id LIMIT ")
        .push_bind(limit)
        .all(conn)
        .await
}

/// Forgets up to `limit` events of jobs that were over before then; answers how many. All of such a job's events are older than its end.
pub async fn forget(db: &Db, before: Timestamp, limit: i64) -> Result<u64> {
    let mut tx = db.begin().await?;
    let deleted = sql("DELETE FROM hub_job_events WHERE (tenant_uuid, hub_job_event_id) IN \
         (SELECT old.tenant_uuid, old.hub_job_event_id FROM hub_job_events old WHERE old.hub_job_event_id < $1 \
         AND EXISTS (SELECT 1 FROM hub_jobs job WHERE job.hub_job_uuid = old.hub_job_uuid AND job.finished_at < $2) \
         ORDER BY old.hub_job_event_id LIMIT $3)")
    .bind(before.as_micros())
    .bind(before)
    .bind(limit)
    .execute(&mut tx)
    .await?;
    tx.commit_unaudited("nothing a person did").await?;
    Ok(deleted)
}
