-- Background work waits in lanes, so that work of one kind cannot keep that of another waiting.
ALTER TABLE tasks ADD COLUMN lane TEXT NOT NULL DEFAULT 'upkeep';
UPDATE tasks SET lane = 'mail' WHERE kind = 'mail.send';
UPDATE tasks SET lane = 'accounts' WHERE kind = 'password.forgot';
UPDATE tasks SET lane = 'rollouts' WHERE kind = 'upkeep.update_policies';
UPDATE tasks SET lane = 'jobs' WHERE kind = 'upkeep.hub_jobs';
DROP INDEX tasks_due;
CREATE INDEX tasks_due ON tasks (lane, next_attempt_at);
