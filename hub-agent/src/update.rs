//! The agent's own part in its update: hands a new version to the launcher, shows as a new version that it works, and tells how a trial ended.
//! It works when the service knows it by its own credentials and, where the version before heard something, it hears something too.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hub_agent::launch::{FOLDER, FailedTrial, LAUNCHED_VARIABLE, LaunchState, TRIAL_VARIABLE, Trial};
use hub_protocol::HubJobUuid;
use hub_protocol::hub::HubTest;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::ble::Health;
use crate::clock;
use crate::cloud::{Request, Service};
use crate::identity::StateDir;

/// How often a version on trial looks whether it works.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A radio that heard nothing for so long is not expected to hear more under another version.
const HEARD_WITHIN_SECS: i64 = 300;

/// What the launcher and this process know of updates.
pub struct Update {
    folder: PathBuf,
    /// Whether a launcher started this process: it starts another version when asked.
    launched: bool,
    state: Mutex<LaunchState>,
    /// The trial that this process is.
    trial: Option<Trial>,
    /// The job of a trial that the launcher knew of at the start of this process, and did not begin.
    declined: Option<String>,
    confirmed: watch::Sender<bool>,
}

/// How a trial stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nobody has asked the launcher yet.
    Unknown,
    /// This process is on trial.
    OnTrial,
    Confirmed,
    Failed(FailedTrial),
    /// The launcher was asked and started this version all the same.
    Declined,
}

/// What `hub-agent status` shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateShown {
    /// The folder of the version that runs; the package's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_dir: Option<String>,
    pub on_trial: bool,
    /// The job, version and reason of the last update that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failed: Option<FailedTrial>,
}

impl Update {
    pub fn load(state_dir: &StateDir) -> Self {
        let folder = state_dir.path().join(FOLDER);
        let state = LaunchState::read(&folder).unwrap_or_else(|error| {
            tracing::warn!(%error, "what is known of updates is damaged; it is begun anew");
            LaunchState::default()
        });
        let named = std::env::var(TRIAL_VARIABLE).ok();
        let trial = state.trial.clone().filter(|trial| named.as_ref() == Some(&trial.dir));
        let declined = state.trial.as_ref().filter(|_| trial.is_none()).map(|declined| declined.job_uuid.clone());
        Self {
            folder,
            launched: std::env::var_os(LAUNCHED_VARIABLE).is_some(),
            state: Mutex::new(state),
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
            on_trial: self.trial.as_ref().is_some_and(|trial| state.is_on_trial(trial)),
            last_failed: state.failed.last().cloned(),
        }
    }

    pub fn fate(&self, job_uuid: HubJobUuid, dir: &str) -> Fate {
        let job_uuid = job_uuid.to_string();
        let state = self.lock();
        if let Some(failed) = state.failed.iter().rev().find(|failed| failed.job_uuid == job_uuid) {
            return Fate::Failed(failed.clone());
        }
        match &self.trial {
            Some(trial) if trial.job_uuid == job_uuid => {
                if state.is_on_trial(trial) {
                    Fate::OnTrial
                } else {
                    Fate::Confirmed
                }
            }
            _ if self.declined.as_ref() == Some(&job_uuid) => Fate::Declined,
            // It was confirmed, and the agent was killed before it could tell.
            _ if state.confirmed.as_deref() == Some(dir) && state.trial.is_none() => Fate::Confirmed,
            _ => Fate::Unknown,
        }
    }

    /// Asks the launcher to try a version at the next start.
    pub fn begin(&self, job_uuid: HubJobUuid, dir: &str, radio_heard: bool) -> std::io::Result<()> {
        let trial = Trial { dir: dir.to_owned(), job_uuid: job_uuid.to_string(), boots: 0, radio_heard };
        self.change(|state| state.trial = Some(trial))
    }

    /// Takes that back.
    pub fn withdraw(&self) -> std::io::Result<()> {
        self.change(|state| state.trial = None)
    }

    /// The folders of versions that may still be started.
    pub fn in_use(&self) -> Vec<String> {
        let state = self.lock();
        let trial = state.trial.as_ref().map(|trial| trial.dir.clone());
        state.confirmed.clone().into_iter().chain(trial).collect()
    }

    /// The folder of the version that was confirmed last.
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
    pub async fn confirm_when_sound(&self, service: &Service, health: &Health) {
        if let Some(trial) = &self.trial {
            tracing::info!(version_dir = trial.dir, "this version is on trial");
            let mut known_by_service = false;
            while self.lock().is_on_trial(trial) {
                known_by_service = known_by_service || is_known(service).await;
                if known_by_service && (!trial.radio_heard || health.advertisements() > 0) {
                    match self.change(LaunchState::confirm) {
                        Ok(()) => tracing::info!("this version works and is kept"),
                        Err(error) => {
                            tracing::warn!(%error, "that this version works cannot be written; it is tried again")
                        }
                    }
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
            self.confirmed.send_replace(true);
        }
        std::future::pending().await
    }

    /// On disk first.
    fn change(&self, change: impl FnOnce(&mut LaunchState)) -> std::io::Result<()> {
        let mut state = self.lock();
        let mut changed = state.clone();
        change(&mut changed);
        changed.write(&self.folder)?;
        *state = changed;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, LaunchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an adapter has heard something in the last minutes.
pub fn hears(health: &Health) -> bool {
    let now = clock::machine_now();
    let lately = now.plus_secs(-HEARD_WITHIN_SECS);
    health.report(now, now).values().any(|adapter| adapter.last_heard_at.is_some_and(|at| at >= lately))
}

/// Whether the service lets this version in.
async fn is_known(service: &Service) -> bool {
    match service.call(&Request::get("/v1/test")).await {
        Ok(answer) => answer.is_success() && answer.data::<HubTest>().is_ok(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIR: &str = "2.0.0-abcdefabcdef";

    #[test]
    fn what_became_of_a_trial_is_known_after_every_end() {
        let dir = tempfile::tempdir().unwrap();
        let state_dir = StateDir::open(dir.path()).unwrap();
        let folder = dir.path().join(FOLDER);
        let job = HubJobUuid::new();
        let update = Update::load(&state_dir);
        assert_eq!(update.fate(job, DIR), Fate::Unknown);
        update.begin(job, DIR, true).unwrap();
        assert_eq!(update.fate(job, DIR), Fate::Unknown, "it is for the next start");

        // Started again, and not as that version: the launcher did not do it.
        let update = Update::load(&state_dir);
        assert_eq!(update.fate(job, DIR), Fate::Declined);
        assert_eq!(update.fate(HubJobUuid::new(), DIR), Fate::Unknown, "another job's");
        update.withdraw().unwrap();
        assert_eq!(LaunchState::read(&folder).unwrap().trial, None);

        update.begin(job, DIR, true).unwrap();
        let mut state = LaunchState::read(&folder).unwrap();
        state.confirm();
        state.write(&folder).unwrap();
        let update = Update::load(&state_dir);
        assert_eq!(update.fate(job, DIR), Fate::Confirmed);
        assert_eq!((update.in_use(), update.confirmed_dir()), (vec![DIR.to_owned()], Some(DIR.to_owned())));

        let other = HubJobUuid::new();
        update.begin(other, "3.0.0-abcdefabcdef", true).unwrap();
        let mut state = LaunchState::read(&folder).unwrap();
        state.fail("NOT_CONFIRMED", "it heard nothing".to_owned());
        state.write(&folder).unwrap();
        let update = Update::load(&state_dir);
        let Fate::Failed(failed) = update.fate(other, "3.0.0-abcdefabcdef") else { panic!("it failed") };
        assert_eq!(failed.reason, "NOT_CONFIRMED");
        assert_eq!(update.shown().last_failed, Some(failed));
        assert_eq!(update.confirmed_dir().as_deref(), Some(DIR));
    }
}
