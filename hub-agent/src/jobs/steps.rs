//! The single steps of a job. Each may have been done before, by a start that was killed, and can be done again.
//! Preparing changes nothing that runs; whatever does is a step of its own, entered only when it is on disk that it begins.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hub_agent::helper_api::{AppState, Helper, UnitState};
use hub_protocol::job::DesiredJob;
use hub_protocol::release;
use hub_protocol::{AppUuid, ReleaseUuid, Timestamp};
use tokio::time::Instant;

use super::engine::{LOOK_EVERY, Prepared, Worker};
use super::helping::{self, NotDone, failed};
use super::ledger::{Current, Step};
use super::obtain::{Attempts, sha256_of};
use super::work::Work;
use super::{Failed, Trouble, reason, window};
use crate::backoff::Backoff;
use crate::clock::Clock;

/// Of a hundred: what has come of a job when the helper has its file, when the new version runs.
const STAGED_PERCENT: i64 = 80;
const ACTIVE_PERCENT: i64 = 90;

/// Starts of the agent that one app may be watched over: one that takes the hub down is not watched for ever.
const MAX_WATCHES: u32 = 3;

impl Worker {
    /// Does all of a job that changes nothing yet. Gives up by itself only shortly before the job's deadline.
    pub async fn prepare(&mut self, current: &Current, work: Work) -> Prepared {
        self.attempts = Attempts::default();
        let (clock, give_up_at) = (self.jobs.clock.clone(), current.give_up_at());
        tokio::select! {
            biased;
            () = passed(&clock, give_up_at) => {}
            prepared = self.try_to_prepare(&current.job, work) => return prepared,
        }
        let Attempts { under_way, last, .. } = std::mem::take(&mut self.attempts);
        let why = last.map(|last| format!("; last: {last}")).unwrap_or_default();
        Prepared::Failed(match under_way {
            true => Failed {
                reason: reason::DOWNLOAD_FAILED,
                message: format!("it could not be downloaded before its deadline{why}"),
            },
            false => {
                Failed { reason: reason::EXPIRED, message: format!("its deadline passed before it was done{why}") }
            }
        })
    }

    async fn try_to_prepare(&mut self, job: &DesiredJob, work: Work) -> Prepared {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(300));
        loop {
            let prepared = match work {
                Work::Install { app_uuid, release_uuid } => self.prepare_app(job, app_uuid, release_uuid).await,
                Work::Remove { .. } => self.prepare_removal(job).await,
                Work::Update => self.prepare_agent(job).await,
            };
            match prepared {
                Ok(prepared) => return prepared,
                Err(Trouble::Fatal(failed)) => return Prepared::Failed(failed),
                Err(Trouble::Later(message)) => self.is_in_the_way(message),
            }
            tokio::time::sleep(backoff.next(None)).await;
        }
    }

    async fn prepare_app(
        &mut self,
        job: &DesiredJob,
        app_uuid: AppUuid,
        release_uuid: ReleaseUuid,
    ) -> Result<Prepared, Trouble> {
        let apps = self.jobs.helper.reach().await?;
        if let Some(version) = apps.iter().find_map(|app| runs_already(app, app_uuid, release_uuid))
            && !job.force
        {
            return Ok(Prepared::Already(format!("version {version} is installed already")));
        }
        if !self.is_staged() {
            let (offer, part) = self.obtain(job).await?;
            let file = below(self.jobs.state_dir.path(), part.path());
            let staged = self
                .jobs
                .helper
                .ask(move |helper| helper.stage_app(app_uuid, release_uuid, &offer.manifest, &offer.signature, &file))
                .await?;
            self.staged(staged.version).await;
        }
        self.in_window(job, Step::Activating)
    }

    async fn prepare_removal(&mut self, job: &DesiredJob) -> Result<Prepared, Trouble> {
        self.jobs.helper.reach().await?;
        self.in_window(job, Step::Removing)
    }

    async fn prepare_agent(&mut self, job: &DesiredJob) -> Result<Prepared, Trouble> {
        if !self.jobs.update.is_launched() {
            let message = "this agent was not started by hub-agent-launcher, which alone can start another version";
            return Err(Trouble::fatal(reason::NO_LAUNCHER, message));
        }
        self.jobs.helper.reach().await?;
        if !self.is_staged() {
            let (_, manifest) = self.offered(job).await?;
            if manifest.version == env!("CARGO_PKG_VERSION") && !job.force {
                return Ok(Prepared::Already(format!("version {} runs already", manifest.version)));
            }
            let (offer, part) = self.obtain(job).await?;
            let file = below(self.jobs.state_dir.path(), part.path());
            let in_use = self.agents_in_use();
            let staged = self
                .jobs
                .helper
                .ask(move |helper| helper.stage_agent(&offer.manifest, &offer.signature, &file, &in_use))
                .await?;
            self.staged(staged.dir).await;
        }
        let dir = self.ledger.current().and_then(|current| current.staged.clone()).unwrap_or_default();
        self.in_window(job, Step::OnTrial { dir })
    }

    /// The change itself, if it may be made now.
    fn in_window(&self, job: &DesiredJob, change: Step) -> Result<Prepared, Trouble> {
        let Some(wanted) = &job.window else { return Ok(Prepared::Go(change)) };
        let clock = &self.jobs.clock;
        match window::is_open(Some(wanted), clock.now()) {
            // The time of a clock that nobody set says nothing.
            Some(is_open) if is_open && clock.offset().known => Ok(Prepared::Go(change)),
            Some(_) => Ok(Prepared::Wait),
            None => {
                let message = format!("the window {} to {} makes no sense", wanted.start, wanted.end);
                Err(Trouble::fatal(reason::BAD_RELEASE, message))
            }
        }
    }

    fn is_staged(&self) -> bool {
        self.ledger.current().is_some_and(|current| current.staged.is_some())
    }

    /// The helper has the file: ours is no longer needed.
    async fn staged(&mut self, name: String) {
        self.ledger.trouble(None);
        self.ledger
            .change(|kept| {
                if let Some(current) = &mut kept.current {
                    current.staged = Some(name);
                }
                kept.progress(STAGED_PERCENT, "checked and unpacked");
            })
            .await;
        self.tell().await;
        self.clear_downloads();
    }

    /// Events are told while a job waits, and not only when its next step begins.
    pub async fn tell(&mut self) {
        // A spool that has stopped ends the agent elsewhere.
        let _ = self.hand_over().await;
    }

    pub async fn activate(&mut self, app_uuid: AppUuid, release_uuid: ReleaseUuid) {
        let next = match self.jobs.helper.finish(move |helper| helper.activate_app(app_uuid, release_uuid)).await {
            Ok(()) => Step::Watching { rounds: 0 },
            Err(Failed { reason, message }) => Step::RollingBack { reason: reason.to_owned(), message },
        };
        self.jobs.apps_changed.notify_one();
        self.ledger
            .change(|kept| {
                if matches!(next, Step::Watching { .. }) {
                    kept.progress(ACTIVE_PERCENT, "started");
                }
                kept.enter(next);
            })
            .await;
    }

    /// Watches whether the new version goes on running for as long as its manifest asks.
    pub async fn watch(&mut self, current: &Current, app_uuid: AppUuid, release_uuid: ReleaseUuid, rounds: u32) {
        if rounds >= MAX_WATCHES {
            let message =
                format!("the agent or the hub went down {MAX_WATCHES} times while the new version was watched");
            return self.begin_rollback(reason::HEALTH_CHECK_FAILED, message).await;
        }
        self.ledger.change(|kept| kept.enter(Step::Watching { rounds: rounds + 1 })).await;
        let manifest = current.offer.as_ref().and_then(|offer| release::parse(offer.manifest.as_bytes()).ok());
        let health_secs = manifest.and_then(|manifest| manifest.app).map_or(0, |run| u64::from(run.health_secs));
        let health_for = Duration::from_secs(health_secs);
        let look_every = Duration::from_secs((health_secs / 10).clamp(1, 5));
        let began = Instant::now();
        loop {
            match self.jobs.helper.ask(Helper::app_states).await {
                Ok(apps) => match health(&apps, app_uuid, release_uuid) {
                    Err(message) => return self.begin_rollback(reason::HEALTH_CHECK_FAILED, message).await,
                    Ok(()) if began.elapsed() >= health_for => break,
                    Ok(()) => {}
                },
                // Whether it runs will not be known any more: what was there before did.
                Err(NotDone::NoAnswer { message, .. }) if began.elapsed() >= health_for + helping::PATIENCE => {
                    return self.begin_rollback(reason::HELPER_UNAVAILABLE, message).await;
                }
                Err(NotDone::NoAnswer { message, .. }) => self.is_in_the_way(message),
                Err(NotDone::Refused(refusal)) => {
                    let Failed { reason, message } = failed(refusal);
                    return self.begin_rollback(reason, message).await;
                }
            }
            tokio::time::sleep(look_every).await;
        }
        self.ledger.trouble(None);
        self.ledger.change(|kept| kept.enter(Step::Committing)).await;
    }

    async fn begin_rollback(&mut self, word: &str, message: String) {
        let step = Step::RollingBack { reason: word.to_owned(), message };
        self.ledger.change(|kept| kept.enter(step)).await;
    }

    pub async fn commit(&mut self, current: &Current, app_uuid: AppUuid) {
        match self.jobs.helper.finish(move |helper| helper.commit_app(app_uuid)).await {
            Ok(()) => {
                let version = current.offer.as_ref().map(|offer| offer.version.clone()).unwrap_or_default();
                self.succeeded(format!("version {version} is installed and runs")).await;
            }
            Err(Failed { reason, message }) => self.begin_rollback(reason, message).await,
        }
    }

    pub async fn roll_back(&mut self, current: &Current, app_uuid: AppUuid, word: &str, mut message: String) {
        if let Err(failed) = self.jobs.helper.finish(move |helper| helper.rollback_app(app_uuid)).await {
            message = format!("{message}; and the version before could not be brought back: {}", failed.message);
            self.tidy_soon();
        }
        let word = reason::known(word).unwrap_or(reason::HELPER_UNAVAILABLE);
        // Only what the release itself did wrong is held against it.
        let is_to_blame = matches!(word, reason::HEALTH_CHECK_FAILED | reason::DID_NOT_START);
        let sha256 = current.offer.as_ref().and_then(sha256_of).filter(|_| is_to_blame);
        self.failed(word, message, sha256.as_deref()).await;
    }

    pub async fn remove(&mut self, app_uuid: AppUuid) {
        match self.jobs.helper.finish(move |helper| helper.remove_app(app_uuid)).await {
            Ok(()) => self.succeeded("the app is removed".to_owned()).await,
            Err(Failed { reason, message }) => self.failed(reason, message, None).await,
        }
    }

    /// Has the helper forget what it staged and nobody activated. It may be at it still: this waits until it has done that.
    pub async fn unstage(&self, app_uuid: AppUuid) {
        let may_be_staged = self.is_staged() || self.ledger.current().is_some_and(|current| current.offer.is_some());
        if may_be_staged && let Err(not_done) = self.jobs.helper.ask(move |helper| helper.rollback_app(app_uuid)).await
        {
            // It makes room for the next release of the app anyway.
            tracing::debug!(?not_done, "the helper keeps a release that is not wanted any more");
        }
    }
}

/// Waits until it is later than this, by a clock that is known.
async fn passed(clock: &Clock, deadline_at: Timestamp) {
    while !clock.offset().known || clock.now() < deadline_at {
        let left_secs = u64::try_from(deadline_at.as_secs() - clock.now().as_secs()).unwrap_or(0);
        tokio::time::sleep(Duration::from_secs(left_secs.max(1)).min(LOOK_EVERY)).await;
    }
}

/// The version, when this release of the app is kept and runs.
fn runs_already(app: &AppState, app_uuid: AppUuid, release_uuid: ReleaseUuid) -> Option<String> {
    let is_it = |release: &Option<hub_agent::helper_api::AppRelease>| {
        release.as_ref().is_some_and(|release| release.release_uuid == release_uuid)
    };
    let runs = app.app_uuid == app_uuid && is_it(&app.active) && is_it(&app.committed);
    let is_up = app.unit.as_ref().is_none_or(|unit| unit.active_state == "active");
    app.committed.as_ref().filter(|_| runs && is_up).map(|release| release.version.clone())
}

/// Whether the release is the one that runs and has not ended since it was started.
fn health(apps: &[AppState], app_uuid: AppUuid, release_uuid: ReleaseUuid) -> Result<(), String> {
    let Some(app) = apps.iter().find(|app| app.app_uuid == app_uuid) else {
        return Err("the app is gone".to_owned());
    };
    if app.active.as_ref().is_none_or(|active| active.release_uuid != release_uuid) {
        return Err("another release of the app runs".to_owned());
    }
    let Some(unit) = &app.unit else { return Ok(()) };
    let UnitState { active_state, sub_state, result, exit, restarts, .. } = unit;
    let starts = active_state == "activating" && sub_state != "auto-restart";
    if *restarts == 0 && (active_state == "active" || starts) {
        return Ok(());
    }
    let how = exit.as_deref().unwrap_or(result);
    Err(format!("it ended while it was watched ({how}; {active_state}, {sub_state}, started again {restarts} times)"))
}

/// A path as the helper takes it: below the agent's state directory.
fn below(state_dir: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(state_dir).unwrap_or(path).to_owned()
}
