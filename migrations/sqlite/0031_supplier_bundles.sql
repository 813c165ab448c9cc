-- Supplier bundles: what hubs get when they are claimed. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- status is DRAFT, PUBLISHED or ARCHIVED; the parts change in DRAFT only.
CREATE TABLE supplier_bundles (
    bundle_uuid BLOB PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    name TEXT NOT NULL,
    description TEXT,
    status TEXT NOT NULL,
    auto_apply INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    published_at TEXT,
    archived_at TEXT
) STRICT;
CREATE INDEX supplier_bundles_tenant ON supplier_bundles (tenant_uuid, created_at, bundle_uuid);
CREATE INDEX supplier_bundles_status ON supplier_bundles (tenant_uuid, status, created_at, bundle_uuid);
CREATE INDEX supplier_bundles_catalog ON supplier_bundles (published_at, bundle_uuid) WHERE status = 'PUBLISHED';

-- Either a release, or the newest one of a channel. position is the place in the list as it was given.
CREATE TABLE bundle_apps (
    bundle_uuid BLOB NOT NULL REFERENCES supplier_bundles (bundle_uuid) ON DELETE CASCADE,
    app_uuid BLOB NOT NULL REFERENCES apps (app_uuid),
    position INTEGER NOT NULL,
    release_uuid BLOB,
    channel TEXT,
    PRIMARY KEY (bundle_uuid, app_uuid)
) STRICT;

CREATE TABLE bundle_devices (
    bundle_uuid BLOB NOT NULL REFERENCES supplier_bundles (bundle_uuid) ON DELETE CASCADE,
    device_uuid BLOB NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    quantity INTEGER NOT NULL,
    PRIMARY KEY (bundle_uuid, device_uuid)
) STRICT;
CREATE INDEX bundle_devices_device ON bundle_devices (device_uuid);

CREATE TABLE bundle_pipelines (
    bundle_uuid BLOB NOT NULL REFERENCES supplier_bundles (bundle_uuid) ON DELETE CASCADE,
    pipeline_uuid BLOB NOT NULL REFERENCES pipelines (pipeline_uuid) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    PRIMARY KEY (bundle_uuid, pipeline_uuid)
) STRICT;
CREATE INDEX bundle_pipelines_pipeline ON bundle_pipelines (pipeline_uuid);

-- What a bundle brought to a hub. The pipelines are in pipeline_hubs.
CREATE TABLE hub_bundles (
    hub_uuid BLOB NOT NULL REFERENCES hubs (hub_uuid),
    bundle_uuid BLOB NOT NULL REFERENCES supplier_bundles (bundle_uuid),
    tenant_uuid BLOB NOT NULL,
    applied_at TEXT NOT NULL,
    PRIMARY KEY (hub_uuid, bundle_uuid)
) STRICT;
CREATE INDEX hub_bundles_hub ON hub_bundles (hub_uuid, applied_at, bundle_uuid);
CREATE INDEX hub_bundles_bundle ON hub_bundles (bundle_uuid, hub_uuid);
CREATE INDEX hub_bundles_tenant ON hub_bundles (tenant_uuid);

CREATE TABLE hub_bundle_apps (
    hub_uuid BLOB NOT NULL,
    bundle_uuid BLOB NOT NULL,
    app_uuid BLOB NOT NULL,
    release_uuid BLOB NOT NULL,
    version TEXT NOT NULL,
    hub_job_uuid BLOB NOT NULL,
    PRIMARY KEY (hub_uuid, bundle_uuid, app_uuid),
    FOREIGN KEY (hub_uuid, bundle_uuid) REFERENCES hub_bundles (hub_uuid, bundle_uuid) ON DELETE CASCADE
) STRICT;

CREATE TABLE hub_bundle_devices (
    hub_uuid BLOB NOT NULL,
    bundle_uuid BLOB NOT NULL,
    device_uuid BLOB NOT NULL REFERENCES device_models (device_uuid) ON DELETE CASCADE,
    quantity INTEGER NOT NULL,
    PRIMARY KEY (hub_uuid, bundle_uuid, device_uuid),
    FOREIGN KEY (hub_uuid, bundle_uuid) REFERENCES hub_bundles (hub_uuid, bundle_uuid) ON DELETE CASCADE
) STRICT;
CREATE INDEX hub_bundle_devices_device ON hub_bundle_devices (device_uuid);

-- Hubs that a bundle bound a pipeline to.
CREATE TABLE pipeline_hubs (
    hub_uuid BLOB NOT NULL REFERENCES hubs (hub_uuid),
    pipeline_uuid BLOB NOT NULL REFERENCES pipelines (pipeline_uuid) ON DELETE CASCADE,
    bundle_uuid BLOB NOT NULL,
    tenant_uuid BLOB NOT NULL,
    PRIMARY KEY (hub_uuid, pipeline_uuid, bundle_uuid)
) STRICT;
CREATE INDEX pipeline_hubs_pipeline ON pipeline_hubs (pipeline_uuid, hub_uuid);
CREATE INDEX pipeline_hubs_tenant ON pipeline_hubs (tenant_uuid);
