-- What suppliers are told of registrations, and how their systems are reached. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- The outbox of registration events. status is PENDING, DELIVERED or FAILED. payload is the JSON text that is sent, byte for byte. event_uuid is the same in every try. next_attempt_at is null unless PENDING, settled_at is null while PENDING.
CREATE TABLE registration_events (
    registration_event_id INTEGER PRIMARY KEY AUTOINCREMENT,
    event_uuid BLOB NOT NULL,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    event_type TEXT NOT NULL,
    payload TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    next_attempt_at TEXT,
    last_error TEXT,
    created_at TEXT NOT NULL,
    delivered_at TEXT,
    settled_at TEXT
) STRICT;
CREATE INDEX registration_events_due ON registration_events (tenant_uuid, next_attempt_at) WHERE status = 'PENDING';
CREATE INDEX registration_events_settled ON registration_events (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX registration_events_status ON registration_events (status, registration_event_id);
CREATE INDEX registration_events_tenant ON registration_events (tenant_uuid, registration_event_id);
CREATE INDEX registration_events_type ON registration_events (event_type, registration_event_id);

-- The configuration in force. config is a JSON object without secrets.
CREATE TABLE supplier_oauth_configs (
    tenant_uuid BLOB PRIMARY KEY REFERENCES tenants (tenant_uuid),
    config TEXT NOT NULL,
    sealed_client_secret BLOB,
    sealed_registration_secret BLOB,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;

-- Changes that tenants asked for where the platform approves them. status is PENDING, APPROVED, REJECTED or SUPERSEDED. A secret that is null keeps its value.
CREATE TABLE supplier_oauth_changes (
    supplier_oauth_change_id INTEGER PRIMARY KEY AUTOINCREMENT,
    change_uuid BLOB NOT NULL,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    config TEXT NOT NULL,
    sealed_client_secret BLOB,
    sealed_registration_secret BLOB,
    status TEXT NOT NULL,
    created_at TEXT NOT NULL,
    decided_at TEXT
) STRICT;
CREATE UNIQUE INDEX supplier_oauth_changes_uuid ON supplier_oauth_changes (change_uuid);
CREATE UNIQUE INDEX supplier_oauth_changes_one ON supplier_oauth_changes (tenant_uuid) WHERE status = 'PENDING';
CREATE INDEX supplier_oauth_changes_tenant ON supplier_oauth_changes (tenant_uuid, supplier_oauth_change_id);
CREATE INDEX supplier_oauth_changes_pending ON supplier_oauth_changes (supplier_oauth_change_id) WHERE status = 'PENDING';
