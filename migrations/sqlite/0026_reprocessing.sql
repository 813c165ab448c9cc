-- Stored BLE events that are read again. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- When the event was last read again, if that changed what was read from it.
ALTER TABLE ble_events ADD COLUMN reprocessed_at TEXT;

-- A run reads the events of a tenant with ids from from_id up to, and without, to_id; those below next_id are done. cause is OPERATOR or BIND_KEY: the latter reads what is stored of one device and could not be read. It succeeded if it has finished without an error.
CREATE TABLE ble_reprocess_runs (
    task_uuid BLOB PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    cause TEXT NOT NULL,
    from_id INTEGER NOT NULL,
    to_id INTEGER NOT NULL,
    device_uuid BLOB,
    device_instance_id INTEGER,
    next_id INTEGER NOT NULL,
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
CREATE INDEX ble_reprocess_runs_unfinished ON ble_reprocess_runs (tenant_uuid, created_at, task_uuid) WHERE finished_at IS NULL;
CREATE UNIQUE INDEX ble_reprocess_runs_one ON ble_reprocess_runs (tenant_uuid) WHERE finished_at IS NULL AND cause = 'OPERATOR';

-- Hours of devices whose rollups have to be made anew: a run has changed events of theirs, with these ids.
CREATE TABLE ble_reprocess_hours (
    task_uuid BLOB NOT NULL REFERENCES ble_reprocess_runs (task_uuid) ON DELETE CASCADE,
    device_instance_id INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    PRIMARY KEY (task_uuid, device_instance_id, hour)
) STRICT, WITHOUT ROWID;
