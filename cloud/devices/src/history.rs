//! `/tenant/history/**`: where the closed part of a tenant's log is, for software that reads its
//! files as they are.

use std::time::Duration;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::extract::Query;
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, permission as perm};
use hub_ingest::history::{self, FileRow};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Parts;

/// How long the URL of a file is valid.
const URL_VALID: Duration = Duration::from_secs(900);

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/history",
            get_with(
                get,
                operation(
                    "history.get",
                    "tenant-ble",
                    "Where older BLE events are, as Parquet files",
                ),
            ),
        )
        .api_route(
            "/tenant/history/files",
            get_with(
                files,
                operation(
                    "history.files",
                    "tenant-ble",
                    "List the Parquet files with older BLE events, oldest first",
                ),
            ),
        )
}

/// The closed part of the log: BLE events that are in Parquet files. All endpoints read them too.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryResponse {
    /// How long after its end a day (UTC) moves to files, in seconds; null when days stay in the
    /// database.
    #[schemars(range(min = 0))]
    after_secs: Option<i64>,
    /// The folder of the files. `s3://BUCKET/PREFIX`, or a path below the directory of the
    /// setting `files`.
    location: String,
    /// Events received before this time are in files; null when none are.
    closed_to: Option<Timestamp>,
    /// How many files there are.
    #[schemars(range(min = 0))]
    files: i64,
    /// Events in all files.
    #[schemars(range(min = 0))]
    events: i64,
    /// Bytes of all files.
    #[schemars(range(min = 0))]
    file_bytes: i64,
}

/// A Parquet file. It is never changed: when its events are reprocessed or deleted, another one
/// takes its place.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryFileResponse {
    /// The name of the file, new with each change.
    name: Uuid,
    /// Where the file is below the store's prefix, or below the directory of the setting `files`.
    path: String,
    /// The file has the events received from this time on,
    from: Timestamp,
    /// up to this one, included.
    to: Timestamp,
    /// Events in the file.
    #[schemars(range(min = 0))]
    events: i64,
    /// Bytes of the file.
    #[schemars(range(min = 0))]
    file_bytes: i64,
    /// SHA-256 of the file, in hexadecimal.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    sha256: String,
    /// A URL to read the file with, valid for 15 minutes; null where the store has none.
    url: Option<String>,
}

/// The files of a period.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilesQuery {
    /// Files with events received at this time or later.
    from: Option<Timestamp>,
    /// Files with events received before this time.
    to: Option<Timestamp>,
}

async fn get(
    auth: Authorized<perm::BleRead>,
    State(core): State<Core>,
) -> Result<Answer<HistoryResponse>> {
    let tenant_uuid = auth.scope.tenant_uuid();
    let mut conn = core.db.read().await?;
    let size = history::size(&mut conn, tenant_uuid).await?;
    let open_from = history::first_open(&mut conn, tenant_uuid).await?;
    let after = core.config.history_after;
    Ok(Answer(HistoryResponse {
        after_secs: after.and_then(|after| i64::try_from(after.as_secs()).ok()),
        location: core.event_log.history.location(tenant_uuid),
        closed_to: (open_from.as_micros() > 0).then_some(open_from),
        files: size.files,
        events: size.events,
        file_bytes: size.file_bytes,
    }))
}

async fn files(
    auth: Authorized<perm::BleRead>,
    State(core): State<Core>,
    page: Page,
    Query(query): Query<FilesQuery>,
) -> Result<Listed<HistoryFileResponse>> {
    let (tenant_uuid, slice) = (auth.scope.tenant_uuid(), page.slice());
    let first_id = query.from.map_or(0, Timestamp::as_micros);
    let last_id = query.to.map_or(i64::MAX, Timestamp::as_micros);
    let ids = (first_id, last_id.saturating_sub(1));
    let mut conn = core.db.read().await?;
    let (rows, total) = history::files_page(&mut conn, tenant_uuid, ids, slice).await?;
    drop(conn);
    let mut files = Vec::with_capacity(rows.len());
    for row in rows {
        files.push(response(&core, row).await?);
    }
    Ok(page.listed(files, total))
}

async fn response(core: &Core, row: FileRow) -> Result<HistoryFileResponse> {
    let file = row.file();
    let url = core.event_log.history.url(&file, URL_VALID).await;
    Ok(HistoryFileResponse {
        name: row.name,
        path: file.path(),
        from: Timestamp::from_micros(row.first_id),
        to: Timestamp::from_micros(row.last_id),
        events: row.events,
        file_bytes: row.file_bytes,
        sha256: hex::encode(&row.sha256),
        url: url.map_err(Error::internal)?,
    })
}
