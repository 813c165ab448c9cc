-- Devices of a tenant, what was last heard of them, and when they were activated. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- labels and calibration are JSON objects. beacon is a normalised text. search_text is name, address and serial number in lower case, a line each.
CREATE TABLE device_instances (
    device_instance_id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    device_uuid BLOB NOT NULL REFERENCES device_models (device_uuid),
    device_version_uuid BLOB REFERENCES device_versions (device_version_uuid),
    name TEXT,
    address TEXT,
    address_type TEXT,
    beacon TEXT,
    serial_number TEXT,
    labels TEXT NOT NULL,
    calibration TEXT NOT NULL,
    activation_status TEXT NOT NULL,
    sealed_bind_key BLOB,
    bind_key_status TEXT NOT NULL,
    sealed_identity_resolving_key BLOB,
    identity_resolving_key_hash BLOB,
    search_text TEXT NOT NULL,
    created_at TEXT NOT NULL,
    activated_at TEXT,
    retired_at TEXT
) STRICT;
-- What identifies a device belongs to one device of its tenant that is not retired.
CREATE UNIQUE INDEX device_instances_beacon ON device_instances (tenant_uuid, beacon) WHERE retired_at IS NULL;
CREATE UNIQUE INDEX device_instances_resolving_key ON device_instances (tenant_uuid, identity_resolving_key_hash) WHERE retired_at IS NULL;
CREATE UNIQUE INDEX device_instances_address ON device_instances (tenant_uuid, address) WHERE retired_at IS NULL;
CREATE INDEX device_instances_tenant ON device_instances (tenant_uuid, device_instance_id);
CREATE INDEX device_instances_status ON device_instances (tenant_uuid, activation_status, device_instance_id);
CREATE INDEX device_instances_device ON device_instances (device_uuid, device_instance_id);
CREATE INDEX device_instances_version ON device_instances (device_version_uuid) WHERE device_version_uuid IS NOT NULL;

-- A row for each device that was heard. interval_secs is the learned time between two of its advertisements. The device is online until online_until. state is a JSON object of its last values.
CREATE TABLE device_states (
    device_instance_id INTEGER PRIMARY KEY REFERENCES device_instances (device_instance_id) ON DELETE CASCADE,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    last_seen_at TEXT,
    last_rssi_dbm INTEGER,
    nearest_hub_uuid BLOB,
    nearest_rssi_dbm INTEGER,
    nearest_since TEXT,
    interval_secs INTEGER,
    online_until TEXT,
    state TEXT NOT NULL
) STRICT;
CREATE INDEX device_states_nearest ON device_states (nearest_hub_uuid) WHERE nearest_hub_uuid IS NOT NULL;
CREATE INDEX device_states_online ON device_states (tenant_uuid, online_until);

-- Outlives the device.
CREATE TABLE activation_events (
    activation_event_id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    hub_uuid BLOB,
    device_instance_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    occurred_at TEXT NOT NULL
) STRICT;
CREATE INDEX activation_events_occurred ON activation_events (occurred_at, activation_event_id);
