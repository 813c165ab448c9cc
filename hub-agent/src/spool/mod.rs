//! Records that are not yet delivered, on disk. Bounded: when the spool is full, the oldest
//! advertisements are dropped and counted. A batch keeps its id and its content from before it is
//! first sent until the service has answered, through any crash. Never calls the service.

mod boots;
mod drops;
mod import;
mod quarantine;
mod segment;
mod store;
mod types;
mod worker;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hub_protocol::BatchUuid;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use crate::ble::Heard;
use crate::clock::{Clock, machine_now, machine_offset_micros};

pub use segment::{Kind, PerKind};
use types::Command;
pub use types::{Batch, SpoolConfig, SpoolStats, Verdict};

/// The spool's thread has ended: nothing more can be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the spool has stopped")]
pub struct SpoolStopped;

/// A handle of the spool. The thread ends when all handles are dropped, or at `close`.
#[derive(Clone)]
pub struct Spool {
    commands: mpsc::Sender<Command>,
    stats: Arc<Mutex<SpoolStats>>,
}

impl Spool {
    /// Opens the spool and starts its thread. A spool that cannot be opened is not an error: it
    /// holds what fits in memory and keeps trying. Must be called within a tokio runtime. `alive`
    /// is called whenever the thread has done something.
    pub fn start(
        config: SpoolConfig,
        clock: Arc<Clock>,
        alive: impl Fn() + Send + 'static,
    ) -> std::io::Result<Self> {
        // The queue is short, because a command may hold the advertisements of a tenth of a second:
        // a slow spool slows down its sender.
        let (commands, inbox) = mpsc::channel(16);
        let stats = Arc::new(Mutex::new(SpoolStats::default()));
        let commit_every = config.commit_every;
        let mut worker = worker::Worker::new(config, clock, stats.clone())?;
        std::thread::Builder::new()
            .name("spool".into())
            .spawn(move || worker.run(inbox, alive))?;
        let ticks = commands.downgrade();
        tokio::spawn(async move {
            let mut interval =
                tokio::time::interval((commit_every / 5).max(Duration::from_millis(10)));
            interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                interval.tick().await;
                let Some(commands) = ticks.upgrade() else {
                    break;
                };
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

    /// Stores one record of telemetry or logs, with the machine's own time now.
    pub async fn record(&self, kind: Kind, record: &impl Serialize) -> Result<(), SpoolStopped> {
        let json = match serde_json::value::to_raw_value(record) {
            Ok(json) => json,
            Err(error) => {
                tracing::error!(%error, "a record of the agent cannot be encoded as JSON and is dropped");
                return Ok(());
            }
        };
        let record = Command::Record {
            kind,
            json,
            at: machine_now(),
            clock_offset_micros: machine_offset_micros(),
        };
        self.send(record).await
    }

    /// Stores one record of a kind that is uploaded one by one. False if the disk does not accept
    /// it: it is then not stored at all.
    pub async fn keep(&self, kind: Kind, record: &impl Serialize) -> Result<bool, SpoolStopped> {
        let json = match serde_json::value::to_raw_value(record) {
            Ok(json) => json,
            Err(error) => {
                tracing::error!(%error, "a record of the agent cannot be encoded as JSON and is dropped");
                return Ok(true);
            }
        };
        let (reply, answer) = oneshot::channel();
        let (at, clock_offset_micros) = (machine_now(), machine_offset_micros());
        self.send(Command::Keep {
            kind,
            json,
            at,
            clock_offset_micros,
            reply,
        })
        .await?;
        answer.await.map_err(|_| SpoolStopped)
    }

    /// Counts advertisements that were lost before they reached the spool.
    pub async fn lost(&self, events: u64) -> Result<(), SpoolStopped> {
        self.send(Command::Lost(events)).await
    }

    /// The next batch of a kind. Returns the same batch until it is resolved.
    pub async fn next(&self, kind: Kind, max_records: u64) -> Result<Option<Batch>, SpoolStopped> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Next {
            kind,
            max_records,
            reply,
        })
        .await?;
        answer.await.map_err(|_| SpoolStopped)
    }

    pub async fn resolve(
        &self,
        kind: Kind,
        batch: BatchUuid,
        verdict: Verdict,
    ) -> Result<(), SpoolStopped> {
        self.send(Command::Resolve {
            kind,
            batch,
            verdict,
        })
        .await
    }

    /// Drops and counts all records: they belong to an owner that the hub no longer has.
    pub async fn forget(&self) -> Result<(), SpoolStopped> {
        self.send(Command::Forget).await
    }

    pub fn stats(&self) -> SpoolStats {
        self.stats
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Writes the records in memory to disk and ends the thread.
    pub async fn close(&self) -> Result<(), SpoolStopped> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Close(reply)).await?;
        answer.await.map_err(|_| SpoolStopped)
    }
}

#[cfg(test)]
mod tests;
