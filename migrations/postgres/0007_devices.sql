-- Devices of tenants: their models, how models are recognised and read, what people do with them.

-- The revision of a tenant's catalog, which rises with every change of what recognises and reads
-- devices. The row is locked while a change is checked, so that two changes cannot make a tie.
CREATE TABLE catalog_revisions (
    tenant_uuid UUID PRIMARY KEY REFERENCES tenants (tenant_uuid),
    revision BIGINT NOT NULL,
    -- The revision of the last change after which the catalog has to be read as a whole; a change
    -- of a device has its revision in the device's row.
    models_revision BIGINT NOT NULL DEFAULT 0
);

-- A model of devices.
CREATE TABLE device_models (
    device_uuid UUID PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    name TEXT NOT NULL,
    brand TEXT,
    model TEXT,
    category TEXT,
    description TEXT,
    -- A JSON list.
    aliases TEXT NOT NULL,
    image_url TEXT,
    -- The key of the model of the built-in library that the model was made from.
    template TEXT,
    auto_register BOOLEAN NOT NULL,
    expected_interval_secs BIGINT,
    reference_power_dbm BIGINT,
    -- The last day of its support, such as 2026-01-31.
    supported_until TEXT,
    -- A JSON list.
    metrics TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX device_models_tenant ON device_models (tenant_uuid, created_at, device_uuid);
CREATE INDEX device_models_support
    ON device_models (tenant_uuid, supported_until) WHERE supported_until IS NOT NULL;

-- Conditions by which advertisements of a model are recognised.
CREATE TABLE device_identifiers (
    device_identifier_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    device_uuid UUID NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    -- A JSON list, and the number of bits that it fixes.
    conditions TEXT NOT NULL,
    specificity BIGINT NOT NULL,
    label TEXT,
    notes TEXT,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX device_identifiers_device ON device_identifiers (device_uuid, device_identifier_id);
CREATE INDEX device_identifiers_tenant
    ON device_identifiers (tenant_uuid, specificity, device_identifier_id);

-- A protocol by which advertisements of a model are read.
CREATE TABLE device_protocols (
    device_protocol_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    device_uuid UUID NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- JSON, as tests are.
    definition TEXT NOT NULL,
    tests TEXT NOT NULL,
    -- Rises when kind or definition change.
    revision BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX device_protocols_device ON device_protocols (device_uuid, device_protocol_id);
CREATE INDEX device_protocols_tenant ON device_protocols (tenant_uuid, device_protocol_id);

-- A version of a model, which may have a protocol of its own.
CREATE TABLE device_versions (
    device_version_uuid UUID PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    device_uuid UUID NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    version TEXT NOT NULL,
    hardware_version TEXT,
    firmware_version TEXT,
    device_protocol_id BIGINT REFERENCES device_protocols (device_protocol_id),
    notes TEXT,
    released BOOLEAN NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX device_versions_version ON device_versions (device_uuid, version);
CREATE INDEX device_versions_device
    ON device_versions (device_uuid, created_at, device_version_uuid);
CREATE INDEX device_versions_tenant
    ON device_versions (tenant_uuid, created_at, device_version_uuid);
CREATE INDEX device_versions_protocol
    ON device_versions (device_protocol_id) WHERE device_protocol_id IS NOT NULL;

-- A registered device.
CREATE TABLE device_instances (
    device_instance_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    device_uuid UUID NOT NULL REFERENCES device_models (device_uuid),
    device_version_uuid UUID REFERENCES device_versions (device_version_uuid),
    name TEXT,
    address TEXT,
    address_type TEXT,
    -- A normalised text.
    beacon TEXT,
    serial_number TEXT,
    -- JSON objects.
    labels JSONB NOT NULL,
    calibration JSONB NOT NULL,
    activation_status TEXT NOT NULL,
    sealed_bind_key BYTEA,
    bind_key_status TEXT NOT NULL,
    sealed_identity_resolving_key BYTEA,
    identity_resolving_key_hash BYTEA,
    -- Name, address and serial number in lower case, a line each.
    search_text TEXT NOT NULL,
    -- The revision of the tenant's catalog with the last change of this device.
    catalog_revision BIGINT NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL,
    activated_at TIMESTAMPTZ,
    retired_at TIMESTAMPTZ
);
-- What identifies a device belongs to one device of its tenant that is not retired.
CREATE UNIQUE INDEX device_instances_beacon
    ON device_instances (tenant_uuid, beacon) WHERE retired_at IS NULL;
CREATE UNIQUE INDEX device_instances_resolving_key
    ON device_instances (tenant_uuid, identity_resolving_key_hash) WHERE retired_at IS NULL;
CREATE UNIQUE INDEX device_instances_address
    ON device_instances (tenant_uuid, address) WHERE retired_at IS NULL;
CREATE INDEX device_instances_tenant ON device_instances (tenant_uuid, device_instance_id);
CREATE INDEX device_instances_status
    ON device_instances (tenant_uuid, activation_status, device_instance_id);
CREATE INDEX device_instances_device ON device_instances (device_uuid, device_instance_id);
CREATE INDEX device_instances_version
    ON device_instances (device_version_uuid) WHERE device_version_uuid IS NOT NULL;
CREATE INDEX device_instances_revision ON device_instances (tenant_uuid, catalog_revision);

-- The last state of a device that was heard.
CREATE TABLE device_states (
    tenant_uuid UUID NOT NULL,
    device_instance_id BIGINT NOT NULL,
    last_seen_at TIMESTAMPTZ,
    last_rssi_dbm BIGINT,
    nearest_hub_uuid UUID,
    nearest_rssi_dbm BIGINT,
    nearest_since TIMESTAMPTZ,
    -- The learned time between two advertisements of the device.
    interval_secs BIGINT,
    -- The device is online until then.
    online_until TIMESTAMPTZ,
    -- The last authenticated counter of the device, which it sent at counter_at.
    counter BIGINT,
    counter_at TIMESTAMPTZ,
    -- A JSON object of the last values.
    state TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, device_instance_id)
);
CREATE INDEX device_states_nearest
    ON device_states (tenant_uuid, nearest_hub_uuid) WHERE nearest_hub_uuid IS NOT NULL;
CREATE INDEX device_states_online ON device_states (tenant_uuid, online_until);

-- An activation of a device, which outlives the device.
CREATE TABLE activation_events (
    activation_event_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    hub_uuid UUID,
    device_instance_id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    occurred_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX activation_events_occurred ON activation_events (occurred_at, activation_event_id);

-- A form of a model.
CREATE TABLE device_ui_schemas (
    device_ui_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    device_uuid UUID NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    locale TEXT,
    -- JSON. revision rises when it changes.
    config TEXT NOT NULL,
    revision BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX device_ui_schemas_device ON device_ui_schemas (device_uuid, device_ui_id);
CREATE INDEX device_ui_schemas_tenant ON device_ui_schemas (tenant_uuid, device_ui_id);

-- A manual of a model.
CREATE TABLE device_manuals (
    device_manual_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    device_uuid UUID NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    title TEXT NOT NULL,
    locale TEXT,
    -- Decides which of content and url is there.
    format TEXT NOT NULL,
    content TEXT,
    url TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX device_manuals_device ON device_manuals (device_uuid, device_manual_id);
CREATE INDEX device_manuals_tenant ON device_manuals (tenant_uuid, device_manual_id);

-- A server of a tenant that its forms and actions may call.
CREATE TABLE external_endpoints (
    external_endpoint_uuid UUID PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    name TEXT NOT NULL,
    base_url TEXT NOT NULL,
    -- The host of base_url.
    domain TEXT NOT NULL,
    verify_method TEXT NOT NULL,
    verify_token TEXT NOT NULL,
    domain_verified BOOLEAN NOT NULL,
    verify_error TEXT,
    verified_at TIMESTAMPTZ,
    -- The kind of the credentials, and their JSON.
    auth_type TEXT,
    sealed_auth BYTEA,
    auth_updated_at TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX external_endpoints_tenant
    ON external_endpoints (tenant_uuid, created_at DESC, external_endpoint_uuid);

-- An action that devices can be commanded to do.
CREATE TABLE action_definitions (
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    action_id TEXT NOT NULL,
    -- Without a model, the action is for all of the tenant's devices. That of a model is deleted
    -- with it, so that it never becomes one for all.
    device_uuid UUID REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    name TEXT NOT NULL,
    description TEXT,
    -- JSON, as transport is.
    parameters TEXT,
    confirm BOOLEAN NOT NULL,
    transport TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant_uuid, action_id)
);
CREATE INDEX action_definitions_tenant ON action_definitions (tenant_uuid, created_at, action_id);
CREATE INDEX action_definitions_device
    ON action_definitions (device_uuid) WHERE device_uuid IS NOT NULL;

-- A command: an action that a user or a supplier had a device do. Its parameters are not kept.
CREATE TABLE device_commands (
    command_uuid UUID PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    device_instance_id BIGINT NOT NULL
        REFERENCES device_instances (device_instance_id) ON DELETE CASCADE,
    -- The user who commanded it in the app, or the tenant.
    author_uuid UUID NOT NULL,
    action_id TEXT NOT NULL,
    idempotency_key TEXT,
    -- The hub that carries it out, and its job, which has the outcome.
    hub_uuid UUID,
    hub_job_uuid UUID,
    deadline_at TIMESTAMPTZ NOT NULL,
    -- The outcome of a command that no hub carries out, from finished_at on. result is JSON.
    result TEXT,
    error_code TEXT,
    error_message TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    finished_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX device_commands_once
    ON device_commands (device_instance_id, author_uuid, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX device_commands_device
    ON device_commands (device_instance_id, created_at, command_uuid);
CREATE INDEX device_commands_author ON device_commands (author_uuid, created_at);
CREATE INDEX device_commands_created ON device_commands (created_at);

-- A tenant's page of values, charts and states of devices that it chose.
CREATE TABLE dashboards (
    dashboard_uuid UUID PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    name TEXT NOT NULL,
    -- At most one of a tenant's.
    is_on_overview BOOLEAN NOT NULL,
    -- A JSON list.
    tiles JSONB NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX dashboards_tenant ON dashboards (tenant_uuid, name, dashboard_uuid);
