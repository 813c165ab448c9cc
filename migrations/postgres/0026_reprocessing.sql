-- Stored BLE events that are read again. The SQLite twin of this file has the same tables, columns and indexes.

-- When the event was last read again, if that changed what was read from it.
ALTER TABLE ble_events ADD COLUMN reprocessed_at TIMESTAMPTZ;

-- A run reads the events of a tenant with ids from from_id up to, and without, to_id; those below next_id are done. cause is OPERATOR or BIND_KEY: the latter reads what is stored of one device and could not be read. It succeeded if it has finished without an error.
CREATE TABLE ble_reprocess_runs (
    task_uuid UUID PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    cause TEXT NOT NULL,
    from_id BIGINT NOT NULL,
    to_id BIGINT NOT NULL,
    device_uuid UUID,
    device_instance_id BIGINT,
    next_id BIGINT NOT NULL,
    events BIGINT NOT NULL,
    changed BIGINT NOT NULL,
    newly_decoded BIGINT NOT NULL,
    no_longer_decoded BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    started_at TIMESTAMPTZ,
    finished_at TIMESTAMPTZ,
    error TEXT
);
CREATE INDEX ble_reprocess_runs_finished ON ble_reprocess_runs (tenant_uuid, finished_at);
CREATE INDEX ble_reprocess_runs_unfinished ON ble_reprocess_runs (tenant_uuid, created_at, task_uuid) WHERE finished_at IS NULL;
CREATE UNIQUE INDEX ble_reprocess_runs_one ON ble_reprocess_runs (tenant_uuid) WHERE finished_at IS NULL AND cause = 'OPERATOR';

-- Hours of devices whose rollups have to be made anew: a run has changed events of theirs, with these ids.
CREATE TABLE ble_reprocess_hours (
    task_uuid UUID NOT NULL REFERENCES ble_reprocess_runs (task_uuid) ON DELETE CASCADE,
    device_instance_id BIGINT NOT NULL,
    hour BIGINT NOT NULL,
    first_id BIGINT NOT NULL,
    last_id BIGINT NOT NULL,
    PRIMARY KEY (task_uuid, device_instance_id, hour)
);
