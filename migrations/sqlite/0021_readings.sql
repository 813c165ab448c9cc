-- What the service reads from BLE events. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- reading is a JSON object: how the event was recognised, and what it says. observation_id is the ble_event_id of the first reception of the same frame; null of the first.
ALTER TABLE ble_events ADD COLUMN reading TEXT;
ALTER TABLE ble_events ADD COLUMN observation_id INTEGER;
CREATE INDEX ble_events_observation ON ble_events (tenant_uuid, observation_id, ble_event_id) WHERE observation_id IS NOT NULL;

-- models_revision is the revision of the last change after which the catalog has to be read as a whole; a change of a device bears the revision in the device's row.
ALTER TABLE catalog_revisions ADD COLUMN models_revision INTEGER NOT NULL DEFAULT 0;
UPDATE catalog_revisions SET models_revision = revision;
ALTER TABLE device_instances ADD COLUMN catalog_revision INTEGER NOT NULL DEFAULT 0;
CREATE INDEX device_instances_revision ON device_instances (tenant_uuid, catalog_revision);

-- counter is the last authenticated counter of the device, which it sent at counter_at.
ALTER TABLE device_states ADD COLUMN counter INTEGER;
ALTER TABLE device_states ADD COLUMN counter_at TEXT;

-- Advertisers of the last 24 hours of which no model is known. key is the address, or of an address that changes what it advertises. sample is the advertisement as JSON; hub_uuids and service_uuids are JSON lists.
CREATE TABLE unknown_advertisers (
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    key TEXT NOT NULL,
    address TEXT NOT NULL,
    address_type TEXT,
    name TEXT,
    company_id INTEGER,
    service_uuids TEXT NOT NULL,
    count INTEGER NOT NULL,
    hub_uuids TEXT NOT NULL,
    rssi_max INTEGER,
    first_seen_at TEXT NOT NULL,
    last_seen_at TEXT NOT NULL,
    sample TEXT NOT NULL,
    PRIMARY KEY (tenant_uuid, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX unknown_advertisers_seen ON unknown_advertisers (tenant_uuid, last_seen_at, key);
CREATE INDEX unknown_advertisers_age ON unknown_advertisers (last_seen_at);
