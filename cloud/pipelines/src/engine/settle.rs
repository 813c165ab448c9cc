//! Stores what lanes have done: of all lanes together, in one transaction every moment. What a lane
//! did under an epoch that is over is not stored, and the lane ends. While the database is
//! away, lanes go on until they have as much to store as they may.
//!
//! The settlements of an epoch are counted in the lane's row. Where a commit is not answered, the
//! count says whether it happened; a lane that was settled by it starts anew from its row.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hub_base::error::{Error, Result};
use hub_core::Core;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::done::{Advance, Done, Retried};
use super::identity::Identity;
use super::store;

/// The time from one transaction to the next, and when somebody waits for it.
const INTERVAL: Duration = Duration::from_millis(60);
const SHORTEST_INTERVAL: Duration = Duration::from_millis(5);
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(3);
/// Deliveries that may wait to be stored, of all lanes.
const MAX_WAITING: usize = 20_000;

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

    /// Adds what a lane has done, and how far it is now. The channel reports when that is
    /// stored; it fails if the lane is somebody else's.
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
            let lanes = pending.len();
            let Some((failed, error)) = self.store_all(pending).await else {
                if is_failing {
                    tracing::info!("deliveries are stored again");
                }
                (retry, is_failing) = (FIRST_RETRY, false);
                self.0
                    .core
                    .metrics
                    .pipelines
                    .settled(last_at.elapsed(), lanes);
                continue;
            };
            if error.is_storage_full() {
                self.0.core.storage.report_full();
            }
            if !is_failing && !error.is_watched() {
                tracing::error!(%error, lanes = failed.len(), "deliveries cannot be stored; their pipelines wait until they can");
                is_failing = true;
            }
            self.put_back(failed);
            if is_ending {
                return;
            }
            tokio::time::sleep(retry).await;
            retry = (retry * 2).min(LAST_RETRY);
        }
    }

    /// Stores what lanes have put. Returns the lanes that failed, with the error of one of them. A
    /// lane that can never be stored must not hold up the others.
    async fn store_all(&self, pending: Vec<Pending>) -> Option<(Vec<Pending>, Error)> {
        let is_one = pending.len() == 1;
        match self.store(&pending).await {
            Ok(held) => {
                self.finish(pending, &held);
                None
            }
            Err(error) if error.is_internal() && !is_one => {
                let mut failed: Option<(Vec<Pending>, Error)> = None;
                for one in pending {
                    if let Some((lane, error)) = Box::pin(self.store_all(vec![one])).await {
                        failed.get_or_insert((Vec::new(), error)).0.extend(lane);
                    }
                }
                failed
            }
            Err(error) => Some((pending, error)),
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
        let held = store::advance(&mut tx, &advances).await?;
        let kept: Vec<&Pending> = pending
            .iter()
            .filter(|one| held.contains(&one.advance.lane_uuid))
            .collect();
        store::insert_deliveries(
            &mut tx,
            kept.iter().flat_map(|one| &one.done.deliveries).collect(),
        )
        .await?;
        store::insert_dead_letters(
            &mut tx,
            kept.iter().flat_map(|one| &one.done.dead_letters).collect(),
        )
        .await?;
        for one in kept {
            for retried in &one.done.retried {
                match retried {
                    Retried::Delivered { dlq_id } => {
                        store::delete_dead_letter(&mut tx, one.pipeline_uuid, *dlq_id).await?;
                    }
                    Retried::Refused {
                        dlq_id,
                        attempts,
                        reason,
                        response_status,
                    } => {
                        let refused = (*attempts, reason.as_str(), *response_status);
                        store::refuse_dead_letter(&mut tx, one.pipeline_uuid, *dlq_id, refused)
                            .await?;
                    }
                }
            }
            if let Some((id, state)) = &one.done.snapshot {
                let Advance {
                    lane_uuid, epoch, ..
                } = one.advance;
                store::store_snapshot(&mut tx, lane_uuid, epoch, *id, state.clone()).await?;
            }
        }
        tx.commit_unaudited("what pipelines delivered").await?;
        Ok(held)
    }
}
