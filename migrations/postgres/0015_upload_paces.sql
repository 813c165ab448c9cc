-- The pace at which the hubs of a tenant upload: the pause between two uploads of a kind, for so many live hubs. slots counts the places
-- that were given to hubs; hubs.upload_slot is a hub's own. The SQLite twin of this file has the same tables, columns and indexes.
CREATE TABLE upload_paces (
    tenant_uuid UUID PRIMARY KEY REFERENCES tenants (tenant_uuid),
    live_hubs BIGINT NOT NULL,
    slots BIGINT NOT NULL,
    pause_ms BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    changed_at TIMESTAMPTZ NOT NULL
);

ALTER TABLE hubs ADD COLUMN upload_slot BIGINT NOT NULL DEFAULT 0;

-- The hubs there are have places too. The first adjustment finds their number and a pause for it.
UPDATE hubs SET upload_slot = numbered.slot
FROM (SELECT hub_uuid, ROW_NUMBER() OVER (PARTITION BY tenant_uuid ORDER BY created_at, hub_uuid) AS slot FROM hubs) AS numbered
WHERE numbered.hub_uuid = hubs.hub_uuid;
INSERT INTO upload_paces (tenant_uuid, live_hubs, slots, pause_ms, revision, changed_at)
SELECT tenant_uuid, 0, COUNT(*), 0, 0, MAX(created_at) FROM hubs GROUP BY tenant_uuid;
