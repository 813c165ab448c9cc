//! What was heard and not yet delivered, on disk. Bounded: when it is full the oldest advertisements go first, and what went is counted.
//! A batch keeps its id and its content from before it is first sent until the service has answered, through any crash.
//! Never talks to the service.

mod aside;
mod segment;
mod store;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hub_protocol::{BatchUuid, Timestamp};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use crate::ble::Heard;
use crate::clock::{Clock, machine_now, machine_offset_micros};

pub use segment::{Kind, PerKind};
pub use store::{Counters, Usage};

#[derive(Clone, Debug)]
pub struct SpoolConfig {
    /// Directory of the spool's file.
    pub dir: PathBuf,
    pub max_bytes: u64,
    /// The spool does not grow when the disk has less than this left.
    pub disk_headroom_bytes: u64,
    /// What was given is on disk after this long at the latest.
    pub commit_every: Duration,
}

impl SpoolConfig {
    /// The defaults, in this directory.
    pub fn of(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            max_bytes: 256 << 20,
            disk_headroom_bytes: 64 << 20,
            commit_every: Duration::from_secs(1),
        }
    }
}

/// One upload: to be sent as it is, as often as it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub kind: Kind,
    pub batch: BatchUuid,
    pub records: u64,
    /// JSON, compressed with zstd.
    pub body: Bytes,
}

/// How full the spool is, and what it had to give up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpoolStats {
    pub usage: PerKind<Usage>,
    pub counters: Counters,
    /// When the oldest record is from.
    pub oldest: Option<Timestamp>,
    /// Why nothing can be written to disk, while that is so.
    pub trouble: Option<String>,
}

impl SpoolStats {
    pub fn total(&self) -> Usage {
        self.usage.iter().fold(Usage::default(), |sum, usage| Usage {
            segments: sum.segments + usage.segments,
            records: sum.records + usage.records,
            bytes: sum.bytes + usage.bytes,
        })
    }
}

/// The spool's thread has ended: nothing more can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the spool has stopped")]
pub struct SpoolStopped;

enum Command {
    Heard(Vec<Heard>),
    Record {
        kind: Kind,
        json: Box<serde_json::value::RawValue>,
        at: Timestamp,
        clock_offset_micros: i64,
    },
    /// One record that is on disk when the reply comes, or nowhere.
    Keep {
        kind: Kind,
        json: Box<serde_json::value::RawValue>,
        at: Timestamp,
        clock_offset_micros: i64,
        reply: oneshot::Sender<bool>,
    },
    /// Advertisements lost before they came here.
    Lost(u64),
    Tick,
    Next {
        kind: Kind,
        max_records: u64,
        reply: oneshot::Sender<Option<Batch>>,
    },
    Settle {
        kind: Kind,
        batch: BatchUuid,
        verdict: Verdict,
    },
    Forget,
    Close(oneshot::Sender<()>),
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The service has it, all but so many records that it will not take.
    Stored { rejected: u64 },
    /// The service will never take it.
    Refused,
    /// The service may take it in smaller parts.
    TooLarge,
}

/// A handle on the spool; its thread ends when all of them are gone, or at `close`.
#[derive(Clone)]
pub struct Spool {
    commands: mpsc::Sender<Command>,
    stats: Arc<Mutex<SpoolStats>>,
}

impl Spool {
    /// Opens the spool and starts its thread. A spool that cannot be opened is not an error: it keeps what fits in memory and goes
    /// on trying. Must be called within a tokio runtime. `alive` is called whenever the thread has done something.
    pub fn start(config: SpoolConfig, clock: Arc<Clock>, alive: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        // Few, for each may hold what was heard in a tenth of a second: a spool that is slow slows down who feeds it.
        let (commands, inbox) = mpsc::channel(16);
        let stats = Arc::new(Mutex::new(SpoolStats::default()));
        let commit_every = config.commit_every;
        let mut worker = worker::Worker::new(config, clock, stats.clone())?;
        std::thread::Builder::new().name("spool".into()).spawn(move || worker.run(inbox, alive))?;
        let ticks = commands.downgrade();
        tokio::spawn(async move {
            let mut interval = tokio::time::interval((commit_every / 5).max(Duration::from_millis(10)));
            interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                interval.tick().await;
                let Some(commands) = ticks.upgrade() else { break };
                if commands.send(Command::Tick).await.is_err() {
                    break;
                }
            }
        });
        Ok(Self { commands, stats })
    }

    async fn send(&self, command: Command) -> Result<(), SpoolStopped> {
        self.commands.send(command).await.map_err(|_| SpoolStopped)
    }

    pub async fn append(&self, heard: Vec<Heard>) -> Result<(), SpoolStopped> {
        self.send(Command::Heard(heard)).await
    }

    /// Keeps one record of telemetry or logs, made now by the machine's own clock.
    pub async fn record(&self, kind: Kind, record: &impl Serialize) -> Result<(), SpoolStopped> {
        let json = match serde_json::value::to_raw_value(record) {
            Ok(json) => json,
            Err(error) => {
                tracing::error!(%error, "a record of the agent's own cannot be written as JSON and is left out");
                return Ok(());
            }
        };
        let record = Command::Record { kind, json, at: machine_now(), clock_offset_micros: machine_offset_micros() };
        self.send(record).await
    }

    /// Keeps one record of a kind that goes by single records. False when the disk does not take it: it is then not kept at all.
    pub async fn keep(&self, kind: Kind, record: &impl Serialize) -> Result<bool, SpoolStopped> {
        let json = match serde_json::value::to_raw_value(record) {
            Ok(json) => json,
            Err(error) => {
                tracing::error!(%error, "a record of the agent's own cannot be written as JSON and is left out");
                return Ok(true);
            }
        };
        let (reply, answer) = oneshot::channel();
        let (at, clock_offset_micros) = (machine_now(), machine_offset_micros());
        self.send(Command::Keep { kind, json, at, clock_offset_micros, reply }).await?;
        answer.await.map_err(|_| SpoolStopped)
    }

    /// Counts advertisements that were lost before they reached the spool.
    pub async fn lost(&self, events: u64) -> Result<(), SpoolStopped> {
        self.send(Command::Lost(events)).await
    }

    /// The next upload of a kind. Until it is settled, this gives the same one again.
    pub async fn next(&self, kind: Kind, max_records: u64) -> Result<Option<Batch>, SpoolStopped> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Next { kind, max_records, reply }).await?;
        answer.await.map_err(|_| SpoolStopped)
    }

    pub async fn settle(&self, kind: Kind, batch: BatchUuid, verdict: Verdict) -> Result<(), SpoolStopped> {
        self.send(Command::Settle { kind, batch, verdict }).await
    }

    /// Drops and counts everything: it belongs to an owner this hub no longer has.
    pub async fn forget(&self) -> Result<(), SpoolStopped> {
        self.send(Command::Forget).await
    }

    pub fn stats(&self) -> SpoolStats {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes what is still in memory to disk and ends the thread.
    pub async fn close(&self) -> Result<(), SpoolStopped> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Close(reply)).await?;
        answer.await.map_err(|_| SpoolStopped)
    }
}

#[cfg(test)]
mod tests;
