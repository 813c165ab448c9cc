//! The single steps of a job. Each may have been done before, by a start that was killed, and can be done again.
//! Preparing changes nothing that runs; whatever does is a step of its own, entered only when it is on disk that it begins.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hub_agent::helper_api::{AppState, Helper, UnitState};
use hub_protocol::job::{DesiredJob, HubJobType};
use hub_protocol::release::{self, ReleaseManifest, ReleaseOffer};
use hub_protocol::{AppUuid, ReleaseUuid, Timestamp};
use reqwest::Url;
use tokio::sync::watch;
use tokio::time::Instant;

use super::download::{self, Cut, PartFile};
use super::engine::{Jobs, LOOK_EVERY, Prepared, Worker};
use super::helping::{NotDone, failed};
use super::ledger::{Current, Step};
use super::{Failed, Trouble, reason, window};
use crate::backoff::Backoff;
use crate::clock::Clock;

/// Of a hundred: what has come of a job when its file is here, when the helper has it, when the new version runs.
const DOWNLOADED_PERCENT: i64 = 70;
const STAGED_PERCENT: i64 = 80;
const ACTIVE_PERCENT: i64 = 90;
/// Downloads are told of in steps this large: each is an upload of its own.
const DOWNLOAD_STEP_PERCENT: i64 = 10;

/// Files of the wrong content before the release is given up.
const MAX_WRONG_CONTENTS: u32 = 3;

/// Starts of the agent that one app may be watched over: one that takes the hub down is not watched for ever.
const MAX_WATCHES: u32 = 3;

/// The digest a manifest names, trusted or not.
pub fn sha256_of(offer: &ReleaseOffer) -> Option<String> {
    release::parse(offer.manifest.as_bytes()).ok().map(|manifest| manifest.sha256)
}

impl Worker {
    /// Does all of a job that changes nothing yet, and waits for its window. Ends by itself only at the job's deadline.
    pub async fn prepare(&mut self, current: &Current) -> Prepared {
        let (clock, deadline_at) = (self.jobs.clock.clone(), current.job.deadline_at);
        let mut trouble = None;
        tokio::select! {
            prepared = self.try_to_prepare(&current.job, &mut trouble) => return prepared,
            () = passed(&clock, deadline_at) => {}
        }
        let why = trouble.map(|trouble: String| format!("; last: {trouble}")).unwrap_or_default();
        Prepared::Failed(Failed {
            reason: reason::EXPIRED,
            message: format!("its deadline passed before it was done{why}"),
        })
    }

    async fn try_to_prepare(&mut self, job: &DesiredJob, trouble: &mut Option<String>) -> Prepared {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(300));
        loop {
            let prepared = match job.job_type {
                HubJobType::AppInstall => self.prepare_app(job).await,
                HubJobType::AppRemove => self.prepare_removal(job).await,
                HubJobType::SelfUpdate => self.prepare_agent(job).await,
            };
            match prepared {
                Ok(prepared) => return prepared,
                Err(Trouble::Fatal(failed)) => return Prepared::Failed(failed),
                Err(Trouble::Later(message)) => {
                    tracing::debug!(why = message, "a job waits");
                    self.ledger.trouble(Some(&message));
                    *trouble = Some(message);
                }
            }
            tokio::time::sleep(backoff.next(None)).await;
        }
    }

    async fn prepare_app(&mut self, job: &DesiredJob) -> Result<Prepared, Trouble> {
        let (app_uuid, release_uuid) = app_and_release(job)?;
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
        self.wait_for_window(job).await?;
        Ok(Prepared::Go(Step::Activating))
    }

    async fn prepare_removal(&mut self, job: &DesiredJob) -> Result<Prepared, Trouble> {
        app_of(job)?;
        self.jobs.helper.reach().await?;
        self.wait_for_window(job).await?;
        Ok(Prepared::Go(Step::Removing))
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
            let in_use = self.jobs.update.in_use();
            let staged = self
                .jobs
                .helper
                .ask(move |helper| helper.stage_agent(&offer.manifest, &offer.signature, &file, &in_use))
                .await?;
            self.staged(staged.dir).await;
        }
        self.wait_for_window(job).await?;
        let dir = self.ledger.current().and_then(|current| current.staged.clone()).unwrap_or_default();
        Ok(Prepared::Go(Step::OnTrial { dir }))
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
        if let Err(error) = download::clear(self.jobs.state_dir.path()) {
            tracing::warn!(%error, "a download cannot be removed; it is when the next one begins");
        }
    }

    /// Events are told while a job waits, and not only when its next step begins.
    async fn tell(&mut self) {
        // A spool that has stopped ends the agent elsewhere.
        let _ = self.hand_over().await;
    }

    /// The job's release, trusted, as the service offered it: now, or before the agent started again.
    async fn offered(&mut self, job: &DesiredJob) -> Result<(ReleaseOffer, ReleaseManifest), Trouble> {
        let known = self.ledger.current().and_then(|current| current.offer.clone());
        let is_fresh = |offer: &ReleaseOffer| offer.download_url_expires_at > self.jobs.clock.now();
        let offer = match known.clone().filter(is_fresh) {
            Some(offer) => offer,
            None => super::release::ask(&self.jobs.service, job).await?,
        };
        let manifest = super::release::trust(&offer, job, &self.jobs.config.release_keys)?;
        if let Some(failed) = self.ledger.kept().failed_releases.get(&manifest.sha256)
            && !job.force
        {
            let message = format!(
                "version {} failed on this hub before ({}: {}), and the job does not say force",
                manifest.version, failed.reason, failed.message
            );
            return Err(Trouble::fatal(reason::FAILED_BEFORE, message));
        }
        if known.as_ref() != Some(&offer) {
            let trusted = Some(offer.clone());
            self.ledger
                .change(|kept| kept.current.iter_mut().for_each(|current| current.offer = trusted.clone()))
                .await;
        }
        Ok((offer, manifest))
    }

    /// Brings the release's file here. What the line or the store does wrong is tried again until the deadline.
    async fn obtain(&mut self, job: &DesiredJob) -> Result<(ReleaseOffer, PartFile), Trouble> {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(300));
        let mut wrong_contents = 0;
        loop {
            let (offer, manifest) = self.offered(job).await?;
            let disk = |error: std::io::Error| Trouble::Later(format!("the download cannot be written: {error}"));
            let part = PartFile::new(self.jobs.state_dir.path(), &manifest).map_err(disk)?;
            part.remove_others().map_err(disk)?;
            part.check_room(self.jobs.config.headroom_bytes)?;
            let had_bytes = part.have_bytes();
            let fetched = self.fetch(&offer, &manifest, &part).await;
            if part.have_bytes() > had_bytes {
                backoff.reset();
            }
            let trouble = match fetched {
                Ok(()) if part.is_right().await.map_err(disk)? => {
                    self.ledger.trouble(None);
                    return Ok((offer, part));
                }
                Ok(()) => Cut::WrongContent("its digest is not the manifest's".to_owned()),
                Err(cut) => cut,
            };
            let message = match trouble {
                Cut::Fatal(failed) => {
                    part.discard().map_err(disk)?;
                    return Err(Trouble::Fatal(failed));
                }
                Cut::Again(message) => message,
                Cut::StaleUrl(message) => {
                    self.forget_offer().await;
                    message
                }
                Cut::WrongContent(message) => {
                    part.discard().map_err(disk)?;
                    self.forget_offer().await;
                    wrong_contents += 1;
                    if wrong_contents == MAX_WRONG_CONTENTS {
                        let message =
                            format!("{MAX_WRONG_CONTENTS} times the file was not the one of the manifest: {message}");
                        return Err(Trouble::fatal(reason::DIGEST_MISMATCH, message));
                    }
                    message
                }
            };
            tracing::debug!(why = message, "a download is tried again");
            self.ledger.trouble(Some(&message));
            tokio::time::sleep(backoff.next(None)).await;
        }
    }

    /// One request for what is missing of the file, telling how far it is.
    async fn fetch(&mut self, offer: &ReleaseOffer, manifest: &ReleaseManifest, part: &PartFile) -> Result<(), Cut> {
        let service = self.jobs.service.clone();
        let url = place(service.url(), &offer.download_url).map_err(Cut::StaleUrl)?;
        let http = service.download_client(&url).map_err(|error| Cut::Again(error.to_string()))?;
        let (bytes, mut seen) = watch::channel(part.have_bytes());
        let fetching = part.fetch(&http, url, service.request_timeout, &bytes);
        tokio::pin!(fetching);
        loop {
            tokio::select! {
                ended = &mut fetching => return ended,
                _ = seen.changed() => {
                    let bytes = *seen.borrow_and_update();
                    let share = u128::from(bytes) * DOWNLOADED_PERCENT.unsigned_abs() as u128 / u128::from(manifest.size_bytes.max(1));
                    let percent = i64::try_from(share).unwrap_or(0);
                    let told = self.ledger.current().map_or(0, |current| current.progress);
                    if percent >= told + DOWNLOAD_STEP_PERCENT {
                        let message = format!("{bytes} of {} bytes downloaded", manifest.size_bytes);
                        self.ledger.change(|kept| kept.progress(percent, &message)).await;
                        self.tell().await;
                    }
                }
            }
        }
    }

    async fn forget_offer(&mut self) {
        self.ledger.change(|kept| kept.current.iter_mut().for_each(|current| current.offer = None)).await;
    }

    async fn wait_for_window(&mut self, job: &DesiredJob) -> Result<(), Trouble> {
        let Some(wanted) = &job.window else { return Ok(()) };
        let mut said = false;
        loop {
            let now = self.jobs.clock.offset().known.then(|| self.jobs.clock.now());
            match now.map_or(Some(false), |now| window::is_open(Some(wanted), now)) {
                Some(true) => {
                    self.ledger.trouble(None);
                    return Ok(());
                }
                Some(false) => {}
                None => {
                    let message = format!("the window {} to {} makes no sense", wanted.start, wanted.end);
                    return Err(Trouble::fatal(reason::BAD_RELEASE, message));
                }
            }
            if !std::mem::replace(&mut said, true) {
                let message = format!("waits for its maintenance window, {} to {}", wanted.start, wanted.end);
                self.ledger.trouble(Some(&message));
                self.ledger.change(|kept| kept.log(message)).await;
                self.tell().await;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    pub async fn activate(&mut self, job: &DesiredJob) {
        let Ok((app_uuid, release_uuid)) = app_and_release(job) else {
            return self.failed(reason::BAD_RELEASE, "the job names no app or release".to_owned(), None).await;
        };
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
    pub async fn watch(&mut self, current: &Current, rounds: u32) {
        if rounds >= MAX_WATCHES {
            let message =
                format!("the agent or the hub went down {MAX_WATCHES} times while the new version was watched");
            return self.unhealthy(message).await;
        }
        self.ledger.change(|kept| kept.enter(Step::Watching { rounds: rounds + 1 })).await;
        let Ok((app_uuid, release_uuid)) = app_and_release(&current.job) else {
            return self.unhealthy("the job names no app or release".to_owned()).await;
        };
        let manifest = current.offer.as_ref().and_then(|offer| release::parse(offer.manifest.as_bytes()).ok());
        let health_secs = manifest.and_then(|manifest| manifest.app).map_or(0, |run| u64::from(run.health_secs));
        let look_every = Duration::from_secs((health_secs / 10).clamp(1, 5));
        let began = Instant::now();
        loop {
            let health = match self.jobs.helper.ask(Helper::app_states).await {
                Ok(apps) => Some(health(&apps, app_uuid, release_uuid)),
                Err(NotDone::NoAnswer { message, .. }) => {
                    tracing::debug!(why = message, "whether an app runs is not known");
                    None
                }
                Err(NotDone::Refused(refusal)) => Some(Err(failed(refusal).message)),
            };
            match health {
                Some(Err(message)) => return self.unhealthy(message).await,
                Some(Ok(())) if began.elapsed() >= Duration::from_secs(health_secs) => break,
                _ => tokio::time::sleep(look_every).await,
            }
        }
        self.ledger.change(|kept| kept.enter(Step::Committing)).await;
    }

    async fn unhealthy(&mut self, message: String) {
        let step = Step::RollingBack { reason: reason::HEALTH_CHECK_FAILED.to_owned(), message };
        self.ledger.change(|kept| kept.enter(step)).await;
    }

    pub async fn commit(&mut self, current: &Current) {
        let Ok(app_uuid) = app_of(&current.job) else {
            return self.failed(reason::BAD_RELEASE, "the job names no app".to_owned(), None).await;
        };
        match self.jobs.helper.finish(move |helper| helper.commit_app(app_uuid)).await {
            Ok(()) => {
                let version = current.offer.as_ref().map(|offer| offer.version.clone()).unwrap_or_default();
                self.succeeded(format!("version {version} is installed and runs")).await;
            }
            Err(Failed { reason, message }) => {
                let step = Step::RollingBack { reason: reason.to_owned(), message };
                self.ledger.change(|kept| kept.enter(step)).await;
            }
        }
    }

    pub async fn roll_back(&mut self, current: &Current, word: &str, mut message: String) {
        let Ok(app_uuid) = app_of(&current.job) else {
            return self.failed(reason::BAD_RELEASE, "the job names no app".to_owned(), None).await;
        };
        if let Err(failed) = self.jobs.helper.finish(move |helper| helper.rollback_app(app_uuid)).await {
            message = format!("{message}; and the version before could not be brought back: {}", failed.message);
        }
        let word = known_reason(word);
        // Only what the release itself did wrong is held against it.
        let is_to_blame = matches!(word, reason::HEALTH_CHECK_FAILED | reason::DID_NOT_START);
        let sha256 = current.offer.as_ref().and_then(sha256_of).filter(|_| is_to_blame);
        self.failed(word, message, sha256.as_deref()).await;
    }

    pub async fn remove(&mut self, job: &DesiredJob) {
        let Ok(app_uuid) = app_of(job) else {
            return self.failed(reason::BAD_RELEASE, "the job names no app".to_owned(), None).await;
        };
        match self.jobs.helper.finish(move |helper| helper.remove_app(app_uuid)).await {
            Ok(()) => self.succeeded("the app is removed".to_owned()).await,
            Err(Failed { reason, message }) => self.failed(reason, message, None).await,
        }
    }

    /// Has the helper forget what it staged and nobody activated. It may be at it still: this waits until it has done that.
    pub async fn unstage(&mut self, job: &DesiredJob) {
        let Ok(app_uuid) = app_of(job) else { return };
        let may_be_staged = self.is_staged() || self.ledger.current().is_some_and(|current| current.offer.is_some());
        if may_be_staged && let Err(not_done) = self.jobs.helper.ask(move |helper| helper.rollback_app(app_uuid)).await
        {
            // It makes room for the next release of the app anyway.
            tracing::debug!(?not_done, "the helper keeps a release that is not wanted any more");
        }
    }
}

impl Jobs {
    /// Has the helper remove versions of the agent that will not run again.
    pub(super) async fn clean_agent(&self) {
        let (in_use, confirmed) = (self.update.in_use(), self.update.confirmed_dir());
        let cleaned = self.helper.ask(move |helper| helper.clean_agent(&in_use, confirmed.as_deref())).await;
        if let Err(not_done) = cleaned {
            tracing::debug!(?not_done, "the helper keeps versions that are not needed");
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

fn app_of(job: &DesiredJob) -> Result<AppUuid, Trouble> {
    job.app_uuid.ok_or_else(|| Trouble::fatal(reason::BAD_RELEASE, "the job names no app"))
}

fn app_and_release(job: &DesiredJob) -> Result<(AppUuid, ReleaseUuid), Trouble> {
    let release_uuid =
        job.release_uuid.ok_or_else(|| Trouble::fatal(reason::BAD_RELEASE, "the job names no release"))?;
    Ok((app_of(job)?, release_uuid))
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

/// The words a rollback begins with, as they are on disk.
fn known_reason(word: &str) -> &'static str {
    [reason::BAD_RELEASE, reason::COUNTER_TOO_LOW, reason::DID_NOT_START, reason::HELPER_UNAVAILABLE, reason::NO_SPACE]
        .into_iter()
        .find(|known| *known == word)
        .unwrap_or(reason::HEALTH_CHECK_FAILED)
}

/// A path as the helper takes it: below the agent's state directory.
fn below(state_dir: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(state_dir).unwrap_or(path).to_owned()
}

/// Where a file is: a path of the service, or another store's URL.
fn place(service: &Url, download_url: &str) -> Result<Url, String> {
    let joined = match download_url.strip_prefix('/') {
        Some(path) => service.join(path),
        None => Url::parse(download_url),
    };
    let url = joined.map_err(|error| format!("the download's URL is none: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("the download's URL is neither https nor http".to_owned());
    }
    Ok(url)
}
