//! SQL of background tasks.

use hub_base::db::{Conn, Db, sql};
use hub_base::error::Result;
use hub_protocol::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::{Backlog, NewTask, Task};

pub async fn insert(conn: &mut Conn, task: NewTask, now: Timestamp) -> Result<()> {
    // A running task loses its lease, so that it is not deleted when it ends.
    sql(
        "INSERT INTO tasks (task_uuid, kind, payload, attempts, next_attempt_at, dedup_key, \
         created_at, lane) VALUES ($1, $2, $3, 0, $4, $5, $6, $7) \
         ON CONFLICT (dedup_key) DO UPDATE SET payload = excluded.payload, \
         lane = excluded.lane, leased_until = NULL, \
         next_attempt_at = CASE WHEN tasks.next_attempt_at < excluded.next_attempt_at \
         THEN tasks.next_attempt_at ELSE excluded.next_attempt_at END",
    )
    .bind((
        Uuid::now_v7(),
        task.kind,
        task.payload,
        task.due_at,
        task.dedup_key,
        now,
        task.lane,
    ))
    .run(conn)
    .await
}

/// A lease on one row. It is held while `attempts` and `leased_until` are unchanged.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    task_uuid: Uuid,
    attempts: i64,
    leased_until: Timestamp,
}

/// A claimed row.
#[derive(Clone, Debug)]
pub struct Leased {
    pub lease: Lease,
    pub task: Task,
    /// The error of the last attempt.
    pub last_error: Option<String>,
}

#[derive(sqlx::FromRow)]
struct Row {
    task_uuid: Uuid,
    kind: String,
    payload: sqlx::types::Json<Value>,
    attempts: i64,
    last_error: Option<String>,
}

const DUE: &str = "FROM tasks WHERE lane = $1 AND next_attempt_at <= $2 \
     AND (leased_until IS NULL OR leased_until <= $2)";

/// Claims up to `limit` rows of the lane that are due, the longest due first.
pub async fn claim(
    db: &Db,
    lane: &str,
    limit: i64,
    now: Timestamp,
    leased_until: Timestamp,
) -> Result<Vec<Leased>> {
    if !is_any_due(db, lane, now).await? {
        return Ok(Vec::new());
    }
    let mut tx = db.begin().await?;
    let rows: Vec<Row> = sql("SELECT task_uuid, kind, payload, attempts, last_error ")
        .push(DUE)
        .push(" ORDER BY next_attempt_at, task_uuid LIMIT $3")
        .skip_locked(&tx)
        .bind((lane, now, limit))
        .all(&mut tx)
        .await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    sql("UPDATE tasks SET attempts = attempts + 1, leased_until = $1 WHERE task_uuid IN ")
        .bind(leased_until)
        .push_list(rows.iter().map(|row| row.task_uuid))
        .execute(&mut tx)
        .await?;
    tx.commit_unaudited("a claim of background work").await?;
    let leased = rows.into_iter().map(|row| {
        let attempts = row.attempts + 1;
        Leased {
            lease: Lease {
                task_uuid: row.task_uuid,
                attempts,
                leased_until,
            },
            task: Task {
                task_uuid: row.task_uuid,
                kind: row.kind,
                payload: row.payload.0,
                attempts,
            },
            last_error: row.last_error,
        }
    });
    Ok(leased.collect())
}

/// Reads first: a poll then costs no write, and most polls find nothing.
async fn is_any_due(db: &Db, lane: &str, now: Timestamp) -> Result<bool> {
    let mut conn = db.read().await?;
    sql("SELECT task_uuid ")
        .push(DUE)
        .push(" LIMIT 1")
        .bind((lane, now))
        .exists(&mut conn)
        .await
}

/// The backlog: one row for each lane that has one.
pub async fn backlog(conn: &mut Conn, now: Timestamp) -> Result<Vec<Backlog>> {
    sql(
        "SELECT lane, COUNT(*) AS due, MIN(next_attempt_at) AS oldest FROM tasks \
         WHERE next_attempt_at <= $1 GROUP BY lane",
    )
    .bind(now)
    .all(conn)
    .await
}

const OURS: &str = " WHERE task_uuid = $1 AND attempts = $2 AND leased_until = $3";

/// Deletes the finished task, unless the lease was lost.
pub async fn finish(db: &Db, lease: Lease) -> Result<()> {
    let mut tx = db.begin().await?;
    let Lease {
        task_uuid,
        attempts,
        leased_until,
    } = lease;
    sql("DELETE FROM tasks")
        .push(OURS)
        .bind((task_uuid, attempts, leased_until))
        .run(&mut tx)
        .await?;
    tx.commit_unaudited("background work, done").await
}

/// Releases the task, unless the lease was lost. It is due at `at`. Without an error, its attempts
/// are counted from 0.
pub async fn release(db: &Db, lease: Lease, at: Timestamp, error: Option<&str>) -> Result<()> {
    let mut tx = db.begin().await?;
    let Lease {
        task_uuid,
        attempts,
        leased_until,
    } = lease;
    sql(
        "UPDATE tasks SET leased_until = NULL, next_attempt_at = $4, last_error = $5, \
         attempts = CASE WHEN $6 THEN 0 ELSE attempts END",
    )
    .push(OURS)
    .bind((
        task_uuid,
        attempts,
        leased_until,
        at,
        error.map(str::to_owned),
        error.is_none(),
    ))
    .execute(&mut tx)
    .await?;
    tx.commit_unaudited("a release of background work").await
}
