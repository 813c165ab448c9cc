//! SQL of runs, and of the hours whose rollups they make stale.

use std::collections::BTreeMap;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Tx, sql};
use hub_base::error::{Error, Result};
use hub_identity::authz::Scope;
use hub_protocol::{TenantUuid, Timestamp};
use uuid::Uuid;

use super::{Cause, Counts, Range, Run};

/// The number of a tenant's finished runs that are kept.
const KEPT: i64 = 100;

#[derive(sqlx::FromRow)]
struct Row {
    task_uuid: Uuid,
    tenant_uuid: TenantUuid,
    cause: String,
    from_id: i64,
    to_id: i64,
    device_uuid: Option<Uuid>,
    device_instance_id: Option<i64>,
    next_id: i64,
    events: i64,
    changed: i64,
    newly_decoded: i64,
    no_longer_decoded: i64,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    error: Option<String>,
}

const COLUMNS: &str = "task_uuid, tenant_uuid, cause, from_id, to_id, device_uuid, \
    device_instance_id, next_id, events, changed, newly_decoded, no_longer_decoded, created_at, \
    started_at, finished_at, error";

impl Row {
    fn into_run(self) -> Result<Run> {
        let cause = Cause::from_name(&self.cause);
        Ok(Run {
            task_uuid: self.task_uuid,
            tenant_uuid: self.tenant_uuid,
            cause: cause
                .ok_or_else(|| Error::internal(format!("no such cause: {}", self.cause)))?,
            range: Range {
                from_id: self.from_id,
                to_id: self.to_id,
                device_uuid: self.device_uuid,
                device_instance_id: self.device_instance_id,
            },
            next_id: self.next_id,
            counts: Counts {
                events: self.events,
                changed: self.changed,
                newly_decoded: self.newly_decoded,
                no_longer_decoded: self.no_longer_decoded,
            },
            created_at: self.created_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            error: self.error,
        })
    }
}

/// Stores a new run. Returns false if one that somebody asked for has not finished.
pub async fn insert(tx: &mut Tx, run: &Run) -> Result<bool> {
    let inserted = sql(
        "INSERT INTO ble_reprocess_runs (task_uuid, tenant_uuid, cause, from_id, \
         to_id, device_uuid, device_instance_id, next_id, events, changed, newly_decoded, \
         no_longer_decoded, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, 0, 0, 0, $9) \
         ON CONFLICT DO NOTHING",
    )
    .bind((
        run.task_uuid,
        run.tenant_uuid,
        run.cause.name(),
        run.range.from_id,
        run.range.to_id,
        run.range.device_uuid,
        run.range.device_instance_id,
        run.next_id,
        run.created_at,
    ))
    .execute(tx)
    .await?;
    Ok(inserted == 1)
}

/// The run that somebody asked for and that has not finished.
pub async fn of_operator(conn: &mut Conn, scope: &Scope) -> Result<Option<Uuid>> {
    sql("SELECT task_uuid FROM ble_reprocess_runs \
         WHERE tenant_uuid = $1 AND finished_at IS NULL AND cause = 'OPERATOR'")
    .bind(scope.tenant_uuid())
    .optional_scalar(conn)
    .await
}

/// Whether a run for the bind key of the device has not begun yet.
pub async fn waits_for_device(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    device_instance_id: i64,
) -> Result<bool> {
    sql(
        "SELECT 1 FROM ble_reprocess_runs WHERE tenant_uuid = $1 AND finished_at IS NULL \
         AND cause = 'BIND_KEY' AND device_instance_id = $2 AND started_at IS NULL",
    )
    .bind((tenant_uuid, device_instance_id))
    .exists(conn)
    .await
}

pub async fn get(conn: &mut Conn, scope: &Scope, task_uuid: Uuid) -> Result<Option<Run>> {
    let row: Option<Row> = sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM ble_reprocess_runs WHERE task_uuid = $1 AND tenant_uuid = $2")
        .bind((task_uuid, scope.tenant_uuid()))
        .optional(conn)
        .await?;
    row.map(Row::into_run).transpose()
}

/// The tenant's oldest run that has not finished.
pub async fn next(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Option<Run>> {
    let row: Option<Row> = sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM ble_reprocess_runs WHERE tenant_uuid = $1 AND finished_at IS NULL \
             ORDER BY created_at, task_uuid LIMIT 1",
        )
        .bind(tenant_uuid)
        .optional(conn)
        .await?;
    row.map(Row::into_run).transpose()
}

pub async fn start(tx: &mut Tx, task_uuid: Uuid, now: Timestamp) -> Result<()> {
    sql("UPDATE ble_reprocess_runs SET started_at = $2 \
         WHERE task_uuid = $1 AND started_at IS NULL")
    .bind((task_uuid, now))
    .run(tx)
    .await
}

/// Stores how far the run is. Returns false if somebody else has carried it on from `before`.
pub async fn advance(tx: &mut Tx, run: &Run, before: i64) -> Result<bool> {
    let updated = sql(
        "UPDATE ble_reprocess_runs SET next_id = $3, events = $4, changed = $5, \
         newly_decoded = $6, no_longer_decoded = $7 \
         WHERE task_uuid = $1 AND next_id = $2 AND finished_at IS NULL",
    )
    .bind((
        run.task_uuid,
        before,
        run.next_id,
        run.counts.events,
        run.counts.changed,
        run.counts.newly_decoded,
        run.counts.no_longer_decoded,
    ))
    .execute(tx)
    .await?;
    Ok(updated == 1)
}

/// Ends a run. Returns false if somebody else has done so.
pub async fn finish(
    tx: &mut Tx,
    task_uuid: Uuid,
    error: Option<&str>,
    now: Timestamp,
) -> Result<bool> {
    let updated = sql(
        "UPDATE ble_reprocess_runs SET finished_at = $2, error = $3 \
         WHERE task_uuid = $1 AND finished_at IS NULL",
    )
    .bind((task_uuid, now, error.map(str::to_owned)))
    .execute(tx)
    .await?;
    Ok(updated == 1)
}

/// Deletes all but the latest finished runs of a tenant.
pub async fn forget_old(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    sql("DELETE FROM ble_reprocess_runs WHERE task_uuid IN \
         (SELECT task_uuid FROM ble_reprocess_runs \
         WHERE tenant_uuid = $1 AND finished_at IS NOT NULL \
         ORDER BY finished_at DESC LIMIT 1000 OFFSET $2)")
    .bind((tenant_uuid, KEPT))
    .run(tx)
    .await
}

/// Hours of devices, each with the first and the last id of its events.
pub type Hours = BTreeMap<(i64, i64), (i64, i64)>;

/// Stores hours whose rollups have to be rebuilt.
pub async fn add_hours(tx: &mut Tx, task_uuid: Uuid, hours: &Hours) -> Result<()> {
    let bulk = Bulk {
        head: "INSERT INTO ble_reprocess_hours (task_uuid, device_instance_id, hour, first_id, \
             last_id)",
        columns: vec![
            Column::Uuid(vec![task_uuid; hours.len()]),
            Column::Int(
                hours
                    .keys()
                    .map(|(device_instance_id, _)| *device_instance_id)
                    .collect(),
            ),
            Column::Int(hours.keys().map(|(_, hour)| *hour).collect()),
            Column::Int(hours.values().map(|(first_id, _)| *first_id).collect()),
            Column::Int(hours.values().map(|(_, last_id)| *last_id).collect()),
        ],
        tail: "ON CONFLICT (task_uuid, device_instance_id, hour) DO UPDATE SET \
             first_id = CASE WHEN ble_reprocess_hours.first_id < excluded.first_id \
             THEN ble_reprocess_hours.first_id ELSE excluded.first_id END, \
             last_id = CASE WHEN ble_reprocess_hours.last_id > excluded.last_id \
             THEN ble_reprocess_hours.last_id ELSE excluded.last_id END",
    };
    bulk.execute(tx).await.map(drop)
}

/// Some of these hours: the device, the hour, the first and the last id.
pub async fn hours(
    conn: &mut Conn,
    task_uuid: Uuid,
    limit: i64,
) -> Result<Vec<(i64, i64, i64, i64)>> {
    sql(
        "SELECT device_instance_id, hour, first_id, last_id FROM ble_reprocess_hours \
         WHERE task_uuid = $1 ORDER BY device_instance_id, hour LIMIT $2",
    )
    .bind((task_uuid, limit))
    .all(conn)
    .await
}

/// Deletes these hours and those before them.
pub async fn delete_hours(
    tx: &mut Tx,
    task_uuid: Uuid,
    (device_instance_id, hour): (i64, i64),
) -> Result<()> {
    sql("DELETE FROM ble_reprocess_hours WHERE task_uuid = $1 \
         AND (device_instance_id, hour) <= ($2, $3)")
    .bind((task_uuid, device_instance_id, hour))
    .run(tx)
    .await
}
