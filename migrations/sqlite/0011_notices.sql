-- Notices to the people and systems of tenants.

-- Whether a tenant wants notices of a type on a channel.
CREATE TABLE notification_settings (
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    type TEXT NOT NULL,
    -- IN_APP, EMAIL or WEBHOOK.
    channel TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    target TEXT,
    -- JSON.
    threshold TEXT,
    -- Devices are examined by turns: those up to this one were the last.
    device_cursor INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    -- NULL while nobody has set it.
    updated_at TEXT,
    PRIMARY KEY (tenant_uuid, type, channel)
) STRICT;

-- A condition that held since opened_at. Its notice was made at raised_at; it is over since
-- over_at, and closed at closed_at.
CREATE TABLE notice_incidents (
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    type TEXT NOT NULL,
    channel TEXT NOT NULL,
    -- What it concerns.
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
CREATE INDEX notice_incidents_open
    ON notice_incidents (tenant_uuid, type, channel) WHERE closed_at IS NULL;
CREATE INDEX notice_incidents_closed ON notice_incidents (closed_at) WHERE closed_at IS NOT NULL;

-- A notice. On channel IN_APP it is shown to members.
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
    -- On other channels than IN_APP; both are NULL when the service has given up.
    next_attempt_at TEXT,
    sent_at TEXT,
    last_error TEXT
) STRICT;
CREATE INDEX notices_tenant ON notices (tenant_uuid, channel, notice_id);
CREATE INDEX notices_due
    ON notices (tenant_uuid, channel, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX notices_hub ON notices (hub_uuid, notice_id) WHERE hub_uuid IS NOT NULL;
CREATE INDEX notices_device
    ON notices (device_instance_id, notice_id) WHERE device_instance_id IS NOT NULL;
CREATE INDEX notices_created ON notices (created_at);

-- A notice that a user has read.
CREATE TABLE notice_reads (
    user_uuid BLOB NOT NULL REFERENCES users (user_uuid),
    notice_id INTEGER NOT NULL REFERENCES notices (notice_id) ON DELETE CASCADE,
    read_at TEXT NOT NULL,
    PRIMARY KEY (notice_id, user_uuid)
) STRICT;

-- The scan for conditions, in one row.
CREATE TABLE notice_scans (
    scan_id INTEGER PRIMARY KEY,
    last_scan_at TEXT NOT NULL,
    -- Until then nobody is notified of what is silent.
    quiet_until TEXT NOT NULL,
    next_tenant_uuid BLOB
) STRICT;
