-- What hubs upload, and what bounds it.

-- The clock of a tenant and kind of upload. Locking the row makes the order of commits the order of
-- record ids across replicas.
CREATE TABLE upload_clocks (
    tenant_uuid UUID NOT NULL,
    kind TEXT NOT NULL,
    -- The current minute, and its requests.
    minute BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    -- The last record id that was issued, and the last one before that group of uploads.
    last_id BIGINT NOT NULL,
    previous_id BIGINT NOT NULL,
    -- The last minute in which requests were refused for the limit.
    reached_minute BIGINT NOT NULL DEFAULT 0,
    -- The minute whose limit is shared: each hub's share, what is left beyond the shares, and what
    -- is left at all.
    shared_minute BIGINT NOT NULL DEFAULT 0,
    share BIGINT NOT NULL DEFAULT 0,
    share_rest BIGINT NOT NULL DEFAULT 0,
    share_left BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_uuid, kind)
);

-- What a hub has used of its tenant's limit in a minute in which that is shared; of kind DAY_BYTES, the
-- bytes of a day whose first half is used.
CREATE TABLE upload_shares (
    tenant_uuid UUID NOT NULL,
    kind TEXT NOT NULL,
    hub_uuid UUID NOT NULL,
    minute BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    PRIMARY KEY (tenant_uuid, kind, hub_uuid)
);

-- The answer to an upload, for a retry of it. Keys that grow with time, as the agent's do, are next
-- to each other in the primary key: new ones of a tenant touch few pages.
CREATE TABLE upload_keys (
    tenant_uuid UUID NOT NULL,
    hub_uuid UUID NOT NULL,
    kind TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    answer TEXT NOT NULL,
    -- The id of the upload's first record, which tells its age.
    first_id BIGINT NOT NULL,
    PRIMARY KEY (tenant_uuid, idempotency_key, hub_uuid, kind)
);
CREATE INDEX upload_keys_age ON upload_keys (tenant_uuid, first_id);

-- The pace at which the hubs of a tenant upload.
CREATE TABLE upload_paces (
    tenant_uuid UUID PRIMARY KEY REFERENCES tenants (tenant_uuid),
    live_hubs BIGINT NOT NULL,
    -- The places that were assigned to hubs; hubs.upload_slot is a hub's own.
    slots BIGINT NOT NULL,
    -- Between two uploads of a kind, for so many live hubs.
    pause_ms BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    changed_at TIMESTAMPTZ NOT NULL
);

-- What a tenant stores, by kind and by month of receipt (202611 is November 2026).
CREATE TABLE stored_bytes (
    tenant_uuid UUID NOT NULL,
    kind TEXT NOT NULL,
    month BIGINT NOT NULL,
    -- The text of the records, and 128 for each record.
    bytes BIGINT NOT NULL,
    -- What was uploaded on day (days since 1970), also where it is deleted since.
    day BIGINT NOT NULL,
    day_bytes BIGINT NOT NULL,
    PRIMARY KEY (tenant_uuid, kind, month)
);

-- What hubs of a tenant report and what the service keeps, for a tenant that has set it.
CREATE TABLE ble_routes (
    tenant_uuid UUID PRIMARY KEY REFERENCES tenants (tenant_uuid),
    -- A JSON list, in the order in which rules are tried.
    rules TEXT NOT NULL,
    otherwise TEXT NOT NULL,
    -- Whether hubs have to recognise registered devices for it.
    hubs_know_devices BOOLEAN NOT NULL,
    -- Rises with every change.
    revision BIGINT NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);

-- The BLE events of an upload of a hub, or of a part of a large one. Their ids have no gaps.
CREATE TABLE ble_batches (
    tenant_uuid UUID NOT NULL,
    -- The ids of its first and last event. An id is receivedAt in microseconds since 1970: the key,
    -- the order, the time and the stream's cursor.
    first_id BIGINT NOT NULL,
    last_id BIGINT NOT NULL,
    hub_uuid UUID NOT NULL,
    -- Of the texts, before they are compressed.
    bytes BIGINT NOT NULL,
    -- A bit for each processing status that an event of it has.
    statuses BIGINT NOT NULL,
    -- What is known of each event beside its texts, and how long these are (a version, then binary).
    heads BYTEA NOT NULL,
    -- The JSON objects as the hub sent them, then those of what was read from them (zstd).
    texts BYTEA NOT NULL,
    PRIMARY KEY (tenant_uuid, first_id)
) PARTITION BY RANGE (first_id);
CREATE INDEX ble_batches_hub ON ble_batches (tenant_uuid, hub_uuid, first_id);
-- They are compressed already.
ALTER TABLE ble_batches ALTER COLUMN heads SET STORAGE EXTERNAL;
ALTER TABLE ble_batches ALTER COLUMN texts SET STORAGE EXTERNAL;
-- The service creates a partition for each month in advance; a row outside of them is stored here.
CREATE TABLE ble_batches_default PARTITION OF ble_batches DEFAULT;

-- The hours in which a hub received events of a device, by the first events of their batches.
CREATE TABLE ble_device_hours (
    tenant_uuid UUID NOT NULL,
    device_instance_id BIGINT NOT NULL,
    -- The lowest id that an event of the hour can have.
    hour_id BIGINT NOT NULL,
    hub_uuid UUID NOT NULL,
    events BIGINT NOT NULL,
    PRIMARY KEY (tenant_uuid, device_instance_id, hour_id, hub_uuid)
) PARTITION BY RANGE (hour_id);
CREATE TABLE ble_device_hours_default PARTITION OF ble_device_hours DEFAULT;

-- The batches with later receptions of frames whose first receptions are in the batch observed_in.
CREATE TABLE ble_batch_repeats (
    tenant_uuid UUID NOT NULL,
    observed_in BIGINT NOT NULL,
    first_id BIGINT NOT NULL,
    PRIMARY KEY (tenant_uuid, observed_in, first_id)
) PARTITION BY RANGE (observed_in);
CREATE TABLE ble_batch_repeats_default PARTITION OF ble_batch_repeats DEFAULT;

-- How far a tenant's BLE events are in files of the history.
CREATE TABLE ble_history (
    tenant_uuid UUID PRIMARY KEY,
    -- Events up to this id are read from files, whatever rows are left.
    closed_to BIGINT NOT NULL,
    -- Rows up to this id are deleted.
    cleared_to BIGINT NOT NULL,
    closed_at TIMESTAMPTZ NOT NULL
);

-- The files of the history. A file has the events with ids from its first to its last, both
-- included, and no two files of a tenant overlap.
CREATE TABLE ble_history_files (
    tenant_uuid UUID NOT NULL,
    first_id BIGINT NOT NULL,
    last_id BIGINT NOT NULL,
    -- The name in the store, with the first id.
    name UUID NOT NULL,
    events BIGINT NOT NULL,
    -- What the events count as stored.
    bytes BIGINT NOT NULL,
    file_bytes BIGINT NOT NULL,
    sha256 BYTEA NOT NULL,
    -- The store's name of this version of the file.
    e_tag TEXT,
    PRIMARY KEY (tenant_uuid, first_id)
);

-- The files with events of a hub, and how many.
CREATE TABLE ble_history_hubs (
    tenant_uuid UUID NOT NULL,
    hub_uuid UUID NOT NULL,
    first_id BIGINT NOT NULL,
    events BIGINT NOT NULL,
    PRIMARY KEY (tenant_uuid, hub_uuid, first_id)
);
CREATE INDEX ble_history_hubs_file ON ble_history_hubs (tenant_uuid, first_id);

-- Files to remove from the store: those that were replaced or deleted, and those that are being
-- written, in case they do not become part of the history.
CREATE TABLE ble_history_removals (
    name UUID PRIMARY KEY,
    tenant_uuid UUID NOT NULL,
    first_id BIGINT NOT NULL,
    due_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX ble_history_removals_due ON ble_history_removals (due_at);

-- A record of a hub's log. Its id is the time of receipt in microseconds since 1970.
CREATE TABLE hub_logs (
    tenant_uuid UUID NOT NULL,
    hub_uuid UUID NOT NULL,
    hub_log_id BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, hub_uuid, hub_log_id)
) PARTITION BY RANGE (hub_log_id);
CREATE INDEX hub_logs_tenant ON hub_logs (tenant_uuid, hub_log_id);
CREATE TABLE hub_logs_default PARTITION OF hub_logs DEFAULT;

-- A report of a hub on itself. Its id is the time of receipt in microseconds since 1970.
CREATE TABLE hub_telemetry (
    tenant_uuid UUID NOT NULL,
    hub_uuid UUID NOT NULL,
    hub_telemetry_id BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, hub_uuid, hub_telemetry_id)
) PARTITION BY RANGE (hub_telemetry_id);
-- Retention reads records by tenant and age.
CREATE INDEX hub_telemetry_tenant ON hub_telemetry (tenant_uuid, hub_telemetry_id);
CREATE TABLE hub_telemetry_default PARTITION OF hub_telemetry DEFAULT;
