-- What was heard of devices, by the hour. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- hour is in seconds since 1970. first_id and last_id are of the first and the last event of the hour; minutes has a bit for each minute in which the device was heard. quantities and hubs are JSON objects.
CREATE TABLE sensor_rollups (
    device_instance_id INTEGER NOT NULL REFERENCES device_instances (device_instance_id) ON DELETE CASCADE,
    hour INTEGER NOT NULL,
    tenant_uuid BLOB NOT NULL REFERENCES tenants (tenant_uuid),
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    minutes INTEGER NOT NULL,
    quantities TEXT NOT NULL,
    hubs TEXT NOT NULL,
    PRIMARY KEY (device_instance_id, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX sensor_rollups_age ON sensor_rollups (hour);

-- Events of the tenant with ids up to last_id are in its rollups.
CREATE TABLE sensor_rollup_cursors (
    tenant_uuid BLOB PRIMARY KEY REFERENCES tenants (tenant_uuid),
    last_id INTEGER NOT NULL
) STRICT;
