-- What the service derives from BLE events: rollups, counts, unknown advertisers, and reading anew.

-- What was heard of a device in an hour.
CREATE TABLE sensor_rollups (
    tenant_uuid BLOB NOT NULL,
    device_instance_id INTEGER NOT NULL,
    -- In seconds since 1970.
    hour INTEGER NOT NULL,
    -- Of the first and the last event of the hour.
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    -- A bit for each minute in which the device was heard.
    minutes INTEGER NOT NULL,
    -- JSON objects.
    quantities TEXT NOT NULL,
    hubs TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, device_instance_id, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX sensor_rollups_age ON sensor_rollups (tenant_uuid, hour);

-- How far a tenant's rollups are: events with ids up to last_id are in them.
CREATE TABLE sensor_rollup_cursors (
    tenant_uuid BLOB PRIMARY KEY,
    last_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How many BLE events a tenant got in a minute (since 1970), and how many of them were decoded.
CREATE TABLE ble_minutes (
    tenant_uuid BLOB NOT NULL,
    minute INTEGER NOT NULL,
    events INTEGER NOT NULL,
    decoded INTEGER NOT NULL,
    PRIMARY KEY (tenant_uuid, minute)
) STRICT, WITHOUT ROWID;
CREATE INDEX ble_minutes_age ON ble_minutes (minute);

-- The first minute of a tenant that is not counted yet.
CREATE TABLE ble_minute_cursors (
    tenant_uuid BLOB PRIMARY KEY,
    counted_to INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- An advertiser of the last 24 hours of which no model is known, or that is not read.
CREATE TABLE unknown_advertisers (
    tenant_uuid BLOB NOT NULL,
    -- The address; of an address that changes, what it advertises.
    key TEXT NOT NULL,
    address TEXT NOT NULL,
    address_type TEXT,
    name TEXT,
    company_id INTEGER,
    -- A JSON list, as hub_uuids is.
    service_uuids TEXT NOT NULL,
    count INTEGER NOT NULL,
    hub_uuids TEXT NOT NULL,
    rssi_max INTEGER,
    first_seen_at TEXT NOT NULL,
    last_seen_at TEXT NOT NULL,
    -- An advertisement as JSON.
    sample TEXT NOT NULL,
    -- The model that it fits, and why that does not read it.
    device_uuid BLOB,
    unread_reason TEXT,
    PRIMARY KEY (tenant_uuid, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX unknown_advertisers_seen ON unknown_advertisers (tenant_uuid, last_seen_at, key);

-- A run that reads stored BLE events anew. It succeeded if it has finished without an error.
CREATE TABLE ble_reprocess_runs (
    task_uuid BLOB PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    -- OPERATOR, BIND_KEY (reads what is stored of one device and could not be read) or SCRIPT_TIME
    -- (reads what failed).
    cause TEXT NOT NULL,
    -- The run reads events with ids from from_id up to, and without, to_id; those below next_id are
    -- done.
    from_id INTEGER NOT NULL,
    to_id INTEGER NOT NULL,
    next_id INTEGER NOT NULL,
    device_uuid BLOB,
    device_instance_id INTEGER,
    events INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    newly_decoded INTEGER NOT NULL,
    no_longer_decoded INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    started_at TEXT,
    finished_at TEXT,
    error TEXT
) STRICT;
CREATE INDEX ble_reprocess_runs_finished ON ble_reprocess_runs (tenant_uuid, finished_at);
CREATE INDEX ble_reprocess_runs_unfinished
    ON ble_reprocess_runs (tenant_uuid, created_at, task_uuid) WHERE finished_at IS NULL;
CREATE UNIQUE INDEX ble_reprocess_runs_one
    ON ble_reprocess_runs (tenant_uuid) WHERE finished_at IS NULL AND cause = 'OPERATOR';

-- An hour of a device whose rollup has to be made anew: a run has changed events of it, with these
-- ids.
CREATE TABLE ble_reprocess_hours (
    task_uuid BLOB NOT NULL REFERENCES ble_reprocess_runs (task_uuid) ON DELETE CASCADE,
    device_instance_id INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    PRIMARY KEY (task_uuid, device_instance_id, hour)
) STRICT, WITHOUT ROWID;
