-- Notices to the people and systems of tenants.

-- Whether a tenant wants notices of a type on a channel.
CREATE TABLE notification_settings (
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    type TEXT NOT NULL,
    -- IN_APP, EMAIL or WEBHOOK.
    channel TEXT NOT NULL,
    enabled BOOLEAN NOT NULL,
    target TEXT,
    -- JSON.
    threshold TEXT,
    -- Devices are examined by turns: those up to this one were the last.
    device_cursor BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    -- NULL while nobody has set it.
    updated_at TIMESTAMPTZ,
    PRIMARY KEY (tenant_uuid, type, channel)
);

-- A condition that held since opened_at. Its notice was made at raised_at; it is over since
-- over_at, and closed at closed_at.
CREATE TABLE notice_incidents (
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    type TEXT NOT NULL,
    channel TEXT NOT NULL,
    -- What it concerns.
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
CREATE INDEX notice_incidents_open
    ON notice_incidents (tenant_uuid, type, channel) WHERE closed_at IS NULL;
CREATE INDEX notice_incidents_closed ON notice_incidents (closed_at) WHERE closed_at IS NOT NULL;

-- A notice. On channel IN_APP it is shown to members.
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
    -- On other channels than IN_APP; both are NULL when the service has given up.
    next_attempt_at TIMESTAMPTZ,
    sent_at TIMESTAMPTZ,
    last_error TEXT
);
CREATE INDEX notices_tenant ON notices (tenant_uuid, channel, notice_id);
CREATE INDEX notices_due
    ON notices (tenant_uuid, channel, next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX notices_hub ON notices (hub_uuid, notice_id) WHERE hub_uuid IS NOT NULL;
CREATE INDEX notices_device
    ON notices (device_instance_id, notice_id) WHERE device_instance_id IS NOT NULL;
CREATE INDEX notices_created ON notices (created_at);

-- A notice that a user has read.
CREATE TABLE notice_reads (
    user_uuid UUID NOT NULL REFERENCES users (user_uuid),
    notice_id BIGINT NOT NULL REFERENCES notices (notice_id) ON DELETE CASCADE,
    read_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (notice_id, user_uuid)
);

-- The scan for conditions, in one row.
CREATE TABLE notice_scans (
    scan_id BIGINT PRIMARY KEY,
    last_scan_at TIMESTAMPTZ NOT NULL,
    -- Until then nobody is notified of what is silent.
    quiet_until TIMESTAMPTZ NOT NULL,
    next_tenant_uuid UUID
);
