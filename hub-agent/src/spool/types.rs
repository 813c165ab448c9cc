//! The messages between the handle of the spool and its thread.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use hub_protocol::{BatchUuid, Timestamp};
use tokio::sync::oneshot;

use super::segment::{Kind, PerKind};
use super::store::{Counters, Usage};
use crate::ble::Heard;

#[derive(Clone, Debug)]
pub struct SpoolConfig {
    /// Directory of the spool's file.
    pub dir: PathBuf,
    pub max_bytes: u64,
    /// The spool does not grow when the disk has less free space than this.
    pub disk_headroom_bytes: u64,
    /// Records are on disk after this time at the latest.
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

/// An upload. It is sent unchanged, as often as necessary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub kind: Kind,
    pub batch: BatchUuid,
    pub records: u64,
    /// JSON, compressed with zstd.
    pub body: Bytes,
}

/// How full the spool is, and what it dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpoolStats {
    pub usage: PerKind<Usage>,
    pub counters: Counters,
    /// The time of the oldest record.
    pub oldest: Option<Timestamp>,
    /// Why nothing can be written to disk, while that is so.
    pub trouble: Option<String>,
    /// The size of what another version wrote and this one cannot read.
    pub set_aside_bytes: u64,
}

impl SpoolStats {
    pub fn total(&self) -> Usage {
        self.usage
            .iter()
            .fold(Usage::default(), |sum, usage| Usage {
                segments: sum.segments + usage.segments,
                records: sum.records + usage.records,
                bytes: sum.bytes + usage.bytes,
            })
    }
}

pub enum Command {
    Heard(Vec<Heard>),
    Record {
        kind: Kind,
        json: Box<serde_json::value::RawValue>,
        at: Timestamp,
        clock_offset_micros: i64,
    },
    /// A record that is on disk when the reply comes, or not stored.
    Keep {
        kind: Kind,
        json: Box<serde_json::value::RawValue>,
        at: Timestamp,
        clock_offset_micros: i64,
        reply: oneshot::Sender<bool>,
    },
    /// Advertisements that were lost before they came here.
    Lost(u64),
    Tick,
    Next {
        kind: Kind,
        max_records: u64,
        reply: oneshot::Sender<Option<Batch>>,
    },
    Resolve {
        kind: Kind,
        batch: BatchUuid,
        verdict: Verdict,
    },
    Forget,
    Close(oneshot::Sender<()>),
}

/// The outcome of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The service has stored it, except for the rejected records.
    Stored { rejected: u64 },
    /// The service will never accept it.
    Refused,
    /// The service may accept its parts.
    TooLarge,
}
