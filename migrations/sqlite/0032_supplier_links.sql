-- Links of app users to the authorization servers of suppliers. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- Authorizations that were begun and not completed; deleted with their first use. state_hash is of the state that the browser brings back. target is JSON: where the user was sent, and with which redirect URI.
CREATE TABLE supplier_link_attempts (
    state_hash BLOB NOT NULL PRIMARY KEY,
    attempt_uuid BLOB NOT NULL,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    user_uuid BLOB NOT NULL REFERENCES users (user_uuid),
    persona_uuid BLOB NOT NULL,
    sealed_verifier BLOB NOT NULL,
    target TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX supplier_link_attempts_uuid ON supplier_link_attempts (attempt_uuid);
CREATE INDEX supplier_link_attempts_user ON supplier_link_attempts (user_uuid, created_at);
CREATE INDEX supplier_link_attempts_tenant ON supplier_link_attempts (tenant_uuid);
CREATE INDEX supplier_link_attempts_expiry ON supplier_link_attempts (expires_at);

-- status is ACTIVE or REVOKED. token_auth says how the client authenticates: BASIC, POST or NONE. version counts the tokens. refresh_at is when they are to be refreshed; null is never. lease_uuid names the refresh that runs, until lease_until; retry_at is when the next one may run after one that failed, refresh_error how it failed. A revoked link has tokens until they are revoked at the supplier too.
CREATE TABLE supplier_links (
    supplier_link_id INTEGER PRIMARY KEY AUTOINCREMENT,
    link_uuid BLOB NOT NULL,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    user_uuid BLOB NOT NULL REFERENCES users (user_uuid),
    user_sub TEXT,
    scope TEXT NOT NULL,
    status TEXT NOT NULL,
    token_auth TEXT NOT NULL,
    sealed_access_token BLOB,
    sealed_refresh_token BLOB,
    version INTEGER NOT NULL,
    linked_at TEXT NOT NULL,
    expires_at TEXT,
    refresh_at TEXT,
    lease_uuid BLOB,
    lease_until TEXT,
    refresh_error TEXT,
    retry_at TEXT,
    revoked_at TEXT
) STRICT;
CREATE UNIQUE INDEX supplier_links_uuid ON supplier_links (link_uuid);
CREATE INDEX supplier_links_user ON supplier_links (user_uuid, supplier_link_id) WHERE status = 'ACTIVE';
CREATE INDEX supplier_links_tenant ON supplier_links (tenant_uuid, user_sub);
CREATE INDEX supplier_links_revoked ON supplier_links (revoked_at) WHERE revoked_at IS NOT NULL;
