"""Prints the rows of Parquet files as DuckDB reads them, a line of JSON each, in the order of their
ids: rows.py FILE_OR_GLOB..."""

import json
import sys

import duckdb

rows = duckdb.sql(
    "SELECT ble_event_id, CAST(hub_uuid AS VARCHAR), device_instance_id, processing_status, "
    "observation_id, epoch_us(window_started_at), epoch_us(window_ended_at), "
    "epoch_us(reprocessed_at), event, reading, CAST(tenant_uuid AS VARCHAR), CAST(day AS VARCHAR) "
    f"FROM read_parquet({sys.argv[1:]}, hive_partitioning = true) ORDER BY ble_event_id"
)
for row in rows.fetchall():
    print(json.dumps(row))
