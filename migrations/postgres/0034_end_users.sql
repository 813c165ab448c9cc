-- End users: since when a hub is theirs, and what they say of themselves. The SQLite twin of this file has the same tables, columns and indexes.

-- Since when the hub is its owner's, who sees nothing of what was heard before.
ALTER TABLE hubs ADD COLUMN owner_since TIMESTAMPTZ;
UPDATE hubs SET owner_since = claimed_at WHERE owner_user_uuid IS NOT NULL;

ALTER TABLE users ADD COLUMN locale TEXT;
ALTER TABLE users ADD COLUMN time_zone TEXT;
ALTER TABLE users ADD COLUMN phone TEXT;
ALTER TABLE users ADD COLUMN avatar_url TEXT;

-- What a supplier asks its users to consent to, by version; one of them is in force. purposes is JSON.
CREATE TABLE consent_settings (
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    version TEXT NOT NULL,
    text TEXT NOT NULL,
    url TEXT,
    purposes TEXT NOT NULL,
    self_pairing BOOLEAN NOT NULL,
    enforce BOOLEAN NOT NULL,
    is_current BOOLEAN NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant_uuid, version)
);
CREATE UNIQUE INDEX consent_settings_current ON consent_settings (tenant_uuid) WHERE is_current;

-- status is GRANTED, WITHDRAWN or OUTDATED (there is a later one for the same hubs); without a hub it is for all of the user's. purposes is a JSON list. receipt is a JWS.
-- What is older than retention_days is deleted; deleted_events tells how many BLE events were.
CREATE TABLE consent_records (
    consent_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    user_uuid UUID NOT NULL,
    hub_uuid UUID,
    version TEXT NOT NULL,
    purposes TEXT NOT NULL,
    status TEXT NOT NULL,
    granted_at TIMESTAMPTZ NOT NULL,
    withdrawn_at TIMESTAMPTZ,
    receipt TEXT NOT NULL,
    retention_days BIGINT,
    retention_from TIMESTAMPTZ,
    deleted_events BIGINT NOT NULL
);
CREATE INDEX consent_records_tenant ON consent_records (tenant_uuid, consent_id);
CREATE INDEX consent_records_user ON consent_records (user_uuid, consent_id);
CREATE INDEX consent_records_withdrawn ON consent_records (tenant_uuid, withdrawn_at) WHERE withdrawn_at IS NOT NULL;
CREATE INDEX consent_records_retention ON consent_records (consent_id) WHERE retention_days IS NOT NULL;

-- Whether the hub reports no BLE events, since its owner has not consented to what its supplier requires.
ALTER TABLE hubs ADD COLUMN withholds_events BOOLEAN NOT NULL DEFAULT FALSE;
-- A key that has signed receipts stays published.
ALTER TABLE signing_keys ADD COLUMN has_signed_receipts BOOLEAN NOT NULL DEFAULT FALSE;
