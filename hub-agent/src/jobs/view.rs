//! The view of the jobs for other parts of the agent: the current job and the installed apps.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hub_protocol::job::{HubJobType, InstalledApp};
use hub_protocol::{HubJobUuid, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

#[derive(Clone, Default)]
pub struct View(Arc<Mutex<Shown>>);

#[derive(Clone, Debug, Default)]
pub struct Shown {
    pub job: Option<JobShown>,
    /// `None` until the helper has answered, and while it does not exist.
    pub installed: Option<Vec<InstalledApp>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobShown {
    pub hub_job_uuid: HubJobUuid,
    #[serde(rename = "type")]
    pub job_type: HubJobType,
    /// The step that is being done.
    pub step: String,
    pub progress: i64,
    pub deadline_at: Timestamp,
    /// The problem that keeps the job from continuing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

impl View {
    pub fn get(&self) -> Shown {
        self.lock().clone()
    }

    pub fn lock(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the problem that keeps the current job from continuing.
    pub fn show_trouble(&self, trouble: &str) {
        tracing::debug!(reason = trouble, "a job is waiting");
        self.set_trouble(Some(trouble.to_owned()));
    }

    pub fn clear_trouble(&self) {
        self.set_trouble(None);
    }

    fn set_trouble(&self, trouble: Option<String>) {
        if let Some(job) = &mut self.lock().job {
            job.trouble = trouble;
        }
    }
}

/// Notified when something about the installed apps may have changed.
pub type AppsChanged = Arc<Notify>;
