//! SQL of background tasks.

use hub_base::db::{Conn, Db, Tx, sql};
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
         lane = excluded.lane, runner_uuid = NULL, \
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

/// A lease on one row. It is held while `attempts` and the runner are unchanged.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    pub task_uuid: Uuid,
    attempts: i64,
    runner_uuid: Uuid,
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
     AND runner_uuid IS NULL";

/// Claims up to `limit` rows of the lane that are due, the longest due first.
pub async fn claim(
    db: &Db,
    lane: &str,
    limit: i64,
    now: Timestamp,
    runner_uuid: Uuid,
) -> Result<Vec<Leased>> {
    if !is_any_due(db, lane, now).await? {
        return Ok(Vec::new());
    }
    let mut tx = db.begin().await?;
    // Whoever has a lease beats.
    beat(&mut tx, runner_uuid).await?;
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
    sql("UPDATE tasks SET attempts = attempts + 1, runner_uuid = $1 WHERE task_uuid IN ")
        .bind(runner_uuid)
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
                runner_uuid,
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

const OURS: &str = " WHERE task_uuid = $1 AND attempts = $2 AND runner_uuid = $3";

/// Deletes the finished task, unless the lease was lost.
pub async fn finish(db: &Db, lease: Lease) -> Result<()> {
    let mut tx = db.begin().await?;
    let Lease {
        task_uuid,
        attempts,
        runner_uuid,
    } = lease;
    sql("DELETE FROM tasks")
        .push(OURS)
        .bind((task_uuid, attempts, runner_uuid))
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
        runner_uuid,
    } = lease;
    sql(
        "UPDATE tasks SET runner_uuid = NULL, next_attempt_at = $4, last_error = $5, \
         attempts = CASE WHEN $6 THEN 0 ELSE attempts END",
    )
    .push(OURS)
    .bind((
        task_uuid,
        attempts,
        runner_uuid,
        at,
        error.map(str::to_owned),
        error.is_none(),
    ))
    .execute(&mut tx)
    .await?;
    tx.commit_unaudited("a release of background work").await
}

/// Counts a beat of a runner.
pub async fn beat(tx: &mut Tx, runner_uuid: Uuid) -> Result<()> {
    sql(
        "INSERT INTO task_runners (runner_uuid, beats) VALUES ($1, 1) \
         ON CONFLICT (runner_uuid) DO UPDATE SET beats = task_runners.beats + 1",
    )
    .bind(runner_uuid)
    .run(tx)
    .await
}

/// The most runners that are looked at, far more than a deployment has.
const MAX_RUNNERS: i64 = 1000;

/// All runners with their beats.
pub async fn runners(conn: &mut Conn) -> Result<Vec<(Uuid, i64)>> {
    sql("SELECT runner_uuid, beats FROM task_runners LIMIT $1")
        .bind(MAX_RUNNERS)
        .all(conn)
        .await
}

/// Frees all tasks of a runner that is gone. Its kill does not count as an attempt.
pub async fn forget_runner(tx: &mut Tx, runner_uuid: Uuid) -> Result<()> {
    free_all_but(tx, runner_uuid, &[]).await?;
    sql("DELETE FROM task_runners WHERE runner_uuid = $1")
        .bind(runner_uuid)
        .run(tx)
        .await
}

/// Frees the tasks of a runner that do not run.
pub async fn free_all_but(tx: &mut Tx, runner_uuid: Uuid, running: &[Uuid]) -> Result<()> {
    let free = sql(
        "UPDATE tasks SET runner_uuid = NULL, attempts = attempts - 1 \
         WHERE runner_uuid = $1",
    )
    .bind(runner_uuid);
    match running.is_empty() {
        true => free.run(tx).await,
        false => {
            let free = free.push(" AND task_uuid NOT IN ");
            free.push_list(running.iter().copied()).run(tx).await
        }
    }
}
