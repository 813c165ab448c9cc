-- What hubs run, what is published about it, and who is exposed to which vulnerability.

-- A list of packages, which hubs of a tenant that are alike share.
CREATE TABLE package_lists (
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    -- Of the list's canonical bytes.
    list_sha256 BLOB NOT NULL,
    distribution TEXT NOT NULL,
    distribution_version TEXT NOT NULL,
    package_count INTEGER NOT NULL,
    -- The canonical bytes, compressed with zstd.
    packages BLOB NOT NULL,
    created_at TEXT NOT NULL,
    -- The revision of the advisories that it was matched with; 0 before the first time.
    matched_revision INTEGER NOT NULL,
    PRIMARY KEY (tenant_uuid, list_sha256)
) STRICT;
CREATE INDEX package_lists_matched ON package_lists (matched_revision);

-- What a hub ran, from a report of it until the next one that differs. The last has no end.
CREATE TABLE hub_software (
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    hub_uuid BLOB NOT NULL REFERENCES hubs (hub_uuid),
    began_at TEXT NOT NULL,
    ended_at TEXT,
    list_sha256 BLOB NOT NULL,
    kernel TEXT,
    bluez TEXT,
    agent TEXT NOT NULL,
    -- JSON: the firmware of adapters by their addresses.
    adapter_firmware TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, hub_uuid, began_at),
    FOREIGN KEY (tenant_uuid, list_sha256) REFERENCES package_lists (tenant_uuid, list_sha256)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX hub_software_current ON hub_software (hub_uuid) WHERE ended_at IS NULL;
CREATE INDEX hub_software_list ON hub_software (tenant_uuid, list_sha256, hub_uuid);
CREATE INDEX hub_software_running
    ON hub_software (tenant_uuid, list_sha256) WHERE ended_at IS NULL;
CREATE INDEX hub_software_ended ON hub_software (ended_at) WHERE ended_at IS NOT NULL;

-- What the release of an app consists of: a list like those of hubs.
CREATE TABLE release_software (
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    release_uuid BLOB NOT NULL,
    list_sha256 BLOB NOT NULL,
    PRIMARY KEY (tenant_uuid, release_uuid),
    FOREIGN KEY (tenant_uuid, list_sha256) REFERENCES package_lists (tenant_uuid, list_sha256)
) STRICT, WITHOUT ROWID;
CREATE INDEX release_software_list ON release_software (tenant_uuid, list_sha256);

-- A document that its manifest names: sbom or vex.
CREATE TABLE release_documents (
    release_uuid BLOB NOT NULL,
    document TEXT NOT NULL,
    -- None of a release of the platform.
    tenant_uuid BLOB REFERENCES tenants (tenant_uuid),
    -- Compressed with zstd.
    content BLOB NOT NULL,
    PRIMARY KEY (release_uuid, document)
) STRICT;
CREATE INDEX release_documents_tenant ON release_documents (tenant_uuid);

-- A published record about a vulnerability, in its newest version.
CREATE TABLE advisories (
    advisory_id TEXT PRIMARY KEY,
    -- Its CVE, or else the id of the record.
    vulnerability_id TEXT NOT NULL,
    title TEXT NOT NULL,
    severity TEXT NOT NULL,
    published_at TEXT,
    modified_at TEXT NOT NULL,
    withdrawn INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A package that an advisory is about.
CREATE TABLE advisory_packages (
    -- As the record has it, such as Debian:12.
    ecosystem TEXT NOT NULL,
    package TEXT NOT NULL,
    advisory_id TEXT NOT NULL,
    -- A record may name a package more than once.
    place INTEGER NOT NULL,
    -- JSON: the versions that are affected.
    ranges TEXT NOT NULL,
    PRIMARY KEY (ecosystem, package, advisory_id, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX advisory_packages_advisory ON advisory_packages (advisory_id);

-- A vulnerability that is known to be exploited.
CREATE TABLE known_exploited (
    vulnerability_id TEXT PRIMARY KEY,
    -- Days such as 2026-01-31.
    added_on TEXT NOT NULL,
    due_on TEXT,
    ransomware INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A feed of advisories: an ecosystem of OSV, or KEV.
CREATE TABLE advisory_feeds (
    feed TEXT PRIMARY KEY,
    -- Of its records.
    newest_at TEXT,
    record_count INTEGER NOT NULL,
    imported_at TEXT NOT NULL,
    -- Rises with each import, of any feed, that changes something.
    revision INTEGER NOT NULL,
    -- Whether records were stored and the revision has not risen for them: the import was killed.
    is_unfinished INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A package of a list that a vulnerability affects.
CREATE TABLE exposures (
    tenant_uuid BLOB NOT NULL,
    vulnerability_id TEXT NOT NULL,
    list_sha256 BLOB NOT NULL,
    ecosystem TEXT NOT NULL,
    package TEXT NOT NULL,
    version TEXT NOT NULL,
    fixed_in TEXT,
    advisory_id TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, vulnerability_id, list_sha256, ecosystem, package, version),
    FOREIGN KEY (tenant_uuid, list_sha256) REFERENCES package_lists (tenant_uuid, list_sha256)
        ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX exposures_list ON exposures (tenant_uuid, list_sha256);

-- A vulnerability that a list of a tenant has, or had.
CREATE TABLE tenant_vulnerabilities (
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    vulnerability_id TEXT NOT NULL,
    title TEXT NOT NULL,
    -- From 0, which is unknown, to 5, which is critical.
    severity INTEGER NOT NULL,
    exploited INTEGER NOT NULL,
    first_seen_at TEXT NOT NULL,
    -- FEED, or OWN: an advisory of the tenant, which no list has.
    source TEXT NOT NULL DEFAULT 'FEED',
    PRIMARY KEY (tenant_uuid, vulnerability_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tenant_vulnerabilities_listed
    ON tenant_vulnerabilities (tenant_uuid, exploited DESC, severity DESC, vulnerability_id DESC);
CREATE INDEX tenant_vulnerabilities_seen ON tenant_vulnerabilities (tenant_uuid, first_seen_at);
CREATE INDEX tenant_vulnerabilities_all ON tenant_vulnerabilities (vulnerability_id);

-- A statement of a tenant about a vulnerability, as OpenVEX has it.
CREATE TABLE vulnerability_statements (
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    vulnerability_id TEXT NOT NULL,
    -- The release of an app that it is about; all zeros where it is about all hubs.
    release_uuid BLOB NOT NULL,
    status TEXT NOT NULL,
    justification TEXT,
    impact TEXT,
    action TEXT,
    -- Who made it, such as API_KEY:7.
    author TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, vulnerability_id, release_uuid)
) STRICT, WITHOUT ROWID;

-- What the maker of a release states about a vulnerability, by one of the ids that it has.
CREATE TABLE release_statements (
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    vulnerability_id TEXT NOT NULL,
    release_uuid BLOB NOT NULL,
    status TEXT NOT NULL,
    justification TEXT,
    impact TEXT,
    action TEXT,
    author TEXT NOT NULL,
    stated_at TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, vulnerability_id, release_uuid)
) STRICT, WITHOUT ROWID;
CREATE INDEX release_statements_release ON release_statements (tenant_uuid, release_uuid);

-- A server of Dependency-Track, which gets the lists of packages and the releases that hubs of a
-- tenant run.
CREATE TABLE dependency_track_servers (
    tenant_uuid BLOB PRIMARY KEY REFERENCES tenants (tenant_uuid),
    url TEXT NOT NULL,
    project TEXT NOT NULL,
    sealed_api_key BLOB NOT NULL,
    -- In a row.
    failures INTEGER NOT NULL,
    -- Since when it fails.
    failing_since TEXT,
    retry_at TEXT,
    last_sent_at TEXT,
    last_error TEXT,
    last_error_at TEXT,
    updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A list that the server has, or refuses.
CREATE TABLE dependency_track_uploads (
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    list_sha256 BLOB NOT NULL,
    sent_at TEXT NOT NULL,
    -- Why it refuses the list.
    refusal TEXT,
    PRIMARY KEY (tenant_uuid, list_sha256)
) STRICT, WITHOUT ROWID;

-- A release that the server has, or refuses.
CREATE TABLE dependency_track_releases (
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    release_uuid BLOB NOT NULL,
    -- The list of what it consisted of when it was sent.
    list_sha256 BLOB NOT NULL,
    sent_at TEXT NOT NULL,
    -- Why it refuses the release.
    refusal TEXT,
    PRIMARY KEY (tenant_uuid, release_uuid)
) STRICT, WITHOUT ROWID;

-- An advisory of a tenant about its apps and device models.
CREATE TABLE tenant_advisories (
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    advisory_id TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT,
    severity INTEGER NOT NULL,
    cvss_vector TEXT,
    -- JSON lists.
    aliases TEXT NOT NULL,
    links TEXT NOT NULL,
    affected TEXT NOT NULL,
    -- Who made it, such as API_KEY:7.
    author TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, advisory_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tenant_advisories_listed
    ON tenant_advisories (tenant_uuid, created_at, advisory_id);
