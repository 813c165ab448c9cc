//! Background work: rows of a table, so that committed work is done even if the process that
//! committed it is killed. A row is leased by the process whose runner works on it. A process beats
//! while it has leases; when it is gone, another one continues, and the kill does not count as an
//! attempt. So every task may run twice and must be idempotent. The queue does not know the kinds
//! of work; `upkeep` names them and their lanes.

pub mod runner;
mod store;

use hub_base::db::Tx;
use hub_base::error::Result;
use hub_protocol::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use crate::Core;
pub use store::backlog;

/// A queue of background work with runners of its own. Work of one lane never waits for that of
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    pub name: &'static str,
    /// Tasks of the lane that one replica runs at once.
    pub runners: usize,
}

/// Work to be done.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// The name of its lane.
    pub lane: &'static str,
    pub kind: &'static str,
    /// The parameters of the work; never a secret.
    pub payload: Value,
    pub due_at: Timestamp,
    /// There is at most one task with the same key.
    pub dedup_key: Option<String>,
}

/// Adds a task, which starts after the transaction has committed. If a task with the same key
/// exists, it is moved up to the earlier time and gets the new payload instead; if it is running,
/// it runs once more.
pub async fn enqueue(core: &Core, tx: &mut Tx, task: NewTask, now: Timestamp) -> Result<()> {
    store::insert(tx, task, now).await?;
    let core = core.clone();
    tx.after_commit(async move { core.task_wake.notify_one() });
    Ok(())
}

/// The tasks of a lane that are due, and since when the first of them is.
#[derive(Debug, sqlx::FromRow)]
pub struct Backlog {
    pub lane: String,
    pub due: i64,
    pub oldest: Timestamp,
}

/// A task that a runner has claimed.
#[derive(Clone, Debug)]
pub struct Task {
    pub task_uuid: Uuid,
    pub kind: String,
    pub payload: Value,
    /// The number of the attempt, counted from 1.
    pub attempts: i64,
}

/// The end of a task without an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// The task is deleted.
    Finished,
    /// The task is due at this time.
    RunAt(Timestamp),
    /// The task is retried as after an error, for a reason that is logged already.
    Retry(String),
}
