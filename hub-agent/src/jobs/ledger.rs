//! What is done for the jobs, on disk: the one under way with its step, those that are over, what has yet to be told, and the releases that
//! failed here. One file, replaced whole: a step and the event that tells of it are there together or not at all. Writing it takes no room
//! that is not had already: a step that frees a full disk can be written on it.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hub_protocol::job::{DesiredJob, HubJobEventKind, HubJobEventRequest, MaintenanceWindow};
use hub_protocol::release::ReleaseOffer;
use hub_protocol::{AppUuid, HubJobUuid, TenantUuid, Timestamp};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{Failed, JobRecord, View};
use crate::clock::machine_now;
use crate::identity::StateDir;

const FILE: &str = "jobs.json";
/// The file as it was before, and its room: the next content is written over it, then the two change names.
const SPARE: &str = "jobs.json.spare";
/// Both have at least this much room left, and grow by it.
const ROOM_BYTES: usize = 32 << 10;

/// Jobs that are over and may still be in the desired state: more than it can hold.
const MAX_OVER: usize = 256;
const MAX_FAILED_RELEASES: usize = 64;
const MAX_MESSAGE_CHARS: usize = 1_000;
/// So long before its deadline a job is given up at the latest, or a tenth of its time where that is less.
const LAST_WORD_SECS: i64 = 30;
const RETRY_EVERY: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Kept {
    /// Whose apps are on this hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<TenantUuid>,
    pub current: Option<Current>,
    /// Begun and put aside, so that others can be done meanwhile: until their window opens, or until another's window is used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parked: Vec<Current>,
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
    pub at: Timestamp,
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
    /// Nothing is left to do before its window opens.
    #[serde(default)]
    pub waits: bool,
    /// When the agent gives up what is not ready by then: before the deadline, so that the service still hears why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_up_at: Option<Timestamp>,
}

impl Current {
    pub fn give_up_at(&self) -> Timestamp {
        self.give_up_at.unwrap_or(self.job.deadline_at)
    }
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
        let folder = self.state_dir.path();
        let (file, spare) = (folder.join(FILE), folder.join(SPARE));
        write_over(&spare, serde_json::to_vec(&self.kept)?)?;
        // There is no older one yet, or this file system cannot do it: then the spare is made anew each time.
        if renameat_with(CWD, &spare, CWD, &file, RenameFlags::EXCHANGE).is_err() {
            std::fs::rename(&spare, &file)?;
        }
        File::open(folder)?.sync_all()
    }

    fn show(&self) {
        let mut shown = self.view.lock();
        let before = shown.job.take();
        shown.job = self.kept.current.as_ref().or(self.kept.parked.first()).map(|current| {
            let job = &current.job;
            let trouble = match &job.window {
                Some(window) if current.waits => Some(waits_for(window)),
                _ => before.filter(|before| before.hub_job_uuid == job.hub_job_uuid).and_then(|before| before.trouble),
            };
            super::JobShown {
                hub_job_uuid: job.hub_job_uuid,
                job_type: job.job_type,
                step: current.step.shown().to_owned(),
                progress: current.progress,
                deadline_at: job.deadline_at,
                trouble,
            }
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
    /// `now` where the time is known.
    pub fn begin(&mut self, job: DesiredJob, now: Option<Timestamp>) {
        self.tell(job.hub_job_uuid, HubJobEventKind::Accepted, None, Some(0), None);
        let give_up_at = now.map(|now| {
            let left_secs = job.deadline_at.as_secs().saturating_sub(now.as_secs());
            job.deadline_at.plus_secs(-(left_secs / 10).clamp(0, LAST_WORD_SECS))
        });
        let (step, waits) = (Step::Preparing, false);
        self.current = Some(Current { job, step, progress: 0, offer: None, staged: None, waits, give_up_at });
    }

    /// Ends a job that was not begun, for the agent does not understand it.
    pub fn refuse(&mut self, hub_job_uuid: HubJobUuid, reason: &str, message: String) {
        let detail = serde_json::json!({ "reason": reason });
        self.tell(hub_job_uuid, HubJobEventKind::Failed, Some(message), None, Some(detail));
        self.is_over(hub_job_uuid);
    }

    /// Puts the job under way aside until its window opens.
    pub fn park_until_window(&mut self) {
        let Some(mut current) = self.current.take() else { return };
        if let Some(window) = &current.job.window {
            self.tell(current.job.hub_job_uuid, HubJobEventKind::Log, Some(waits_for(window)), None, None);
        }
        current.waits = true;
        self.parked.push(current);
    }

    /// Puts the job under way aside for another whose window is open.
    pub fn park_for_another(&mut self) {
        self.parked.extend(self.current.take());
    }

    /// Goes on with a job that was put aside.
    pub fn take_up(&mut self, hub_job_uuid: HubJobUuid) {
        let found = self.parked.iter().position(|parked| parked.job.hub_job_uuid == hub_job_uuid);
        if let Some(at) = found.filter(|_| self.current.is_none()) {
            let parked = self.parked.remove(at);
            self.current = Some(Current { waits: false, ..parked });
        }
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

    /// The helper has nothing of this app any more that a job had it make ready.
    pub fn unstage(&mut self, app_uuid: AppUuid) {
        for parked in self.parked.iter_mut().filter(|parked| parked.job.app_uuid == Some(app_uuid)) {
            if parked.staged.take().is_some() {
                parked.waits = false;
            }
        }
    }

    /// Remembers that a file did not do here what it should: it is not tried again by itself.
    pub fn remember_failure(&mut self, sha256: &str, failed: &Failed) {
        if self.failed_releases.len() >= MAX_FAILED_RELEASES {
            let oldest =
                self.failed_releases.iter().min_by_key(|(_, failed)| failed.at).map(|(sha256, _)| sha256.clone());
            oldest.and_then(|sha256| self.failed_releases.remove(&sha256));
        }
        let message = failed.message.chars().take(MAX_MESSAGE_CHARS).collect();
        let failed = FailedRelease { reason: failed.reason.to_owned(), message, at: machine_now() };
        self.failed_releases.insert(sha256.to_owned(), failed);
    }

    fn end(&mut self) -> Option<Current> {
        let current = self.current.take()?;
        self.is_over(current.job.hub_job_uuid);
        Some(current)
    }

    fn is_over(&mut self, hub_job_uuid: HubJobUuid) {
        self.over.push_back(hub_job_uuid);
        let too_many = self.over.len().saturating_sub(MAX_OVER);
        self.over.drain(..too_many);
    }

    fn tell(
        &mut self,
        hub_job_uuid: HubJobUuid,
        kind: HubJobEventKind,
        message: Option<String>,
        progress: Option<i64>,
        detail: Option<Value>,
    ) {
        let message = message.map(|message| cleaned(&message));
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

fn waits_for(window: &MaintenanceWindow) -> String {
    format!("waits for its maintenance window, {} to {}", window.start, window.end)
}

/// A text as the service takes it: what others said may hold anything, and an event that is refused is lost.
fn cleaned(text: &str) -> String {
    let foreign = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    text.chars().take(MAX_MESSAGE_CHARS).map(|c| if foreign(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Writes a file from its beginning without giving up what room it has: empty lines after JSON mean nothing.
fn write_over(path: &Path, mut json: Vec<u8>) -> std::io::Result<()> {
    let mut file = File::options().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    let has_bytes = usize::try_from(file.metadata()?.len()).unwrap_or(0);
    let wanted_bytes = (json.len() + ROOM_BYTES).next_multiple_of(ROOM_BYTES);
    json.resize(json.len().max(has_bytes), b'\n');
    file.write_all(&json)?;
    // Room for later, where there is some.
    let _ = file.write_all(&vec![b'\n'; wanted_bytes.saturating_sub(json.len())]);
    file.sync_all()
}
