-- To whom a tenant lends a hub to set it up. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- Of user_uuid and email there is one; an e-mail is in lower case, and need not be an account's yet. The id of a row that is gone is not given again.
CREATE TABLE setup_delegations (
    setup_delegation_id INTEGER PRIMARY KEY AUTOINCREMENT,
    hub_uuid BLOB NOT NULL REFERENCES hubs (hub_uuid),
    tenant_uuid BLOB NOT NULL,
    user_uuid BLOB,
    email TEXT,
    expires_at TEXT,
    created_at TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX setup_delegations_user ON setup_delegations (user_uuid, hub_uuid);
CREATE UNIQUE INDEX setup_delegations_email ON setup_delegations (email, hub_uuid);
CREATE INDEX setup_delegations_hub ON setup_delegations (hub_uuid, setup_delegation_id);
