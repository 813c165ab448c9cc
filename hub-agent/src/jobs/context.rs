//! The context that the parts of the jobs share: the rest of the agent, the ledger, and small
//! operations on both. Decides nothing.

use std::sync::Arc;

use hub_protocol::Timestamp;
use hub_protocol::job::HubJobType;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::download;
use super::helper::HelperClient;
use super::job::{JobsConfig, RequestedJobs};
use super::ledger::Ledger;
use super::view::{AppsChanged, View};
use crate::ble::Health;
use crate::clock::Clock;
use crate::cloud::Service;
use crate::identity::StateDir;
use crate::recording::Recording;
use crate::spool::{Kind, Spool, SpoolStopped};
use crate::update::Update;

/// The parts of the agent that the jobs need.
pub struct Jobs {
    pub service: Arc<Service>,
    pub spool: Spool,
    pub clock: Arc<Clock>,
    pub state_dir: Arc<StateDir>,
    pub requested: watch::Receiver<RequestedJobs>,
    pub helper: HelperClient,
    pub config: JobsConfig,
    pub update: Arc<Update>,
    pub health: Health,
    pub view: View,
    pub apps_changed: AppsChanged,
    /// Cancelled when the agent has to end so that the launcher can start another version.
    pub restart: CancellationToken,
    /// Cancelled when the agent has to end so that it can start at another service.
    pub moved: CancellationToken,
    pub recording: Recording,
}

/// The rest of the agent, and the ledger.
pub struct Context {
    pub jobs: Jobs,
    pub ledger: Ledger,
}

impl Context {
    pub fn load(jobs: Jobs) -> Self {
        let ledger = Ledger::load(jobs.state_dir.clone(), jobs.view.clone());
        Self { jobs, ledger }
    }

    /// `None` while the time is unknown.
    pub fn time(&self) -> Option<Timestamp> {
        self.jobs
            .clock
            .offset()
            .known
            .then(|| self.jobs.clock.now())
    }

    pub fn staged(&self) -> Option<String> {
        self.ledger
            .current()
            .and_then(|current| current.staged.clone())
    }

    /// Moves events to the spool. An event that is in the spool twice after a crash has one id, by
    /// which the service recognises it. Events that the disk does not accept wait in the ledger:
    /// the job continues, since it may free space.
    pub async fn spool_events(&mut self) -> Result<(), SpoolStopped> {
        let mut spooled = 0;
        for record in self.ledger.state().outbox.clone() {
            if !self.jobs.spool.keep(Kind::JobEvents, &record).await? {
                break;
            }
            spooled += 1;
        }
        if spooled > 0 {
            self.ledger
                .change(|state| drop(state.outbox.drain(..spooled)))
                .await;
        }
        Ok(())
    }

    /// Moves events to the spool while a step is being done. A spool that has stopped ends the
    /// agent elsewhere.
    pub async fn spool_events_now(&mut self) {
        let _ = self.spool_events().await;
    }

    /// The directories of versions of the agent that may still be started.
    pub fn agents_in_use(&self) -> Vec<String> {
        let parked = self
            .ledger
            .state()
            .parked
            .iter()
            .filter(|parked| parked.job.job_type == HubJobType::SelfUpdate);
        let staged = parked.filter_map(|parked| parked.staged.clone());
        self.jobs
            .update
            .in_use()
            .into_iter()
            .chain(staged)
            .collect()
    }

    /// Has the helper remove versions of the agent that will never be started.
    pub async fn clean_agents(&self) {
        let (in_use, confirmed) = (self.agents_in_use(), self.jobs.update.confirmed_dir());
        let cleaned = self
            .jobs
            .helper
            .call(move |helper| helper.clean_agent(&in_use, confirmed.as_deref()))
            .await;
        if let Err(failure) = cleaned {
            tracing::debug!(
                ?failure,
                "the helper keeps versions of the agent that are not needed"
            );
        }
    }

    /// Removes the downloads, unless one belongs to a parked job that will resume it.
    pub async fn clear_downloads(&self) {
        if self
            .ledger
            .state()
            .parked
            .iter()
            .any(|parked| !parked.is_waiting)
        {
            return;
        }
        if let Err(error) = download::clear(self.jobs.state_dir.path()).await {
            tracing::warn!(%error, "a download cannot be removed; the next download removes it");
        }
    }
}
