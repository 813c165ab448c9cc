//! `/platform/hubs/{hubUuid}/jobs/self-update`.

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::http::answer::Created;
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::operation_failing;
use hub_identity::authz::PlatformAdmin;
use hub_protocol::{ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super as jobs;
use super::super::Terms;
use super::{HubJobResponse, terms};
use crate::Parts;
use crate::hubs::http::HubPath;
use crate::jobs::Jobs;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/platform/hubs/{hubUuid}/jobs/self-update",
        post_with(
            self_update,
            operation_failing(
                &[409],
                "hubJobs.selfUpdate",
                "platform",
                "Create a job that updates a hub's agent to a release",
            ),
        ),
    )
}

/// The release that a hub should update its agent to, regardless of its update policy.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateForcedUpdateJobRequest {
    /// A READY release of the agent that the hub can run.
    release_uuid: ReleaseUuid,
    /// When the job expires if it has not finished, at most a year ahead. This or
    /// `validForSeconds`, not both; 7 days from now when neither is given.
    deadline_at: Option<Timestamp>,
    /// The time after which the job expires, at most a year.
    #[schemars(range(min = 1, max = super::MAX_VALIDITY_SECS))]
    valid_for_seconds: Option<i64>,
    /// Whether to try a release that failed on this hub before.
    force: Option<bool>,
}

impl CreateForcedUpdateJobRequest {
    fn checked(self, now: Timestamp) -> Result<(ReleaseUuid, Terms)> {
        let terms = terms(self.deadline_at, self.valid_for_seconds, self.force, now)?;
        Ok((self.release_uuid, terms))
    }
}

async fn self_update(
    PlatformAdmin(admin): PlatformAdmin,
    State(jobs): State<Jobs>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
    Json(request): Json<CreateForcedUpdateJobRequest>,
) -> Result<Created<HubJobResponse>> {
    let (release_uuid, terms) = request.checked(jobs.core.clock.now())?;
    let job = jobs::force_self_update(&jobs, &admin, hub_uuid, release_uuid, terms).await?;
    Ok(Created(job.into()))
}
