//! The choice of the next job. It depends on the stored state and the desired state, and changes
//! nothing.

use hub_protocol::job::{DesiredJob, HubJobType};
use hub_protocol::{HubJobUuid, Timestamp};
use tokio::sync::watch;

use super::job::{RequestedJob, RequestedJobs};
use super::ledger::{Current, JobsState};
use super::window;

/// The next action while there is no current job.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// A deferred job can continue: with its change, or with its end.
    Resume(HubJobUuid),
    Begin(DesiredJob),
    /// A job that this agent does not understand.
    Refuse {
        hub_job_uuid: HubJobUuid,
        error: String,
    },
    Wait,
}

/// `now` is `None` while the time is unknown.
pub fn next(state: &JobsState, requested: &RequestedJobs, now: Option<Timestamp>) -> Next {
    if let Some(hub_job_uuid) = resumable(state, requested, now) {
        return Next::Resume(hub_job_uuid);
    }
    match oldest_new(state, requested) {
        Some(RequestedJob::Known(job)) => Next::Begin(job.clone()),
        Some(RequestedJob::NotUnderstood {
            hub_job_uuid,
            error,
        }) => Next::Refuse {
            hub_job_uuid: *hub_job_uuid,
            error: error.clone(),
        },
        None => Next::Wait,
    }
}

/// Jobs whose window is open come before those that were deferred for them.
fn resumable(
    state: &JobsState,
    requested: &RequestedJobs,
    now: Option<Timestamp>,
) -> Option<HubJobUuid> {
    let is_due = |parked: &&Current| {
        let is_open = |now| window::is_open(parked.job.window.as_ref(), now) != Some(false);
        is_withdrawn(requested, parked.job.hub_job_uuid)
            || now.is_some_and(|now| now >= parked.abandon_at() || is_open(now))
    };
    let waiting = state
        .parked
        .iter()
        .filter(|parked| parked.is_waiting)
        .find(is_due);
    let interrupted = || state.parked.iter().find(|parked| !parked.is_waiting);
    waiting
        .or_else(interrupted)
        .map(|parked| parked.job.hub_job_uuid)
}

/// The oldest job that was not begun and does not have to wait for another.
fn oldest_new<'a>(state: &JobsState, requested: &'a RequestedJobs) -> Option<&'a RequestedJob> {
    requested
        .iter()
        .flatten()
        .filter(|requested| !requested.is_command())
        .find(|requested| {
            !state.finished.contains(&requested.hub_job_uuid())
                && state.parked.iter().all(|parked| match requested {
                    RequestedJob::Known(job) => may_overtake(job, &parked.job),
                    RequestedJob::NotUnderstood { .. } => true,
                })
        })
}

/// Jobs of apps are done in order. An update of the agent does not have to wait for them, and they
/// do not have to wait for it.
pub fn may_overtake(job: &DesiredJob, waiting: &DesiredJob) -> bool {
    (job.job_type == HubJobType::SelfUpdate) != (waiting.job_type == HubJobType::SelfUpdate)
}

fn is_withdrawn(requested: &RequestedJobs, job_uuid: HubJobUuid) -> bool {
    requested
        .as_ref()
        .is_some_and(|jobs| jobs.iter().all(|job| job.hub_job_uuid() != job_uuid))
}

/// Waits until the service no longer requests this job.
pub async fn until_withdrawn(mut requested: watch::Receiver<RequestedJobs>, job_uuid: HubJobUuid) {
    if requested
        .wait_for(|requested| is_withdrawn(requested, job_uuid))
        .await
        .is_err()
    {
        std::future::pending().await
    }
}
