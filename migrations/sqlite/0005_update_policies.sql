-- Which release of the agent hubs are to run, and how far each rollout of one has come. The PostgreSQL twin of this file has the same tables, columns and
-- indexes.

-- scope is GLOBAL, UNIT (of tenant_uuid) or HUB (hub_uuid, of tenant_uuid). target is what there is one policy for: GLOBAL, UNIT:<uuid>, HUB:<uuid>. A version is a
-- pin; without one it is the newest of the channel. due_at is when the worker looks at the policy
-- next, sweep_due_at when it begins to go over the hubs anew, swept_to the hub up to which it has gone.
CREATE TABLE update_policies (
    policy_uuid BLOB PRIMARY KEY,
    scope TEXT NOT NULL,
    target TEXT NOT NULL,
    tenant_uuid BLOB REFERENCES tenants (tenant_uuid),
    hub_uuid BLOB REFERENCES hubs (hub_uuid),
    channel TEXT NOT NULL,
    version TEXT,
    auto_update INTEGER NOT NULL,
    window_start TEXT,
    window_end TEXT,
    percent INTEGER NOT NULL,
    step_percent INTEGER NOT NULL,
    step_interval_secs INTEGER NOT NULL,
    max_failure_percent INTEGER NOT NULL,
    silent_after_secs INTEGER NOT NULL,
    min_finished INTEGER NOT NULL,
    swept_to BLOB,
    due_at TEXT NOT NULL,
    sweep_due_at TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX update_policies_target ON update_policies (target);
CREATE INDEX update_policies_scope ON update_policies (scope, created_at, policy_uuid);
CREATE INDEX update_policies_tenant ON update_policies (tenant_uuid, created_at, policy_uuid);
CREATE INDEX update_policies_hub ON update_policies (hub_uuid) WHERE hub_uuid IS NOT NULL;
CREATE INDEX update_policies_due ON update_policies (due_at);

-- One for each policy and release of the agent that it has hubs update to. Hubs are judged by the jobs made from judged_from on. is_wanted: whether the
-- policy still wants this release.
CREATE TABLE update_rollouts (
    policy_uuid BLOB NOT NULL REFERENCES update_policies (policy_uuid) ON DELETE CASCADE,
    release_uuid BLOB NOT NULL,
    version TEXT NOT NULL,
    architecture TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    percent INTEGER NOT NULL,
    is_wanted INTEGER NOT NULL,
    next_step_at TEXT NOT NULL,
    judged_from TEXT NOT NULL,
    started INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    silent INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (policy_uuid, release_uuid)
) STRICT;
