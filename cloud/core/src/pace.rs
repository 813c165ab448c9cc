//! The pace of work in batches beside ingest: how many rows a batch writes, and how long the next
//! one waits. The writer is held for less than 50 milliseconds, and ingest keeps nearly all of it
//! for itself while it needs it.

use std::time::{Duration, Instant};

use hub_base::metrics::Metrics;
use prometheus_client::metrics::histogram::Histogram;

use crate::Core;

const FIRST_SIZE: i64 = 64;
const LEAST_SIZE: i64 = 16;
const MOST_SIZE: i64 = 4096;
/// The intended time for which a batch holds the writer, its commit included.
const WANTED_MS: f64 = 35.0;
/// The part of it for the work before the commit, however long a commit takes.
const LEAST_WORK_MS: f64 = 8.0;
const MOST_WORK_MS: f64 = 20.0;
/// The rest after a batch while ingest is busy, as a multiple of the batch's duration.
const BUSY_REST: f64 = 15.0;
/// Rows written while ingest is busy.
/// A deleted or changed row costs PostgreSQL most when it vacuums.
const BUSY_ROWS_PER_SEC: f64 = 20_000.0;
/// The share of the time from which on the writer of ingest counts as busy. On a machine that is
/// used up, checking uploads leaves it no more than that.
const BUSY_SHARE: f64 = 0.3;

/// The time for which a transaction holds the writer.
pub struct Held {
    began_at: Instant,
    commits_at: Option<Instant>,
}

impl Held {
    /// Called when the transaction has begun.
    pub fn begin() -> Self {
        Self {
            began_at: Instant::now(),
            commits_at: None,
        }
    }

    /// Called when only the commit is left.
    pub fn commits(&mut self) {
        self.commits_at = Some(Instant::now());
    }
}

/// The load of ingest.
pub struct IngestLoad {
    measured_at: Instant,
    /// The busy time of ingest at that time, in seconds.
    busy_secs: f64,
}

impl IngestLoad {
    pub fn new(metrics: &Metrics) -> Self {
        Self {
            measured_at: Instant::now(),
            busy_secs: metrics.ingest_busy.get(),
        }
    }

    /// The load since the last call: 0 without uploads, 1 when ingest is busy.
    pub fn measure(&mut self, metrics: &Metrics) -> f64 {
        let before = std::mem::replace(self, Self::new(metrics));
        let elapsed_secs = (self.measured_at - before.measured_at)
            .as_secs_f64()
            .max(0.001);
        ((self.busy_secs - before.busy_secs) / elapsed_secs / BUSY_SHARE).clamp(0.0, 1.0)
    }
}

/// The size of the batches of one run.
pub struct Pace {
    size: f64,
    load: IngestLoad,
    /// The rest after a batch while no upload runs, as a multiple of the batch's duration.
    idle_rest: f64,
    /// The time for which batches held the writer.
    duration: Histogram,
}

impl Pace {
    pub fn new(core: &Core, idle_rest: f64, duration: Histogram) -> Self {
        Self::with(IngestLoad::new(&core.metrics), idle_rest, duration)
    }

    fn with(load: IngestLoad, idle_rest: f64, duration: Histogram) -> Self {
        Self {
            size: FIRST_SIZE as f64,
            load,
            idle_rest,
            duration,
        }
    }

    /// The number of rows that the next batch may write.
    pub fn size(&self) -> i64 {
        (self.size as i64).clamp(LEAST_SIZE, MOST_SIZE)
    }

    /// Learns from a batch of so many rows, whose transaction has just ended. Returns how long it
    /// took.
    pub fn measure(&mut self, held: &Held, rows: i64) -> Duration {
        let ended_at = Instant::now();
        let commits_at = held.commits_at.unwrap_or(ended_at);
        let (work, commit) = (commits_at - held.began_at, ended_at - commits_at);
        self.duration.observe((work + commit).as_secs_f64());
        self.learn(work, commit, rows);
        work + commit
    }

    /// Rests after work that took so long and has written so many rows.
    pub async fn rest(&mut self, core: &Core, took: Duration, rows: i64) {
        let busy = self.load.measure(&core.metrics);
        let rest = took.mul_f64(self.idle_rest + (BUSY_REST - self.idle_rest) * busy);
        let rest = rest.max(Duration::from_secs_f64(
            rows.max(0) as f64 / BUSY_ROWS_PER_SEC * busy,
        ));
        core.shutdown
            .run_until_cancelled(tokio::time::sleep(rest))
            .await;
    }

    fn learn(&mut self, work: Duration, commit: Duration, rows: i64) {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let wanted = (WANTED_MS - ms(commit)).clamp(LEAST_WORK_MS, MOST_WORK_MS);
        let factor = (wanted / ms(work).max(0.01)).clamp(0.2, 2.0);
        // A batch that was not full is no evidence for a larger one.
        if factor < 1.0 || rows >= self.size() {
            self.size = (self.size * factor).clamp(LEAST_SIZE as f64, MOST_SIZE as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_grow_while_they_are_quick_and_shrink_when_they_are_not() {
        let ms = Duration::from_millis;
        let load = IngestLoad {
            measured_at: Instant::now(),
            busy_secs: 0.0,
        };
        let mut pace = Pace::with(load, 0.5, Histogram::new([1.0]));
        for _ in 0..20 {
            pace.learn(ms(1), ms(2), pace.size());
        }
        assert_eq!(pace.size(), MOST_SIZE);
        pace.learn(ms(80), ms(2), pace.size());
        assert_eq!(pace.size(), 1024);
        pace.learn(ms(1), ms(2), 5);
        assert_eq!(
            pace.size(),
            1024,
            "a small batch was quick because it was small"
        );
        for _ in 0..20 {
            pace.learn(ms(500), ms(500), pace.size());
        }
        assert_eq!(pace.size(), LEAST_SIZE);
        // Slow commits leave less time for the work, but some.
        pace.size = 100.0;
        pace.learn(ms(16), ms(60), 100);
        assert_eq!(pace.size(), 50);
    }
}
