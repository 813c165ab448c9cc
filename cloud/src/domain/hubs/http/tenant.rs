//! `/tenant/hubs`: a tenant's own hubs and their adapters.

use axum::extract::State;
use hub_protocol::claim::OperatingSystem;
use hub_protocol::hub::AdapterRole;
use hub_protocol::{HubUuid, TenantUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::adapters::{self, AdapterUpdate, AdapterView};
use super::super::store::{self, HubRow};
use super::super::{self as hubs, MAX_IDENTIFIER_CHARS, adapter_store};
use crate::app::App;
use crate::authz::{Authorized, Scope, permission as perm};
use crate::error::Result;
use crate::http::answer::Answer;
use crate::http::check::Check;
use crate::http::extract::{Json, Path};
use crate::http::page::{Listed, Page};

/// A hub is online for this long after telemetry.
const ONLINE_SECS: i64 = 10 * 60;
/// Longest description of a hub.
const MAX_DESCRIPTION_CHARS: usize = 2000;

/// How a hub stands; the first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum HubStatus {
    Blocked,
    /// Telemetry came within the last 10 minutes.
    Online,
    Offline,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubSummaryResponse {
    hub_uuid: HubUuid,
    hub_identifier: Option<String>,
    /// The hub's hardware identity.
    device_instance_id: String,
    agent_version: Option<String>,
    hostname: Option<String>,
    status: HubStatus,
    online: bool,
    /// The last upload, report, claim or refresh.
    last_seen_at: Option<Timestamp>,
    last_telemetry_at: Option<Timestamp>,
    /// The last claim.
    claimed_at: Timestamp,
    /// The first claim.
    created_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubDetailResponse {
    #[serde(flatten)]
    summary: HubSummaryResponse,
    description: Option<String>,
    os: Option<OperatingSystem>,
    /// The app user the hub belongs to.
    owner_user_uuid: Option<UserUuid>,
    blocked_at: Option<Timestamp>,
    adapters: Vec<AdapterView>,
}

impl HubSummaryResponse {
    fn new(hub: HubRow, now: Timestamp) -> Self {
        let online = hub.last_telemetry_at.is_some_and(|at| at.plus_secs(ONLINE_SECS) > now);
        let status = match (hub.blocked_at, online) {
            (Some(_), _) => HubStatus::Blocked,
            (None, true) => HubStatus::Online,
            (None, false) => HubStatus::Offline,
        };
        Self {
            hub_uuid: hub.hub_uuid,
            hub_identifier: hub.hub_identifier,
            device_instance_id: hub.device_instance_id,
            agent_version: hub.agent_version,
            hostname: hub.hostname,
            status,
            online,
            last_seen_at: hub.last_seen_at,
            last_telemetry_at: hub.last_telemetry_at,
            claimed_at: hub.claimed_at,
            created_at: hub.created_at,
        }
    }
}

impl HubDetailResponse {
    fn new(mut hub: HubRow, adapters: Vec<AdapterView>, now: Timestamp) -> Self {
        Self {
            description: hub.description.take(),
            os: hub.os.take().map(|os| os.0),
            owner_user_uuid: hub.owner_user_uuid,
            blocked_at: hub.blocked_at,
            adapters,
            summary: HubSummaryResponse::new(hub, now),
        }
    }
}

/// What to change; absent or null stays, empty text takes away.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubUpdateRequest {
    /// A label for people; at most 200 characters.
    hub_identifier: Option<String>,
    /// At most 2,000 characters.
    description: Option<String>,
}

/// What to decide about an adapter; absent or null stays.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct UpdateRequest {
    role: Option<AdapterRole>,
    /// The tenant itself.
    #[serde(alias = "supplierUuid")]
    supplier_uuid: Option<TenantUuid>,
}

pub async fn list(
    auth: Authorized<perm::HubsRead>,
    State(app): State<App>,
    page: Page,
) -> Result<Listed<HubSummaryResponse>> {
    let mut conn = app.db.read().await?;
    let (hubs, total) = store::list(&mut conn, &auth.scope, &page).await?;
    let now = app.clock.now();
    Ok(page.listed(hubs.into_iter().map(|hub| HubSummaryResponse::new(hub, now)).collect(), total))
}

pub async fn get(
    auth: Authorized<perm::HubsRead>,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
) -> Result<Answer<HubDetailResponse>> {
    detail(&app, &auth.scope, hub_uuid).await
}

async fn detail(app: &App, scope: &Scope, hub_uuid: HubUuid) -> Result<Answer<HubDetailResponse>> {
    let mut conn = app.db.read().await?;
    let hub = hubs::get(&mut conn, scope, hub_uuid).await?;
    let adapters = adapter_store::list(&mut conn, scope, hub_uuid).await?;
    Ok(Answer(HubDetailResponse::new(hub, adapters, app.clock.now())))
}

pub async fn update(
    auth: Authorized<perm::HubsWrite>,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
    Json(request): Json<HubUpdateRequest>,
) -> Result<Answer<HubDetailResponse>> {
    let mut check = Check::new();
    check.line("hubIdentifier", request.hub_identifier.as_deref(), MAX_IDENTIFIER_CHARS);
    check.lines("description", request.description.as_deref(), MAX_DESCRIPTION_CHARS);
    check.done()?;
    let hub_identifier = request.hub_identifier.as_deref().map(str::trim);
    let description = request.description.as_deref().map(str::trim);
    if hub_identifier.is_some() || description.is_some() {
        hubs::update(&app, &auth.scope, hub_uuid, hub_identifier, description).await?;
    }
    detail(&app, &auth.scope, hub_uuid).await
}

pub async fn list_adapters(
    auth: Authorized<perm::HubsRead>,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
) -> Result<Answer<Vec<AdapterView>>> {
    let mut conn = app.db.read().await?;
    hubs::require(&mut conn, &auth.scope, hub_uuid).await?;
    adapter_store::list(&mut conn, &auth.scope, hub_uuid).await.map(Answer)
}

pub async fn update_adapter(
    auth: Authorized<perm::HubsWrite>,
    State(app): State<App>,
    Path((hub_uuid, address)): Path<(HubUuid, String)>,
    Json(request): Json<UpdateRequest>,
) -> Result<Answer<AdapterView>> {
    let update = AdapterUpdate { role: request.role, supplier_uuid: request.supplier_uuid };
    adapters::update(&app, &auth.scope, hub_uuid, &address, update).await.map(Answer)
}
