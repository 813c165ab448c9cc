-- To whom a tenant lends a hub to set it up. The SQLite twin of this file has the same tables, columns and indexes.

-- Of user_uuid and email there is one; an e-mail is in lower case, and need not be an account's yet. The id of a row that is gone is not given again.
CREATE TABLE setup_delegations (
    setup_delegation_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hub_uuid UUID NOT NULL REFERENCES hubs (hub_uuid),
    tenant_uuid UUID NOT NULL,
    user_uuid UUID,
    email TEXT,
    expires_at TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX setup_delegations_user ON setup_delegations (user_uuid, hub_uuid);
CREATE UNIQUE INDEX setup_delegations_email ON setup_delegations (email, hub_uuid);
CREATE INDEX setup_delegations_hub ON setup_delegations (hub_uuid, setup_delegation_id);
