-- Apps and releases: what hubs may install. The SQLite twin of this file has the same tables, columns and indexes.

CREATE TABLE apps (
    app_uuid UUID PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    name TEXT NOT NULL,
    description TEXT,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX apps_name ON apps (tenant_uuid, name);
CREATE INDEX apps_tenant ON apps (tenant_uuid, created_at, app_uuid);

-- manifest is the text that was signed, byte for byte; what is looked for by is beside it. status is AWAITING_FILE until the file is in the store.
CREATE TABLE app_releases (
    release_uuid UUID PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    app_uuid UUID NOT NULL REFERENCES apps (app_uuid),
    version TEXT NOT NULL,
    architecture TEXT NOT NULL,
    counter BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    downgrade BOOLEAN NOT NULL,
    manifest TEXT NOT NULL,
    signature TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    ready_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX app_releases_counter ON app_releases (app_uuid, counter);
CREATE UNIQUE INDEX app_releases_version ON app_releases (app_uuid, version, architecture, downgrade);
CREATE INDEX app_releases_app ON app_releases (app_uuid, created_at, release_uuid);
CREATE INDEX app_releases_awaiting ON app_releases (created_at) WHERE status = 'AWAITING_FILE';

-- Of no tenant: what the platform offers to all. asset_id names the same release where a number is asked for. Only the category HUB_AGENT is what
-- hubs update themselves to.
CREATE TABLE agent_releases (
    asset_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    release_uuid UUID NOT NULL,
    category TEXT NOT NULL,
    channel TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    architecture TEXT NOT NULL,
    counter BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    downgrade BOOLEAN NOT NULL,
    manifest TEXT NOT NULL,
    signature TEXT NOT NULL,
    status TEXT NOT NULL,
    active BOOLEAN NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    ready_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX agent_releases_uuid ON agent_releases (release_uuid);
CREATE UNIQUE INDEX agent_releases_counter ON agent_releases (name, counter);
CREATE UNIQUE INDEX agent_releases_version ON agent_releases (name, version, architecture, downgrade);
CREATE INDEX agent_releases_channel ON agent_releases (channel, asset_id);
CREATE INDEX agent_releases_awaiting ON agent_releases (created_at) WHERE status = 'AWAITING_FILE';
