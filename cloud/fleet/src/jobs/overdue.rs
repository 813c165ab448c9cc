//! Finishes overdue jobs: those whose deadline has passed, and those that were dispatched
//! repeatedly without any event from the hub.

use hub_base::error::Result;
use hub_core::audit::Audit;
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;
use hub_protocol::job::HubJobStatus;
use serde_json::json;

use super::{End, HubJob, Jobs, finish, store};
use crate::hubs;

/// A job without any event after this many attempts is failed.
const MAX_ATTEMPTS: i64 = 20;

/// The reason why a job is overdue.
#[derive(Clone, Copy)]
enum Fault {
    Expired,
    NoResponse,
}

impl Fault {
    fn holds(self, job: &HubJob, now: Timestamp) -> bool {
        let lease_is_over = job.leased_until.is_some_and(|until| until <= now);
        !job.status.is_terminal()
            && match self {
                Self::Expired => job.deadline_at <= now,
                Self::NoResponse => {
                    job.event_count == 0 && job.attempts >= MAX_ATTEMPTS && lease_is_over
                }
            }
    }
}

/// Finishes up to `limit` jobs for each of the two reasons. Returns whether there may be more. A
/// job that cannot be finished does not block the others.
pub async fn end_overdue(jobs: &Jobs, limit: i64) -> Result<bool> {
    let now = jobs.core.clock.now();
    let mut conn = jobs.core.db.read().await?;
    let expired = store::past_deadline(&mut conn, now, limit).await?;
    let unanswered = store::unanswered(&mut conn, MAX_ATTEMPTS, now, limit).await?;
    drop(conn);
    let is_full = |jobs: &[HubJob]| i64::try_from(jobs.len()).unwrap_or(i64::MAX) >= limit;
    let mut has_more = is_full(&expired) || is_full(&unanswered);
    for (fault, overdue) in [(Fault::Expired, expired), (Fault::NoResponse, unanswered)] {
        for job in overdue {
            match end(jobs, &job, fault).await {
                Err(error) if error.is_outage() => return Err(error),
                Err(error) => {
                    tracing::error!(%error, hub_job_uuid = %job.hub_job_uuid, "cannot finish an overdue job; the next run retries");
                    // The failed part is not retried at once.
                    has_more = false;
                }
                Ok(()) => {}
            }
        }
    }
    Ok(has_more)
}

/// Finishes the job, unless it is no longer overdue.
async fn end(jobs: &Jobs, job: &HubJob, fault: Fault) -> Result<()> {
    let scope = Scope::system("JOBS", job.tenant_uuid);
    let (hub_uuid, hub_job_uuid) = (job.hub_uuid, job.hub_job_uuid);
    let mut tx = jobs.core.db.begin().await?;
    if hubs::find_and_lock(&mut tx, hub_uuid).await?.is_none() {
        // The hub was released a moment ago, and its jobs with it.
        return Ok(());
    }
    let now = jobs.core.clock.now();
    let before = store::get(&mut tx, &scope, hub_uuid, hub_job_uuid).await?;
    let Some(before) = before.filter(|job| fault.holds(job, now)) else {
        return Ok(());
    };
    let silence = format!(
        "the job was dispatched {} times, and the hub reported nothing about it",
        before.attempts
    );
    let no_response = json!({"reason": "NO_RESPONSE"}).to_string();
    let (action, end) = match fault {
        Fault::Expired => {
            let detail = Some("its deadline passed");
            (
                "hub_job.expire",
                End {
                    status: HubJobStatus::Expired,
                    detail,
                    result: None,
                    fails_in_passing: false,
                },
            )
        }
        Fault::NoResponse => {
            let (detail, result) = (Some(silence.as_str()), Some(no_response.as_str()));
            (
                "hub_job.fail",
                End {
                    status: HubJobStatus::Failed,
                    detail,
                    result,
                    fails_in_passing: false,
                },
            )
        }
    };
    let after = finish(&mut tx, &jobs.changes, &before, end, now).await?;
    let audit = Audit::new(&scope, action, hub_job_uuid, now);
    tx.commit(audit.changed(Some(before.state()), Some(after.state())))
        .await
}
