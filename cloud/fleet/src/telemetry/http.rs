//! Uploads of telemetry and logs, lists of them under `/tenant/hubs`, and pages under
//! `/tenant/hub-monitoring`.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::extract::State;
use hub_base::budget::Holder;
use hub_base::db::{Direction, Slice};
use hub_base::error::{Error, Result};
use hub_core::http::answer::{Answer, NoContent, hold_answer};
use hub_core::http::extract::{Path, Query, parse_json};
use hub_core::http::idempotency::IdempotencyKey;
use hub_core::http::items::Items;
use hub_core::http::json::{MAX_DEPTH, depth};
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page, PageOf, Pageable};
use hub_identity::authz::{Authorized, permission as perm};
use hub_ingest::{HubUpload, Ingest};
use hub_ingest::{Kind, Limited, Received, Record, ReportedAgent, Upload};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::store::{Between, List, StoredRecord, Table};
use super::{HubLogResponse, HubTelemetryResponse, MAX_RECORD_BYTES, MAX_RECORDS, Readable};
use crate::Parts;
use crate::hubs;
use crate::hubs::http::HubPath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/v1/hubs/{hubUuid}/logs",
            post_with(
                upload_logs,
                operation("hub.uploadLogs", "hub-api", "Upload log entries: any JSON"),
            ),
        )
        .api_route(
            "/v1/hubs/{hubUuid}/telemetry",
            post_with(
                upload_telemetry,
                operation(
                    "hub.uploadTelemetry",
                    "hub-api",
                    "Upload telemetry: any JSON",
                ),
            ),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/logs",
            get_with(
                list_logs,
                operation(
                    "hubLogs.list",
                    "tenant-hubs",
                    "Log entries of a hub, latest first",
                ),
            ),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/telemetry",
            get_with(
                list_telemetry,
                operation(
                    "hubTelemetry.list",
                    "tenant-hubs",
                    "Telemetry of a hub, latest first",
                ),
            ),
        )
        .api_route(
            "/tenant/hub-monitoring/{hubUuid}/logs",
            get_with(
                page_logs,
                operation(
                    "hubLogs.page",
                    "tenant-monitoring",
                    "Log entries of a hub, as pages",
                ),
            ),
        )
        .api_route(
            "/tenant/hub-monitoring/{hubUuid}/telemetry",
            get_with(
                page_telemetry,
                operation(
                    "hubTelemetry.page",
                    "tenant-monitoring",
                    "Telemetry of a hub, as pages",
                ),
            ),
        )
}

async fn upload_logs(
    State(ingest): State<Ingest>,
    IdempotencyKey(key): IdempotencyKey,
    upload: HubUpload<Value>,
) -> Result<Limited<NoContent>> {
    submit(&ingest, Kind::Logs, key, upload).await
}

async fn upload_telemetry(
    State(ingest): State<Ingest>,
    IdempotencyKey(key): IdempotencyKey,
    upload: HubUpload<Value>,
) -> Result<Limited<NoContent>> {
    submit(&ingest, Kind::Telemetry, key, upload).await
}

async fn submit(
    ingest: &Ingest,
    kind: Kind,
    key: Result<Option<String>>,
    upload: HubUpload<Value>,
) -> Result<Limited<NoContent>> {
    let Received { hub, content, held } = ingest.receive(kind, upload, records).await?;
    let (key, records) = match key.and_then(|key| Ok((key, content?))) {
        Ok(checked) => checked,
        Err(error) => return Err(ingest.refuse(hub, kind, error).await),
    };
    let agent = match (kind, records.last()) {
        (Kind::Telemetry, Some(last)) => reported_agent(&last.text, ingest.core.clock.now()),
        _ => ReportedAgent::default(),
    };
    let (heard, answer) = (Vec::new(), String::new());
    let upload = Upload {
        hub,
        kind,
        key,
        records,
        heard,
        answer,
        agent,
    };
    let receipt = ingest.submit_held(upload, held).await?;
    Ok(Limited(NoContent, receipt.rate_limit))
}

/// The records of one page, together. A record has at most 256 KiB, so a page of the usual size
/// fits.
const MAX_PAGE_BYTES: i64 = 8 * 1024 * 1024;
/// Telemetry older than this does not show which agent runs now: the hub may have spooled it before
/// an update.
const MAX_AGE_SECS: i64 = 300;
/// The longest version or boot id that is noted.
const MAX_REPORTED_BYTES: usize = 64;

/// What a telemetry record says of the agent, if it has the form that hub-agent sends; telemetry is
/// free-form. An agent may have been updated without a job.
fn reported_agent(record: &str, now: Timestamp) -> ReportedAgent {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Reported {
        agent_version: Option<String>,
        boot_id: Option<String>,
        observed_at: Option<Timestamp>,
    }
    let is_object = record.trim_start().starts_with('{');
    let reported: Option<Reported> = is_object
        .then(|| serde_json::from_str(record).ok())
        .flatten();
    let is_recent = |reported: &Reported| {
        reported
            .observed_at
            .is_none_or(|at| at >= now.plus_secs(-MAX_AGE_SECS))
    };
    let Some(reported) = reported.filter(is_recent) else {
        return ReportedAgent::default();
    };
    let version = reported.agent_version.filter(|version| {
        version.len() <= MAX_REPORTED_BYTES && semver::Version::parse(version).is_ok()
    });
    let boot_id = reported.boot_id.filter(|boot_id| {
        (1..=MAX_REPORTED_BYTES).contains(&boot_id.len())
            && boot_id.bytes().all(|byte| byte.is_ascii_graphic())
    });
    ReportedAgent {
        version: version.map(Arc::from),
        boot_id: boot_id.map(Arc::from),
    }
}

/// The records of a body: one, or one for each element of an array.
fn records(body: &[u8]) -> Result<Vec<Record>> {
    let whole: &RawValue = parse_json(body)?;
    if depth(whole.get()) > MAX_DEPTH {
        return Err(Error::field(
            "body",
            format!("must not nest deeper than {MAX_DEPTH} levels"),
        ));
    }
    parse_json::<Readable>(body)?;
    let items = match whole.get().starts_with('[') {
        true => parse_json::<Items<'_, MAX_RECORDS>>(body)?.0,
        false => vec![whole],
    };
    if items.iter().any(|item| item.get().len() > MAX_RECORD_BYTES) {
        let kibibytes = MAX_RECORD_BYTES / 1024;
        return Err(Error::field(
            "body",
            format!("a record may have at most {kibibytes} KiB; split it"),
        ));
    }
    Ok(items
        .into_iter()
        .map(|item| Record::on_one_line(item.get()))
        .collect())
}

/// The period of the records.
#[derive(Deserialize, JsonSchema)]
pub struct BetweenQuery {
    /// Only records received at this time or later.
    from: Option<Timestamp>,
    /// Only records received before this time.
    to: Option<Timestamp>,
}

impl From<BetweenQuery> for Between {
    fn from(query: BetweenQuery) -> Self {
        Self {
            from: query.from,
            to: query.to,
        }
    }
}

/// One page of a hub's records, and their total number. Records may be large, so a page is bounded
/// in bytes, and so are the pages that are read at a time.
async fn read<R: From<StoredRecord>>(
    ingest: &Ingest,
    list: List<'_>,
    slice: Slice,
) -> Result<(Vec<R>, i64)> {
    let mut conn = ingest.core.db.read().await?;
    hubs::require_past_or_present(&mut conn, list.scope, list.hub_uuid).await?;
    let bytes = list.page_bytes(&mut conn, slice).await?;
    if bytes > MAX_PAGE_BYTES {
        let mebibytes = MAX_PAGE_BYTES / (1024 * 1024);
        let message = format!(
            "the records of this page have more than {mebibytes} MiB; ask for fewer at a time"
        );
        return Err(Error::field("size", message));
    }
    let holder = Holder {
        group: list.scope.tenant_uuid().0,
        member: None,
    };
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let _held = hold_answer(&ingest.core, holder, 2 * bytes)?;
    let (records, total) = list.page(&mut conn, slice).await?;
    Ok((records.into_iter().map(R::from).collect(), total))
}

async fn list_logs(
    auth: Authorized<perm::HubsRead>,
    State(ingest): State<Ingest>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
    page: Page,
    Query(query): Query<BetweenQuery>,
) -> Result<Listed<HubLogResponse>> {
    let (scope, between, direction) = (&auth.scope, query.into(), Direction::Descending);
    let list = List {
        table: Table::Logs,
        scope,
        hub_uuid,
        between,
        direction,
    };
    let (records, total) = read(&ingest, list, page.slice()).await?;
    Ok(page.listed(records, total))
}

async fn list_telemetry(
    auth: Authorized<perm::HubsRead>,
    State(ingest): State<Ingest>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
    page: Page,
    Query(query): Query<BetweenQuery>,
) -> Result<Listed<HubTelemetryResponse>> {
    let (scope, between, direction) = (&auth.scope, query.into(), Direction::Descending);
    let list = List {
        table: Table::Telemetry,
        scope,
        hub_uuid,
        between,
        direction,
    };
    let (records, total) = read(&ingest, list, page.slice()).await?;
    Ok(page.listed(records, total))
}

async fn page_logs(
    auth: Authorized<perm::HubsRead>,
    State(ingest): State<Ingest>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
    page: Pageable,
    Query(query): Query<BetweenQuery>,
) -> Result<Answer<PageOf<HubLogResponse>>> {
    let direction = page.direction("receivedAt", Direction::Descending)?;
    let list = List {
        table: Table::Logs,
        scope: &auth.scope,
        hub_uuid,
        between: query.into(),
        direction,
    };
    let (records, total) = read(&ingest, list, page.slice()).await?;
    Ok(Answer(page.page_of(records, total)))
}

async fn page_telemetry(
    auth: Authorized<perm::HubsRead>,
    State(ingest): State<Ingest>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
    page: Pageable,
    Query(query): Query<BetweenQuery>,
) -> Result<Answer<PageOf<HubTelemetryResponse>>> {
    let direction = page.direction("receivedAt", Direction::Descending)?;
    let list = List {
        table: Table::Telemetry,
        scope: &auth.scope,
        hub_uuid,
        between: query.into(),
        direction,
    };
    let (records, total) = read(&ingest, list, page.slice()).await?;
    Ok(Answer(page.page_of(records, total)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_telemetry_updates_the_agent_version() {
        let now: Timestamp = "2026-01-31T08:00:00Z".parse().expect("a time");
        for (record, expected) in [
            (r#"{"agentVersion": "1.4.2"}"#, Some("1.4.2")),
            (
                r#" {"agentVersion": "1.4.2", "observedAt": "2026-01-31T07:59:00Z", "load": 1}"#,
                Some("1.4.2"),
            ),
            (
                r#"{"agentVersion": "1.4.2", "observedAt": "2026-01-31T07:50:00Z"}"#,
                None,
            ),
            (r#"{"agentVersion": "1.4.2", "observedAt": 5}"#, None),
            (r#"{"agentVersion": "a fine one"}"#, None),
            (r#"{"agentVersion": 7}"#, None),
            (r#"["1.4.2", null]"#, None),
            ("7", None),
        ] {
            let agent = reported_agent(record, now);
            assert_eq!(agent.version.as_deref(), expected, "{record}");
        }
        let booted = |boot_id: &str| {
            let record = format!(r#"{{"agentVersion": "1.4.2", "bootId": "{boot_id}"}}"#);
            reported_agent(&record, now).boot_id
        };
        assert_eq!(booted("6f2a-1").as_deref(), Some("6f2a-1"));
        assert_eq!(
            booted("").or(booted("a b")).or(booted(&"x".repeat(65))),
            None
        );
    }
}
