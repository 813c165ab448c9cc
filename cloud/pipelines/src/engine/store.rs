//! SQL of lanes as the engine works on them: who owns them, and what is settled.

use std::collections::HashSet;

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{TenantUuid, Timestamp};
use uuid::Uuid;

use super::super::LaneStatus;
use super::circuit::Health;
use super::done::{Advance, DeadLetter, Delivery};

/// A lane, and the revision of its pipeline.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct LaneRow {
    pub lane_uuid: Uuid,
    pub pipeline_uuid: Uuid,
    /// LIVE, REPLAY or RETRY.
    pub kind: String,
    #[sqlx(try_from = "String")]
    pub status: LaneStatus,
    pub start_id: i64,
    pub until_id: Option<i64>,
    pub cursor: i64,
    /// Whether the lane is a replay that sends dead letters only.
    pub dead_letters_only: bool,
    pub settled_ahead: Option<String>,
    pub planned: Option<String>,
    pub failures: i64,
    pub next_attempt_at: Option<Timestamp>,
    pub failing_since: Option<Timestamp>,
    pub last_error: Option<String>,
    pub last_delivered_at: Option<Timestamp>,
    pub snapshot: Option<Vec<u8>>,
    pub snapshot_id: Option<i64>,
    pub epoch: i64,
    pub revision: i64,
}

impl LaneRow {
    /// The receiver's health when the lane was stored.
    pub fn health(&self) -> Health {
        Health {
            status: if self.failures == 0 {
                LaneStatus::Running
            } else {
                self.status
            },
            failures: self.failures,
            next_attempt_at: self.next_attempt_at,
            failing_since: self.failing_since,
            last_error: self.last_error.clone(),
            last_delivered_at: self.last_delivered_at,
        }
    }
}

/// Raises the beats of a replica.
pub async fn beat(tx: &mut Tx, replica_uuid: Uuid, now: Timestamp) -> Result<()> {
    sql(
        "INSERT INTO pipeline_replicas (replica_uuid, beats, beaten_at) VALUES ($1, 1, $2) \
         ON CONFLICT (replica_uuid) DO UPDATE SET beats = pipeline_replicas.beats + 1, \
         beaten_at = excluded.beaten_at",
    )
    .bind((replica_uuid, now))
    .run(tx)
    .await
}

/// Replicas and how often they have beaten.
pub async fn replicas(conn: &mut Conn) -> Result<Vec<(Uuid, i64)>> {
    sql("SELECT replica_uuid, beats FROM pipeline_replicas LIMIT 1000")
        .all(conn)
        .await
}

/// Removes a replica that has ended; its lanes are free.
pub async fn forget_replica(tx: &mut Tx, replica_uuid: Uuid) -> Result<()> {
    sql("UPDATE pipeline_lanes SET owner = NULL WHERE owner = $1")
        .bind(replica_uuid)
        .run(tx)
        .await?;
    sql("DELETE FROM pipeline_replicas WHERE replica_uuid = $1")
        .bind(replica_uuid)
        .run(tx)
        .await
}

const WORKING: &str = " AND status IN ('RUNNING', 'OPEN_CIRCUIT')";

/// Lanes of a replica that are to be worked on, with their epochs.
pub async fn owned(conn: &mut Conn, replica_uuid: Uuid) -> Result<Vec<(Uuid, i64)>> {
    sql("SELECT lane_uuid, epoch FROM pipeline_lanes WHERE owner = $1")
        .push(WORKING)
        .bind(replica_uuid)
        .all(conn)
        .await
}

/// How many lanes there are to be worked on.
pub async fn working(conn: &mut Conn) -> Result<i64> {
    sql("SELECT COUNT(*) FROM pipeline_lanes \
         WHERE status IN ('RUNNING', 'OPEN_CIRCUIT')")
    .scalar(conn)
    .await
}

/// Lanes without an owner, or of one of `gone`; with their epochs.
pub async fn free(conn: &mut Conn, gone: &[Uuid], limit: i64) -> Result<Vec<(Uuid, i64)>> {
    let mut found: Vec<(Uuid, i64)> = sql("SELECT lane_uuid, epoch FROM pipeline_lanes \
         WHERE owner IS NULL")
    .push(WORKING)
    .push(" ORDER BY lane_uuid LIMIT ")
    .push_bind(limit)
    .all(conn)
    .await?;
    if !gone.is_empty() {
        let of_gone: Vec<(Uuid, i64)> = sql("SELECT lane_uuid, epoch FROM pipeline_lanes \
             WHERE owner IN ")
        .push_list(gone.iter().copied())
        .push(WORKING)
        .push(" LIMIT ")
        .push_bind(limit)
        .all(conn)
        .await?;
        found.extend(of_gone);
    }
    Ok(found)
}

/// Makes a replica the owner of lanes whose epochs are still these, under the next epochs.
pub async fn claim(tx: &mut Tx, replica_uuid: Uuid, lanes: &[(Uuid, i64)]) -> Result<Vec<Uuid>> {
    let owner = vec![replica_uuid; lanes.len()];
    let rows: Vec<(Uuid,)> = Bulk {
        head: "WITH given (lane_uuid, epoch, owner) AS (",
        columns: vec![
            Column::Uuid(lanes.iter().map(|(lane_uuid, _)| *lane_uuid).collect()),
            Column::Int(lanes.iter().map(|(_, epoch)| *epoch).collect()),
            Column::Uuid(owner),
        ],
        tail: ") UPDATE pipeline_lanes SET owner = given.owner, \
               epoch = pipeline_lanes.epoch + 1, settlements = 0 \
               FROM given WHERE pipeline_lanes.lane_uuid = COALESCE(given.lane_uuid, NULL) \
               AND pipeline_lanes.epoch = given.epoch \
               AND pipeline_lanes.status IN ('RUNNING', 'OPEN_CIRCUIT') \
               RETURNING pipeline_lanes.lane_uuid",
    }
    .returning(tx)
    .await?;
    Ok(rows.into_iter().map(|(lane_uuid,)| lane_uuid).collect())
}

/// Marks a claimed lane whose definition cannot be run, and why.
pub async fn invalidate(tx: &mut Tx, lane_uuid: Uuid, epoch: i64, problem: &str) -> Result<()> {
    sql(
        "UPDATE pipeline_lanes SET owner = NULL, status = 'INVALID', last_error = $3 \
         WHERE lane_uuid = $1 AND epoch = $2",
    )
    .bind((lane_uuid, epoch, problem))
    .run(tx)
    .await
}

/// Tries the lanes again that could not be run: this version of the service may know better.
pub async fn try_invalid(tx: &mut Tx) -> Result<()> {
    sql("UPDATE pipeline_lanes SET status = 'RUNNING' WHERE status = 'INVALID'")
        .run(tx)
        .await
}

/// Lanes by their ids; those of deleted pipelines are not there.
pub async fn read(conn: &mut Conn, lanes: &[Uuid]) -> Result<Vec<LaneRow>> {
    if lanes.is_empty() {
        return Ok(Vec::new());
    }
    sql(
        "SELECT l.lane_uuid, l.pipeline_uuid, l.kind, l.status, l.start_id, \
         l.until_id, l.cursor, l.dead_letters_only, l.settled_ahead, l.planned, l.failures, \
         l.next_attempt_at, l.failing_since, l.last_error, l.last_delivered_at, l.snapshot, \
         l.snapshot_id, l.epoch, p.revision \
         FROM pipeline_lanes l JOIN pipelines p ON p.pipeline_uuid = l.pipeline_uuid \
         WHERE l.lane_uuid IN ",
    )
    .push_list(lanes.iter().copied())
    .all(conn)
    .await
}

/// Gives a lane back, if it is still held under this epoch.
pub async fn release(tx: &mut Tx, lane_uuid: Uuid, epoch: i64) -> Result<()> {
    sql("UPDATE pipeline_lanes SET owner = NULL WHERE lane_uuid = $1 AND epoch = $2")
        .bind((lane_uuid, epoch))
        .run(tx)
        .await
}

/// Gives back lanes of a replica that it does not work on.
pub async fn give_back(tx: &mut Tx, replica_uuid: Uuid, lanes: &[(Uuid, i64)]) -> Result<()> {
    sql("UPDATE pipeline_lanes SET owner = NULL WHERE owner = $1 AND lane_uuid IN ")
        .bind(replica_uuid)
        .push_list(lanes.iter().map(|(lane_uuid, _)| *lane_uuid))
        .run(tx)
        .await
}

/// Stores how far lanes are. Returns those that are still held under their epochs: of the others,
/// nothing may be stored. The number tells how often a lane was settled before under its epoch, so
/// that a settlement is not stored again when nobody knows whether it was.
pub async fn advance(tx: &mut Tx, advances: &[(&Advance, i64)]) -> Result<HashSet<Uuid>> {
    let text = |pick: fn(&Advance) -> &Option<String>| {
        Column::OptionalText(
            advances
                .iter()
                .map(|(one, _)| pick(one).as_deref().map(Into::into))
                .collect(),
        )
    };
    let time = |pick: fn(&Advance) -> Option<Timestamp>| {
        Column::OptionalTime(advances.iter().map(|(one, _)| pick(one)).collect())
    };
    let int = |pick: fn(&Advance) -> i64| {
        Column::Int(advances.iter().map(|(one, _)| pick(one)).collect())
    };
    let rows: Vec<(Uuid,)> = Bulk {
        head: "WITH given (lane_uuid, epoch, settlements, cursor, settled_ahead, planned, \
               status, failures, next_attempt_at, failing_since, last_error, \
               last_delivered_at, events, finished_at) AS (",
        columns: vec![
            Column::Uuid(advances.iter().map(|(one, _)| one.lane_uuid).collect()),
            int(|one| one.epoch),
            Column::Int(
                advances
                    .iter()
                    .map(|(_, settlements)| *settlements)
                    .collect(),
            ),
            int(|one| one.cursor),
            text(|one| &one.settled_ahead),
            text(|one| &one.planned),
            Column::Word(
                advances
                    .iter()
                    .map(|(one, _)| one.health.status.name())
                    .collect(),
            ),
            int(|one| one.health.failures),
            time(|one| one.health.next_attempt_at),
            time(|one| one.health.failing_since),
            text(|one| &one.health.last_error),
            time(|one| one.health.last_delivered_at),
            int(|one| one.events),
            time(|one| one.finished_at),
        ],
        tail: ") UPDATE pipeline_lanes SET cursor = given.cursor, \
               settlements = given.settlements + 1, \
               settled_ahead = given.settled_ahead, planned = given.planned, \
               status = given.status, failures = given.failures, \
               next_attempt_at = given.next_attempt_at, failing_since = given.failing_since, \
               last_error = given.last_error, last_delivered_at = given.last_delivered_at, \
               events = pipeline_lanes.events + given.events, finished_at = given.finished_at \
               FROM given WHERE pipeline_lanes.lane_uuid = COALESCE(given.lane_uuid, NULL) \
               AND pipeline_lanes.epoch = given.epoch \
               AND pipeline_lanes.settlements = given.settlements \
               RETURNING pipeline_lanes.lane_uuid",
    }
    .returning(tx)
    .await?;
    Ok(rows.into_iter().map(|(lane_uuid,)| lane_uuid).collect())
}

/// Stores the state of a lane's steps after an event.
pub async fn store_snapshot(
    tx: &mut Tx,
    lane_uuid: Uuid,
    epoch: i64,
    id: i64,
    state: Vec<u8>,
) -> Result<()> {
    sql("UPDATE pipeline_lanes SET snapshot = $3, snapshot_id = $4 \
         WHERE lane_uuid = $1 AND epoch = $2")
    .bind((lane_uuid, epoch, state, id))
    .run(tx)
    .await
}

pub async fn insert_deliveries(tx: &mut Tx, rows: Vec<&Delivery>) -> Result<()> {
    let int = |pick: fn(&Delivery) -> i64| Column::Int(rows.iter().map(|row| pick(row)).collect());
    Bulk {
        head: "INSERT INTO pipeline_deliveries (tenant_uuid, pipeline_uuid, revision, status, \
               first_event_id, last_event_id, events, event_ids, attempt, response_status, \
               response_body, error, duration_millis, started_at)",
        columns: vec![
            Column::Uuid(rows.iter().map(|row| row.tenant_uuid.0).collect()),
            Column::Uuid(rows.iter().map(|row| row.pipeline_uuid).collect()),
            int(|row| row.revision),
            Column::Word(rows.iter().map(|row| row.status).collect()),
            int(|row| row.first_event_id),
            int(|row| row.last_event_id),
            int(|row| row.events),
            Column::OptionalText(rows.iter().map(|row| row.event_ids.clone()).collect()),
            int(|row| row.attempt),
            Column::OptionalInt(rows.iter().map(|row| row.response_status).collect()),
            Column::OptionalText(rows.iter().map(|row| row.response_body.clone()).collect()),
            Column::OptionalText(rows.iter().map(|row| row.error.clone()).collect()),
            int(|row| row.duration_millis),
            Column::Time(rows.iter().map(|row| row.started_at).collect()),
        ],
        tail: "",
    }
    .execute(tx)
    .await?;
    Ok(())
}

pub async fn insert_dead_letters(tx: &mut Tx, rows: Vec<&DeadLetter>) -> Result<()> {
    let int =
        |pick: fn(&DeadLetter) -> i64| Column::Int(rows.iter().map(|row| pick(row)).collect());
    Bulk {
        head: "INSERT INTO dead_letters (tenant_uuid, pipeline_uuid, revision, message_id, \
               first_event_id, last_event_id, events, event_ids, payload, reason, \
               response_status, attempts, created_at)",
        columns: vec![
            Column::Uuid(rows.iter().map(|row| row.tenant_uuid.0).collect()),
            Column::Uuid(rows.iter().map(|row| row.pipeline_uuid).collect()),
            int(|row| row.revision),
            Column::Text(
                rows.iter()
                    .map(|row| row.message_id.as_str().into())
                    .collect(),
            ),
            int(|row| row.first_event_id),
            int(|row| row.last_event_id),
            int(|row| row.events),
            Column::OptionalText(rows.iter().map(|row| row.event_ids.clone()).collect()),
            Column::Text(rows.iter().map(|row| row.payload.clone()).collect()),
            Column::Text(rows.iter().map(|row| row.reason.as_str().into()).collect()),
            Column::OptionalInt(rows.iter().map(|row| row.response_status).collect()),
            int(|row| row.attempts),
            Column::Time(rows.iter().map(|row| row.created_at).collect()),
        ],
        tail: "",
    }
    .execute(tx)
    .await?;
    Ok(())
}

/// How many dead letters a pipeline has, counted up to `limit`.
pub async fn count_dead_letters(conn: &mut Conn, pipeline_uuid: Uuid, limit: i64) -> Result<i64> {
    sql("SELECT COUNT(*) FROM (SELECT 1 AS one FROM dead_letters \
         WHERE pipeline_uuid = $1 LIMIT $2) AS counted")
    .bind((pipeline_uuid, limit))
    .scalar(conn)
    .await
}

/// A dead letter that is to be sent again.
#[derive(Debug, sqlx::FromRow)]
pub struct RetryRow {
    pub dlq_id: i64,
    pub revision: i64,
    pub message_id: String,
    pub first_event_id: i64,
    pub last_event_id: i64,
    pub event_ids: Option<String>,
    pub payload: String,
    pub attempts: i64,
    /// ORIGINAL or CURRENT.
    pub retry: String,
}

const RETRY: &str = "SELECT dlq_id, revision, message_id, first_event_id, last_event_id, \
    event_ids, payload, attempts, ";

/// The oldest dead letters of a pipeline that are to be sent again.
pub async fn retries(conn: &mut Conn, pipeline_uuid: Uuid, limit: i64) -> Result<Vec<RetryRow>> {
    sql(RETRY)
        .push(
            "retry FROM dead_letters \
             WHERE pipeline_uuid = $1 AND retry IS NOT NULL ORDER BY dlq_id LIMIT $2",
        )
        .bind((pipeline_uuid, limit))
        .all(conn)
        .await
}

/// The dead letters of a pipeline that a replay sends: those with an event after `after` and up to
/// `until`, by their last events, and after the letter `last`. Those that are to be sent again
/// anyway are left out.
pub async fn replayed(
    conn: &mut Conn,
    (tenant_uuid, pipeline_uuid): (TenantUuid, Uuid),
    (after, until): (i64, i64),
    last: (i64, i64),
    limit: i64,
) -> Result<Vec<RetryRow>> {
    sql(RETRY)
        .push(
            "'CURRENT' AS retry FROM dead_letters WHERE tenant_uuid = $1 \
             AND pipeline_uuid = $2 AND retry IS NULL AND last_event_id > $3 \
             AND first_event_id <= $4 AND (last_event_id, dlq_id) > ($5, $6) \
             ORDER BY last_event_id, dlq_id LIMIT $7",
        )
        .bind((
            tenant_uuid,
            pipeline_uuid,
            after,
            until,
            last.0,
            last.1,
            limit,
        ))
        .all(conn)
        .await
}

/// A dead letter was delivered.
pub async fn delete_dead_letter(tx: &mut Tx, pipeline_uuid: Uuid, dlq_id: i64) -> Result<()> {
    sql("DELETE FROM dead_letters WHERE pipeline_uuid = $1 AND dlq_id = $2")
        .bind((pipeline_uuid, dlq_id))
        .run(tx)
        .await
}

/// A dead letter was refused again.
pub async fn refuse_dead_letter(
    tx: &mut Tx,
    pipeline_uuid: Uuid,
    dlq_id: i64,
    (attempts, reason, response_status): (i64, &str, Option<i64>),
) -> Result<()> {
    sql(
        "UPDATE dead_letters SET retry = NULL, attempts = $3, reason = $4, response_status = $5 \
         WHERE pipeline_uuid = $1 AND dlq_id = $2",
    )
    .bind((pipeline_uuid, dlq_id, attempts, reason, response_status))
    .run(tx)
    .await
}

/// Ends a lane of retries, unless a dead letter is to be sent again since.
pub async fn end_retries(tx: &mut Tx, lane_uuid: Uuid, epoch: i64) -> Result<()> {
    sql(
        "DELETE FROM pipeline_lanes WHERE lane_uuid = $1 AND epoch = $2 AND NOT EXISTS (\
         SELECT 1 FROM dead_letters d WHERE d.pipeline_uuid = pipeline_lanes.pipeline_uuid \
         AND d.retry IS NOT NULL)",
    )
    .bind((lane_uuid, epoch))
    .run(tx)
    .await
}
