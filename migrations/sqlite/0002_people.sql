-- Who may call: external accounts, API keys, invitations, transfers, mail, and the keys that seal. The PostgreSQL twin of this file has the same
-- tables, columns and indexes.

-- Who vouches for an account, and under which name: an OpenID Connect issuer and its `sub`; for the built-in login, '' and the e-mail.
-- An account of another issuer has no password, and no e-mail unless the issuer vouches for it: both are '' then.
ALTER TABLE users ADD COLUMN issuer TEXT NOT NULL DEFAULT '';
ALTER TABLE users ADD COLUMN subject TEXT NOT NULL DEFAULT '';
UPDATE users SET subject = email;
DROP INDEX users_email;
CREATE UNIQUE INDEX users_subject ON users (issuer, subject);
CREATE INDEX users_email ON users (email);

CREATE TABLE password_resets (
    token_hash BLOB PRIMARY KEY,
    user_uuid BLOB NOT NULL REFERENCES users (user_uuid),
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL
) STRICT;
CREATE INDEX password_resets_user ON password_resets (user_uuid);
CREATE INDEX password_resets_expires ON password_resets (expires_at);

-- Mail that is still to be sent. It may hold a token, so it is sealed.
CREATE TABLE mails (
    mail_uuid BLOB PRIMARY KEY,
    sealed_mail BLOB NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

-- mail_uuid is the mail with the token in force, for as long as it waits to be sent.
CREATE TABLE invitations (
    invitation_id INTEGER PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    email TEXT NOT NULL,
    role TEXT NOT NULL,
    token_hash BLOB NOT NULL,
    invited_by_user_uuid BLOB NOT NULL,
    mail_uuid BLOB NOT NULL,
    created_at TEXT NOT NULL,
    sent_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    accepted_at TEXT,
    accepted_by_user_uuid BLOB,
    revoked_at TEXT
) STRICT;
CREATE UNIQUE INDEX invitations_token ON invitations (token_hash);
CREATE INDEX invitations_tenant ON invitations (tenant_uuid, sent_at, invitation_id) WHERE accepted_at IS NULL AND revoked_at IS NULL;
CREATE UNIQUE INDEX invitations_open ON invitations (tenant_uuid, email) WHERE accepted_at IS NULL AND revoked_at IS NULL;

-- Ownership on its way to a person (the user of the persona that was named) or to a unit (another tenant).
CREATE TABLE transfer_requests (
    request_uuid BLOB PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    requested_by_user_uuid BLOB NOT NULL,
    requested_by_persona_uuid BLOB NOT NULL,
    target_persona_uuid BLOB,
    target_user_uuid BLOB,
    target_tenant_uuid BLOB,
    message TEXT,
    status TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    settled_at TEXT,
    settled_by_user_uuid BLOB
) STRICT;
CREATE UNIQUE INDEX transfer_requests_pending ON transfer_requests (tenant_uuid) WHERE status = 'PENDING';
CREATE INDEX transfer_requests_target_user ON transfer_requests (target_user_uuid, created_at) WHERE status = 'PENDING';
CREATE INDEX transfer_requests_target_tenant ON transfer_requests (target_tenant_uuid, created_at) WHERE status = 'PENDING';
CREATE INDEX transfer_requests_requester ON transfer_requests (requested_by_user_uuid, created_at) WHERE status = 'PENDING';

-- scopes are separated by blanks. window_requests counts what was handed out of the minute's limit; window_replica is the one replica it was handed
-- to, none when there were several.
CREATE TABLE api_keys (
    api_key_id INTEGER PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    key_prefix TEXT NOT NULL,
    secret_hash BLOB NOT NULL,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,
    rate_limit_per_minute INTEGER NOT NULL,
    created_by_user_uuid BLOB NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    deactivated_at TEXT,
    last_used_at TEXT,
    window_minute INTEGER NOT NULL DEFAULT 0,
    window_requests INTEGER NOT NULL DEFAULT 0,
    window_replica BLOB
) STRICT;
CREATE UNIQUE INDEX api_keys_prefix ON api_keys (key_prefix);
CREATE INDEX api_keys_tenant ON api_keys (tenant_uuid, api_key_id);

-- The master keys that something in this database is sealed with, by their ids: the service refuses to start without one of them.
CREATE TABLE sealing_keys (
    key_id TEXT PRIMARY KEY,
    created_at TEXT NOT NULL
) STRICT;

-- A new signing key is published before it signs.
ALTER TABLE signing_keys ADD COLUMN signs_from TEXT NOT NULL DEFAULT '1970-01-01T00:00:00.000000Z';

-- actor is USER, API_KEY, HUB or SYSTEM; actor_name is the worker's, where it was one. actor_key tells one actor of all kinds: `USER:<uuid>`,
-- `API_KEY:<id>`, `HUB:<uuid>`, `SYSTEM:<name>`.
ALTER TABLE audit_logs ADD COLUMN actor_name TEXT;
ALTER TABLE audit_logs ADD COLUMN actor_key TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_logs ADD COLUMN persona_uuid BLOB;
ALTER TABLE audit_logs ADD COLUMN api_key_id INTEGER;
ALTER TABLE audit_logs ADD COLUMN address TEXT;
ALTER TABLE audit_logs ADD COLUMN object_type TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_logs ADD COLUMN before_state TEXT;
ALTER TABLE audit_logs ADD COLUMN after_state TEXT;
UPDATE audit_logs SET actor_name = actor, actor = 'SYSTEM' WHERE actor NOT IN ('USER', 'HUB');
UPDATE audit_logs SET object_type = substr(action, 1, instr(action, '.') - 1),
    actor_key = actor || ':' || COALESCE(actor_name, lower(substr(hex(actor_uuid), 1, 8) || '-' || substr(hex(actor_uuid), 9, 4) || '-' || substr(hex(actor_uuid), 13, 4) || '-' || substr(hex(actor_uuid), 17, 4) || '-' || substr(hex(actor_uuid), 21)), '');

-- Every list is in the order of time. What is narrowed to neither one actor nor one object is read kind by kind of actor and put together, so that
-- one index serves a filter with and without the kind. What follows the id is there to be looked at without the row.
DROP INDEX audit_logs_tenant;
CREATE INDEX audit_logs_tenant ON audit_logs (tenant_uuid, actor, created_at, audit_log_id);
CREATE INDEX audit_logs_tenant_actor ON audit_logs (tenant_uuid, actor_key, created_at, audit_log_id, action, object_type);
CREATE INDEX audit_logs_tenant_action ON audit_logs (tenant_uuid, action, actor, created_at, audit_log_id);
CREATE INDEX audit_logs_tenant_type ON audit_logs (tenant_uuid, object_type, actor, created_at, audit_log_id);
CREATE INDEX audit_logs_all ON audit_logs (actor, created_at, audit_log_id);
CREATE INDEX audit_logs_actor ON audit_logs (actor_key, created_at, audit_log_id, action, object_type);
CREATE INDEX audit_logs_action ON audit_logs (action, actor, created_at, audit_log_id);
CREATE INDEX audit_logs_type ON audit_logs (object_type, actor, created_at, audit_log_id);
CREATE INDEX audit_logs_target ON audit_logs (target, created_at, audit_log_id, tenant_uuid, actor_key, actor, action, object_type);

-- What was done stays done: the service itself cannot rewrite it.
CREATE TRIGGER audit_logs_no_update BEFORE UPDATE ON audit_logs BEGIN SELECT RAISE(ABORT, 'audit_logs is append-only'); END;
-- INSERT OR REPLACE deletes without asking the trigger below.
CREATE TRIGGER audit_logs_no_replace BEFORE INSERT ON audit_logs WHEN EXISTS (SELECT 1 FROM audit_logs WHERE audit_log_id = NEW.audit_log_id)
BEGIN SELECT RAISE(ABORT, 'audit_logs is append-only'); END;
CREATE TRIGGER audit_logs_no_delete BEFORE DELETE ON audit_logs BEGIN SELECT RAISE(ABORT, 'audit_logs is append-only'); END;
