-- Certificates of hubs, and the authorities that issue them. The SQLite twin of this file has the same tables, columns and indexes.

-- A root, which has no root_uuid, signs authorities that issue, and those sign the certificates of hubs. Certificates are PEM; the private key is
-- sealed with the service's master key. One is published from created_at on, and signs from signs_from on.
CREATE TABLE certificate_authorities (
    authority_uuid UUID PRIMARY KEY,
    root_uuid UUID REFERENCES certificate_authorities (authority_uuid),
    certificate TEXT NOT NULL,
    sealed_private_key BYTEA NOT NULL,
    not_before TIMESTAMPTZ NOT NULL,
    not_after TIMESTAMPTZ NOT NULL,
    signs_from TIMESTAMPTZ NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX certificate_authorities_root ON certificate_authorities (root_uuid);

-- What was issued. A serial number is lower-case hex, and of no other certificate, whichever authority issued it.
CREATE TABLE hub_certificates (
    serial_number TEXT PRIMARY KEY,
    authority_uuid UUID NOT NULL REFERENCES certificate_authorities (authority_uuid),
    hub_uuid UUID NOT NULL REFERENCES hubs (hub_uuid),
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    not_before TIMESTAMPTZ NOT NULL,
    not_after TIMESTAMPTZ NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    revoked_at TIMESTAMPTZ,
    revoked_because TEXT
);
CREATE INDEX hub_certificates_hub ON hub_certificates (hub_uuid, created_at);
CREATE INDEX hub_certificates_tenant ON hub_certificates (tenant_uuid) WHERE revoked_at IS NULL;
CREATE INDEX hub_certificates_authority ON hub_certificates (authority_uuid, not_after);
CREATE INDEX hub_certificates_expires ON hub_certificates (not_after);
