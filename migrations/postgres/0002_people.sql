-- Who may call: accounts, tenants and their members, logins, API keys; and accounts that go.

-- The account of a person.
CREATE TABLE users (
    user_uuid UUID PRIMARY KEY,
    -- Who vouches for the account, and under which name: an OpenID Connect issuer and its `sub`;
    -- for the built-in login, '' and the e-mail.
    issuer TEXT NOT NULL DEFAULT '',
    subject TEXT NOT NULL DEFAULT '',
    -- An account of another issuer has no password, and no e-mail unless the issuer vouches for it;
    -- '' stands for none.
    email TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    -- When the person showed a token that was mailed to the e-mail.
    email_verified_at TIMESTAMPTZ,
    is_platform_admin BOOLEAN NOT NULL,
    default_persona_uuid UUID NOT NULL,
    nickname TEXT,
    locale TEXT,
    time_zone TEXT,
    phone TEXT,
    avatar_url TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    -- When the deletion of the account began; nobody logs in to it since.
    deleted_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX users_subject ON users (issuer, subject);
CREATE INDEX users_email ON users (email);

-- An organisation with its own hubs, devices and members.
CREATE TABLE tenants (
    tenant_uuid UUID PRIMARY KEY,
    name TEXT NOT NULL,
    -- The tenant's own limits; NULL is the service's default.
    upload_limit_per_minute BIGINT,
    stored_bytes_limit BIGINT,
    bytes_per_day_limit BIGINT,
    hub_limit BIGINT,
    stream_limit BIGINT,
    api_key_limit BIGINT,
    ble_retention_days BIGINT,
    telemetry_retention_days BIGINT,
    log_retention_days BIGINT,
    job_event_retention_days BIGINT,
    delivery_retention_days BIGINT,
    audit_retention_days BIGINT,
    created_at TIMESTAMPTZ NOT NULL,
    deleted_at TIMESTAMPTZ
);
CREATE INDEX tenants_created ON tenants (created_at, tenant_uuid);

-- A user's identity inside one tenant; the one without a tenant is their default.
CREATE TABLE personas (
    persona_uuid UUID PRIMARY KEY,
    user_uuid UUID NOT NULL REFERENCES users (user_uuid),
    tenant_uuid UUID REFERENCES tenants (tenant_uuid),
    role TEXT,
    -- Who made this person a member, until the person accepts; NULL for a membership of the
    -- person's own doing, or accepted.
    added_by_user_uuid UUID,
    created_at TIMESTAMPTZ NOT NULL
);
CREATE UNIQUE INDEX personas_user_tenant ON personas (user_uuid, tenant_uuid);
CREATE INDEX personas_tenant ON personas (tenant_uuid, persona_uuid);
CREATE INDEX personas_accepted
    ON personas (user_uuid, tenant_uuid) WHERE role IS NOT NULL AND added_by_user_uuid IS NULL;
CREATE INDEX personas_added
    ON personas (user_uuid, created_at, persona_uuid)
    WHERE role IS NOT NULL AND added_by_user_uuid IS NOT NULL;

-- A login. Its refresh tokens rotate, and all end with it.
CREATE TABLE logins (
    login_uuid UUID PRIMARY KEY,
    user_uuid UUID NOT NULL REFERENCES users (user_uuid),
    persona_uuid UUID NOT NULL,
    -- Whether the external issuer at which the person signed in says that they administer the
    -- platform. Of people with a password here, users says so.
    is_platform_admin BOOLEAN NOT NULL DEFAULT FALSE,
    -- What the cookie of a browser is looked up by; other logins have refresh tokens instead.
    cookie_hash BYTEA,
    -- The cookie before, and when it was replaced: for a while it is as good.
    previous_cookie_hash BYTEA,
    cookie_replaced_at TIMESTAMPTZ,
    -- When it got its last access token, and from where. The program is what logged in.
    last_used_at TIMESTAMPTZ NOT NULL,
    address TEXT,
    user_agent TEXT,
    -- The refreshes in the hour that refresh_hour names (hours since 1970).
    refresh_hour BIGINT NOT NULL DEFAULT 0,
    refresh_count BIGINT NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    revoked_at TIMESTAMPTZ
);
CREATE INDEX logins_user ON logins (user_uuid);
CREATE INDEX logins_expires ON logins (expires_at);
CREATE UNIQUE INDEX logins_cookie ON logins (cookie_hash) WHERE cookie_hash IS NOT NULL;
CREATE INDEX logins_previous_cookie ON logins (previous_cookie_hash)
    WHERE previous_cookie_hash IS NOT NULL;

-- A refresh token of a login, in force until it is rotated.
CREATE TABLE refresh_tokens (
    token_hash BYTEA PRIMARY KEY,
    login_uuid UUID NOT NULL REFERENCES logins (login_uuid) ON DELETE CASCADE,
    created_at TIMESTAMPTZ NOT NULL,
    rotated_at TIMESTAMPTZ
);
CREATE INDEX refresh_tokens_login ON refresh_tokens (login_uuid);

-- The second factor of an account with a password.
CREATE TABLE second_factors (
    user_uuid UUID PRIMARY KEY REFERENCES users (user_uuid),
    sealed_secret BYTEA NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    -- NULL until a code of it was shown.
    confirmed_at TIMESTAMPTZ,
    -- The time step of the last code that was used, in units of 30 seconds since 1970.
    last_step BIGINT NOT NULL DEFAULT 0
);

-- A code that logs in once without the second factor.
CREATE TABLE recovery_codes (
    user_uuid UUID NOT NULL REFERENCES users (user_uuid),
    code_hash BYTEA NOT NULL,
    PRIMARY KEY (user_uuid, code_hash)
);

-- Failed logins of a subject (an account or an address), so that guessing slows down on every
-- replica alike.
CREATE TABLE login_failures (
    subject TEXT PRIMARY KEY,
    failures BIGINT NOT NULL,
    last_failed_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX login_failures_last ON login_failures (last_failed_at);

-- A network from which somebody has logged in to an account: a right password from one of them is
-- never held up by the failures of strangers.
CREATE TABLE login_addresses (
    user_uuid UUID NOT NULL REFERENCES users (user_uuid),
    network TEXT NOT NULL,
    last_login_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (user_uuid, network)
);

-- A token that was mailed to a person who forgot the password.
CREATE TABLE password_resets (
    token_hash BYTEA PRIMARY KEY,
    user_uuid UUID NOT NULL REFERENCES users (user_uuid),
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX password_resets_user ON password_resets (user_uuid);
CREATE INDEX password_resets_expires ON password_resets (expires_at);

-- An invitation of an e-mail to a tenant.
CREATE TABLE invitations (
    invitation_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    email TEXT NOT NULL,
    role TEXT NOT NULL,
    token_hash BYTEA NOT NULL,
    invited_by_user_uuid UUID NOT NULL,
    -- The mail with the token in force, for as long as it waits to be sent.
    mail_uuid UUID NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    sent_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    accepted_at TIMESTAMPTZ,
    accepted_by_user_uuid UUID,
    revoked_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX invitations_token ON invitations (token_hash);
CREATE INDEX invitations_tenant
    ON invitations (tenant_uuid, sent_at, invitation_id)
    WHERE accepted_at IS NULL AND revoked_at IS NULL;
CREATE UNIQUE INDEX invitations_open
    ON invitations (tenant_uuid, email) WHERE accepted_at IS NULL AND revoked_at IS NULL;
-- Whether somebody is invited, in any tenant.
CREATE INDEX invitations_email
    ON invitations (email) WHERE accepted_at IS NULL AND revoked_at IS NULL;

-- An offer of a tenant's ownership to a person (the user of the persona that was named) or to a
-- unit (another tenant).
CREATE TABLE transfer_requests (
    request_uuid UUID PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    requested_by_user_uuid UUID NOT NULL,
    requested_by_persona_uuid UUID NOT NULL,
    target_persona_uuid UUID,
    target_user_uuid UUID,
    target_tenant_uuid UUID,
    message TEXT,
    status TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    settled_at TIMESTAMPTZ,
    settled_by_user_uuid UUID
);
CREATE UNIQUE INDEX transfer_requests_pending
    ON transfer_requests (tenant_uuid) WHERE status = 'PENDING';
CREATE INDEX transfer_requests_target_user
    ON transfer_requests (target_user_uuid, created_at) WHERE status = 'PENDING';
CREATE INDEX transfer_requests_target_tenant
    ON transfer_requests (target_tenant_uuid, created_at) WHERE status = 'PENDING';
CREATE INDEX transfer_requests_requester
    ON transfer_requests (requested_by_user_uuid, created_at) WHERE status = 'PENDING';

-- A key with which programs of a tenant call.
CREATE TABLE api_keys (
    api_key_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    key_prefix TEXT NOT NULL,
    secret_hash BYTEA NOT NULL,
    name TEXT NOT NULL,
    -- Separated by blanks.
    scopes TEXT NOT NULL,
    rate_limit_per_minute BIGINT NOT NULL,
    -- The requests of a minute's limit that replicas were granted, and the one replica that got
    -- them; NULL when there were several.
    window_minute BIGINT NOT NULL DEFAULT 0,
    window_requests BIGINT NOT NULL DEFAULT 0,
    window_replica UUID,
    created_by_user_uuid UUID NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    deactivated_at TIMESTAMPTZ,
    last_used_at TIMESTAMPTZ
);
CREATE UNIQUE INDEX api_keys_prefix ON api_keys (key_prefix);
CREATE INDEX api_keys_tenant ON api_keys (tenant_uuid, api_key_id);

-- A deletion of an account that is under way. What is here of the person is what is still looked
-- for; the row goes with the last of it.
CREATE TABLE account_deletions (
    deletion_uuid UUID PRIMARY KEY,
    user_uuid UUID NOT NULL,
    person TEXT NOT NULL,
    -- HUBS, RECORDS, AUDIT or FAREWELL.
    step TEXT NOT NULL,
    -- How far AUDIT is, up to last_position.
    position BIGINT NOT NULL,
    last_position BIGINT NOT NULL,
    begun_at TIMESTAMPTZ NOT NULL
);

-- A hub of such an account that still has something of it.
CREATE TABLE account_deletion_hubs (
    deletion_uuid UUID NOT NULL,
    hub_uuid UUID NOT NULL,
    tenant_uuid UUID NOT NULL,
    -- When the hub became the person's.
    since TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (deletion_uuid, hub_uuid)
);

-- A subject of an external issuer whose account was deleted, hashed: tokens from before open no new
-- account.
CREATE TABLE deleted_subjects (
    subject_hash BYTEA PRIMARY KEY,
    deleted_at TIMESTAMPTZ NOT NULL,
    forget_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX deleted_subjects_age ON deleted_subjects (forget_at);
