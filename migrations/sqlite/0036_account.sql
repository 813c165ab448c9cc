-- What a person does with their account: pairing hubs, leaving. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- claimed_hub_uuid is the hub that the code was last used by; is_pairing says that a person made the code out to themselves.
ALTER TABLE claim_codes ADD COLUMN claimed_hub_uuid BLOB;
ALTER TABLE claim_codes ADD COLUMN is_pairing INTEGER NOT NULL DEFAULT 0;
CREATE INDEX claim_codes_owner ON claim_codes (owner_user_uuid, created_at) WHERE owner_user_uuid IS NOT NULL;
CREATE INDEX claim_codes_pairing ON claim_codes (expires_at) WHERE is_pairing;

-- An account that is being deleted; nobody logs in to it.
ALTER TABLE users ADD COLUMN deleted_at TEXT;

-- Deletions of accounts that are under way. What is here of the person is what is still looked for; the row goes with the last of it.
-- step is HUBS, RECORDS, AUDIT or FAREWELL; position is how far AUDIT is, up to last_position.
CREATE TABLE account_deletions (
    deletion_uuid BLOB PRIMARY KEY,
    user_uuid BLOB NOT NULL,
    person TEXT NOT NULL,
    step TEXT NOT NULL,
    position INTEGER NOT NULL,
    last_position INTEGER NOT NULL,
    begun_at TEXT NOT NULL
) STRICT;

-- Hubs of such an account that still have something of it. since is when the hub became the person's.
CREATE TABLE account_deletion_hubs (
    deletion_uuid BLOB NOT NULL,
    hub_uuid BLOB NOT NULL,
    tenant_uuid BLOB NOT NULL,
    since TEXT NOT NULL,
    PRIMARY KEY (deletion_uuid, hub_uuid)
) STRICT, WITHOUT ROWID;

-- Subjects of an external issuer whose accounts were deleted, hashed: tokens from before open no new account.
CREATE TABLE deleted_subjects (
    subject_hash BLOB PRIMARY KEY,
    deleted_at TEXT NOT NULL,
    forget_at TEXT NOT NULL
) STRICT;
CREATE INDEX deleted_subjects_age ON deleted_subjects (forget_at);

-- Who did something and to whom is taken out of the log with their account. What was done and when stays as it was.
DROP TRIGGER audit_logs_no_update;
CREATE TRIGGER audit_logs_no_update BEFORE UPDATE ON audit_logs
WHEN NOT EXISTS (SELECT 1 FROM account_deletions)
    OR NEW.audit_log_id IS NOT OLD.audit_log_id OR NEW.tenant_uuid IS NOT OLD.tenant_uuid OR NEW.actor IS NOT OLD.actor OR NEW.actor_name IS NOT OLD.actor_name
    OR NEW.api_key_id IS NOT OLD.api_key_id OR NEW.action IS NOT OLD.action OR NEW.object_type IS NOT OLD.object_type OR NEW.created_at IS NOT OLD.created_at
BEGIN SELECT RAISE(ABORT, 'audit_logs is append-only'); END;
