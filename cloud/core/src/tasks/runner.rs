//! Claims due tasks of each lane, runs them, and records how they ended. When the service ends, it
//! first finishes the running tasks.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use hub_base::error::{Error, Result};
use hub_protocol::Timestamp;
use tokio::task::{JoinError, JoinSet};
use uuid::Uuid;

use super::store::{self, Leased};
use super::{Done, Lane, NewTask, Task};
use crate::Core;
use crate::beats::Others;

/// The interval of polls for tasks that are due or that another replica added.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// A process with leases whose beat was not seen for so long is gone.
pub const GONE_AFTER: Duration = Duration::from_secs(15);
/// After a beat, a process works for so long at most without another.
const VALID: Duration = Duration::from_secs(12);
const TIME_LIMIT: Duration = Duration::from_secs(100);
/// The time for which running tasks may continue after a shutdown was requested. Then another
/// process runs them.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(15);
/// The first delay after a failure; it doubles up to the last.
const FIRST_DELAY_SECS: i64 = 5;
const LAST_DELAY_SECS: i64 = 3600;

/// A lane and its running tasks.
struct Running {
    lane: Lane,
    tasks: JoinSet<Uuid>,
    uuids: HashSet<Uuid>,
}

impl Running {
    fn ended(&mut self, ended: Result<Uuid, JoinError>) {
        if let Ok(task_uuid) = ended {
            self.uuids.remove(&task_uuid);
        }
    }
}

/// The leases of this process.
struct Leases {
    runner_uuid: Uuid,
    others: Others,
    /// When the last beat was begun.
    beaten_at: Instant,
    is_first: bool,
    /// Whether tasks may be leased that do not run: their outcome could not be stored.
    has_orphans: Arc<AtomicBool>,
}

/// Runs the tasks of these lanes until the service ends. `initial` are tasks that must exist from
/// the start.
pub async fn run<F>(
    core: Core,
    lanes: &[Lane],
    mut initial: Vec<NewTask>,
    perform: impl Fn(Task) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Result<Done>> + Send + 'static,
{
    let mut lanes: Vec<Running> = lanes
        .iter()
        .map(|lane| Running {
            lane: *lane,
            tasks: JoinSet::new(),
            uuids: HashSet::new(),
        })
        .collect();
    let mut leases = Leases {
        runner_uuid: Uuid::new_v4(),
        others: Others::new(GONE_AFTER),
        beaten_at: Instant::now(),
        is_first: true,
        has_orphans: Arc::default(),
    };
    let mut is_failing = false;
    while !core.shutdown.is_cancelled() {
        let started = match keep(&core, &mut leases, &lanes).await {
            Ok(()) => start_due(&core, &leases, &mut lanes, &mut initial, &perform).await,
            Err(error) => Err(error),
        };
        match started {
            Ok(()) if is_failing => {
                tracing::warn!("background work goes on");
                is_failing = false;
            }
            Ok(()) => {}
            Err(error) => {
                if !is_failing && !error.is_watched() {
                    tracing::error!(%error, "background work is suspended: its table cannot be read");
                    is_failing = true;
                }
                give_up(&leases, &mut lanes);
            }
        }
        tokio::select! {
            () = core.shutdown.cancelled() => {}
            () = core.task_wake.notified() => {}
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            () = any_ended(&mut lanes) => {}
        }
    }
    let drained = tokio::time::timeout(DRAIN_TIMEOUT, async {
        for running in &mut lanes {
            while let Some(ended) = running.tasks.join_next().await {
                running.ended(ended);
            }
        }
    });
    if drained.await.is_err() {
        let count: usize = lanes.iter().map(|running| running.tasks.len()).sum();
        tracing::warn!(
            count,
            "background work was interrupted; it runs again after the next start"
        );
    }
    // Others need not wait for this process.
    drop(lanes);
    if let Err(error) = forget(&core, leases.runner_uuid).await {
        tracing::debug!(%error, "the leases of background work are freed when others see that this process is gone");
    }
}

async fn forget(core: &Core, runner_uuid: Uuid) -> Result<()> {
    let mut tx = core.db.begin().await?;
    store::forget_runner(&mut tx, runner_uuid).await?;
    tx.commit_unaudited("leases of background work").await
}

/// Beats while this process has leases, and frees those of processes that are gone.
async fn keep(core: &Core, leases: &mut Leases, lanes: &[Running]) -> Result<()> {
    let running: Vec<Uuid> = lanes
        .iter()
        .flat_map(|running| running.uuids.iter().copied())
        .collect();
    let begun_at = Instant::now();
    let has_orphans = leases.has_orphans.swap(false, Ordering::Relaxed);
    if has_orphans || !running.is_empty() {
        let mut tx = core.db.begin().await?;
        store::beat(&mut tx, leases.runner_uuid).await?;
        if has_orphans {
            store::free_all_but(&mut tx, leases.runner_uuid, &running).await?;
        }
        let stored = tx.commit_unaudited("a beat of background work").await;
        if stored.is_err() {
            leases.has_orphans.fetch_or(has_orphans, Ordering::Relaxed);
        }
        stored?;
    }
    leases.beaten_at = begun_at;
    let beats = store::runners(&mut core.db.read().await?).await?;
    let own = leases.runner_uuid;
    let mut gone = leases.others.see(own, &beats, Instant::now());
    if std::mem::take(&mut leases.is_first) && core.config.is_sqlite() {
        // One process works on a SQLite database. Whoever was there before has ended.
        let others = beats.iter().map(|(runner, _)| *runner);
        gone = others.filter(|runner| *runner != own).collect();
    }
    for runner_uuid in gone {
        tracing::info!(%runner_uuid, "background work of a process that is gone is free");
        forget(core, runner_uuid).await?;
    }
    Ok(())
}

/// Stops what runs when others may think that this process is gone.
fn give_up(leases: &Leases, lanes: &mut [Running]) {
    let is_running = lanes.iter().any(|running| !running.tasks.is_empty());
    if !is_running || leases.beaten_at.elapsed() < VALID {
        return;
    }
    // Why the database does not answer is in the log already.
    tracing::info!("background work is stopped: other replicas may have taken it");
    for running in lanes {
        running.tasks.abort_all();
        running.uuids.clear();
    }
    leases.has_orphans.store(true, Ordering::Relaxed);
}

/// Waits until a task of any lane ends; forever if none runs.
async fn any_ended(lanes: &mut [Running]) {
    let ended = lanes
        .iter_mut()
        .filter(|running| !running.tasks.is_empty())
        .map(|running| {
            Box::pin(async {
                if let Some(ended) = running.tasks.join_next().await {
                    running.ended(ended);
                }
            })
        });
    let ended: Vec<_> = ended.collect();
    match ended.is_empty() {
        true => std::future::pending().await,
        false => drop(futures_util::future::select_all(ended).await),
    }
}

/// Starts due tasks, as far as each lane has free runners.
async fn start_due<F>(
    core: &Core,
    leases: &Leases,
    lanes: &mut [Running],
    initial: &mut Vec<NewTask>,
    perform: &(impl Fn(Task) -> F + Clone + Send + Sync + 'static),
) -> Result<()>
where
    F: Future<Output = Result<Done>> + Send + 'static,
{
    let now = core.clock.now();
    while let Some(task) = initial.last() {
        let mut tx = core.db.begin().await?;
        super::enqueue(
            core,
            &mut tx,
            NewTask {
                due_at: now,
                ..task.clone()
            },
            now,
        )
        .await?;
        tx.commit_unaudited("standing work").await?;
        initial.pop();
    }
    for running in lanes {
        let lane = running.lane;
        let Ok(free @ 1..) = i64::try_from(lane.runners.saturating_sub(running.tasks.len())) else {
            continue;
        };
        for leased in store::claim(&core.db, lane.name, free, now, leases.runner_uuid).await? {
            running.uuids.insert(leased.lease.task_uuid);
            let has_orphans = leases.has_orphans.clone();
            let attempt = attempt(core.clone(), leased, has_orphans, perform.clone());
            running.tasks.spawn(attempt);
        }
    }
    Ok(())
}

/// Returns the task.
async fn attempt<F>(
    core: Core,
    leased: Leased,
    has_orphans: Arc<AtomicBool>,
    perform: impl Fn(Task) -> F,
) -> Uuid
where
    F: Future<Output = Result<Done>>,
{
    let Leased {
        lease,
        task,
        last_error,
    } = leased;
    let (kind, attempts) = (task.kind.clone(), task.attempts);
    // A panic ends the task, and not the runner.
    let caught = AssertUnwindSafe(async { perform(task).await }).catch_unwind();
    let outcome = match tokio::time::timeout(TIME_LIMIT, caught).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err(Error::internal("it panicked")),
        Err(_) => Err(Error::internal(
            "it exceeded its time limit and was stopped",
        )),
    };
    let now = core.clock.now();
    let written = match outcome {
        Ok(Done::Finished) => store::finish(&core.db, lease).await,
        Ok(Done::RunAt(at)) => store::release(&core.db, lease, at, None).await,
        Ok(Done::Retry(reason)) => {
            store::release(&core.db, lease, next_attempt(now, attempts), Some(&reason)).await
        }
        Err(error) => {
            if error.is_storage_full() {
                core.storage.report_full();
            }
            let is_watched = error.is_watched();
            let error = error.to_string();
            // A repeated failure is logged once, and an outage by those who watch for it.
            if !is_watched && last_error.as_deref() != Some(error.as_str()) {
                tracing::error!(
                    kind,
                    attempts,
                    error,
                    "background work failed; it will be retried"
                );
            }
            store::release(&core.db, lease, next_attempt(now, attempts), Some(&error)).await
        }
    };
    if let Err(error) = written {
        tracing::debug!(kind, %error, "the result of background work could not be stored; it runs again");
        has_orphans.store(true, Ordering::Relaxed);
    }
    lease.task_uuid
}

/// Exponential backoff with jitter.
fn next_attempt(now: Timestamp, attempts: i64) -> Timestamp {
    let doublings = attempts.saturating_sub(1).clamp(0, 10);
    let delay_micros = (FIRST_DELAY_SECS << doublings).min(LAST_DELAY_SECS) * 1_000_000;
    let jitter = i64::from(u32::from_le_bytes(hub_base::sealing::random())) % (delay_micros / 2);
    now.plus_micros(delay_micros - jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_up_to_an_hour_with_jitter() {
        let now = Timestamp::from_micros(0);
        for (attempts, most_secs) in [
            (1, 5),
            (2, 10),
            (3, 20),
            (10, 2560),
            (11, 3600),
            (i64::MAX, 3600),
        ] {
            for _ in 0..50 {
                let delay_micros = next_attempt(now, attempts).as_micros();
                assert!(
                    (most_secs * 500_000..=most_secs * 1_000_000).contains(&delay_micros),
                    "{delay_micros}"
                );
            }
        }
        assert_ne!(next_attempt(now, 11), next_attempt(now, 11));
    }
}
