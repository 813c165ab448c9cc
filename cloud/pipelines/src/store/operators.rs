//! SQL of what operators change of lanes. Each statement raises the epoch and takes the lane away
//! from whoever works on it: what was done under a lower epoch is not stored.

use hub_base::db::{Conn, Slice, Sql, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{TenantUuid, Timestamp};
use uuid::Uuid;

use super::super::LaneStatus;

/// Replays of a pipeline that have ended and are kept.
const FINISHED_REPLAYS: i64 = 1000;

/// The lane that a pipeline begins with.
pub struct NewLane {
    pub pipeline_uuid: Uuid,
    pub tenant_uuid: TenantUuid,
    pub kind: &'static str,
    pub status: LaneStatus,
    /// The last event before it.
    pub start_id: i64,
    /// Its last event, of a replay.
    pub until_id: Option<i64>,
    pub dead_letters_only: bool,
}

/// Inserts a lane and returns its uuid.
pub async fn insert(tx: &mut Tx, new: NewLane, now: Timestamp) -> Result<Uuid> {
    let lane_uuid = Uuid::now_v7();
    sql(
        "INSERT INTO pipeline_lanes (lane_uuid, pipeline_uuid, tenant_uuid, kind, status, \
         start_id, until_id, cursor, dead_letters_only, failures, events, epoch, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $6, $8, 0, 0, 1, $9)",
    )
    .bind((
        lane_uuid,
        new.pipeline_uuid,
        new.tenant_uuid,
        new.kind,
        new.status.name(),
        new.start_id,
        new.until_id,
        new.dead_letters_only,
        now,
    ))
    .run(tx)
    .await?;
    Ok(lane_uuid)
}

/// Takes all unfinished lanes of a pipeline away from whoever works on them: what they are worked
/// on with has changed.
pub async fn interrupt(tx: &mut Tx, pipeline_uuid: Uuid) -> Result<()> {
    sql(
        "UPDATE pipeline_lanes SET epoch = epoch + 1, owner = NULL, \
         status = CASE WHEN status = 'INVALID' THEN 'RUNNING' ELSE status END \
         WHERE pipeline_uuid = $1 AND status NOT IN ('FINISHED', 'CANCELLED')",
    )
    .bind(pipeline_uuid)
    .run(tx)
    .await
}

/// As [`interrupt`], and lanes whose receiver fails try it at once.
pub async fn try_now(tx: &mut Tx, pipeline_uuid: Uuid) -> Result<()> {
    sql(
        "UPDATE pipeline_lanes SET epoch = epoch + 1, owner = NULL, next_attempt_at = NULL, \
         status = CASE WHEN status = 'INVALID' THEN 'RUNNING' ELSE status END \
         WHERE pipeline_uuid = $1 AND status NOT IN ('FINISHED', 'CANCELLED')",
    )
    .bind(pipeline_uuid)
    .run(tx)
    .await
}

/// Stops all unfinished lanes of a pipeline where they are.
pub async fn disable(tx: &mut Tx, pipeline_uuid: Uuid) -> Result<()> {
    sql(
        "UPDATE pipeline_lanes SET epoch = epoch + 1, owner = NULL, status = 'DISABLED' \
         WHERE pipeline_uuid = $1 AND status NOT IN ('FINISHED', 'CANCELLED')",
    )
    .bind(pipeline_uuid)
    .run(tx)
    .await
}

/// Runs the lanes of a pipeline again that are disabled.
pub async fn enable(tx: &mut Tx, pipeline_uuid: Uuid) -> Result<()> {
    sql(
        "UPDATE pipeline_lanes SET epoch = epoch + 1, owner = NULL, status = 'RUNNING', \
         failures = 0, next_attempt_at = NULL, failing_since = NULL, last_error = NULL \
         WHERE pipeline_uuid = $1 AND status = 'DISABLED'",
    )
    .bind(pipeline_uuid)
    .run(tx)
    .await
}

/// Runs all unfinished lanes of a pipeline, as if nothing had failed.
pub async fn resume(tx: &mut Tx, pipeline_uuid: Uuid) -> Result<()> {
    sql(
        "UPDATE pipeline_lanes SET epoch = epoch + 1, owner = NULL, status = 'RUNNING', \
         failures = 0, next_attempt_at = NULL, failing_since = NULL, last_error = NULL \
         WHERE pipeline_uuid = $1 AND status NOT IN ('FINISHED', 'CANCELLED')",
    )
    .bind(pipeline_uuid)
    .run(tx)
    .await
}

/// Moves the LIVE lane, which forgets what it knew of the events before. It also begins there: an
/// event that is left out is not of the pipeline.
pub async fn jump(tx: &mut Tx, pipeline_uuid: Uuid, cursor: i64) -> Result<()> {
    sql("UPDATE pipeline_lanes SET cursor = $2, start_id = CASE WHEN cursor < $2 THEN $2 \
         WHEN start_id > $2 THEN $2 ELSE start_id END, settled_ahead = NULL, planned = NULL, \
         snapshot = NULL, snapshot_id = NULL, lost_from = NULL, lost_to = NULL, \
         lost_at = NULL, epoch = epoch + 1, owner = NULL WHERE pipeline_uuid = $1 AND kind = 'LIVE'")
    .bind((pipeline_uuid, cursor))
    .run(tx)
    .await
}

/// Makes sure that there is a lane for dead letters that are sent again.
pub async fn begin_retries(tx: &mut Tx, new: NewLane, now: Timestamp) -> Result<()> {
    let status = new.status.name();
    let found = sql(
        "UPDATE pipeline_lanes SET epoch = epoch + 1, owner = NULL, status = $2, \
         failures = 0, next_attempt_at = NULL, failing_since = NULL, finished_at = NULL \
         WHERE pipeline_uuid = $1 AND kind = 'RETRY'",
    )
    .bind((new.pipeline_uuid, status))
    .execute(tx)
    .await?;
    if found == 0 {
        insert(tx, new, now).await?;
    }
    Ok(())
}

/// A replay.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct ReplayRow {
    pub lane_uuid: Uuid,
    #[sqlx(try_from = "String")]
    pub status: LaneStatus,
    pub start_id: i64,
    pub until_id: Option<i64>,
    pub cursor: i64,
    pub dead_letters_only: bool,
    pub failing_since: Option<Timestamp>,
    pub last_error: Option<String>,
    pub events: i64,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

const REPLAY: &str = "lane_uuid, status, start_id, until_id, cursor, dead_letters_only, \
    failing_since, last_error, events, created_at, finished_at";

fn replays_of(pipeline_uuid: Uuid) -> Sql {
    sql("FROM pipeline_lanes WHERE pipeline_uuid = $1 AND kind = 'REPLAY'").bind(pipeline_uuid)
}

/// The replays of a pipeline, newest first, and how many there are.
pub async fn replays(
    conn: &mut Conn,
    pipeline_uuid: Uuid,
    slice: Slice,
) -> Result<(Vec<ReplayRow>, i64)> {
    replays_of(pipeline_uuid)
        .page(conn, REPLAY, &["created_at DESC, lane_uuid DESC"], slice)
        .await
}

pub async fn replay(
    tx: &mut Tx,
    pipeline_uuid: Uuid,
    lane_uuid: Uuid,
) -> Result<Option<ReplayRow>> {
    sql("SELECT ")
        .push(REPLAY)
        .push(
            " FROM pipeline_lanes WHERE lane_uuid = $1 AND pipeline_uuid = $2 AND kind = 'REPLAY'",
        )
        .bind((lane_uuid, pipeline_uuid))
        .for_update(tx)
        .optional(tx)
        .await
}

/// How many replays of a pipeline have not ended.
pub async fn count_unfinished(conn: &mut Conn, pipeline_uuid: Uuid) -> Result<i64> {
    sql(
        "SELECT COUNT(*) FROM pipeline_lanes WHERE pipeline_uuid = $1 AND kind = 'REPLAY' \
         AND status NOT IN ('FINISHED', 'CANCELLED')",
    )
    .bind(pipeline_uuid)
    .scalar(conn)
    .await
}

pub async fn cancel(tx: &mut Tx, lane_uuid: Uuid, now: Timestamp) -> Result<()> {
    sql(
        "UPDATE pipeline_lanes SET epoch = epoch + 1, owner = NULL, status = 'CANCELLED', \
         finished_at = $2, settled_ahead = NULL, planned = NULL, snapshot = NULL, \
         snapshot_id = NULL WHERE lane_uuid = $1",
    )
    .bind((lane_uuid, now))
    .run(tx)
    .await
}

/// Deletes the oldest of more ended replays of a pipeline than are kept.
pub async fn forget_old_replays(tx: &mut Tx, pipeline_uuid: Uuid) -> Result<()> {
    sql(
        "DELETE FROM pipeline_lanes WHERE lane_uuid IN (SELECT lane_uuid FROM pipeline_lanes \
         WHERE pipeline_uuid = $1 AND kind = 'REPLAY' AND status IN ('FINISHED', 'CANCELLED') \
         ORDER BY created_at DESC, lane_uuid DESC LIMIT 1000 OFFSET $2)",
    )
    .bind((pipeline_uuid, FINISHED_REPLAYS))
    .run(tx)
    .await
}

/// Deletes up to `limit` replays that ended before a time, and returns how many.
pub async fn delete_replays_before(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    sql(
        "DELETE FROM pipeline_lanes WHERE lane_uuid IN (SELECT lane_uuid FROM pipeline_lanes \
         WHERE kind = 'REPLAY' AND status IN ('FINISHED', 'CANCELLED') AND finished_at < $1 \
         LIMIT $2)",
    )
    .bind((before, limit))
    .execute(tx)
    .await
}
