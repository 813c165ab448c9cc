//! `/mandate/v1/devices` and `/mandate/v1/sensor-data`: what a recipient reads.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::check::Check;
use hub_core::http::extract::Query;
use hub_core::http::operation::operation_failing;
use hub_core::http::page::{Listed, Page};
use hub_devices::ble::split_key;
use hub_devices::device_history::{self, Device, SensorItemResponse};
use hub_devices::device_instances::{self, ActivationStatus, LastValue, MAX_QUANTITY_CHARS, Shown};
use hub_identity::authn::LEASE;
use hub_identity::authz::MandateBearer;
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::access::{Calls, Quantities, recipient};
use crate::Parts;
use crate::end_users::OwnDevice;

const TAG: &str = "mandate";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/mandate/v1/devices",
            get_with(
                devices,
                operation_failing(
                    &[429],
                    "mandate.listDevices",
                    TAG,
                    "The devices of the mandate, with their last values",
                ),
            ),
        )
        .api_route(
            "/mandate/v1/sensor-data",
            get_with(
                sensor_data,
                operation_failing(
                    &[404, 429],
                    "mandate.listSensorData",
                    TAG,
                    "The values of a device of the mandate, latest first",
                ),
            ),
        )
}

/// A device, as a recipient sees it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecipientDeviceResponse {
    /// The id of the device.
    #[schemars(range(min = 1))]
    device_instance_id: i64,
    /// The model of the device.
    device_uuid: Uuid,
    /// The name of the model.
    device_name: String,
    /// The name that the device was given.
    name: Option<String>,
    /// The lifecycle state of the device.
    activation_status: ActivationStatus,
    /// The time of the last reception.
    last_seen_at: Option<Timestamp>,
    /// Whether the device was heard within three of its intervals, of 10 minutes at least.
    online: bool,
    /// The last value of each quantity of the mandate, since the mandate's beginning.
    state: BTreeMap<String, LastValue>,
}

impl RecipientDeviceResponse {
    pub const fn device_instance_id(&self) -> i64 {
        self.device_instance_id
    }

    /// What of it does not change with every reception.
    pub fn standing(&self) -> (String, ActivationStatus, bool) {
        let name = self.name.clone().unwrap_or_default();
        (name, self.activation_status, self.online)
    }
}

/// The devices of a mandate, in their order.
pub async fn shown(
    conn: &mut Conn,
    devices: &[OwnDevice],
    quantities: &Quantities,
    now: Timestamp,
) -> Result<Vec<RecipientDeviceResponse>> {
    let ids = devices.iter().map(|own| own.device_instance_id);
    let shown = device_instances::shown(conn, &ids.collect::<Vec<_>>()).await?;
    let mut by_id: HashMap<i64, Shown> = shown
        .into_iter()
        .map(|shown| (shown.instance.device_instance_id, shown))
        .collect();
    let mut found = Vec::with_capacity(devices.len());
    for own in devices {
        let Some(Shown {
            instance,
            device_name,
            heard,
        }) = by_id.remove(&own.device_instance_id)
        else {
            continue;
        };
        let since = own.since;
        found.push(RecipientDeviceResponse {
            device_instance_id: instance.device_instance_id,
            device_uuid: instance.device_uuid,
            device_name,
            name: instance.name,
            activation_status: instance.activation_status,
            last_seen_at: heard.last_seen_at.filter(|at| *at >= since),
            online: heard.online_until.is_some_and(|until| until > now),
            state: heard
                .state
                .into_iter()
                .filter(|(key, value)| value.at >= since && quantities.allow(key))
                .collect(),
        });
    }
    Ok(found)
}

/// The values to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RecipientValuesQuery {
    /// The device; it may be absent if the mandate is of one.
    device_instance_id: Option<i64>,
    /// Only values observed at this time or later.
    from: Option<Timestamp>,
    /// Only values observed before this time; until now when absent.
    to: Option<Timestamp>,
    /// Only this quantity, or one of several as `quantity[index]`.
    #[schemars(length(max = MAX_QUANTITY_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    quantity: Option<String>,
}

async fn devices(
    bearer: MandateBearer,
    State(core): State<Core>,
    State(calls): State<Calls>,
    page: Page,
) -> Result<Listed<RecipientDeviceResponse>> {
    let recipient = recipient(&core, &calls, &bearer).await?;
    let begun = Instant::now();
    let mut conn = core.db.read().await?;
    let mut permitted = recipient.permitted(&core, &mut conn, None).await?;
    let total = i64::try_from(permitted.devices.len()).unwrap_or(i64::MAX);
    let (skipped, size) = (usize_of(page.offset), usize_of(page.size));
    let devices = permitted.devices.into_iter();
    permitted.devices = devices.skip(skipped).take(size).collect();
    let shown = shown(
        &mut conn,
        &permitted.devices,
        &permitted.quantities,
        core.clock.now(),
    )
    .await?;
    if begun.elapsed() >= LEASE {
        recipient.permitted(&core, &mut conn, Some(&[])).await?;
    }
    Ok(page.listed(shown, total))
}

fn usize_of(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

async fn sensor_data(
    bearer: MandateBearer,
    State(core): State<Core>,
    State(calls): State<Calls>,
    page: Page,
    Query(query): Query<RecipientValuesQuery>,
) -> Result<Listed<SensorItemResponse>> {
    let mut check = Check::new();
    check.line("quantity", query.quantity.as_deref(), MAX_QUANTITY_CHARS);
    check.done()?;
    let recipient = recipient(&core, &calls, &bearer).await?;
    let begun = Instant::now();
    let mut conn = core.db.read().await?;
    let wanted = query.device_instance_id.map(|id| [id]);
    let wanted = wanted.as_ref().map(<[i64; 1]>::as_slice);
    let permitted = recipient.permitted(&core, &mut conn, wanted).await?;
    drop(conn);
    let own = match (permitted.devices.as_slice(), wanted) {
        ([own], _) => *own,
        (_, Some(_)) => return Err(Error::not_found("device")),
        (_, None) => {
            let message = "name one of the devices that `/mandate/v1/devices` lists";
            return Err(Error::field("deviceInstanceId", message));
        }
    };
    let device = Device {
        tenant_uuid: own.tenant_uuid,
        device_instance_id: own.device_instance_id,
    };
    let quantity = query.quantity.as_deref().filter(|text| !text.is_empty());
    let is_wanted = |key: &str| {
        let is_named = quantity.is_none_or(|name| key == name || split_key(key).0 == name);
        is_named && permitted.quantities.allow(key)
    };
    let between = (query.from.max(Some(own.since)), query.to);
    let (items, total) =
        device_history::items(&core, device, between, &is_wanted, page.slice()).await?;
    // What takes longer than anybody trusts what they read is asked again.
    if begun.elapsed() >= LEASE {
        let mut conn = core.db.read().await?;
        let ids = [own.device_instance_id];
        let still = recipient.permitted(&core, &mut conn, Some(&ids)).await?;
        if still.devices.is_empty() {
            return Err(Error::not_found("device"));
        }
    }
    Ok(page.listed(items, total))
}
