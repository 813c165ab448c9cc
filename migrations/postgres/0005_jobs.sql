-- What hubs run: apps and releases, jobs that install them, and policies for updates of the agent.

-- An app of a tenant.
CREATE TABLE apps (
    app_uuid UUID PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    name TEXT NOT NULL,
    description TEXT,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX apps_name ON apps (tenant_uuid, name);
CREATE INDEX apps_tenant ON apps (tenant_uuid, created_at, app_uuid);

-- A release of an app. What is searched for is beside the manifest.
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
    -- The text that was signed, byte for byte.
    manifest TEXT NOT NULL,
    signature TEXT NOT NULL,
    -- AWAITING_FILE until the file is in the store, then READY.
    status TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    ready_at TIMESTAMPTZ,
    -- When the documents arrived that the manifest names.
    sbom_at TIMESTAMPTZ,
    vex_at TIMESTAMPTZ,
    -- DECLARED by the bill of materials or FOUND in the file, and of how many components.
    component_source TEXT,
    component_count BIGINT,
    -- The last day of its support, such as 2026-01-31.
    supported_until TEXT
);
CREATE UNIQUE INDEX app_releases_counter ON app_releases (app_uuid, counter);
CREATE UNIQUE INDEX app_releases_version
    ON app_releases (app_uuid, version, architecture, downgrade);
CREATE INDEX app_releases_app ON app_releases (app_uuid, created_at, release_uuid);
CREATE INDEX app_releases_support
    ON app_releases (tenant_uuid, supported_until) WHERE supported_until IS NOT NULL;
CREATE INDEX app_releases_awaiting ON app_releases (created_at) WHERE status = 'AWAITING_FILE';

-- A release that the platform offers to all tenants.
CREATE TABLE agent_releases (
    -- Names the same release where a number is asked for.
    asset_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    release_uuid UUID NOT NULL,
    -- Only HUB_AGENT is what hubs update themselves to.
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
    ready_at TIMESTAMPTZ,
    -- When the documents arrived that the manifest names.
    sbom_at TIMESTAMPTZ,
    vex_at TIMESTAMPTZ,
    -- DECLARED by the bill of materials or FOUND in the file, and of how many components.
    component_source TEXT,
    component_count BIGINT,
    -- The last day of its support, such as 2026-01-31.
    supported_until TEXT
);
CREATE UNIQUE INDEX agent_releases_uuid ON agent_releases (release_uuid);
CREATE UNIQUE INDEX agent_releases_counter ON agent_releases (name, counter);
CREATE UNIQUE INDEX agent_releases_version
    ON agent_releases (name, version, architecture, downgrade);
CREATE INDEX agent_releases_channel ON agent_releases (channel, asset_id);
CREATE INDEX agent_releases_support
    ON agent_releases (supported_until) WHERE supported_until IS NOT NULL;
CREATE INDEX agent_releases_awaiting ON agent_releases (created_at) WHERE status = 'AWAITING_FILE';

-- A job: what a hub is to do once.
CREATE TABLE hub_jobs (
    hub_job_uuid UUID PRIMARY KEY,
    hub_uuid UUID NOT NULL REFERENCES hubs (hub_uuid),
    tenant_uuid UUID NOT NULL,
    -- The revision of the hub's desired state that brought the job: the order of a hub's jobs.
    revision BIGINT NOT NULL,
    job_type TEXT NOT NULL,
    status TEXT NOT NULL,
    app_uuid UUID,
    -- version is that of the release.
    release_uuid UUID,
    version TEXT,
    policy_uuid UUID,
    -- What the job does with a device, as JSON, until it is finished.
    command TEXT,
    -- The service to which a move sends the hub, and the claim code there until it is finished.
    service_url TEXT,
    sealed_claim_code BYTEA,
    force BOOLEAN NOT NULL,
    window_start TEXT,
    window_end TEXT,
    deadline_at TIMESTAMPTZ NOT NULL,
    attempts BIGINT NOT NULL,
    -- Until then the hub is trusted to work on the job.
    leased_until TIMESTAMPTZ,
    event_count BIGINT NOT NULL,
    progress BIGINT,
    -- Text to be read by a person.
    detail TEXT,
    -- The JSON with which the hub ended the job.
    result TEXT,
    -- Whether it failed for a cause that passes, so that the hub may get the release again.
    fails_in_passing BOOLEAN NOT NULL DEFAULT FALSE,
    cancelled_by_person BOOLEAN NOT NULL DEFAULT FALSE,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    dispatched_at TIMESTAMPTZ,
    started_at TIMESTAMPTZ,
    -- Since then nothing can happen to the job.
    finished_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX hub_jobs_hub ON hub_jobs (hub_uuid, revision);
CREATE INDEX hub_jobs_open ON hub_jobs (hub_uuid, revision) WHERE finished_at IS NULL;
CREATE INDEX hub_jobs_deadline ON hub_jobs (deadline_at) WHERE finished_at IS NULL;
CREATE INDEX hub_jobs_silent
    ON hub_jobs (attempts, leased_until) WHERE finished_at IS NULL AND event_count = 0;
CREATE INDEX hub_jobs_policy
    ON hub_jobs (policy_uuid, release_uuid, status) WHERE policy_uuid IS NOT NULL;
-- What a policy may still take back.
CREATE INDEX hub_jobs_policy_open
    ON hub_jobs (policy_uuid, release_uuid) WHERE finished_at IS NULL AND policy_uuid IS NOT NULL;
-- Notices look up jobs that ended by time.
CREATE INDEX hub_jobs_finished ON hub_jobs (tenant_uuid, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX hub_jobs_running ON hub_jobs (tenant_uuid, status) WHERE finished_at IS NULL;

-- What a hub reported of a job.
CREATE TABLE hub_job_events (
    tenant_uuid UUID NOT NULL,
    hub_uuid UUID NOT NULL,
    -- The time of receipt in microseconds since 1970: the key, the order and the stream's cursor.
    hub_job_event_id BIGINT NOT NULL,
    hub_job_uuid UUID NOT NULL REFERENCES hub_jobs (hub_job_uuid),
    event_uuid UUID NOT NULL,
    -- The event as JSON.
    body TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, hub_job_event_id)
);
CREATE UNIQUE INDEX hub_job_events_once ON hub_job_events (hub_job_uuid, event_uuid);
CREATE INDEX hub_job_events_job ON hub_job_events (hub_job_uuid, hub_job_event_id);
CREATE INDEX hub_job_events_hub ON hub_job_events (tenant_uuid, hub_uuid, hub_job_event_id);

-- An app that operators want on a hub.
CREATE TABLE hub_apps (
    hub_uuid UUID NOT NULL REFERENCES hubs (hub_uuid),
    app_uuid UUID NOT NULL,
    tenant_uuid UUID NOT NULL,
    -- The last job about the app.
    hub_job_uuid UUID NOT NULL REFERENCES hub_jobs (hub_job_uuid),
    -- Of the last installation that succeeded; NULL before the first.
    release_uuid UUID,
    version TEXT,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (hub_uuid, app_uuid)
);
CREATE INDEX hub_apps_job ON hub_apps (hub_job_uuid);

-- An app that a hub reports to have. Each report replaces the one before.
CREATE TABLE hub_installed_apps (
    hub_uuid UUID NOT NULL REFERENCES hubs (hub_uuid),
    app_uuid UUID NOT NULL,
    tenant_uuid UUID NOT NULL,
    release_uuid UUID NOT NULL,
    version TEXT NOT NULL,
    state TEXT NOT NULL,
    message TEXT,
    since TIMESTAMPTZ NOT NULL,
    restarts BIGINT NOT NULL,
    reported_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (hub_uuid, app_uuid)
);
CREATE INDEX hub_installed_apps_app ON hub_installed_apps (tenant_uuid, app_uuid, hub_uuid);

-- A release of an app that a hub had, from a report of it until one with another release. The last
-- has no end. Of the agent, the app is all zeros.
CREATE TABLE hub_app_periods (
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    hub_uuid UUID NOT NULL REFERENCES hubs (hub_uuid),
    app_uuid UUID NOT NULL,
    began_at TIMESTAMPTZ NOT NULL,
    ended_at TIMESTAMPTZ,
    release_uuid UUID NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, hub_uuid, app_uuid, began_at)
);
CREATE UNIQUE INDEX hub_app_periods_current
    ON hub_app_periods (hub_uuid, app_uuid) WHERE ended_at IS NULL;
CREATE INDEX hub_app_periods_release ON hub_app_periods (release_uuid, tenant_uuid, hub_uuid);
CREATE INDEX hub_app_periods_ended ON hub_app_periods (ended_at) WHERE ended_at IS NOT NULL;

-- A policy: which release of the agent hubs are to run.
CREATE TABLE update_policies (
    policy_uuid UUID PRIMARY KEY,
    -- GLOBAL, UNIT (of tenant_uuid) or HUB (hub_uuid, of tenant_uuid).
    scope TEXT NOT NULL,
    -- What there is one policy for: GLOBAL, UNIT:<uuid>, HUB:<uuid>.
    target TEXT NOT NULL,
    tenant_uuid UUID REFERENCES tenants (tenant_uuid),
    hub_uuid UUID REFERENCES hubs (hub_uuid),
    channel TEXT NOT NULL,
    -- A pin; without one it is the newest version of the channel.
    version TEXT,
    auto_update BOOLEAN NOT NULL,
    window_start TEXT,
    window_end TEXT,
    percent BIGINT NOT NULL,
    step_percent BIGINT NOT NULL,
    step_interval_secs BIGINT NOT NULL,
    max_failure_percent BIGINT NOT NULL,
    silent_after_secs BIGINT NOT NULL,
    min_finished BIGINT NOT NULL,
    -- When the worker looks at the policy next.
    due_at TIMESTAMPTZ NOT NULL,
    -- When it begins to go over all hubs, and the hub up to which it has gone.
    sweep_due_at TIMESTAMPTZ NOT NULL,
    swept_to UUID,
    -- Whether the desired state of the hubs shows what the policy says; if not, told_to is the hub
    -- up to which it does.
    is_told BOOLEAN NOT NULL DEFAULT TRUE,
    told_to UUID,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX update_policies_target ON update_policies (target);
CREATE INDEX update_policies_scope ON update_policies (scope, created_at, policy_uuid);
CREATE INDEX update_policies_tenant ON update_policies (tenant_uuid, created_at, policy_uuid);
CREATE INDEX update_policies_hub ON update_policies (hub_uuid) WHERE hub_uuid IS NOT NULL;
CREATE INDEX update_policies_due ON update_policies (due_at);
CREATE INDEX update_policies_created ON update_policies (created_at, policy_uuid);

-- The rollout of a release of the agent by a policy, and how far it has come.
CREATE TABLE update_rollouts (
    policy_uuid UUID NOT NULL REFERENCES update_policies (policy_uuid) ON DELETE CASCADE,
    release_uuid UUID NOT NULL,
    version TEXT NOT NULL,
    architecture TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    percent BIGINT NOT NULL,
    -- Whether the policy still wants this release.
    is_wanted BOOLEAN NOT NULL,
    -- When the last step was taken.
    stepped_at TIMESTAMPTZ,
    next_step_at TIMESTAMPTZ NOT NULL,
    -- Hubs are judged by the jobs created from then on.
    judged_from TIMESTAMPTZ NOT NULL,
    started BIGINT NOT NULL,
    succeeded BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    silent BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (policy_uuid, release_uuid)
);
