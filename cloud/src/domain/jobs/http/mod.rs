//! Requests and answers about jobs: those of operators, of the platform, and of the hubs that do them.

pub mod platform;
pub mod protocol;
pub mod tenant;

use hub_protocol::job::{HubJobStatus, HubJobType, MaintenanceWindow};
use hub_protocol::{AppUuid, HubJobUuid, HubUuid, ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::{HubJob, Terms};
use crate::error::Result;
use crate::http::check::Check;

const DEFAULT_VALIDITY_SECS: i64 = 7 * 24 * 3600;
const MAX_VALIDITY_SECS: i64 = 365 * 24 * 3600;

/// Something a hub is to do once.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubJobResponse {
    hub_job_uuid: HubJobUuid,
    hub_uuid: HubUuid,
    #[serde(rename = "type")]
    job_type: HubJobType,
    status: HubJobStatus,
    /// The app to install or remove.
    app_uuid: Option<AppUuid>,
    /// The release to install: of the app, or of the agent.
    release_uuid: Option<ReleaseUuid>,
    /// The release's version.
    version: Option<String>,
    /// The update policy that the job was made for.
    policy_uuid: Option<Uuid>,
    /// Percent done, as far as the hub tells.
    progress: Option<i64>,
    /// The last thing there was to say about it, for people.
    detail: Option<String>,
    /// How often the hub was given it.
    attempts: i64,
    /// Whether a release that failed on this hub before is tried again.
    force: bool,
    /// When in the day the change may be made, by the hub's own time zone.
    window: Option<MaintenanceWindow>,
    /// The job is EXPIRED if it is not over by then.
    deadline_at: Timestamp,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// When the hub was first given it.
    dispatched_at: Option<Timestamp>,
    /// When the hub began.
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
}

impl From<HubJob> for HubJobResponse {
    fn from(job: HubJob) -> Self {
        Self {
            hub_job_uuid: job.hub_job_uuid,
            hub_uuid: job.hub_uuid,
            job_type: job.job_type,
            status: job.status,
            app_uuid: job.app_uuid,
            release_uuid: job.release_uuid,
            window: job.window(),
            version: job.version,
            policy_uuid: job.policy_uuid,
            progress: job.progress,
            detail: job.detail,
            attempts: job.attempts,
            force: job.force,
            deadline_at: job.deadline_at,
            created_at: job.created_at,
            updated_at: job.updated_at,
            dispatched_at: job.dispatched_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
        }
    }
}

/// What a request says about how urgent a job is.
fn terms(
    deadline_at: Option<Timestamp>,
    valid_for_seconds: Option<i64>,
    force: Option<bool>,
    now: Timestamp,
) -> Result<Terms> {
    let mut check = Check::new();
    let deadline_at = match (deadline_at, valid_for_seconds) {
        (Some(at), None) => {
            check.that(at > now, "deadlineAt", "must lie ahead");
            check.that(at <= now.plus_secs(MAX_VALIDITY_SECS), "deadlineAt", "may be at most a year ahead");
            at
        }
        (None, secs) => {
            let secs = secs.unwrap_or(DEFAULT_VALIDITY_SECS);
            let fits = (1..=MAX_VALIDITY_SECS).contains(&secs);
            check.that(fits, "validForSeconds", format!("must be between 1 and {MAX_VALIDITY_SECS}"));
            now.plus_secs(secs)
        }
        (Some(at), Some(_)) => {
            check.that(false, "validForSeconds", "give this or `deadlineAt`, not both");
            at
        }
    };
    check.done()?;
    Ok(Terms { deadline_at, force: force.unwrap_or(false) })
}
