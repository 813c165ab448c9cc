//! Announces commits to those who follow a log of records: event streams in this process, other
//! replicas over the bus. A commit that finds the channel full is not lost: followers read it from
//! the database.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hub_protocol::{HubUuid, TenantUuid};
use tokio::sync::mpsc;

use super::{Kind, Record};

/// Commits that may wait for the publisher.
const QUEUE_COMMITS: usize = 256;

/// One tenant's log of one kind of record.
pub type LogKey = (TenantUuid, Kind);

/// What one commit stored for one tenant.
#[derive(Debug)]
pub struct Commit {
    pub tenant_uuid: TenantUuid,
    pub kind: Kind,
    /// The last id of the tenant before this commit.
    pub previous_id: i64,
    pub last_id: i64,
    pub records: Vec<CommittedRecord>,
}

#[derive(Debug)]
pub struct CommittedRecord {
    pub id: i64,
    pub hub_uuid: HubUuid,
    pub record: Record,
}

/// Announces commits; cheap to clone.
#[derive(Clone)]
pub struct Commits(Arc<Inner>);

struct Inner {
    sender: mpsc::Sender<Vec<Commit>>,
    followed: Mutex<HashSet<LogKey>>,
    /// Whether every commit is announced, because other replicas may follow a log that this
    /// one does not.
    announces_all: bool,
}

impl Commits {
    pub fn new(announces_all: bool) -> (Self, mpsc::Receiver<Vec<Commit>>) {
        let (sender, receiver) = mpsc::channel(QUEUE_COMMITS);
        (Self(Arc::new(Inner { sender, followed: Mutex::default(), announces_all })), receiver)
    }

    /// Announces commits. Never waits.
    pub fn announce(&self, mut commits: Vec<Commit>) {
        commits.retain(|commit| commit.kind.description().is_streamed && !commit.records.is_empty());
        if !self.0.announces_all {
            let followed = self.followed();
            commits.retain(|commit| followed.contains(&(commit.tenant_uuid, commit.kind)));
        }
        if !commits.is_empty() {
            let _ = self.0.sender.try_send(commits);
        }
    }

    pub fn follow(&self, key: LogKey) {
        self.followed().insert(key);
    }

    pub fn unfollow(&self, key: LogKey) {
        self.followed().remove(&key);
    }

    fn followed(&self) -> MutexGuard<'_, HashSet<LogKey>> {
        self.0.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
