//! `/v1/ble/events/**`, `/tenant/ble/events/**` (lists) and `/tenant/ble-query/events/**` (pages): two forms of the same records.

use axum::extract::State;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hub_protocol::ble::{BleDeviceWindow, BleEvent, BleUploadResult, MAX_EVENTS_PER_UPLOAD, RejectedEvent};
use hub_protocol::{BatchUuid, HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

use super::check::{self, Checked};
use super::store::{self, Filter};
use super::{BleEventDetailResponse, BleEventResponse, DeliveryStatus, ProcessingStatus, StoredEvent};
use crate::app::App;
use crate::authn::hub::{Hub, UploadingHub};
use crate::authz::{Authorized, Scope, permission as perm};
use crate::error::{Error, Result};
use crate::http::answer::{Answer, Created};
use crate::http::extract::{Path, Query, UploadBody, parse_object};
use crate::http::items::Items;
use crate::http::page::{Direction, Listed, Page, PageOf, Pageable};
use crate::ingest::{Kind, Limited, Record, Upload};

/// `POST /v1/ble/events`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BleEventUploadRequest<'a> {
    /// Chosen by the hub before it sends; the same batch is stored once, for 7 days.
    batch_uuid: BatchUuid,
    /// At most 10,000.
    #[serde(borrow)]
    #[schemars(with = "Vec<BleEvent>")]
    events: Items<'a, MAX_EVENTS_PER_UPLOAD>,
}

pub async fn upload(
    UploadingHub(hub): UploadingHub,
    State(app): State<App>,
    body: UploadBody<BleEventUploadRequest<'static>>,
) -> Result<Limited<Created<BleUploadResult>>> {
    submit(&app, hub, body.0.and_then(|body| single(&body))).await
}

/// An upload whose events were looked at.
struct Batch {
    key: String,
    records: Vec<Record>,
    rejected: Vec<RejectedEvent>,
}

fn single(body: &[u8]) -> Result<Batch> {
    let request: BleEventUploadRequest<'_> = parse_object(body)?;
    let (records, rejected) = check_all(request.events, None, check::event);
    Ok(Batch { key: format!("single/{}", request.batch_uuid), records, rejected })
}

/// `POST /v1/ble/events/windowed`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowedBleEventRequest<'a> {
    /// Chosen by the hub before it sends; the same batch is stored once, for 7 days.
    batch_uuid: BatchUuid,
    window_start: Timestamp,
    window_end: Timestamp,
    /// At most 10,000.
    #[serde(borrow)]
    #[schemars(with = "Vec<BleDeviceWindow>")]
    devices: Items<'a, MAX_EVENTS_PER_UPLOAD>,
}

pub async fn upload_windowed(
    UploadingHub(hub): UploadingHub,
    State(app): State<App>,
    body: UploadBody<WindowedBleEventRequest<'static>>,
) -> Result<Limited<Created<BleUploadResult>>> {
    submit(&app, hub, body.0.and_then(|body| windowed(&body))).await
}

fn windowed(body: &[u8]) -> Result<Batch> {
    let request: WindowedBleEventRequest<'_> = parse_object(body)?;
    if request.window_start > request.window_end {
        return Err(Error::field("windowEnd", "must not be before windowStart"));
    }
    let window = Some((request.window_start, request.window_end));
    let (records, rejected) = check_all(request.devices, window, check::device);
    Ok(Batch { key: format!("windowed/{}", request.batch_uuid), records, rejected })
}

/// Splits what was sent into what can be stored and what cannot.
fn check_all(
    Items(items): Items<'_, MAX_EVENTS_PER_UPLOAD>,
    window: Option<(Timestamp, Timestamp)>,
    check: fn(&str) -> std::result::Result<Checked, String>,
) -> (Vec<Record>, Vec<RejectedEvent>) {
    let mut records = Vec::with_capacity(items.len());
    let mut rejected = Vec::new();
    for (index, item) in (0..).zip(items) {
        match check(item.get()) {
            Ok(Checked { device_instance_id }) => {
                records.push(Record { text: item.get().into(), device_instance_id, window });
            }
            Err(message) => rejected.push(RejectedEvent { index, message }),
        }
    }
    (records, rejected)
}

async fn submit(app: &App, hub: Hub, batch: Result<Batch>) -> Result<Limited<Created<BleUploadResult>>> {
    let Batch { key, records, rejected } = match batch {
        Ok(batch) => batch,
        Err(error) => return Err(app.ingest.refuse(app, hub, Kind::BleEvents, error).await),
    };
    let result =
        BleUploadResult { accepted: i64::try_from(records.len()).unwrap_or(i64::MAX), rejected, duplicate: false };
    let answer = serde_json::to_string(&result).map_err(Error::internal)?;
    let upload = Upload { hub, kind: Kind::BleEvents, key: Some(key), records, answer, agent_version: None };
    let receipt = app.ingest.submit(app, upload).await?;
    let result = match receipt.duplicate {
        false => result,
        true => BleUploadResult { duplicate: true, ..serde_json::from_str(&receipt.answer).map_err(Error::internal)? },
    };
    Ok(Limited(Created(result), receipt.rate_limit))
}

/// What `/tenant/ble/events` may be narrowed by.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListQuery {
    /// Received at this time or later.
    from: Option<Timestamp>,
    /// Received before this time.
    to: Option<Timestamp>,
    hub_uuid: Option<HubUuid>,
    device_instance_id: Option<i64>,
    processing_status: Option<ProcessingStatus>,
}

/// What `/tenant/ble-query/events` may be narrowed by.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageQuery {
    /// Received at this time or later.
    from: Option<Timestamp>,
    /// Received before this time.
    to: Option<Timestamp>,
    hub_uuid: Option<HubUuid>,
    device_instance_id: Option<i64>,
    processing_status: Option<ProcessingStatus>,
    delivery_status: Option<DeliveryStatus>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DetailQuery {
    /// Also the event exactly as the hub sent it.
    #[serde(default)]
    include_raw: bool,
}

fn responses(events: Vec<StoredEvent>) -> Result<Vec<BleEventResponse>> {
    events.into_iter().map(StoredEvent::response).collect()
}

pub async fn list(
    auth: Authorized<perm::BleRead>,
    State(app): State<App>,
    page: Page,
    Query(query): Query<ListQuery>,
) -> Result<Listed<BleEventResponse>> {
    let filter = Filter {
        from: query.from,
        to: query.to,
        hub_uuid: query.hub_uuid,
        device_instance_id: query.device_instance_id,
        processing_status: query.processing_status,
        delivery_status: None,
    };
    let mut conn = app.db.read().await?;
    let total = store::count(&mut conn, &auth.scope, &filter).await?;
    let events = store::list(&mut conn, &auth.scope, &filter, Direction::Descending, page.size, page.offset).await?;
    Ok(page.listed(responses(events)?, total))
}

pub async fn query(
    auth: Authorized<perm::BleRead>,
    State(app): State<App>,
    page: Pageable,
    Query(query): Query<PageQuery>,
) -> Result<Answer<PageOf<BleEventResponse>>> {
    let direction = page.direction("receivedAt", Direction::Descending)?;
    let filter = Filter {
        from: query.from,
        to: query.to,
        hub_uuid: query.hub_uuid,
        device_instance_id: query.device_instance_id,
        processing_status: query.processing_status,
        delivery_status: query.delivery_status,
    };
    let mut conn = app.db.read().await?;
    let total = store::count(&mut conn, &auth.scope, &filter).await?;
    let events = store::list(&mut conn, &auth.scope, &filter, direction, page.size, page.offset).await?;
    Ok(Answer(page.page_of(responses(events)?, total)))
}

async fn find(app: &App, scope: &Scope, ble_event_id: i64) -> Result<StoredEvent> {
    let mut conn = app.db.read().await?;
    store::get(&mut conn, scope, ble_event_id).await?.ok_or_else(|| Error::not_found("BLE event"))
}

pub async fn get(
    auth: Authorized<perm::BleRead>,
    State(app): State<App>,
    Path(ble_event_id): Path<i64>,
) -> Result<Answer<BleEventResponse>> {
    Ok(Answer(find(&app, &auth.scope, ble_event_id).await?.response()?))
}

pub async fn get_detail(
    auth: Authorized<perm::BleRead>,
    State(app): State<App>,
    Path(ble_event_id): Path<i64>,
    Query(query): Query<DetailQuery>,
) -> Result<Answer<BleEventDetailResponse>> {
    let stored = find(&app, &auth.scope, ble_event_id).await?;
    let raw = query.include_raw.then(|| STANDARD.encode(&stored.event));
    Ok(Answer(BleEventDetailResponse { event: stored.response()?, raw }))
}
