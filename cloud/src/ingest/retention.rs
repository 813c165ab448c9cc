//! Which records of the log are old, for each tenant.

use hub_protocol::TenantUuid;
use uuid::Uuid;

use super::Kind;
use crate::db::aged::AgedLog;
use crate::db::{Conn, sql};
use crate::error::Result;

const BLE_EVENTS: AgedLog = AgedLog {
    table: "ble_events",
    id: "ble_event_id",
    bytes: "octet_length(event) + COALESCE(octet_length(reading), 0)",
    only_if: None,
};
const LOGS: AgedLog = AgedLog { table: "hub_logs", id: "hub_log_id", bytes: "octet_length(body)", only_if: None };
const TELEMETRY: AgedLog =
    AgedLog { table: "hub_telemetry", id: "hub_telemetry_id", bytes: "octet_length(body)", only_if: None };

/// The table of a kind; none of a kind that another subject stores.
pub const fn log_of(kind: Kind) -> Option<AgedLog> {
    match kind {
        Kind::BleEvents => Some(BLE_EVENTS),
        Kind::Logs => Some(LOGS),
        Kind::Telemetry => Some(TELEMETRY),
        Kind::JobEvents => None,
    }
}

/// A tenant, and the oldest of its records of a kind.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct Holder {
    pub tenant_uuid: TenantUuid,
    pub oldest_id: Option<i64>,
    /// The tenant's own retention, where it has one.
    pub retention_days: Option<i64>,
}

/// Up to `limit` tenants after `after`, deleted ones included, each with its oldest record in the
/// table.
pub async fn holders(conn: &mut Conn, kind: Kind, log: AgedLog, after: Uuid, limit: i64) -> Result<Vec<Holder>> {
    let own = match kind {
        Kind::BleEvents => "tenants.ble_retention_days",
        Kind::Logs => "tenants.log_retention_days",
        Kind::Telemetry => "tenants.telemetry_retention_days",
        Kind::JobEvents => "tenants.job_event_retention_days",
    };
    sql("SELECT tenants.tenant_uuid, (SELECT MIN(")
        .push(log.id)
        .push(") FROM ")
        .push(log.table)
        .push(" AS log WHERE log.tenant_uuid = tenants.tenant_uuid) AS oldest_id, ")
        .push(own)
        .push(" AS retention_days FROM tenants WHERE tenants.tenant_uuid > ")
        .push_bind(after)
        .push(" ORDER BY tenants.tenant_uuid LIMIT ")
        .push_bind(limit)
        .all(conn)
        .await
}
