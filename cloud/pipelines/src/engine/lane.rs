//! A lane at work: one task that reads its part of the log, sends messages, and reports what it has
//! done. An ordered lane has one message under way, others as many as their receiver bears. A lane
//! ends when it is no longer held, and leaves what is not stored to the next one who holds it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use hub_destinations::{Attempt, Failure};
use hub_protocol::Timestamp;
use tokio::sync::{oneshot, watch};

use super::super::LaneStatus;
use super::builder::{Builder, Built};
use super::circuit::Health;
use super::done::{Advance, DeadLetter, Delivery, Done};
use super::identity::Identity;
use super::progress::{Batch, Progress};
use super::shared::{NextAttempt, Shared, judge, log_change};
use super::slots::{Slot, Turn};
use super::traced;

/// How often the state of the steps is stored.
const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(5);
/// How long messages under way are waited for when the service ends.
const DRAIN_TIME: Duration = Duration::from_secs(5);
/// How long a lane rests when the log cannot be read, or a script had no time.
const REST: Duration = Duration::from_secs(1);
/// Units of a lane that may wait for an earlier one to be settled.
const MAX_UNSETTLED: usize = 4096;
/// With so many dead letters, somebody has to look before more is sent.
pub const MAX_DEAD_LETTERS: i64 = 10_000;

/// A lane and what it works with.
pub struct Lane {
    pub shared: Shared,
    pub identity: Identity,
    pub builder: Builder,
    pub progress: Progress,
    pub health: Health,
    pub head: watch::Receiver<i64>,
    /// Dead letters of the pipeline.
    pub dead_letters: i64,
}

/// What can be done next.
enum Next {
    /// Send or build, as soon as there is a slot.
    Work,
    /// Nothing before this time.
    At(Instant),
    /// Nothing until an event is committed.
    Events,
    /// Build the next batch, and store its plan, while one is under way.
    Prepare,
    /// Nothing until a message that is under way has ended.
    Ends,
    /// The lane has ended.
    Over,
}

struct Ended {
    to: i64,
    batch: Arc<Batch>,
    attempt_number: i64,
    started_at: Timestamp,
    /// None if it was not sent, since the lane is not held any more.
    attempt: Option<Attempt>,
    _slot: Slot,
}

/// What changes while a lane works.
struct Work {
    lane: Lane,
    in_flight: FuturesUnordered<BoxFuture<'static, Ended>>,
    /// Messages that may be under way at a time.
    width: usize,
    /// Notified when the plan of a batch that waits is stored.
    planned: Option<oneshot::Receiver<()>>,
    done: Done,
    events: i64,
    has_news: bool,
    /// When the oldest event that waits for a batch was seen.
    waiting_since: Option<Instant>,
    rests_until: Option<Instant>,
    next_attempt: NextAttempt,
    snapshot: Option<(i64, Vec<u8>)>,
    snapshot_at: Instant,
    /// The status that the log has.
    logged: LaneStatus,
}

impl Lane {
    /// Works until the lane is lost or over.
    pub async fn run(self) {
        let mut work = Work {
            logged: self.health.status,
            lane: self,
            in_flight: FuturesUnordered::new(),
            width: 1,
            planned: None,
            done: Done::default(),
            events: 0,
            has_news: false,
            waiting_since: None,
            rests_until: None,
            next_attempt: NextAttempt::default(),
            snapshot: None,
            snapshot_at: Instant::now(),
        };
        work.run().await;
    }
}

impl Work {
    async fn run(&mut self) {
        let lost = self.lane.identity.lost.clone();
        let mut slot: Option<BoxFuture<'static, Slot>> = None;
        loop {
            let mut next = self.next();
            if matches!(next, Next::Over) {
                break;
            }
            if matches!(next, Next::Work) && slot.is_none() {
                slot = Some(Box::pin(self.acquire()));
            } else if !matches!(next, Next::Work) {
                slot = None;
            }
            if self.in_flight.is_empty() && matches!(next, Next::Ends) {
                next = Next::At(Instant::now() + REST);
            }
            tokio::select! {
                biased;
                () = lost.cancelled() => break,
                Some(ended) = self.in_flight.next(), if !self.in_flight.is_empty() => self.ended(ended).await,
                slot_of = wait(&mut slot), if matches!(next, Next::Work) => {
                    slot = None;
                    self.work(slot_of).await;
                }
                () = std::future::ready(()), if matches!(next, Next::Prepare) => self.prepare().await,
                () = until(&next) => {}
                changed = self.lane.head.changed(), if matches!(next, Next::Events | Next::At(_)) => {
                    if changed.is_err() {
                        break;
                    }
                    if self.waiting_since.is_none() {
                        self.waiting_since = Some(Instant::now());
                    }
                }
            }
            self.report().await;
        }
        self.end().await;
    }

    fn acquire(&self) -> impl Future<Output = Slot> + use<> {
        let turn = match (self.lane.health.failures > 0, self.lane.identity.is_replay) {
            (true, _) => Turn::Probe,
            (false, true) => Turn::Low,
            (false, false) => Turn::Normal,
        };
        let tenant_uuid = self.lane.builder.compiled.tenant_uuid;
        self.lane
            .shared
            .slots
            .acquire(tenant_uuid, self.lane.identity.lane_uuid, turn)
    }

    fn next(&mut self) -> Next {
        let lane = &self.lane;
        let is_outdated = |until: &Timestamp| *until <= lane.shared.core.clock.now();
        if !lane.health.is_working()
            || lane
                .builder
                .compiled
                .secret_ends_at
                .as_ref()
                .is_some_and(is_outdated)
        {
            // The supervisor starts it again if it is to work, with what is in force then.
            return Next::Over;
        }
        let most = if lane.health.failures > 0 || lane.builder.compiled.delivery.ordered {
            1
        } else {
            self.width
        };
        if lane.progress.len() >= MAX_UNSETTLED {
            return Next::Ends;
        }
        let now = Instant::now();
        if self.in_flight.len() >= most {
            let has_batch =
                lane.builder.is_batched() && lane.builder.has_more() && lane.builder.has_batch();
            let may_build = !lane.progress.has_waiting()
                && lane.health.failures == 0
                && self.rests_until.is_none();
            return if has_batch && may_build {
                Next::Prepare
            } else {
                Next::Ends
            };
        }
        if let Some(until) = self.rests_until.take_if(|until| *until > now) {
            self.rests_until = Some(until);
            return Next::At(until);
        }
        if let Some(wait) = self
            .next_attempt
            .wait(&lane.health, lane.shared.core.clock.now(), now)
        {
            return Next::At(now + wait);
        }
        if lane.progress.has_waiting() {
            return Next::Work;
        }
        if !lane.builder.has_more() {
            if lane.builder.is_finished() {
                return if lane.progress.len() == 0 {
                    Next::Over
                } else {
                    Next::Ends
                };
            }
            self.waiting_since = None;
            return Next::Events;
        }
        if !lane.builder.is_batched() || lane.builder.has_batch() {
            return Next::Work;
        }
        let since = *self.waiting_since.get_or_insert(now);
        let ready_at = since + Duration::from_millis(lane.builder.compiled.delivery.batch_millis);
        if ready_at <= now {
            Next::Work
        } else {
            Next::At(ready_at)
        }
    }

    /// Sends the first message that waits, or builds one and sends it.
    async fn work(&mut self, slot: Slot) {
        if !self.lane.progress.has_waiting() {
            self.build().await;
        }
        let Some((to, batch, attempt_number)) = self.lane.progress.start() else {
            return;
        };
        slot.charge(batch.bytes);
        // What may have been sent has to be known before it is sent: a batch would else be another
        // one after a restart.
        let is_batched = self.lane.builder.is_batched();
        let planned = is_batched.then(|| self.planned.take().unwrap_or_else(|| self.plan()));
        let (shared, identity) = (self.lane.shared.clone(), self.lane.identity.clone());
        let compiled = self.lane.builder.compiled.clone();
        self.in_flight.push(Box::pin(async move {
            let is_planned = match planned {
                Some(planned) => planned.await.is_ok(),
                None => true,
            };
            let started_at = shared.core.clock.now();
            let mut attempt = None;
            if is_planned && identity.lease.is_valid() && !identity.lost.is_cancelled() {
                let (core, connections) = (&shared.core, &shared.connections);
                attempt = Some(traced::send(core, connections, &compiled, &batch.message).await);
            }
            Ended {
                to,
                batch,
                attempt_number,
                started_at,
                attempt,
                _slot: slot,
            }
        }));
    }

    async fn prepare(&mut self) {
        self.build().await;
        if self.lane.progress.has_waiting() {
            self.planned = Some(self.plan());
        }
    }

    /// Reads on and makes the next message, if there is one.
    async fn build(&mut self) {
        let now = self.lane.shared.core.clock.now();
        let built = self.lane.builder.next(now).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "a log cannot be read; its pipelines try again");
            self.rests_until = Some(Instant::now() + REST);
            Built::Nothing
        });
        match built {
            Built::Units(units) => {
                self.waiting_since = None;
                for unit in units {
                    self.lane.progress.push(unit);
                }
                self.advance();
            }
            Built::Nothing => {}
            Built::NotRun(problem) => {
                self.lane.health.last_error = Some(problem);
                self.rests_until = Some(Instant::now() + REST);
                self.has_news = true;
            }
        }
        if self.snapshot.is_none() && self.snapshot_at.elapsed() >= SNAPSHOT_INTERVAL {
            self.snapshot = self.lane.builder.snapshot();
        }
    }

    /// Puts the plan of the batches that wait. They are sent when it is stored.
    fn plan(&mut self) -> oneshot::Receiver<()> {
        let planned = self.put();
        self.lane.shared.settler.hurry();
        planned
    }

    fn advance(&mut self) {
        let before = self.lane.progress.cursor;
        let dead = self.lane.progress.advance();
        self.add_dead_letters(dead);
        self.has_news |= self.lane.progress.cursor != before;
        if let Some(snapshot) = self
            .snapshot
            .take_if(|(id, _)| *id <= self.lane.progress.cursor)
        {
            self.done.snapshot = Some(snapshot);
            self.snapshot_at = Instant::now();
            self.has_news = true;
        }
    }

    fn add_dead_letters(&mut self, dead: Vec<DeadLetter>) {
        if dead.is_empty() {
            return;
        }
        self.lane.dead_letters += i64::try_from(dead.len()).unwrap_or(i64::MAX);
        self.lane
            .shared
            .core
            .metrics
            .pipelines
            .dead_letters
            .inc_by(dead.len() as u64);
        self.done.dead_letters.extend(dead);
        self.has_news = true;
        if self.lane.dead_letters >= MAX_DEAD_LETTERS {
            let reason = format!(
                "{MAX_DEAD_LETTERS} dead letters wait; correct the pipeline, retry or delete them, then resume it"
            );
            self.lane
                .health
                .suspend(self.lane.shared.core.clock.now(), &reason);
        }
    }

    async fn ended(&mut self, ended: Ended) {
        let Ended {
            to,
            batch,
            attempt_number,
            started_at,
            attempt,
            _slot,
        } = ended;
        let Some(attempt) = attempt else {
            return self.lane.identity.lost.cancel();
        };
        judge(
            &mut self.lane.health,
            &attempt.result,
            self.lane.shared.core.clock.now(),
        );
        let status = attempt.status();
        self.lane
            .shared
            .core
            .metrics
            .pipelines
            .attempt(status, batch.ids.len());
        match &attempt.result {
            Ok(()) => {
                self.events += i64::try_from(batch.ids.len()).unwrap_or(i64::MAX);
                self.width = (self.width + 1).min(self.lane.builder.compiled.delivery.concurrency);
                self.lane.progress.settled(to);
            }
            Err(Failure::Message { reason }) => {
                self.lane.progress.settled(to);
                let (compiled, id) = (&self.lane.builder.compiled, batch.message.id.clone());
                let now = self.lane.shared.core.clock.now();
                let mut dead =
                    DeadLetter::new(compiled, id, &batch.ids, &batch.first, reason.clone(), now);
                dead.response_status = attempt.response_status.map(i64::from);
                dead.attempts = attempt_number;
                self.add_dead_letters(vec![dead]);
            }
            Err(Failure::Receiver { .. } | Failure::Credentials { .. } | Failure::Gone { .. }) => {
                self.width = (self.width / 2).max(1);
                self.lane.progress.failed(to);
            }
        }
        let compiled = &self.lane.builder.compiled;
        self.done.deliveries.push(Delivery::new(
            compiled,
            &batch.ids,
            attempt_number,
            started_at,
            attempt,
        ));
        self.has_news = true;
        self.advance();
    }

    /// Puts what was done to be stored.
    fn put(&mut self) -> oneshot::Receiver<()> {
        self.has_news = false;
        let before = std::mem::replace(&mut self.logged, self.lane.health.status);
        if !self.lane.identity.is_replay {
            let (shared, compiled) = (&self.lane.shared, &self.lane.builder.compiled);
            log_change(shared, compiled, before, &self.lane.health);
        }
        let lane = &self.lane;
        let is_over = lane.builder.is_finished() && lane.progress.len() == 0;
        let now = lane.shared.core.clock.now();
        let mut health = lane.health.clone();
        if is_over {
            health.status = LaneStatus::Finished;
        }
        let advance = Advance {
            lane_uuid: lane.identity.lane_uuid,
            epoch: lane.identity.epoch,
            cursor: lane.progress.cursor,
            settled_ahead: lane.progress.settled_ahead(),
            planned: lane
                .builder
                .is_batched()
                .then(|| lane.progress.planned(lane.builder.planned()))
                .flatten(),
            health,
            events: std::mem::take(&mut self.events),
            finished_at: is_over.then_some(now),
        };
        let done = std::mem::take(&mut self.done);
        lane.shared.settler.put(
            lane.builder.compiled.pipeline_uuid,
            advance,
            done,
            &lane.identity,
        )
    }

    /// Reports news, and waits while too much is to be stored.
    async fn report(&mut self) {
        if self.has_news {
            drop(self.put());
            tokio::select! {
                () = self.lane.shared.settler.room() => {}
                () = self.lane.identity.lost.cancelled() => {}
            }
        }
    }

    /// Waits for what is under way, as long as the lane is held.
    async fn end(&mut self) {
        let drained = tokio::time::timeout(DRAIN_TIME, async {
            while let Some(ended) = self.in_flight.next().await {
                if self.lane.identity.lease.is_valid() {
                    self.ended(ended).await;
                }
            }
        });
        let _ = drained.await;
        if self.snapshot_at.elapsed() > Duration::ZERO
            && let Some((id, state)) = self
                .lane
                .builder
                .snapshot()
                .filter(|(id, _)| *id == self.lane.progress.cursor)
        {
            self.done.snapshot = Some((id, state));
        }
        // Nothing is stored of a lane that is somebody else's by now: its epoch is over.
        let _ = tokio::time::timeout(DRAIN_TIME, self.put()).await;
    }
}

/// The slot, once there is one.
async fn wait(slot: &mut Option<BoxFuture<'static, Slot>>) -> Slot {
    match slot {
        Some(slot) => slot.await,
        None => std::future::pending().await,
    }
}

async fn until(next: &Next) {
    match next {
        Next::At(at) => tokio::time::sleep_until((*at).into()).await,
        _ => std::future::pending().await,
    }
}
