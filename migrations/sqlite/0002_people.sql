-- Who may call: accounts, tenants and their members, logins, API keys; and accounts that go.

-- The account of a person.
CREATE TABLE users (
    user_uuid BLOB PRIMARY KEY,
    -- Who vouches for the account, and under which name: an OpenID Connect issuer and its `sub`;
    -- for the built-in login, '' and the e-mail.
    issuer TEXT NOT NULL DEFAULT '',
    subject TEXT NOT NULL DEFAULT '',
    -- An account of another issuer has no password, and no e-mail unless the issuer vouches for it;
    -- '' stands for none.
    email TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    -- When the person showed a token that was mailed to the e-mail.
    email_verified_at TEXT,
    is_platform_admin INTEGER NOT NULL,
    default_persona_uuid BLOB NOT NULL,
    nickname TEXT,
    locale TEXT,
    time_zone TEXT,
    phone TEXT,
    avatar_url TEXT,
    created_at TEXT NOT NULL,
    -- When the deletion of the account began; nobody logs in to it since.
    deleted_at TEXT
) STRICT;
CREATE UNIQUE INDEX users_subject ON users (issuer, subject);
CREATE INDEX users_email ON users (email);

-- An organisation with its own hubs, devices and members.
CREATE TABLE tenants (
    tenant_uuid BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    -- The tenant's own limits; NULL is the service's default.
    upload_limit_per_minute INTEGER,
    stored_bytes_limit INTEGER,
    bytes_per_day_limit INTEGER,
    hub_limit INTEGER,
    stream_limit INTEGER,
    api_key_limit INTEGER,
    ble_retention_days INTEGER,
    telemetry_retention_days INTEGER,
    log_retention_days INTEGER,
    job_event_retention_days INTEGER,
    delivery_retention_days INTEGER,
    audit_retention_days INTEGER,
    created_at TEXT NOT NULL,
    deleted_at TEXT
) STRICT;
CREATE INDEX tenants_created ON tenants (created_at, tenant_uuid);

-- A user's identity inside one tenant; the one without a tenant is their default.
CREATE TABLE personas (
    persona_uuid BLOB PRIMARY KEY,
    user_uuid BLOB NOT NULL REFERENCES users (user_uuid),
    tenant_uuid BLOB REFERENCES tenants (tenant_uuid),
    role TEXT,
    -- Who made this person a member, until the person accepts; NULL for a membership of the
    -- person's own doing, or accepted.
    added_by_user_uuid BLOB,
    created_at TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX personas_user_tenant ON personas (user_uuid, tenant_uuid);
CREATE INDEX personas_tenant ON personas (tenant_uuid, persona_uuid);
CREATE INDEX personas_accepted
    ON personas (user_uuid, tenant_uuid) WHERE role IS NOT NULL AND added_by_user_uuid IS NULL;
CREATE INDEX personas_added
    ON personas (user_uuid, created_at, persona_uuid)
    WHERE role IS NOT NULL AND added_by_user_uuid IS NOT NULL;

-- A login. Its refresh tokens rotate, and all end with it.
CREATE TABLE logins (
    login_uuid BLOB PRIMARY KEY,
    user_uuid BLOB NOT NULL REFERENCES users (user_uuid),
    persona_uuid BLOB NOT NULL,
    -- Whether the external issuer at which the person signed in says that they administer the
    -- platform. Of people with a password here, users says so.
    is_platform_admin INTEGER NOT NULL DEFAULT 0,
    -- What the cookie of a browser is looked up by; other logins have refresh tokens instead.
    cookie_hash BLOB,
    -- The cookie before, and when it was replaced: for a while it is as good.
    previous_cookie_hash BLOB,
    cookie_replaced_at TEXT,
    -- When it got its last access token, and from where. The program is what logged in.
    last_used_at TEXT NOT NULL,
    address TEXT,
    user_agent TEXT,
    -- The refreshes in the hour that refresh_hour names (hours since 1970).
    refresh_hour INTEGER NOT NULL DEFAULT 0,
    refresh_count INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    revoked_at TEXT
) STRICT;
CREATE INDEX logins_user ON logins (user_uuid);
CREATE INDEX logins_expires ON logins (expires_at);
CREATE UNIQUE INDEX logins_cookie ON logins (cookie_hash) WHERE cookie_hash IS NOT NULL;
CREATE INDEX logins_previous_cookie ON logins (previous_cookie_hash)
    WHERE previous_cookie_hash IS NOT NULL;

-- A refresh token of a login, in force until it is rotated.
CREATE TABLE refresh_tokens (
    token_hash BLOB PRIMARY KEY,
    login_uuid BLOB NOT NULL REFERENCES logins (login_uuid) ON DELETE CASCADE,
    created_at TEXT NOT NULL,
    rotated_at TEXT
) STRICT;
CREATE INDEX refresh_tokens_login ON refresh_tokens (login_uuid);

-- The second factor of an account with a password.
CREATE TABLE second_factors (
    user_uuid BLOB PRIMARY KEY REFERENCES users (user_uuid),
    sealed_secret BLOB NOT NULL,
    created_at TEXT NOT NULL,
    -- NULL until a code of it was shown.
    confirmed_at TEXT,
    -- The time step of the last code that was used, in units of 30 seconds since 1970.
    last_step INTEGER NOT NULL DEFAULT 0
) STRICT;

-- A code that logs in once without the second factor.
CREATE TABLE recovery_codes (
    user_uuid BLOB NOT NULL REFERENCES users (user_uuid),
    code_hash BLOB NOT NULL,
    PRIMARY KEY (user_uuid, code_hash)
) STRICT;

-- Failed logins of a subject (an account or an address), so that guessing slows down on every
-- replica alike.
CREATE TABLE login_failures (
    subject TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    last_failed_at TEXT NOT NULL
) STRICT;
CREATE INDEX login_failures_last ON login_failures (last_failed_at);

-- A network from which somebody has logged in to an account: a right password from one of them is
-- never held up by the failures of strangers.
CREATE TABLE login_addresses (
    user_uuid BLOB NOT NULL REFERENCES users (user_uuid),
    network TEXT NOT NULL,
    last_login_at TEXT NOT NULL,
    PRIMARY KEY (user_uuid, network)
) STRICT;

-- A token that was mailed to a person who forgot the password.
CREATE TABLE password_resets (
    token_hash BLOB PRIMARY KEY,
    user_uuid BLOB NOT NULL REFERENCES users (user_uuid),
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL
) STRICT;
CREATE INDEX password_resets_user ON password_resets (user_uuid);
CREATE INDEX password_resets_expires ON password_resets (expires_at);

-- An invitation of an e-mail to a tenant.
CREATE TABLE invitations (
    invitation_id INTEGER PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    email TEXT NOT NULL,
    role TEXT NOT NULL,
    token_hash BLOB NOT NULL,
    invited_by_user_uuid BLOB NOT NULL,
    -- The mail with the token in force, for as long as it waits to be sent.
    mail_uuid BLOB NOT NULL,
    created_at TEXT NOT NULL,
    sent_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    accepted_at TEXT,
    accepted_by_user_uuid BLOB,
    revoked_at TEXT
) STRICT;
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
    request_uuid BLOB PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    requested_by_user_uuid BLOB NOT NULL,
    requested_by_persona_uuid BLOB NOT NULL,
    target_persona_uuid BLOB,
    target_user_uuid BLOB,
    target_tenant_uuid BLOB,
    message TEXT,
    status TEXT NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    settled_at TEXT,
    settled_by_user_uuid BLOB
) STRICT;
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
    api_key_id INTEGER PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    key_prefix TEXT NOT NULL,
    secret_hash BLOB NOT NULL,
    name TEXT NOT NULL,
    -- Separated by blanks.
    scopes TEXT NOT NULL,
    rate_limit_per_minute INTEGER NOT NULL,
    -- The requests of a minute's limit that replicas were granted, and the one replica that got
    -- them; NULL when there were several.
    window_minute INTEGER NOT NULL DEFAULT 0,
    window_requests INTEGER NOT NULL DEFAULT 0,
    window_replica BLOB,
    created_by_user_uuid BLOB NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    deactivated_at TEXT,
    last_used_at TEXT
) STRICT;
CREATE UNIQUE INDEX api_keys_prefix ON api_keys (key_prefix);
CREATE INDEX api_keys_tenant ON api_keys (tenant_uuid, api_key_id);

-- A deletion of an account that is under way. What is here of the person is what is still looked
-- for; the row goes with the last of it.
CREATE TABLE account_deletions (
    deletion_uuid BLOB PRIMARY KEY,
    user_uuid BLOB NOT NULL,
    person TEXT NOT NULL,
    -- HUBS, RECORDS, AUDIT or FAREWELL.
    step TEXT NOT NULL,
    -- How far AUDIT is, up to last_position.
    position INTEGER NOT NULL,
    last_position INTEGER NOT NULL,
    begun_at TEXT NOT NULL
) STRICT;

-- A hub of such an account that still has something of it.
CREATE TABLE account_deletion_hubs (
    deletion_uuid BLOB NOT NULL,
    hub_uuid BLOB NOT NULL,
    tenant_uuid BLOB NOT NULL,
    -- When the hub became the person's.
    since TEXT NOT NULL,
    PRIMARY KEY (deletion_uuid, hub_uuid)
) STRICT, WITHOUT ROWID;

-- A subject of an external issuer whose account was deleted, hashed: tokens from before open no new
-- account.
CREATE TABLE deleted_subjects (
    subject_hash BLOB PRIMARY KEY,
    deleted_at TEXT NOT NULL,
    forget_at TEXT NOT NULL
) STRICT;
CREATE INDEX deleted_subjects_age ON deleted_subjects (forget_at);
