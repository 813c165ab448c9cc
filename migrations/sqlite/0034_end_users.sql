-- End users: since when a hub is theirs, and what they say of themselves. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- Since when the hub is its owner's, who sees nothing of what was heard before.
ALTER TABLE hubs ADD COLUMN owner_since TEXT;
UPDATE hubs SET owner_since = claimed_at WHERE owner_user_uuid IS NOT NULL;

ALTER TABLE users ADD COLUMN locale TEXT;
ALTER TABLE users ADD COLUMN time_zone TEXT;
ALTER TABLE users ADD COLUMN phone TEXT;
ALTER TABLE users ADD COLUMN avatar_url TEXT;

-- What a supplier asks its users to consent to, by version; one of them is in force. purposes is JSON.
CREATE TABLE consent_settings (
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    version TEXT NOT NULL,
    text TEXT NOT NULL,
    url TEXT,
    purposes TEXT NOT NULL,
    self_pairing INTEGER NOT NULL,
    enforce INTEGER NOT NULL,
    is_current INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, version)
) STRICT;
CREATE UNIQUE INDEX consent_settings_current ON consent_settings (tenant_uuid) WHERE is_current;

-- status is GRANTED, WITHDRAWN or OUTDATED (there is a later one for the same hubs); without a hub it is for all of the user's. purposes is a JSON list. receipt is a JWS.
-- What is older than retention_days is deleted; deleted_events tells how many BLE events were.
CREATE TABLE consent_records (
    consent_id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    user_uuid BLOB NOT NULL,
    hub_uuid BLOB,
    version TEXT NOT NULL,
    purposes TEXT NOT NULL,
    status TEXT NOT NULL,
    granted_at TEXT NOT NULL,
    withdrawn_at TEXT,
    receipt TEXT NOT NULL,
    retention_days INTEGER,
    retention_from TEXT,
    deleted_events INTEGER NOT NULL
) STRICT;
CREATE INDEX consent_records_tenant ON consent_records (tenant_uuid, consent_id);
CREATE INDEX consent_records_user ON consent_records (user_uuid, consent_id);
CREATE INDEX consent_records_withdrawn ON consent_records (tenant_uuid, withdrawn_at) WHERE withdrawn_at IS NOT NULL;
CREATE INDEX consent_records_retention ON consent_records (consent_id) WHERE retention_days IS NOT NULL;

-- Whether the hub reports no BLE events, since its owner has not consented to what its supplier requires.
ALTER TABLE hubs ADD COLUMN withholds_events INTEGER NOT NULL DEFAULT 0;
-- A key that has signed receipts stays published.
ALTER TABLE signing_keys ADD COLUMN has_signed_receipts INTEGER NOT NULL DEFAULT 0;
