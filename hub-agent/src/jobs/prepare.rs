//! The step `Preparing`: gets the release of a job to the helper and changes nothing that runs.
//! Returns what is next to `engine`, and records its parts in the ledger:
//!
//! 1. The helper answers, and the change is not made already (nothing is recorded).
//! 2. The service's offer is verified: `offer`.
//! 3. The file is downloaded: every 10 % is an event. A restart resumes from the file on disk.
//! 4. The helper has checked and unpacked the file: `staged`. Parts 2 and 3 are not repeated.
//!
//! Until it ends the service can withdraw the job, its deadline can end it, and it can be deferred:
//! until its own window opens, or while the window of another deferred job is open. Work that can
//! be interrupted runs in [`Preparation::interruptible`] and never writes the ledger, so that an
//! interruption cannot lose a write.

use std::time::Duration;

use hub_agent::helper_api::Helper;
use hub_protocol::job::{DesiredJob, HubJobType, MaintenanceWindow};
use hub_protocol::release::{ReleaseManifest, ReleaseOffer};
use tokio::sync::watch;

use super::context::Context;
use super::download::{self, Attempts, Cut, Downloaded, PartFile};
use super::health;
use super::job::{Action, Failed, Trouble, reason};
use super::ledger::{Current, JobsState, Step};
use super::queue;
use super::release;
use super::window;
use crate::backoff::Backoff;

/// A job's progress when its file is downloaded, and when it is staged.
const DOWNLOADED_PERCENT: u64 = 70;
const STAGED_PERCENT: i64 = 80;
/// Downloads are reported in steps of this size: each is an upload of its own.
const DOWNLOAD_STEP_PERCENT: i64 = 10;

/// How the preparations ended.
pub enum Prepared {
    /// The change is next.
    Change(Step),
    /// Everything that is possible before the job's window opens is done.
    WaitForWindow,
    AlreadyDone(String),
}

/// Why the preparations were stopped.
pub enum Stopped {
    Withdrawn,
    /// The window of another deferred job is open.
    OtherWindow,
    Failed(Failed),
}

/// Why a part of the preparations was not finished.
enum Unfinished {
    Stopped(Stopped),
    /// A later attempt may succeed.
    Later(Failed),
}

impl From<Stopped> for Unfinished {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

impl From<Trouble> for Unfinished {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Fatal(failed) => Self::Stopped(Stopped::Failed(failed)),
            Trouble::Later(failed) => Self::Later(failed),
        }
    }
}

/// The preparations of the current job.
struct Preparation<'a> {
    context: &'a mut Context,
    current: Current,
    action: Action,
    progress: watch::Sender<Downloaded>,
    attempts: Attempts,
    /// The file is yet to be downloaded.
    is_downloading: bool,
    last_trouble: Option<Failed>,
}

/// Prepares the current job until its change is next, or until it is stopped. Ends by itself only
/// shortly before the job's deadline.
pub async fn prepare(
    context: &mut Context,
    current: &Current,
    action: Action,
) -> Result<Prepared, Stopped> {
    let mut preparation = Preparation {
        context,
        current: current.clone(),
        action,
        progress: watch::Sender::new(Downloaded::default()),
        attempts: Attempts::default(),
        is_downloading: false,
        last_trouble: None,
    };
    let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(300));
    loop {
        match preparation.attempt().await {
            Ok(prepared) => return Ok(prepared),
            Err(Unfinished::Stopped(stopped)) => return Err(stopped),
            Err(Unfinished::Later(failed)) => {
                preparation.wait_after(failed, backoff.next(None)).await?
            }
        }
    }
}

/// Removes what the preparations stored here and at the helper.
pub async fn undo(context: &Context, action: Action) {
    context.clear_downloads().await;
    match action {
        Action::UpdateAgent => context.clean_agents().await,
        Action::Install { app_uuid, .. } => {
            let is_staged = context
                .ledger
                .current()
                .is_some_and(|it| it.staged.is_some() || it.offer.is_some());
            if !is_staged {
                return;
            }
            // The helper may still be staging it: this waits until it has done that.
            let undone = context
                .jobs
                .helper
                .call(move |helper| helper.rollback_app(app_uuid))
                .await;
            if let Err(failure) = undone {
                // The app's next release replaces it anyway.
                tracing::debug!(
                    ?failure,
                    "the helper keeps a staged release that is no longer needed"
                );
            }
        }
        Action::Remove { .. } | Action::Move => {}
    }
}

impl Preparation<'_> {
    /// Everything once, without what an earlier attempt has recorded in the ledger.
    async fn attempt(&mut self) -> Result<Prepared, Unfinished> {
        let (job, action) = (&self.current.job.clone(), self.action);
        let (helper, update) = (
            self.context.jobs.helper.clone(),
            self.context.jobs.update.clone(),
        );
        let reach = async {
            if action == Action::UpdateAgent && !update.is_launched() {
                let message = "this agent was not started by hub-agent-launcher, which alone can start another version";
                return Err(Trouble::fatal(reason::NO_LAUNCHER, message));
            }
            helper.reach().await
        };
        let apps = self.interruptible(reach).await??;
        if let Action::Install {
            app_uuid,
            release_uuid,
        } = action
            && !job.force
            && let Some(version) = health::running_version(&apps, app_uuid, release_uuid)
        {
            return Ok(Prepared::AlreadyDone(format!(
                "version {version} is installed already"
            )));
        }
        if self.context.staged().is_none() && !matches!(action, Action::Remove { .. }) {
            if action == Action::UpdateAgent && !job.force {
                let (_, manifest) = self.offer(job).await?;
                if manifest.version == env!("CARGO_PKG_VERSION") {
                    return Ok(Prepared::AlreadyDone(format!(
                        "version {} runs already",
                        manifest.version
                    )));
                }
            }
            let (offer, part) = self.download(job).await?;
            self.stage(action, offer, &part).await?;
        }
        let change = match action {
            Action::Install { .. } => Step::Activating,
            Action::Remove { .. } => Step::Removing,
            Action::UpdateAgent => Step::OnTrial {
                dir: self.context.staged().unwrap_or_default(),
            },
            Action::Move => Step::Switching,
        };
        Ok(self.in_window(job, change)?)
    }

    /// The job's release, verified, as the service offered it now or before a restart.
    async fn offer(
        &mut self,
        job: &DesiredJob,
    ) -> Result<(ReleaseOffer, ReleaseManifest), Unfinished> {
        self.is_downloading = true;
        let known = self
            .context
            .ledger
            .current()
            .and_then(|current| current.offer.clone());
        let is_fresh =
            |offer: &ReleaseOffer| offer.download_url_expires_at > self.context.jobs.clock.now();
        let offer = match known.clone().filter(is_fresh) {
            Some(offer) => offer,
            None => {
                let service = self.context.jobs.service.clone();
                self.interruptible(async { release::request(&service, job).await })
                    .await??
            }
        };
        let manifest = release::verify(&offer, job, &self.context.jobs.config.release_keys)?;
        if let Some(failed) = self
            .context
            .ledger
            .state()
            .failed_releases
            .get(&manifest.sha256)
            && !job.force
        {
            let message = format!(
                "version {} failed on this hub before ({}: {}), and the job does not say force",
                manifest.version, failed.reason, failed.message
            );
            return Err(Trouble::fatal(reason::FAILED_BEFORE, message).into());
        }
        if known.as_ref() != Some(&offer) {
            self.context
                .ledger
                .change(|state| state.set_offer(Some(offer.clone())))
                .await;
        }
        Ok((offer, manifest))
    }

    /// Downloads the release's file. Outages are waited out until the job is abandoned.
    async fn download(&mut self, job: &DesiredJob) -> Result<(ReleaseOffer, PartFile), Unfinished> {
        let disk = |error: std::io::Error| {
            let message = format!("the download cannot be written: {error}");
            Trouble::later(reason::DOWNLOAD_FAILED, message)
        };
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(300));
        loop {
            let (offer, manifest) = self.offer(job).await?;
            let part = PartFile::open(self.context.jobs.state_dir.path(), &manifest)
                .await
                .map_err(disk)?;
            part.check_space(self.context.jobs.config.headroom_bytes)
                .await?;
            let (service, progress) = (self.context.jobs.service.clone(), self.progress.clone());
            let attempts = self.attempts;
            let attempt =
                async { download::attempt(&service, &offer, &part, &attempts, &progress).await };
            let (cut, has_progressed) = match self.interruptible(attempt).await?.map_err(disk)? {
                Ok(()) => {
                    self.context.jobs.view.clear_trouble();
                    self.last_trouble = None;
                    self.is_downloading = false;
                    return Ok((offer, part));
                }
                Err(cut) => cut,
            };
            if has_progressed && cut != Cut::Mixed {
                backoff.reset();
            }
            if let Some(failed) = self.attempts.exhausted_by(&cut) {
                part.discard().await.map_err(disk)?;
                return Err(Trouble::Fatal(failed).into());
            }
            if cut.needs_new_offer() {
                self.context
                    .ledger
                    .change(|state| state.set_offer(None))
                    .await;
            }
            self.wait_after(cut.into_failed(), backoff.next(None))
                .await?;
        }
    }

    /// Has the helper check and unpack the file, which is then no longer needed here.
    async fn stage(
        &mut self,
        action: Action,
        offer: ReleaseOffer,
        part: &PartFile,
    ) -> Result<(), Unfinished> {
        let (helper, file) = (
            self.context.jobs.helper.clone(),
            part.path_in(self.context.jobs.state_dir.path()),
        );
        let in_use = self.context.agents_in_use();
        let staging = async move {
            let ReleaseOffer {
                manifest,
                signature,
                ..
            } = offer;
            match action {
                Action::Install {
                    app_uuid,
                    release_uuid,
                } => {
                    let stage = move |helper: &Helper| {
                        helper.stage_app(app_uuid, release_uuid, &manifest, &signature, &file)
                    };
                    helper.call(stage).await.map(|staged| staged.version)
                }
                Action::UpdateAgent | Action::Remove { .. } | Action::Move => {
                    let stage = move |helper: &Helper| {
                        helper.stage_agent(&manifest, &signature, &file, &in_use)
                    };
                    helper.call(stage).await.map(|staged| staged.dir)
                }
            }
        };
        let name = self.interruptible(staging).await?.map_err(Trouble::from)?;
        self.context.jobs.view.clear_trouble();
        let change = |state: &mut JobsState| {
            state.set_staged(name);
            state.progress(STAGED_PERCENT, "checked and unpacked");
        };
        self.context.ledger.change(change).await;
        self.context.spool_events_now().await;
        self.context.clear_downloads().await;
        Ok(())
    }

    /// The change, if the window allows it now.
    fn in_window(&self, job: &DesiredJob, change: Step) -> Result<Prepared, Trouble> {
        let Some(window) = &job.window else {
            return Ok(Prepared::Change(change));
        };
        let clock = &self.context.jobs.clock;
        match window::is_open(Some(window), clock.now()) {
            // The time of a clock that was never set means nothing.
            Some(is_open) if is_open && clock.offset().known => Ok(Prepared::Change(change)),
            Some(_) => Ok(Prepared::WaitForWindow),
            None => {
                let message = format!("the window {} to {} is malformed", window.start, window.end);
                Err(Trouble::fatal(reason::BAD_RELEASE, message))
            }
        }
    }

    /// Runs one part of the preparations. Ends early when the service withdraws the job, when the
    /// window of another opens, or shortly before the job's deadline. Records the progress of a
    /// download meanwhile.
    async fn interruptible<T>(&mut self, part: impl Future<Output = T>) -> Result<T, Stopped> {
        let clock = self.context.jobs.clock.clone();
        let windows = self.windows_ahead();
        let withdrawn = queue::until_withdrawn(
            self.context.jobs.requested.clone(),
            self.current.job.hub_job_uuid,
        );
        let opened = window::until_open(&clock, &windows);
        let abandoned = window::until(&clock, self.current.abandon_at());
        let mut progress = self.progress.subscribe();
        tokio::pin!(part, withdrawn, opened, abandoned);
        loop {
            let downloaded = tokio::select! {
                biased;
                () = &mut withdrawn => return Err(Stopped::Withdrawn),
                () = &mut opened => return Err(Stopped::OtherWindow),
                () = &mut abandoned => return Err(Stopped::Failed(self.expired())),
                ended = &mut part => return Ok(ended),
                _ = progress.changed() => *progress.borrow_and_update(),
            };
            self.report_download(downloaded).await;
        }
    }

    async fn report_download(&mut self, Downloaded { bytes, size_bytes }: Downloaded) {
        let share =
            u128::from(bytes) * u128::from(DOWNLOADED_PERCENT) / u128::from(size_bytes.max(1));
        let percent = i64::try_from(share).unwrap_or(0);
        let reported = self
            .context
            .ledger
            .current()
            .map_or(0, |current| current.progress);
        if percent >= reported + DOWNLOAD_STEP_PERCENT {
            let message = format!("{bytes} of {size_bytes} bytes downloaded");
            self.context
                .ledger
                .change(|state| state.progress(percent, &message))
                .await;
            self.context.spool_events_now().await;
        }
    }

    async fn wait_after(&mut self, failed: Failed, wait: Duration) -> Result<(), Stopped> {
        self.context.jobs.view.show_trouble(&failed.message);
        self.last_trouble = Some(failed);
        self.interruptible(tokio::time::sleep(wait)).await
    }

    /// The failure of a job that was not prepared in time.
    fn expired(&self) -> Failed {
        let (reason, last) = match &self.last_trouble {
            Some(Failed { reason, message }) => (*reason, format!("; last: {message}")),
            None if self.is_downloading => (reason::DOWNLOAD_FAILED, String::new()),
            None => (reason::EXPIRED, String::new()),
        };
        let message = match self.is_downloading {
            true => format!("it could not be downloaded before its deadline{last}"),
            false => format!("its deadline passed before it was done{last}"),
        };
        Failed::new(reason, message)
    }

    /// The windows of deferred jobs that could pass unused while the current job is downloaded.
    fn windows_ahead(&self) -> Vec<MaintenanceWindow> {
        if self.context.staged().is_some() || self.current.job.job_type == HubJobType::AppRemove {
            return Vec::new();
        }
        let parked = self
            .context
            .ledger
            .state()
            .parked
            .iter()
            .filter(|parked| parked.is_waiting);
        parked
            .filter_map(|parked| parked.job.window.clone())
            .collect()
    }
}
