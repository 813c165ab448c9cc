-- Notices to the people and systems of tenants. The SQLite twin of this file has the same tables, columns and indexes.

-- What a tenant wants to be told, by type and channel (IN_APP, EMAIL, WEBHOOK). threshold is JSON. Devices are examined by turns: those up to device_cursor were the last.
CREATE TABLE notification_settings (
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    type TEXT NOT NULL,
    channel TEXT NOT NULL,
    enabled BOOLEAN NOT NULL,
    target TEXT,
    threshold TEXT,
    device_cursor BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant_uuid, type, channel)
);
CREATE INDEX notification_settings_enabled ON notification_settings (tenant_uuid) WHERE enabled;

-- A condition that held: since opened_at, told of at raised_at, over since over_at, and done with at closed_at. subject names what it concerns.
CREATE TABLE notice_incidents (
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    type TEXT NOT NULL,
    channel TEXT NOT NULL,
    subject TEXT NOT NULL,
    name TEXT NOT NULL,
    detail TEXT NOT NULL,
    hub_uuid UUID,
    device_instance_id BIGINT,
    opened_at TIMESTAMPTZ NOT NULL,
    raised_at TIMESTAMPTZ,
    over_at TIMESTAMPTZ,
    closed_at TIMESTAMPTZ,
    PRIMARY KEY (tenant_uuid, type, channel, subject)
);
CREATE INDEX notice_incidents_open ON notice_incidents (tenant_uuid, type, channel) WHERE closed_at IS NULL;
CREATE INDEX notice_incidents_closed ON notice_incidents (closed_at) WHERE closed_at IS NOT NULL;

-- Of channel IN_APP: shown to members. Of the others: sent at sent_at, or due at next_attempt_at; both are null of what was given up.
CREATE TABLE notices (
    notice_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    notice_uuid UUID NOT NULL,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    type TEXT NOT NULL,
    channel TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    severity TEXT NOT NULL,
    hub_uuid UUID,
    device_instance_id BIGINT,
    created_at TIMESTAMPTZ NOT NULL,
    attempts BIGINT NOT NULL,
    next_attempt_at TIMESTAMPTZ,
    sent_at TIMESTAMPTZ,
    last_error TEXT
);
CREATE INDEX notices_tenant ON notices (tenant_uuid, channel, notice_id);
CREATE INDEX notices_due ON notices (tenant_uuid, channel, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX notices_created ON notices (created_at);

-- Who has read what.
CREATE TABLE notice_reads (
    user_uuid UUID NOT NULL REFERENCES users (user_uuid),
    notice_id BIGINT NOT NULL REFERENCES notices (notice_id) ON DELETE CASCADE,
    read_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (notice_id, user_uuid)
);

-- The one row of the scan for conditions: when it last ran, until when nobody is told of what is silent, and the tenant that is next.
CREATE TABLE notice_scans (
    scan_id BIGINT PRIMARY KEY,
    last_scan_at TIMESTAMPTZ NOT NULL,
    quiet_until TIMESTAMPTZ NOT NULL,
    next_tenant_uuid UUID
);

-- Jobs that ended are looked up by time.
CREATE INDEX hub_jobs_finished ON hub_jobs (tenant_uuid, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX hub_jobs_running ON hub_jobs (tenant_uuid, status) WHERE finished_at IS NULL;

-- How many BLE events a tenant got in a minute (since 1970), and how many of them were decoded. counted_to is the first minute that is not counted yet.
CREATE TABLE ble_minutes (
    tenant_uuid UUID NOT NULL,
    minute BIGINT NOT NULL,
    events BIGINT NOT NULL,
    decoded BIGINT NOT NULL,
    PRIMARY KEY (tenant_uuid, minute)
);
CREATE INDEX ble_minutes_age ON ble_minutes (minute);
CREATE TABLE ble_minute_cursors (
    tenant_uuid UUID PRIMARY KEY,
    counted_to BIGINT NOT NULL
);
