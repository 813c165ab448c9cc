//! SQL of what others want to know of pipelines: how many there are, which fail, and which have
//! lost events.

use hub_base::db::{Conn, MAX_COUNT, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_ingest::Kind;
use hub_protocol::{TenantUuid, Timestamp};
use uuid::Uuid;

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

/// The oldest event that a running pipeline is not done with, of those that are furthest behind.
pub async fn oldest_waiting(conn: &mut Conn, looked_at: i64) -> Result<Option<i64>> {
    sql(
        "SELECT MIN(next_id) FROM (SELECT (SELECT CASE WHEN e.first_id > l.cursor \
         THEN e.first_id ELSE l.cursor + 1 END FROM ble_batches e \
         WHERE e.tenant_uuid = l.tenant_uuid AND e.first_id > l.cursor - 1024 \
         AND e.last_id > l.cursor ORDER BY e.first_id LIMIT 1) AS next_id \
         FROM pipeline_lanes l JOIN upload_clocks c ON c.tenant_uuid = l.tenant_uuid \
         AND c.kind = $1 WHERE l.kind = 'LIVE' AND l.status = 'RUNNING' \
         AND c.last_id > l.cursor ORDER BY l.cursor LIMIT $2) AS behind",
    )
    .bind((Kind::BleEvents.name(), looked_at))
    .scalar(conn)
    .await
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
    sql("UPDATE pipeline_lanes SET lost_to = $2, lost_at = $3, \
         lost_from = CASE WHEN cursor < lost_to THEN COALESCE(lost_from, cursor) ELSE cursor END \
         WHERE kind = 'LIVE' AND cursor < $2 AND COALESCE(lost_to, 0) < $2 AND EXISTS (\
         SELECT 1 FROM ble_batches e WHERE e.tenant_uuid = pipeline_lanes.tenant_uuid \
         AND e.last_id > pipeline_lanes.cursor AND e.first_id BETWEEN $1 AND $2)")
    .bind((first_id, last_id, now))
    .execute(tx)
    .await
}
