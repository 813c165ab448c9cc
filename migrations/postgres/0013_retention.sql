-- What tenants store, and what becomes of it with time. The SQLite twin of this file has the same tables, columns and indexes.

-- What a tenant stores, by kind and by month of receipt (202611 is November 2026), in bytes: the text of the records, and 128 for each record. day_bytes is what was
-- uploaded on day (days since 1970), also where it is gone again.
CREATE TABLE stored_bytes (
    tenant_uuid UUID NOT NULL,
    kind TEXT NOT NULL,
    month BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    day BIGINT NOT NULL,
    day_bytes BIGINT NOT NULL,
    PRIMARY KEY (tenant_uuid, kind, month)
);
INSERT INTO stored_bytes SELECT tenant_uuid, 'BLE_EVENTS', CAST(to_char(to_timestamp(ble_event_id / 1000000) AT TIME ZONE 'UTC', 'YYYYMM') AS BIGINT) AS month,
    SUM(octet_length(event) + 128), 0, 0 FROM ble_events GROUP BY tenant_uuid, month;
INSERT INTO stored_bytes SELECT tenant_uuid, 'LOGS', CAST(to_char(to_timestamp(hub_log_id / 1000000) AT TIME ZONE 'UTC', 'YYYYMM') AS BIGINT) AS month,
    SUM(octet_length(body) + 128), 0, 0 FROM hub_logs GROUP BY tenant_uuid, month;
INSERT INTO stored_bytes SELECT tenant_uuid, 'TELEMETRY', CAST(to_char(to_timestamp(hub_telemetry_id / 1000000) AT TIME ZONE 'UTC', 'YYYYMM') AS BIGINT) AS month,
    SUM(octet_length(body) + 128), 0, 0 FROM hub_telemetry GROUP BY tenant_uuid, month;
INSERT INTO stored_bytes SELECT tenant_uuid, 'JOB_EVENTS', CAST(to_char(to_timestamp(hub_job_event_id / 1000000) AT TIME ZONE 'UTC', 'YYYYMM') AS BIGINT) AS month,
    SUM(octet_length(body) + 128), 0, 0 FROM hub_job_events GROUP BY tenant_uuid, month;

-- Retention reads every log by tenant and age.
CREATE INDEX hub_telemetry_tenant ON hub_telemetry (tenant_uuid, hub_telemetry_id);
DROP INDEX hub_job_events_age;
DELETE FROM tasks WHERE kind = 'upkeep.hub_job_events';

-- The refreshes of a hub on one day (days since 1970): hour_count those of hour (hours since 1970), entries those that have an audit entry of their own, the
-- last of them from address. When the day is over, one entry states the rest, and the row goes.
CREATE TABLE hub_refreshes (
    hub_uuid UUID NOT NULL,
    day BIGINT NOT NULL,
    tenant_uuid UUID NOT NULL,
    refreshes BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    address TEXT,
    first_at TIMESTAMPTZ NOT NULL,
    last_at TIMESTAMPTZ NOT NULL,
    hour BIGINT NOT NULL,
    hour_count BIGINT NOT NULL,
    PRIMARY KEY (hub_uuid, day)
);
CREATE INDEX hub_refreshes_day ON hub_refreshes (day);

-- The refreshes of a login in the hour that refresh_hour names (hours since 1970).
ALTER TABLE logins ADD COLUMN refresh_hour BIGINT NOT NULL DEFAULT 0;
ALTER TABLE logins ADD COLUMN refresh_count BIGINT NOT NULL DEFAULT 0;

-- Retention deletes entries of the audit log by age; nothing deletes those of the last day that has any, or changes one.
DROP TRIGGER audit_logs_append_only ON audit_logs;
CREATE TRIGGER audit_logs_append_only BEFORE UPDATE OR TRUNCATE ON audit_logs EXECUTE FUNCTION audit_logs_append_only();
CREATE FUNCTION audit_logs_keep_last_day() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    newest_gone TIMESTAMPTZ := (SELECT MAX(created_at) FROM gone);
    newest TIMESTAMPTZ := (SELECT MAX(created_at) FROM (
        SELECT MAX(created_at) AS created_at FROM audit_logs WHERE actor = 'USER' UNION ALL SELECT MAX(created_at) FROM audit_logs WHERE actor = 'API_KEY'
        UNION ALL SELECT MAX(created_at) FROM audit_logs WHERE actor = 'HUB' UNION ALL SELECT MAX(created_at) FROM audit_logs WHERE actor = 'SYSTEM') AS found);
BEGIN
    IF newest_gone > COALESCE(newest, newest_gone) - INTERVAL '1 day' THEN RAISE EXCEPTION 'audit_logs is append-only'; END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER audit_logs_keep_last_day AFTER DELETE ON audit_logs REFERENCING OLD TABLE AS gone EXECUTE FUNCTION audit_logs_keep_last_day();
