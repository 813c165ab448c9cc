-- Device models of a tenant, and how they are recognised and read. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- revision rises with every change of what recognises and reads devices. Its row is locked while a change is checked, so that two changes cannot make a tie.
CREATE TABLE catalog_revisions (
    tenant_uuid BLOB PRIMARY KEY REFERENCES tenants (tenant_uuid),
    revision INTEGER NOT NULL
) STRICT;

-- aliases and metrics are JSON lists. template is the key of the model of the built-in library that the model was made from.
CREATE TABLE device_models (
    device_uuid BLOB PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    name TEXT NOT NULL,
    brand TEXT,
    model TEXT,
    category TEXT,
    description TEXT,
    aliases TEXT NOT NULL,
    image_url TEXT,
    template TEXT,
    auto_register INTEGER NOT NULL,
    expected_interval_secs INTEGER,
    reference_power_dbm INTEGER,
    metrics TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX device_models_tenant ON device_models (tenant_uuid, created_at, device_uuid);

-- conditions is a JSON list. specificity is the number of bits that they fix.
CREATE TABLE device_identifiers (
    device_identifier_id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    device_uuid BLOB NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    conditions TEXT NOT NULL,
    specificity INTEGER NOT NULL,
    label TEXT,
    notes TEXT,
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX device_identifiers_device ON device_identifiers (device_uuid, device_identifier_id);
CREATE INDEX device_identifiers_tenant ON device_identifiers (tenant_uuid, specificity, device_identifier_id);

-- definition and tests are JSON. revision rises when kind or definition change.
CREATE TABLE device_protocols (
    device_protocol_id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    device_uuid BLOB NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    definition TEXT NOT NULL,
    tests TEXT NOT NULL,
    revision INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX device_protocols_device ON device_protocols (device_uuid, device_protocol_id);
CREATE INDEX device_protocols_tenant ON device_protocols (tenant_uuid, device_protocol_id);

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
CREATE INDEX device_versions_device ON device_versions (device_uuid, created_at, device_version_uuid);
CREATE INDEX device_versions_tenant ON device_versions (tenant_uuid, created_at, device_version_uuid);
CREATE INDEX device_versions_protocol ON device_versions (device_protocol_id) WHERE device_protocol_id IS NOT NULL;
