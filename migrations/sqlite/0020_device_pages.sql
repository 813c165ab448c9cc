-- What people see and do with a device model: forms, manuals, actions. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- config is JSON. revision rises when it changes.
CREATE TABLE device_ui_schemas (
    device_ui_id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    device_uuid BLOB NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    locale TEXT,
    config TEXT NOT NULL,
    revision INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX device_ui_schemas_device ON device_ui_schemas (device_uuid, device_ui_id);
CREATE INDEX device_ui_schemas_tenant ON device_ui_schemas (tenant_uuid, device_ui_id);

-- Of content and url, format decides which one is there.
CREATE TABLE device_manuals (
    device_manual_id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    device_uuid BLOB NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    title TEXT NOT NULL,
    locale TEXT,
    format TEXT NOT NULL,
    content TEXT,
    url TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX device_manuals_device ON device_manuals (device_uuid, device_manual_id);
CREATE INDEX device_manuals_tenant ON device_manuals (tenant_uuid, device_manual_id);

-- parameters and transport are JSON. An action without a model is for all of the tenant's devices; that of a model is deleted with it, so that it never becomes one for all.
CREATE TABLE action_definitions (
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    action_id TEXT NOT NULL,
    device_uuid BLOB REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    name TEXT NOT NULL,
    description TEXT,
    parameters TEXT,
    confirm INTEGER NOT NULL,
    transport TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, action_id)
) STRICT;
CREATE INDEX action_definitions_tenant ON action_definitions (tenant_uuid, created_at, action_id);
CREATE INDEX action_definitions_device ON action_definitions (device_uuid) WHERE device_uuid IS NOT NULL;
