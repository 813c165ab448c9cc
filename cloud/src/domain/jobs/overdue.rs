//! Jobs that nobody ends: their deadline passed, or their hub was given them again and again and never said a word.

use hub_protocol::Timestamp;
use hub_protocol::job::HubJobStatus;
use serde_json::json;

use super::{End, HubJob, finish, store};
use crate::app::App;
use crate::authz::Scope;
use crate::domain::audit::Audit;
use crate::domain::hubs::{self, desired};
use crate::error::Result;

/// A hub that says nothing after so many attempts will not do the job.
const MAX_ATTEMPTS: i64 = 20;

/// Why a job is overdue.
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
                Self::NoResponse => job.event_count == 0 && job.attempts >= MAX_ATTEMPTS && lease_is_over,
            }
    }
}

/// Ends up to `limit` jobs for each of the two reasons; whether there may be more. One that cannot be ended does not hold the others up.
pub async fn settle_overdue(app: &App, limit: i64) -> Result<bool> {
    let now = app.clock.now();
    let mut conn = app.db.read().await?;
    let expired = store::past_deadline(&mut conn, now, limit).await?;
    let unanswered = store::unanswered(&mut conn, MAX_ATTEMPTS, now, limit).await?;
    drop(conn);
    let is_full = |jobs: &[HubJob]| i64::try_from(jobs.len()).unwrap_or(i64::MAX) >= limit;
    let mut has_more = is_full(&expired) || is_full(&unanswered);
    for (fault, jobs) in [(Fault::Expired, expired), (Fault::NoResponse, unanswered)] {
        for job in jobs {
            match settle(app, &job, fault).await {
                Err(error) if error.is_outage() => return Err(error),
                Err(error) => {
                    tracing::error!(%error, hub_job_uuid = %job.hub_job_uuid, "an overdue job cannot be ended; it is tried again");
                    // Not at once.
                    has_more = false;
                }
                Ok(()) => {}
            }
        }
    }
    Ok(has_more)
}

/// Ends the job, unless something else was faster.
async fn settle(app: &App, job: &HubJob, fault: Fault) -> Result<()> {
    let scope = Scope::system("JOBS", job.tenant_uuid);
    let (hub_uuid, hub_job_uuid) = (job.hub_uuid, job.hub_job_uuid);
    let mut tx = app.db.begin().await?;
    hubs::lock_any(&mut tx, hub_uuid).await?;
    let now = app.clock.now();
    let before = store::get(&mut tx, &scope, hub_uuid, hub_job_uuid).await?;
    let Some(before) = before.filter(|job| fault.holds(job, now)) else { return Ok(()) };
    let silence = format!("the hub was given the job {} times and said nothing about it", before.attempts);
    let no_response = json!({"reason": "NO_RESPONSE"}).to_string();
    let (action, end) = match fault {
        Fault::Expired => {
            let detail = Some("its deadline passed");
            ("hub_job.expire", End { status: HubJobStatus::Expired, detail, result: None })
        }
        Fault::NoResponse => {
            let (detail, result) = (Some(silence.as_str()), Some(no_response.as_str()));
            ("hub_job.fail", End { status: HubJobStatus::Failed, detail, result })
        }
    };
    let after = finish(&mut tx, &before, end, now).await?;
    let audit = Audit::new(&scope, action, hub_job_uuid, now);
    tx.commit(audit.changed(Some(before.state()), Some(after.state()))).await?;
    desired::changed(app, hub_uuid).await;
    Ok(())
}
