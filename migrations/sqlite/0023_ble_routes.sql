-- What hubs report and what the service keeps. The PostgreSQL twin of this file has the same tables, columns and indexes.

-- A row for each tenant that has set its route. rules is a JSON list, in the order in which they are tried. hubs_know_devices tells whether hubs have to tell registered devices apart for it. revision rises with every change.
CREATE TABLE ble_routes (
    tenant_uuid BLOB PRIMARY KEY REFERENCES tenants (tenant_uuid),
    rules TEXT NOT NULL,
    otherwise TEXT NOT NULL,
    hubs_know_devices INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
