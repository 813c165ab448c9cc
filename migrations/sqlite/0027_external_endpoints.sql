-- Servers of a tenant that its forms and actions may call. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- domain is the host of base_url. sealed_auth is the JSON of the credentials; auth_type says of which kind they are.
CREATE TABLE external_endpoints (
    external_endpoint_uuid BLOB NOT NULL PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    name TEXT NOT NULL,
    base_url TEXT NOT NULL,
    domain TEXT NOT NULL,
    verify_method TEXT NOT NULL,
    verify_token TEXT NOT NULL,
    domain_verified INTEGER NOT NULL,
    verify_error TEXT,
    verified_at TEXT,
    auth_type TEXT,
    sealed_auth BLOB,
    auth_updated_at TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX external_endpoints_tenant ON external_endpoints (tenant_uuid, created_at DESC, external_endpoint_uuid);
