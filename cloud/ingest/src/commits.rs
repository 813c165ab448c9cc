//! Announces commits to those who follow a log of records: event streams and pipelines in this
//! process, other replicas over the bus. A commit that finds a follower's channel full is not lost:
//! followers read it from the database.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use hub_protocol::{HubUuid, TenantUuid};
use tokio::sync::mpsc;

use super::kinds::Kind;
use super::upload::Record;

/// Commits that may wait for a follower.
const QUEUE_COMMITS: usize = 256;
/// The memory of their records, beyond which further commits are not queued.
const QUEUE_BYTES: usize = 16 * 1024 * 1024;

/// The topic of the bus on which commits are announced to other replicas.
pub const TOPIC: &str = "records";

/// One tenant's log of one kind of record.
pub type LogKey = (TenantUuid, Kind);

/// What one commit stored for one tenant.
#[derive(Clone, Debug)]
pub struct Commit {
    pub tenant_uuid: TenantUuid,
    pub kind: Kind,
    /// The last id of the tenant before this commit.
    pub previous_id: i64,
    pub last_id: i64,
    pub records: Arc<Vec<CommittedRecord>>,
}

#[derive(Clone, Debug)]
pub struct CommittedRecord {
    pub id: i64,
    pub hub_uuid: HubUuid,
    /// The first reception of the same frame.
    pub observation_id: Option<i64>,
    pub record: Record,
}

/// What the bus says of a commit: the last id of a log.
pub fn announcement((tenant_uuid, kind): LogKey, last_id: i64) -> String {
    format!("{tenant_uuid} {} {last_id}", kind.name())
}

pub fn parse_announcement(text: &str) -> Option<(LogKey, i64)> {
    let [tenant_uuid, kind, last_id] = text.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let key = (
        tenant_uuid.parse::<TenantUuid>().ok()?,
        Kind::from_name(kind)?,
    );
    Some((key, last_id.parse().ok()?))
}

/// Announces commits to all followers; cheap to clone.
#[derive(Clone, Default)]
pub struct Commits(Arc<RwLock<Vec<Follower>>>);

/// Which logs somebody follows; cheap to clone.
#[derive(Clone)]
pub struct Follower(Arc<Inner>);

/// The announced commits, for the follower.
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
    commits
        .iter()
        .flat_map(|commit| commit.records.iter())
        .map(|committed| committed.record.bytes())
        .sum()
}

struct Inner {
    sender: mpsc::Sender<Vec<Commit>>,
    queued_bytes: Arc<AtomicUsize>,
    followed: Mutex<HashSet<LogKey>>,
    /// Whether it gets every commit.
    follows_all: bool,
}

impl Commits {
    /// Adds a follower: of every log, or of those that it names.
    pub fn follower(&self, follows_all: bool) -> (Follower, Queued) {
        let (sender, commits) = mpsc::channel(QUEUE_COMMITS);
        let bytes = Arc::new(AtomicUsize::new(0));
        let inner = Inner {
            sender,
            queued_bytes: bytes.clone(),
            followed: Mutex::default(),
            follows_all,
        };
        let follower = Follower(Arc::new(inner));
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(follower.clone());
        (follower, Queued { commits, bytes })
    }

    /// Announces commits. Never waits.
    pub fn announce(&self, mut commits: Vec<Commit>) {
        commits
            .retain(|commit| commit.kind.description().is_streamed && !commit.records.is_empty());
        if commits.is_empty() {
            return;
        }
        for follower in self.0.read().unwrap_or_else(PoisonError::into_inner).iter() {
            follower.announce(&commits);
        }
    }
}

impl Follower {
    fn announce(&self, commits: &[Commit]) {
        let wanted: Vec<Commit> = match self.0.follows_all {
            true => commits.to_vec(),
            false => {
                let followed = self.followed();
                let is_followed =
                    |commit: &&Commit| followed.contains(&(commit.tenant_uuid, commit.kind));
                commits.iter().filter(is_followed).cloned().collect()
            }
        };
        if wanted.is_empty() {
            return;
        }
        let bytes = bytes_of(&wanted);
        let waiting = self.0.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        let has_room = waiting == 0 || waiting + bytes <= QUEUE_BYTES;
        if !has_room || self.0.sender.try_send(wanted).is_err() {
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
        self.0
            .followed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_round_trip() {
        let key = (TenantUuid::new(), Kind::Logs);
        assert_eq!(parse_announcement(&announcement(key, 42)), Some((key, 42)));
        assert_eq!(parse_announcement("x LOGS 1"), None);
    }
}
