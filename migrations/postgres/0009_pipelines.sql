-- Data pipelines: which BLE events are sent where, and how far each is.

-- A pipeline.
CREATE TABLE pipelines (
    pipeline_uuid UUID PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    name TEXT NOT NULL,
    description TEXT,
    enabled BOOLEAN NOT NULL,
    revision BIGINT NOT NULL,
    sealed_signing_secret BYTEA,
    -- The end of the signing secret.
    secret_hint TEXT,
    -- Those that it replaced, a list; the last signs as well until previous_secret_until.
    sealed_previous_secret BYTEA,
    previous_secret_until TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX pipelines_tenant ON pipelines (tenant_uuid, created_at, pipeline_uuid);

-- What a pipeline was and is.
CREATE TABLE pipeline_revisions (
    revision_uuid UUID PRIMARY KEY,
    pipeline_uuid UUID NOT NULL REFERENCES pipelines (pipeline_uuid) ON DELETE CASCADE,
    revision BIGINT NOT NULL,
    -- JSON without secrets; these are in sealed_auth, as JSON.
    definition TEXT NOT NULL,
    sealed_auth BYTEA,
    created_at TIMESTAMPTZ NOT NULL,
    UNIQUE (pipeline_uuid, revision)
);

-- A position of a pipeline in the log of its tenant's BLE events.
CREATE TABLE pipeline_lanes (
    lane_uuid UUID PRIMARY KEY,
    pipeline_uuid UUID NOT NULL REFERENCES pipelines (pipeline_uuid) ON DELETE CASCADE,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    -- LIVE: the pipeline itself. REPLAY: from start_id to until_id once more. RETRY: dead letters
    -- that are to be sent once more.
    kind TEXT NOT NULL,
    -- RUNNING, OPEN_CIRCUIT, SUSPENDED, DISABLED; FINISHED and CANCELLED of replays.
    status TEXT NOT NULL,
    start_id BIGINT NOT NULL,
    until_id BIGINT,
    -- Events up to cursor are settled; of those after it, the ranges in settled_ahead. planned
    -- holds the ends of the batches that may be under way.
    cursor BIGINT NOT NULL,
    settled_ahead TEXT,
    planned TEXT,
    dead_letters_only BOOLEAN NOT NULL,
    failures BIGINT NOT NULL,
    next_attempt_at TIMESTAMPTZ,
    failing_since TIMESTAMPTZ,
    last_error TEXT,
    last_delivered_at TIMESTAMPTZ,
    -- Events after lost_from up to lost_to were deleted before they were sent, the last at lost_at.
    lost_from BIGINT,
    lost_to BIGINT,
    lost_at TIMESTAMPTZ,
    -- The state of the steps after snapshot_id.
    snapshot BYTEA,
    snapshot_id BIGINT,
    events BIGINT NOT NULL,
    owner UUID,
    -- Rises with a change by an operator or of the owner: what was done under a lower one is not
    -- stored.
    epoch BIGINT NOT NULL,
    -- Settlements that were stored under this epoch: one is stored once.
    settlements BIGINT NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL,
    finished_at TIMESTAMPTZ
);
CREATE INDEX pipeline_lanes_pipeline ON pipeline_lanes (pipeline_uuid, kind, created_at);
CREATE INDEX pipeline_lanes_tenant ON pipeline_lanes (tenant_uuid, kind);
CREATE INDEX pipeline_lanes_working
    ON pipeline_lanes (owner, lane_uuid) WHERE status IN ('RUNNING', 'OPEN_CIRCUIT');
CREATE INDEX pipeline_lanes_failing
    ON pipeline_lanes (failing_since) WHERE failing_since IS NOT NULL;
CREATE INDEX pipeline_lanes_lost ON pipeline_lanes (lost_at) WHERE lost_at IS NOT NULL;

-- A replica that works on lanes. It raises its beats; a lane whose owner has stopped doing so gets
-- another owner. No clock is compared.
CREATE TABLE pipeline_replicas (
    replica_uuid UUID PRIMARY KEY,
    beats BIGINT NOT NULL,
    beaten_at TIMESTAMPTZ NOT NULL
);

-- An attempt to deliver a message.
CREATE TABLE pipeline_deliveries (
    delivery_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_uuid UUID NOT NULL,
    pipeline_uuid UUID NOT NULL,
    revision BIGINT NOT NULL,
    status TEXT NOT NULL,
    first_event_id BIGINT NOT NULL,
    last_event_id BIGINT NOT NULL,
    events BIGINT NOT NULL,
    -- The differences of the ids, as JSON; NULL for one event.
    event_ids TEXT,
    attempt BIGINT NOT NULL,
    response_status BIGINT,
    response_body TEXT,
    error TEXT,
    duration_millis BIGINT NOT NULL,
    started_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX pipeline_deliveries_tenant ON pipeline_deliveries (tenant_uuid, started_at);
CREATE INDEX pipeline_deliveries_pipeline ON pipeline_deliveries (pipeline_uuid, started_at);

-- A message that the receiver refused, or that a step could not make.
CREATE TABLE dead_letters (
    dlq_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    pipeline_uuid UUID NOT NULL REFERENCES pipelines (pipeline_uuid) ON DELETE CASCADE,
    revision BIGINT NOT NULL,
    -- That of the message, for retries.
    message_id TEXT NOT NULL,
    first_event_id BIGINT NOT NULL,
    last_event_id BIGINT NOT NULL,
    events BIGINT NOT NULL,
    event_ids TEXT,
    -- The first event as it was.
    payload TEXT NOT NULL,
    reason TEXT NOT NULL,
    response_status BIGINT,
    attempts BIGINT NOT NULL,
    -- The revision to send it once more with: ORIGINAL or CURRENT.
    retry TEXT,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX dead_letters_pipeline ON dead_letters (pipeline_uuid, dlq_id);
CREATE INDEX dead_letters_events ON dead_letters (tenant_uuid, last_event_id);
CREATE INDEX dead_letters_retried ON dead_letters (pipeline_uuid, dlq_id) WHERE retry IS NOT NULL;
CREATE INDEX dead_letters_age ON dead_letters (created_at);
