-- The platform lists all hubs and tenants, and finds hubs by the beginning of a text.
-- Compared by code points, as SQLite does: the order of a language is no order of beginnings.
ALTER TABLE hubs ALTER COLUMN device_instance_id TYPE TEXT COLLATE "C";
ALTER TABLE hubs ALTER COLUMN hub_identifier TYPE TEXT COLLATE "C";
ALTER TABLE hubs ALTER COLUMN hostname TYPE TEXT COLLATE "C";
CREATE INDEX hubs_created ON hubs (created_at, hub_uuid);
CREATE INDEX hubs_identifier ON hubs (hub_identifier);
CREATE INDEX hubs_hostname ON hubs (hostname);
CREATE INDEX tenants_created ON tenants (created_at, tenant_uuid);
