//! Many rows in few statements: COPY or arrays through UNNEST on PostgreSQL, many-row VALUES on
//! SQLite.
//! Ingest uses it on its hot path; ordinary writes use `sql`.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use hub_protocol::Timestamp;
use sqlx::Arguments;
use sqlx::error::BoxDynError;
use sqlx_postgres::PgArguments;
use sqlx_sqlite::SqliteArguments;
use uuid::Uuid;

use super::sql::{DbRow, assembled};
use super::{Conn, Raw, copy, storable};
use crate::error::Result;

/// One column of many rows.
pub enum Column {
    Uuid(Vec<Uuid>),
    OptionalUuid(Vec<Option<Uuid>>),
    Bool(Vec<bool>),
    Int(Vec<i64>),
    OptionalInt(Vec<Option<i64>>),
    /// A value of a fixed set, such as a status.
    Word(Vec<&'static str>),
    Text(Vec<Arc<str>>),
    OptionalText(Vec<Option<Arc<str>>>),
    Bytes(Vec<Vec<u8>>),
    Time(Vec<Timestamp>),
    OptionalTime(Vec<Option<Timestamp>>),
}

impl Column {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Uuid(values) => values.len(),
            Self::OptionalUuid(values) => values.len(),
            Self::Bool(values) => values.len(),
            Self::Int(values) => values.len(),
            Self::OptionalInt(values) => values.len(),
            Self::Word(values) => values.len(),
            Self::Text(values) => values.len(),
            Self::OptionalText(values) => values.len(),
            Self::Bytes(values) => values.len(),
            Self::Time(values) => values.len(),
            Self::OptionalTime(values) => values.len(),
        }
    }

    /// Replaces what a database cannot store.
    fn make_storable(&mut self) {
        match self {
            Self::Text(values) => values.iter_mut().for_each(storable::make),
            Self::OptionalText(values) => values.iter_mut().flatten().for_each(storable::make),
            _ => {}
        }
    }

    const fn postgres_type(&self) -> &'static str {
        match self {
            Self::Uuid(_) | Self::OptionalUuid(_) => "uuid[]",
            Self::Bool(_) => "bool[]",
            Self::Int(_) | Self::OptionalInt(_) => "bigint[]",
            Self::Word(_) | Self::Text(_) | Self::OptionalText(_) => "text[]",
            Self::Bytes(_) => "bytea[]",
            Self::Time(_) | Self::OptionalTime(_) => "timestamptz[]",
        }
    }

    fn add_array(self, args: &mut PgArguments) -> std::result::Result<(), BoxDynError> {
        match self {
            Self::Uuid(values) => args.add(values),
            Self::OptionalUuid(values) => args.add(values),
            Self::Bool(values) => args.add(values),
            Self::Int(values) => args.add(values),
            Self::OptionalInt(values) => args.add(values),
            Self::Word(values) => args.add(values),
            Self::Text(values) => {
                args.add(values.iter().map(|text| &**text).collect::<Vec<&str>>())
            }
            Self::OptionalText(values) => args.add(
                values
                    .iter()
                    .map(Option::as_deref)
                    .collect::<Vec<Option<&str>>>(),
            ),
            Self::Bytes(values) => args.add(values),
            Self::Time(values) => args.add(
                values
                    .into_iter()
                    .map(Timestamp::to_datetime)
                    .collect::<Vec<_>>(),
            ),
            Self::OptionalTime(values) => args.add(
                values
                    .into_iter()
                    .map(|time| time.map(Timestamp::to_datetime))
                    .collect::<Vec<_>>(),
            ),
        }
    }

    fn add_value(
        &self,
        row: usize,
        args: &mut SqliteArguments,
    ) -> std::result::Result<(), BoxDynError> {
        match self {
            Self::Uuid(values) => args.add(values.get(row).copied()),
            Self::OptionalUuid(values) => args.add(values.get(row).copied().flatten()),
            Self::Bool(values) => args.add(values.get(row).copied()),
            Self::Int(values) => args.add(values.get(row).copied()),
            Self::OptionalInt(values) => args.add(values.get(row).copied().flatten()),
            Self::Word(values) => args.add(values.get(row).copied()),
            Self::Text(values) => args.add(values.get(row).cloned()),
            Self::OptionalText(values) => args.add(values.get(row).cloned().flatten()),
            Self::Bytes(values) => args.add(values.get(row).cloned()),
            Self::Time(values) => args.add(values.get(row).map(Timestamp::to_string)),
            Self::OptionalTime(values) => args.add(
                values
                    .get(row)
                    .copied()
                    .flatten()
                    .map(|time| time.to_string()),
            ),
        }
    }
}

/// The most rows in one SQLite statement. Row counts are powers of two: there are few distinct
/// statements to prepare, and any number of rows takes few statements. Each statement costs a round
/// trip to the connection's thread.
const SQLITE_MAX_ROWS: usize = 1024;

/// A statement over many rows: `head`, the rows, `tail`, as in `INSERT INTO t (a, b)` rows `ON
/// CONFLICT DO NOTHING`. A table that is joined to the rows is compared with `COALESCE(given.a,
/// NULL)`: of some hundred rows, SQLite would else make an index and scan the whole table for it.
pub struct Bulk {
    pub head: &'static str,
    pub columns: Vec<Column>,
    pub tail: &'static str,
}

impl Bulk {
    fn rows(&self) -> usize {
        self.columns.first().map_or(0, Column::len)
    }

    /// The table and columns of an INSERT of rows that exist nowhere yet.
    fn plain_target(&self) -> Option<&'static str> {
        self.head
            .strip_prefix("INSERT INTO ")
            .filter(|_| self.tail.is_empty())
    }

    pub async fn execute(mut self, conn: &mut Conn) -> Result<u64> {
        let rows = self.rows();
        if rows == 0 {
            return Ok(0);
        }
        self.columns.iter_mut().for_each(Column::make_storable);
        match conn.raw() {
            Raw::Postgres(conn) => {
                if let Some(target) = self.plain_target().filter(|_| rows >= copy::MIN_ROWS) {
                    return Ok(copy::insert(conn, target, &self.columns).await?);
                }
                let text = assembled(Cow::Owned(self.postgres_text()));
                Ok(sqlx::query_with(text, self.into_arrays()?)
                    .execute(conn)
                    .await?
                    .rows_affected())
            }
            Raw::Sqlite(conn) => {
                let mut changed = 0;
                for (start, size) in chunks(rows) {
                    let text = assembled(Cow::Owned(self.sqlite_text(size)));
                    let args = self.sqlite_args(start, size)?;
                    changed += sqlx::query_with(text, args)
                        .execute(&mut *conn)
                        .await?
                        .rows_affected();
                }
                Ok(changed)
            }
        }
    }

    /// As `execute`, for a `tail` that ends in RETURNING. The rows are in no particular order.
    pub async fn returning<T: DbRow>(mut self, conn: &mut Conn) -> Result<Vec<T>> {
        let rows = self.rows();
        if rows == 0 {
            return Ok(Vec::new());
        }
        self.columns.iter_mut().for_each(Column::make_storable);
        match conn.raw() {
            Raw::Postgres(conn) => {
                let text = assembled(Cow::Owned(self.postgres_text()));
                Ok(sqlx::query_as_with::<_, T, _>(text, self.into_arrays()?)
                    .fetch_all(conn)
                    .await?)
            }
            Raw::Sqlite(conn) => {
                let mut found = Vec::new();
                for (start, size) in chunks(rows) {
                    let text = assembled(Cow::Owned(self.sqlite_text(size)));
                    let args = self.sqlite_args(start, size)?;
                    found.extend(
                        sqlx::query_as_with::<_, T, _>(text, args)
                            .fetch_all(&mut *conn)
                            .await?,
                    );
                }
                Ok(found)
            }
        }
    }

    fn postgres_text(&self) -> String {
        let mut text = format!("{} SELECT * FROM UNNEST(", self.head);
        for (index, column) in self.columns.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            let _ = write!(text, "{comma}${}::{}", index + 1, column.postgres_type());
        }
        let _ = write!(text, ") {}", self.tail);
        text
    }

    fn into_arrays(self) -> std::result::Result<PgArguments, sqlx::Error> {
        let mut args = PgArguments::default();
        for column in self.columns {
            column.add_array(&mut args).map_err(sqlx::Error::Encode)?;
        }
        Ok(args)
    }

    fn sqlite_text(&self, rows: usize) -> String {
        let row = format!("({})", vec!["?"; self.columns.len()].join(","));
        let rows = vec![row.as_str(); rows].join(",");
        // A statement that fails rolls back its whole transaction, so OR FAIL spares SQLite the
        // journal that undoes one statement alone.
        match self.plain_target() {
            Some(target) => format!("INSERT OR FAIL INTO {target} VALUES {rows}"),
            None => format!("{} VALUES {rows} {}", self.head, self.tail),
        }
    }

    fn sqlite_args(
        &self,
        start: usize,
        size: usize,
    ) -> std::result::Result<SqliteArguments, sqlx::Error> {
        let mut args = SqliteArguments::default();
        for row in start..start + size {
            for column in &self.columns {
                column
                    .add_value(row, &mut args)
                    .map_err(sqlx::Error::Encode)?;
            }
        }
        Ok(args)
    }
}

/// Splits `rows` into runs: (start, size).
fn chunks(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let size = 1 << (rows - start).min(SQLITE_MAX_ROWS).checked_ilog2()?;
        let run = (start, size);
        start += size;
        Some(run)
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn chunks_cover_every_row_once() {
        for rows in [0, 1, 15, 16, 17, 127, 128, 129, 1000, 1024, 5000] {
            let mut next = 0;
            for (start, size) in super::chunks(rows) {
                assert_eq!(start, next);
                assert!(size.is_power_of_two() && size <= super::SQLITE_MAX_ROWS);
                next += size;
            }
            assert_eq!(next, rows);
        }
    }
}
