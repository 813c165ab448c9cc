-- Notices to the people and systems of tenants. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- What a tenant wants to be told, by type and channel (IN_APP, EMAIL, WEBHOOK). threshold is JSON. Devices are examined by turns: those up to device_cursor were the last.
CREATE TABLE notification_settings (
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    type TEXT NOT NULL,
    channel TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    target TEXT,
    threshold TEXT,
    device_cursor INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, type, channel)
) STRICT;
CREATE INDEX notification_settings_enabled ON notification_settings (tenant_uuid) WHERE enabled;

-- A condition that held: since opened_at, told of at raised_at, over since over_at, and done with at closed_at. subject names what it concerns.
CREATE TABLE notice_incidents (
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    type TEXT NOT NULL,
    channel TEXT NOT NULL,
    subject TEXT NOT NULL,
    name TEXT NOT NULL,
    detail TEXT NOT NULL,
    hub_uuid BLOB,
    device_instance_id INTEGER,
    opened_at TEXT NOT NULL,
    raised_at TEXT,
    over_at TEXT,
    closed_at TEXT,
    PRIMARY KEY (tenant_uuid, type, channel, subject)
) STRICT;
CREATE INDEX notice_incidents_open ON notice_incidents (tenant_uuid, type, channel) WHERE closed_at IS NULL;
CREATE INDEX notice_incidents_closed ON notice_incidents (closed_at) WHERE closed_at IS NOT NULL;

-- Of channel IN_APP: shown to members. Of the others: sent at sent_at, or due at next_attempt_at; both are null of what was given up.
CREATE TABLE notices (
    notice_id INTEGER PRIMARY KEY AUTOINCREMENT,
    notice_uuid BLOB NOT NULL,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    type TEXT NOT NULL,
    channel TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    severity TEXT NOT NULL,
    hub_uuid BLOB,
    device_instance_id INTEGER,
    created_at TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    next_attempt_at TEXT,
    sent_at TEXT,
    last_error TEXT
) STRICT;
CREATE INDEX notices_tenant ON notices (tenant_uuid, channel, notice_id);
CREATE INDEX notices_due ON notices (tenant_uuid, channel, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX notices_created ON notices (created_at);

-- Who has read what.
CREATE TABLE notice_reads (
    user_uuid BLOB NOT NULL REFERENCES users (user_uuid),
    notice_id INTEGER NOT NULL REFERENCES notices (notice_id) ON DELETE CASCADE,
    read_at TEXT NOT NULL,
    PRIMARY KEY (notice_id, user_uuid)
) STRICT;

-- The one row of the scan for conditions: when it last ran, until when nobody is told of what is silent, and the tenant that is next.
CREATE TABLE notice_scans (
    scan_id INTEGER PRIMARY KEY,
    last_scan_at TEXT NOT NULL,
    quiet_until TEXT NOT NULL,
    next_tenant_uuid BLOB
) STRICT;

-- Jobs that ended are looked up by time.
CREATE INDEX hub_jobs_finished ON hub_jobs (tenant_uuid, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX hub_jobs_running ON hub_jobs (tenant_uuid, status) WHERE finished_at IS NULL;

-- How many BLE events a tenant got in a minute (since 1970), and how many of them were decoded. counted_to is the first minute that is not counted yet.
CREATE TABLE ble_minutes (
    tenant_uuid BLOB NOT NULL,
    minute INTEGER NOT NULL,
    events INTEGER NOT NULL,
    decoded INTEGER NOT NULL,
    PRIMARY KEY (tenant_uuid, minute)
) STRICT, WITHOUT ROWID;
CREATE INDEX ble_minutes_age ON ble_minutes (minute);
CREATE TABLE ble_minute_cursors (
    tenant_uuid BLOB PRIMARY KEY,
    counted_to INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
