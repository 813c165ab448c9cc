//! Jobs of the desired state, done one at a time in their order: apps installed and removed, the agent updated.
//! Owns `jobs.json`, in which every step stands before it is taken, and the downloads. A kill or a power cut at any moment goes on or
//! undoes at the next start; a job ends once, and its end is true. What needs root is asked of the helper, which trusts nothing of it.

mod apps;
mod download;
mod engine;
mod helping;
mod idle;
mod ledger;
mod obtain;
pub mod release;
mod steps;
#[cfg(test)]
mod tests;
mod window;
mod work;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hub_protocol::job::{DesiredJob, HubJobEventRequest, HubJobType, InstalledApp};
use hub_protocol::{HubJobUuid, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};

pub use apps::report_installed;
pub use engine::Jobs;
pub use helping::Helping;

/// A job as the service wants it.
#[derive(Clone, Debug, PartialEq)]
pub enum WantedJob {
    Known(DesiredJob),
    /// Of a service that is newer than this agent.
    NotUnderstood {
        hub_job_uuid: HubJobUuid,
        why: String,
    },
}

impl WantedJob {
    pub fn hub_job_uuid(&self) -> HubJobUuid {
        match self {
            Self::Known(job) => job.hub_job_uuid,
            Self::NotUnderstood { hub_job_uuid, .. } => *hub_job_uuid,
        }
    }
}

/// The jobs of the desired state; `None` until the service has told.
pub type Wanted = Option<Vec<WantedJob>>;

pub fn wanted() -> (watch::Sender<Wanted>, watch::Receiver<Wanted>) {
    watch::channel(None)
}

/// What happened to a job, as the spool keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobRecord {
    pub hub_job_uuid: HubJobUuid,
    pub event: HubJobEventRequest,
}

/// Why a job failed. `reason` is one of the stable words below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub reason: &'static str,
    pub message: String,
}

pub mod reason {
    macro_rules! words {
        ($($(#[$doc:meta])* $word:ident),* $(,)?) => {
            $($(#[$doc])* pub const $word: &str = stringify!($word);)*
            const ALL: &[&str] = &[$($word),*];
        };
    }

    words! {
        BAD_SIGNATURE,
        /// The release is not what the job names, or the job is not one this agent knows how to do.
        BAD_RELEASE,
        COUNTER_TOO_LOW,
        DID_NOT_START,
        DIGEST_MISMATCH,
        DOWNLOAD_FAILED,
        EXPIRED,
        FAILED_BEFORE,
        HEALTH_CHECK_FAILED,
        HELPER_UNAVAILABLE,
        NO_LAUNCHER,
        NO_SPACE,
        NOT_CONFIRMED,
        WRONG_ARCHITECTURE,
    }

    /// A word that was read from a disk.
    pub fn known(word: &str) -> Option<&'static str> {
        ALL.iter().copied().find(|known| *known == word)
    }
}

/// Why something did not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It never will.
    Fatal(Failed),
    /// It may, later.
    Later(String),
}

impl Trouble {
    pub fn fatal(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Fatal(Failed { reason, message: message.into() })
    }
}

/// Settings of the jobs.
#[derive(Clone, Debug)]
pub struct JobsConfig {
    pub release_keys: PathBuf,
    /// What is left to others of the disk.
    pub headroom_bytes: u64,
}

/// What others see of the jobs.
#[derive(Clone, Default)]
pub struct View(Arc<Mutex<Shown>>);

#[derive(Clone, Debug, Default)]
pub struct Shown {
    pub job: Option<JobShown>,
    /// `None` while the helper was never asked, or does not answer.
    pub installed: Option<Vec<InstalledApp>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobShown {
    pub hub_job_uuid: HubJobUuid,
    #[serde(rename = "type")]
    pub job_type: HubJobType,
    /// What is being done.
    pub step: String,
    pub progress: i64,
    pub deadline_at: Timestamp,
    /// What is in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

impl View {
    pub fn get(&self) -> Shown {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rings when something about the installed apps may have changed.
pub type AppsBell = Arc<Notify>;
