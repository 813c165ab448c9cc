//! `/tenant/devices/{deviceInstanceId}/sensor-data`, `/receptions` and `/timeline`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::db::Slice;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::check::searched;
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DAY_SECS;
use super::buckets::{self, SensorBucketResponse};
use super::import::{self, ImportValuesRequest, ImportedValuesResponse};
use super::reader::{Device, Period};
use super::receptions::{self, DeviceReceptionsResponse};
use super::sensor_data::{self, SensorItemResponse};
use super::timeline::{self, MAX_SECS, TimelinePeriodResponse};
use crate::Parts;
use crate::ble::split_key;
use crate::device_instances::http::DevicePath;
use crate::device_instances::{self, MAX_QUANTITY_CHARS};

const TAG: &str = "tenant-devices";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/devices/{deviceInstanceId}/sensor-data",
            get_with(
                sensor_data,
                operation(
                    "devices.listSensorData",
                    TAG,
                    "The values of a device, latest first, or in buckets",
                ),
            )
            .post_with(
                import_values,
                operation(
                    "devices.importSensorData",
                    TAG,
                    "Import values of a device by the hour, of another service",
                ),
            ),
        )
        .api_route(
            "/tenant/devices/{deviceInstanceId}/receptions",
            get_with(
                receptions,
                operation(
                    "devices.listReceptions",
                    TAG,
                    "The hubs that received a device, and how strongly",
                ),
            ),
        )
        .api_route(
            "/tenant/devices/{deviceInstanceId}/timeline",
            get_with(
                timeline,
                operation(
                    "devices.getTimeline",
                    TAG,
                    "When a device was heard or silent, or no hub was listening",
                ),
            ),
        )
}

/// The delay after which a request for a period until now may arrive.
const LATE_SECS: i64 = 60;

/// Filters of the values.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SensorDataQuery {
    /// Only values observed at this time or later. In buckets, when absent: as many before `to` as
    /// 500 buckets last, but a day at least, and 4,999 buckets at most.
    from: Option<Timestamp>,
    /// Only values observed before this time; until now when absent.
    to: Option<Timestamp>,
    /// Only this quantity, or one of several as `quantity[index]`.
    #[schemars(length(max = MAX_QUANTITY_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    quantity: Option<String>,
    /// Answers buckets of this length instead, all on one page: 10s to 1d, such as `30s`, `5m`,
    /// `1h` or `1d`. They begin at multiples of it since 1970.
    #[schemars(regex(pattern = "^[0-9]+[smhd]$"))]
    every: Option<String>,
}

/// The values of one reception, or of a quantity within a bucket where `every` is given.
// Its variants have no descriptions: generators of clients name a described reference twice.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SensorDataResponse {
    Item(SensorItemResponse),
    Bucket(SensorBucketResponse),
}

/// The requested period.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct PeriodQuery {
    /// The beginning; a day before `to` when absent.
    from: Option<Timestamp>,
    /// The end, exclusive; now when absent.
    to: Option<Timestamp>,
}

impl PeriodQuery {
    /// A period that ends now at the latest.
    fn period(self, now: Timestamp) -> Period {
        let to = self.to.unwrap_or(now).min(now);
        let from = self.from.unwrap_or_else(|| to.plus_secs(-DAY_SECS));
        Period {
            from,
            to: to.max(from),
        }
    }
}

async fn sensor_data(
    auth: Authorized<perm::DevicesRead>,
    State(core): State<Core>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
    page: Page,
    Query(query): Query<SensorDataQuery>,
) -> Result<Listed<SensorDataResponse>> {
    let mut conn = core.db.read().await?;
    device_instances::require(&mut conn, &auth.scope, device_instance_id).await?;
    let device = Device {
        tenant_uuid: auth.scope.tenant_uuid(),
        device_instance_id,
    };
    drop(conn);
    let (values, total) = values(&core, device, query, None, page.slice()).await?;
    Ok(match total {
        Some(total) => page.listed(values, total),
        None => page.listed_whole(values),
    })
}

/// The values of a device, and how many items there are; None of buckets, which are all there.
/// Nothing from before `since` is shown.
pub async fn values(
    core: &Core,
    device: Device,
    query: SensorDataQuery,
    since: Option<Timestamp>,
    slice: Slice,
) -> Result<(Vec<SensorDataResponse>, Option<i64>)> {
    let quantity = match searched(query.quantity.as_deref(), MAX_QUANTITY_CHARS) {
        Ok(quantity) => quantity,
        Err(_) => return Err(Error::field("quantity", "must be the name of a quantity")),
    };
    if let Some(every) = query.every.as_deref() {
        let every = buckets::length(every)?;
        let asked = buckets::period(every, query.from, query.to, core.clock.now())?;
        let from = since.map_or(asked.from, |since| asked.from.max(since));
        let period = Period {
            from,
            to: asked.to.max(from),
        };
        let buckets = buckets::read(core, device, period, every, quantity).await?;
        return Ok((
            buckets
                .into_iter()
                .map(SensorDataResponse::Bucket)
                .collect(),
            None,
        ));
    }
    let between = (query.from.max(since), query.to);
    let is_wanted = |key: &str| quantity.is_none_or(|name| key == name || split_key(key).0 == name);
    let (items, total) = sensor_data::read(core, device, between, &is_wanted, slice).await?;
    Ok((
        items.into_iter().map(SensorDataResponse::Item).collect(),
        Some(total),
    ))
}

async fn import_values(
    auth: Authorized<perm::HistoryImport>,
    State(core): State<Core>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
    Json(request): Json<ImportValuesRequest>,
) -> Result<Answer<ImportedValuesResponse>> {
    let imported = import::import(&core, &auth.scope, device_instance_id, request).await?;
    Ok(Answer(imported))
}

async fn receptions(
    auth: Authorized<perm::DevicesRead>,
    State(core): State<Core>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
    Query(query): Query<PeriodQuery>,
) -> Result<Answer<Vec<DeviceReceptionsResponse>>> {
    let mut conn = core.db.read().await?;
    device_instances::require(&mut conn, &auth.scope, device_instance_id).await?;
    let device = Device {
        tenant_uuid: auth.scope.tenant_uuid(),
        device_instance_id,
    };
    drop(conn);
    let period = query.period(core.clock.now());
    Ok(Answer(receptions::read(&core, device, period).await?))
}

async fn timeline(
    auth: Authorized<perm::DevicesRead>,
    State(core): State<Core>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
    Query(query): Query<PeriodQuery>,
) -> Result<Answer<Vec<TimelinePeriodResponse>>> {
    let mut conn = core.db.read().await?;
    let interval =
        device_instances::interval_secs(&mut conn, &auth.scope, device_instance_id).await?;
    let device = Device {
        tenant_uuid: auth.scope.tenant_uuid(),
        device_instance_id,
    };
    let now = core.clock.now();
    // The clock of the caller advances while the request is in transit.
    let most_secs = MAX_SECS + if query.to.is_none() { LATE_SECS } else { 0 };
    let period = query.period(now);
    if period.to.as_secs() - period.from.as_secs() > most_secs {
        return Err(Error::field(
            "from",
            "must not be more than 31 days before `to`",
        ));
    }
    drop(conn);
    Ok(Answer(
        timeline::read(&core, &auth.scope, device, period, interval).await?,
    ))
}
