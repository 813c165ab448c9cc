//! SQL of versions of device models.

use hub_base::db::{Conn, Slice, Sql, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

/// A version of a device model.
#[derive(Clone, Debug, PartialEq, sqlx::FromRow, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeviceVersionResponse")]
pub struct VersionRow {
    /// The version.
    pub device_version_uuid: Uuid,
    /// The model.
    pub device_uuid: Uuid,
    /// Its name, unique within the model.
    pub version: String,
    /// The hardware of it.
    pub hardware_version: Option<String>,
    /// The firmware of it.
    pub firmware_version: Option<String>,
    /// The protocol that reads it; null for the newest of the model.
    #[schemars(range(min = 1))]
    pub device_protocol_id: Option<i64>,
    /// Free-text notes.
    pub notes: Option<String>,
    /// Whether it is on sale.
    pub released: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

const COLUMNS: &str = "device_version_uuid, device_uuid, version, hardware_version, \
    firmware_version, device_protocol_id, notes, released, created_at, updated_at";

pub async fn insert(tx: &mut Tx, scope: &Scope, row: &VersionRow) -> Result<()> {
    sql(
        "INSERT INTO device_versions (device_version_uuid, tenant_uuid, device_uuid, version, \
         hardware_version, firmware_version, device_protocol_id, notes, released, created_at, \
         updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind((
        row.device_version_uuid,
        scope.tenant_uuid(),
        row.device_uuid,
        row.version.as_str(),
        row.hardware_version.as_deref(),
        row.firmware_version.as_deref(),
        row.device_protocol_id,
        row.notes.as_deref(),
        row.released,
        row.created_at,
        row.updated_at,
    ))
    .run(tx)
    .await
}

pub async fn update(tx: &mut Tx, scope: &Scope, row: &VersionRow) -> Result<()> {
    sql(
        "UPDATE device_versions SET version = $3, hardware_version = $4, firmware_version = $5, \
         device_protocol_id = $6, notes = $7, released = $8, updated_at = $9 \
         WHERE device_version_uuid = $1 AND tenant_uuid = $2",
    )
    .bind((
        row.device_version_uuid,
        scope.tenant_uuid(),
        row.version.as_str(),
        row.hardware_version.as_deref(),
        row.firmware_version.as_deref(),
        row.device_protocol_id,
        row.notes.as_deref(),
        row.released,
        row.updated_at,
    ))
    .run(tx)
    .await
}

pub async fn get(
    conn: &mut Conn,
    scope: &Scope,
    device_version_uuid: Uuid,
) -> Result<Option<VersionRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM device_versions WHERE device_version_uuid = $1 AND tenant_uuid = $2")
        .bind((device_version_uuid, scope.tenant_uuid()))
        .optional(conn)
        .await
}

/// The model's version of this name.
pub async fn named(
    conn: &mut Conn,
    scope: &Scope,
    device_uuid: Uuid,
    version: &str,
) -> Result<Option<Uuid>> {
    sql("SELECT device_version_uuid FROM device_versions \
         WHERE device_uuid = $1 AND version = $2 AND tenant_uuid = $3")
    .bind((device_uuid, version, scope.tenant_uuid()))
    .optional_scalar(conn)
    .await
}

/// Names of versions that are read by the protocol; at most `limit`.
pub async fn names_with_protocol(
    conn: &mut Conn,
    scope: &Scope,
    id: i64,
    limit: i64,
) -> Result<Vec<String>> {
    sql(
        "SELECT version FROM device_versions WHERE device_protocol_id = $1 AND tenant_uuid = $2 \
         ORDER BY version LIMIT $3",
    )
    .bind((id, scope.tenant_uuid(), limit))
    .scalars(conn)
    .await
}

/// The number of devices of the version.
pub async fn instances(conn: &mut Conn, scope: &Scope, device_version_uuid: Uuid) -> Result<i64> {
    sql("SELECT COUNT(*) FROM device_instances \
         WHERE device_version_uuid = $1 AND tenant_uuid = $2")
    .bind((device_version_uuid, scope.tenant_uuid()))
    .scalar(conn)
    .await
}

/// One page, newest first, and the total number.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    device_uuid: Option<Uuid>,
    slice: Slice,
) -> Result<(Vec<VersionRow>, i64)> {
    let all = of_tenant(scope, device_uuid);
    all.page(
        conn,
        COLUMNS,
        &["created_at DESC, device_version_uuid DESC"],
        slice,
    )
    .await
}

fn of_tenant(scope: &Scope, device_uuid: Option<Uuid>) -> Sql {
    let all = sql("FROM device_versions WHERE tenant_uuid = $1").bind(scope.tenant_uuid());
    match device_uuid {
        Some(device_uuid) => all.push(" AND device_uuid = ").push_bind(device_uuid),
        None => all,
    }
}

pub async fn delete(tx: &mut Tx, scope: &Scope, device_version_uuid: Uuid) -> Result<()> {
    sql("DELETE FROM device_versions WHERE device_version_uuid = $1 AND tenant_uuid = $2")
        .bind((device_version_uuid, scope.tenant_uuid()))
        .run(tx)
        .await
}

/// How many devices of a model have each firmware: that of their version, or else the name of it.
pub async fn devices_by_firmware(
    conn: &mut Conn,
    scope: &Scope,
    device_uuid: Uuid,
) -> Result<Vec<(Option<String>, i64)>> {
    sql("SELECT found.firmware, COUNT(*) AS devices FROM \
         (SELECT COALESCE(v.firmware_version, v.version) AS firmware FROM device_instances i \
         LEFT JOIN device_versions v ON v.device_version_uuid = i.device_version_uuid \
         WHERE i.tenant_uuid = $1 AND i.device_uuid = $2 AND i.retired_at IS NULL) AS found \
         GROUP BY found.firmware")
    .bind((scope.tenant_uuid(), device_uuid))
    .all(conn)
    .await
}
