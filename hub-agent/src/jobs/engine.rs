//! Takes the jobs in their order and brings each to its end: which step comes next, what ends a job early, and what is told about it.
//! A step is on disk before it is taken. The steps themselves are in `steps`, what is done between jobs in `idle`.

use std::sync::Arc;
use std::time::Duration;

use hub_protocol::job::MaintenanceWindow;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::idle::{opened, withdrawn};
use super::ledger::{Current, Kept, Ledger, Step};
use super::obtain::{Attempts, sha256_of};
use super::work::Work;
use super::{AppsBell, Failed, Helping, JobsConfig, View, Wanted, download, reason};
use crate::ble::Health;
use crate::clock::Clock;
use crate::cloud::Service;
use crate::identity::StateDir;
use crate::spool::{Kind, Spool, SpoolStopped};
use crate::update::{Fate, Update};

/// How often the deadline, the window and other moments are looked for.
pub const LOOK_EVERY: Duration = Duration::from_secs(10);

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
    /// Of the download under way.
    pub attempts: Attempts,
    /// When it is next looked for what jobs left behind.
    pub tidy_at: Instant,
    pub agents_cleaned: bool,
}

/// How the preparations of a job ended.
pub(super) enum Prepared {
    /// The change itself is next.
    Go(Step),
    /// All is done that can be before its window opens.
    Wait,
    /// The window of another is open.
    LetPass,
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
        let mut worker = Worker {
            jobs: self,
            ledger,
            attempts: Attempts::default(),
            tidy_at: Instant::now(),
            agents_cleaned: false,
        };
        if worker.ledger.current().is_none_or(|current| current.staged.is_some()) {
            // The agent may have been killed before it could.
            worker.clear_downloads();
        }
        loop {
            worker.hand_over().await?;
            worker.turn().await;
        }
    }
}

impl Worker {
    /// Gives the spool what has to be told. What is there twice after a crash has one id, by which the service knows it. What the disk does not
    /// take waits here: a job that may make room on it is not held up.
    pub(super) async fn hand_over(&mut self) -> Result<(), SpoolStopped> {
        let mut handed_over = 0;
        for record in self.ledger.kept().outbox.clone() {
            if !self.jobs.spool.keep(Kind::JobEvents, &record).await? {
                break;
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
        let Some(current) = self.ledger.current().cloned() else { return self.next().await };
        tracing::debug!(hub_job_uuid = %current.job.hub_job_uuid, step = ?current.step, "a job goes on");
        let work = match Work::of(&current.job) {
            Ok(work) => work,
            Err(Failed { reason, message }) => return self.failed(reason, message, None).await,
        };
        match (current.step.clone(), work) {
            (Step::Preparing, work) => {
                let (wanted, job_uuid) = (self.jobs.wanted.clone(), current.job.hub_job_uuid);
                let (clock, windows) = (self.jobs.clock.clone(), self.windows_ahead_of(&current, work));
                let prepared = tokio::select! {
                    biased;
                    () = withdrawn(wanted, job_uuid) => Prepared::Withdrawn,
                    () = opened(&clock, &windows) => Prepared::LetPass,
                    prepared = self.prepare(&current, work) => prepared,
                };
                self.prepared(&current, work, prepared).await;
            }
            (Step::Activating, Work::Install { app_uuid, release_uuid }) => self.activate(app_uuid, release_uuid).await,
            (Step::Watching { rounds }, Work::Install { app_uuid, release_uuid }) => {
                self.watch(&current, app_uuid, release_uuid, rounds).await;
            }
            (Step::Committing, Work::Install { app_uuid, .. }) => self.commit(&current, app_uuid).await,
            (Step::RollingBack { reason, message }, Work::Install { app_uuid, .. }) => {
                self.roll_back(&current, app_uuid, &reason, message).await;
            }
            (Step::Removing, Work::Remove { app_uuid }) => self.remove(app_uuid).await,
            (Step::OnTrial { dir }, Work::Update) => self.on_trial(&current, &dir).await,
            (step, work) => {
                self.failed(reason::BAD_RELEASE, format!("{step:?} is no step of {work:?}"), None).await;
            }
        }
    }

    /// The windows that may open while a job is still being downloaded, and are not to pass unused for that.
    fn windows_ahead_of(&self, current: &Current, work: Work) -> Vec<MaintenanceWindow> {
        if current.staged.is_some() || matches!(work, Work::Remove { .. }) {
            return Vec::new();
        }
        let parked = self.ledger.kept().parked.iter().filter(|parked| parked.waits);
        parked.filter_map(|parked| parked.job.window.clone()).collect()
    }

    async fn prepared(&mut self, current: &Current, work: Work, prepared: Prepared) {
        match prepared {
            Prepared::Go(step) => self.ledger.change(|kept| kept.enter(step)).await,
            Prepared::Wait => self.ledger.change(Kept::park_until_window).await,
            Prepared::LetPass => self.ledger.change(Kept::park_for_another).await,
            Prepared::Already(message) => {
                self.clean_up(work).await;
                self.ledger.change(|kept| kept.succeed(message, None)).await;
            }
            Prepared::Failed(failed) => {
                self.clean_up(work).await;
                self.failed(failed.reason, failed.message, None).await;
            }
            Prepared::Withdrawn => {
                tracing::info!(hub_job_uuid = %current.job.hub_job_uuid, "the service took a job back; it is undone");
                self.clean_up(work).await;
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
        self.clear_downloads();
        self.jobs.apps_changed.notify_one();
    }

    pub(super) async fn succeeded(&mut self, message: String) {
        tracing::info!(why = message, "a job is done");
        self.ledger.change(|kept| kept.succeed(message, None)).await;
        self.clear_downloads();
        self.jobs.apps_changed.notify_one();
    }

    /// Waits for what becomes of a version of the agent that was handed to the launcher, and asks for it where that has not been done.
    async fn on_trial(&mut self, current: &Current, dir: &str) {
        let (update, job_uuid) = (self.jobs.update.clone(), current.job.hub_job_uuid);
        let sha256 = current.offer.as_ref().and_then(sha256_of);
        match update.fate(job_uuid, dir) {
            Fate::OnTrial => update.until_confirmed().await,
            Fate::Confirmed => {
                // Until the helper knows of it, older versions could come back.
                let (in_use, confirmed) = (self.agents_in_use(), update.confirmed_dir());
                let raised = self.jobs.helper.finish(move |helper| helper.clean_agent(&in_use, confirmed.as_deref()));
                let but = match raised.await {
                    Ok(()) => String::new(),
                    Err(failed) => format!("; the helper has yet to learn of it: {}", failed.message),
                };
                self.succeeded(format!("version {} runs{but}", env!("CARGO_PKG_VERSION"))).await;
            }
            Fate::Failed(failed) => {
                self.clean_agent().await;
                let word = reason::known(&failed.reason).unwrap_or(reason::NOT_CONFIRMED);
                self.failed(word, failed.message, sha256.as_deref()).await;
            }
            Fate::Declined => {
                if let Err(error) = update.withdraw() {
                    tracing::warn!(%error, "a trial cannot be taken back");
                    return tokio::time::sleep(LOOK_EVERY).await;
                }
                self.clean_agent().await;
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
    async fn clean_up(&self, work: Work) {
        self.clear_downloads();
        match work {
            Work::Update => self.clean_agent().await,
            Work::Install { app_uuid, .. } => self.unstage(app_uuid).await,
            Work::Remove { .. } => {}
        }
    }

    /// Removes what was downloaded, but for that of a job which was only interrupted.
    pub(super) fn clear_downloads(&self) {
        if self.ledger.kept().parked.iter().any(|parked| !parked.waits) {
            return;
        }
        if let Err(error) = download::clear(self.jobs.state_dir.path()) {
            tracing::warn!(%error, "a download cannot be removed; it is when the next one begins");
        }
    }
}
