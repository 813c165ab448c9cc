-- What a person does with their account: pairing hubs, leaving. The SQLite twin of this file has the same tables, columns and indexes.

-- claimed_hub_uuid is the hub that the code was last used by; is_pairing says that a person made the code out to themselves.
ALTER TABLE claim_codes ADD COLUMN claimed_hub_uuid UUID;
ALTER TABLE claim_codes ADD COLUMN is_pairing BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX claim_codes_owner ON claim_codes (owner_user_uuid, created_at) WHERE owner_user_uuid IS NOT NULL;
CREATE INDEX claim_codes_pairing ON claim_codes (expires_at) WHERE is_pairing;

-- An account that is being deleted; nobody logs in to it.
ALTER TABLE users ADD COLUMN deleted_at TIMESTAMPTZ;

-- Deletions of accounts that are under way. What is here of the person is what is still looked for; the row goes with the last of it.
-- step is HUBS, RECORDS, AUDIT or FAREWELL; position is how far AUDIT is, up to last_position.
CREATE TABLE account_deletions (
    deletion_uuid UUID PRIMARY KEY,
    user_uuid UUID NOT NULL,
    person TEXT NOT NULL,
    step TEXT NOT NULL,
    position BIGINT NOT NULL,
    last_position BIGINT NOT NULL,
    begun_at TIMESTAMPTZ NOT NULL
);

-- Hubs of such an account that still have something of it. since is when the hub became the person's.
CREATE TABLE account_deletion_hubs (
    deletion_uuid UUID NOT NULL,
    hub_uuid UUID NOT NULL,
    tenant_uuid UUID NOT NULL,
    since TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (deletion_uuid, hub_uuid)
);

-- Subjects of an external issuer whose accounts were deleted, hashed: tokens from before open no new account.
CREATE TABLE deleted_subjects (
    subject_hash BYTEA PRIMARY KEY,
    deleted_at TIMESTAMPTZ NOT NULL,
    forget_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX deleted_subjects_age ON deleted_subjects (forget_at);

-- Who did something and to whom is taken out of the log with their account. What was done and when stays as it was.
DROP TRIGGER audit_logs_append_only ON audit_logs;
CREATE TRIGGER audit_logs_append_only BEFORE TRUNCATE ON audit_logs EXECUTE FUNCTION audit_logs_append_only();
CREATE FUNCTION audit_logs_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM account_deletions)
        OR (NEW.audit_log_id, NEW.tenant_uuid, NEW.actor, NEW.actor_name, NEW.api_key_id, NEW.action, NEW.object_type, NEW.created_at)
            IS DISTINCT FROM (OLD.audit_log_id, OLD.tenant_uuid, OLD.actor, OLD.actor_name, OLD.api_key_id, OLD.action, OLD.object_type, OLD.created_at)
    THEN RAISE EXCEPTION 'audit_logs is append-only'; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER audit_logs_stay BEFORE UPDATE ON audit_logs FOR EACH ROW EXECUTE FUNCTION audit_logs_stay();
