//! What a hub itself calls: its credentials, its adapters, what is wanted of it.

use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use hub_protocol::HubUuid;
use hub_protocol::claim::{HubAccess, HubClaimRequest, HubCredentials, HubRefreshRequest};
use hub_protocol::hub::{AdapterSnapshot, AdapterSnapshotResult, DesiredState, HubTest, ScanConfig};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::{self as hubs, adapters, desired};
use crate::app::App;
use crate::authn::hub::{Hub, RefreshingHub};
use crate::authz::Public;
use crate::error::{Error, Result};
use crate::http::answer::{Answer, Created};
use crate::http::etag::{IfNoneMatch, Tagged};
use crate::http::extract::{Json, Path, Query, UploadBody, parse_object};
use crate::ingest::idempotency_key;

/// Below the minute at which connections are commonly cut.
const MAX_WAIT_SECS: u64 = 55;

pub async fn claim(
    _: Public,
    State(app): State<App>,
    headers: HeaderMap,
    Json(request): Json<HubClaimRequest>,
) -> Result<Created<HubCredentials>> {
    let key = idempotency_key(&headers)?;
    hubs::claim(&app, &request, key.as_deref()).await.map(Created)
}

pub async fn refresh(
    RefreshingHub(claims): RefreshingHub,
    State(app): State<App>,
    Json(request): Json<HubRefreshRequest>,
) -> Result<Answer<HubAccess>> {
    hubs::refresh(&app, &claims, &request).await.map(Answer)
}

pub async fn store_adapters(
    hub: Hub,
    State(app): State<App>,
    headers: HeaderMap,
    body: UploadBody<AdapterSnapshot>,
) -> Result<Answer<AdapterSnapshotResult>> {
    let key = idempotency_key(&headers)?;
    adapters::store_snapshot(&app, &hub, key.as_deref(), parse_object(&body.0?)?).await.map(Answer)
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct WaitQuery {
    /// 0 to 55 seconds to hold the request for, until the state changes.
    wait: Option<u64>,
}

pub async fn desired_state(
    hub: Hub,
    State(app): State<App>,
    Path(_): Path<HubUuid>,
    Query(query): Query<WaitQuery>,
    known: IfNoneMatch,
) -> Result<Tagged<DesiredState>> {
    let wait = query.wait.unwrap_or(0);
    if wait > MAX_WAIT_SECS {
        return Err(Error::field("wait", format!("must be between 0 and {MAX_WAIT_SECS}")));
    }
    desired::desired_state(&app, &hub, &known, Duration::from_secs(wait)).await
}

pub async fn scan_config(_: Hub, known: IfNoneMatch) -> Tagged<ScanConfig> {
    desired::scan_config(&known)
}

pub async fn test(hub: Hub, State(app): State<App>) -> Answer<HubTest> {
    Answer(HubTest { hub_uuid: hub.hub_uuid, tenant_uuid: hub.tenant_uuid, time: app.clock.now() })
}
