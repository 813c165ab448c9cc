//! Reports of hubs about their jobs and apps. Both accept compressed bodies, like uploads; neither
//! counts against the rate limit of uploads: each has a limit by hub.

use aide::axum::ApiRouter;
use aide::axum::routing::{post_with, put_with};
use axum::extract::State;
use hub_base::error::Result;
use hub_core::http::answer::NoContent;
use hub_core::http::extract::Path;
use hub_core::http::idempotency::IdempotencyKey;
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authn::hub::Hub;
use hub_ingest::UploadBody;
use hub_protocol::job::{HubJobEventRequest, InstalledApps};

use super::super::{apps, events};
use crate::Parts;
use crate::jobs::Jobs;
use crate::jobs::http::HubJobPath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/v1/hubs/{hubUuid}/jobs/{hubJobUuid}/events",
            post_with(
                record_event,
                operation_failing(
                    &[404, 409],
                    "hub.recordEvent",
                    "hub-api",
                    "Report an event of a job",
                ),
            ),
        )
        .api_route(
            "/v1/hubs/{hubUuid}/installed-apps",
            put_with(
                report_installed_apps,
                operation(
                    "hub.reportInstalledApps",
                    "hub-api",
                    "Report all installed apps",
                ),
            ),
        )
}

async fn record_event(
    hub: Hub,
    State(jobs): State<Jobs>,
    Path(HubJobPath { hub_job_uuid, .. }): Path<HubJobPath>,
    IdempotencyKey(key): IdempotencyKey,
    body: UploadBody<HubJobEventRequest>,
) -> Result<NoContent> {
    let (event, _turn) = body
        .report(&jobs.core, &jobs.core.turns.job_events, &hub)
        .await?;
    events::record(&jobs, &hub, hub_job_uuid, key?.as_deref(), event).await?;
    Ok(NoContent)
}

async fn report_installed_apps(
    hub: Hub,
    State(jobs): State<Jobs>,
    body: UploadBody<InstalledApps>,
) -> Result<NoContent> {
    let (report, _turn) = body
        .report(&jobs.core, &jobs.core.turns.reports, &hub)
        .await?;
    apps::report(&jobs, &hub, report).await?;
    Ok(NoContent)
}
