-- What hubs are to do once, what they tell about it, and the apps they are to have and do have. The PostgreSQL twin of this file has the same tables,
-- columns and indexes.

-- revision is the one of the hub's desired state that brought the job: it is the order of a hub's jobs. finished_at is there from when nothing can
-- happen to the job any more. version is what release_uuid is called. detail is for people; result is the JSON that the hub ended the job with.
-- leased_until: until then the hub is trusted to be at it.
CREATE TABLE hub_jobs (
    hub_job_uuid BLOB PRIMARY KEY,
    hub_uuid BLOB NOT NULL REFERENCES hubs (hub_uuid),
    tenant_uuid BLOB NOT NULL,
    revision INTEGER NOT NULL,
    job_type TEXT NOT NULL,
    status TEXT NOT NULL,
    app_uuid BLOB,
    release_uuid BLOB,
    version TEXT,
    policy_uuid BLOB,
    force INTEGER NOT NULL,
    window_start TEXT,
    window_end TEXT,
    deadline_at TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    leased_until TEXT,
    event_count INTEGER NOT NULL,
    progress INTEGER,
    detail TEXT,
    result TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    dispatched_at TEXT,
    started_at TEXT,
    finished_at TEXT
) STRICT;
CREATE UNIQUE INDEX hub_jobs_hub ON hub_jobs (hub_uuid, revision);
CREATE INDEX hub_jobs_open ON hub_jobs (hub_uuid, revision) WHERE finished_at IS NULL;
CREATE INDEX hub_jobs_deadline ON hub_jobs (deadline_at) WHERE finished_at IS NULL;
CREATE INDEX hub_jobs_silent ON hub_jobs (attempts, leased_until) WHERE finished_at IS NULL AND event_count = 0;
CREATE INDEX hub_jobs_policy ON hub_jobs (policy_uuid, release_uuid, status) WHERE policy_uuid IS NOT NULL;

-- hub_job_event_id is receivedAt in microseconds since 1970: the key, the order, the time and the stream's cursor in one. body is the event as JSON.
CREATE TABLE hub_job_events (
    tenant_uuid BLOB NOT NULL,
    hub_uuid BLOB NOT NULL,
    hub_job_event_id INTEGER NOT NULL,
    hub_job_uuid BLOB NOT NULL REFERENCES hub_jobs (hub_job_uuid),
    event_uuid BLOB NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, hub_job_event_id)
) STRICT;
CREATE UNIQUE INDEX hub_job_events_once ON hub_job_events (hub_job_uuid, event_uuid);
CREATE INDEX hub_job_events_job ON hub_job_events (hub_job_uuid, hub_job_event_id);
CREATE INDEX hub_job_events_hub ON hub_job_events (tenant_uuid, hub_uuid, hub_job_event_id);

-- The apps of a hub as operators want them: hub_job_uuid is the last job about the app; release_uuid and version are those of the last installation
-- that succeeded, none before the first.
CREATE TABLE hub_apps (
    hub_uuid BLOB NOT NULL REFERENCES hubs (hub_uuid),
    app_uuid BLOB NOT NULL,
    tenant_uuid BLOB NOT NULL,
    hub_job_uuid BLOB NOT NULL REFERENCES hub_jobs (hub_job_uuid),
    release_uuid BLOB,
    version TEXT,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (hub_uuid, app_uuid)
) STRICT;
CREATE INDEX hub_apps_job ON hub_apps (hub_job_uuid);

-- The apps of a hub as it reports them; each report replaces the one before.
CREATE TABLE hub_installed_apps (
    hub_uuid BLOB NOT NULL REFERENCES hubs (hub_uuid),
    app_uuid BLOB NOT NULL,
    tenant_uuid BLOB NOT NULL,
    release_uuid BLOB NOT NULL,
    version TEXT NOT NULL,
    state TEXT NOT NULL,
    message TEXT,
    since TEXT NOT NULL,
    restarts INTEGER NOT NULL,
    reported_at TEXT NOT NULL,
    PRIMARY KEY (hub_uuid, app_uuid)
) STRICT;
