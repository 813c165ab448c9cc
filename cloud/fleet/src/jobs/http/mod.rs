//! Requests and responses of jobs, for operators, the platform, and hubs.

mod platform;
mod protocol;
mod tenant;

use aide::axum::ApiRouter;
use hub_base::error::Result;
use hub_core::http::check::Check;
use hub_protocol::job::{HubJobStatus, HubJobType, MaintenanceWindow};
use hub_protocol::{AppUuid, HubJobUuid, HubUuid, ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;
use uuid::Uuid;

use super::{HubJob, Terms};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(platform::routes())
        .merge(protocol::routes())
        .merge(tenant::routes())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubJobPath {
    /// The hub.
    pub hub_uuid: HubUuid,
    /// The job.
    pub hub_job_uuid: HubJobUuid,
}

const DEFAULT_VALIDITY_SECS: i64 = 7 * 24 * 3600;
const MAX_VALIDITY_SECS: i64 = 365 * 24 * 3600;

/// A job of a hub.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubJobResponse {
    /// The job.
    hub_job_uuid: HubJobUuid,
    /// The hub.
    hub_uuid: HubUuid,
    /// The type of the job.
    #[serde(rename = "type")]
    job_type: HubJobType,
    /// Its status.
    status: HubJobStatus,
    /// The app to install or remove.
    app_uuid: Option<AppUuid>,
    /// The release to install: of the jobs, or of the agent.
    release_uuid: Option<ReleaseUuid>,
    /// The version of that release.
    version: Option<String>,
    /// The update policy that the job was created for.
    policy_uuid: Option<Uuid>,
    /// The service to which a `MOVE` sends the hub.
    service_url: Option<String>,
    /// The progress in percent, if the hub reports it.
    #[schemars(range(min = 0, max = 100))]
    progress: Option<i64>,
    /// The last message about it.
    detail: Option<String>,
    /// The number of dispatches to the hub.
    #[schemars(range(min = 0))]
    attempts: i64,
    /// Whether to try a release that failed on this hub before.
    force: bool,
    /// When in the day, in the time zone of the hub, the change may be applied.
    window: Option<MaintenanceWindow>,
    /// When the job expires if it has not finished.
    deadline_at: Timestamp,
    /// When it was created.
    created_at: Timestamp,
    /// When it last changed.
    updated_at: Timestamp,
    /// When it was first dispatched to the hub.
    dispatched_at: Option<Timestamp>,
    /// When the hub began it.
    started_at: Option<Timestamp>,
    /// When it finished.
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
            service_url: job.service_url,
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

/// The deadline and the urgency of a job in a request.
fn terms(
    deadline_at: Option<Timestamp>,
    valid_for_seconds: Option<i64>,
    force: Option<bool>,
    now: Timestamp,
) -> Result<Terms> {
    let mut check = Check::new();
    let deadline_at = match (deadline_at, valid_for_seconds) {
        (Some(at), None) => {
            check.that(at > now, "deadlineAt", "must be in the future");
            check.that(
                at <= now.plus_secs(MAX_VALIDITY_SECS),
                "deadlineAt",
                "must be at most a year ahead",
            );
            at
        }
        (None, secs) => {
            let secs = secs.unwrap_or(DEFAULT_VALIDITY_SECS);
            let fits = (1..=MAX_VALIDITY_SECS).contains(&secs);
            check.that(
                fits,
                "validForSeconds",
                format!("must be between 1 and {MAX_VALIDITY_SECS}"),
            );
            now.plus_secs(secs)
        }
        (Some(at), Some(_)) => {
            check.that(
                false,
                "validForSeconds",
                "must not be given together with `deadlineAt`",
            );
            at
        }
    };
    check.done()?;
    Ok(Terms {
        deadline_at,
        force: force.unwrap_or(false),
    })
}
