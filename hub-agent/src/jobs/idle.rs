//! Between jobs: which one is next, what a new owner changes, and what an earlier job left behind that should not be there.

use std::time::Duration;

use hub_agent::helper_api::Helper;
use hub_protocol::job::{HubJobType, MaintenanceWindow};
use hub_protocol::{HubJobUuid, TenantUuid};
use tokio::time::Instant;

use super::engine::{LOOK_EVERY, Worker};
use super::helping::NotDone;
use super::ledger::{Current, Kept};
use super::work::may_overtake;
use super::{Wanted, WantedJob, reason, window};
use crate::clock::Clock;

/// The time is known soon after the start.
const CLOCK_EVERY: Duration = Duration::from_secs(1);

/// How often it is looked for apps whose version was never kept.
const TIDY_EVERY: Duration = Duration::from_secs(600);
/// And when that did not work.
const TIDY_AGAIN: Duration = Duration::from_secs(60);
/// Jobs are not to wait for it.
const TIDY_PATIENCE: Duration = Duration::from_secs(10);

impl Worker {
    /// What comes next while no job is under way.
    pub(super) async fn next(&mut self) {
        if let Some(owner) = self.new_owner() {
            return self.change_owner(owner).await;
        }
        if Instant::now() >= self.tidy_at {
            // It takes its time, in which the hub may have been claimed: whose it is comes first again.
            return self.tidy().await;
        }
        if let Some(job_uuid) = self.due() {
            tracing::info!(hub_job_uuid = %job_uuid, "a job that was put aside goes on");
            return self.ledger.change(|kept| kept.take_up(job_uuid)).await;
        }
        match self.next_wanted() {
            Some(WantedJob::Known(job)) => {
                tracing::info!(hub_job_uuid = %job.hub_job_uuid, job_type = ?job.job_type, "a job begins");
                let now = self.jobs.clock.offset().known.then(|| self.jobs.clock.now());
                self.ledger.change(|kept| kept.begin(job, now)).await;
            }
            Some(WantedJob::NotUnderstood { hub_job_uuid, why }) => {
                tracing::error!(%hub_job_uuid, why, "a job is not understood, and refused");
                let message = format!("this version of the agent does not understand the job: {why}");
                self.ledger.change(|kept| kept.refuse(hub_job_uuid, reason::BAD_RELEASE, message)).await;
            }
            None => self.wait().await,
        }
    }

    async fn wait(&mut self) {
        let kept = self.ledger.kept();
        let rest = if kept.parked.is_empty() && kept.outbox.is_empty() { TIDY_EVERY } else { LOOK_EVERY };
        let rest = rest.min(self.tidy_at.saturating_duration_since(Instant::now()));
        let mut access = self.jobs.service.access();
        // The senders live as long as the agent.
        tokio::select! {
            _ = self.jobs.wanted.changed() => {}
            _ = access.changed() => {}
            () = tokio::time::sleep(rest) => {}
        }
    }

    /// A job that was put aside and can go on: to its change, or to its end.
    fn due(&self) -> Option<HubJobUuid> {
        let now = self.jobs.clock.offset().known.then(|| self.jobs.clock.now());
        let wanted = self.jobs.wanted.borrow();
        let goes_on = |parked: &&Current| {
            let is_open = |now| window::is_open(parked.job.window.as_ref(), now) != Some(false);
            is_withdrawn(&wanted, parked.job.hub_job_uuid)
                || now.is_some_and(|now| now >= parked.give_up_at() || is_open(now))
        };
        let parked = &self.ledger.kept().parked;
        let due = parked.iter().filter(|parked| parked.waits).find(goes_on);
        due.or(parked.iter().find(|parked| !parked.waits)).map(|parked| parked.job.hub_job_uuid)
    }

    /// The oldest job that was not begun yet and need not wait for another.
    fn next_wanted(&mut self) -> Option<WantedJob> {
        let Kept { over, parked, .. } = self.ledger.kept();
        let wanted = self.jobs.wanted.borrow_and_update();
        let is_next = |wanted: &&WantedJob| {
            !over.contains(&wanted.hub_job_uuid())
                && parked.iter().all(|parked| match wanted {
                    WantedJob::Known(job) => may_overtake(job, &parked.job),
                    WantedJob::NotUnderstood { .. } => true,
                })
        };
        wanted.iter().flatten().find(is_next).cloned()
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
        self.clear_downloads();
        self.agents_cleaned = false;
    }

    /// Undoes what is left of jobs whose end could not: an app whose version was never kept goes back to the one before, and versions of
    /// the agent that nobody needs are removed.
    async fn tidy(&mut self) {
        self.tidy_at = Instant::now() + TIDY_EVERY;
        let apps = match self.jobs.helper.ask(|helper| helper.app_states_within(TIDY_PATIENCE)).await {
            Ok(apps) => apps,
            Err(not_done) => {
                tracing::debug!(?not_done, "whether every app is as it should be is not known");
                return self.tidy_soon();
            }
        };
        for app in apps {
            let release = |release: Option<hub_agent::helper_api::AppRelease>| release.map(|it| it.release_uuid);
            let (app_uuid, active) = (app.app_uuid, release(app.active));
            if active.is_none() || active == release(app.committed) {
                continue;
            }
            match self.jobs.helper.ask(move |helper| helper.rollback_app(app_uuid)).await {
                Ok(()) => {
                    tracing::warn!(%app_uuid, "an app ran a version that was never kept; it is back at the one before");
                    self.ledger.change(|kept| kept.unstage(app_uuid)).await;
                    self.jobs.apps_changed.notify_one();
                }
                Err(not_done) => {
                    tracing::warn!(%app_uuid, ?not_done, "an app runs a version that was never kept, and cannot be brought back yet");
                    self.tidy_soon();
                }
            }
        }
        if self.jobs.update.is_launched() && !std::mem::replace(&mut self.agents_cleaned, true) {
            self.clean_agent().await;
        }
    }

    pub(super) fn tidy_soon(&mut self) {
        self.tidy_at = Instant::now() + TIDY_AGAIN;
    }

    /// The folders of versions of the agent that may still be started.
    pub(super) fn agents_in_use(&self) -> Vec<String> {
        let parked = self.ledger.kept().parked.iter().filter(|parked| parked.job.job_type == HubJobType::SelfUpdate);
        let staged = parked.filter_map(|parked| parked.staged.clone());
        self.jobs.update.in_use().into_iter().chain(staged).collect()
    }

    /// Has the helper remove versions of the agent that will not run again.
    pub(super) async fn clean_agent(&self) {
        let (in_use, confirmed) = (self.agents_in_use(), self.jobs.update.confirmed_dir());
        let cleaned = self.jobs.helper.ask(move |helper| helper.clean_agent(&in_use, confirmed.as_deref())).await;
        if let Err(not_done) = cleaned {
            tracing::debug!(?not_done, "the helper keeps versions that are not needed");
        }
    }
}

fn is_withdrawn(wanted: &Wanted, job_uuid: HubJobUuid) -> bool {
    wanted.as_ref().is_some_and(|jobs| jobs.iter().all(|job| job.hub_job_uuid() != job_uuid))
}

/// Waits until the service has told that it no longer wants this job.
pub async fn withdrawn(mut wanted: tokio::sync::watch::Receiver<Wanted>, job_uuid: HubJobUuid) {
    if wanted.wait_for(|wanted| is_withdrawn(wanted, job_uuid)).await.is_err() {
        std::future::pending().await
    }
}

/// Waits until one of these is open.
pub async fn opened(clock: &Clock, windows: &[MaintenanceWindow]) {
    if windows.is_empty() {
        return std::future::pending().await;
    }
    let is_open = || windows.iter().any(|window| window::is_open(Some(window), clock.now()) == Some(true));
    while !clock.offset().known {
        tokio::time::sleep(CLOCK_EVERY).await;
    }
    while !is_open() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
