//! How long records are kept, how much a tenant may store, and what is held back of the disk.

use std::time::Duration;

use super::{ConfigError, Settings, lifetime};

/// The database refuses to delete audit entries that are younger.
const LEAST_AUDIT: Duration = Duration::from_secs(24 * 3600);
const DEFAULT_STORED_BYTES: u64 = 100 << 30;
const DEFAULT_BYTES_PER_DAY: u64 = 10 << 30;
pub const DEFAULT_RESERVE_BYTES: u64 = 64 << 20;

/// The retention of records of each kind. A tenant may have a shorter one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionConfig {
    pub ble_events: Duration,
    pub telemetry: Duration,
    pub logs: Duration,
    /// The retention after the end of the job.
    pub job_events: Duration,
    /// The retention after the end of the delivery.
    pub deliveries: Duration,
    pub audit: Duration,
}

/// The quota of a tenant without limits of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaConfig {
    pub stored_bytes_per_tenant: i64,
    /// Bytes in a day (UTC).
    pub bytes_per_day_per_tenant: i64,
}

impl RetentionConfig {
    pub(super) fn load(flags: &Settings, file: &Settings) -> Result<Self, ConfigError> {
        let read = |key: &str, flag: &Option<String>, file: &Option<String>, default: &str| {
            lifetime(key, flag.as_deref(), file.as_deref().unwrap_or(default))
        };
        let audit = read(
            "audit-retention",
            &flags.audit_retention,
            &file.audit_retention,
            "400d",
        )?;
        if audit < LEAST_AUDIT {
            return Err(ConfigError("audit-retention must be 1d or more".into()));
        }
        Ok(Self {
            ble_events: read(
                "ble-retention",
                &flags.ble_retention,
                &file.ble_retention,
                "30d",
            )?,
            telemetry: read(
                "telemetry-retention",
                &flags.telemetry_retention,
                &file.telemetry_retention,
                "90d",
            )?,
            logs: read(
                "log-retention",
                &flags.log_retention,
                &file.log_retention,
                "14d",
            )?,
            job_events: read(
                "job-event-retention",
                &flags.job_event_retention,
                &file.job_event_retention,
                "90d",
            )?,
            deliveries: read(
                "delivery-retention",
                &flags.delivery_retention,
                &file.delivery_retention,
                "7d",
            )?,
            audit,
        })
    }
}

impl QuotaConfig {
    pub(super) fn load(flags: &Settings, file: &Settings) -> Result<Self, ConfigError> {
        let read = |key: &str, value: Option<u64>, default: u64| match i64::try_from(
            value.unwrap_or(default),
        ) {
            Ok(bytes @ 1..) => Ok(bytes),
            _ => Err(ConfigError(format!("{key} must be from 1 to {}", i64::MAX))),
        };
        let stored = flags
            .stored_bytes_per_tenant
            .or(file.stored_bytes_per_tenant);
        let per_day = flags
            .bytes_per_day_per_tenant
            .or(file.bytes_per_day_per_tenant);
        Ok(Self {
            stored_bytes_per_tenant: read("stored-bytes-per-tenant", stored, DEFAULT_STORED_BYTES)?,
            bytes_per_day_per_tenant: read(
                "bytes-per-day-per-tenant",
                per_day,
                DEFAULT_BYTES_PER_DAY,
            )?,
        })
    }
}
