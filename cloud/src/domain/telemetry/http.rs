//! Uploads of telemetry and logs, and both forms of reading them: lists under `/tenant/hubs`, pages under `/tenant/hub-monitoring`.

use std::sync::Arc;

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
    let agent_version = match kind {
        Kind::Telemetry => records.last().and_then(|record| agent_version(&record.text, app.clock.now())),
        _ => None,
    };
    let upload = Upload { hub, kind, key, records, answer: String::new(), agent_version };
    let receipt = app.ingest.submit(app, upload).await?;
    Ok(Limited(NoContent, receipt.rate_limit))
}

/// What a hub is taken to run by telemetry that is older than this is not what it runs now: it may have kept it since before an update.
const NEWS_SECS: i64 = 300;

/// Which agent the hub runs, if the record says so as our own agent does: it may have been updated otherwise than by a job. Telemetry may be anything.
fn agent_version(record: &str, now: Timestamp) -> Option<Arc<str>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Told {
        agent_version: String,
        observed_at: Option<Timestamp>,
    }
    let is_object = record.trim_start().starts_with('{');
    let told: Told = is_object.then(|| serde_json::from_str(record).ok()).flatten()?;
    let is_news = told.observed_at.is_none_or(|at| at >= now.plus_secs(-NEWS_SECS));
    let is_version = told.agent_version.len() <= 64 && semver::Version::parse(&told.agent_version).is_ok();
    (is_news && is_version).then(|| told.agent_version.into())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn telemetry_tells_what_a_hub_runs_if_it_is_news() {
        let now: Timestamp = "2026-01-31T08:00:00Z".parse().expect("a time");
        for (record, expected) in [
            (r#"{"agentVersion": "1.4.2"}"#, Some("1.4.2")),
            (r#" {"agentVersion": "1.4.2", "observedAt": "2026-01-31T07:59:00Z", "load": 1}"#, Some("1.4.2")),
            (r#"{"agentVersion": "1.4.2", "observedAt": "2026-01-31T07:50:00Z"}"#, None),
            (r#"{"agentVersion": "1.4.2", "observedAt": 5}"#, None),
            (r#"{"agentVersion": "a fine one"}"#, None),
            (r#"{"agentVersion": 7}"#, None),
            (r#"["1.4.2", null]"#, None),
            ("7", None),
        ] {
            assert_eq!(agent_version(record, now).as_deref(), expected, "{record}");
        }
    }
}
