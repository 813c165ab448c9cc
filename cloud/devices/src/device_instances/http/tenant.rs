//! `/tenant/devices`: a tenant's own devices.

use std::collections::BTreeMap;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::{Answer, Empty};
use hub_core::http::check::{Check, searched};
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, Scope, permission as perm};
use hub_protocol::{HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::store::{self, Filters, Shown};
use super::super::{
    self as instances, ActivationStatus, AddressType, Beacon, BindKeyStatus, Calibration, Heard,
    LastValue, Step,
};
use super::request::{CreateDeviceInstanceRequest, UpdateDeviceInstanceRequest};
use crate::Parts;
use crate::device_instances::http::DevicePath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/devices",
            get_with(
                list,
                operation("devices.list", "tenant-devices", "Devices, newest first"),
            )
            .post_with(
                create,
                operation_failing(
                    &[404, 409],
                    "devices.create",
                    "tenant-devices",
                    "Register a device",
                ),
            ),
        )
        .api_route(
            "/tenant/devices/{deviceInstanceId}",
            get_with(
                get,
                operation("devices.get", "tenant-devices", "One device"),
            )
            .patch_with(
                update,
                operation_failing(
                    &[409],
                    "devices.update",
                    "tenant-devices",
                    "Change a device, or its keys",
                ),
            )
            .delete_with(
                delete,
                operation(
                    "devices.delete",
                    "tenant-devices",
                    "Delete a device for good",
                ),
            ),
        )
        .api_route(
            "/tenant/devices/{deviceInstanceId}/activate",
            post_with(
                activate,
                operation_failing(
                    &[409],
                    "devices.activate",
                    "tenant-devices",
                    "Put a device into use",
                ),
            ),
        )
        .api_route(
            "/tenant/devices/{deviceInstanceId}/suspend",
            post_with(
                suspend,
                operation_failing(
                    &[409],
                    "devices.suspend",
                    "tenant-devices",
                    "Take a device out of use for a while",
                ),
            ),
        )
        .api_route(
            "/tenant/devices/{deviceInstanceId}/retire",
            post_with(
                retire,
                operation_failing(
                    &[409],
                    "devices.retire",
                    "tenant-devices",
                    "Take a device out of use for good",
                ),
            ),
        )
}

/// Longest text to search for.
const MAX_SEARCH_CHARS: usize = 200;

/// The most devices that a list is asked for by their ids, and how they are written.
const MAX_IDS: usize = 100;
const MAX_IDS_CHARS: usize = 2000;
const IDS: &str = "^[0-9]{1,18}(,[0-9]{1,18})*$";

/// Filters of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceQuery {
    /// Only devices with this status.
    activation_status: Option<ActivationStatus>,
    /// Only devices of this model.
    device_uuid: Option<Uuid>,
    /// Only these devices: at most 100 ids, separated by commas.
    #[schemars(length(max = MAX_IDS_CHARS), regex(pattern = IDS))]
    device_instance_ids: Option<String>,
    /// Only devices whose nearest hub this is.
    hub_uuid: Option<HubUuid>,
    /// Part of the name, the address or the serial number, in any case.
    #[schemars(length(max = MAX_SEARCH_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    q: Option<String>,
    /// Only devices that are online, or that are not.
    online: Option<bool>,
}

/// The hub that hears a device best.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NearestHub {
    /// The hub.
    hub_uuid: HubUuid,
    /// The signal strength at the hub, in dBm.
    rssi_dbm: Option<i64>,
    /// The time since which it is the nearest.
    since: Option<Timestamp>,
}

/// A device. Its keys are never answered.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceInstanceResponse {
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
    /// Names and values for users and programs.
    labels: BTreeMap<String, String>,
    /// Corrections by quantity.
    calibration: BTreeMap<String, Calibration>,
    /// The lifecycle state of the device.
    activation_status: ActivationStatus,
    /// The state of its key for advertisements.
    bind_key_status: BindKeyStatus,
    /// Whether there is a key that its changing addresses are made from.
    identity_resolving_key_set: bool,
    /// The hub with the best reception; null without a reception.
    nearest_hub: Option<NearestHub>,
    /// The time of the last reception.
    last_seen_at: Option<Timestamp>,
    /// The signal strength of the last reception, in dBm.
    last_rssi_dbm: Option<i64>,
    /// Whether the device was heard within three of its intervals, of 10 minutes at least.
    online: bool,
    /// The last value of each quantity.
    state: BTreeMap<String, LastValue>,
    /// When it was registered.
    created_at: Timestamp,
    /// When it first became active.
    activated_at: Option<Timestamp>,
    /// When it was retired.
    retired_at: Option<Timestamp>,
}

impl NearestHub {
    pub const fn hub_uuid(&self) -> HubUuid {
        self.hub_uuid
    }

    /// The nearest hub; None without a reception.
    pub fn of(heard: &Heard) -> Option<Self> {
        let (rssi_dbm, since) = (heard.nearest_rssi_dbm, heard.nearest_since);
        heard.nearest_hub_uuid.map(|hub_uuid| Self {
            hub_uuid,
            rssi_dbm,
            since,
        })
    }
}

impl DeviceInstanceResponse {
    fn new(shown: Shown, now: Timestamp) -> Self {
        let display_name = shown.display_name();
        let Shown {
            instance,
            device_name,
            heard,
        } = shown;
        let nearest_hub = NearestHub::of(&heard);
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
            labels: instance.labels,
            calibration: instance.calibration,
            activation_status: instance.activation_status,
            bind_key_status: instance.bind_key_status,
            identity_resolving_key_set: instance.has_identity_resolving_key,
            nearest_hub,
            last_seen_at: heard.last_seen_at,
            last_rssi_dbm: heard.last_rssi_dbm,
            online: heard.online_until.is_some_and(|until| until > now),
            state: heard.state,
            created_at: instance.created_at,
            activated_at: instance.activated_at,
            retired_at: instance.retired_at,
        }
    }
}

/// The ids of a list, which may be absent.
fn ids(text: Option<&str>) -> Result<Vec<i64>> {
    let Some(text) = text else {
        return Ok(Vec::new());
    };
    let ids: Option<Vec<i64>> = text.split(',').map(|id| id.parse().ok()).collect();
    let ids = ids.filter(|ids| ids.len() <= MAX_IDS);
    let mut check = Check::new();
    check.that(
        ids.is_some(),
        "deviceInstanceIds",
        format!("must be at most {MAX_IDS} ids of devices, separated by commas"),
    );
    check.done()?;
    Ok(ids.unwrap_or_default())
}

async fn list(
    auth: Authorized<perm::DevicesRead>,
    State(core): State<Core>,
    page: Page,
    Query(query): Query<DeviceQuery>,
) -> Result<Listed<DeviceInstanceResponse>> {
    let filters = Filters {
        activation_status: query.activation_status,
        device_uuid: query.device_uuid,
        device_instance_ids: ids(query.device_instance_ids.as_deref())?,
        hub_uuid: query.hub_uuid,
        search: searched(query.q.as_deref(), MAX_SEARCH_CHARS)?.map(str::to_owned),
        online: query.online,
    };
    let now = core.clock.now();
    let mut conn = core.db.read().await?;
    let (shown, total) = store::list(&mut conn, &auth.scope, filters, now, page.slice()).await?;
    Ok(page.listed(
        shown
            .into_iter()
            .map(|shown| DeviceInstanceResponse::new(shown, now))
            .collect(),
        total,
    ))
}

async fn shown(
    core: &Core,
    scope: &Scope,
    device_instance_id: i64,
) -> Result<Answer<DeviceInstanceResponse>> {
    let mut conn = core.db.read().await?;
    let shown = instances::get(&mut conn, scope, device_instance_id).await?;
    Ok(Answer(DeviceInstanceResponse::new(shown, core.clock.now())))
}

async fn create(
    auth: Authorized<perm::DevicesWrite>,
    State(core): State<Core>,
    Json(request): Json<CreateDeviceInstanceRequest>,
) -> Result<Answer<DeviceInstanceResponse>> {
    let device_instance_id = instances::create(&core, &auth.scope, request.checked()?).await?;
    shown(&core, &auth.scope, device_instance_id).await
}

async fn get(
    auth: Authorized<perm::DevicesRead>,
    State(core): State<Core>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
) -> Result<Answer<DeviceInstanceResponse>> {
    shown(&core, &auth.scope, device_instance_id).await
}

async fn update(
    auth: Authorized<perm::DevicesWrite>,
    State(core): State<Core>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
    Json(request): Json<UpdateDeviceInstanceRequest>,
) -> Result<Answer<DeviceInstanceResponse>> {
    instances::update(&core, &auth.scope, device_instance_id, request.checked()?).await?;
    shown(&core, &auth.scope, device_instance_id).await
}

async fn delete(
    auth: Authorized<perm::DevicesWrite>,
    State(core): State<Core>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
) -> Result<Empty> {
    instances::delete(&core, &auth.scope, device_instance_id).await?;
    Ok(Empty)
}

async fn activate(
    auth: Authorized<perm::DevicesWrite>,
    State(core): State<Core>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
) -> Result<Answer<DeviceInstanceResponse>> {
    instances::change_status(&core, &auth.scope, device_instance_id, Step::Activate).await?;
    shown(&core, &auth.scope, device_instance_id).await
}

async fn suspend(
    auth: Authorized<perm::DevicesWrite>,
    State(core): State<Core>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
) -> Result<Answer<DeviceInstanceResponse>> {
    instances::change_status(&core, &auth.scope, device_instance_id, Step::Suspend).await?;
    shown(&core, &auth.scope, device_instance_id).await
}

async fn retire(
    auth: Authorized<perm::DevicesWrite>,
    State(core): State<Core>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
) -> Result<Answer<DeviceInstanceResponse>> {
    instances::change_status(&core, &auth.scope, device_instance_id, Step::Retire).await?;
    shown(&core, &auth.scope, device_instance_id).await
}
