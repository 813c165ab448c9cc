-- Device commands: what people and suppliers have devices do. The SQLite twin of this file has the same tables, columns and indexes.

-- What a job does with a device, as JSON, until it is finished.
ALTER TABLE hub_jobs ADD COLUMN command TEXT;

-- author_uuid is the user who gave the command in the app, or the tenant. What is carried out by a hub has hub_uuid and hub_job_uuid, and the job says what became of
-- it; of all else result (JSON), error_code and error_message do, from finished_at on. Parameters are not kept.
CREATE TABLE device_commands (
    command_uuid UUID PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    device_instance_id BIGINT NOT NULL REFERENCES device_instances (device_instance_id) ON DELETE CASCADE,
    author_uuid UUID NOT NULL,
    action_id TEXT NOT NULL,
    idempotency_key TEXT,
    hub_uuid UUID,
    hub_job_uuid UUID,
    deadline_at TIMESTAMPTZ NOT NULL,
    result TEXT,
    error_code TEXT,
    error_message TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    finished_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX device_commands_once ON device_commands (device_instance_id, author_uuid, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX device_commands_device ON device_commands (device_instance_id, created_at, command_uuid);
CREATE INDEX device_commands_author ON device_commands (author_uuid, created_at);
CREATE INDEX device_commands_created ON device_commands (created_at);
