//! Everything a database holds, so that a test can tell that nothing changed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hub_tests::TestApp;
use rusqlite::OpenFlags;
use rusqlite::types::ValueRef;
use secrecy::ExposeSecret;
use sqlx::{AssertSqlSafe, Connection};
use sqlx_postgres::PgConnection;

/// What changes by itself, or by asking alone: `table.column`, or a whole table.
const MOVES_BY_ITSELF: [&str; 10] = [
    "_sqlx_migrations",
    // Background work is due again and again.
    "tasks",
    // What hubs heard is noted some seconds later.
    "unknown_advertisers",
    // A hub or a key was seen, a request was counted.
    "hub_contacts",
    "api_keys.last_used_at",
    "api_keys.window_minute",
    "api_keys.window_requests",
    "api_keys.window_replica",
    "upload_clocks.minute",
    "upload_clocks.requests",
];

/// The rows of each table as text, sorted.
pub type Dump = BTreeMap<String, Vec<String>>;

/// Reads all rows again and again. On PostgreSQL that is one prepared query on one connection.
pub enum Dumper {
    Sqlite { file: PathBuf, columns: Columns },
    Postgres { db: PgConnection, query: String },
}

/// Which columns are read.
#[derive(Clone, Copy)]
pub enum Columns {
    All,
    /// But for those that change by themselves.
    Still,
}

impl Dumper {
    pub async fn new(app: &TestApp) -> Self {
        Self::of(app, Columns::Still).await
    }

    pub async fn of_everything(app: &TestApp) -> Self {
        Self::of(app, Columns::All).await
    }

    async fn of(app: &TestApp, columns: Columns) -> Self {
        match app.sqlite_file() {
            Some(file) => Self::Sqlite { file, columns },
            None => {
                let url = app.app.config.database_url.expose_secret();
                let mut db = PgConnection::connect(url).await.expect("a connection");
                let query = postgres_query(&mut db, columns).await;
                Self::Postgres { db, query }
            }
        }
    }

    pub async fn dump(&mut self) -> Dump {
        match self {
            Self::Sqlite { file, columns } => dump_sqlite(file, *columns),
            Self::Postgres { db, query } => {
                let query = sqlx::query_as(AssertSqlSafe(query.clone()));
                let rows: Vec<(String, Vec<String>)> = query.fetch_all(db).await.expect("the rows");
                let mut tables = BTreeMap::<String, Vec<Vec<String>>>::new();
                for (table, row) in rows {
                    tables.entry(table).or_default().push(row);
                }
                tables
                    .into_iter()
                    .map(|(table, rows)| (table, sorted(rows)))
                    .collect()
            }
        }
    }
}

/// What is in one and not in the other, in words.
pub fn differences(before: &Dump, after: &Dump) -> Vec<String> {
    let mut found = Vec::new();
    for (table, rows) in after {
        let old = before.get(table).map(Vec::as_slice).unwrap_or_default();
        found.extend(
            rows.iter()
                .filter(|row| !old.contains(row))
                .map(|row| format!("{table}: now {row}")),
        );
        found.extend(
            old.iter()
                .filter(|row| !rows.contains(row))
                .map(|row| format!("{table}: no more {row}")),
        );
    }
    found
}

fn is_kept(table: &str, column: &str, columns: Columns) -> bool {
    matches!(columns, Columns::All)
        || !MOVES_BY_ITSELF
            .iter()
            .any(|name| *name == table || *name == format!("{table}.{column}"))
}

fn dump_sqlite(file: &std::path::Path, kept: Columns) -> Dump {
    let db = rusqlite::Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .expect("the database opens");
    let query = "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c \
                 WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'";
    let mut statement = db.prepare(query).expect("a statement");
    let names = statement
        .query_map((), |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("the columns");
    let names: Vec<(String, String)> = names.map(|name| name.expect("a column")).collect();
    let mut dump = Dump::new();
    for (table, columns) in by_table(names, kept) {
        let mut statement = db
            .prepare(&format!("SELECT {} FROM {table}", columns.join(", ")))
            .expect("a statement");
        let mut rows = statement.query(()).expect("the rows");
        let mut lines = Vec::new();
        while let Some(row) = rows.next().expect("a row") {
            let value = |index| match row.get_ref(index).expect("a value") {
                ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                other => format!("{other:?}"),
            };
            lines.push(
                (0..columns.len())
                    .map(|index| format!("{}={}", columns[index], value(index)))
                    .collect(),
            );
        }
        dump.insert(table, sorted(lines));
    }
    dump
}

fn by_table(names: Vec<(String, String)>, columns: Columns) -> BTreeMap<String, Vec<String>> {
    let mut tables = BTreeMap::<String, Vec<String>>::new();
    for (table, column) in names
        .into_iter()
        .filter(|(table, column)| is_kept(table, column, columns))
    {
        tables.entry(table).or_default().push(column);
    }
    tables
}

fn sorted(mut lines: Vec<Vec<String>>) -> Vec<String> {
    lines.sort();
    lines.into_iter().map(|line| line.join(", ")).collect()
}

/// Every row of every table, with the table's name.
async fn postgres_query(db: &mut PgConnection, columns: Columns) -> String {
    // Partitions are read through their table.
    let query = "SELECT c.table_name::text, c.column_name::text FROM information_schema.columns c \
                 JOIN pg_class k ON k.relname = c.table_name AND k.relkind IN ('r', 'p') \
                     AND NOT k.relispartition \
                 WHERE c.table_schema = 'public' ORDER BY c.table_name, c.ordinal_position";
    let names: Vec<(String, String)> = sqlx::query_as(query)
        .fetch_all(db)
        .await
        .expect("the columns");
    let tables = by_table(names, columns)
        .into_iter()
        .map(|(table, columns)| {
            let values = columns
                .iter()
                .map(|column| format!("'{column}=' || COALESCE({column}::text, 'Null')"));
            format!(
                "SELECT '{table}', ARRAY[{}] FROM {table}",
                values.collect::<Vec<_>>().join(", ")
            )
        });
    tables.collect::<Vec<_>>().join(" UNION ALL ")
}
