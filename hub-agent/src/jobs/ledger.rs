//! What is done for the jobs, on disk: the one under way with its step, those that are over, what has yet to be told, and the releases that
//! failed here. One file, replaced whole: a step and the event that tells of it are there together or not at all.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use hub_protocol::job::{DesiredJob, HubJobEventKind, HubJobEventRequest};
use hub_protocol::release::ReleaseOffer;
use hub_protocol::{HubJobUuid, TenantUuid};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{Failed, JobRecord, View};
use crate::clock::machine_now;
use crate::identity::StateDir;

const FILE: &str = "jobs.json";

/// Jobs that are over and may still be in the desired state: more than it can hold.
const MAX_OVER: usize = 256;
const MAX_FAILED_RELEASES: usize = 64;
const MAX_MESSAGE_CHARS: usize = 1_000;
const RETRY_EVERY: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Kept {
    /// Whose apps are on this hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<TenantUuid>,
    pub current: Option<Current>,
    /// Oldest first. The service may list them until their last event has reached it.
    pub over: VecDeque<HubJobUuid>,
    /// Events that are not yet in the spool, in order.
    pub outbox: VecDeque<JobRecord>,
    /// By digest of the file: why it failed.
    pub failed_releases: BTreeMap<String, FailedRelease>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedRelease {
    pub reason: String,
    pub message: String,
    pub at: hub_protocol::Timestamp,
}

/// The job under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Current {
    pub job: DesiredJob,
    pub step: Step,
    pub progress: i64,
    /// What the service offered for it, once that was found to be good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<ReleaseOffer>,
    /// What the helper called it, once it has the file: nothing need be downloaded any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged: Option<String>,
}

/// How far a job is. What a step does may have been done when the agent starts again, and is then done once more: each can be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "name")]
pub enum Step {
    /// Nothing has changed on the hub: the job can be dropped.
    Preparing,
    Activating,
    /// The new version runs, and is not trusted yet.
    Watching {
        /// How often this was begun: a version that takes the hub down is not watched for ever.
        rounds: u32,
    },
    Committing,
    RollingBack {
        reason: String,
        message: String,
    },
    Removing,
    /// The launcher is to start, or has started, another version of the agent.
    OnTrial {
        dir: String,
    },
}

impl Step {
    fn shown(&self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Activating => "activating",
            Self::Watching { .. } => "watching whether it runs",
            Self::Committing => "keeping the new version",
            Self::RollingBack { .. } => "going back to the version before",
            Self::Removing => "removing",
            Self::OnTrial { .. } => "a new version of the agent is on trial",
        }
    }
}

/// The file, and what is in it.
pub struct Ledger {
    state_dir: Arc<StateDir>,
    kept: Kept,
    view: View,
}

impl Ledger {
    pub fn load(state_dir: Arc<StateDir>, view: View) -> Self {
        let kept = match std::fs::read(state_dir.path().join(FILE)) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                // The helper still knows what is installed: only what was under way is lost, and the service hands it out again.
                tracing::error!(%error, "the jobs on disk are damaged; what was under way is begun anew");
                Kept::default()
            }),
            Err(_) => Kept::default(),
        };
        let ledger = Self { state_dir, kept, view };
        ledger.show();
        ledger
    }

    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    pub fn current(&self) -> Option<&Current> {
        self.kept.current.as_ref()
    }

    /// Makes a change, and returns when it is on disk: nothing that follows from it may be done before.
    pub async fn change(&mut self, change: impl FnOnce(&mut Kept)) {
        change(&mut self.kept);
        self.show();
        let mut said = false;
        while let Err(error) = self.save() {
            if !std::mem::replace(&mut said, true) {
                tracing::error!(%error, "the jobs cannot be written; they wait until they can. Make room on the disk");
            }
            tokio::time::sleep(RETRY_EVERY).await;
        }
    }

    fn save(&self) -> std::io::Result<()> {
        self.state_dir.replace(FILE, &serde_json::to_vec(&self.kept)?)
    }

    fn show(&self) {
        let mut shown = self.view.lock();
        let trouble = shown.job.take().and_then(|job| job.trouble);
        shown.job = self.kept.current.as_ref().map(|current| super::JobShown {
            hub_job_uuid: current.job.hub_job_uuid,
            job_type: current.job.job_type,
            step: current.step.shown().to_owned(),
            progress: current.progress,
            deadline_at: current.job.deadline_at,
            trouble,
        });
    }

    /// Says what is in the way of the job under way, or that nothing is.
    pub fn trouble(&self, trouble: Option<&str>) {
        if let Some(job) = &mut self.view.lock().job {
            job.trouble = trouble.map(str::to_owned);
        }
    }
}

impl Kept {
    pub fn begin(&mut self, job: DesiredJob) {
        self.tell(job.hub_job_uuid, HubJobEventKind::Accepted, None, Some(0), None);
        self.current = Some(Current { job, step: Step::Preparing, progress: 0, offer: None, staged: None });
    }

    /// The job under way goes on to this step.
    pub fn enter(&mut self, step: Step) {
        if let Some(current) = &mut self.current {
            current.step = step;
        }
    }

    /// Tells how far the job is, if that is further than before.
    pub fn progress(&mut self, percent: i64, message: &str) {
        let Some(current) = &mut self.current else { return };
        if percent <= current.progress {
            return;
        }
        current.progress = percent;
        let job_uuid = current.job.hub_job_uuid;
        self.tell(job_uuid, HubJobEventKind::Progress, Some(message.to_owned()), Some(percent), None);
    }

    /// Something a person may want to know.
    pub fn log(&mut self, message: String) {
        let Some(current) = &self.current else { return };
        self.tell(current.job.hub_job_uuid, HubJobEventKind::Log, Some(message), None, None);
    }

    pub fn succeed(&mut self, message: String, detail: Option<Value>) {
        let Some(current) = self.end() else { return };
        self.tell(current.job.hub_job_uuid, HubJobEventKind::Succeeded, Some(message), Some(100), detail);
    }

    pub fn fail(&mut self, reason: &str, message: String) {
        let Some(current) = self.end() else { return };
        let detail = serde_json::json!({ "reason": reason });
        self.tell(current.job.hub_job_uuid, HubJobEventKind::Failed, Some(message), None, Some(detail));
    }

    /// Ends the job without a word: the service has ended it.
    pub fn drop_current(&mut self) {
        self.end();
    }

    /// Remembers that a file did not do here what it should: it is not tried again by itself.
    pub fn remember_failure(&mut self, sha256: &str, failed: &Failed) {
        if self.failed_releases.len() >= MAX_FAILED_RELEASES {
            let oldest =
                self.failed_releases.iter().min_by_key(|(_, failed)| failed.at).map(|(sha256, _)| sha256.clone());
            oldest.and_then(|sha256| self.failed_releases.remove(&sha256));
        }
        let failed =
            FailedRelease { reason: failed.reason.to_owned(), message: failed.message.clone(), at: machine_now() };
        self.failed_releases.insert(sha256.to_owned(), failed);
    }

    fn end(&mut self) -> Option<Current> {
        let current = self.current.take()?;
        self.over.push_back(current.job.hub_job_uuid);
        let too_many = self.over.len().saturating_sub(MAX_OVER);
        self.over.drain(..too_many);
        Some(current)
    }

    fn tell(
        &mut self,
        hub_job_uuid: HubJobUuid,
        kind: HubJobEventKind,
        message: Option<String>,
        progress: Option<i64>,
        detail: Option<Value>,
    ) {
        let message = message.map(|message| message.chars().take(MAX_MESSAGE_CHARS).collect());
        // The machine's own time: the spool mends it where that is wrong.
        let event = HubJobEventRequest {
            event_uuid: Uuid::now_v7(),
            kind,
            message,
            progress,
            detail,
            occurred_at: machine_now(),
        };
        self.outbox.push_back(JobRecord { hub_job_uuid, event });
    }
}
