-- Floor plans: where a tenant's hubs are. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- image_type, image_bytes and image_hash are of the row in floor_plan_images, where there is one.
CREATE TABLE floor_plans (
    floor_plan_uuid BLOB NOT NULL PRIMARY KEY,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    name TEXT NOT NULL,
    width_millimetres INTEGER,
    image_type TEXT,
    image_bytes INTEGER,
    image_hash TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX floor_plans_tenant ON floor_plans (tenant_uuid, created_at DESC, floor_plan_uuid);

-- Apart, so that no list reads them.
CREATE TABLE floor_plan_images (
    floor_plan_uuid BLOB NOT NULL PRIMARY KEY REFERENCES floor_plans (floor_plan_uuid),
    image BLOB NOT NULL
) STRICT;

-- x and y are millionths of the width and the height, from the left and from the top.
CREATE TABLE floor_plan_hubs (
    floor_plan_uuid BLOB NOT NULL REFERENCES floor_plans (floor_plan_uuid),
    hub_uuid BLOB NOT NULL REFERENCES hubs (hub_uuid),
    x INTEGER NOT NULL,
    y INTEGER NOT NULL,
    PRIMARY KEY (floor_plan_uuid, hub_uuid)
) STRICT;
CREATE INDEX floor_plan_hubs_hub ON floor_plan_hubs (hub_uuid);
