//! Announces commits to those who follow a log of records: event streams in this process, other
//! replicas over the bus. A commit that finds the channel full is not lost: followers read it from
//! the database.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hub_protocol::{HubUuid, TenantUuid};
use tokio::sync::mpsc;

use super::{Kind, Record};

/// Commits that may wait for the publisher.
const QUEUE_COMMITS: usize = 256;
/// The memory of their records, beyond which further commits are not queued.
const QUEUE_BYTES: usize = 16 * 1024 * 1024;

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
    /// The first reception of the same frame.
    pub observation_id: Option<i64>,
    pub record: Record,
}

/// Announces commits; cheap to clone.
#[derive(Clone)]
pub struct Commits(Arc<Inner>);

/// The announced commits, for the publisher.
pub struct Queued {
    commits: mpsc::Receiver<Vec<Commit>>,
    bytes: Arc<AtomicUsize>,
}

impl Queued {
    pub async fn recv(&mut self) -> Option<Vec<Commit>> {
        let commits = self.commits.recv().await?;
        self.bytes.fetch_sub(bytes_of(&commits), Ordering::Relaxed);
        Some(commits)
    }
}

fn bytes_of(commits: &[Commit]) -> usize {
    commits.iter().flat_map(|commit| &commit.records).map(|committed| committed.record.bytes()).sum()
}

struct Inner {
    sender: mpsc::Sender<Vec<Commit>>,
    queued_bytes: Arc<AtomicUsize>,
    followed: Mutex<HashSet<LogKey>>,
    /// Whether every commit is announced, because other replicas may follow a log that this
    /// one does not.
    announces_all: bool,
}

impl Commits {
    pub fn new(announces_all: bool) -> (Self, Queued) {
        let (sender, commits) = mpsc::channel(QUEUE_COMMITS);
        let bytes = Arc::new(AtomicUsize::new(0));
        let inner = Inner { sender, queued_bytes: bytes.clone(), followed: Mutex::default(), announces_all };
        (Self(Arc::new(inner)), Queued { commits, bytes })
    }

    /// Announces commits. Never waits.
    pub fn announce(&self, mut commits: Vec<Commit>) {
        commits.retain(|commit| commit.kind.description().is_streamed && !commit.records.is_empty());
        if !self.0.announces_all {
            let followed = self.followed();
            commits.retain(|commit| followed.contains(&(commit.tenant_uuid, commit.kind)));
        }
        if commits.is_empty() {
            return;
        }
        let bytes = bytes_of(&commits);
        let waiting = self.0.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        let has_room = waiting == 0 || waiting + bytes <= QUEUE_BYTES;
        if !has_room || self.0.sender.try_send(commits).is_err() {
            self.0.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
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
