//! Claims due tasks of each lane, runs them, and records how they ended. When the service ends, it
//! first finishes the running tasks.

use std::time::Duration;

use hub_base::error::{Error, Result};
use hub_protocol::Timestamp;
use tokio::task::JoinSet;

use super::store::{self, Leased};
use super::{Done, Lane, NewTask, Task};
use crate::Core;

/// The interval of polls for tasks that are due or that another replica added.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// A process that holds a lease for longer than this has died.
pub const LEASE_SECS: i64 = 120;
/// No task runs longer than its lease lasts.
const TIME_LIMIT: Duration = Duration::from_secs(100);
/// The time for which running tasks may continue after a shutdown was requested. Then their leases
/// expire, and another process runs them.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(15);
/// The first delay after a failure; it doubles up to the last.
const FIRST_DELAY_SECS: i64 = 5;
const LAST_DELAY_SECS: i64 = 3600;

/// A lane and its running tasks.
struct Running {
    lane: Lane,
    tasks: JoinSet<()>,
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
        })
        .collect();
    let mut is_failing = false;
    while !core.shutdown.is_cancelled() {
        match start_due(&core, &mut lanes, &mut initial, &perform).await {
            Ok(()) => is_failing = false,
            Err(error) => {
                if !is_failing {
                    tracing::error!(%error, "background work is suspended: its table cannot be read");
                }
                is_failing = true;
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
        for Running { tasks, .. } in &mut lanes {
            while let Some(ended) = tasks.join_next().await {
                report_panic(ended);
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
}

/// Waits until a task of any lane ends; forever if none runs.
async fn any_ended(lanes: &mut [Running]) {
    let ended = lanes
        .iter_mut()
        .filter(|running| !running.tasks.is_empty())
        .map(|Running { tasks, .. }| {
            Box::pin(async {
                if let Some(ended) = tasks.join_next().await {
                    report_panic(ended);
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
    for Running { lane, tasks } in lanes {
        let Ok(free @ 1..) = i64::try_from(lane.runners.saturating_sub(tasks.len())) else {
            continue;
        };
        for leased in
            store::claim(&core.db, lane.name, free, now, now.plus_secs(LEASE_SECS)).await?
        {
            tasks.spawn(attempt(core.clone(), leased, perform.clone()));
        }
    }
    Ok(())
}

fn report_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "background work panicked; it runs again when its lease has expired");
    }
}

async fn attempt<F>(core: Core, leased: Leased, perform: impl Fn(Task) -> F)
where
    F: Future<Output = Result<Done>>,
{
    let Leased {
        lease,
        task,
        last_error,
    } = leased;
    let (kind, attempts) = (task.kind.clone(), task.attempts);
    let outcome = tokio::time::timeout(TIME_LIMIT, perform(task)).await;
    let outcome = outcome.unwrap_or_else(|_| {
        Err(Error::internal(
            "it exceeded its time limit and was stopped",
        ))
    });
    let now = core.clock.now();
    let written = match outcome {
        Ok(Done::Finished) => store::finish(&core.db, lease).await,
        Ok(Done::RunAt(at)) => store::release(&core.db, lease, at, None).await,
        Err(error) => {
            if error.is_storage_full() {
                core.storage.report_full();
            }
            let error = error.to_string();
            // A repeated failure is logged once.
            if last_error.as_deref() != Some(error.as_str()) {
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
        tracing::debug!(kind, %error, "the result of background work could not be stored; it runs again when its lease has expired");
    }
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
