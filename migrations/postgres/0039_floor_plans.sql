-- Floor plans: where a tenant's hubs are. The SQLite twin of this file has the same tables, columns and indexes.

-- image_type, image_bytes and image_hash are of the row in floor_plan_images, where there is one.
CREATE TABLE floor_plans (
    floor_plan_uuid UUID PRIMARY KEY,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    name TEXT NOT NULL,
    width_millimetres BIGINT,
    image_type TEXT,
    image_bytes BIGINT,
    image_hash TEXT,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX floor_plans_tenant ON floor_plans (tenant_uuid, created_at DESC, floor_plan_uuid);

-- Apart, so that no list reads them.
CREATE TABLE floor_plan_images (
    floor_plan_uuid UUID PRIMARY KEY REFERENCES floor_plans (floor_plan_uuid),
    image BYTEA NOT NULL
);

-- x and y are millionths of the width and the height, from the left and from the top.
CREATE TABLE floor_plan_hubs (
    floor_plan_uuid UUID NOT NULL REFERENCES floor_plans (floor_plan_uuid),
    hub_uuid UUID NOT NULL REFERENCES hubs (hub_uuid),
    x BIGINT NOT NULL,
    y BIGINT NOT NULL,
    PRIMARY KEY (floor_plan_uuid, hub_uuid)
);
CREATE INDEX floor_plan_hubs_hub ON floor_plan_hubs (hub_uuid);
