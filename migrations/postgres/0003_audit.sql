-- The audit log, which the service itself cannot rewrite.

-- An entry: who did what to which object.
CREATE TABLE audit_logs (
    audit_log_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_uuid UUID,
    -- USER, API_KEY, HUB or SYSTEM.
    actor TEXT NOT NULL,
    -- One actor of all kinds: `USER:<uuid>`, `API_KEY:<id>`, `HUB:<uuid>`, `SYSTEM:<name>`.
    actor_key TEXT NOT NULL DEFAULT '',
    actor_uuid UUID,
    -- The name of the background work, if that was the actor.
    actor_name TEXT,
    persona_uuid UUID,
    api_key_id BIGINT,
    address TEXT,
    action TEXT NOT NULL,
    object_type TEXT NOT NULL DEFAULT '',
    target TEXT NOT NULL,
    detail JSONB NOT NULL,
    before_state JSONB,
    after_state JSONB,
    request_id TEXT,
    created_at TIMESTAMPTZ NOT NULL
);
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

-- Nothing deletes all entries at once.
CREATE FUNCTION audit_logs_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit_logs is append-only';
END $$;
CREATE TRIGGER audit_logs_append_only BEFORE TRUNCATE ON audit_logs
    EXECUTE FUNCTION audit_logs_append_only();

-- While accounts are deleted, who did something and to whom is taken out of entries. What was done
-- and when stays as it was.
CREATE FUNCTION audit_logs_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM account_deletions)
        OR (NEW.audit_log_id, NEW.tenant_uuid, NEW.actor, NEW.actor_name,
            NEW.api_key_id, NEW.action, NEW.object_type, NEW.created_at)
            IS DISTINCT FROM (OLD.audit_log_id, OLD.tenant_uuid, OLD.actor, OLD.actor_name,
            OLD.api_key_id, OLD.action, OLD.object_type, OLD.created_at)
    THEN RAISE EXCEPTION 'audit_logs is append-only'; END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER audit_logs_stay BEFORE UPDATE ON audit_logs
    FOR EACH ROW EXECUTE FUNCTION audit_logs_stay();

-- Retention deletes entries by age. Nothing deletes those of the last day that has any. The latest
-- time is read kind by kind of actor, because the index on the time begins with the kind.
CREATE FUNCTION audit_logs_keep_last_day() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    newest_gone TIMESTAMPTZ := (SELECT MAX(created_at) FROM gone);
    newest TIMESTAMPTZ := (SELECT MAX(created_at) FROM (
        SELECT MAX(created_at) AS created_at FROM audit_logs WHERE actor = 'USER'
        UNION ALL SELECT MAX(created_at) FROM audit_logs WHERE actor = 'API_KEY'
        UNION ALL SELECT MAX(created_at) FROM audit_logs WHERE actor = 'HUB'
        UNION ALL SELECT MAX(created_at) FROM audit_logs WHERE actor = 'SYSTEM') AS found);
BEGIN
    IF newest_gone > COALESCE(newest, newest_gone) - INTERVAL '1 day'
    THEN RAISE EXCEPTION 'audit_logs is append-only'; END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER audit_logs_keep_last_day AFTER DELETE ON audit_logs
    REFERENCING OLD TABLE AS gone EXECUTE FUNCTION audit_logs_keep_last_day();
