//! `/v1/ble/events/**`, `/tenant/ble/events/**` (lists) and `/tenant/ble-query/events/**` (pages of
//! the same records).

use std::collections::HashMap;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::extract::State;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hub_base::db::Direction;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::{Answer, Created};
use hub_core::http::extract::{Path, Query, parse_json};
use hub_core::http::items::Items;
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page, PageOf, Pageable};
use hub_identity::authz::{Authorized, Scope, permission as perm};
use hub_ingest::{HubUpload, Ingest, ProcessingStatus};
use hub_ingest::{Kind, Limited, Received, Record, ReportedAgent, Upload};
use hub_protocol::ble::{
    BleDeviceWindow, BleEvent, BleUploadResult, MAX_EVENTS_PER_UPLOAD, RejectedEvent,
};
use hub_protocol::trace_context::TRACEPARENT;
use hub_protocol::{BatchUuid, HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

use super::check::{self, Checked};
use super::delivered;
use super::read::{ReadUpload, Settled};
use super::receptions::further_receptions;
use super::runs;
use super::spans::Spans;
use super::store::{self, Filter};
use super::{
    BleEventDetailResponse, BleEventResponse, DeliveryStatus, MAX_RECEPTIONS, ReceptionResponse,
    StoredEvent, View, response,
};
use crate::Parts;
use crate::recognition::{Recognition, TenantCatalog};

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(runs::routes())
        .api_route(
            "/v1/ble/events",
            post_with(
                upload,
                operation("hub.uploadBleEvents", "hub-api", "Upload BLE events"),
            ),
        )
        .api_route(
            "/v1/ble/events/windowed",
            post_with(
                upload_windowed,
                operation(
                    "hub.uploadBleWindows",
                    "hub-api",
                    "Upload the advertisements of a window, aggregated by device",
                ),
            ),
        )
        .api_route(
            "/tenant/ble/events",
            get_with(
                list,
                operation("bleEvents.list", "tenant-ble", "BLE events, latest first"),
            ),
        )
        .api_route(
            "/tenant/ble/events/{bleEventId}",
            get_with(
                get,
                operation("bleEvents.get", "tenant-ble", "One BLE event"),
            ),
        )
        .api_route(
            "/tenant/ble-query/events",
            get_with(
                query,
                operation("bleEvents.query", "tenant-ble", "BLE events, as pages"),
            ),
        )
        .api_route(
            "/tenant/ble-query/events/{bleEventId}",
            get_with(
                get_detail,
                operation(
                    "bleEvents.getDetail",
                    "tenant-ble",
                    "One BLE event, with what the hub sent",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BleEventPath {
    /// The id of the event.
    pub ble_event_id: i64,
}

/// `POST /v1/ble/events`: BLE events.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BleEventUploadRequest<'a> {
    /// The batch's id, set by the hub; the same batch is stored once, for 7 days.
    batch_uuid: BatchUuid,
    /// The events. One that is not valid is rejected by its index; the others are stored.
    #[serde(borrow)]
    #[schemars(with = "Vec<BleEvent>")]
    #[schemars(length(max = MAX_EVENTS_PER_UPLOAD))]
    events: Items<'a, MAX_EVENTS_PER_UPLOAD>,
}

async fn upload(
    State(ingest): State<Ingest>,
    State(recognition): State<Recognition>,
    upload: HubUpload<BleEventUploadRequest<'static>>,
) -> Result<Limited<Created<BleUploadResult>>> {
    let catalog = recognition.catalog(upload.hub.tenant_uuid).await?;
    let hub_uuid = upload.hub.hub_uuid;
    let spans = Spans::begin(&ingest.core, upload.header(TRACEPARENT));
    let parse = move |body: &[u8]| single(body, spans, (&catalog, hub_uuid));
    let received = ingest.receive(Kind::BleEvents, upload, parse).await?;
    submit(&ingest, &recognition, received).await
}

/// A validated upload.
struct Batch {
    key: String,
    records: Vec<Record>,
    rejected: Vec<RejectedEvent>,
    found: ReadUpload,
    spans: Spans,
}

fn single(body: &[u8], spans: Spans, known: (&TenantCatalog, HubUuid)) -> Result<Batch> {
    let request: BleEventUploadRequest<'_> = parse_json(body)?;
    let key = format!("single/{}", request.batch_uuid);
    let batch = Batch::new(key, request.events.0.len(), spans);
    Ok(batch.read_all(request.events, None, check::event, known))
}

/// `POST /v1/ble/events/windowed`: summaries of receptions of devices.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowedBleEventRequest<'a> {
    /// The batch's id, set by the hub; the same batch is stored once, for 7 days.
    batch_uuid: BatchUuid,
    /// When the window began.
    window_start: Timestamp,
    /// When the window ended, not before it began.
    window_end: Timestamp,
    /// The devices. One that is not valid is rejected by its index; the others are stored.
    #[serde(borrow)]
    #[schemars(with = "Vec<BleDeviceWindow>")]
    #[schemars(length(max = MAX_EVENTS_PER_UPLOAD))]
    devices: Items<'a, MAX_EVENTS_PER_UPLOAD>,
}

async fn upload_windowed(
    State(ingest): State<Ingest>,
    State(recognition): State<Recognition>,
    upload: HubUpload<WindowedBleEventRequest<'static>>,
) -> Result<Limited<Created<BleUploadResult>>> {
    let catalog = recognition.catalog(upload.hub.tenant_uuid).await?;
    let hub_uuid = upload.hub.hub_uuid;
    let spans = Spans::begin(&ingest.core, upload.header(TRACEPARENT));
    let parse = move |body: &[u8]| windowed(body, spans, (&catalog, hub_uuid));
    let received = ingest.receive(Kind::BleEvents, upload, parse).await?;
    submit(&ingest, &recognition, received).await
}

fn windowed(body: &[u8], spans: Spans, known: (&TenantCatalog, HubUuid)) -> Result<Batch> {
    let request: WindowedBleEventRequest<'_> = parse_json(body)?;
    if request.window_start > request.window_end {
        return Err(Error::field("windowEnd", "must not be before windowStart"));
    }
    let window = Some((request.window_start, request.window_end));
    let key = format!("windowed/{}", request.batch_uuid);
    let batch = Batch::new(key, request.devices.0.len(), spans);
    Ok(batch.read_all(request.devices, window, check::device, known))
}

impl Batch {
    fn new(key: String, count: usize, spans: Spans) -> Self {
        Self {
            key,
            records: Vec::with_capacity(count),
            rejected: Vec::new(),
            found: ReadUpload::default(),
            spans,
        }
    }

    /// Splits the uploaded events into valid and rejected ones, and reads the valid.
    fn read_all(
        mut self,
        Items(items): Items<'_, MAX_EVENTS_PER_UPLOAD>,
        window: Option<(Timestamp, Timestamp)>,
        check: fn(&str) -> std::result::Result<Checked, String>,
        known: (&TenantCatalog, HubUuid),
    ) -> Self {
        for (index, item) in (0..).zip(items) {
            match check(item.get()) {
                Ok(checked) => {
                    let record = Record {
                        window,
                        ..Record::new(self.spans.note(item.get(), &checked).into())
                    };
                    self.found.add(known, checked, &mut self.records, record);
                }
                Err(message) => self.rejected.push(RejectedEvent { index, message }),
            }
        }
        self
    }
}

async fn submit(
    ingest: &Ingest,
    recognition: &Recognition,
    upload: Received<Batch>,
) -> Result<Limited<Created<BleUploadResult>>> {
    let Received { hub, content, held } = upload;
    let Batch {
        key,
        mut records,
        rejected,
        found,
        spans,
    } = match content {
        Ok(batch) => batch,
        Err(error) => return Err(ingest.refuse(hub, Kind::BleEvents, error).await),
    };
    let accepted = i64::try_from(records.len() + found.dropped).unwrap_or(i64::MAX);
    let count = accepted.saturating_add(i64::try_from(rejected.len()).unwrap_or(i64::MAX));
    let result = BleUploadResult {
        accepted,
        rejected,
        duplicate: false,
    };
    let answer = serde_json::to_string(&result).map_err(Error::internal)?;
    let Settled {
        heard,
        unknown,
        is_read,
    } = found
        .settle(recognition, &ingest.core.scripts, &hub, &mut records)
        .await?;
    if !is_read {
        recognition.note_unread(hub.tenant_uuid).await?;
    }
    let (sender, kind) = (hub.clone(), Kind::BleEvents);
    let upload = Upload {
        hub,
        kind,
        key: Some(key),
        records,
        heard,
        answer,
        agent: ReportedAgent::default(),
    };
    let receipt = ingest.submit_held(upload, held).await?;
    if receipt.withheld {
        return Ok(Limited(Created(withheld(count)), receipt.rate_limit));
    }
    if !receipt.duplicate {
        spans.record(&ingest.core, &sender);
        recognition.note_unknown(&sender, unknown);
    }
    let result = match receipt.duplicate {
        false => result,
        true => BleUploadResult {
            duplicate: true,
            ..serde_json::from_str(&receipt.answer).map_err(Error::internal)?
        },
    };
    Ok(Limited(Created(result), receipt.rate_limit))
}

/// The answer of an upload of which nothing is stored, for want of consent.
fn withheld(count: i64) -> BleUploadResult {
    let rejected = |index| RejectedEvent {
        index,
        message: "the owner of the hub has not consented".to_owned(),
    };
    BleUploadResult {
        accepted: 0,
        rejected: (0..count).map(rejected).collect(),
        duplicate: false,
    }
}

/// Filters of `/tenant/ble/events`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListQuery {
    /// Only events received at this time or later.
    from: Option<Timestamp>,
    /// Only events received before this time.
    to: Option<Timestamp>,
    /// Only events of this hub.
    hub_uuid: Option<HubUuid>,
    /// Only events of this device.
    device_instance_id: Option<i64>,
    /// Only events with this processing status.
    processing_status: Option<ProcessingStatus>,
    /// `receptions`, the default: each event as a hub received it. `observations`: events of one
    /// frame, heard by several hubs, as one.
    view: Option<View>,
}

/// Filters of `/tenant/ble-query/events`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PageQuery {
    /// Only events received at this time or later.
    from: Option<Timestamp>,
    /// Only events received before this time.
    to: Option<Timestamp>,
    /// Only events of this hub.
    hub_uuid: Option<HubUuid>,
    /// Only events of this device.
    device_instance_id: Option<i64>,
    /// Only events with this processing status.
    processing_status: Option<ProcessingStatus>,
    /// Only events with this delivery status.
    delivery_status: Option<DeliveryStatus>,
    /// `receptions`, the default: each event as a hub received it. `observations`: events of one
    /// frame, heard by several hubs, as one.
    view: Option<View>,
}

/// Optional parts of the response.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DetailQuery {
    /// Whether to include the event exactly as the hub sent it.
    #[serde(default)]
    include_raw: bool,
}

/// The events of a page.
async fn shown(
    core: &Core,
    scope: &Scope,
    events: Vec<StoredEvent>,
) -> Result<Vec<BleEventResponse>> {
    let mut shown: Vec<BleEventResponse> =
        events.into_iter().map(response).collect::<Result<_>>()?;
    delivered::show(&mut core.db.read().await?, scope.tenant_uuid(), &mut shown).await?;
    Ok(shown)
}

/// The events of a page; observations with all of their receptions.
async fn with_receptions(
    core: &Core,
    scope: &Scope,
    view: View,
    mut responses: Vec<BleEventResponse>,
) -> Result<Vec<BleEventResponse>> {
    let ids: Vec<i64> = responses
        .iter()
        .map(|response| response.ble_event_id)
        .collect();
    if view == View::Receptions || ids.is_empty() {
        return Ok(responses);
    }
    let mut further: HashMap<i64, Vec<ReceptionResponse>> = HashMap::new();
    for (first_id, reception) in further_receptions(core, scope, &ids).await? {
        further.entry(first_id).or_default().push(reception);
    }
    for response in &mut responses {
        let mut receptions = vec![response.reception()];
        receptions.extend(further.remove(&response.ble_event_id).unwrap_or_default());
        receptions.truncate(MAX_RECEPTIONS);
        response.receptions = Some(receptions);
    }
    Ok(responses)
}

async fn list(
    auth: Authorized<perm::BleRead>,
    State(ingest): State<Ingest>,
    page: Page,
    Query(query): Query<ListQuery>,
) -> Result<Listed<BleEventResponse>> {
    let filter = Filter {
        from: query.from,
        to: query.to,
        hub_uuid: query.hub_uuid,
        device_instance_id: query.device_instance_id,
        processing_status: query.processing_status,
        view: query.view.unwrap_or_default(),
        ..Filter::default()
    };
    let core = &ingest.core;
    let (direction, slice) = (Direction::Descending, page.slice());
    let (events, total) = store::list(core, &auth.scope, &filter, direction, slice).await?;
    let events = shown(core, &auth.scope, events).await?;
    Ok(page.listed(
        with_receptions(core, &auth.scope, filter.view, events).await?,
        total,
    ))
}

async fn query(
    auth: Authorized<perm::BleRead>,
    State(ingest): State<Ingest>,
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
        view: query.view.unwrap_or_default(),
        ..Filter::default()
    };
    let (core, slice) = (&ingest.core, page.slice());
    let (events, total) = match query.delivery_status {
        Some(status) => {
            delivered::list(core, &auth.scope, &filter, status, direction, slice).await?
        }
        None => {
            let (events, total) = store::list(core, &auth.scope, &filter, direction, slice).await?;
            (shown(core, &auth.scope, events).await?, total)
        }
    };
    Ok(Answer(page.page_of(
        with_receptions(core, &auth.scope, filter.view, events).await?,
        total,
    )))
}

/// An event, and its text as the hub sent it.
async fn find(
    ingest: &Ingest,
    scope: &Scope,
    ble_event_id: i64,
) -> Result<(BleEventResponse, String)> {
    let stored = store::get(&ingest.core, scope, ble_event_id)
        .await?
        .ok_or_else(|| Error::not_found("BLE event"))?;
    let text = stored.event.clone();
    let mut event = [response(stored)?];
    let mut conn = ingest.core.db.read().await?;
    delivered::show(&mut conn, scope.tenant_uuid(), &mut event).await?;
    let [event] = event;
    Ok((event, text))
}

async fn get(
    auth: Authorized<perm::BleRead>,
    State(ingest): State<Ingest>,
    Path(BleEventPath { ble_event_id }): Path<BleEventPath>,
) -> Result<Answer<BleEventResponse>> {
    Ok(Answer(find(&ingest, &auth.scope, ble_event_id).await?.0))
}

async fn get_detail(
    auth: Authorized<perm::BleRead>,
    State(ingest): State<Ingest>,
    Path(BleEventPath { ble_event_id }): Path<BleEventPath>,
    Query(query): Query<DetailQuery>,
) -> Result<Answer<BleEventDetailResponse>> {
    let (event, text) = find(&ingest, &auth.scope, ble_event_id).await?;
    let raw = query.include_raw.then(|| STANDARD.encode(&text));
    Ok(Answer(BleEventDetailResponse { event, raw }))
}
