//! The state machine of the jobs. This file decides what happens next; the modules below it do the
//! work and return its outcome.
//!
//! One job is current at a time. Its step is on disk (in the ledger) before the step begins. After
//! a restart the step on disk is repeated from its beginning: every step can be repeated.
//!
//! | step          | what it does                               | next                            |
//! |---------------|--------------------------------------------|---------------------------------|
//! | `Preparing`   | gets the release to the helper (`prepare`) | the change, deferred, or ended  |
//! | `Activating`  | the helper starts the new version          | `Watching`, else `RollingBack`  |
//! | `Watching`    | reads the app's health for `healthSecs`    | `Committing` or `RollingBack`   |
//! | `Committing`  | the helper keeps the new version           | succeeded, else `RollingBack`   |
//! | `RollingBack` | the helper starts the previous version     | failed, with the step's reason  |
//! | `Removing`    | the helper removes the app                 | succeeded or failed             |
//! | `OnTrial`     | requests the trial of a new agent and ends | succeeded or failed             |
//! |               | this one; then waits for the outcome       |                                 |
//! | `Switching`   | the agent starts again at another service  | none: see `moving`              |
//!
//! The change is `Activating`, `Removing`, `OnTrial` or `Switching`. Before it a job changes
//! nothing that runs: the service can withdraw it, its deadline ends it, and it can be deferred.
//! After it a job is finished one way or the other, over any number of restarts. A job's end, the
//! events that report it and the failed release are one write. Events then move from the ledger to
//! the spool.

use std::time::Duration;

use hub_agent::helper_api::Helper;
use hub_protocol::release as protocol_release;
use hub_protocol::{AppUuid, ReleaseUuid};
use tokio::time::Instant;

use super::context::{Context, Jobs};
use super::health;
use super::job::{Action, Failed, reason};
use super::ledger::{Current, JobsState, Step};
use super::moving;
use super::prepare::{self, Prepared, Stopped};
use super::queue::{self, Next};
use super::release;
use super::upkeep;
use super::window::CHECK_EVERY;
use crate::spool::SpoolStopped;
use crate::update::{Outcome, has_heard_recently};

/// A job's progress when the new version of its app runs.
const ACTIVE_PERCENT: i64 = 90;

/// Starts of the agent during which one app may be watched: an app that takes the hub down is not
/// watched for ever.
const MAX_WATCHES: u32 = 3;

/// How often apps that run an uncommitted version are searched for.
const TIDY_EVERY: Duration = Duration::from_secs(600);
/// The time until the next attempt after a search or a rollback failed.
const TIDY_RETRY: Duration = Duration::from_secs(60);

struct Engine {
    context: Context,
    tidy_at: Instant,
    agents_cleaned: bool,
}

/// Does the jobs until the spool has stopped.
pub async fn run(jobs: Jobs) -> Result<(), SpoolStopped> {
    let mut engine = Engine {
        context: Context::load(jobs),
        tidy_at: Instant::now(),
        agents_cleaned: false,
    };
    if engine
        .context
        .ledger
        .current()
        .is_none_or(|current| current.staged.is_some())
    {
        // The agent may have been killed before it could.
        engine.context.clear_downloads().await;
    }
    moving::drop_unknown(&engine.context).await;
    loop {
        engine.context.spool_events().await?;
        match engine.context.ledger.current().cloned() {
            Some(current) => engine.advance(&current).await,
            None => engine.begin_next().await,
        }
    }
}

impl Engine {
    /// Does the current job's step and enters the next one, or ends the job.
    async fn advance(&mut self, current: &Current) {
        tracing::debug!(hub_job_uuid = %current.job.hub_job_uuid, step = ?current.step, "a job continues");
        let action = match Action::of(&current.job) {
            Ok(action) => action,
            Err(failed) => return self.fail(failed, None).await,
        };
        let helper = self.context.jobs.helper.clone();
        match (current.step.clone(), action) {
            (Step::Preparing, action) => self.prepare(current, action).await,
            (
                Step::Activating,
                Action::Install {
                    app_uuid,
                    release_uuid,
                },
            ) => {
                let activated = helper
                    .finish(move |helper| helper.activate_app(app_uuid, release_uuid))
                    .await;
                self.context.jobs.apps_changed.notify_one();
                match activated {
                    Ok(()) => {
                        let change = |state: &mut JobsState| {
                            state.progress(ACTIVE_PERCENT, "started");
                            state.enter(Step::Watching { rounds: 0 });
                        };
                        self.context.ledger.change(change).await;
                    }
                    Err(failed) => self.enter_rollback(failed).await,
                }
            }
            (
                Step::Watching { rounds },
                Action::Install {
                    app_uuid,
                    release_uuid,
                },
            ) => {
                self.watch(current, app_uuid, release_uuid, rounds).await;
            }
            (Step::Committing, Action::Install { app_uuid, .. }) => {
                match helper
                    .finish(move |helper| helper.commit_app(app_uuid))
                    .await
                {
                    Ok(()) => {
                        let version = current
                            .offer
                            .as_ref()
                            .map(|offer| offer.version.clone())
                            .unwrap_or_default();
                        self.succeed(format!("version {version} is installed and runs"))
                            .await;
                    }
                    Err(failed) => self.enter_rollback(failed).await,
                }
            }
            (Step::RollingBack { reason, message }, Action::Install { app_uuid, .. }) => {
                self.roll_back(current, app_uuid, &reason, message).await;
            }
            (Step::Removing, Action::Remove { app_uuid }) => {
                match helper
                    .finish(move |helper| helper.remove_app(app_uuid))
                    .await
                {
                    Ok(()) => self.succeed("the app is removed".to_owned()).await,
                    Err(failed) => self.fail(failed, None).await,
                }
            }
            (Step::OnTrial { dir }, Action::UpdateAgent) => self.try_agent(current, &dir).await,
            (Step::Switching, Action::Move) => moving::switch(&mut self.context, current).await,
            (step, action) => {
                let message = format!("{step:?} is not a step of {action:?}");
                self.fail(Failed::new(reason::BAD_RELEASE, message), None)
                    .await;
            }
        }
    }

    async fn prepare(&mut self, current: &Current, action: Action) {
        let prepared = match action {
            Action::Move => moving::prepare(&mut self.context, current).await,
            _ => prepare::prepare(&mut self.context, current, action).await,
        };
        match prepared {
            Ok(Prepared::Change(step)) => {
                self.context.ledger.change(|state| state.enter(step)).await
            }
            Ok(Prepared::WaitForWindow) => {
                self.context
                    .ledger
                    .change(JobsState::park_until_window)
                    .await
            }
            Err(Stopped::OtherWindow) => {
                self.context
                    .ledger
                    .change(JobsState::park_for_another)
                    .await
            }
            Ok(Prepared::AlreadyDone(message)) => {
                prepare::undo(&self.context, action).await;
                self.context
                    .ledger
                    .change(|state| state.succeed(message))
                    .await;
            }
            Err(Stopped::Withdrawn) => {
                tracing::info!(hub_job_uuid = %current.job.hub_job_uuid, "the service withdrew a job; it is undone");
                prepare::undo(&self.context, action).await;
                self.context.ledger.change(JobsState::drop_current).await;
            }
            Err(Stopped::Failed(failed)) => {
                prepare::undo(&self.context, action).await;
                self.fail(failed, None).await;
            }
        }
    }

    async fn watch(
        &mut self,
        current: &Current,
        app_uuid: AppUuid,
        release_uuid: ReleaseUuid,
        rounds: u32,
    ) {
        if rounds >= MAX_WATCHES {
            let message = format!(
                "the agent or the hub went down {MAX_WATCHES} times while the new version was watched"
            );
            return self
                .enter_rollback(Failed::new(reason::HEALTH_CHECK_FAILED, message))
                .await;
        }
        self.context
            .ledger
            .change(|state| state.enter(Step::Watching { rounds: rounds + 1 }))
            .await;
        let manifest = current
            .offer
            .as_ref()
            .and_then(|offer| protocol_release::parse(offer.manifest.as_bytes()).ok());
        let health_secs = manifest
            .and_then(|manifest| manifest.app)
            .map_or(0, |run| u64::from(run.health_secs));
        let health_for = Duration::from_secs(health_secs);
        match health::watch(
            &self.context.jobs.helper,
            &self.context.jobs.view,
            app_uuid,
            release_uuid,
            health_for,
        )
        .await
        {
            Ok(()) => {
                self.context.jobs.view.clear_trouble();
                self.context
                    .ledger
                    .change(|state| state.enter(Step::Committing))
                    .await;
            }
            Err(failed) => self.enter_rollback(failed).await,
        }
    }

    async fn enter_rollback(&mut self, failed: Failed) {
        let step = Step::RollingBack {
            reason: failed.reason.to_owned(),
            message: failed.message,
        };
        self.context.ledger.change(|state| state.enter(step)).await;
    }

    async fn roll_back(
        &mut self,
        current: &Current,
        app_uuid: AppUuid,
        reason: &str,
        mut message: String,
    ) {
        if let Err(failed) = self
            .context
            .jobs
            .helper
            .finish(move |helper| helper.rollback_app(app_uuid))
            .await
        {
            message = format!(
                "{message}; the previous version could not be restored: {}",
                failed.message
            );
            self.tidy_soon();
        }
        let reason = reason::known(reason).unwrap_or(reason::HELPER_UNAVAILABLE);
        // A release is remembered as failed only for its own faults.
        let is_to_blame = matches!(reason, reason::HEALTH_CHECK_FAILED | reason::DID_NOT_START);
        let sha256 = current
            .offer
            .as_ref()
            .and_then(release::sha256_of)
            .filter(|_| is_to_blame);
        self.fail(Failed::new(reason, message), sha256.as_deref())
            .await;
    }

    /// Requests the trial of a new version of the agent, or waits for its outcome.
    async fn try_agent(&mut self, current: &Current, dir: &str) {
        let (update, job_uuid) = (self.context.jobs.update.clone(), current.job.hub_job_uuid);
        match update.outcome(job_uuid, dir) {
            Outcome::OnTrial => update.until_confirmed().await,
            Outcome::Confirmed => {
                // Until the helper has this version's counter, older versions could be installed.
                let (in_use, confirmed) = (self.context.agents_in_use(), update.confirmed_dir());
                let clean =
                    move |helper: &Helper| helper.clean_agent(&in_use, confirmed.as_deref());
                let pending = match self.context.jobs.helper.finish(clean).await {
                    Ok(()) => String::new(),
                    Err(failed) => {
                        format!("; the helper has not recorded it yet: {}", failed.message)
                    }
                };
                self.succeed(format!(
                    "version {} runs{pending}",
                    env!("CARGO_PKG_VERSION")
                ))
                .await;
            }
            Outcome::Failed(failed) => {
                self.context.clean_agents().await;
                let sha256 = current.offer.as_ref().and_then(release::sha256_of);
                let reason = reason::known(&failed.reason).unwrap_or(reason::NOT_CONFIRMED);
                self.fail(Failed::new(reason, failed.message), sha256.as_deref())
                    .await;
            }
            Outcome::Declined => {
                if let Err(error) = update.withdraw().await {
                    tracing::warn!(%error, "the request for a trial cannot be withdrawn");
                    return tokio::time::sleep(CHECK_EVERY).await;
                }
                self.context.clean_agents().await;
                let message = "the launcher did not start the new version";
                self.fail(Failed::new(reason::DID_NOT_START, message), None)
                    .await;
            }
            Outcome::NotRequested => {
                let has_heard = has_heard_recently(&self.context.jobs.health);
                match update.request_trial(job_uuid, dir, has_heard).await {
                    Ok(()) => {
                        tracing::info!(dir, "the agent ends so that its new version can be tried");
                        self.context.jobs.restart.cancel();
                        std::future::pending().await
                    }
                    Err(error) => {
                        tracing::warn!(%error, "the request for a trial cannot be written; it is tried again");
                        tokio::time::sleep(CHECK_EVERY).await;
                    }
                }
            }
        }
    }

    /// Ends the current job. `release` is the digest of a file that is to blame.
    async fn fail(&mut self, failed: Failed, release: Option<&str>) {
        tracing::error!(
            reason = failed.reason,
            cause = failed.message,
            "a job failed"
        );
        let change = |state: &mut JobsState| {
            if let Some(sha256) = release {
                state.remember_failure(sha256, &failed);
            }
            state.fail(failed.reason, failed.message);
        };
        self.context.ledger.change(change).await;
        self.context.clear_downloads().await;
        self.context.jobs.apps_changed.notify_one();
    }

    async fn succeed(&mut self, message: String) {
        tracing::info!(outcome = message, "a job is done");
        self.context
            .ledger
            .change(|state| state.succeed(message))
            .await;
        self.context.clear_downloads().await;
        self.context.jobs.apps_changed.notify_one();
    }

    /// Does what is next while there is no current job.
    async fn begin_next(&mut self) {
        if let Some(owner) = upkeep::new_owner(&self.context) {
            if upkeep::change_owner(&mut self.context, owner).await {
                self.agents_cleaned = false;
            } else {
                tokio::time::sleep(CHECK_EVERY).await;
            }
            return;
        }
        if Instant::now() >= self.tidy_at {
            // The hub may be claimed meanwhile: its owner is checked before each job.
            return self.tidy().await;
        }
        let now = self.context.time();
        let next = queue::next(
            self.context.ledger.state(),
            &self.context.jobs.requested.borrow_and_update(),
            now,
        );
        match next {
            Next::Resume(hub_job_uuid) => {
                tracing::info!(%hub_job_uuid, "a deferred job continues");
                self.context
                    .ledger
                    .change(|state| state.resume(hub_job_uuid))
                    .await;
            }
            Next::Begin(job) => {
                tracing::info!(hub_job_uuid = %job.hub_job_uuid, job_type = ?job.job_type, "a job begins");
                self.context
                    .ledger
                    .change(|state| state.begin(job, now))
                    .await;
            }
            Next::Refuse {
                hub_job_uuid,
                error,
            } => {
                tracing::error!(%hub_job_uuid, error, "a job is not understood and is refused");
                let message =
                    format!("this version of the agent does not understand the job: {error}");
                self.context
                    .ledger
                    .change(|state| state.refuse(hub_job_uuid, reason::BAD_RELEASE, message))
                    .await;
            }
            Next::Wait => self.wait().await,
        }
    }

    async fn wait(&mut self) {
        let state = self.context.ledger.state();
        let rest = if state.parked.is_empty() && state.outbox.is_empty() {
            TIDY_EVERY
        } else {
            CHECK_EVERY
        };
        let rest = rest.min(self.tidy_at.saturating_duration_since(Instant::now()));
        let mut access = self.context.jobs.service.access();
        // The senders live as long as the agent.
        tokio::select! {
            _ = self.context.jobs.requested.changed() => {}
            _ = access.changed() => {}
            () = tokio::time::sleep(rest) => {}
        }
    }

    /// Cleans up after jobs whose own end did not.
    async fn tidy(&mut self) {
        self.tidy_at = Instant::now() + TIDY_EVERY;
        match upkeep::roll_back_uncommitted(&mut self.context).await {
            Ok(true) => {}
            Ok(false) => self.tidy_soon(),
            Err(failure) => {
                tracing::debug!(?failure, "the state of the apps is unknown");
                return self.tidy_soon();
            }
        }
        if self.context.jobs.update.is_launched()
            && !std::mem::replace(&mut self.agents_cleaned, true)
        {
            self.context.clean_agents().await;
        }
    }

    fn tidy_soon(&mut self) {
        self.tidy_at = Instant::now() + TIDY_RETRY;
    }
}
