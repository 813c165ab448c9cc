//! Reads the rows of a table in the order of its primary key, one at a time, with a memory that
//! depends on the largest row alone.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use sqlx_sqlite::SqliteRow;

use super::MoveError;
use super::row;
use super::side::{Connection, Side};
use super::tables::{Column, Kind, Table};
use crate::db::copy::HEADER;
use crate::db::dialect::Dialect;
use crate::db::sql::{assembled, quoted};

/// A row that says that it has -1 columns.
const END_MARKER_BYTES: usize = 2;

/// The rows of a table that are still to be read.
pub struct Rows<'s> {
    database: String,
    table: &'s Table,
    columns: &'s [Column],
    stream: Stream<'s>,
    /// The current row, and on PostgreSQL what was received after it.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

enum Stream<'s> {
    Postgres(BoxStream<'s, Result<Bytes, sqlx::Error>>),
    Sqlite(BoxStream<'s, Result<SqliteRow, sqlx::Error>>),
}

impl<'s> Rows<'s> {
    /// All rows whose key is greater than that of `after`.
    pub async fn read(
        side: &'s mut Side,
        table: &'s Table,
        after: Option<&[u8]>,
    ) -> Result<Self, MoveError> {
        let dialect = side.dialect();
        let key = key_list(dialect, table, "");
        let beyond = after.map_or_else(String::new, |after| {
            let values: Vec<String> = row::fields(after)
                .zip(table.key())
                .map(|(field, column)| row::literal(dialect, column.kind, field))
                .collect();
            format!(" WHERE ({key}) > ({})", values.join(", "))
        });
        let query = format!(
            "SELECT {} FROM {}{beyond} ORDER BY {key}",
            table.column_list(),
            table.quoted()
        );
        Self::of(side, table, &table.columns, query).await
    }

    /// The key of the last row.
    pub async fn last_key(
        side: &'s mut Side,
        table: &'s Table,
    ) -> Result<Option<Vec<u8>>, MoveError> {
        let names: Vec<String> = table.key().iter().map(|one| quoted(&one.name)).collect();
        let query = format!(
            "SELECT {} FROM {} ORDER BY {} LIMIT 1",
            names.join(", "),
            table.quoted(),
            key_list(side.dialect(), table, " DESC")
        );
        let mut rows = Self::of(side, table, table.key(), query).await?;
        if !rows.advance().await? {
            return Ok(None);
        }
        let last = rows.row().to_vec();
        // A COPY that is not read to its end would hold the connection.
        rows.advance().await?;
        Ok(Some(last))
    }

    async fn of(
        side: &'s mut Side,
        table: &'s Table,
        columns: &'s [Column],
        query: String,
    ) -> Result<Self, MoveError> {
        let database = side.name.clone();
        let stream = match &mut side.connection {
            Connection::Sqlite(connection) => {
                let query = sqlx::query(assembled(query.into())).persistent(false);
                Ok(Stream::Sqlite(query.fetch(connection)))
            }
            Connection::Postgres(connection) => {
                let statement = format!("COPY ({query}) TO STDOUT (FORMAT BINARY)");
                connection
                    .copy_out_raw(&statement)
                    .await
                    .map(Stream::Postgres)
            }
        };
        let mut rows = Self {
            stream: stream.map_err(|cause| MoveError::Database {
                database: database.clone(),
                cause,
            })?,
            database,
            table,
            columns,
            bytes: Vec::new(),
            start: 0,
            end: 0,
        };
        if let Stream::Postgres(_) = rows.stream {
            rows.receive(HEADER.len()).await?;
            rows.end = HEADER.len();
        }
        Ok(rows)
    }

    /// Goes to the next row; returns false at the end.
    pub async fn advance(&mut self) -> Result<bool, MoveError> {
        let Stream::Sqlite(stream) = &mut self.stream else {
            return self.advance_copy().await;
        };
        let Some(read) = stream.next().await else {
            return Ok(false);
        };
        let read = read.map_err(|cause| MoveError::Database {
            database: self.database.clone(),
            cause,
        })?;
        row::write(&read, self.columns, &mut self.bytes).map_err(|unfit| {
            // The key comes first, so what is written has it unless it is at fault itself.
            let column = self.columns.get(unfit.column);
            MoveError::Unfit {
                from: self.database.clone(),
                table: self.table.name.clone(),
                key: row::describe(&self.bytes, self.table.key()),
                column: column.map_or_else(String::new, |column| column.name.clone()),
                reason: unfit.reason,
            }
        })?;
        self.end = self.bytes.len();
        Ok(true)
    }

    async fn advance_copy(&mut self) -> Result<bool, MoveError> {
        self.start = self.end;
        loop {
            let unread = self.bytes.get(self.start..).unwrap_or_default();
            match row::first_length(unread) {
                Some(END_MARKER_BYTES) => {
                    // The connection is free once the server has said that this was all.
                    while self.receive(self.bytes.len() + 1).await? {}
                    return Ok(false);
                }
                Some(length) => {
                    self.end = self.start + length;
                    return Ok(true);
                }
                None => {
                    let wanted = unread.len() + 1;
                    if !self.receive(wanted).await? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Receives until there are so many unread bytes; returns false at the end of the stream.
    async fn receive(&mut self, wanted: usize) -> Result<bool, MoveError> {
        let Stream::Postgres(stream) = &mut self.stream else {
            return Ok(false);
        };
        self.bytes.drain(..self.start);
        self.end -= self.start;
        self.start = 0;
        while self.bytes.len() < wanted {
            match stream.next().await {
                None => return Ok(false),
                Some(Ok(received)) => self.bytes.extend_from_slice(&received),
                Some(Err(cause)) => {
                    return Err(MoveError::Database {
                        database: self.database.clone(),
                        cause,
                    });
                }
            }
        }
        Ok(true)
    }

    /// The current row.
    pub fn row(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }
}

/// The columns of the key to order by. Texts are ordered by code points on both databases.
fn key_list(dialect: Dialect, table: &Table, direction: &str) -> String {
    let columns: Vec<String> = table
        .key()
        .iter()
        .map(|column| {
            let collation = match (dialect, column.kind) {
                (Dialect::Postgres, Kind::Text) => " COLLATE \"C\"",
                _ => "",
            };
            format!("{}{collation}{direction}", quoted(&column.name))
        })
        .collect();
    columns.join(", ")
}
