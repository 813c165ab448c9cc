-- What hubs upload, and what bounds it.

-- The clock of a tenant and kind of upload. Locking the row makes the order of commits the order of
-- record ids across replicas.
CREATE TABLE upload_clocks (
    tenant_uuid BLOB NOT NULL,
    kind TEXT NOT NULL,
    -- The current minute, and its requests.
    minute INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    -- The last record id that was issued, and the last one before that group of uploads.
    last_id INTEGER NOT NULL,
    previous_id INTEGER NOT NULL,
    -- The last minute in which requests were refused for the limit.
    reached_minute INTEGER NOT NULL DEFAULT 0,
    -- The minute whose limit is shared: each hub's share, what is left beyond the shares, and what
    -- is left at all.
    shared_minute INTEGER NOT NULL DEFAULT 0,
    share INTEGER NOT NULL DEFAULT 0,
    share_rest INTEGER NOT NULL DEFAULT 0,
    share_left INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_uuid, kind)
) STRICT, WITHOUT ROWID;

-- What a hub has used of its tenant's limit in a minute in which that is shared; of kind DAY_BYTES, the
-- bytes of a day whose first half is used.
CREATE TABLE upload_shares (
    tenant_uuid BLOB NOT NULL,
    kind TEXT NOT NULL,
    hub_uuid BLOB NOT NULL,
    minute INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    PRIMARY KEY (tenant_uuid, kind, hub_uuid)
) STRICT, WITHOUT ROWID;

-- The answer to an upload, for a retry of it. Keys that grow with time, as the agent's do, are next
-- to each other in the primary key: new ones of a tenant touch few pages.
CREATE TABLE upload_keys (
    tenant_uuid BLOB NOT NULL,
    hub_uuid BLOB NOT NULL,
    kind TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    answer TEXT NOT NULL,
    -- The id of the upload's first record, which tells its age.
    first_id INTEGER NOT NULL,
    PRIMARY KEY (tenant_uuid, idempotency_key, hub_uuid, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX upload_keys_age ON upload_keys (tenant_uuid, first_id);

-- The pace at which the hubs of a tenant upload.
CREATE TABLE upload_paces (
    tenant_uuid BLOB PRIMARY KEY REFERENCES tenants (tenant_uuid),
    live_hubs INTEGER NOT NULL,
    -- The places that were assigned to hubs; hubs.upload_slot is a hub's own.
    slots INTEGER NOT NULL,
    -- Between two uploads of a kind, for so many live hubs.
    pause_ms INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    changed_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What a tenant stores, by kind and by month of receipt (202611 is November 2026).
CREATE TABLE stored_bytes (
    tenant_uuid BLOB NOT NULL,
    kind TEXT NOT NULL,
    month INTEGER NOT NULL,
    -- The text of the records, and 128 for each record.
    bytes INTEGER NOT NULL,
    -- What was uploaded on day (days since 1970), also where it is deleted since.
    day INTEGER NOT NULL,
    day_bytes INTEGER NOT NULL,
    PRIMARY KEY (tenant_uuid, kind, month)
) STRICT, WITHOUT ROWID;

-- What hubs of a tenant report and what the service keeps, for a tenant that has set it.
CREATE TABLE ble_routes (
    tenant_uuid BLOB PRIMARY KEY REFERENCES tenants (tenant_uuid),
    -- A JSON list, in the order in which rules are tried.
    rules TEXT NOT NULL,
    otherwise TEXT NOT NULL,
    -- Whether hubs have to recognise registered devices for it.
    hubs_know_devices INTEGER NOT NULL,
    -- Rises with every change.
    revision INTEGER NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;

-- The BLE events of an upload of a hub, or of a part of a large one. Their ids have no gaps.
CREATE TABLE ble_batches (
    tenant_uuid BLOB NOT NULL,
    -- The ids of its first and last event. An id is receivedAt in microseconds since 1970: the key,
    -- the order, the time and the stream's cursor.
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    hub_uuid BLOB NOT NULL,
    -- Of the texts, before they are compressed.
    bytes INTEGER NOT NULL,
    -- A bit for each processing status that an event of it has.
    statuses INTEGER NOT NULL,
    -- What is known of each event beside its texts, and how long these are (a version, then binary).
    heads BLOB NOT NULL,
    -- The JSON objects as the hub sent them, then those of what was read from them (zstd).
    texts BLOB NOT NULL,
    PRIMARY KEY (tenant_uuid, first_id)
) STRICT;
CREATE INDEX ble_batches_hub ON ble_batches (tenant_uuid, hub_uuid, first_id);

-- The hours in which a hub received events of a device, by the first events of their batches.
CREATE TABLE ble_device_hours (
    tenant_uuid BLOB NOT NULL,
    device_instance_id INTEGER NOT NULL,
    -- The lowest id that an event of the hour can have.
    hour_id INTEGER NOT NULL,
    hub_uuid BLOB NOT NULL,
    events INTEGER NOT NULL,
    PRIMARY KEY (tenant_uuid, device_instance_id, hour_id, hub_uuid)
) STRICT, WITHOUT ROWID;

-- The batches with later receptions of frames whose first receptions are in the batch observed_in.
CREATE TABLE ble_batch_repeats (
    tenant_uuid BLOB NOT NULL,
    observed_in INTEGER NOT NULL,
    first_id INTEGER NOT NULL,
    PRIMARY KEY (tenant_uuid, observed_in, first_id)
) STRICT, WITHOUT ROWID;

-- How far a tenant's BLE events are in files of the history.
CREATE TABLE ble_history (
    tenant_uuid BLOB PRIMARY KEY,
    -- Events up to this id are read from files, whatever rows are left.
    closed_to INTEGER NOT NULL,
    -- Rows up to this id are deleted.
    cleared_to INTEGER NOT NULL,
    closed_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The files of the history. A file has the events with ids from its first to its last, both
-- included, and no two files of a tenant overlap.
CREATE TABLE ble_history_files (
    tenant_uuid BLOB NOT NULL,
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    -- The name in the store, with the first id.
    name BLOB NOT NULL,
    events INTEGER NOT NULL,
    -- What the events count as stored.
    bytes INTEGER NOT NULL,
    file_bytes INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    -- The store's name of this version of the file.
    e_tag TEXT,
    PRIMARY KEY (tenant_uuid, first_id)
) STRICT, WITHOUT ROWID;

-- The files with events of a hub, and how many.
CREATE TABLE ble_history_hubs (
    tenant_uuid BLOB NOT NULL,
    hub_uuid BLOB NOT NULL,
    first_id INTEGER NOT NULL,
    events INTEGER NOT NULL,
    PRIMARY KEY (tenant_uuid, hub_uuid, first_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ble_history_hubs_file ON ble_history_hubs (tenant_uuid, first_id);

-- Files to remove from the store: those that were replaced or deleted, and those that are being
-- written, in case they do not become part of the history.
CREATE TABLE ble_history_removals (
    name BLOB PRIMARY KEY,
    tenant_uuid BLOB NOT NULL,
    first_id INTEGER NOT NULL,
    due_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ble_history_removals_due ON ble_history_removals (due_at);

-- A record of a hub's log. Its id is the time of receipt in microseconds since 1970.
CREATE TABLE hub_logs (
    tenant_uuid BLOB NOT NULL,
    hub_uuid BLOB NOT NULL,
    hub_log_id INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, hub_uuid, hub_log_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX hub_logs_tenant ON hub_logs (tenant_uuid, hub_log_id);

-- A report of a hub on itself. Its id is the time of receipt in microseconds since 1970.
CREATE TABLE hub_telemetry (
    tenant_uuid BLOB NOT NULL,
    hub_uuid BLOB NOT NULL,
    hub_telemetry_id INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, hub_uuid, hub_telemetry_id)
) STRICT, WITHOUT ROWID;
-- Retention reads records by tenant and age.
CREATE INDEX hub_telemetry_tenant ON hub_telemetry (tenant_uuid, hub_telemetry_id);
