-- What suppliers do: bundles for hubs, consent of users, links of users, registration events.

-- A supplier bundle: what hubs get when they are claimed. Its parts change in DRAFT only.
CREATE TABLE supplier_bundles (
    bundle_uuid UUID PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    name TEXT NOT NULL,
    description TEXT,
    -- DRAFT, PUBLISHED or ARCHIVED.
    status TEXT NOT NULL,
    auto_apply BOOLEAN NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    published_at TIMESTAMPTZ,
    archived_at TIMESTAMPTZ
);
CREATE INDEX supplier_bundles_tenant ON supplier_bundles (tenant_uuid, created_at, bundle_uuid);
CREATE INDEX supplier_bundles_status
    ON supplier_bundles (tenant_uuid, status, created_at, bundle_uuid);
CREATE INDEX supplier_bundles_catalog
    ON supplier_bundles (published_at, bundle_uuid) WHERE status = 'PUBLISHED';

-- An app of a bundle: either a release, or the newest one of a channel.
CREATE TABLE bundle_apps (
    bundle_uuid UUID NOT NULL REFERENCES supplier_bundles (bundle_uuid) ON DELETE CASCADE,
    app_uuid UUID NOT NULL REFERENCES apps (app_uuid),
    -- The place in the list that the supplier wrote.
    position BIGINT NOT NULL,
    release_uuid UUID,
    channel TEXT,
    PRIMARY KEY (bundle_uuid, app_uuid)
);

-- A device model of a bundle.
CREATE TABLE bundle_devices (
    bundle_uuid UUID NOT NULL REFERENCES supplier_bundles (bundle_uuid) ON DELETE CASCADE,
    device_uuid UUID NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    quantity BIGINT NOT NULL,
    PRIMARY KEY (bundle_uuid, device_uuid)
);
CREATE INDEX bundle_devices_device ON bundle_devices (device_uuid);

-- A pipeline of a bundle.
CREATE TABLE bundle_pipelines (
    bundle_uuid UUID NOT NULL REFERENCES supplier_bundles (bundle_uuid) ON DELETE CASCADE,
    pipeline_uuid UUID NOT NULL REFERENCES pipelines (pipeline_uuid) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    PRIMARY KEY (bundle_uuid, pipeline_uuid)
);
CREATE INDEX bundle_pipelines_pipeline ON bundle_pipelines (pipeline_uuid);

-- A bundle that was applied to a hub. The tables below have what it brought.
CREATE TABLE hub_bundles (
    hub_uuid UUID NOT NULL REFERENCES hubs (hub_uuid),
    bundle_uuid UUID NOT NULL REFERENCES supplier_bundles (bundle_uuid),
    tenant_uuid UUID NOT NULL,
    applied_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (hub_uuid, bundle_uuid)
);
CREATE INDEX hub_bundles_hub ON hub_bundles (hub_uuid, applied_at, bundle_uuid);
CREATE INDEX hub_bundles_bundle ON hub_bundles (bundle_uuid, hub_uuid);
CREATE INDEX hub_bundles_tenant ON hub_bundles (tenant_uuid);

-- An app that a bundle brought to a hub, and the job that installs it.
CREATE TABLE hub_bundle_apps (
    hub_uuid UUID NOT NULL,
    bundle_uuid UUID NOT NULL,
    app_uuid UUID NOT NULL,
    release_uuid UUID NOT NULL,
    version TEXT NOT NULL,
    hub_job_uuid UUID NOT NULL,
    PRIMARY KEY (hub_uuid, bundle_uuid, app_uuid),
    FOREIGN KEY (hub_uuid, bundle_uuid)
        REFERENCES hub_bundles (hub_uuid, bundle_uuid) ON DELETE CASCADE
);

-- A device model that a bundle brought to a hub.
CREATE TABLE hub_bundle_devices (
    hub_uuid UUID NOT NULL,
    bundle_uuid UUID NOT NULL,
    device_uuid UUID NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    quantity BIGINT NOT NULL,
    PRIMARY KEY (hub_uuid, bundle_uuid, device_uuid),
    FOREIGN KEY (hub_uuid, bundle_uuid)
        REFERENCES hub_bundles (hub_uuid, bundle_uuid) ON DELETE CASCADE
);
CREATE INDEX hub_bundle_devices_device ON hub_bundle_devices (device_uuid);

-- A pipeline that a bundle bound a hub to.
CREATE TABLE pipeline_hubs (
    hub_uuid UUID NOT NULL REFERENCES hubs (hub_uuid),
    pipeline_uuid UUID NOT NULL REFERENCES pipelines (pipeline_uuid) ON DELETE CASCADE,
    bundle_uuid UUID NOT NULL,
    tenant_uuid UUID NOT NULL,
    PRIMARY KEY (hub_uuid, pipeline_uuid, bundle_uuid)
);
CREATE INDEX pipeline_hubs_pipeline ON pipeline_hubs (pipeline_uuid, hub_uuid);
CREATE INDEX pipeline_hubs_tenant ON pipeline_hubs (tenant_uuid);

-- A version of what a supplier asks its users to consent to. One of them is in force.
CREATE TABLE consent_settings (
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    version TEXT NOT NULL,
    text TEXT NOT NULL,
    url TEXT,
    -- JSON.
    purposes TEXT NOT NULL,
    self_pairing BOOLEAN NOT NULL,
    enforce BOOLEAN NOT NULL,
    is_current BOOLEAN NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant_uuid, version)
);
CREATE UNIQUE INDEX consent_settings_current ON consent_settings (tenant_uuid) WHERE is_current;

-- A consent that a user granted.
CREATE TABLE consent_records (
    consent_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    user_uuid UUID NOT NULL,
    -- Without a hub, the consent is for all of the user's.
    hub_uuid UUID,
    version TEXT NOT NULL,
    -- A JSON list.
    purposes TEXT NOT NULL,
    -- GRANTED, WITHDRAWN or OUTDATED (there is a later one for the same hubs).
    status TEXT NOT NULL,
    granted_at TIMESTAMPTZ NOT NULL,
    withdrawn_at TIMESTAMPTZ,
    -- A JWS.
    receipt TEXT NOT NULL,
    -- What is older than retention_days is deleted; deleted_events counts BLE events that were.
    retention_days BIGINT,
    retention_from TIMESTAMPTZ,
    deleted_events BIGINT NOT NULL
);
CREATE INDEX consent_records_tenant ON consent_records (tenant_uuid, consent_id);
CREATE INDEX consent_records_user ON consent_records (user_uuid, consent_id);
CREATE INDEX consent_records_withdrawn
    ON consent_records (tenant_uuid, withdrawn_at) WHERE withdrawn_at IS NOT NULL;
CREATE INDEX consent_records_retention
    ON consent_records (consent_id) WHERE retention_days IS NOT NULL;

-- A mandate: a person lets somebody else have data of their devices of one supplier.
CREATE TABLE mandates (
    mandate_uuid UUID PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    user_uuid UUID NOT NULL,
    -- All devices of a hub of the person, or some of the person's.
    hub_uuid UUID,
    -- A JSON list.
    device_instance_ids TEXT,
    -- A JSON list of the names of quantities; without it, all.
    quantities TEXT,
    recipient_name TEXT NOT NULL,
    recipient_email TEXT,
    recipient_url TEXT,
    -- PULL or PUSH.
    form TEXT NOT NULL,
    -- Data is from from_at on, and is handed out until until_at.
    from_at TIMESTAMPTZ NOT NULL,
    until_at TIMESTAMPTZ NOT NULL,
    -- The hash of the bearer, of PULL.
    credential_hash BYTEA,
    -- Where PUSH sends to, and the secret that signs its messages.
    push_url TEXT,
    sealed_signing_secret BYTEA,
    -- A JWS.
    receipt TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    last_used_at TIMESTAMPTZ,
    last_used_address TEXT,
    -- Since when, and why, nothing is handed out: PERSON, EXPIRED, CONSENT_WITHDRAWN,
    -- OWNERSHIP_ENDED or SUPPLIER_DELETED.
    ended_at TIMESTAMPTZ,
    end_reason TEXT
);
CREATE UNIQUE INDEX mandates_credential ON mandates (credential_hash);
CREATE INDEX mandates_user ON mandates (user_uuid, created_at, mandate_uuid);
CREATE INDEX mandates_tenant ON mandates (tenant_uuid, created_at, mandate_uuid);
CREATE INDEX mandates_in_force ON mandates (mandate_uuid) WHERE ended_at IS NULL;
CREATE INDEX mandates_ended ON mandates (ended_at) WHERE ended_at IS NOT NULL;

-- How far PUSH has got, and what kept it from going on.
CREATE TABLE mandate_pushes (
    mandate_uuid UUID PRIMARY KEY REFERENCES mandates (mandate_uuid) ON DELETE CASCADE,
    -- The last event of which everything was sent, or is not the recipient's.
    cursor_id BIGINT NOT NULL,
    due_at TIMESTAMPTZ NOT NULL,
    failures BIGINT NOT NULL,
    last_error TEXT,
    last_sent_at TIMESTAMPTZ
);
CREATE INDEX mandate_pushes_due ON mandate_pushes (due_at);

-- A quantity that a supplier calls a trade secret: people read it, recipients of mandates do not.
CREATE TABLE trade_secrets (
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    quantity TEXT NOT NULL,
    reason TEXT NOT NULL,
    marked_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant_uuid, quantity)
);

-- The configuration in force of a supplier's authorization server, and of the system that gets its
-- registration events.
CREATE TABLE supplier_oauth_configs (
    tenant_uuid UUID PRIMARY KEY REFERENCES tenants (tenant_uuid),
    -- A JSON object without secrets.
    config TEXT NOT NULL,
    sealed_client_secret BYTEA,
    sealed_registration_secret BYTEA,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);

-- A change that a tenant asked for where the platform approves them. A secret that is NULL keeps
-- its value.
CREATE TABLE supplier_oauth_changes (
    supplier_oauth_change_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    change_uuid UUID NOT NULL,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    config TEXT NOT NULL,
    sealed_client_secret BYTEA,
    sealed_registration_secret BYTEA,
    -- PENDING, APPROVED, REJECTED or SUPERSEDED.
    status TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    decided_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX supplier_oauth_changes_uuid ON supplier_oauth_changes (change_uuid);
CREATE UNIQUE INDEX supplier_oauth_changes_one
    ON supplier_oauth_changes (tenant_uuid) WHERE status = 'PENDING';
CREATE INDEX supplier_oauth_changes_tenant
    ON supplier_oauth_changes (tenant_uuid, supplier_oauth_change_id);
CREATE INDEX supplier_oauth_changes_pending
    ON supplier_oauth_changes (supplier_oauth_change_id) WHERE status = 'PENDING';

-- An authorization at a supplier that was begun and not completed; deleted with its first use.
CREATE TABLE supplier_link_attempts (
    -- Of the state that the browser brings back.
    state_hash BYTEA PRIMARY KEY,
    attempt_uuid UUID NOT NULL,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    user_uuid UUID NOT NULL REFERENCES users (user_uuid),
    persona_uuid UUID NOT NULL,
    sealed_verifier BYTEA NOT NULL,
    -- JSON: where the user was sent, and with which redirect URI.
    target TEXT NOT NULL,
    -- Once the supplier has answered: what the person brings, and the supplier's code.
    completion_hash BYTEA,
    sealed_code BYTEA,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX supplier_link_attempts_uuid ON supplier_link_attempts (attempt_uuid);
CREATE INDEX supplier_link_attempts_user ON supplier_link_attempts (user_uuid, created_at);
CREATE INDEX supplier_link_attempts_tenant ON supplier_link_attempts (tenant_uuid);
CREATE INDEX supplier_link_attempts_expiry ON supplier_link_attempts (expires_at);

-- A link of a user to an account at a supplier. A revoked link has tokens until they are revoked at
-- the supplier too.
CREATE TABLE supplier_links (
    supplier_link_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    link_uuid UUID NOT NULL,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    user_uuid UUID NOT NULL REFERENCES users (user_uuid),
    user_sub TEXT,
    scope TEXT NOT NULL,
    -- ACTIVE or REVOKED.
    status TEXT NOT NULL,
    -- How the client authenticates: BASIC, POST or NONE.
    token_auth TEXT NOT NULL,
    sealed_access_token BYTEA,
    sealed_refresh_token BYTEA,
    -- Counts the tokens.
    version BIGINT NOT NULL,
    linked_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    -- When the tokens are to be refreshed; NULL is never.
    refresh_at TIMESTAMPTZ,
    -- The refresh that runs, until lease_until.
    lease_uuid UUID,
    lease_until TIMESTAMPTZ,
    -- How the last refresh failed, and when the next one may run.
    refresh_error TEXT,
    retry_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX supplier_links_uuid ON supplier_links (link_uuid);
CREATE INDEX supplier_links_user
    ON supplier_links (user_uuid, supplier_link_id) WHERE status = 'ACTIVE';
CREATE INDEX supplier_links_tenant ON supplier_links (tenant_uuid, user_sub);
CREATE INDEX supplier_links_revoked ON supplier_links (revoked_at) WHERE revoked_at IS NOT NULL;

-- A message of a supplier, by the hash of its body, so that a repeated one is known.
CREATE TABLE supplier_messages (
    tenant_uuid UUID NOT NULL,
    body_hash BYTEA NOT NULL,
    received_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant_uuid, body_hash)
);
CREATE INDEX supplier_messages_received ON supplier_messages (received_at);

-- A registration event that a supplier is sent.
CREATE TABLE registration_events (
    registration_event_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The same in every try.
    event_uuid UUID NOT NULL,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    event_type TEXT NOT NULL,
    -- The JSON text that is sent, byte for byte.
    payload TEXT NOT NULL,
    -- PENDING, DELIVERED or FAILED.
    status TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    -- NULL unless PENDING.
    next_attempt_at TIMESTAMPTZ,
    last_error TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    delivered_at TIMESTAMPTZ,
    -- NULL while PENDING.
    settled_at TIMESTAMPTZ
);
CREATE INDEX registration_events_due
    ON registration_events (tenant_uuid, next_attempt_at) WHERE status = 'PENDING';
CREATE INDEX registration_events_settled
    ON registration_events (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX registration_events_status ON registration_events (status, registration_event_id);
CREATE INDEX registration_events_tenant ON registration_events (tenant_uuid, registration_event_id);
CREATE INDEX registration_events_type ON registration_events (event_type, registration_event_id);
