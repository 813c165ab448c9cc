//! Where the tables of a cluster are: those below on its workers, all others on the coordinator.

/// The tables that are distributed by `tenant_uuid`. Those of a tenant are on the same worker; the
/// first decides on which.
pub const DISTRIBUTED: [&str; 16] = [
    "upload_clocks",
    "upload_keys",
    "upload_shares",
    "stored_bytes",
    "hub_contacts",
    "ble_batches",
    "ble_device_hours",
    "ble_batch_repeats",
    "hub_logs",
    "hub_telemetry",
    "device_states",
    "unknown_advertisers",
    "sensor_rollups",
    "sensor_rollup_cursors",
    "ble_minutes",
    "ble_minute_cursors",
];
