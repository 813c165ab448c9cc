//! The tables of the service, as the catalogs of both databases have them: PostgreSQL's says of
//! what type a value is, and SQLite's which tables are the service's.

use std::collections::BTreeMap;

use super::MoveError;
use super::side::Side;
use crate::db::migrate;
use crate::db::sql::quoted;

/// What a column holds; SQLite stores it as INTEGER, TEXT or BLOB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Bytes,
    Int,
    Json,
    Text,
    Time,
    Uuid,
}

#[derive(Debug)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
}

#[derive(Debug)]
pub struct Table {
    pub name: String,
    /// Those of the primary key first, in its order.
    pub columns: Vec<Column>,
    pub key_columns: usize,
    /// Whether the database numbers the rows, in the first column.
    pub numbers_rows: bool,
    /// The tables whose rows these rows need, without this table itself.
    needs: Vec<String>,
    /// Whether rows need rows of this table.
    pub needs_itself: bool,
}

impl Table {
    pub fn key(&self) -> &[Column] {
        self.columns
            .get(..self.key_columns)
            .unwrap_or(&self.columns)
    }

    /// The name as SQL has it; that of a column may be a word of SQL.
    pub fn quoted(&self) -> String {
        quoted(&self.name)
    }

    pub fn column_list(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|one| quoted(&one.name)).collect();
        names.join(", ")
    }
}

/// All tables, each after those that its rows need.
pub async fn read(source: &mut Side, target: &mut Side) -> Result<Vec<Table>, MoveError> {
    let (sqlite, postgres) = if source.is_sqlite() {
        (source, target)
    } else {
        (target, source)
    };
    let ours: Vec<(String,)> = sqlite
        .all(format!(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite|_%' \
             ESCAPE '|' AND name NOT IN ('_sqlx_migrations', '{}') ORDER BY name",
            migrate::UNFINISHED_MOVE
        ))
        .await?;
    let mut tables = read_postgres(postgres).await?;
    let mut found = Vec::with_capacity(ours.len());
    for (name,) in ours {
        let table = tables
            .remove(&name)
            .filter(|table| table.key_columns > 0)
            .ok_or_else(|| MoveError::Schemas(name))?;
        found.push(table);
    }
    Ok(ordered(found))
}

/// The tables of the current schema, without partitions. An unlogged one has no data: it reserves
/// room on the disk.
async fn read_postgres(side: &mut Side) -> Result<BTreeMap<String, Table>, MoveError> {
    let columns: Vec<(String, String, String, bool, bool)> = side
        .all(
            "SELECT c.relname::text, a.attname::text, t.typname::text, a.attidentity <> '', \
             i.indkey IS NOT NULL FROM pg_class c \
             JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
             JOIN pg_type t ON t.oid = a.atttypid \
             LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary \
             AND a.attnum = ANY (i.indkey) \
             WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') \
             AND c.relpersistence = 'p' AND NOT c.relispartition ORDER BY c.relname, \
             array_position(i.indkey::int2[], a.attnum), a.attnum"
                .to_owned(),
        )
        .await?;
    let mut tables = BTreeMap::new();
    for (table, column, kind, is_numbered, is_key) in columns {
        let kind = kind_of(&kind).ok_or_else(|| MoveError::Schemas(format!("{table}.{column}")))?;
        let table = tables.entry(table.clone()).or_insert_with(|| Table {
            name: table,
            columns: Vec::new(),
            key_columns: 0,
            numbers_rows: false,
            needs: Vec::new(),
            needs_itself: false,
        });
        table.columns.push(Column { name: column, kind });
        table.key_columns += usize::from(is_key);
        table.numbers_rows |= is_numbered;
    }
    let references: Vec<(String, String)> = side
        .all(
            "SELECT c.relname::text, f.relname::text FROM pg_constraint k \
             JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class f ON f.oid = k.confrelid \
             WHERE k.contype = 'f' AND c.relnamespace = current_schema()::regnamespace"
                .to_owned(),
        )
        .await?;
    for (name, needed) in references {
        let Some(table) = tables.get_mut(&name) else {
            continue;
        };
        match name == needed {
            true => table.needs_itself = true,
            false => table.needs.push(needed),
        }
    }
    Ok(tables)
}

fn kind_of(postgres_type: &str) -> Option<Kind> {
    Some(match postgres_type {
        "bool" => Kind::Bool,
        "bytea" => Kind::Bytes,
        "int8" => Kind::Int,
        "jsonb" => Kind::Json,
        "text" => Kind::Text,
        "timestamptz" => Kind::Time,
        "uuid" => Kind::Uuid,
        _ => return None,
    })
}

fn ordered(mut tables: Vec<Table>) -> Vec<Table> {
    let mut ordered = Vec::with_capacity(tables.len());
    while !tables.is_empty() {
        let waiting: Vec<String> = tables.iter().map(|table| table.name.clone()).collect();
        let (next, rest): (Vec<Table>, Vec<Table>) = tables
            .into_iter()
            .partition(|table| !table.needs.iter().any(|needed| waiting.contains(needed)));
        // Tables that need each other would wait for ever; PostgreSQL then refuses their rows.
        let is_circle = next.is_empty();
        ordered.extend(next);
        match is_circle {
            true => {
                ordered.extend(rest);
                break;
            }
            false => tables = rest,
        }
    }
    ordered
}
