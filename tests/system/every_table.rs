//! Rows in every table of an SQLite database, with values at the edges of their types, and what
//! they are afterwards.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::types::Value as Stored;
use serde_json::{Value, json};
use sqlx_postgres::PgConnection;

/// The columns of each table, with PostgreSQL's type of their values.
pub type Tables = BTreeMap<String, Vec<(String, String)>>;

/// Those of a PostgreSQL database.
pub async fn tables(database: &mut PgConnection) -> Tables {
    let rows: Vec<(String, String, String)> = sqlx::query_as(
        "SELECT c.relname::text, a.attname::text, format_type(a.atttypid, NULL) \
         FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 \
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') \
         AND NOT c.relispartition AND c.relname <> '_sqlx_migrations' ORDER BY 1, a.attnum",
    )
    .fetch_all(database)
    .await
    .expect("the columns");
    let mut tables = Tables::new();
    for (table, column, kind) in rows {
        tables.entry(table).or_default().push((column, kind));
    }
    tables
}

/// Adds rows to every table: values at the edges of their types, and NULL wherever it may be.
pub fn fill(file: &Path, tables: &Tables) {
    let db = rusqlite::Connection::open(file).expect("the database");
    db.pragma_update(None, "foreign_keys", "OFF").expect("off");
    let mut left: Vec<&String> = tables.keys().collect();
    // A table comes after those that it refers to.
    while !left.is_empty() {
        let next = left
            .iter()
            .position(|table| {
                references(&db, table)
                    .iter()
                    .all(|(_, other, _)| other == *table || !left.contains(&other))
            })
            .expect("no circle of references");
        let table = left.remove(next);
        for variant in 0..3 {
            fill_table(&db, table, &tables[table], variant);
        }
        let rows: i64 = db
            .query_row(&format!("SELECT COUNT(*) FROM {table}"), [], |row| {
                row.get(0)
            })
            .expect("a count");
        assert!(rows > 0, "no row of {table}");
    }
}

/// Column, other table and its column.
fn references(db: &rusqlite::Connection, table: &str) -> Vec<(String, String, String)> {
    let mut statement = db
        .prepare("SELECT \"from\", \"table\", \"to\" FROM pragma_foreign_key_list(?1)")
        .expect("a query");
    statement
        .query_map([table], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .expect("rows")
        .collect::<Result<_, _>>()
        .expect("references")
}

fn fill_table(db: &rusqlite::Connection, table: &str, columns: &[(String, String)], variant: i64) {
    let references = references(db, table);
    let values = columns.iter().map(|(column, kind)| {
        let may_be_null: bool = db
            .query_row(
                "SELECT NOT \"notnull\" AND NOT pk FROM pragma_table_info(?1) WHERE name = ?2",
                [table, column],
                |row| row.get(0),
            )
            .expect("the column");
        if may_be_null && variant == 1 {
            return Stored::Null;
        }
        if let Some((_, other, theirs)) = references.iter().find(|(from, ..)| from == column) {
            // All references of a row are to the same row, those to two columns as well.
            let sql = format!(
                "SELECT {theirs} FROM {other} LIMIT 1 OFFSET {}",
                variant % 2
            );
            let found = db.query_row(&sql, [], |row| row.get(0));
            return found.unwrap_or(Stored::Null);
        }
        let is_id = column.ends_with("_id");
        match (kind.as_str(), variant) {
            ("uuid", _) => Stored::Blob(uuid::Uuid::new_v4().as_bytes().to_vec()),
            ("bytea", 0) => Stored::Blob((0..=255).collect()),
            ("bytea", _) => Stored::Blob(vec![u8::try_from(variant).expect("few"); 40]),
            ("boolean", _) => Stored::Integer(variant % 2),
            // Ids are times in the tables that are partitioned by them.
            ("bigint", _) if is_id => Stored::Integer(1_796_000_000_000_000 + variant),
            ("bigint", 0) => Stored::Integer(i64::MIN),
            ("bigint", 1) => Stored::Integer(i64::MAX),
            ("bigint", _) => Stored::Integer(-1),
            ("timestamp with time zone", 0) => "0001-01-01T00:00:00.000000Z".to_owned().into(),
            ("timestamp with time zone", 1) => "9999-12-31T23:59:59.999999Z".to_owned().into(),
            ("timestamp with time zone", _) => "2026-11-28T07:00:00.000001Z".to_owned().into(),
            ("jsonb", 2) => Stored::Text(json!({"long": "x".repeat(1 << 20)}).to_string()),
            ("jsonb", _) => Stored::Text(
                json!({"Größe": [1, -2.5, 1e100, i64::MAX, null, true, "a\"\\\u{1F600}"]})
                    .to_string(),
            ),
            ("text", 2) => Stored::Text("x".repeat(3000) + "\u{10FFFF}"),
            ("text", _) => Stored::Text(format!("日本 ß\u{1F600} '\"\\\t\r\n{variant}")),
            other => panic!("no value of {other:?}"),
        }
    });
    let values: Vec<Stored> = values.collect();
    let names: Vec<String> = columns
        .iter()
        .map(|(name, _)| format!("\"{name}\""))
        .collect();
    let sql = format!(
        "INSERT OR IGNORE INTO {table} ({}) VALUES ({})",
        names.join(","),
        vec!["?"; values.len()].join(",")
    );
    db.execute(&sql, rusqlite::params_from_iter(values))
        .unwrap_or_else(|error| panic!("{table}: {error}"));
}

/// All rows of a table in the order of SQLite's values; JSON by its value.
pub fn dump(file: &Path, table: &str, columns: &[(String, String)]) -> Vec<String> {
    let db = rusqlite::Connection::open(file).expect("the database");
    let names: Vec<String> = columns
        .iter()
        .map(|(name, _)| format!("\"{name}\""))
        .collect();
    let mut statement = db
        .prepare(&format!("SELECT {} FROM {table}", names.join(",")))
        .expect("a query");
    let mut rows = statement.query([]).expect("rows");
    let mut all = Vec::new();
    while let Some(row) = rows.next().expect("a row") {
        let values = columns.iter().enumerate().map(|(index, (_, kind))| {
            let value: Stored = row.get(index).expect("a value");
            match (kind.as_str(), value) {
                ("jsonb", Stored::Text(text)) => {
                    let value: Value = serde_json::from_str(&text).expect("JSON");
                    value.to_string()
                }
                (_, value) => format!("{value:?}"),
            }
        });
        all.push(values.collect::<Vec<_>>().join("|"));
    }
    all.sort();
    all
}
