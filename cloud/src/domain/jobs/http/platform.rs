//! `/platform/hubs/{hubUuid}/jobs/self-update`.

use axum::extract::State;
use hub_protocol::{HubUuid, ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super as jobs;
use super::{HubJobResponse, terms};
use crate::app::App;
use crate::authz::PlatformAdmin;
use crate::error::Result;
use crate::http::answer::Created;
use crate::http::extract::{Json, Path};

/// What a hub is to update itself to, whatever its update policy says.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateForcedUpdateJobRequest {
    /// A READY release of the agent, which the hub can run.
    release_uuid: ReleaseUuid,
    /// When the job ends if it is not over by itself, at most a year ahead. This or `validForSeconds`, not both; 7 days from now when neither is given.
    deadline_at: Option<Timestamp>,
    /// 1 second to a year.
    valid_for_seconds: Option<i64>,
    /// Also try a release that failed on this hub before.
    force: Option<bool>,
}

pub async fn self_update(
    PlatformAdmin(admin): PlatformAdmin,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
    Json(request): Json<CreateForcedUpdateJobRequest>,
) -> Result<Created<HubJobResponse>> {
    let terms = terms(request.deadline_at, request.valid_for_seconds, request.force, app.clock.now())?;
    let job = jobs::force_self_update(&app, &admin, hub_uuid, request.release_uuid, terms).await?;
    Ok(Created(job.into()))
}
