-- Servers of a tenant that its forms and actions may call. The SQLite twin of this file has the same tables, columns and indexes.

-- domain is the host of base_url. sealed_auth is the JSON of the credentials; auth_type says of which kind they are.
CREATE TABLE external_endpoints (
    external_endpoint_uuid UUID NOT NULL PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    name TEXT NOT NULL,
    base_url TEXT NOT NULL,
    domain TEXT NOT NULL,
    verify_method TEXT NOT NULL,
    verify_token TEXT NOT NULL,
    domain_verified BOOLEAN NOT NULL,
    verify_error TEXT,
    verified_at TIMESTAMPTZ,
    auth_type TEXT,
    sealed_auth BYTEA,
    auth_updated_at TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX external_endpoints_tenant ON external_endpoints (tenant_uuid, created_at DESC, external_endpoint_uuid);
