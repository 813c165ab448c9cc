-- Which release of the agent hubs are to run, and how far each rollout of one has come. The SQLite twin of this file has the same tables, columns and
-- indexes.

-- scope is GLOBAL, UNIT (of tenant_uuid) or HUB (hub_uuid, of tenant_uuid). target is what there is one policy for: GLOBAL, UNIT:<uuid>, HUB:<uuid>. A version is a
-- pin; without one it is the newest of the channel. due_at is when the worker looks at the policy
-- next, sweep_due_at when it begins to go over the hubs anew, swept_to the hub up to which it has gone.
CREATE TABLE update_policies (
    policy_uuid UUID PRIMARY KEY,
    scope TEXT NOT NULL,
    target TEXT NOT NULL,
    tenant_uuid UUID REFERENCES tenants (tenant_uuid),
    hub_uuid UUID REFERENCES hubs (hub_uuid),
    channel TEXT NOT NULL,
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
    swept_to UUID,
    due_at TIMESTAMPTZ NOT NULL,
    sweep_due_at TIMESTAMPTZ NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX update_policies_target ON update_policies (target);
CREATE INDEX update_policies_scope ON update_policies (scope, created_at, policy_uuid);
CREATE INDEX update_policies_tenant ON update_policies (tenant_uuid, created_at, policy_uuid);
CREATE INDEX update_policies_hub ON update_policies (hub_uuid) WHERE hub_uuid IS NOT NULL;
CREATE INDEX update_policies_due ON update_policies (due_at);

-- One for each policy and release of the agent that it has hubs update to. Hubs are judged by the jobs made from judged_from on. is_wanted: whether the
-- policy still wants this release.
CREATE TABLE update_rollouts (
    policy_uuid UUID NOT NULL REFERENCES update_policies (policy_uuid) ON DELETE CASCADE,
    release_uuid UUID NOT NULL,
    version TEXT NOT NULL,
    architecture TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    percent BIGINT NOT NULL,
    is_wanted BOOLEAN NOT NULL,
    next_step_at TIMESTAMPTZ NOT NULL,
    judged_from TIMESTAMPTZ NOT NULL,
    started BIGINT NOT NULL,
    succeeded BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    silent BIGINT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (policy_uuid, release_uuid)
);
