//! Stores what lanes have done: of all lanes together, in one transaction every moment. What a lane
//! did under an epoch that is over is not stored, and the lane is told so. While the database is
//! away, lanes go on until they have as much to store as they may.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hub_protocol::{TenantUuid, Timestamp};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::super::definition::Compiled;
use super::super::store::lanes;
use super::circuit::Health;
use super::feed::LogEvent;
use super::lane::Identity;
use crate::core::Core;
use crate::destinations::Attempt;
use crate::domain::delivery_status::event_ids;
use crate::error::Result;

/// The time from one transaction to the next, and when somebody waits for it.
const INTERVAL: Duration = Duration::from_millis(60);
const SHORTEST_INTERVAL: Duration = Duration::from_millis(5);
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(3);
/// Deliveries that may wait to be stored, of all lanes.
const MAX_WAITING: usize = 20_000;
/// Units of a lane that may wait for an earlier one to be settled.
pub const MAX_UNSETTLED: usize = 4096;

/// How far a lane is.
#[derive(Clone, Debug)]
pub struct Advance {
    pub lane_uuid: Uuid,
    pub epoch: i64,
    pub cursor: i64,
    /// Ranges after the cursor that are settled, as JSON.
    pub settled_ahead: Option<String>,
    /// Ends of the batches that may be under way, as JSON.
    pub planned: Option<String>,
    pub health: Health,
    /// Events delivered since the last time.
    pub events: i64,
    /// Of a replay that has read all it was to read.
    pub finished_at: Option<Timestamp>,
}

/// An attempt to deliver a message.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub tenant_uuid: TenantUuid,
    pub pipeline_uuid: Uuid,
    pub revision: i64,
    /// DELIVERED, FAILED or DEAD.
    pub status: &'static str,
    pub first_event_id: i64,
    pub last_event_id: i64,
    pub events: i64,
    pub event_ids: Option<Arc<str>>,
    /// From 1.
    pub attempt: i64,
    pub response_status: Option<i64>,
    pub response_body: Option<Arc<str>>,
    pub error: Option<Arc<str>>,
    pub duration_millis: i64,
    pub started_at: Timestamp,
}

impl Delivery {
    /// The `number`th attempt to deliver a message of these events.
    pub fn new(
        compiled: &Compiled,
        ids: &[i64],
        number: i64,
        started_at: Timestamp,
        attempt: Attempt,
    ) -> Self {
        let first_event_id = ids.first().copied().unwrap_or_default();
        let status = attempt.status();
        Self {
            tenant_uuid: compiled.tenant_uuid,
            pipeline_uuid: compiled.pipeline_uuid,
            revision: compiled.revision,
            status,
            first_event_id,
            last_event_id: ids.last().copied().unwrap_or(first_event_id),
            events: i64::try_from(ids.len()).unwrap_or(i64::MAX),
            event_ids: event_ids::encode(ids).map(Into::into),
            attempt: number,
            response_status: attempt.response_status.map(i64::from),
            response_body: attempt
                .response_body
                .filter(|_| attempt.result.is_err())
                .map(Into::into),
            error: attempt
                .result
                .err()
                .map(|failure| failure.into_reason().into()),
            duration_millis: i64::try_from(attempt.duration.as_millis()).unwrap_or(i64::MAX),
            started_at,
        }
    }
}

/// A message that will not be delivered.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    pub tenant_uuid: TenantUuid,
    pub pipeline_uuid: Uuid,
    pub revision: i64,
    pub message_id: String,
    pub first_event_id: i64,
    pub last_event_id: i64,
    pub events: i64,
    pub event_ids: Option<Arc<str>>,
    /// The first event as JSON.
    pub payload: Arc<str>,
    pub reason: String,
    pub response_status: Option<i64>,
    pub attempts: i64,
    pub created_at: Timestamp,
}

impl DeadLetter {
    /// A message of these events that was never sent. `first` is the first of them.
    pub fn new(
        compiled: &Compiled,
        message_id: String,
        ids: &[i64],
        first: &LogEvent,
        reason: String,
        now: Timestamp,
    ) -> Self {
        let first_event_id = ids.first().copied().unwrap_or_default();
        Self {
            tenant_uuid: compiled.tenant_uuid,
            pipeline_uuid: compiled.pipeline_uuid,
            revision: compiled.revision,
            message_id,
            first_event_id,
            last_event_id: ids.last().copied().unwrap_or(first_event_id),
            events: i64::try_from(ids.len()).unwrap_or(i64::MAX),
            event_ids: event_ids::encode(ids).map(Into::into),
            payload: first.to_json().into(),
            reason,
            response_status: None,
            attempts: 0,
            created_at: now,
        }
    }
}

/// What became of a dead letter that was sent again.
#[derive(Clone, Debug)]
pub enum Retried {
    Delivered {
        dlq_id: i64,
    },
    Refused {
        dlq_id: i64,
        attempts: i64,
        reason: String,
        response_status: Option<i64>,
    },
}

/// What a lane has to store.
#[derive(Debug, Default)]
pub struct Done {
    pub deliveries: Vec<Delivery>,
    pub dead_letters: Vec<DeadLetter>,
    pub retried: Vec<Retried>,
    /// The state of the steps after an event that is settled.
    pub snapshot: Option<(i64, Vec<u8>)>,
}

impl Done {
    fn len(&self) -> usize {
        self.deliveries.len() + self.dead_letters.len() + self.retried.len()
    }

    fn append(&mut self, later: Self) {
        self.deliveries.extend(later.deliveries);
        self.dead_letters.extend(later.dead_letters);
        self.retried.extend(later.retried);
        self.snapshot = later.snapshot.or_else(|| self.snapshot.take());
    }
}

struct Pending {
    pipeline_uuid: Uuid,
    advance: Advance,
    done: Done,
    identity: Identity,
    stored: Vec<oneshot::Sender<()>>,
}

/// Collects what lanes have done; cheap to clone.
#[derive(Clone)]
pub struct Settler(Arc<Inner>);

struct Inner {
    core: Core,
    pending: Mutex<HashMap<Uuid, Pending>>,
    waiting: AtomicUsize,
    wake: Notify,
    hurry: Notify,
    stored: Notify,
}

impl Settler {
    pub fn new(core: Core) -> Self {
        let (wake, hurry, stored) = (Notify::new(), Notify::new(), Notify::new());
        let (pending, waiting) = (Mutex::default(), AtomicUsize::new(0));
        Self(Arc::new(Inner {
            core,
            pending,
            waiting,
            wake,
            hurry,
            stored,
        }))
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<Uuid, Pending>> {
        self.0
            .pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what a lane has done, and how far it is now. The receiver is told when that is stored;
    /// it fails if the lane is somebody else's.
    pub fn put(
        &self,
        pipeline_uuid: Uuid,
        advance: Advance,
        done: Done,
        identity: &Identity,
    ) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.0.waiting.fetch_add(done.len(), Ordering::Relaxed);
        let mut pending = self.pending();
        match pending.get_mut(&advance.lane_uuid) {
            Some(before) if before.advance.epoch == advance.epoch => {
                let events = before.advance.events + advance.events;
                before.advance = Advance { events, ..advance };
                before.done.append(done);
                before.stored.push(sender);
            }
            // What was done under an earlier epoch is not stored.
            _ => {
                let new = Pending {
                    pipeline_uuid,
                    advance,
                    done,
                    identity: identity.clone(),
                    stored: vec![sender],
                };
                if let Some(before) = pending.insert(new.advance.lane_uuid, new) {
                    self.0
                        .waiting
                        .fetch_sub(before.done.len(), Ordering::Relaxed);
                }
            }
        }
        drop(pending);
        self.0.wake.notify_one();
        receiver
    }

    /// Stores what was put soon: somebody waits for it.
    pub fn hurry(&self) {
        self.0.hurry.notify_one();
    }

    /// Waits until there is room for more deliveries.
    pub async fn room(&self) {
        loop {
            let stored = self.0.stored.notified();
            if self.0.waiting.load(Ordering::Relaxed) < MAX_WAITING {
                return;
            }
            stored.await;
        }
    }

    /// Stores what lanes put until `ended`, and then what is left.
    pub async fn run(self, ended: CancellationToken) {
        let mut last_at = Instant::now();
        let mut retry = FIRST_RETRY;
        let mut is_failing = false;
        loop {
            let is_ending = ended.is_cancelled();
            if !is_ending {
                tokio::select! {
                    () = ended.cancelled() => {}
                    () = self.0.wake.notified() => self.gather(last_at).await,
                }
            }
            last_at = Instant::now();
            let pending: Vec<Pending> =
                self.pending().drain().map(|(_, pending)| pending).collect();
            if pending.is_empty() {
                if is_ending {
                    return;
                }
                continue;
            }
            match self.store(&pending).await {
                Ok(held) => {
                    if is_failing {
                        tracing::info!("deliveries are stored again");
                    }
                    (retry, is_failing) = (FIRST_RETRY, false);
                    self.0
                        .core
                        .metrics
                        .pipelines
                        .settled(last_at.elapsed(), pending.len());
                    self.finish(pending, &held);
                }
                Err(error) => {
                    if error.is_storage_full() {
                        self.0.core.storage.report_full();
                    }
                    if !is_failing {
                        tracing::error!(%error, "deliveries cannot be stored; pipelines wait until they can");
                    }
                    is_failing = true;
                    self.put_back(pending);
                    if is_ending {
                        return;
                    }
                    tokio::time::sleep(retry).await;
                    retry = (retry * 2).min(LAST_RETRY);
                }
            }
        }
    }

    /// Lets other lanes put theirs, for as long as nobody waits.
    async fn gather(&self, last_at: Instant) {
        tokio::select! {
            () = tokio::time::sleep(INTERVAL.saturating_sub(last_at.elapsed())) => {}
            () = self.0.hurry.notified() => {
                tokio::time::sleep(SHORTEST_INTERVAL.saturating_sub(last_at.elapsed())).await;
            }
        }
    }

    fn finish(&self, pending: Vec<Pending>, held: &HashSet<Uuid>) {
        let settled: usize = pending.iter().map(|one| one.done.len()).sum();
        self.0.waiting.fetch_sub(settled, Ordering::Relaxed);
        for one in pending {
            if !held.contains(&one.advance.lane_uuid) {
                one.identity.lost.cancel();
                continue;
            }
            one.identity.settlements.fetch_add(1, Ordering::Relaxed);
            for sender in one.stored {
                // Most lanes do not wait for it.
                let _ = sender.send(());
            }
        }
        self.0.stored.notify_waiters();
    }

    /// Keeps what could not be stored, before what was put since.
    fn put_back(&self, failed: Vec<Pending>) {
        let mut pending = self.pending();
        for mut one in failed {
            match pending.remove(&one.advance.lane_uuid) {
                Some(later) if later.advance.epoch == one.advance.epoch => {
                    let events = one.advance.events + later.advance.events;
                    one.advance = Advance {
                        events,
                        ..later.advance
                    };
                    one.done.append(later.done);
                    one.stored.extend(later.stored);
                }
                // A lane under a later epoch: what was done under this one is not stored.
                Some(later) => {
                    self.0.waiting.fetch_sub(one.done.len(), Ordering::Relaxed);
                    one.identity.lost.cancel();
                    one = later;
                }
                None => {}
            }
            pending.insert(one.advance.lane_uuid, one);
        }
        drop(pending);
        self.0.wake.notify_one();
    }

    /// Returns the lanes that are still held under their epochs.
    async fn store(&self, pending: &[Pending]) -> Result<HashSet<Uuid>> {
        let mut tx = self.0.core.db.begin().await?;
        // If it is unknown whether the last transaction was committed, a lane that was settled by
        // it is not settled again: it starts anew where it is stored to be.
        let mut advances: Vec<(&Advance, i64)> = pending
            .iter()
            .map(|one| {
                (
                    &one.advance,
                    one.identity.settlements.load(Ordering::Relaxed),
                )
            })
            .collect();
        // All replicas lock rows in the same order.
        advances.sort_by_key(|(advance, _)| advance.lane_uuid);
        let held = lanes::advance(&mut tx, &advances).await?;
        let kept: Vec<&Pending> = pending
            .iter()
            .filter(|one| held.contains(&one.advance.lane_uuid))
            .collect();
        lanes::insert_deliveries(
            &mut tx,
            kept.iter().flat_map(|one| &one.done.deliveries).collect(),
        )
        .await?;
        lanes::insert_dead_letters(
            &mut tx,
            kept.iter().flat_map(|one| &one.done.dead_letters).collect(),
        )
        .await?;
        for one in kept {
            for retried in &one.done.retried {
                match retried {
                    Retried::Delivered { dlq_id } => {
                        lanes::delete_dead_letter(&mut tx, one.pipeline_uuid, *dlq_id).await?;
                    }
                    Retried::Refused {
                        dlq_id,
                        attempts,
                        reason,
                        response_status,
                    } => {
                        let refused = (*attempts, reason.as_str(), *response_status);
                        lanes::refuse_dead_letter(&mut tx, one.pipeline_uuid, *dlq_id, refused)
                            .await?;
                    }
                }
            }
            if let Some((id, state)) = &one.done.snapshot {
                let Advance {
                    lane_uuid, epoch, ..
                } = one.advance;
                lanes::store_snapshot(&mut tx, lane_uuid, epoch, *id, state.clone()).await?;
            }
        }
        tx.commit_unaudited("what pipelines delivered").await?;
        Ok(held)
    }
}
