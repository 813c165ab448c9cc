//! `/app/devices`.

use std::collections::{BTreeMap, HashMap};

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::extract::{Path, Query};
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page};
use hub_devices::device_history::{self, Device, SensorDataQuery, SensorDataResponse};
use hub_devices::device_instances::http::DevicePath;
use hub_devices::device_instances::http::NearestHub;
use hub_devices::device_instances::{
    self, ActivationStatus, AddressType, Beacon, LastValue, Shown,
};
use hub_devices::device_pages::{ActionDefinitionResponse, DeviceUiResponse, ManualRow, of_model};
use hub_identity::authz::{EndUser, Scope};
use hub_protocol::{HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::store::{self, OwnDevice};
use super::super::{self as end_users};
use super::TAG;
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/app/devices",
            get_with(
                list,
                operation(
                    "appDevices.list",
                    TAG,
                    "The devices of the caller's hubs, newest first",
                ),
            ),
        )
        .api_route(
            "/app/devices/{deviceInstanceId}",
            get_with(
                get,
                operation("appDevices.get", TAG, "One device of the caller's hubs"),
            ),
        )
        .api_route(
            "/app/devices/{deviceInstanceId}/sensor-data",
            get_with(
                sensor_data,
                operation(
                    "appDevices.listSensorData",
                    TAG,
                    "The values of a device, latest first, or in buckets",
                ),
            ),
        )
}

/// Filters of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppDeviceQuery {
    /// Only devices of this hub.
    hub_uuid: Option<HubUuid>,
}

/// A device that a hub of the caller hears best.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceSummaryResponse {
    /// The id of the device.
    #[schemars(range(min = 1))]
    device_instance_id: i64,
    /// The model of the device.
    device_uuid: Uuid,
    /// The name of the model.
    device_name: String,
    /// The version of the model that the device is.
    device_version_uuid: Option<Uuid>,
    /// The name that it was given.
    name: Option<String>,
    /// The name to show: `name`, else the model with the end of its serial number or address.
    display_name: String,
    /// The address that it advertises with, in upper case.
    address: Option<String>,
    /// The kind of the address.
    address_type: Option<AddressType>,
    /// The beacon that the device sends.
    beacon: Option<Beacon>,
    /// The serial number.
    serial_number: Option<String>,
    /// The lifecycle state of the device.
    activation_status: ActivationStatus,
    /// The hub that hears it best.
    nearest_hub: Option<NearestHub>,
    /// The time of the last reception.
    last_seen_at: Option<Timestamp>,
    /// The signal strength of the last reception, in dBm.
    last_rssi_dbm: Option<i64>,
    /// Whether the device was heard within three of its intervals, of 10 minutes at least.
    online: bool,
    /// The last value of each quantity, since the hub is the caller's.
    state: BTreeMap<String, LastValue>,
    /// When it was registered.
    created_at: Timestamp,
    /// When it first became active.
    activated_at: Option<Timestamp>,
    /// When it was retired.
    retired_at: Option<Timestamp>,
}

impl DeviceSummaryResponse {
    pub const fn device_instance_id(&self) -> i64 {
        self.device_instance_id
    }

    /// What of it does not change with every reception.
    pub fn standing(&self) -> (String, ActivationStatus, bool, Option<HubUuid>) {
        let hub_uuid = self.nearest_hub.as_ref().map(NearestHub::hub_uuid);
        let name = self.display_name.clone();
        (name, self.activation_status, self.online, hub_uuid)
    }

    fn new(shown: Shown, own: &OwnDevice, now: Timestamp) -> Self {
        let display_name = shown.display_name();
        let Shown {
            instance,
            device_name,
            heard,
        } = shown;
        Self {
            device_instance_id: instance.device_instance_id,
            device_uuid: instance.device_uuid,
            device_name,
            device_version_uuid: instance.device_version_uuid,
            name: instance.name,
            display_name,
            address: instance.address,
            address_type: instance.address_type,
            beacon: instance.beacon,
            serial_number: instance.serial_number,
            activation_status: instance.activation_status,
            nearest_hub: NearestHub::of(&heard),
            last_seen_at: heard.last_seen_at,
            last_rssi_dbm: heard.last_rssi_dbm,
            online: heard.online_until.is_some_and(|until| until > now),
            state: heard
                .state
                .into_iter()
                .filter(|(_, value)| value.at >= own.since)
                .collect(),
            created_at: instance.created_at,
            activated_at: instance.activated_at,
            retired_at: instance.retired_at,
        }
    }
}

/// A device with what can be seen of it and done with it: of each kind the newest 20.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceDetailResponse {
    #[serde(flatten)]
    summary: DeviceSummaryResponse,
    /// The hub of the caller that hears it best.
    hub_uuid: HubUuid,
    /// The actions of the device.
    actions: Vec<ActionDefinitionResponse>,
    /// The manuals of its model.
    manuals: Vec<ManualRow>,
    /// The forms of its model.
    ui: Vec<DeviceUiResponse>,
}

/// The values of a device.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AppSensorDataResponse {
    /// One item for each reception, latest first; in buckets, oldest first.
    items: Vec<SensorDataResponse>,
}

/// The summaries of these devices, in their order.
pub async fn summaries(
    conn: &mut Conn,
    own: &[OwnDevice],
    now: Timestamp,
) -> Result<Vec<DeviceSummaryResponse>> {
    let ids: Vec<i64> = own.iter().map(|own| own.device_instance_id).collect();
    let shown = device_instances::shown(conn, &ids).await?;
    let mut by_id: HashMap<i64, Shown> = shown
        .into_iter()
        .map(|shown| (shown.instance.device_instance_id, shown))
        .collect();
    let summary = |own: &OwnDevice| {
        Some(DeviceSummaryResponse::new(
            by_id.remove(&own.device_instance_id)?,
            own,
            now,
        ))
    };
    Ok(own.iter().filter_map(summary).collect())
}

async fn list(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    page: Page,
    Query(query): Query<AppDeviceQuery>,
) -> Result<Listed<DeviceSummaryResponse>> {
    let mut conn = core.db.read().await?;
    let person = end_users::of_caller(&core, &mut conn, &scope).await?;
    let (own, total) =
        store::list_devices(&mut conn, &person, query.hub_uuid, page.slice()).await?;
    Ok(page.listed(summaries(&mut conn, &own, core.clock.now()).await?, total))
}

async fn get(
    EndUser { scope, user }: EndUser,
    State(core): State<Core>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
) -> Result<Answer<DeviceDetailResponse>> {
    let mut conn = core.db.read().await?;
    let person = end_users::of_caller(&core, &mut conn, &scope).await?;
    let own = end_users::device(&mut conn, &person, device_instance_id).await?;
    let summary = summaries(&mut conn, &[own], core.clock.now()).await?.pop();
    let summary = summary.ok_or_else(|| Error::not_found("device"))?;
    let supplier = Scope::of_person(&user, own.tenant_uuid);
    let bytes = of_model::bytes(&mut conn, &supplier, summary.device_uuid).await?;
    let _held = end_users::hold(&core, own.tenant_uuid, person.user_uuid, bytes)?;
    let pages = of_model::pages(&mut conn, &supplier, summary.device_uuid).await?;
    Ok(Answer(DeviceDetailResponse {
        summary,
        hub_uuid: own.hub_uuid,
        actions: pages.actions,
        manuals: pages.manuals,
        ui: pages.uis,
    }))
}

async fn sensor_data(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
    page: Page,
    Query(query): Query<SensorDataQuery>,
) -> Result<Answer<AppSensorDataResponse>> {
    let mut conn = core.db.read().await?;
    let person = end_users::of_caller(&core, &mut conn, &scope).await?;
    let own = end_users::device(&mut conn, &person, device_instance_id).await?;
    let device = Device {
        tenant_uuid: own.tenant_uuid,
        device_instance_id,
    };
    drop(conn);
    let (items, _) =
        device_history::values(&core, device, query, Some(own.since), page.slice()).await?;
    Ok(Answer(AppSensorDataResponse { items }))
}
