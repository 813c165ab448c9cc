//! Sends what pipelines are to send. A supervisor owns lanes for this replica, as many as its
//! share, and runs a task for each. A lane begins where its row says, whoever works on it.
//!
//! Whoever claims a lane raises its epoch, as does every change by an operator. What is stored for
//! a lane is conditional on the epoch, so that whoever still works under an old one stores nothing
//! more, and stops.

mod builder;
mod circuit;
mod done;
mod feed;
mod identity;
mod lane;
mod lease;
mod progress;
mod retry;
mod settle;
mod shared;
mod slots;
mod store;
mod traced;
mod workers;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use hub_base::bus::Subscription;
use hub_base::db::{Db, sessions};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::beats::Others;
use hub_destinations::{Connections, NameOf};
use hub_devices::device_instances;
use hub_ingest::{Commits, Queued};
use tokio::task::{self, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::definition::{self, Compiled};
use super::{Pipelines, REPLAY, RETRY};
use builder::{Builder, Start};
use feed::Feeds;
use identity::Identity;
use lane::Lane;
use lease::{BEAT_INTERVAL, GONE_AFTER, Lease};
use progress::Progress;
use settle::Settler;
use shared::Shared;
use slots::Slots;
use store::LaneRow;
use workers::Workers;

/// Lanes that are claimed at a time, and that a replica has at most.
const CLAIM: i64 = 200;
const MAX_LANES: usize = 10_000;
/// Lanes that are given back in a transaction.
const SURPLUS: usize = 200;
/// State of steps that was never stored is made from the events of so many microseconds.
const WARM_UP_MICROS: i64 = 60_000_000;

/// Runs the lanes of this replica.
pub struct Engine {
    pipelines: Pipelines,
    shared: Shared,
    replica_uuid: Uuid,
    lease: Lease,
    /// Whether others may know this replica.
    /// Whether this process has tried pipelines again that another could not run.
    has_tried_invalid: bool,
    has_beaten: bool,
    others: Others,
    lanes: HashMap<Uuid, Running>,
    tasks: JoinSet<()>,
}

struct Running {
    epoch: i64,
    lost: CancellationToken,
    task: task::Id,
}

impl Engine {
    /// The engine, what keeps its logs up to date, and the subscription of that to the bus.
    pub fn new(
        pipelines: Pipelines,
        commits: &Commits,
    ) -> (Self, impl Future<Output = ()> + use<>, Subscription) {
        let core = pipelines.core.clone();
        // The bus announces what other replicas commit.
        let (follower, queued): (_, Queued) = commits.follower(false);
        let workers = Workers::new(core.metrics.clone());
        let feeds = Feeds::new(core.clone(), follower, workers.clone());
        let (keep, subscription) = feeds.clone().keep(queued);
        let shared = Shared {
            feeds,
            slots: Slots::new(core.config.delivery_slots),
            settler: Settler::new(core.clone()),
            connections: Arc::new(Connections::naming(name_of(core.db.clone()))),
            workers,
            core,
        };
        let engine = Self {
            replica_uuid: shared.core.db.replica_uuid(),
            pipelines,
            shared,
            lease: Lease::new(),
            has_beaten: false,
            has_tried_invalid: false,
            others: Others::new(GONE_AFTER),
            lanes: HashMap::new(),
            tasks: JoinSet::new(),
        };
        (engine, keep, subscription)
    }

    /// Until the service ends. Then lanes finish what is under way, and are free for others.
    pub async fn run(mut self) {
        let ended = CancellationToken::new();
        let settling = tokio::spawn(self.shared.settler.clone().run(ended.clone()));
        let mut is_failing = false;
        let core = self.core().clone();
        let mut ticks = tokio::time::interval(BEAT_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let gone_at = self.others.next_gone_at(Instant::now());
            tokio::select! {
                () = core.shutdown.cancelled() => break,
                _ = ticks.tick() => {}
                // The lanes of a replica that is gone wait for no tick.
                () = tokio::time::sleep_until(gone_at.unwrap_or_else(Instant::now).into()),
                    if gone_at.is_some() => {}
                () = self.pipelines.woken.notified() => {}
                Some(joined) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => {
                    self.joined(joined);
                    continue;
                }
            }
            match self.tick().await {
                Ok(()) if is_failing => {
                    tracing::info!("pipelines are worked on again");
                    is_failing = false;
                }
                Ok(()) => {}
                Err(error) if is_failing || error.is_watched() => {}
                Err(error) => {
                    tracing::error!(%error, "pipelines cannot be read; they are suspended until they can");
                    is_failing = true;
                }
            }
            core.metrics
                .pipelines
                .lanes
                .set(i64::try_from(self.lanes.len()).unwrap_or(i64::MAX));
            core.metrics
                .pipelines
                .slots
                .set(i64::try_from(self.shared.slots.used()).unwrap_or(i64::MAX));
        }
        self.lanes
            .values()
            .for_each(|running| running.lost.cancel());
        while let Some(joined) = self.tasks.join_next_with_id().await {
            self.joined(joined);
        }
        ended.cancel();
        let _ = settling.await;
        if let Err(error) = self.forget().await {
            tracing::debug!(%error, "lanes could not be given back; others take them in a moment");
        }
        self.shared.feeds.close().await;
    }

    fn core(&self) -> &Core {
        &self.shared.core
    }

    fn joined(&mut self, joined: std::result::Result<(task::Id, ()), JoinError>) {
        let ended = match joined {
            Ok((task, ())) => task,
            Err(error) => {
                tracing::error!(%error, "a pipeline's task panicked; the lane starts again");
                error.id()
            }
        };
        // Another task may have begun to work on the lane meanwhile.
        self.lanes.retain(|_, running| running.task != ended);
    }

    async fn forget(&self) -> Result<()> {
        if !self.has_beaten {
            return Ok(());
        }
        let mut tx = self.core().db.begin().await?;
        store::forget_replica(&mut tx, self.replica_uuid).await?;
        tx.commit_unaudited("the state of a replica").await
    }

    async fn tick(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.has_tried_invalid, true) {
            let mut tx = self.core().db.begin().await?;
            store::try_invalid(&mut tx).await?;
            tx.commit_unaudited("the state of pipelines").await?;
        }
        let working = store::working(&mut self.core().db.read().await?).await?;
        if working == 0 && self.lanes.is_empty() {
            // Nothing is written while there is nothing to work on.
            return Ok(());
        }
        let begun_at = Instant::now();
        let mut tx = self.core().db.begin().await?;
        store::beat(&mut tx, self.replica_uuid, self.core().clock.now()).await?;
        tx.commit_unaudited("the state of a replica").await?;
        self.lease.renew(begun_at);
        let is_first = !std::mem::replace(&mut self.has_beaten, true);

        let mut conn = self.core().db.read().await?;
        let replicas = store::replicas(&mut conn).await?;
        let mut gone = self
            .others
            .see(self.replica_uuid, &replicas, Instant::now());
        if is_first && self.core().config.is_sqlite() {
            // One process works on a SQLite database. Whoever was there before has ended.
            gone = replicas
                .iter()
                .map(|(replica, _)| *replica)
                .filter(|other| *other != self.replica_uuid)
                .collect();
        }
        for replica in &gone {
            // Otherwise its locks hold up whoever claims its lanes.
            let sessions = sessions::end_stuck(&mut conn, *replica).await?;
            if sessions > 0 {
                tracing::warn!(%replica, sessions, "a stopped replica held locks; its sessions were ended");
            }
        }
        let owned = store::owned(&mut conn, self.replica_uuid).await?;
        let free = store::free(&mut conn, &gone, CLAIM).await?;
        drop(conn);

        self.stop_lost(&owned);
        let live = replicas.len().saturating_sub(gone.len()).max(1);
        let share = usize::try_from(working)
            .unwrap_or(usize::MAX)
            .div_ceil(live)
            .min(MAX_LANES);
        self.stop_surplus(share);
        // Lanes of this replica without a task: it panicked, or was surplus.
        let mut idle: Vec<(Uuid, i64)> = owned
            .iter()
            .filter(|(lane_uuid, _)| !self.lanes.contains_key(lane_uuid))
            .copied()
            .collect();
        let room = share.saturating_sub(self.lanes.len());
        let surplus = idle.split_off(idle.len().min(room));
        let wanted: Vec<(Uuid, i64)> = idle.into_iter().chain(free).take(room).collect();
        if !wanted.is_empty() {
            self.claim(&wanted).await?;
        }
        for lanes in surplus.chunks(SURPLUS) {
            let mut tx = self.core().db.begin().await?;
            store::give_back(&mut tx, self.replica_uuid, lanes).await?;
            tx.commit_unaudited("who works on lanes").await?;
        }
        for replica in gone {
            // Its lanes have been claimed, unless this replica has its share.
            let mut tx = self.core().db.begin().await?;
            store::forget_replica(&mut tx, replica).await?;
            tx.commit_unaudited("the state of a replica").await?;
            tracing::warn!(%replica, "a replica has stopped working on pipelines; its lanes go to others");
        }
        Ok(())
    }

    /// Ends the tasks of lanes that an operator has changed or that another replica has.
    fn stop_lost(&mut self, owned: &[(Uuid, i64)]) {
        let owned: HashSet<(Uuid, i64)> = owned.iter().copied().collect();
        for (lane_uuid, running) in &self.lanes {
            if !owned.contains(&(*lane_uuid, running.epoch)) {
                running.lost.cancel();
            }
        }
    }

    /// Ends the tasks of lanes beyond the share. The next tick gives the lanes themselves back.
    fn stop_surplus(&mut self, share: usize) {
        // One more than the share is kept, so that lanes do not go to and fro.
        let surplus = self.lanes.len().saturating_sub(share + 1);
        for running in self
            .lanes
            .values()
            .filter(|running| !running.lost.is_cancelled())
            .take(surplus)
        {
            running.lost.cancel();
        }
    }

    async fn claim(&mut self, wanted: &[(Uuid, i64)]) -> Result<()> {
        let mut tx = self.core().db.begin().await?;
        let claimed = store::claim(&mut tx, self.replica_uuid, wanted).await?;
        let rows = store::read(&mut tx, &claimed).await?;
        tx.commit_unaudited("who works on lanes").await?;
        let revisions: HashSet<(Uuid, i64)> = rows
            .iter()
            .map(|row| (row.pipeline_uuid, row.revision))
            .collect();
        let revisions: Vec<(Uuid, i64)> = revisions.into_iter().collect();
        let compiled = definition::load(self.core(), &revisions).await?;
        for row in rows {
            match compiled.get(&(row.pipeline_uuid, row.revision)) {
                Some(Ok(compiled)) => self.start(row, compiled.clone()),
                Some(Err(problem)) => {
                    let problem = problem.to_string();
                    tracing::warn!(
                        pipeline_uuid = %row.pipeline_uuid, problem, "a stored pipeline cannot be run"
                    );
                    let mut tx = self.core().db.begin().await?;
                    store::invalidate(&mut tx, row.lane_uuid, row.epoch, &problem).await?;
                    tx.commit_unaudited("the state of a pipeline").await?;
                }
                // It was deleted meanwhile.
                None => {}
            }
        }
        Ok(())
    }

    fn start(&mut self, row: LaneRow, compiled: Arc<Compiled>) {
        let (lane_uuid, epoch, lost) = (row.lane_uuid, row.epoch, CancellationToken::new());
        let identity = Identity {
            lane_uuid,
            epoch,
            is_replay: row.kind == REPLAY,
            lease: self.lease.clone(),
            lost: lost.clone(),
            settlements: Arc::default(),
        };
        let shared = self.shared.clone();
        let task = self.tasks.spawn(async move {
            if row.kind == RETRY || row.dead_letters_only {
                retry::run(shared, identity, row, compiled).await;
            } else if let Err(error) = run_lane(shared, identity, row, compiled).await {
                tracing::debug!(%error, %lane_uuid, "a lane could not be started; it is claimed again");
                tokio::time::sleep(BEAT_INTERVAL).await;
            }
        });
        if let Some(before) = self.lanes.insert(
            lane_uuid,
            Running {
                epoch,
                lost,
                task: task.id(),
            },
        ) {
            before.lost.cancel();
        }
    }
}

/// A list as it is stored; empty if there is none.
fn parse<T: serde::de::DeserializeOwned + Default>(text: Option<&str>) -> T {
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

async fn run_lane(
    shared: Shared,
    identity: Identity,
    row: LaneRow,
    compiled: Arc<Compiled>,
) -> Result<()> {
    let feed = shared.feeds.follow(compiled.tenant_uuid).await?;
    let mut conn = shared.core.db.read().await?;
    let dead_letters =
        store::count_dead_letters(&mut conn, row.pipeline_uuid, lane::MAX_DEAD_LETTERS).await?;
    drop(conn);
    let settled: Vec<(i64, i64)> = parse(row.settled_ahead.as_deref());
    let planned: VecDeque<i64> = parse(row.planned.as_deref());
    let has_state = compiled.program.has_state();
    let stored = row
        .snapshot
        .as_deref()
        .zip(row.snapshot_id)
        .filter(|(_, id)| has_state && *id <= row.cursor);
    let (state, state_id) = match stored {
        Some((bytes, id)) => (hub_steps::State::from_bytes(&compiled.program, bytes), id),
        None if has_state => (
            compiled.program.new_state(),
            row.start_id
                .max(row.cursor.saturating_sub(WARM_UP_MICROS))
                .min(row.cursor),
        ),
        None => (compiled.program.new_state(), row.cursor),
    };
    let message_owner = if identity.is_replay {
        row.lane_uuid
    } else {
        row.pipeline_uuid
    };
    let until = row.until_id.unwrap_or(i64::MAX);
    let progress = Progress::new(row.cursor, settled.clone());
    let start = Start {
        settled,
        planned,
        until,
        state,
        state_id,
    };
    let head = feed.head();
    let mut builder = Builder::new(
        compiled,
        feed,
        shared.core.scripts.clone(),
        message_owner,
        start,
    );
    if !builder.warm_up(row.cursor).await? {
        return Err(Error::internal(
            "there was no time for the scripts that come before the cursor",
        ));
    }
    let health = row.health();
    let workers = shared.workers.clone();
    let lane = Lane {
        shared,
        identity,
        builder,
        progress,
        health,
        head,
        dead_letters,
    };
    match workers.spawn(lane.run()).await {
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Looks up the names of devices, for receivers that show them.
fn name_of(db: Db) -> NameOf {
    Box::new(move |tenant_uuid, device_instance_id| {
        let db = db.clone();
        Box::pin(async move {
            let mut conn = db.read().await.ok()?;
            let name = device_instances::display_name(&mut conn, tenant_uuid, device_instance_id);
            name.await.ok().flatten()
        })
    })
}
