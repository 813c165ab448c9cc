"""Prints the rows of Parquet files of values as JSON, one line each, with the types of the columns first."""

import json
import sys

import duckdb

relation = duckdb.read_parquet(sys.argv[1:])
print(json.dumps([str(kind) for kind in relation.types]))
columns = ", ".join(
    f'epoch_us("{name}")' if str(kind).startswith("TIMESTAMP") else f'"{name}"'
    for name, kind in zip(relation.columns, relation.types)
)
for row in relation.project(columns).fetchall():
    print(json.dumps(row))
