//! Background work: rows of a table, so that whatever was decided is done even when the process that decided it is killed. A row is leased
//! while it is worked on; whoever dies loses the lease and somebody else goes on. So all work may run twice, and is written to do no harm by it.

mod runner;
mod store;
mod upkeep;

use hub_protocol::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use crate::app::App;
use crate::db::Tx;
use crate::domain::accounts;
use crate::error::{Error, Result};
use crate::mail;

pub use runner::{LEASE_SECS, run};

/// Work to be done.
#[derive(Clone, Debug)]
pub struct NewTask {
    pub kind: &'static str,
    /// What the work is about; never a secret.
    pub payload: Value,
    pub due_at: Timestamp,
    /// Work of the same key is there at most once.
    pub dedup_key: Option<String>,
}

/// Adds work, which begins after the transaction has committed. Work whose key is there already is not added but moved up to the earlier time,
/// and takes the new payload; if it is being worked on at this moment it will be done once more. Call [`wake`] after the commit.
pub async fn enqueue(tx: &mut Tx, task: NewTask, now: Timestamp) -> Result<()> {
    store::insert(tx, task, now).await
}

/// Lets this replica look for due work at once instead of in a moment.
pub fn wake(app: &App) {
    app.task_wake.notify_one();
}

/// Work that has been taken on.
#[derive(Clone, Debug)]
pub struct Task {
    pub task_uuid: Uuid,
    pub kind: String,
    pub payload: Value,
    /// From 1.
    pub attempts: i64,
}

/// How work ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// For good.
    Finished,
    /// Until then.
    Again(Timestamp),
}

/// Does one piece of work: every kind there is.
pub async fn perform(app: App, task: Task) -> Result<Done> {
    match task.kind.as_str() {
        kind if upkeep::KINDS.contains(&kind) => upkeep::perform(&app, kind).await,
        mail::SEND => mail::send(&app, &task.payload).await,
        accounts::FORGOT => accounts::perform_forgot(&app, &task.payload).await,
        // A newer replica's, perhaps: it will find it.
        _ => Err(Error::internal("this version knows no such kind of work")),
    }
}

/// Works for as long as the service lives, upkeep included.
pub async fn work(app: App) {
    runner::run(app, upkeep::schedule(), perform).await;
}
