//! Both databases have the same tables, columns, types, keys and indexes. They are read from the
//! catalogs of databases that the service has created.

use std::collections::{BTreeMap, BTreeSet};

use hub_tests::postgres::Database;
use hub_tests::{Backend, TestApp, on_postgres};
use rusqlite::OpenFlags;
use sqlx::Connection;
use sqlx_postgres::PgConnection;

/// Everything about a table that must agree, in words that are the same for both.
#[derive(Debug, Default, PartialEq)]
struct Table {
    /// Name to type and whether it may be NULL, as in `TEXT NULL`.
    columns: BTreeMap<String, String>,
    primary_key: Vec<String>,
    /// Name to definition, as in `UNIQUE a, b DESC WHERE c IS NOT NULL`.
    indexes: BTreeMap<String, String>,
    unique_constraints: BTreeSet<String>,
    /// As in `tenant_uuid -> tenants (tenant_uuid) ON DELETE CASCADE`.
    foreign_keys: BTreeSet<String>,
}

type Schema = BTreeMap<String, Table>;

/// The migration tool's own table is its own affair.
const NOT_OURS: &str = "_sqlx_migrations";

on_postgres!(both_databases_have_the_same_schema);
async fn both_databases_have_the_same_schema(_: Backend) {
    let app = TestApp::new(Backend::Sqlite).await;
    let sqlite = read_sqlite(&app.sqlite_file().expect("a file"));
    let database = Database::create().await;
    let postgres = read_postgres(&database.url).await;
    assert!(sqlite.len() > 10, "only {} tables were found", sqlite.len());
    let mut differences = Vec::new();
    for name in sqlite
        .keys()
        .chain(postgres.keys())
        .collect::<BTreeSet<_>>()
    {
        match (sqlite.get(name), postgres.get(name)) {
            (Some(sqlite), Some(postgres)) if sqlite == postgres => {}
            (Some(sqlite), Some(postgres)) => {
                differences.push(format!(
                    "{name}\nSQLite: {sqlite:#?}\nPostgreSQL: {postgres:#?}"
                ));
            }
            (sqlite, _) => {
                differences.push(format!(
                    "{name} is only in {}",
                    if sqlite.is_some() {
                        "SQLite"
                    } else {
                        "PostgreSQL"
                    }
                ));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

/// The SQLite type that holds a PostgreSQL type's values.
fn sqlite_type(postgres: &str) -> &str {
    match postgres {
        "uuid" | "bytea" => "BLOB",
        "text" | "jsonb" | "timestamp with time zone" => "TEXT",
        "bigint" | "boolean" => "INTEGER",
        "double precision" => "REAL",
        // Narrower types exist on one of the two alone.
        other => other,
    }
}

fn column(kind: &str, may_be_null: bool) -> String {
    format!("{kind}{}", if may_be_null { " NULL" } else { "" })
}

/// `CREATE [UNIQUE] INDEX name ON table (columns) [WHERE predicate]` without what the databases
/// write differently.
fn index(definition: &str) -> String {
    let unique = if definition.starts_with("CREATE UNIQUE") {
        "UNIQUE "
    } else {
        ""
    };
    let columns = definition
        .split_once('(')
        .map_or("", |(_, columns)| columns);
    let columns = columns.replace("::text", "").replace(['(', ')'], " ");
    let columns = columns
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace(" ,", ",");
    // PostgreSQL writes `a IN (b, c)` as `a = ANY (ARRAY[b, c])`.
    format!(
        "{unique}{}",
        columns.replace("= ANY ARRAY[", "IN ").replace(']', "")
    )
}

fn read_sqlite(file: &std::path::Path) -> Schema {
    let db = rusqlite::Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .expect("the database opens");
    let texts = |query: &str, table: &str| -> Vec<Vec<String>> {
        let mut statement = db.prepare(query).expect("a query");
        let width = statement.column_count();
        let read = |row: &rusqlite::Row<'_>| {
            (0..width)
                .map(|n| row.get(n))
                .collect::<Result<Vec<String>, _>>()
        };
        statement
            .query_map([table], read)
            .expect("rows")
            .collect::<Result<_, _>>()
            .expect("texts")
    };
    let tables = texts(
        "SELECT name FROM sqlite_schema WHERE type = 'table' \
         AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> ?1",
        NOT_OURS,
    );
    let mut schema = Schema::new();
    for name in tables.into_iter().flatten() {
        let mut table = Table::default();
        let columns = "SELECT name, type, CASE WHEN \"notnull\" OR pk THEN '' ELSE 'NULL' END \
            FROM pragma_table_info(?1)";
        for row in texts(columns, &name) {
            table
                .columns
                .insert(row[0].clone(), column(&row[1], row[2] == "NULL"));
        }
        let key = "SELECT name FROM pragma_table_info(?1) WHERE pk ORDER BY pk";
        table.primary_key = texts(key, &name).into_iter().flatten().collect();
        let indexes = "SELECT name, sql FROM sqlite_schema \
            WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?1";
        table.indexes = texts(indexes, &name)
            .into_iter()
            .map(|row| (row[0].clone(), index(&row[1])))
            .collect();
        let unique = "SELECT \
            (SELECT group_concat(name, ', ') FROM pragma_index_info(list.name)) \
            FROM pragma_index_list(?1) AS list WHERE origin = 'u'";
        table.unique_constraints = texts(unique, &name).into_iter().flatten().collect();
        let foreign = "SELECT group_concat(\"from\", ', '), \"table\", \
            group_concat(\"to\", ', '), on_delete \
            FROM (SELECT * FROM pragma_foreign_key_list(?1) ORDER BY id, seq) GROUP BY id";
        for row in texts(foreign, &name) {
            let on_delete = if row[3] == "NO ACTION" {
                String::new()
            } else {
                format!(" ON DELETE {}", row[3])
            };
            table
                .foreign_keys
                .insert(format!("{} -> {} ({}){on_delete}", row[0], row[1], row[2]));
        }
        schema.insert(name, table);
    }
    schema
}

async fn read_postgres(url: &str) -> Schema {
    let mut db = PgConnection::connect(url)
        .await
        .expect("the database opens");
    let mut schema = Schema::new();
    // Partitions are storage of the table they belong to.
    let columns: Vec<(String, String, String, bool)> = sqlx::query_as(
        "SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), \
         NOT a.attnotnull \
         FROM pg_class c JOIN pg_attribute a \
         ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') \
         AND NOT c.relispartition AND c.relname <> $1",
    )
    .bind(NOT_OURS)
    .fetch_all(&mut db)
    .await
    .expect("the columns");
    for (table, name, kind, may_be_null) in columns {
        let table = schema.entry(table).or_default();
        table
            .columns
            .insert(name, column(sqlite_type(&kind), may_be_null));
    }
    let indexes: Vec<(String, String, String)> = sqlx::query_as(
        "SELECT t.relname::text, c.relname::text, pg_get_indexdef(i.indexrelid) FROM pg_index i \
         JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid \
         WHERE NOT EXISTS (SELECT 1 FROM pg_constraint k \
         WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u'))",
    )
    .fetch_all(&mut db)
    .await
    .expect("the indexes");
    for (table, name, definition) in indexes {
        if let Some(table) = schema.get_mut(&table) {
            table.indexes.insert(name, index(&definition));
        }
    }
    let constraints: Vec<(String, String, String)> = sqlx::query_as(
        "SELECT t.relname::text, k.contype::text, pg_get_constraintdef(k.oid) FROM pg_constraint k \
         JOIN pg_class t ON t.oid = k.conrelid WHERE k.contype IN ('p', 'u', 'f')",
    )
    .fetch_all(&mut db)
    .await
    .expect("the constraints");
    for (table, kind, definition) in constraints {
        let Some(table) = schema.get_mut(&table) else {
            continue;
        };
        let columns = definition
            .split(['(', ')'])
            .nth(1)
            .unwrap_or_default()
            .to_owned();
        match kind.as_str() {
            "p" => table.primary_key = columns.split(", ").map(str::to_owned).collect(),
            "u" => drop(table.unique_constraints.insert(columns)),
            _ => {
                let (_, target) = definition.split_once("REFERENCES ").unwrap_or_default();
                let target = target.replacen('(', " (", 1);
                table.foreign_keys.insert(format!("{columns} -> {target}"));
            }
        }
    }
    schema
}
