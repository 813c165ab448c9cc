//! SQL of what others want to know of pipelines: how many there are, which fail, and which have
//! lost events.

use std::collections::HashMap;

use hub_base::db::{Conn, MAX_COUNT, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_ingest::{Kind, history};
use hub_protocol::{TenantUuid, Timestamp};
use uuid::Uuid;

/// Tenants whose last events one query reads.
const TENANTS: usize = 500;

/// The counts of one tenant.
#[derive(Debug, sqlx::FromRow)]
pub struct PipelineCounts {
    pub total: i64,
    pub enabled: i64,
    pub failing: i64,
}

pub async fn counts(conn: &mut Conn, scope: &Scope) -> Result<PipelineCounts> {
    sql("SELECT COUNT(*) AS total, \
         COUNT(CASE WHEN p.enabled THEN 1 END) AS enabled, \
         COUNT(CASE WHEN p.enabled AND l.failing_since IS NOT NULL THEN 1 END) AS failing \
         FROM pipelines p LEFT JOIN pipeline_lanes l \
         ON l.pipeline_uuid = p.pipeline_uuid AND l.kind = 'LIVE' WHERE p.tenant_uuid = $1")
    .bind(scope.tenant_uuid())
    .one(conn)
    .await
}

/// Dead letters of a tenant, counted up to [`MAX_COUNT`].
pub async fn dead_letters(conn: &mut Conn, scope: &Scope) -> Result<i64> {
    sql("FROM dead_letters WHERE tenant_uuid = $1")
        .bind(scope.tenant_uuid())
        .count(conn)
        .await
}

/// Attempts since a time and those that succeeded: of the latest [`MAX_COUNT`].
pub async fn attempts(conn: &mut Conn, scope: &Scope, from: Timestamp) -> Result<(i64, i64)> {
    sql(
        "SELECT COUNT(*), COUNT(CASE WHEN status = 'DELIVERED' THEN 1 END) FROM (\
         SELECT status FROM pipeline_deliveries WHERE tenant_uuid = $1 AND started_at >= $2 \
         ORDER BY started_at DESC LIMIT $3) AS latest",
    )
    .bind((scope.tenant_uuid(), from, MAX_COUNT))
    .one(conn)
    .await
}

/// Pipelines of all tenants by whether they are enabled, and by the status of their LIVE lanes.
pub async fn statuses(conn: &mut Conn) -> Result<Vec<(bool, String, i64)>> {
    sql(
        "SELECT p.enabled, l.status, COUNT(*) FROM pipelines p JOIN pipeline_lanes l \
         ON l.pipeline_uuid = p.pipeline_uuid AND l.kind = 'LIVE' GROUP BY p.enabled, l.status",
    )
    .all(conn)
    .await
}

/// The oldest event that a running pipeline is not done with, of the tenants whose pipelines are
/// furthest behind.
pub async fn oldest_waiting(conn: &mut Conn, looked_at: usize) -> Result<Option<i64>> {
    let cursors: Vec<(TenantUuid, i64)> =
        sql("SELECT tenant_uuid, MIN(cursor) FROM pipeline_lanes \
         WHERE kind = 'LIVE' AND status = 'RUNNING' GROUP BY tenant_uuid")
        .all(conn)
        .await?;
    let mut last_ids = HashMap::new();
    for some in cursors.chunks(TENANTS) {
        let tenants = some.iter().map(|(tenant_uuid, _)| *tenant_uuid);
        last_ids.extend(hub_ingest::last_ids(conn, tenants).await?);
    }
    let mut behind: Vec<(i64, TenantUuid)> = cursors
        .into_iter()
        .filter(|(tenant_uuid, cursor)| {
            let last_id = last_ids.get(&(*tenant_uuid, Kind::BleEvents));
            last_id.is_some_and(|last_id| last_id > cursor)
        })
        .map(|(tenant_uuid, cursor)| (cursor, tenant_uuid))
        .collect();
    behind.sort_unstable();
    let mut oldest = None;
    for (cursor, tenant_uuid) in behind.into_iter().take(looked_at) {
        let next = match history::first_after(conn, tenant_uuid, cursor).await? {
            Some(in_file) => Some(in_file),
            None => first_in_batches(conn, tenant_uuid, cursor).await?,
        };
        oldest = oldest.into_iter().chain(next).min();
    }
    Ok(oldest)
}

async fn first_in_batches(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    cursor: i64,
) -> Result<Option<i64>> {
    let first: Option<i64> = sql("SELECT first_id FROM ble_batches WHERE tenant_uuid = $1 \
         AND first_id > $2 - 1024 AND last_id > $2 ORDER BY first_id LIMIT 1")
    .bind((tenant_uuid, cursor))
    .optional_scalar(conn)
    .await?;
    // Of a batch that is settled in part, the next event waits.
    Ok(first.map(|first_id| first_id.max(cursor + 1)))
}

/// A pipeline whose receiver fails.
#[derive(Debug, sqlx::FromRow)]
pub struct FailingRow {
    pub tenant_uuid: TenantUuid,
    pub pipeline_uuid: Uuid,
    pub name: String,
    pub failing_since: Timestamp,
    pub last_error: Option<String>,
}

/// The pipelines of all tenants that have failed for longest.
pub async fn failing(conn: &mut Conn, limit: i64) -> Result<Vec<FailingRow>> {
    sql(
        "SELECT l.tenant_uuid, l.pipeline_uuid, p.name, l.failing_since, l.last_error \
         FROM pipeline_lanes l JOIN pipelines p ON p.pipeline_uuid = l.pipeline_uuid \
         WHERE l.failing_since IS NOT NULL AND l.kind = 'LIVE' AND p.enabled \
         ORDER BY l.failing_since LIMIT $1",
    )
    .bind(limit)
    .all(conn)
    .await
}

/// A pipeline that has lost events: those after `lost_from`, up to `lost_to`.
#[derive(Debug, sqlx::FromRow)]
pub struct LosingRow {
    pub tenant_uuid: TenantUuid,
    pub pipeline_uuid: Uuid,
    pub name: String,
    pub lost_from: i64,
    pub lost_to: i64,
}

/// The pipelines of all tenants that lost events since a time, or have not passed a loss yet.
pub async fn losing(conn: &mut Conn, since: Timestamp, limit: i64) -> Result<Vec<LosingRow>> {
    sql(
        "SELECT l.tenant_uuid, l.pipeline_uuid, p.name, l.lost_from, l.lost_to \
         FROM pipeline_lanes l JOIN pipelines p ON p.pipeline_uuid = l.pipeline_uuid \
         WHERE l.lost_at IS NOT NULL AND l.kind = 'LIVE' \
         AND (l.lost_at >= $1 OR l.cursor < l.lost_to) ORDER BY l.lost_at DESC LIMIT $2",
    )
    .bind((since, limit))
    .all(conn)
    .await
}

/// Events of a tenant up to an id were deleted: lanes that have not sent them have lost them. What
/// a lane lost before and has passed is forgotten.
pub async fn lose(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    last_id: i64,
    now: Timestamp,
) -> Result<u64> {
    sql("UPDATE pipeline_lanes SET lost_to = $2, lost_at = $3, \
         lost_from = CASE WHEN cursor < lost_to THEN COALESCE(lost_from, cursor) ELSE cursor END \
         WHERE tenant_uuid = $1 AND kind = 'LIVE' AND cursor < $2 AND COALESCE(lost_to, 0) < $2")
    .bind((tenant_uuid, last_id, now))
    .execute(tx)
    .await
}

/// The events with these ids, both included, will be deleted, of all tenants.
pub async fn lose_all(tx: &mut Tx, (first_id, last_id): (i64, i64), now: Timestamp) -> Result<u64> {
    let behind: Vec<TenantUuid> = sql("SELECT DISTINCT tenant_uuid FROM pipeline_lanes \
         WHERE kind = 'LIVE' AND cursor < $1 AND COALESCE(lost_to, 0) < $1 ORDER BY tenant_uuid")
    .bind(last_id)
    .scalars(tx)
    .await?;
    let mut lanes = 0;
    for tenant_uuid in behind {
        let last: Option<i64> = sql("SELECT last_id FROM ble_batches WHERE tenant_uuid = $1 \
             AND first_id BETWEEN $2 AND $3 ORDER BY first_id DESC LIMIT 1")
        .bind((tenant_uuid, first_id, last_id))
        .optional_scalar(tx)
        .await?;
        if let Some(last) = last {
            lanes += lose(tx, tenant_uuid, last, now).await?;
        }
    }
    Ok(lanes)
}
