-- People, tenants, hubs and what hubs upload. The SQLite twin of this file has the same tables, columns and indexes.

CREATE TABLE users (
    user_uuid UUID PRIMARY KEY,
    email TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    nickname TEXT,
    is_platform_admin BOOLEAN NOT NULL,
    default_persona_uuid UUID NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX users_email ON users (email);

CREATE TABLE tenants (
    tenant_uuid UUID PRIMARY KEY,
    name TEXT NOT NULL,
    upload_limit_per_minute BIGINT,
    created_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);

-- A user's identity inside one tenant; the one without a tenant is their default.
CREATE TABLE personas (
    persona_uuid UUID PRIMARY KEY,
    user_uuid UUID NOT NULL REFERENCES users (user_uuid),
    tenant_uuid UUID REFERENCES tenants (tenant_uuid),
    role TEXT,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX personas_user_tenant ON personas (user_uuid, tenant_uuid);
CREATE INDEX personas_tenant ON personas (tenant_uuid, persona_uuid);

-- One row a login; its refresh tokens rotate, and all die with it.
CREATE TABLE logins (
    login_uuid UUID PRIMARY KEY,
    user_uuid UUID NOT NULL REFERENCES users (user_uuid),
    persona_uuid UUID NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    revoked_at TIMESTAMPTZ
);
CREATE INDEX logins_user ON logins (user_uuid);
CREATE INDEX logins_expires ON logins (expires_at);

CREATE TABLE refresh_tokens (
    token_hash BYTEA PRIMARY KEY,
    login_uuid UUID NOT NULL REFERENCES logins (login_uuid) ON DELETE CASCADE,
    created_at TIMESTAMPTZ NOT NULL,
    rotated_at TIMESTAMPTZ
);
CREATE INDEX refresh_tokens_login ON refresh_tokens (login_uuid);

-- Failed logins by subject (an account or an address), so that guessing slows down on every replica alike.
CREATE TABLE login_failures (
    subject TEXT PRIMARY KEY,
    failures BIGINT NOT NULL,
    last_failed_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX login_failures_last ON login_failures (last_failed_at);

-- Keys that sign tokens, shared by all replicas. The private half is sealed with the service's master key.
CREATE TABLE signing_keys (
    kid TEXT PRIMARY KEY,
    sealed_private_key BYTEA NOT NULL,
    public_x TEXT NOT NULL,
    public_y TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX signing_keys_created ON signing_keys (created_at);

CREATE TABLE claim_codes (
    code_hash BYTEA PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    sealed_code BYTEA NOT NULL,
    max_uses BIGINT NOT NULL,
    use_count BIGINT NOT NULL,
    bundle_uuid UUID,
    hub_identifier TEXT,
    owner_user_uuid UUID,
    note TEXT,
    expires_at TIMESTAMPTZ NOT NULL,
    revoked_at TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX claim_codes_tenant ON claim_codes (tenant_uuid, created_at, code_hash);

-- access_token_id is the one token that is in force; shown_access_token_id is the last one the hub has shown for a refresh, and so surely holds.
-- claim_key_hash knows a claim that is sent again because its answer was lost.
CREATE TABLE hubs (
    hub_uuid UUID PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    device_instance_id TEXT NOT NULL,
    hub_identifier TEXT,
    description TEXT,
    agent_version TEXT,
    hostname TEXT,
    os JSONB,
    owner_user_uuid UUID,
    claimed_at TIMESTAMPTZ NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    blocked_at TIMESTAMPTZ,
    last_seen_at TIMESTAMPTZ,
    last_telemetry_at TIMESTAMPTZ,
    access_token_id UUID,
    shown_access_token_id UUID,
    refresh_token_hash BYTEA,
    claim_key_hash BYTEA,
    refresh_expires_at TIMESTAMPTZ,
    desired_revision BIGINT NOT NULL
);
CREATE UNIQUE INDEX hubs_device_instance ON hubs (device_instance_id);
CREATE INDEX hubs_tenant ON hubs (tenant_uuid, created_at, hub_uuid);
CREATE INDEX hubs_owner ON hubs (owner_user_uuid);

CREATE TABLE hub_adapters (
    hub_uuid UUID NOT NULL REFERENCES hubs (hub_uuid),
    address TEXT NOT NULL,
    tenant_uuid UUID NOT NULL,
    name TEXT NOT NULL,
    alias TEXT,
    powered BOOLEAN NOT NULL,
    discovering BOOLEAN,
    address_type TEXT,
    manufacturer TEXT,
    modalias TEXT,
    role TEXT,
    supplier_uuid UUID,
    first_seen_at TIMESTAMPTZ NOT NULL,
    last_seen_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (hub_uuid, address)
);

-- One row a tenant and kind of upload: the minute's request count, and the last record id given out. Locking it is what makes
-- commit order the order of ids across replicas.
CREATE TABLE upload_clocks (
    tenant_uuid UUID NOT NULL,
    kind TEXT NOT NULL,
    minute BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    last_id BIGINT NOT NULL,
    previous_id BIGINT NOT NULL,
    PRIMARY KEY (tenant_uuid, kind)
);

-- What an upload was answered, for a retry of it. first_id is the id of its first record, and tells its age. Keys that grow with time, as the
-- agent's do, stand side by side: new ones touch few pages.
CREATE TABLE upload_keys (
    hub_uuid UUID NOT NULL,
    kind TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    answer TEXT NOT NULL,
    first_id BIGINT NOT NULL,
    PRIMARY KEY (idempotency_key, hub_uuid, kind)
);
CREATE INDEX upload_keys_age ON upload_keys (first_id);

-- ble_event_id is receivedAt in microseconds since 1970: it is the key, the order, the time and the stream's cursor in one.
-- event is the JSON object as the hub sent it.
CREATE TABLE ble_events (
    tenant_uuid UUID NOT NULL,
    ble_event_id BIGINT NOT NULL,
    hub_uuid UUID NOT NULL,
    device_instance_id BIGINT,
    processing_status TEXT NOT NULL DEFAULT 'RECEIVED',
    delivery_status TEXT NOT NULL DEFAULT 'NONE',
    window_start TIMESTAMPTZ,
    window_end TIMESTAMPTZ,
    event TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, ble_event_id)
) PARTITION BY RANGE (ble_event_id);
CREATE INDEX ble_events_hub ON ble_events (tenant_uuid, hub_uuid, ble_event_id);
CREATE INDEX ble_events_device ON ble_events (tenant_uuid, device_instance_id, ble_event_id) WHERE device_instance_id IS NOT NULL;
CREATE INDEX ble_events_processing ON ble_events (tenant_uuid, processing_status, ble_event_id) WHERE processing_status <> 'RECEIVED';
CREATE INDEX ble_events_delivery ON ble_events (tenant_uuid, delivery_status, ble_event_id) WHERE delivery_status <> 'NONE';
CREATE TABLE ble_events_default PARTITION OF ble_events DEFAULT;

CREATE TABLE hub_logs (
    tenant_uuid UUID NOT NULL,
    hub_uuid UUID NOT NULL,
    hub_log_id BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, hub_uuid, hub_log_id)
) PARTITION BY RANGE (hub_log_id);
CREATE INDEX hub_logs_tenant ON hub_logs (tenant_uuid, hub_log_id);
CREATE TABLE hub_logs_default PARTITION OF hub_logs DEFAULT;

CREATE TABLE hub_telemetry (
    tenant_uuid UUID NOT NULL,
    hub_uuid UUID NOT NULL,
    hub_telemetry_id BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, hub_uuid, hub_telemetry_id)
) PARTITION BY RANGE (hub_telemetry_id);
CREATE TABLE hub_telemetry_default PARTITION OF hub_telemetry DEFAULT;

CREATE TABLE audit_logs (
    audit_log_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_uuid UUID,
    actor TEXT NOT NULL,
    actor_uuid UUID,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    detail JSONB NOT NULL,
    request_id TEXT,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX audit_logs_tenant ON audit_logs (tenant_uuid, audit_log_id);

-- Work that is due. A row is leased while it runs, so that a killed process loses nothing.
CREATE TABLE tasks (
    task_uuid UUID PRIMARY KEY,
    kind TEXT NOT NULL,
    payload JSONB NOT NULL,
    attempts BIGINT NOT NULL,
    next_attempt_at TIMESTAMPTZ NOT NULL,
    leased_until TIMESTAMPTZ,
    last_error TEXT,
    dedup_key TEXT,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX tasks_due ON tasks (next_attempt_at);
CREATE UNIQUE INDEX tasks_dedup ON tasks (dedup_key);
