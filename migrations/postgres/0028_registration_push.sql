-- What suppliers are told of registrations, and how their systems are reached. The SQLite twin of this file has the same tables, columns and indexes.

-- The outbox of registration events. status is PENDING, DELIVERED or FAILED. payload is the JSON text that is sent, byte for byte. event_uuid is the same in every try. next_attempt_at is null unless PENDING, settled_at is null while PENDING.
CREATE TABLE registration_events (
    registration_event_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_uuid UUID NOT NULL,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    event_type TEXT NOT NULL,
    payload TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    next_attempt_at TIMESTAMPTZ,
    last_error TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    delivered_at TIMESTAMPTZ,
    settled_at TIMESTAMPTZ
);
CREATE INDEX registration_events_due ON registration_events (tenant_uuid, next_attempt_at) WHERE status = 'PENDING';
CREATE INDEX registration_events_settled ON registration_events (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX registration_events_status ON registration_events (status, registration_event_id);
CREATE INDEX registration_events_tenant ON registration_events (tenant_uuid, registration_event_id);
CREATE INDEX registration_events_type ON registration_events (event_type, registration_event_id);

-- The configuration in force. config is a JSON object without secrets.
CREATE TABLE supplier_oauth_configs (
    tenant_uuid UUID PRIMARY KEY REFERENCES tenants (tenant_uuid),
    config TEXT NOT NULL,
    sealed_client_secret BYTEA,
    sealed_registration_secret BYTEA,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);

-- Changes that tenants asked for where the platform approves them. status is PENDING, APPROVED, REJECTED or SUPERSEDED. A secret that is null keeps its value.
CREATE TABLE supplier_oauth_changes (
    supplier_oauth_change_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    change_uuid UUID NOT NULL,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    config TEXT NOT NULL,
    sealed_client_secret BYTEA,
    sealed_registration_secret BYTEA,
    status TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    decided_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX supplier_oauth_changes_uuid ON supplier_oauth_changes (change_uuid);
CREATE UNIQUE INDEX supplier_oauth_changes_one ON supplier_oauth_changes (tenant_uuid) WHERE status = 'PENDING';
CREATE INDEX supplier_oauth_changes_tenant ON supplier_oauth_changes (tenant_uuid, supplier_oauth_change_id);
CREATE INDEX supplier_oauth_changes_pending ON supplier_oauth_changes (supplier_oauth_change_id) WHERE status = 'PENDING';
