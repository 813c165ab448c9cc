-- Devices of tenants: their models, how models are recognised and read, what people do with them.

-- The revision of a tenant's catalog, which rises with every change of what recognises and reads
-- devices. The row is locked while a change is checked, so that two changes cannot make a tie.
CREATE TABLE catalog_revisions (
    tenant_uuid BLOB PRIMARY KEY REFERENCES tenants (tenant_uuid),
    revision INTEGER NOT NULL,
    -- The revision of the last change after which the catalog has to be read as a whole; a change
    -- of a device has its revision in the device's row.
    models_revision INTEGER NOT NULL DEFAULT 0
) STRICT;

-- A model of devices.
CREATE TABLE device_models (
    device_uuid BLOB PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
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
    auto_register INTEGER NOT NULL,
    expected_interval_secs INTEGER,
    reference_power_dbm INTEGER,
    -- The last day of its support, such as 2026-01-31.
    supported_until TEXT,
    -- A JSON list.
    metrics TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX device_models_tenant ON device_models (tenant_uuid, created_at, device_uuid);
CREATE INDEX device_models_support
    ON device_models (tenant_uuid, supported_until) WHERE supported_until IS NOT NULL;

-- Conditions by which advertisements of a model are recognised.
CREATE TABLE device_identifiers (
    device_identifier_id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    device_uuid BLOB NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    -- A JSON list, and the number of bits that it fixes.
    conditions TEXT NOT NULL,
    specificity INTEGER NOT NULL,
    label TEXT,
    notes TEXT,
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX device_identifiers_device ON device_identifiers (device_uuid, device_identifier_id);
CREATE INDEX device_identifiers_tenant
    ON device_identifiers (tenant_uuid, specificity, device_identifier_id);

-- A protocol by which advertisements of a model are read.
CREATE TABLE device_protocols (
    device_protocol_id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    device_uuid BLOB NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- JSON, as tests are.
    definition TEXT NOT NULL,
    tests TEXT NOT NULL,
    -- Rises when kind or definition change.
    revision INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX device_protocols_device ON device_protocols (device_uuid, device_protocol_id);
CREATE INDEX device_protocols_tenant ON device_protocols (tenant_uuid, device_protocol_id);

-- A version of a model, which may have a protocol of its own.
CREATE TABLE device_versions (
    device_version_uuid BLOB PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    device_uuid BLOB NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    version TEXT NOT NULL,
    hardware_version TEXT,
    firmware_version TEXT,
    device_protocol_id INTEGER REFERENCES device_protocols (device_protocol_id),
    notes TEXT,
    released INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX device_versions_version ON device_versions (device_uuid, version);
CREATE INDEX device_versions_device
    ON device_versions (device_uuid, created_at, device_version_uuid);
CREATE INDEX device_versions_tenant
    ON device_versions (tenant_uuid, created_at, device_version_uuid);
CREATE INDEX device_versions_protocol
    ON device_versions (device_protocol_id) WHERE device_protocol_id IS NOT NULL;

-- A registered device.
CREATE TABLE device_instances (
    device_instance_id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    device_uuid BLOB NOT NULL REFERENCES device_models (device_uuid),
    device_version_uuid BLOB REFERENCES device_versions (device_version_uuid),
    name TEXT,
    address TEXT,
    address_type TEXT,
    -- A normalised text.
    beacon TEXT,
    serial_number TEXT,
    -- JSON objects.
    labels TEXT NOT NULL,
    calibration TEXT NOT NULL,
    activation_status TEXT NOT NULL,
    sealed_bind_key BLOB,
    bind_key_status TEXT NOT NULL,
    sealed_identity_resolving_key BLOB,
    identity_resolving_key_hash BLOB,
    -- Name, address and serial number in lower case, a line each.
    search_text TEXT NOT NULL,
    -- The revision of the tenant's catalog with the last change of this device.
    catalog_revision INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    activated_at TEXT,
    retired_at TEXT
) STRICT;
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
    tenant_uuid BLOB NOT NULL,
    device_instance_id INTEGER NOT NULL,
    last_seen_at TEXT,
    last_rssi_dbm INTEGER,
    nearest_hub_uuid BLOB,
    nearest_rssi_dbm INTEGER,
    nearest_since TEXT,
    -- The learned time between two advertisements of the device.
    interval_secs INTEGER,
    -- The device is online until then.
    online_until TEXT,
    -- The last authenticated counter of the device, which it sent at counter_at.
    counter INTEGER,
    counter_at TEXT,
    -- A JSON object of the last values.
    state TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, device_instance_id)
) STRICT;
CREATE INDEX device_states_nearest
    ON device_states (tenant_uuid, nearest_hub_uuid) WHERE nearest_hub_uuid IS NOT NULL;
CREATE INDEX device_states_online ON device_states (tenant_uuid, online_until);

-- An activation of a device, which outlives the device.
CREATE TABLE activation_events (
    activation_event_id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    hub_uuid BLOB,
    device_instance_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    occurred_at TEXT NOT NULL
) STRICT;
CREATE INDEX activation_events_occurred ON activation_events (occurred_at, activation_event_id);

-- A form of a model.
CREATE TABLE device_ui_schemas (
    device_ui_id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    device_uuid BLOB NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    locale TEXT,
    -- JSON. revision rises when it changes.
    config TEXT NOT NULL,
    revision INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX device_ui_schemas_device ON device_ui_schemas (device_uuid, device_ui_id);
CREATE INDEX device_ui_schemas_tenant ON device_ui_schemas (tenant_uuid, device_ui_id);

-- A manual of a model.
CREATE TABLE device_manuals (
    device_manual_id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    device_uuid BLOB NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    title TEXT NOT NULL,
    locale TEXT,
    -- Decides which of content and url is there.
    format TEXT NOT NULL,
    content TEXT,
    url TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX device_manuals_device ON device_manuals (device_uuid, device_manual_id);
CREATE INDEX device_manuals_tenant ON device_manuals (tenant_uuid, device_manual_id);

-- A server of a tenant that its forms and actions may call.
CREATE TABLE external_endpoints (
    external_endpoint_uuid BLOB PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    name TEXT NOT NULL,
    base_url TEXT NOT NULL,
    -- The host of base_url.
    domain TEXT NOT NULL,
    verify_method TEXT NOT NULL,
    verify_token TEXT NOT NULL,
    domain_verified INTEGER NOT NULL,
    verify_error TEXT,
    verified_at TEXT,
    -- The kind of the credentials, and their JSON.
    auth_type TEXT,
    sealed_auth BLOB,
    auth_updated_at TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX external_endpoints_tenant
    ON external_endpoints (tenant_uuid, created_at DESC, external_endpoint_uuid);

-- An action that devices can be commanded to do.
CREATE TABLE action_definitions (
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    action_id TEXT NOT NULL,
    -- Without a model, the action is for all of the tenant's devices. That of a model is deleted
    -- with it, so that it never becomes one for all.
    device_uuid BLOB REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    name TEXT NOT NULL,
    description TEXT,
    -- JSON, as transport is.
    parameters TEXT,
    confirm INTEGER NOT NULL,
    transport TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, action_id)
) STRICT;
CREATE INDEX action_definitions_tenant ON action_definitions (tenant_uuid, created_at, action_id);
CREATE INDEX action_definitions_device
    ON action_definitions (device_uuid) WHERE device_uuid IS NOT NULL;

-- A command: an action that a user or a supplier had a device do. Its parameters are not kept.
CREATE TABLE device_commands (
    command_uuid BLOB PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    device_instance_id INTEGER NOT NULL
        REFERENCES device_instances (device_instance_id) ON DELETE CASCADE,
    -- The user who commanded it in the app, or the tenant.
    author_uuid BLOB NOT NULL,
    action_id TEXT NOT NULL,
    idempotency_key TEXT,
    -- The hub that carries it out, and its job, which has the outcome.
    hub_uuid BLOB,
    hub_job_uuid BLOB,
    deadline_at TEXT NOT NULL,
    -- The outcome of a command that no hub carries out, from finished_at on. result is JSON.
    result TEXT,
    error_code TEXT,
    error_message TEXT,
    created_at TEXT NOT NULL,
    finished_at TEXT
) STRICT;
CREATE UNIQUE INDEX device_commands_once
    ON device_commands (device_instance_id, author_uuid, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX device_commands_device
    ON device_commands (device_instance_id, created_at, command_uuid);
CREATE INDEX device_commands_author ON device_commands (author_uuid, created_at);
CREATE INDEX device_commands_created ON device_commands (created_at);

-- A tenant's page of values, charts and states of devices that it chose.
CREATE TABLE dashboards (
    dashboard_uuid BLOB PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    name TEXT NOT NULL,
    -- At most one of a tenant's.
    is_on_overview INTEGER NOT NULL,
    -- A JSON list.
    tiles TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX dashboards_tenant ON dashboards (tenant_uuid, name, dashboard_uuid);
