//! Copies the rows of a table that the target does not have yet: those behind its last key. Each
//! commit has many rows, and memory holds one piece of them.

use sqlx_postgres::PgConnection;
use sqlx_sqlite::{SqliteArguments, SqliteConnection};
use tokio::sync::watch;

use super::rows::Rows;
use super::side::{Connection, Side};
use super::tables::Table;
use super::{MoveError, Progress, row};
use crate::db::copy::{END, HEADER, PIECE_BYTES};
use crate::db::sql::assembled;

/// A commit ends with the first of these.
const COMMIT_ROWS: u64 = 50_000;
const COMMIT_BYTES: usize = 64 * 1024 * 1024;
/// Rows of one INSERT of SQLite, which may have 32,766 values, and bytes.
const INSERT_ROWS: usize = 128;
const INSERT_BYTES: usize = 1024 * 1024;

pub async fn copy(
    source: &mut Side,
    target: &mut Side,
    table: &Table,
    progress: &watch::Sender<Progress>,
) -> Result<(), MoveError> {
    let last = Rows::last_key(target, table).await?;
    let mut rows = Rows::read(source, table, last.as_deref()).await?;
    let mut commit = Commit {
        rows: &mut rows,
        table,
        progress,
        count: 0,
        bytes: 0,
        is_last: false,
    };
    while !commit.is_last {
        (commit.count, commit.bytes) = (0, 0);
        let done = match &mut target.connection {
            Connection::Postgres(connection) => commit.copy_in(connection).await,
            Connection::Sqlite(connection) => commit.insert(connection).await,
        };
        done.map_err(|stopped| match stopped {
            Stopped::Source(error) => error,
            Stopped::Target(cause) => MoveError::Database {
                database: format!("{}, table {}", target.name, table.name),
                cause,
            },
        })?;
    }
    Ok(())
}

/// Which side has failed.
enum Stopped {
    Source(MoveError),
    Target(sqlx::Error),
}

impl From<sqlx::Error> for Stopped {
    fn from(cause: sqlx::Error) -> Self {
        Self::Target(cause)
    }
}

/// The rows that are committed together.
struct Commit<'a, 's> {
    rows: &'a mut Rows<'s>,
    table: &'a Table,
    progress: &'a watch::Sender<Progress>,
    count: u64,
    bytes: usize,
    /// Whether there are no more rows.
    is_last: bool,
}

impl Commit<'_, '_> {
    /// Goes to the next row; returns false at the end of the commit.
    async fn advance(&mut self) -> Result<bool, Stopped> {
        // Rows that need each other are checked at the end of a commit.
        let is_full = self.count >= COMMIT_ROWS || self.bytes >= COMMIT_BYTES;
        if is_full && !self.table.needs_itself {
            return Ok(false);
        }
        self.is_last = !self.rows.advance().await.map_err(Stopped::Source)?;
        if self.is_last {
            return Ok(false);
        }
        self.count += 1;
        self.bytes += self.rows.row().len();
        Ok(true)
    }

    fn show(&self, rows: u64) {
        self.progress.send_modify(|shown| shown.done += rows);
    }

    async fn copy_in(&mut self, connection: &mut PgConnection) -> Result<(), Stopped> {
        // Most tables have no more rows.
        if !self.advance().await? {
            return Ok(());
        }
        let statement = format!(
            "COPY {} ({}) FROM STDIN (FORMAT BINARY)",
            self.table.quoted(),
            self.table.column_list()
        );
        let mut copy = connection.copy_in_raw(&statement).await?;
        let mut piece = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 8);
        piece.extend_from_slice(HEADER);
        let mut shown = 0;
        loop {
            piece.extend_from_slice(self.rows.row());
            if piece.len() >= PIECE_BYTES {
                copy.send(piece.as_slice()).await?;
                piece.clear();
                self.show(self.count - shown);
                shown = self.count;
            }
            if !self.advance().await? {
                break;
            }
        }
        piece.extend_from_slice(&END);
        copy.send(piece).await?;
        copy.finish().await?;
        self.show(self.count - shown);
        Ok(())
    }

    async fn insert(&mut self, connection: &mut SqliteConnection) -> Result<(), Stopped> {
        if !self.advance().await? {
            return Ok(());
        }
        sqlx::query("BEGIN IMMEDIATE")
            .execute(&mut *connection)
            .await?;
        let mut args = SqliteArguments::default();
        let (mut rows, mut bytes) = (0, 0);
        let mut has_more = true;
        while has_more {
            row::bind(self.rows.row(), &self.table.columns, &mut args)
                .map_err(sqlx::Error::Encode)?;
            rows += 1;
            bytes += self.rows.row().len();
            has_more = self.advance().await?;
            if !has_more || rows == INSERT_ROWS || bytes >= INSERT_BYTES {
                let args = std::mem::take(&mut args);
                insert_rows(connection, self.table, rows, args).await?;
                self.show(rows as u64);
                (rows, bytes) = (0, 0);
            }
        }
        sqlx::query("COMMIT").execute(connection).await?;
        Ok(())
    }
}

async fn insert_rows(
    connection: &mut SqliteConnection,
    table: &Table,
    rows: usize,
    args: SqliteArguments,
) -> Result<(), sqlx::Error> {
    let row = format!("({})", vec!["?"; table.columns.len()].join(","));
    let text = format!(
        "INSERT INTO {} ({}) VALUES {}",
        table.quoted(),
        table.column_list(),
        vec![row.as_str(); rows].join(",")
    );
    sqlx::query_with(assembled(text.into()), args)
        .persistent(rows == INSERT_ROWS)
        .execute(connection)
        .await
        .map(drop)
}
