//! `/app/hubs`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::db::Slice;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::extract::Path;
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page};
use hub_fleet::hubs::http::HubPath;
use hub_fleet::hubs::{self, AdapterView};
use hub_identity::authz::{EndUser, Scope};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::store::{self, OwnHub};
use super::TAG;
use super::devices::{self, DeviceSummaryResponse};
use crate::Parts;

/// Devices that the answer about a hub contains.
const DEVICES: Slice = Slice {
    size: 100,
    offset: 0,
};

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/app/hubs",
            get_with(
                list,
                operation("appHubs.list", TAG, "The caller's hubs, newest first"),
            ),
        )
        .api_route(
            "/app/hubs/{hubUuid}",
            get_with(get, operation("appHubs.get", TAG, "One hub of the caller")),
        )
}

/// A hub of the caller.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppHubSummaryResponse {
    /// The hub.
    hub_uuid: HubUuid,
    /// Its label.
    hub_identifier: Option<String>,
    /// The supplier that it belongs to.
    supplier_uuid: TenantUuid,
    /// The name of the supplier.
    supplier_name: String,
    /// Whether telemetry arrived within the last 10 minutes.
    online: bool,
    /// When it was last in contact.
    last_seen_at: Option<Timestamp>,
    /// The devices that it hears best, since it is the caller's.
    #[schemars(range(min = 0))]
    device_count: i64,
}

/// A hub of the caller, with its devices.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppHubDetailResponse {
    #[serde(flatten)]
    summary: AppHubSummaryResponse,
    /// Its devices, newest first; the first 100. `/app/devices?hubUuid=` has all.
    devices: Vec<DeviceSummaryResponse>,
    /// Whether the hub is not the caller's own, and only delegated to them.
    delegated: bool,
    /// Its Bluetooth adapters.
    adapters: Vec<AdapterView>,
}

impl AppHubSummaryResponse {
    pub fn new(hub: OwnHub, now: Timestamp) -> Self {
        Self {
            hub_uuid: hub.hub_uuid,
            hub_identifier: hub.hub_identifier,
            supplier_uuid: hub.tenant_uuid,
            supplier_name: hub.supplier_name,
            online: hubs::is_online(hub.contact.and_then(|of| of.last_telemetry_at), now),
            last_seen_at: hub.contact.map(|of| of.last_seen_at),
            device_count: hub.device_count,
        }
    }
}

async fn list(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    page: Page,
) -> Result<Listed<AppHubSummaryResponse>> {
    let mut conn = core.db.read().await?;
    let person = super::super::of_caller(&core, &mut conn, &scope).await?;
    let (hubs, total) = store::hubs(&mut conn, &person, page.slice()).await?;
    let now = core.clock.now();
    Ok(page.listed(
        hubs.into_iter()
            .map(|hub| AppHubSummaryResponse::new(hub, now))
            .collect(),
        total,
    ))
}

async fn get(
    EndUser { scope, user }: EndUser,
    State(core): State<Core>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
) -> Result<Answer<AppHubDetailResponse>> {
    let mut conn = core.db.read().await?;
    let person = super::super::of_caller(&core, &mut conn, &scope).await?;
    let hub = super::super::hub(&mut conn, &person, hub_uuid).await?;
    let adapters = hubs::adapters(
        &mut conn,
        &Scope::of_person(&user, hub.tenant_uuid),
        hub_uuid,
    )
    .await?;
    let (own, _) = store::list_devices(&mut conn, &person, Some(hub_uuid), DEVICES).await?;
    let now = core.clock.now();
    let devices = devices::summaries(&mut conn, &own, now).await?;
    let delegated = hub.delegated == 1;
    Ok(Answer(AppHubDetailResponse {
        summary: AppHubSummaryResponse::new(hub, now),
        devices,
        delegated,
        adapters,
    }))
}
