//! The state of the jobs on disk: the current job with its step, finished jobs, events that are not
//! yet in the spool, and releases that failed on this hub. The file is replaced as a whole: a step
//! and the event that reports it are stored together or not at all. Writing needs no disk space
//! that the files do not already occupy, so a step that frees a full disk can still be recorded.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hub_agent::durable;
use hub_protocol::job::{DesiredJob, HubJobEventKind, HubJobEventRequest, MaintenanceWindow};
use hub_protocol::release::ReleaseOffer;
use hub_protocol::{AppUuid, HubJobUuid, TenantUuid, Timestamp};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::job::{Failed, JobRecord};
use super::view::{JobShown, View};
use crate::clock::machine_now;
use crate::identity::StateDir;
use crate::set_aside;

const FILE: &str = "jobs.json";
/// The file's previous content. New content overwrites it, then the two exchange names.
const SPARE: &str = "jobs.json.spare";
/// The least space that both files have left, and by which they grow.
const ROOM_BYTES: usize = 32 << 10;

/// Finished jobs that may still be in the desired state: more than it can hold.
const MAX_FINISHED: usize = 256;
const MAX_FAILED_RELEASES: usize = 64;
const MAX_MESSAGE_CHARS: usize = 1_000;
/// A job is abandoned this long before its deadline, or a tenth of its time where that is less, so
/// that the service still receives the reason.
const REPORT_BEFORE_DEADLINE_SECS: i64 = 30;
const RETRY_EVERY: Duration = Duration::from_secs(5);

/// The file's content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobsState {
    /// The tenant whose apps are on this hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<TenantUuid>,
    pub current: Option<Current>,
    /// Jobs that were begun and deferred so that others can be done meanwhile: until their window
    /// opens, or until another job's window has been used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parked: Vec<Current>,
    /// Oldest first. The service may list them until it has received their last event.
    #[serde(rename = "over")]
    pub finished: VecDeque<HubJobUuid>,
    /// Events that are not yet in the spool, in order.
    pub outbox: VecDeque<JobRecord>,
    /// The failures by the digest of the file.
    pub failed_releases: BTreeMap<String, FailedRelease>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedRelease {
    pub reason: String,
    pub message: String,
    pub at: Timestamp,
}

/// A job that was begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Current {
    pub job: DesiredJob,
    pub step: Step,
    pub progress: i64,
    /// The service's offer for the job, once it was verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<ReleaseOffer>,
    /// The helper's name for the release, once it has staged it: no download is needed any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged: Option<String>,
    /// All is prepared, and the job waits for its window.
    #[serde(default, rename = "waits")]
    pub is_waiting: bool,
    /// When the agent abandons a job that is not prepared by then.
    #[serde(default, rename = "giveUpAt", skip_serializing_if = "Option::is_none")]
    pub abandon_at: Option<Timestamp>,
}

impl Current {
    pub fn abandon_at(&self) -> Timestamp {
        self.abandon_at.unwrap_or(self.job.deadline_at)
    }
}

/// The steps of a job. What each does and which follows it is described in `engine`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "name")]
pub enum Step {
    Preparing,
    Activating,
    Watching {
        /// How often watching was started: a version that takes the hub down is not watched for
        /// ever.
        rounds: u32,
    },
    Committing,
    RollingBack {
        reason: String,
        message: String,
    },
    Removing,
    OnTrial {
        dir: String,
    },
    /// Another service has accepted the hub.
    Switching,
}

impl Step {
    fn shown(&self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Activating => "activating",
            Self::Watching { .. } => "watching whether it runs",
            Self::Committing => "keeping the new version",
            Self::RollingBack { .. } => "rolling back to the previous version",
            Self::Removing => "removing",
            Self::OnTrial { .. } => "a new version of the agent is on trial",
            Self::Switching => "moving to another service",
        }
    }
}

/// The file and its content.
pub struct Ledger {
    state_dir: Arc<StateDir>,
    state: JobsState,
    view: View,
}

impl Ledger {
    pub fn load(state_dir: Arc<StateDir>, view: View) -> Self {
        let folder = state_dir.path();
        let parse = |bytes: &[u8]| {
            serde_json::from_slice::<JobsState>(bytes).map_err(|error| error.to_string())
        };
        // Without the file the helper still knows what is installed. Only the current job is lost,
        // and the service repeats it.
        let mut state = match set_aside::read(folder, FILE, parse) {
            Ok(state) => state.unwrap_or_default(),
            Err(_) => JobsState::default(),
        };
        if let Some(older) = set_aside::read_aside(folder, FILE, parse) {
            state.absorb(older);
            let written = serde_json::to_vec(&state)
                .map_err(std::io::Error::from)
                .and_then(|json| write_file(folder, json));
            if written.is_ok() {
                set_aside::discard(folder, FILE);
            }
        }
        let ledger = Self {
            state_dir,
            state,
            view,
        };
        ledger.show();
        ledger
    }

    pub fn state(&self) -> &JobsState {
        &self.state
    }

    pub fn current(&self) -> Option<&Current> {
        self.state.current.as_ref()
    }

    /// Makes a change and returns when it is on disk: nothing that depends on it may happen before.
    pub async fn change(&mut self, change: impl FnOnce(&mut JobsState)) {
        change(&mut self.state);
        self.show();
        let mut is_logged = false;
        while let Err(error) = self.save().await {
            if !std::mem::replace(&mut is_logged, true) {
                tracing::error!(%error, "the jobs cannot be written and wait until they can; free some disk space");
            }
            tokio::time::sleep(RETRY_EVERY).await;
        }
    }

    async fn save(&self) -> std::io::Result<()> {
        let json = serde_json::to_vec(&self.state)?;
        self.state_dir
            .on_disk(move |folder| write_file(folder, json))
            .await
    }

    fn show(&self) {
        let mut shown = self.view.lock();
        let before = shown.job.take();
        shown.job = self
            .state
            .current
            .as_ref()
            .or(self.state.parked.first())
            .map(|current| {
                let job = &current.job;
                let trouble = match &job.window {
                    Some(window) if current.is_waiting => Some(waiting_for(window)),
                    _ => before
                        .filter(|before| before.hub_job_uuid == job.hub_job_uuid)
                        .and_then(|before| before.trouble),
                };
                JobShown {
                    hub_job_uuid: job.hub_job_uuid,
                    job_type: job.job_type,
                    step: current.step.shown().to_owned(),
                    progress: current.progress,
                    deadline_at: job.deadline_at,
                    trouble,
                }
            });
    }
}

impl JobsState {
    /// Continues what another version of the agent had begun before this file was written.
    fn absorb(&mut self, older: Self) {
        let is_of_another_owner = |owner| older.owner.is_some_and(|before| before != owner);
        if self.owner.is_some_and(is_of_another_owner) {
            return;
        }
        self.owner = self.owner.or(older.owner);
        for record in older.outbox.into_iter().rev() {
            self.outbox.push_front(record);
        }
        for hub_job_uuid in older.finished.into_iter().rev() {
            if self.finished.len() < MAX_FINISHED && !self.finished.contains(&hub_job_uuid) {
                self.finished.push_front(hub_job_uuid);
            }
        }
        for (digest, failed) in older.failed_releases {
            if self.failed_releases.len() < MAX_FAILED_RELEASES {
                self.failed_releases.entry(digest).or_insert(failed);
            }
        }
        for begun in older.current.into_iter().chain(older.parked) {
            let hub_job_uuid = begun.job.hub_job_uuid;
            let is_known = self.finished.contains(&hub_job_uuid)
                || self
                    .current
                    .iter()
                    .chain(&self.parked)
                    .any(|known| known.job.hub_job_uuid == hub_job_uuid);
            match &self.current {
                _ if is_known => {}
                None => self.current = Some(begun),
                Some(_) => self.parked.push(begun),
            }
        }
    }

    /// Begins a job. `now` is `None` while the time is unknown.
    pub fn begin(&mut self, job: DesiredJob, now: Option<Timestamp>) {
        self.report(
            job.hub_job_uuid,
            HubJobEventKind::Accepted,
            None,
            Some(0),
            None,
        );
        let abandon_at = now.map(|now| {
            let left_secs = job.deadline_at.as_secs().saturating_sub(now.as_secs());
            job.deadline_at
                .plus_secs(-(left_secs / 10).clamp(0, REPORT_BEFORE_DEADLINE_SECS))
        });
        let (step, is_waiting) = (Step::Preparing, false);
        self.current = Some(Current {
            job,
            step,
            progress: 0,
            offer: None,
            staged: None,
            is_waiting,
            abandon_at,
        });
    }

    /// Fails a job that was not begun, because the agent does not understand it.
    pub fn refuse(&mut self, hub_job_uuid: HubJobUuid, reason: &str, message: String) {
        let detail = serde_json::json!({ "reason": reason });
        self.report(
            hub_job_uuid,
            HubJobEventKind::Failed,
            Some(message),
            None,
            Some(detail),
        );
        self.remember_finished(hub_job_uuid);
    }

    /// Defers the current job until its window opens.
    pub fn park_until_window(&mut self) {
        let Some(mut current) = self.current.take() else {
            return;
        };
        if let Some(window) = &current.job.window {
            self.report(
                current.job.hub_job_uuid,
                HubJobEventKind::Log,
                Some(waiting_for(window)),
                None,
                None,
            );
        }
        current.is_waiting = true;
        self.parked.push(current);
    }

    /// Defers the current job so that another, whose window is open, can be done.
    pub fn park_for_another(&mut self) {
        self.parked.extend(self.current.take());
    }

    /// Resumes a job that was deferred.
    pub fn resume(&mut self, hub_job_uuid: HubJobUuid) {
        let found = self
            .parked
            .iter()
            .position(|parked| parked.job.hub_job_uuid == hub_job_uuid);
        if let Some(at) = found.filter(|_| self.current.is_none()) {
            let parked = self.parked.remove(at);
            self.current = Some(Current {
                is_waiting: false,
                ..parked
            });
        }
    }

    /// The current job continues with this step.
    pub fn enter(&mut self, step: Step) {
        if let Some(current) = &mut self.current {
            current.step = step;
        }
    }

    pub fn set_offer(&mut self, offer: Option<ReleaseOffer>) {
        if let Some(current) = &mut self.current {
            current.offer = offer;
        }
    }

    /// The helper has the current job's release under this name.
    pub fn set_staged(&mut self, name: String) {
        if let Some(current) = &mut self.current {
            current.staged = Some(name);
        }
    }

    /// Reports the progress of the current job if it has grown.
    pub fn progress(&mut self, percent: i64, message: &str) {
        let Some(current) = &mut self.current else {
            return;
        };
        if percent <= current.progress {
            return;
        }
        current.progress = percent;
        let job_uuid = current.job.hub_job_uuid;
        self.report(
            job_uuid,
            HubJobEventKind::Progress,
            Some(message.to_owned()),
            Some(percent),
            None,
        );
    }

    pub fn succeed(&mut self, message: String) {
        let Some(current) = self.finish() else { return };
        self.report(
            current.job.hub_job_uuid,
            HubJobEventKind::Succeeded,
            Some(message),
            Some(100),
            None,
        );
    }

    pub fn fail(&mut self, reason: &str, message: String) {
        let Some(current) = self.finish() else { return };
        let detail = serde_json::json!({ "reason": reason });
        self.report(
            current.job.hub_job_uuid,
            HubJobEventKind::Failed,
            Some(message),
            None,
            Some(detail),
        );
    }

    /// Ends the current job without an event: the service has already ended it.
    pub fn drop_current(&mut self) {
        self.finish();
    }

    /// The helper no longer has the releases of this app that jobs had staged.
    pub fn unstage(&mut self, app_uuid: AppUuid) {
        for parked in self
            .parked
            .iter_mut()
            .filter(|parked| parked.job.app_uuid == Some(app_uuid))
        {
            if parked.staged.take().is_some() {
                parked.is_waiting = false;
            }
        }
    }

    /// Records that a file failed on this hub: another job retries it only with `force`.
    pub fn remember_failure(&mut self, sha256: &str, failed: &Failed) {
        if self.failed_releases.len() >= MAX_FAILED_RELEASES {
            let oldest = self
                .failed_releases
                .iter()
                .min_by_key(|(_, failed)| failed.at)
                .map(|(sha256, _)| sha256.clone());
            oldest.and_then(|sha256| self.failed_releases.remove(&sha256));
        }
        let message = failed.message.chars().take(MAX_MESSAGE_CHARS).collect();
        let failed = FailedRelease {
            reason: failed.reason.to_owned(),
            message,
            at: machine_now(),
        };
        self.failed_releases.insert(sha256.to_owned(), failed);
    }

    fn finish(&mut self) -> Option<Current> {
        let current = self.current.take()?;
        self.remember_finished(current.job.hub_job_uuid);
        Some(current)
    }

    fn remember_finished(&mut self, hub_job_uuid: HubJobUuid) {
        self.finished.push_back(hub_job_uuid);
        let too_many = self.finished.len().saturating_sub(MAX_FINISHED);
        self.finished.drain(..too_many);
    }

    fn report(
        &mut self,
        hub_job_uuid: HubJobUuid,
        kind: HubJobEventKind,
        message: Option<String>,
        progress: Option<i64>,
        detail: Option<Value>,
    ) {
        let message = message.map(|message| cleaned(&message));
        // The machine's own time: the spool corrects it where that clock is wrong.
        let event = HubJobEventRequest {
            event_uuid: Uuid::now_v7(),
            kind,
            message,
            progress,
            detail,
            occurred_at: machine_now(),
        };
        self.outbox.push_back(JobRecord {
            hub_job_uuid,
            event,
        });
    }
}

fn waiting_for(window: &MaintenanceWindow) -> String {
    format!(
        "waiting for its maintenance window, {} to {}",
        window.start, window.end
    )
}

/// The text without characters that the service refuses: messages of other programs may hold any,
/// and an event that is refused is lost.
fn cleaned(text: &str) -> String {
    let is_refused = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    text.chars()
        .take(MAX_MESSAGE_CHARS)
        .map(|c| {
            if is_refused(c) {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}

fn write_file(folder: &Path, json: Vec<u8>) -> std::io::Result<()> {
    let (file, spare) = (folder.join(FILE), folder.join(SPARE));
    overwrite(&spare, json)?;
    // Without an older file, or on a file system that cannot exchange names, the spare file is
    // created each time.
    if renameat_with(CWD, &spare, CWD, &file, RenameFlags::EXCHANGE).is_err() {
        std::fs::rename(&spare, &file)?;
    }
    durable::sync_folder(folder)
}

/// Writes a file from its beginning and keeps the space it has: JSON ignores empty lines at its
/// end.
fn overwrite(path: &Path, mut json: Vec<u8>) -> std::io::Result<()> {
    let mut file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)?;
    let file_bytes = usize::try_from(file.metadata()?.len()).unwrap_or(0);
    let desired_bytes = (json.len() + ROOM_BYTES).next_multiple_of(ROOM_BYTES);
    json.resize(json.len().max(file_bytes), b'\n');
    file.write_all(&json)?;
    // Space for later, where the disk has some.
    let _ = file.write_all(&vec![b'\n'; desired_bytes.saturating_sub(json.len())]);
    file.sync_all()
}
