-- Hubs: their claims, what is known of them, certificates, who may set them up, where they are.

-- A code with which hubs are claimed for a tenant.
CREATE TABLE claim_codes (
    code_hash BLOB PRIMARY KEY,
    -- The name of the code for those who must not know it.
    claim_code_uuid BLOB NOT NULL,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    sealed_code BLOB NOT NULL,
    max_uses INTEGER NOT NULL,
    use_count INTEGER NOT NULL,
    -- Whether a claim may replace credentials that are in force.
    allow_reclaim INTEGER NOT NULL DEFAULT 0,
    bundle_uuid BLOB,
    hub_identifier TEXT,
    owner_user_uuid BLOB,
    -- Whether a person made the code out to themselves.
    is_pairing INTEGER NOT NULL DEFAULT 0,
    -- The hub that used the code last.
    claimed_hub_uuid BLOB,
    note TEXT,
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    revoked_at TEXT
) STRICT;
CREATE INDEX claim_codes_tenant ON claim_codes (tenant_uuid, created_at, code_hash);
CREATE UNIQUE INDEX claim_codes_uuid ON claim_codes (claim_code_uuid);
CREATE INDEX claim_codes_owner
    ON claim_codes (owner_user_uuid, created_at) WHERE owner_user_uuid IS NOT NULL;
CREATE INDEX claim_codes_pairing ON claim_codes (expires_at) WHERE is_pairing;

-- A claimed hub. A released hub keeps its row, which its records belong to, and frees its hardware:
-- the next claim of it makes another hub.
CREATE TABLE hubs (
    hub_uuid BLOB PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    -- The hardware.
    device_instance_id TEXT NOT NULL,
    hub_identifier TEXT,
    description TEXT,
    -- The country that it is in, of ISO 3166-1, as its tenant says.
    country TEXT,
    hostname TEXT,
    agent_version TEXT,
    os TEXT,
    owner_user_uuid BLOB,
    -- Since when the hub is its owner's, who sees nothing of what was heard before.
    owner_since TEXT,
    created_at TEXT NOT NULL,
    claimed_at TEXT NOT NULL,
    blocked_at TEXT,
    released_at TEXT,
    -- The one token in force, and the last one that the hub has shown for a refresh, and so surely
    -- holds.
    access_token_id BLOB,
    shown_access_token_id BLOB,
    refresh_token_hash BLOB,
    -- The last use of the refresh token, a claim included. Its lifetime counts from here.
    refreshed_at TEXT,
    -- Until when an operator lets the hub refresh, however long ago it was last here.
    readmitted_until TEXT,
    -- The newest token when shown_access_token_id was first shown. The same process shows a newer
    -- one next.
    shown_after_token_id BLOB,
    -- How often two processes with this hub's credentials have taken turns, since a day without.
    turns INTEGER NOT NULL DEFAULT 0,
    turned_at TEXT,
    -- When they were first noted as clones.
    cloned_at TEXT,
    -- The boots that telemetry named last.
    boot_id TEXT,
    previous_boot_id TEXT,
    -- When the hub last uploaded far more than its share of the limit.
    flooded_at TEXT,
    -- Recognises a claim that is repeated because its answer was lost.
    claim_key_hash BLOB,
    -- Of the key with which the hub was claimed, whatever its code.
    claim_proof_hash BLOB,
    desired_revision INTEGER NOT NULL,
    -- The hub's place among the hubs of its tenant, see upload_paces.
    upload_slot INTEGER NOT NULL DEFAULT 0,
    -- Whether the hub reports no BLE events, since its owner has not consented to what its supplier
    -- requires.
    withholds_events INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX hubs_owner ON hubs (owner_user_uuid);
CREATE UNIQUE INDEX hubs_device_instance ON hubs (device_instance_id) WHERE released_at IS NULL;
CREATE INDEX hubs_tenant ON hubs (tenant_uuid, created_at, hub_uuid) WHERE released_at IS NULL;
-- For the platform, and because a block outlasts a release.
CREATE INDEX hubs_hardware ON hubs (device_instance_id);
CREATE INDEX hubs_of_tenant ON hubs (tenant_uuid);
-- The platform lists all hubs, and finds them by the beginning of a text.
CREATE INDEX hubs_created ON hubs (created_at, hub_uuid);
CREATE INDEX hubs_identifier ON hubs (hub_identifier);
CREATE INDEX hubs_hostname ON hubs (hostname);
CREATE INDEX hubs_flooded ON hubs (flooded_at) WHERE flooded_at IS NOT NULL;
CREATE INDEX hubs_turns ON hubs (tenant_uuid, hub_uuid) WHERE turns >= 3;

-- When a hub was last in contact. Uploads write it, so it is apart from the hub's row.
CREATE TABLE hub_contacts (
    tenant_uuid BLOB NOT NULL,
    hub_uuid BLOB NOT NULL,
    last_seen_at TEXT NOT NULL,
    last_telemetry_at TEXT,
    PRIMARY KEY (tenant_uuid, hub_uuid)
) STRICT, WITHOUT ROWID;

-- A Bluetooth adapter of a hub.
CREATE TABLE hub_adapters (
    hub_uuid BLOB NOT NULL REFERENCES hubs (hub_uuid),
    address TEXT NOT NULL,
    tenant_uuid BLOB NOT NULL,
    name TEXT NOT NULL,
    alias TEXT,
    powered INTEGER NOT NULL,
    discovering INTEGER,
    address_type TEXT,
    manufacturer TEXT,
    modalias TEXT,
    role TEXT,
    supplier_uuid BLOB,
    first_seen_at TEXT NOT NULL,
    last_seen_at TEXT NOT NULL,
    PRIMARY KEY (hub_uuid, address)
) STRICT, WITHOUT ROWID;

-- From where a hub has refreshed its token: a boot of a machine, at an address.
CREATE TABLE hub_appearances (
    hub_uuid BLOB NOT NULL REFERENCES hubs (hub_uuid),
    -- Empty where the hub does not say, or the address is not known.
    boot_id TEXT NOT NULL,
    address TEXT NOT NULL,
    first_at TEXT NOT NULL,
    last_at TEXT NOT NULL,
    PRIMARY KEY (hub_uuid, boot_id, address)
) STRICT, WITHOUT ROWID;

-- The token refreshes of a hub on one day (days since 1970). When the day is over, one audit entry
-- states those without an entry of their own, and the row goes.
CREATE TABLE hub_refreshes (
    hub_uuid BLOB NOT NULL,
    day INTEGER NOT NULL,
    tenant_uuid BLOB NOT NULL,
    refreshes INTEGER NOT NULL,
    -- Those with an audit entry of their own, the last of them from address.
    entries INTEGER NOT NULL,
    address TEXT,
    first_at TEXT NOT NULL,
    last_at TEXT NOT NULL,
    -- When all that the hub has used of its allowance is allowed again.
    used_until TEXT NOT NULL,
    PRIMARY KEY (hub_uuid, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX hub_refreshes_day ON hub_refreshes (day);

-- An authority for certificates of hubs. A root, which has no root_uuid, signs authorities that
-- issue, and those sign the certificates of hubs. Each is published from created_at on.
CREATE TABLE certificate_authorities (
    authority_uuid BLOB PRIMARY KEY,
    root_uuid BLOB REFERENCES certificate_authorities (authority_uuid),
    -- PEM.
    certificate TEXT NOT NULL,
    sealed_private_key BLOB NOT NULL,
    not_before TEXT NOT NULL,
    not_after TEXT NOT NULL,
    signs_from TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX certificate_authorities_root ON certificate_authorities (root_uuid);

-- A certificate that was issued to a hub.
CREATE TABLE hub_certificates (
    -- Lower-case hex, and of no other certificate, whichever authority issued it.
    serial_number TEXT PRIMARY KEY,
    authority_uuid BLOB NOT NULL REFERENCES certificate_authorities (authority_uuid),
    hub_uuid BLOB NOT NULL REFERENCES hubs (hub_uuid),
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    not_before TEXT NOT NULL,
    not_after TEXT NOT NULL,
    created_at TEXT NOT NULL,
    revoked_at TEXT,
    revoked_because TEXT
) STRICT;
CREATE INDEX hub_certificates_hub ON hub_certificates (hub_uuid, created_at);
CREATE INDEX hub_certificates_tenant ON hub_certificates (tenant_uuid) WHERE revoked_at IS NULL;
CREATE INDEX hub_certificates_authority ON hub_certificates (authority_uuid, not_after);
CREATE INDEX hub_certificates_expires ON hub_certificates (not_after);

-- A hub that got a certificate since its last claim.
CREATE TABLE hub_enrolments (
    hub_uuid BLOB PRIMARY KEY REFERENCES hubs (hub_uuid),
    -- Of the key of that certificate; NULL once there was one for another key.
    first_key_hash BLOB
) STRICT;

-- A loan of a hub to a person who sets it up.
CREATE TABLE setup_delegations (
    -- The id of a row that is gone is not assigned anew.
    setup_delegation_id INTEGER PRIMARY KEY AUTOINCREMENT,
    hub_uuid BLOB NOT NULL REFERENCES hubs (hub_uuid),
    tenant_uuid BLOB NOT NULL,
    -- One of the two is there. An e-mail is in lower case, and need not be an account's yet.
    user_uuid BLOB,
    email TEXT,
    expires_at TEXT,
    created_at TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX setup_delegations_user ON setup_delegations (user_uuid, hub_uuid);
CREATE UNIQUE INDEX setup_delegations_email ON setup_delegations (email, hub_uuid);
CREATE INDEX setup_delegations_hub ON setup_delegations (hub_uuid, setup_delegation_id);

-- A floor plan of a tenant.
CREATE TABLE floor_plans (
    floor_plan_uuid BLOB PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    name TEXT NOT NULL,
    width_millimetres INTEGER,
    -- Of the row in floor_plan_images, where there is one.
    image_type TEXT,
    image_bytes INTEGER,
    image_width INTEGER,
    image_height INTEGER,
    image_hash TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX floor_plans_tenant ON floor_plans (tenant_uuid, created_at DESC, floor_plan_uuid);

-- The image of a floor plan, apart from it so that no list reads images.
CREATE TABLE floor_plan_images (
    floor_plan_uuid BLOB PRIMARY KEY REFERENCES floor_plans (floor_plan_uuid),
    image BLOB NOT NULL
) STRICT;

-- A hub's place on a floor plan, in millionths of the width and the height, from the left and from
-- the top.
CREATE TABLE floor_plan_hubs (
    floor_plan_uuid BLOB NOT NULL REFERENCES floor_plans (floor_plan_uuid),
    hub_uuid BLOB NOT NULL REFERENCES hubs (hub_uuid),
    x INTEGER NOT NULL,
    y INTEGER NOT NULL,
    PRIMARY KEY (floor_plan_uuid, hub_uuid)
) STRICT;
CREATE INDEX floor_plan_hubs_hub ON floor_plan_hubs (hub_uuid);
