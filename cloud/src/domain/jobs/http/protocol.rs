//! What hubs tell about their jobs and apps. Both may be packed, as uploads are; neither counts against the limit of uploads.

use axum::extract::State;
use axum::http::HeaderMap;
use hub_protocol::job::{HubJobEventRequest, InstalledApps};
use hub_protocol::{HubJobUuid, HubUuid};

use super::super::{apps, events};
use crate::app::App;
use crate::authn::hub::Hub;
use crate::error::Result;
use crate::http::answer::NoContent;
use crate::http::extract::{Path, UploadBody, parse_object};
use crate::ingest::idempotency_key;

pub async fn record_event(
    hub: Hub,
    State(app): State<App>,
    Path((_, hub_job_uuid)): Path<(HubUuid, HubJobUuid)>,
    headers: HeaderMap,
    body: UploadBody<HubJobEventRequest>,
) -> Result<NoContent> {
    let key = idempotency_key(&headers)?;
    events::record(&app, &hub, hub_job_uuid, key.as_deref(), parse_object(&body.0?)?).await?;
    Ok(NoContent)
}

pub async fn report_installed_apps(
    hub: Hub,
    State(app): State<App>,
    body: UploadBody<InstalledApps>,
) -> Result<NoContent> {
    apps::report(&app, &hub, parse_object(&body.0?)?).await?;
    Ok(NoContent)
}
