-- What was heard of devices, by the hour. The SQLite twin of this file has the same tables, columns and indexes.

-- hour is in seconds since 1970. first_id and last_id are of the first and the last event of the hour; minutes has a bit for each minute in which the device was heard. quantities and hubs are JSON objects.
CREATE TABLE sensor_rollups (
    device_instance_id BIGINT NOT NULL REFERENCES device_instances (device_instance_id) ON DELETE CASCADE,
    hour BIGINT NOT NULL,
    tenant_uuid UUID NOT NULL REFERENCES tenants (tenant_uuid),
    first_id BIGINT NOT NULL,
    last_id BIGINT NOT NULL,
    minutes BIGINT NOT NULL,
    quantities TEXT NOT NULL,
    hubs TEXT NOT NULL,
    PRIMARY KEY (device_instance_id, hour)
);
CREATE INDEX sensor_rollups_age ON sensor_rollups (hour);

-- Events of the tenant with ids up to last_id are in its rollups.
CREATE TABLE sensor_rollup_cursors (
    tenant_uuid UUID PRIMARY KEY REFERENCES tenants (tenant_uuid),
    last_id BIGINT NOT NULL
);
