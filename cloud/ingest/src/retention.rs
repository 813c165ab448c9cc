//! Which records of the log are old, for each tenant.

use hub_base::db::aged::{AgedLog, Batch};
use hub_base::db::months::Month;
use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use super::{Kind, batches};

pub const BLE_EVENTS: AgedLog = AgedLog {
    table: "ble_batches",
    id: "first_id",
    last_id: "last_id",
    bytes: "bytes",
    only_if: None,
};
const LOGS: AgedLog = AgedLog {
    table: "hub_logs",
    id: "hub_log_id",
    last_id: "hub_log_id",
    bytes: "octet_length(body)",
    only_if: None,
};
const TELEMETRY: AgedLog = AgedLog {
    table: "hub_telemetry",
    id: "hub_telemetry_id",
    last_id: "hub_telemetry_id",
    bytes: "octet_length(body)",
    only_if: None,
};

/// The table of a kind; none of a kind that another subject stores.
pub const fn log_of(kind: Kind) -> Option<AgedLog> {
    match kind {
        Kind::BleEvents => Some(BLE_EVENTS),
        Kind::Logs => Some(LOGS),
        Kind::Telemetry => Some(TELEMETRY),
        Kind::JobEvents => None,
    }
}

/// The tables of a log that are partitioned by the month.
pub fn tables_of(kind: Kind, log: AgedLog) -> Vec<&'static str> {
    match kind {
        Kind::BleEvents => vec![log.table, "ble_device_hours", "ble_batch_repeats"],
        Kind::Logs | Kind::Telemetry | Kind::JobEvents => vec![log.table],
    }
}

/// A tenant, and the oldest of its records of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    pub tenant_uuid: TenantUuid,
    pub oldest_id: Option<i64>,
    /// The tenant's own retention, where it has one.
    pub retention_days: Option<i64>,
}

/// Up to `limit` tenants after `after`, deleted ones included, each with its oldest record in the
/// table.
pub async fn holders(
    conn: &mut Conn,
    kind: Kind,
    log: AgedLog,
    after: Uuid,
    limit: i64,
) -> Result<Vec<Holder>> {
    let own = match kind {
        Kind::BleEvents => "tenants.ble_retention_days",
        Kind::Logs => "tenants.log_retention_days",
        Kind::Telemetry => "tenants.telemetry_retention_days",
        Kind::JobEvents => "tenants.job_event_retention_days",
    };
    // Rows whose events are in files are no records any more.
    let closed_to = match kind {
        Kind::BleEvents => {
            "COALESCE((SELECT closed_to FROM ble_history \
             WHERE ble_history.tenant_uuid = tenants.tenant_uuid), -1)"
        }
        Kind::Logs | Kind::Telemetry | Kind::JobEvents => "CAST(-1 AS BIGINT)",
    };
    let tenants: Vec<(TenantUuid, Option<i64>, i64)> = sql("SELECT tenants.tenant_uuid, ")
        .push(own)
        .push(", ")
        .push(closed_to)
        .push(" FROM tenants WHERE tenants.tenant_uuid > ")
        .push_bind(after)
        .push(" ORDER BY tenants.tenant_uuid LIMIT ")
        .push_bind(limit)
        .all(conn)
        .await?;
    // A statement for each: the records of a tenant may be on a server of their own.
    let mut holders = Vec::with_capacity(tenants.len());
    for (tenant_uuid, retention_days, closed_to) in tenants {
        let oldest_id = sql("SELECT MIN(")
            .push(log.id)
            .push(") FROM ")
            .push(log.table)
            .push(" WHERE tenant_uuid = $1 AND ")
            .push(log.id)
            .push(" > $2")
            .bind((tenant_uuid, closed_to))
            .scalar(conn)
            .await?;
        holders.push(Holder {
            tenant_uuid,
            oldest_id,
            retention_days,
        });
    }
    Ok(holders)
}

/// Deletes a measured batch of a tenant's records that were received before `before`. Returns false
/// if it is not what was measured, because somebody else is at it: then the transaction must not be
/// committed.
pub async fn delete(
    tx: &mut Tx,
    kind: Kind,
    log: AgedLog,
    tenant_uuid: TenantUuid,
    batch: Batch,
    before: Timestamp,
) -> Result<bool> {
    if let (Kind::BleEvents, Some(first_id), Some(last_id)) = (kind, batch.first_id, batch.last_id)
    {
        batches::forget(tx, tenant_uuid, None, true, (first_id, last_id)).await?;
    }
    log.delete(tx, tenant_uuid, batch, before).await
}

/// Measures the oldest records of a hub in a log that were received from `from` on and before
/// `before`, up to `limit`, all of one month.
pub async fn oldest_of_hub(
    conn: &mut Conn,
    log: AgedLog,
    tenant_uuid: TenantUuid,
    hub_uuid: HubUuid,
    (from, before): (Timestamp, Timestamp),
    limit: i64,
) -> Result<Batch> {
    let first: Option<i64> = sql("SELECT ")
        .push(log.id)
        .push(" FROM ")
        .push(log.table)
        .push(" WHERE tenant_uuid = $1 AND hub_uuid = $2 AND ")
        .bind((tenant_uuid, hub_uuid))
        .push(log.id)
        .push(" >= ")
        .push_bind(from.as_micros())
        .push(" AND ")
        .push(log.id)
        .push(" < ")
        .push_bind(before.as_micros())
        .push(" ORDER BY ")
        .push(log.id)
        .push(" LIMIT 1")
        .optional_scalar(conn)
        .await?;
    let Some(first_id) = first else {
        return Ok(Batch {
            row_count: 0,
            records: 0,
            bytes: 0,
            first_id: None,
            last_id: None,
        });
    };
    let end_id = before
        .as_micros()
        .min(Month::of(Timestamp::from_micros(first_id)).end_micros());
    let statement = log
        .begin_measure()
        .push("FROM ")
        .push(log.table)
        .push(" WHERE tenant_uuid = ")
        .push_bind(tenant_uuid)
        .push(" AND hub_uuid = ")
        .push_bind(hub_uuid)
        .push(" AND ")
        .push(log.id)
        .push(" >= ")
        .push_bind(first_id)
        .push(" AND ")
        .push(log.id)
        .push(" < ")
        .push_bind(end_id);
    log.end_measure(statement, limit).one(conn).await
}

/// Deletes a measured batch. Returns false if it is not what was measured, because somebody else
/// is at it: then the transaction must not be committed.
pub async fn delete_of_hub(
    tx: &mut Tx,
    log: AgedLog,
    tenant_uuid: TenantUuid,
    hub_uuid: HubUuid,
    batch: Batch,
) -> Result<bool> {
    let (Some(first_id), Some(last_id)) = (batch.first_id, batch.last_id) else {
        return Ok(false);
    };
    if log.table == BLE_EVENTS.table {
        batches::forget(tx, tenant_uuid, Some(hub_uuid), true, (first_id, last_id)).await?;
    }
    let deleted = sql("DELETE FROM ")
        .push(log.table)
        .push(" WHERE tenant_uuid = $1 AND hub_uuid = $2 AND ")
        .bind((tenant_uuid, hub_uuid))
        .push(log.id)
        .push(" >= ")
        .push_bind(first_id)
        .push(" AND ")
        .push(log.id)
        .push(" <= ")
        .push_bind(last_id)
        .execute(tx)
        .await?;
    Ok(deleted == batch.row_count.unsigned_abs())
}
