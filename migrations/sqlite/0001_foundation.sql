-- People, tenants, hubs and what hubs upload. The PostgreSQL twin of this file has the same tables, columns and indexes.

CREATE TABLE users (
    user_uuid BLOB PRIMARY KEY,
    email TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    nickname TEXT,
    is_platform_admin INTEGER NOT NULL,
    default_persona_uuid BLOB NOT NULL,
    created_at TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX users_email ON users (email);

CREATE TABLE tenants (
    tenant_uuid BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    upload_limit_per_minute INTEGER,
    created_at TEXT NOT NULL,
    deleted_at TEXT
) STRICT;

-- A user's identity inside one tenant; the one without a tenant is their default.
CREATE TABLE personas (
    persona_uuid BLOB PRIMARY KEY,
    user_uuid BLOB NOT NULL REFERENCES users (user_uuid),
    tenant_uuid BLOB REFERENCES tenants (tenant_uuid),
    role TEXT,
    created_at TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX personas_user_tenant ON personas (user_uuid, tenant_uuid);
CREATE INDEX personas_tenant ON personas (tenant_uuid, persona_uuid);

-- One row a login; its refresh tokens rotate, and all die with it.
CREATE TABLE logins (
    login_uuid BLOB PRIMARY KEY,
    user_uuid BLOB NOT NULL REFERENCES users (user_uuid),
    persona_uuid BLOB NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    revoked_at TEXT
) STRICT;
CREATE INDEX logins_user ON logins (user_uuid);
CREATE INDEX logins_expires ON logins (expires_at);

CREATE TABLE refresh_tokens (
    token_hash BLOB PRIMARY KEY,
    login_uuid BLOB NOT NULL REFERENCES logins (login_uuid) ON DELETE CASCADE,
    created_at TEXT NOT NULL,
    rotated_at TEXT
) STRICT;
CREATE INDEX refresh_tokens_login ON refresh_tokens (login_uuid);

-- Failed logins by subject (an account or an address), so that guessing slows down on every replica alike.
CREATE TABLE login_failures (
    subject TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    last_failed_at TEXT NOT NULL
) STRICT;
CREATE INDEX login_failures_last ON login_failures (last_failed_at);

-- Keys that sign tokens, shared by all replicas. The private half is sealed with the service's master key.
CREATE TABLE signing_keys (
    kid TEXT PRIMARY KEY,
    sealed_private_key BLOB NOT NULL,
    public_x TEXT NOT NULL,
    public_y TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX signing_keys_created ON signing_keys (created_at);

CREATE TABLE claim_codes (
    code_hash BLOB PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    sealed_code BLOB NOT NULL,
    max_uses INTEGER NOT NULL,
    use_count INTEGER NOT NULL,
    bundle_uuid BLOB,
    hub_identifier TEXT,
    owner_user_uuid BLOB,
    note TEXT,
    expires_at TEXT NOT NULL,
    revoked_at TEXT,
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX claim_codes_tenant ON claim_codes (tenant_uuid, created_at, code_hash);

-- access_token_id is the one token that is in force; shown_access_token_id is the last one the hub has shown for a refresh, and so surely holds.
-- claim_key_hash knows a claim that is sent again because its answer was lost.
CREATE TABLE hubs (
    hub_uuid BLOB PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    device_instance_id TEXT NOT NULL,
    hub_identifier TEXT,
    description TEXT,
    agent_version TEXT,
    hostname TEXT,
    os TEXT,
    owner_user_uuid BLOB,
    claimed_at TEXT NOT NULL,
    created_at TEXT NOT NULL,
    blocked_at TEXT,
    last_seen_at TEXT,
    last_telemetry_at TEXT,
    access_token_id BLOB,
    shown_access_token_id BLOB,
    refresh_token_hash BLOB,
    claim_key_hash BLOB,
    refresh_expires_at TEXT,
    desired_revision INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX hubs_device_instance ON hubs (device_instance_id);
CREATE INDEX hubs_tenant ON hubs (tenant_uuid, created_at, hub_uuid);
CREATE INDEX hubs_owner ON hubs (owner_user_uuid);

CREATE TABLE hub_adapters (
    hub_uuid BLOB NOT NULL REFERENCES hubs (hub_uuid),
    address TEXT NOT NULL,
    tenant_uuid BLOB NOT NULL,
    name TEXT NOT NULL,
    alias TEXT,
    powered INTEGER NOT NULL,
    discovering INTEGER,
    address_type TEXT,
    manufacturer TEXT,
    modalias TEXT,
    role TEXT,
    supplier_uuid BLOB,
    first_seen_at TEXT NOT NULL,
    last_seen_at TEXT NOT NULL,
    PRIMARY KEY (hub_uuid, address)
) STRICT, WITHOUT ROWID;

-- One row a tenant and kind of upload: the minute's request count, and the last record id given out. Locking it is what makes
-- commit order the order of ids across replicas.
CREATE TABLE upload_clocks (
    tenant_uuid BLOB NOT NULL,
    kind TEXT NOT NULL,
    minute INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    previous_id INTEGER NOT NULL,
    PRIMARY KEY (tenant_uuid, kind)
) STRICT, WITHOUT ROWID;

-- What an upload was answered, for a retry of it. first_id is the id of its first record, and tells its age. Keys that grow with time, as the
-- agent's do, stand side by side: new ones touch few pages.
CREATE TABLE upload_keys (
    hub_uuid BLOB NOT NULL,
    kind TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    answer TEXT NOT NULL,
    first_id INTEGER NOT NULL,
    PRIMARY KEY (idempotency_key, hub_uuid, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX upload_keys_age ON upload_keys (first_id);

-- ble_event_id is receivedAt in microseconds since 1970: it is the key, the order, the time and the stream's cursor in one.
-- event is the JSON object as the hub sent it.
CREATE TABLE ble_events (
    tenant_uuid BLOB NOT NULL,
    ble_event_id INTEGER NOT NULL,
    hub_uuid BLOB NOT NULL,
    device_instance_id INTEGER,
    processing_status TEXT NOT NULL DEFAULT 'RECEIVED',
    delivery_status TEXT NOT NULL DEFAULT 'NONE',
    window_start TEXT,
    window_end TEXT,
    event TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, ble_event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ble_events_hub ON ble_events (tenant_uuid, hub_uuid, ble_event_id);
CREATE INDEX ble_events_device ON ble_events (tenant_uuid, device_instance_id, ble_event_id) WHERE device_instance_id IS NOT NULL;
CREATE INDEX ble_events_processing ON ble_events (tenant_uuid, processing_status, ble_event_id) WHERE processing_status <> 'RECEIVED';
CREATE INDEX ble_events_delivery ON ble_events (tenant_uuid, delivery_status, ble_event_id) WHERE delivery_status <> 'NONE';

CREATE TABLE hub_logs (
    tenant_uuid BLOB NOT NULL,
    hub_uuid BLOB NOT NULL,
    hub_log_id INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, hub_uuid, hub_log_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX hub_logs_tenant ON hub_logs (tenant_uuid, hub_log_id);

CREATE TABLE hub_telemetry (
    tenant_uuid BLOB NOT NULL,
    hub_uuid BLOB NOT NULL,
    hub_telemetry_id INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, hub_uuid, hub_telemetry_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit_logs (
    audit_log_id INTEGER PRIMARY KEY,
    tenant_uuid BLOB,
    actor TEXT NOT NULL,
    actor_uuid BLOB,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    detail TEXT NOT NULL,
    request_id TEXT,
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX audit_logs_tenant ON audit_logs (tenant_uuid, audit_log_id);

-- Work that is due. A row is leased while it runs, so that a killed process loses nothing.
CREATE TABLE tasks (
    task_uuid BLOB PRIMARY KEY,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    next_attempt_at TEXT NOT NULL,
    leased_until TEXT,
    last_error TEXT,
    dedup_key TEXT,
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX tasks_due ON tasks (next_attempt_at);
CREATE UNIQUE INDEX tasks_dedup ON tasks (dedup_key);
