//! Uploads of telemetry and logs, and both forms of reading them: lists under `/tenant/hubs`, pages under `/tenant/hub-monitoring`.

use axum::extract::State;
use axum::http::HeaderMap;
use bytes::Bytes;
use hub_protocol::{HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::store::{self, Between, StoredRecord, Table};
use super::{HubLogResponse, HubTelemetryResponse, MAX_DEPTH, MAX_RECORD_BYTES, MAX_RECORDS, Readable, depth};
use crate::app::App;
use crate::authn::hub::{Hub, UploadingHub};
use crate::authz::{Authorized, Scope, permission as perm};
use crate::domain::hubs;
use crate::error::{Error, Result};
use crate::http::answer::{Answer, NoContent};
use crate::http::extract::{Path, Query, UploadBody, parse_json};
use crate::http::items::Items;
use crate::http::page::{Direction, Listed, Page, PageOf, Pageable};
use crate::ingest::{Kind, Limited, Record, Upload, idempotency_key};

pub async fn upload_logs(
    UploadingHub(hub): UploadingHub,
    State(app): State<App>,
    headers: HeaderMap,
    body: UploadBody<Value>,
) -> Result<Limited<NoContent>> {
    submit(&app, hub, Kind::Logs, &headers, body.0).await
}

pub async fn upload_telemetry(
    UploadingHub(hub): UploadingHub,
    State(app): State<App>,
    headers: HeaderMap,
    body: UploadBody<Value>,
) -> Result<Limited<NoContent>> {
    submit(&app, hub, Kind::Telemetry, &headers, body.0).await
}

async fn submit(
    app: &App,
    hub: Hub,
    kind: Kind,
    headers: &HeaderMap,
    body: Result<Bytes>,
) -> Result<Limited<NoContent>> {
    let checked = || Ok((idempotency_key(headers)?, records(&body?)?));
    let (key, records) = match checked() {
        Ok(checked) => checked,
        Err(error) => return Err(app.ingest.refuse(app, hub, kind, error).await),
    };
    let upload = Upload { hub, kind, key, records, answer: String::new() };
    let receipt = app.ingest.submit(app, upload).await?;
    Ok(Limited(NoContent, receipt.rate_limit))
}

/// One record, or one for each element of an array.
fn records(body: &[u8]) -> Result<Vec<Record>> {
    let whole: &RawValue = parse_json(body)?;
    if depth(whole.get()) > MAX_DEPTH {
        return Err(Error::field("body", format!("must not nest deeper than {MAX_DEPTH} levels")));
    }
    parse_json::<Readable>(body)?;
    let items = match whole.get().starts_with('[') {
        true => parse_json::<Items<'_, MAX_RECORDS>>(body)?.0,
        false => vec![whole],
    };
    if items.iter().any(|item| item.get().len() > MAX_RECORD_BYTES) {
        let kibibytes = MAX_RECORD_BYTES / 1024;
        return Err(Error::field("body", format!("one record may have at most {kibibytes} KiB; send it in parts")));
    }
    Ok(items.into_iter().map(|item| Record::on_one_line(item.get())).collect())
}

#[derive(Deserialize, JsonSchema)]
pub struct BetweenQuery {
    /// Received at this time or later.
    from: Option<Timestamp>,
    /// Received before this time.
    to: Option<Timestamp>,
}

impl From<BetweenQuery> for Between {
    fn from(query: BetweenQuery) -> Self {
        Self { from: query.from, to: query.to }
    }
}

/// One page of a hub's records, and how many there are.
async fn read(
    app: &App,
    table: Table,
    scope: &Scope,
    hub_uuid: HubUuid,
    between: Between,
    direction: Direction,
    (size, offset): (i64, i64),
) -> Result<(Vec<StoredRecord>, i64)> {
    let mut conn = app.db.read().await?;
    hubs::require(&mut conn, scope, hub_uuid).await?;
    let total = store::count(&mut conn, table, scope, hub_uuid, between).await?;
    let records = store::list(&mut conn, table, scope, hub_uuid, between, direction, (size, offset)).await?;
    Ok((records, total))
}

pub async fn list_logs(
    auth: Authorized<perm::HubsRead>,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
    page: Page,
    Query(query): Query<BetweenQuery>,
) -> Result<Listed<HubLogResponse>> {
    let part = (page.size, page.offset);
    let (records, total) =
        read(&app, Table::Logs, &auth.scope, hub_uuid, query.into(), Direction::Descending, part).await?;
    Ok(page.listed(records.into_iter().map(HubLogResponse::from).collect(), total))
}

pub async fn list_telemetry(
    auth: Authorized<perm::HubsRead>,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
    page: Page,
    Query(query): Query<BetweenQuery>,
) -> Result<Listed<HubTelemetryResponse>> {
    let part = (page.size, page.offset);
    let (records, total) =
        read(&app, Table::Telemetry, &auth.scope, hub_uuid, query.into(), Direction::Descending, part).await?;
    Ok(page.listed(records.into_iter().map(HubTelemetryResponse::from).collect(), total))
}

pub async fn page_logs(
    auth: Authorized<perm::HubsRead>,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
    page: Pageable,
    Query(query): Query<BetweenQuery>,
) -> Result<Answer<PageOf<HubLogResponse>>> {
    let direction = page.direction("receivedAt", Direction::Descending)?;
    let part = (page.size, page.offset);
    let (records, total) = read(&app, Table::Logs, &auth.scope, hub_uuid, query.into(), direction, part).await?;
    Ok(Answer(page.page_of(records.into_iter().map(HubLogResponse::from).collect(), total)))
}

pub async fn page_telemetry(
    auth: Authorized<perm::HubsRead>,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
    page: Pageable,
    Query(query): Query<BetweenQuery>,
) -> Result<Answer<PageOf<HubTelemetryResponse>>> {
    let direction = page.direction("receivedAt", Direction::Descending)?;
    let part = (page.size, page.offset);
    let (records, total) = read(&app, Table::Telemetry, &auth.scope, hub_uuid, query.into(), direction, part).await?;
    Ok(Answer(page.page_of(records.into_iter().map(HubTelemetryResponse::from).collect(), total)))
}
