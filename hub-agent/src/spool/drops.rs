//! Logs that records are dropped because the spool is full: when it begins, once an hour while it
//! continues, and when it ends. The counters of the spool have the exact numbers.

use std::time::{Duration, Instant};

/// How often the number of dropped records is logged while dropping continues.
const LOG_EVERY: Duration = Duration::from_secs(3_600);

/// Each drop frees space for a while: dropping has ended only after this time without one.
const ENDED_AFTER: Duration = Duration::from_secs(600);

#[derive(Default)]
pub struct DropLog(Option<Dropping>);

/// A period in which records are dropped.
struct Dropping {
    logged_at: Instant,
    last_at: Instant,
    records: u64,
}

impl DropLog {
    /// Notes dropped records, and logs the first of a period.
    pub fn note(&mut self, records: u64, limit_bytes: u64) {
        if records == 0 {
            return;
        }
        let now = Instant::now();
        match &mut self.0 {
            Some(dropping) => {
                dropping.last_at = now;
                dropping.records += records;
            }
            None => {
                tracing::warn!(
                    limit_bytes,
                    "the spool is full; the oldest records are dropped and counted"
                );
                self.0 = Some(Dropping {
                    logged_at: now,
                    last_at: now,
                    records,
                });
            }
        }
    }

    /// Logs the number of dropped records when that is due.
    pub fn log(&mut self) {
        let Some(dropping) = &mut self.0 else { return };
        let records = dropping.records;
        if dropping.last_at.elapsed() >= ENDED_AFTER {
            tracing::warn!(
                records,
                "the spool is no longer full; this many records were dropped"
            );
            self.0 = None;
        } else if dropping.logged_at.elapsed() >= LOG_EVERY {
            dropping.logged_at = Instant::now();
            tracing::warn!(
                records,
                "the spool is still full; this many records were dropped"
            );
        }
    }
}
