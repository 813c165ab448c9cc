//! SQL of manuals.

use hub_base::db::{Conn, Slice, Sql, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::super::manuals::ManualFormat;

/// A manual of a device model.
#[derive(Clone, Debug, PartialEq, sqlx::FromRow, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeviceManualResponse")]
pub struct ManualRow {
    /// The id of the manual.
    #[schemars(range(min = 1))]
    pub device_manual_id: i64,
    /// The model.
    pub device_uuid: Uuid,
    /// The title.
    pub title: String,
    /// The language of it, such as `pt-BR`.
    pub locale: Option<String>,
    /// The location of its text.
    #[sqlx(try_from = "String")]
    pub format: ManualFormat,
    /// Its text in Markdown; null for a LINK.
    pub content: Option<String>,
    /// The URL of its text; null for MARKDOWN.
    pub url: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

const COLUMNS: &str = "device_manual_id, device_uuid, title, locale, format, content, url, \
    created_at, updated_at";

/// Inserts the manual, under an id of its own.
pub async fn insert(tx: &mut Tx, scope: &Scope, row: &ManualRow) -> Result<ManualRow> {
    sql(
        "INSERT INTO device_manuals (tenant_uuid, device_uuid, title, locale, format, content, \
         url, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING ",
    )
    .push(COLUMNS)
    .bind((
        scope.tenant_uuid(),
        row.device_uuid,
        row.title.as_str(),
        row.locale.as_deref(),
        row.format.name(),
        row.content.as_deref(),
        row.url.as_deref(),
        row.created_at,
        row.updated_at,
    ))
    .one(tx)
    .await
}

pub async fn update(tx: &mut Tx, scope: &Scope, row: &ManualRow) -> Result<()> {
    sql(
        "UPDATE device_manuals SET title = $3, locale = $4, format = $5, content = $6, \
         url = $7, updated_at = $8 WHERE device_manual_id = $1 AND tenant_uuid = $2",
    )
    .bind((
        row.device_manual_id,
        scope.tenant_uuid(),
        row.title.as_str(),
        row.locale.as_deref(),
        row.format.name(),
        row.content.as_deref(),
        row.url.as_deref(),
        row.updated_at,
    ))
    .run(tx)
    .await
}

pub async fn get(
    conn: &mut Conn,
    scope: &Scope,
    device_manual_id: i64,
) -> Result<Option<ManualRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM device_manuals WHERE device_manual_id = $1 AND tenant_uuid = $2")
        .bind((device_manual_id, scope.tenant_uuid()))
        .optional(conn)
        .await
}

/// The newest first.
const ORDER: &[&str] = &["device_manual_id DESC"];

/// The size of one page's documents.
pub async fn page_bytes(
    conn: &mut Conn,
    scope: &Scope,
    device_uuid: Option<Uuid>,
    slice: Slice,
) -> Result<i64> {
    of_tenant(scope, device_uuid)
        .page_bytes(conn, "COALESCE(content, '')", ORDER, slice)
        .await
}

/// One page, newest first, and the total number.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    device_uuid: Option<Uuid>,
    slice: Slice,
) -> Result<(Vec<ManualRow>, i64)> {
    of_tenant(scope, device_uuid)
        .page(conn, COLUMNS, ORDER, slice)
        .await
}

fn of_tenant(scope: &Scope, device_uuid: Option<Uuid>) -> Sql {
    let all = sql("FROM device_manuals WHERE tenant_uuid = $1").bind(scope.tenant_uuid());
    match device_uuid {
        Some(device_uuid) => all.push(" AND device_uuid = ").push_bind(device_uuid),
        None => all,
    }
}

pub async fn delete(tx: &mut Tx, scope: &Scope, device_manual_id: i64) -> Result<()> {
    sql("DELETE FROM device_manuals WHERE device_manual_id = $1 AND tenant_uuid = $2")
        .bind((device_manual_id, scope.tenant_uuid()))
        .run(tx)
        .await
}
