//! Takes the jobs in their order and brings each to its end: which step comes next, what ends a job early, and what is told about it.
//! A step is on disk before it is taken. The steps themselves are in `steps`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hub_agent::helper_api::Helper;
use hub_protocol::job::HubJobType;
use hub_protocol::{HubJobUuid, TenantUuid};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::helping::NotDone;
use super::ledger::{Current, Kept, Ledger, Step};
use super::{AppsBell, Failed, Helping, JobsConfig, View, Wanted, download, reason};
use crate::ble::Health;
use crate::clock::Clock;
use crate::cloud::Service;
use crate::identity::StateDir;
use crate::spool::{Kind, Spool, SpoolStopped};
use crate::update::{Fate, Update};

/// How often the deadline, the window and other moments are looked for.
pub const LOOK_EVERY: Duration = Duration::from_secs(10);

/// How soon an event is given to the spool again that the disk did not take.
const HAND_OVER_EVERY: Duration = Duration::from_secs(10);

/// Everything a job needs.
pub struct Jobs {
    pub service: Arc<Service>,
    pub spool: Spool,
    pub clock: Arc<Clock>,
    pub state_dir: Arc<StateDir>,
    pub wanted: watch::Receiver<Wanted>,
    pub helper: Helping,
    pub config: JobsConfig,
    pub update: Arc<Update>,
    pub health: Health,
    pub view: View,
    pub apps_changed: AppsBell,
    /// Cancelled when the agent is to end, so that the launcher starts another version.
    pub restart: CancellationToken,
}

/// The one that works on them.
pub(super) struct Worker {
    pub jobs: Jobs,
    pub ledger: Ledger,
}

/// How the preparations of a job ended.
pub(super) enum Prepared {
    /// The change itself is next.
    Go(Step),
    /// There is nothing to do.
    Already(String),
    Failed(Failed),
    /// The service no longer wants it.
    Withdrawn,
}

impl Jobs {
    /// Works until the spool has stopped.
    pub async fn run(self) -> Result<(), SpoolStopped> {
        let ledger = Ledger::load(self.state_dir.clone(), self.view.clone());
        let mut worker = Worker { jobs: self, ledger };
        loop {
            worker.hand_over().await?;
            worker.turn().await;
        }
    }

    /// Where a download lies.
    pub(super) fn state_path(&self) -> PathBuf {
        self.state_dir.path().to_owned()
    }
}

impl Worker {
    /// Gives the spool what has to be told. What is there twice after a crash has one id, by which the service knows it.
    pub(super) async fn hand_over(&mut self) -> Result<(), SpoolStopped> {
        let mut handed_over = 0;
        for record in self.ledger.kept().outbox.clone() {
            while !self.jobs.spool.keep(Kind::JobEvents, &record).await? {
                tokio::time::sleep(HAND_OVER_EVERY).await;
            }
            handed_over += 1;
        }
        if handed_over > 0 {
            self.ledger.change(|kept| drop(kept.outbox.drain(..handed_over))).await;
        }
        Ok(())
    }

    /// One step of the job under way, or the beginning of the next.
    async fn turn(&mut self) {
        let Some(current) = self.ledger.current().cloned() else {
            return match self.new_owner() {
                Some(owner) => self.change_owner(owner).await,
                None => self.next_job().await,
            };
        };
        let job = &current.job;
        tracing::debug!(hub_job_uuid = %job.hub_job_uuid, step = ?current.step, "a job goes on");
        match current.step.clone() {
            Step::Preparing => {
                let (wanted, job_uuid) = (self.jobs.wanted.clone(), job.hub_job_uuid);
                let prepared = tokio::select! {
                    prepared = self.prepare(&current) => prepared,
                    () = withdrawn(wanted, job_uuid) => Prepared::Withdrawn,
                };
                self.prepared(&current, prepared).await;
            }
            Step::Activating => self.activate(job).await,
            Step::Watching { rounds } => self.watch(&current, rounds).await,
            Step::Committing => self.commit(&current).await,
            Step::RollingBack { reason, message } => self.roll_back(&current, &reason, message).await,
            Step::Removing => self.remove(job).await,
            Step::OnTrial { dir } => self.on_trial(&current, &dir).await,
        }
    }

    /// Begins the oldest job that was not done yet, or waits for one.
    async fn next_job(&mut self) {
        let over = &self.ledger.kept().over;
        let next = self
            .jobs
            .wanted
            .borrow_and_update()
            .iter()
            .flatten()
            .find(|job| !over.contains(&job.hub_job_uuid))
            .cloned();
        match next {
            Some(job) => {
                tracing::info!(hub_job_uuid = %job.hub_job_uuid, job_type = ?job.job_type, "a job begins");
                self.ledger.change(|kept| kept.begin(job)).await;
            }
            // The senders live as long as the agent.
            None => {
                let mut access = self.jobs.service.access();
                tokio::select! {
                    _ = self.jobs.wanted.changed() => {}
                    _ = access.changed() => {}
                }
            }
        }
    }

    /// Who this hub belongs to, where that is not whose apps it has.
    fn new_owner(&self) -> Option<TenantUuid> {
        let owner = self.jobs.service.granted().ok()?.tenant_uuid;
        (self.ledger.kept().owner != Some(owner)).then_some(owner)
    }

    /// Removes the apps of the owner before: they would go on hearing what is now another's.
    async fn change_owner(&mut self, owner: TenantUuid) {
        if self.ledger.kept().owner.is_some() {
            let apps = match self.jobs.helper.ask(Helper::app_states).await {
                Ok(apps) => apps,
                // Without a helper there are none.
                Err(NotDone::NoAnswer { is_absent: true, .. }) => Vec::new(),
                Err(not_done) => {
                    tracing::warn!(
                        ?not_done,
                        "the apps of this hub's owner before cannot be removed; it is tried again"
                    );
                    return tokio::time::sleep(LOOK_EVERY).await;
                }
            };
            for app_uuid in apps.into_iter().map(|app| app.app_uuid) {
                if let Err(failed) = self.jobs.helper.finish(move |helper| helper.remove_app(app_uuid)).await {
                    tracing::error!(%app_uuid, why = failed.message, "an app of this hub's owner before cannot be removed");
                    return tokio::time::sleep(LOOK_EVERY).await;
                }
                tracing::warn!(%app_uuid, "this hub has another owner than before; an app of the old one is removed");
            }
            self.jobs.apps_changed.notify_one();
        }
        self.ledger.change(|kept| *kept = Kept { owner: Some(owner), ..Kept::default() }).await;
    }

    async fn prepared(&mut self, current: &Current, prepared: Prepared) {
        match prepared {
            Prepared::Go(step) => self.ledger.change(|kept| kept.enter(step)).await,
            Prepared::Already(message) => {
                self.clean_up(current).await;
                self.ledger.change(|kept| kept.succeed(message, None)).await;
            }
            Prepared::Failed(failed) => {
                self.clean_up(current).await;
                self.failed(failed.reason, failed.message, None).await;
            }
            Prepared::Withdrawn => {
                tracing::info!(hub_job_uuid = %current.job.hub_job_uuid, "the service took a job back; it is undone");
                self.clean_up(current).await;
                self.ledger.change(Kept::drop_current).await;
            }
        }
    }

    /// Ends the job under way as failed. `release` is the digest of a file that is to blame.
    pub(super) async fn failed(&mut self, word: &'static str, message: String, release: Option<&str>) {
        tracing::error!(reason = word, why = message, "a job failed");
        self.ledger
            .change(|kept| {
                if let Some(sha256) = release {
                    kept.remember_failure(sha256, &Failed { reason: word, message: message.clone() });
                }
                kept.fail(word, message);
            })
            .await;
        self.jobs.apps_changed.notify_one();
    }

    pub(super) async fn succeeded(&mut self, message: String) {
        tracing::info!(why = message, "a job is done");
        self.ledger.change(|kept| kept.succeed(message, None)).await;
        self.jobs.apps_changed.notify_one();
    }

    /// Waits for what becomes of a version of the agent that was handed to the launcher, and asks for it where that has not been done.
    async fn on_trial(&mut self, current: &Current, dir: &str) {
        let (update, job_uuid) = (self.jobs.update.clone(), current.job.hub_job_uuid);
        let sha256 = current.offer.as_ref().and_then(super::steps::sha256_of);
        match update.fate(job_uuid, dir) {
            Fate::OnTrial => update.until_confirmed().await,
            Fate::Confirmed => {
                self.jobs.clean_agent().await;
                self.succeeded(format!("version {} runs", env!("CARGO_PKG_VERSION"))).await;
            }
            Fate::Failed(failed) => {
                self.jobs.clean_agent().await;
                let word = known_reason(&failed.reason);
                self.failed(word, failed.message, sha256.as_deref()).await;
            }
            Fate::Declined => {
                if let Err(error) = update.withdraw() {
                    tracing::warn!(%error, "a trial cannot be taken back");
                    return tokio::time::sleep(LOOK_EVERY).await;
                }
                let message = "the launcher did not start the new version".to_owned();
                self.failed(reason::DID_NOT_START, message, None).await;
            }
            Fate::Unknown => {
                let heard = crate::update::hears(&self.jobs.health);
                match update.begin(job_uuid, dir, heard) {
                    Ok(()) => {
                        tracing::info!(dir, "the agent ends, so that its new version can be tried");
                        self.jobs.restart.cancel();
                        std::future::pending().await
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a trial cannot be written; it is tried again");
                        tokio::time::sleep(LOOK_EVERY).await;
                    }
                }
            }
        }
    }

    /// Removes what the preparations brought here.
    pub(super) async fn clean_up(&mut self, current: &Current) {
        if let Err(error) = download::clear(&self.jobs.state_path()) {
            tracing::warn!(%error, "a download cannot be removed; it is when the next one begins");
        }
        match current.job.job_type {
            HubJobType::SelfUpdate => self.jobs.clean_agent().await,
            HubJobType::AppInstall => self.unstage(&current.job).await,
            HubJobType::AppRemove => {}
        }
    }
}

/// The launcher's word for it, as one of ours.
fn known_reason(word: &str) -> &'static str {
    match word {
        reason::DID_NOT_START => reason::DID_NOT_START,
        _ => reason::NOT_CONFIRMED,
    }
}

/// Waits until the service has told that it no longer wants this job.
async fn withdrawn(mut wanted: watch::Receiver<Wanted>, job_uuid: HubJobUuid) {
    let is_gone =
        |wanted: &Wanted| wanted.as_ref().is_some_and(|jobs| jobs.iter().all(|job| job.hub_job_uuid != job_uuid));
    if wanted.wait_for(is_gone).await.is_err() {
        std::future::pending().await
    }
}
