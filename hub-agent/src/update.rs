//! The agent's part in its own update: it asks the launcher to try a new version, shows as a new
//! version that it works, and knows how a trial ended. A version works when the service accepts its
//! credentials and, if the previous version received advertisements, it receives them too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hub_agent::launch::{
    FOLDER, FailedTrial, LAUNCHED_VARIABLE, LaunchState, TRIAL_VARIABLE, Trial,
};
use hub_protocol::HubJobUuid;
use hub_protocol::hub::HubTest;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::ble::Health;
use crate::clock;
use crate::cloud::{Request, Service};
use crate::identity::StateDir;

/// How often a version on trial checks whether it works.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// A radio that was silent for this long may be silent under another version too.
const HEARD_WITHIN_SECS: i64 = 300;

/// The state of updates, shared with the launcher.
pub struct Update {
    state_dir: Arc<StateDir>,
    /// Whether a launcher started this process: it can start another version.
    launched: bool,
    state: Mutex<LaunchState>,
    /// A lock that is held while the state is being changed on disk.
    changing: tokio::sync::Mutex<()>,
    /// The trial of this process, if it is on trial.
    trial: Option<Trial>,
    /// The job of a trial that was requested when this process started, and that the launcher did
    /// not begin.
    declined: Option<String>,
    confirmed: watch::Sender<bool>,
}

/// The outcome of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    NotRequested,
    /// The process is on trial.
    OnTrial,
    Confirmed,
    Failed(FailedTrial),
    /// The trial was requested, and the launcher started this version instead.
    Declined,
}

/// The state of updates for `hub-agent status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateShown {
    /// The directory of the version that runs; the package's own version when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_dir: Option<String>,
    pub on_trial: bool,
    /// The job, version and reason of the last update that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failed: Option<FailedTrial>,
}

impl Update {
    /// Called at the start, before any task runs.
    pub fn load(state_dir: &Arc<StateDir>) -> Self {
        let state = LaunchState::read(&state_dir.path().join(FOLDER)).unwrap_or_else(|error| {
            tracing::warn!(%error, "the file of updates is damaged; it is replaced");
            LaunchState::default()
        });
        let named = std::env::var(TRIAL_VARIABLE).ok();
        let trial = state
            .trial
            .clone()
            .filter(|trial| named.as_ref() == Some(&trial.dir));
        let declined = state
            .trial
            .as_ref()
            .filter(|_| trial.is_none())
            .map(|declined| declined.job_uuid.clone());
        Self {
            state_dir: state_dir.clone(),
            launched: std::env::var_os(LAUNCHED_VARIABLE).is_some(),
            state: Mutex::new(state),
            changing: tokio::sync::Mutex::new(()),
            trial,
            declined,
            confirmed: watch::Sender::new(false),
        }
    }

    pub fn is_launched(&self) -> bool {
        self.launched
    }

    pub fn shown(&self) -> UpdateShown {
        let state = self.lock();
        UpdateShown {
            version_dir: match &self.trial {
                Some(trial) => Some(trial.dir.clone()),
                None => state.confirmed.clone().filter(|_| self.launched),
            },
            on_trial: self
                .trial
                .as_ref()
                .is_some_and(|trial| state.is_on_trial(trial)),
            last_failed: state.failed.last().cloned(),
        }
    }

    pub fn outcome(&self, job_uuid: HubJobUuid, dir: &str) -> Outcome {
        let job_uuid = job_uuid.to_string();
        let state = self.lock();
        if let Some(failed) = state
            .failed
            .iter()
            .rev()
            .find(|failed| failed.job_uuid == job_uuid)
        {
            return Outcome::Failed(failed.clone());
        }
        match &self.trial {
            Some(trial) if trial.job_uuid == job_uuid => {
                if state.is_on_trial(trial) {
                    Outcome::OnTrial
                } else {
                    Outcome::Confirmed
                }
            }
            _ if self.declined.as_ref() == Some(&job_uuid) => Outcome::Declined,
            // The version was confirmed, and the agent was killed before it could report that.
            _ if state.confirmed.as_deref() == Some(dir) && state.trial.is_none() => {
                Outcome::Confirmed
            }
            _ => Outcome::NotRequested,
        }
    }

    /// Requests that the launcher tries a version at the next start.
    pub async fn request_trial(
        &self,
        job_uuid: HubJobUuid,
        dir: &str,
        radio_heard: bool,
    ) -> std::io::Result<()> {
        let trial = Trial {
            dir: dir.to_owned(),
            job_uuid: job_uuid.to_string(),
            boots: 0,
            radio_heard,
        };
        self.change(|state| state.trial = Some(trial)).await
    }

    /// Withdraws that request.
    pub async fn withdraw(&self) -> std::io::Result<()> {
        self.change(|state| state.trial = None).await
    }

    /// The directories of versions that may still be started.
    pub fn in_use(&self) -> Vec<String> {
        let state = self.lock();
        let trial = state.trial.as_ref().map(|trial| trial.dir.clone());
        state.confirmed.clone().into_iter().chain(trial).collect()
    }

    /// The directory of the version that was confirmed last.
    pub fn confirmed_dir(&self) -> Option<String> {
        self.lock().confirmed.clone()
    }

    /// Waits until this version has confirmed itself.
    pub async fn until_confirmed(&self) {
        let mut confirmed = self.confirmed.subscribe();
        // The sender lives as long as this.
        let _ = confirmed.wait_for(|confirmed| *confirmed).await;
    }

    /// Confirms a version on trial as soon as it has shown that it works. Never ends.
    pub async fn confirm_when_working(&self, service: &Service, health: &Health) {
        if let Some(trial) = &self.trial {
            tracing::info!(version_dir = trial.dir, "this version is on trial");
            let mut is_accepted = false;
            while self.lock().is_on_trial(trial) {
                is_accepted = is_accepted || is_accepted_by(service).await;
                if is_accepted && (!trial.radio_heard || health.advertisements() > 0) {
                    match self.change(LaunchState::confirm).await {
                        Ok(()) => tracing::info!("this version works and is kept"),
                        Err(error) => {
                            tracing::warn!(%error, "the confirmation of this version cannot be written; it is tried again")
                        }
                    }
                }
                tokio::time::sleep(CHECK_EVERY).await;
            }
            self.confirmed.send_replace(true);
        }
        std::future::pending().await
    }

    /// Changes the state on disk, then in memory.
    async fn change(&self, change: impl FnOnce(&mut LaunchState)) -> std::io::Result<()> {
        let _changing = self.changing.lock().await;
        let mut changed = self.lock().clone();
        change(&mut changed);
        let written = changed.clone();
        self.state_dir
            .on_disk(move |path| written.write(&path.join(FOLDER)))
            .await?;
        *self.lock() = changed;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, LaunchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an adapter has received an advertisement in the last minutes.
pub fn has_heard_recently(health: &Health) -> bool {
    let now = clock::machine_now();
    let since = now.plus_secs(-HEARD_WITHIN_SECS);
    health
        .report(now, now)
        .values()
        .any(|adapter| adapter.last_heard_at.is_some_and(|at| at >= since))
}

/// Whether the service accepts this version's credentials.
async fn is_accepted_by(service: &Service) -> bool {
    match service.call(&Request::get("/v1/test")).await {
        Ok(answer) => answer.is_success() && answer.data::<HubTest>().is_ok(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIR: &str = "2.0.0-abcdefabcdef";

    #[tokio::test]
    async fn the_outcome_of_a_trial_is_known_after_every_end() {
        let dir = tempfile::tempdir().unwrap();
        let state_dir = Arc::new(StateDir::open(dir.path()).unwrap());
        let folder = dir.path().join(FOLDER);
        let job = HubJobUuid::new();
        let update = Update::load(&state_dir);
        assert_eq!(update.outcome(job, DIR), Outcome::NotRequested);
        update.request_trial(job, DIR, true).await.unwrap();
        assert_eq!(
            update.outcome(job, DIR),
            Outcome::NotRequested,
            "the launcher begins it at the next start"
        );

        // Restarted, but not as that version: the launcher declined.
        let update = Update::load(&state_dir);
        assert_eq!(update.outcome(job, DIR), Outcome::Declined);
        assert_eq!(
            update.outcome(HubJobUuid::new(), DIR),
            Outcome::NotRequested,
            "another job's"
        );
        update.withdraw().await.unwrap();
        assert_eq!(LaunchState::read(&folder).unwrap().trial, None);

        update.request_trial(job, DIR, true).await.unwrap();
        let mut state = LaunchState::read(&folder).unwrap();
        state.confirm();
        state.write(&folder).unwrap();
        let update = Update::load(&state_dir);
        assert_eq!(update.outcome(job, DIR), Outcome::Confirmed);
        assert_eq!(
            (update.in_use(), update.confirmed_dir()),
            (vec![DIR.to_owned()], Some(DIR.to_owned()))
        );

        let other = HubJobUuid::new();
        update
            .request_trial(other, "3.0.0-abcdefabcdef", true)
            .await
            .unwrap();
        let mut state = LaunchState::read(&folder).unwrap();
        state.fail("NOT_CONFIRMED", "it received nothing".to_owned());
        state.write(&folder).unwrap();
        let update = Update::load(&state_dir);
        let Outcome::Failed(failed) = update.outcome(other, "3.0.0-abcdefabcdef") else {
            panic!("it failed")
        };
        assert_eq!(failed.reason, "NOT_CONFIRMED");
        assert_eq!(update.shown().last_failed, Some(failed));
        assert_eq!(update.confirmed_dir().as_deref(), Some(DIR));
    }
}
