//! What a tenant may use, where that differs from the service's defaults. Each limit is enforced by
//! the subject whose table grows.

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::http::check::Check;
use hub_identity::authn::user::User;
use hub_protocol::TenantUuid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits_store as store;

/// The most API keys of a tenant, and its default limit. The list is not paginated.
pub const MAX_API_KEYS: i64 = 200;

const MAX_UPLOADS_PER_MINUTE: i64 = 1_000_000;
const MAX_BYTES: i64 = 1 << 50;
const MAX_HUBS: i64 = 10_000_000;
const MAX_STREAMS: i64 = 100_000;
const MAX_RETENTION_DAYS: i64 = 3650;

/// The limits of a tenant. A limit that is absent or null is the service's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantLimits {
    /// Uploads a minute, for each kind of record.
    #[schemars(range(min = 1, max = MAX_UPLOADS_PER_MINUTE))]
    pub uploads_per_minute: Option<i64>,
    /// Bytes of stored records.
    #[schemars(range(min = 1, max = MAX_BYTES))]
    pub stored_bytes: Option<i64>,
    /// Bytes of records uploaded in a day (UTC).
    #[schemars(range(min = 1, max = MAX_BYTES))]
    pub bytes_per_day: Option<i64>,
    /// The most hubs.
    #[schemars(range(min = 0, max = MAX_HUBS))]
    pub hubs: Option<i64>,
    /// Streams at a time.
    #[schemars(range(min = 0, max = MAX_STREAMS))]
    pub streams: Option<i64>,
    /// The most API keys in force.
    #[schemars(range(min = 0, max = MAX_API_KEYS))]
    pub api_keys: Option<i64>,
    /// The retention of records.
    #[serde(default)]
    pub retention_days: RetentionDays,
}

/// The days for which records of each kind are kept. An absent or null member stands for the
/// service's default, which is also the maximum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetentionDays {
    /// BLE events.
    #[schemars(range(min = 1, max = MAX_RETENTION_DAYS))]
    pub ble_events: Option<i64>,
    /// Telemetry.
    #[schemars(range(min = 1, max = MAX_RETENTION_DAYS))]
    pub telemetry: Option<i64>,
    /// Logs of hubs.
    #[schemars(range(min = 1, max = MAX_RETENTION_DAYS))]
    pub logs: Option<i64>,
    /// Events of jobs.
    #[schemars(range(min = 1, max = MAX_RETENTION_DAYS))]
    pub job_events: Option<i64>,
    /// Deliveries of pipelines.
    #[schemars(range(min = 1, max = MAX_RETENTION_DAYS))]
    pub deliveries: Option<i64>,
    /// The audit log.
    #[schemars(range(min = 1, max = MAX_RETENTION_DAYS))]
    pub audit: Option<i64>,
}

impl TenantLimits {
    fn checked(self) -> Result<Self> {
        let days = &self.retention_days;
        let mut check = Check::new();
        for (field, value, min, max) in [
            (
                "uploadsPerMinute",
                self.uploads_per_minute,
                1,
                MAX_UPLOADS_PER_MINUTE,
            ),
            ("storedBytes", self.stored_bytes, 1, MAX_BYTES),
            ("bytesPerDay", self.bytes_per_day, 1, MAX_BYTES),
            ("hubs", self.hubs, 0, MAX_HUBS),
            ("streams", self.streams, 0, MAX_STREAMS),
            ("apiKeys", self.api_keys, 0, MAX_API_KEYS),
            (
                "retentionDays.bleEvents",
                days.ble_events,
                1,
                MAX_RETENTION_DAYS,
            ),
            (
                "retentionDays.telemetry",
                days.telemetry,
                1,
                MAX_RETENTION_DAYS,
            ),
            ("retentionDays.logs", days.logs, 1, MAX_RETENTION_DAYS),
            (
                "retentionDays.jobEvents",
                days.job_events,
                1,
                MAX_RETENTION_DAYS,
            ),
            (
                "retentionDays.deliveries",
                days.deliveries,
                1,
                MAX_RETENTION_DAYS,
            ),
            ("retentionDays.audit", days.audit, 1, MAX_RETENTION_DAYS),
        ] {
            let is_within = value.is_none_or(|value| (min..=max).contains(&value));
            check.that(
                is_within,
                field,
                format!("must be {min} to {max}, or absent for the service's default"),
            );
        }
        check.done()?;
        Ok(self)
    }
}

/// Replaces all limits of the tenant.
pub async fn replace(
    core: &Core,
    admin: &User,
    tenant_uuid: TenantUuid,
    limits: TenantLimits,
) -> Result<TenantLimits> {
    let limits = limits.checked()?;
    let mut tx = core.db.begin().await?;
    let before = store::lock(&mut tx, tenant_uuid)
        .await?
        .ok_or_else(|| Error::not_found("tenant"))?;
    if before == limits {
        return Ok(limits);
    }
    store::set(&mut tx, tenant_uuid, &limits).await?;
    let audit = Audit::new(admin, "tenant.set_limits", tenant_uuid, core.clock.now())
        .in_tenant(tenant_uuid);
    let state = |limits: &TenantLimits| serde_json::to_value(limits).ok();
    tx.commit(audit.changed(state(&before), state(&limits)))
        .await?;
    Ok(limits)
}

/// The most API keys of the tenant. Its row is locked until the transaction ends.
pub async fn api_keys(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<i64> {
    let limits = store::lock(tx, tenant_uuid).await?;
    Ok(limits
        .and_then(|limits| limits.api_keys)
        .unwrap_or(MAX_API_KEYS))
}

/// The tenant's own retention of deliveries, if it has one.
pub async fn delivery_retention_days(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
) -> Result<Option<i64>> {
    let limits = store::get(conn, tenant_uuid).await?;
    Ok(limits.and_then(|limits| limits.retention_days.deliveries))
}

/// The most hubs of the tenant.
pub async fn hubs(core: &Core, conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<i64> {
    let limits = store::get(conn, tenant_uuid).await?;
    Ok(limits
        .and_then(|limits| limits.hubs)
        .unwrap_or(core.config.hubs_per_tenant))
}
