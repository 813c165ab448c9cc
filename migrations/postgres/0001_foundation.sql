-- What the service itself works with: its keys, and the work and the mail that wait.
--
-- The folders postgres and sqlite have the same files, with the same tables, columns and indexes in
-- the same order, so that a diff of two files shows what the databases write differently. SQLite
-- stores UUIDs, hashes and sealed values as BLOB, times and JSON as TEXT, booleans as INTEGER.

-- A master key that something in this database is sealed with, by its id. The service refuses to
-- start without one of them.
CREATE TABLE sealing_keys (
    key_id TEXT PRIMARY KEY,
    created_at TIMESTAMPTZ NOT NULL
);

-- A key that signs tokens, shared by all replicas. The private half is sealed with a master key.
CREATE TABLE signing_keys (
    kid TEXT PRIMARY KEY,
    sealed_private_key BYTEA NOT NULL,
    public_x TEXT NOT NULL,
    public_y TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    -- A new key is published before it signs.
    signs_from TIMESTAMPTZ NOT NULL DEFAULT '1970-01-01T00:00:00.000000Z',
    -- A key that has signed receipts of consents stays published.
    has_signed_receipts BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE INDEX signing_keys_created ON signing_keys (created_at);

-- Background work that is due. A row is leased while the work runs, so that a killed process loses
-- nothing.
CREATE TABLE tasks (
    task_uuid UUID PRIMARY KEY,
    -- Work waits in lanes, so that work of one kind cannot keep that of another waiting.
    lane TEXT NOT NULL DEFAULT 'upkeep',
    kind TEXT NOT NULL,
    -- There is at most one task with the same key.
    dedup_key TEXT,
    payload JSONB NOT NULL,
    attempts BIGINT NOT NULL,
    next_attempt_at TIMESTAMPTZ NOT NULL,
    -- The process that works on it.
    runner_uuid UUID,
    last_error TEXT,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX tasks_dedup ON tasks (dedup_key);
CREATE INDEX tasks_due ON tasks (lane, next_attempt_at);
CREATE INDEX tasks_runner ON tasks (runner_uuid) WHERE runner_uuid IS NOT NULL;

-- A process with tasks. The count grows while it is there.
CREATE TABLE task_runners (
    runner_uuid UUID PRIMARY KEY,
    beats BIGINT NOT NULL
);

-- A mail that is still to be sent. It may hold a token, so it is sealed.
CREATE TABLE mails (
    mail_uuid UUID PRIMARY KEY,
    sealed_mail BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);
