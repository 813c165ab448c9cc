-- What policies need beyond 0005: jobs that a person cancelled are known as such, a step of a rollout by when it began, and a policy for all hubs by how far they
-- have been told of it. The PostgreSQL twin of this file has the same tables, columns and indexes.

ALTER TABLE hub_jobs ADD COLUMN cancelled_by_person INTEGER NOT NULL DEFAULT 0;
UPDATE hub_jobs SET cancelled_by_person = 1 WHERE status = 'CANCELLED' AND detail = 'cancelled by an operator';
-- What a policy may still take back.
CREATE INDEX hub_jobs_policy_open ON hub_jobs (policy_uuid, release_uuid) WHERE finished_at IS NULL AND policy_uuid IS NOT NULL;

-- When its last step was taken.
ALTER TABLE update_rollouts ADD COLUMN stepped_at TEXT;
UPDATE update_rollouts SET stepped_at = judged_from;

-- is_told: whether the desired state of the hubs shows what the policy says; if not, told_to is the hub up to which it does.
ALTER TABLE update_policies ADD COLUMN is_told INTEGER NOT NULL DEFAULT 1;
ALTER TABLE update_policies ADD COLUMN told_to BLOB;
CREATE INDEX update_policies_created ON update_policies (created_at, policy_uuid);
