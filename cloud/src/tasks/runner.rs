//! Takes on what is due, a few pieces at once, and writes down how each ended. Ends when the service does, after what it is doing.

use std::time::Duration;

use hub_protocol::Timestamp;
use tokio::task::JoinSet;

use super::store::{self, Leased};
use super::{Done, NewTask, Task};
use crate::app::App;
use crate::error::{Error, Result};

/// Pieces of work at once on one replica.
const AT_ONCE: usize = 4;
/// How often to look for work that came due by itself or was added by another replica.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Who holds a lease for longer than this has died.
pub const LEASE_SECS: i64 = 120;
/// No work outlives its lease.
const TIME_LIMIT: Duration = Duration::from_secs(100);
/// What is under way when the service ends gets this long; then its lease brings it back.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(15);
/// The first delay after a failure; it doubles up to the last.
const FIRST_DELAY_SECS: i64 = 5;
const LAST_DELAY_SECS: i64 = 3600;

/// Works until the service ends. `standing` is work that has to be there from the start.
pub async fn run<F>(
    app: App,
    mut standing: Vec<NewTask>,
    perform: impl Fn(App, Task) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Result<Done>> + Send + 'static,
{
    let mut running = JoinSet::new();
    let mut is_failing = false;
    while !app.shutdown.is_cancelled() {
        match claim(&app, &mut standing, AT_ONCE - running.len()).await {
            Ok(claimed) => {
                is_failing = false;
                for leased in claimed {
                    running.spawn(attempt(app.clone(), leased, perform.clone()));
                }
            }
            Err(error) => {
                if !is_failing {
                    tracing::error!(%error, "background work waits: its table cannot be read");
                }
                is_failing = true;
            }
        }
        tokio::select! {
            () = app.shutdown.cancelled() => {}
            () = app.task_wake.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
            Some(ended) = running.join_next() => report_panic(ended),
        }
    }
    let drained = tokio::time::timeout(DRAIN_TIMEOUT, async {
        while let Some(ended) = running.join_next().await {
            report_panic(ended);
        }
    });
    if drained.await.is_err() {
        tracing::warn!(count = running.len(), "background work was cut off; it is done again after the next start");
    }
}

async fn claim(app: &App, standing: &mut Vec<NewTask>, free: usize) -> Result<Vec<Leased>> {
    let now = app.clock.now();
    while let Some(task) = standing.last() {
        let mut tx = app.db.begin().await?;
        super::enqueue(&mut tx, NewTask { due_at: now, ..task.clone() }, now).await?;
        tx.commit_unaudited("standing work").await?;
        standing.pop();
    }
    match i64::try_from(free) {
        Ok(free @ 1..) => store::claim(&app.db, free, now, now.plus_secs(LEASE_SECS)).await,
        _ => Ok(Vec::new()),
    }
}

fn report_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "background work panicked; its lease brings it back");
    }
}

async fn attempt<F>(app: App, leased: Leased, perform: impl Fn(App, Task) -> F)
where
    F: Future<Output = Result<Done>>,
{
    let Leased { lease, task, last_error } = leased;
    let (kind, attempts) = (task.kind.clone(), task.attempts);
    let outcome = tokio::time::timeout(TIME_LIMIT, perform(app.clone(), task)).await;
    let outcome = outcome.unwrap_or_else(|_| Err(Error::internal("it took too long and was stopped")));
    let now = app.clock.now();
    let written = match outcome {
        Ok(Done::Finished) => store::finish(&app.db, lease).await,
        Ok(Done::Again(at)) => store::put_back(&app.db, lease, at, None).await,
        Err(error) => {
            let error = error.to_string();
            // The same failure again is no news.
            if last_error.as_deref() != Some(error.as_str()) {
                tracing::error!(kind, attempts, error, "background work failed; it will be tried again");
            }
            store::put_back(&app.db, lease, next_attempt(now, attempts), Some(&error)).await
        }
    };
    if let Err(error) = written {
        tracing::debug!(kind, %error, "the end of background work could not be written; its lease brings it back");
    }
}

/// Later after each failure, and not all at the same moment.
fn next_attempt(now: Timestamp, attempts: i64) -> Timestamp {
    let doublings = attempts.saturating_sub(1).clamp(0, 10);
    let delay_micros = (FIRST_DELAY_SECS << doublings).min(LAST_DELAY_SECS) * 1_000_000;
    let jitter = i64::from(u32::from_le_bytes(crate::sealing::random())) % (delay_micros / 2);
    now.plus_micros(delay_micros - jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_up_to_an_hour_and_differ() {
        let now = Timestamp::from_micros(0);
        for (attempts, most_secs) in [(1, 5), (2, 10), (3, 20), (10, 2560), (11, 3600), (i64::MAX, 3600)] {
            for _ in 0..50 {
                let delay_micros = next_attempt(now, attempts).as_micros();
                assert!((most_secs * 500_000..=most_secs * 1_000_000).contains(&delay_micros), "{delay_micros}");
            }
        }
        assert_ne!(next_attempt(now, 11), next_attempt(now, 11));
    }
}
