-- The platform lists all hubs and tenants, and finds hubs by the beginning of a text.
CREATE INDEX hubs_created ON hubs (created_at, hub_uuid);
CREATE INDEX hubs_identifier ON hubs (hub_identifier);
CREATE INDEX hubs_hostname ON hubs (hostname);
CREATE INDEX tenants_created ON tenants (created_at, tenant_uuid);
