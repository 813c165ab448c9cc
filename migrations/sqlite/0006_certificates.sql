-- Certificates of hubs, and the authorities that issue them. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- A root, which has no root_uuid, signs authorities that issue, and those sign the certificates of hubs. Certificates are PEM; the private key is
-- sealed with the service's master key. One is published from created_at on, and signs from signs_from on.
CREATE TABLE certificate_authorities (
    authority_uuid BLOB PRIMARY KEY,
    root_uuid BLOB REFERENCES certificate_authorities (authority_uuid),
    certificate TEXT NOT NULL,
    sealed_private_key BLOB NOT NULL,
    not_before TEXT NOT NULL,
    not_after TEXT NOT NULL,
    signs_from TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX certificate_authorities_root ON certificate_authorities (root_uuid);

-- What was issued. A serial number is lower-case hex, and of no other certificate, whichever authority issued it.
CREATE TABLE hub_certificates (
    serial_number TEXT PRIMARY KEY,
    authority_uuid BLOB NOT NULL REFERENCES certificate_authorities (authority_uuid),
    hub_uuid BLOB NOT NULL REFERENCES hubs (hub_uuid),
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    not_before TEXT NOT NULL,
    not_after TEXT NOT NULL,
    created_at TEXT NOT NULL,
    revoked_at TEXT,
    revoked_because TEXT
) STRICT;
CREATE INDEX hub_certificates_hub ON hub_certificates (hub_uuid, created_at);
CREATE INDEX hub_certificates_tenant ON hub_certificates (tenant_uuid) WHERE revoked_at IS NULL;
CREATE INDEX hub_certificates_authority ON hub_certificates (authority_uuid, not_after);
CREATE INDEX hub_certificates_expires ON hub_certificates (not_after);
