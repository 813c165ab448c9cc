//! SQL of the limits of tenants.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_protocol::TenantUuid;

use super::limits::{RetentionDays, TenantLimits};

#[derive(sqlx::FromRow)]
struct LimitsRow {
    upload_limit_per_minute: Option<i64>,
    stored_bytes_limit: Option<i64>,
    bytes_per_day_limit: Option<i64>,
    hub_limit: Option<i64>,
    stream_limit: Option<i64>,
    api_key_limit: Option<i64>,
    ble_retention_days: Option<i64>,
    telemetry_retention_days: Option<i64>,
    log_retention_days: Option<i64>,
    job_event_retention_days: Option<i64>,
    delivery_retention_days: Option<i64>,
    audit_retention_days: Option<i64>,
}

impl From<LimitsRow> for TenantLimits {
    fn from(row: LimitsRow) -> Self {
        Self {
            uploads_per_minute: row.upload_limit_per_minute,
            stored_bytes: row.stored_bytes_limit,
            bytes_per_day: row.bytes_per_day_limit,
            hubs: row.hub_limit,
            streams: row.stream_limit,
            api_keys: row.api_key_limit,
            retention_days: RetentionDays {
                ble_events: row.ble_retention_days,
                telemetry: row.telemetry_retention_days,
                logs: row.log_retention_days,
                job_events: row.job_event_retention_days,
                deliveries: row.delivery_retention_days,
                audit: row.audit_retention_days,
            },
        }
    }
}

const LIMITS: &str = "SELECT upload_limit_per_minute, stored_bytes_limit, bytes_per_day_limit, \
    hub_limit, stream_limit, api_key_limit, ble_retention_days, telemetry_retention_days, \
    log_retention_days, job_event_retention_days, delivery_retention_days, audit_retention_days \
    FROM tenants WHERE tenant_uuid = $1";

/// The limits; None without such a tenant.
pub async fn get(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Option<TenantLimits>> {
    let row: Option<LimitsRow> = sql(LIMITS).bind(tenant_uuid).optional(conn).await?;
    Ok(row.map(TenantLimits::from))
}

/// As [`get`]; the row is locked until the transaction ends.
pub async fn lock(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<Option<TenantLimits>> {
    let row: Option<LimitsRow> = sql(LIMITS)
        .for_update(tx)
        .bind(tenant_uuid)
        .optional(tx)
        .await?;
    Ok(row.map(TenantLimits::from))
}

pub async fn set(tx: &mut Tx, tenant_uuid: TenantUuid, limits: &TenantLimits) -> Result<()> {
    let days = &limits.retention_days;
    sql(
        "UPDATE tenants SET upload_limit_per_minute = $2, stored_bytes_limit = $3, \
         bytes_per_day_limit = $4, hub_limit = $5, stream_limit = $6, api_key_limit = $7, \
         ble_retention_days = $8, telemetry_retention_days = $9, log_retention_days = $10, \
         job_event_retention_days = $11, delivery_retention_days = $12, \
         audit_retention_days = $13 WHERE tenant_uuid = $1",
    )
    .bind((
        tenant_uuid,
        limits.uploads_per_minute,
        limits.stored_bytes,
        limits.bytes_per_day,
        limits.hubs,
        limits.streams,
        limits.api_keys,
        days.ble_events,
        days.telemetry,
        days.logs,
        days.job_events,
        days.deliveries,
        days.audit,
    ))
    .run(tx)
    .await
}
