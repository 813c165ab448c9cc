-- The audit log, which the service itself cannot rewrite.

-- An entry: who did what to which object.
CREATE TABLE audit_logs (
    audit_log_id INTEGER PRIMARY KEY,
    tenant_uuid BLOB,
    -- USER, API_KEY, HUB or SYSTEM.
    actor TEXT NOT NULL,
    -- One actor of all kinds: `USER:<uuid>`, `API_KEY:<id>`, `HUB:<uuid>`, `SYSTEM:<name>`.
    actor_key TEXT NOT NULL DEFAULT '',
    actor_uuid BLOB,
    -- The name of the background work, if that was the actor.
    actor_name TEXT,
    persona_uuid BLOB,
    api_key_id INTEGER,
    address TEXT,
    action TEXT NOT NULL,
    object_type TEXT NOT NULL DEFAULT '',
    target TEXT NOT NULL,
    detail TEXT NOT NULL,
    before_state TEXT,
    after_state TEXT,
    request_id TEXT,
    created_at TEXT NOT NULL
) STRICT;
-- Every list is in the order of time. A list of neither one actor nor one object is read kind by
-- kind of actor and merged, so that one index serves a filter with and without the kind. Columns
-- after the id are there to be filtered without reading the row.
CREATE INDEX audit_logs_tenant ON audit_logs (tenant_uuid, actor, created_at, audit_log_id);
CREATE INDEX audit_logs_tenant_actor
    ON audit_logs (tenant_uuid, actor_key, created_at, audit_log_id, action, object_type);
CREATE INDEX audit_logs_tenant_action
    ON audit_logs (tenant_uuid, action, actor, created_at, audit_log_id);
CREATE INDEX audit_logs_tenant_type
    ON audit_logs (tenant_uuid, object_type, actor, created_at, audit_log_id);
CREATE INDEX audit_logs_all ON audit_logs (actor, created_at, audit_log_id);
CREATE INDEX audit_logs_actor
    ON audit_logs (actor_key, created_at, audit_log_id, action, object_type);
CREATE INDEX audit_logs_action ON audit_logs (action, actor, created_at, audit_log_id);
CREATE INDEX audit_logs_type ON audit_logs (object_type, actor, created_at, audit_log_id);
CREATE INDEX audit_logs_target
    ON audit_logs (target, created_at, audit_log_id, tenant_uuid, actor_key, actor, action,
        object_type);

-- INSERT OR REPLACE deletes without firing the trigger on DELETE.
CREATE TRIGGER audit_logs_no_replace BEFORE INSERT ON audit_logs
WHEN EXISTS (SELECT 1 FROM audit_logs WHERE audit_log_id = NEW.audit_log_id)
BEGIN SELECT RAISE(ABORT, 'audit_logs is append-only'); END;

-- While accounts are deleted, who did something and to whom is taken out of entries. What was done
-- and when stays as it was.
CREATE TRIGGER audit_logs_no_update BEFORE UPDATE ON audit_logs
WHEN NOT EXISTS (SELECT 1 FROM account_deletions)
    OR NEW.audit_log_id IS NOT OLD.audit_log_id OR NEW.tenant_uuid IS NOT OLD.tenant_uuid
    OR NEW.actor IS NOT OLD.actor OR NEW.actor_name IS NOT OLD.actor_name
    OR NEW.api_key_id IS NOT OLD.api_key_id OR NEW.action IS NOT OLD.action
    OR NEW.object_type IS NOT OLD.object_type OR NEW.created_at IS NOT OLD.created_at
BEGIN SELECT RAISE(ABORT, 'audit_logs is append-only'); END;

-- Retention deletes entries by age. Nothing deletes those of the last day that has any. The latest
-- time is read kind by kind of actor, because the index on the time begins with the kind.
CREATE TRIGGER audit_logs_no_delete BEFORE DELETE ON audit_logs
WHEN OLD.created_at > strftime('%Y-%m-%dT%H:%M:%f', (SELECT MAX(newest.created_at) FROM (
    SELECT MAX(created_at) AS created_at FROM audit_logs WHERE actor = 'USER'
    UNION ALL SELECT MAX(created_at) FROM audit_logs WHERE actor = 'API_KEY'
    UNION ALL SELECT MAX(created_at) FROM audit_logs WHERE actor = 'HUB'
    UNION ALL SELECT MAX(created_at) FROM audit_logs WHERE actor = 'SYSTEM') AS newest), '-1 day')
BEGIN SELECT RAISE(ABORT, 'audit_logs is append-only'); END;
