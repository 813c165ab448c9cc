-- A tenant's own limits; NULL is the service's default. Retention is in days, by kind of record.
ALTER TABLE tenants ADD COLUMN stored_bytes_limit BIGINT;
ALTER TABLE tenants ADD COLUMN bytes_per_day_limit BIGINT;
ALTER TABLE tenants ADD COLUMN hub_limit BIGINT;
ALTER TABLE tenants ADD COLUMN stream_limit BIGINT;
ALTER TABLE tenants ADD COLUMN api_key_limit BIGINT;
ALTER TABLE tenants ADD COLUMN ble_retention_days BIGINT;
ALTER TABLE tenants ADD COLUMN telemetry_retention_days BIGINT;
ALTER TABLE tenants ADD COLUMN log_retention_days BIGINT;
ALTER TABLE tenants ADD COLUMN job_event_retention_days BIGINT;
ALTER TABLE tenants ADD COLUMN delivery_retention_days BIGINT;
ALTER TABLE tenants ADD COLUMN audit_retention_days BIGINT;
