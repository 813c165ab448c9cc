//! One of the two databases of a move, on one connection. The connection of the source keeps
//! everyone else from changing it.

use std::str::FromStr;
use std::time::Duration;

use sqlx::{ConnectOptions, Connection as _};
use sqlx_postgres::{PgConnectOptions, PgConnection};
use sqlx_sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteLockingMode, SqliteSynchronous,
};

use super::MoveError;
use super::tables::Table;
use crate::db::dialect::Dialect;
use crate::db::sql::{DbRow, assembled, quoted};
use crate::db::{name, nodelay, partitions, sqlite_file};

/// How long a service that stops may hold the source.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The rows of a target lie in the order of their keys: an index gives them in order, and sorting
/// them would need as much disk as they do.
const READ_BY_KEY: [(&str, &str); 3] = [
    ("enable_sort", "off"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
];
/// Rows that SQLite's thread may read ahead.
const ROWS_AHEAD: usize = 1024;

pub struct Side {
    /// For messages, without a password.
    pub name: String,
    pub connection: Connection,
}

pub enum Connection {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

impl Side {
    /// Opens the database to read from, unless a service uses it. `own_sessions` are those of this
    /// process. An SQLite file is then locked.
    pub async fn open_source(url: &str, own_sessions: &str) -> Result<Self, MoveError> {
        let Some(file) = sqlite_file(url) else {
            let mut side = Self::connect(url, &[]).await?;
            side.refuse_replicas(own_sessions).await?;
            return Ok(side);
        };
        // In this mode the first read locks the file, which fails while anybody has it open.
        let options = SqliteConnectOptions::new()
            .filename(file)
            .locking_mode(SqliteLockingMode::Exclusive)
            .busy_timeout(LOCK_TIMEOUT)
            .row_buffer_size(ROWS_AHEAD)
            .pragma("query_only", "ON");
        let opened = async {
            let mut connection = options.connect().await?;
            sqlx::query("SELECT COUNT(*) FROM sqlite_schema")
                .execute(&mut connection)
                .await?;
            Ok::<_, sqlx::Error>(connection)
        };
        let database = name(url);
        match opened.await {
            Ok(connection) => Ok(Self {
                name: database,
                connection: Connection::Sqlite(connection),
            }),
            Err(error) if is_busy(&error) => Err(MoveError::InUse {
                database,
                by: "another process".to_owned(),
            }),
            Err(cause) => Err(MoveError::Database { database, cause }),
        }
    }

    /// Opens the database to write to.
    pub async fn open_target(url: &str) -> Result<Self, MoveError> {
        let Some(file) = sqlite_file(url) else {
            return Self::connect(url, &READ_BY_KEY).await;
        };
        let options = SqliteConnectOptions::new()
            .filename(file)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            // Rows come after those that they need, but for those of their own table.
            .foreign_keys(false)
            .busy_timeout(LOCK_TIMEOUT)
            .row_buffer_size(ROWS_AHEAD)
            .pragma("cache_size", "-131072")
            .pragma("temp_store", "FILE");
        let database = name(url);
        match options.connect().await {
            Ok(connection) => Ok(Self {
                name: database,
                connection: Connection::Sqlite(connection),
            }),
            Err(cause) => Err(MoveError::Database { database, cause }),
        }
    }

    async fn connect(url: &str, settings: &[(&str, &str)]) -> Result<Self, MoveError> {
        let database = name(url);
        let opened = async {
            let connection = PgConnectOptions::from_str(url)?
                .application_name("hub-cloud move")
                .options([
                    ("statement_timeout", "0"),
                    ("idle_in_transaction_session_timeout", "0"),
                    ("lock_timeout", "5s"),
                    ("jit", "off"),
                    // For indexes.
                    ("maintenance_work_mem", "256MB"),
                ])
                .options(settings.iter().copied())
                .connect()
                .await?;
            nodelay::set();
            Ok(connection)
        };
        match opened.await {
            Ok(connection) => Ok(Self {
                name: database,
                connection: Connection::Postgres(connection),
            }),
            Err(cause) => Err(MoveError::Database { database, cause }),
        }
    }

    /// Names the replicas that are connected.
    async fn refuse_replicas(&mut self, own_sessions: &str) -> Result<(), MoveError> {
        let replicas: Vec<(String,)> = self
            .all(format!(
                "SELECT DISTINCT application_name || COALESCE(' at ' || host(client_addr), '') \
                 FROM pg_stat_activity WHERE datname = current_database() \
                 AND application_name LIKE 'hub-cloud %' AND pid <> pg_backend_pid() \
                 AND application_name <> '{own_sessions}'"
            ))
            .await?;
        if replicas.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = replicas.into_iter().map(|(name,)| name).collect();
        Err(MoveError::InUse {
            database: self.name.clone(),
            by: names.join(", "),
        })
    }

    /// Keeps everyone from writing to the tables of a source until this connection ends, and reads
    /// one state of them from here on.
    pub async fn lock(&mut self, tables: &[Table]) -> Result<(), MoveError> {
        if self.dialect() == Dialect::Sqlite {
            return Ok(());
        }
        let names: Vec<String> = tables.iter().map(Table::quoted).collect();
        self.run("BEGIN ISOLATION LEVEL REPEATABLE READ".to_owned())
            .await?;
        let locked = self
            .run(format!("LOCK TABLE {} IN EXCLUSIVE MODE", names.join(", ")))
            .await;
        match locked {
            Err(MoveError::Database { database, cause }) if is_busy(&cause) => {
                Err(MoveError::InUse {
                    database,
                    by: "a session that writes to it".to_owned(),
                })
            }
            other => other,
        }
    }

    pub fn dialect(&self) -> Dialect {
        match self.connection {
            Connection::Postgres(_) => Dialect::Postgres,
            Connection::Sqlite(_) => Dialect::Sqlite,
        }
    }

    pub fn is_sqlite(&self) -> bool {
        self.dialect() == Dialect::Sqlite
    }

    fn failed(&self, cause: sqlx::Error) -> MoveError {
        MoveError::Database {
            database: self.name.clone(),
            cause,
        }
    }

    /// Runs one statement.
    pub async fn run(&mut self, text: String) -> Result<(), MoveError> {
        let text = assembled(text.into());
        let done = match &mut self.connection {
            Connection::Postgres(connection) => {
                sqlx::query(text).execute(connection).await.map(drop)
            }
            Connection::Sqlite(connection) => sqlx::query(text).execute(connection).await.map(drop),
        };
        done.map_err(|cause| self.failed(cause))
    }

    pub async fn all<T: DbRow>(&mut self, text: String) -> Result<Vec<T>, MoveError> {
        let text = assembled(text.into());
        let rows = match &mut self.connection {
            Connection::Postgres(connection) => {
                sqlx::query_as::<_, T>(text).fetch_all(connection).await
            }
            Connection::Sqlite(connection) => {
                sqlx::query_as::<_, T>(text).fetch_all(connection).await
            }
        };
        rows.map_err(|cause| self.failed(cause))
    }

    async fn number(&mut self, text: String) -> Result<Option<i64>, MoveError> {
        let rows: Vec<(Option<i64>,)> = self.all(text).await?;
        Ok(rows.into_iter().next().and_then(|(number,)| number))
    }

    pub async fn count(&mut self, table: &Table) -> Result<u64, MoveError> {
        let count = self
            .number(format!("SELECT COUNT(*) FROM {}", table.quoted()))
            .await?;
        Ok(count.unwrap_or(0).unsigned_abs())
    }

    /// The smallest id of the records that PostgreSQL partitions by month.
    pub async fn first_record(&mut self) -> Result<Option<i64>, MoveError> {
        let mut first = None;
        for (table, id) in partitions::PARTITIONED {
            // With the tenant, an index has the smallest id at its beginning.
            let found = self
                .number(format!(
                    "SELECT MIN((SELECT MIN({id}) FROM {table} \
                     WHERE {table}.tenant_uuid = tenants.tenant_uuid)) FROM tenants"
                ))
                .await?;
            first = first.into_iter().chain(found).min();
        }
        Ok(first)
    }

    /// The last id that the database gave to a row, also if the row is gone; 0 for none.
    pub async fn last_id(&mut self, table: &Table) -> Result<i64, MoveError> {
        let Some(id) = table.columns.first().filter(|_| table.numbers_rows) else {
            return Ok(0);
        };
        let max = format!("(SELECT MAX({}) FROM {})", quoted(&id.name), table.quoted());
        let text = match self.dialect() {
            Dialect::Sqlite => format!(
                "SELECT MAX(COALESCE((SELECT seq FROM sqlite_sequence WHERE name = '{}'), 0), \
                 COALESCE({max}, 0))",
                table.name
            ),
            Dialect::Postgres => {
                let sequence: Vec<(String,)> = self
                    .all(format!(
                        "SELECT pg_get_serial_sequence('{}', '{}')",
                        table.quoted(),
                        id.name
                    ))
                    .await?;
                let sequence = sequence
                    .into_iter()
                    .next()
                    .map_or_else(String::new, |(name,)| name);
                format!(
                    "SELECT GREATEST(COALESCE({max}, 0), \
                     CASE WHEN is_called THEN last_value ELSE 0 END) FROM {sequence}"
                )
            }
        };
        Ok(self.number(text).await?.unwrap_or(0))
    }

    /// Lets the ids of new rows continue behind `last`.
    pub async fn continue_ids(&mut self, table: &Table, last: i64) -> Result<(), MoveError> {
        let Some(id) = table.columns.first().filter(|_| last > 0) else {
            return Ok(());
        };
        let name = &table.name;
        match self.dialect() {
            Dialect::Postgres => {
                self.run(format!(
                    "SELECT setval(pg_get_serial_sequence('{}', '{}'), {last})",
                    table.quoted(),
                    id.name
                ))
                .await
            }
            // Tables without AUTOINCREMENT continue behind their last row by themselves.
            Dialect::Sqlite => {
                self.run(format!("DELETE FROM sqlite_sequence WHERE name = '{name}'"))
                    .await?;
                self.run(format!(
                    "INSERT INTO sqlite_sequence (name, seq) SELECT name, {last} \
                     FROM sqlite_schema WHERE name = '{name}' AND sql LIKE '%AUTOINCREMENT%'"
                ))
                .await
            }
        }
    }

    /// Gathers the statistics that queries are planned with.
    pub async fn analyze(&mut self) -> Result<(), MoveError> {
        match self.dialect() {
            Dialect::Postgres => self.run("ANALYZE".to_owned()).await,
            Dialect::Sqlite => Ok(()),
        }
    }

    pub async fn close(self) -> Result<(), MoveError> {
        let closed = match self.connection {
            Connection::Postgres(connection) => connection.close().await,
            Connection::Sqlite(connection) => connection.close().await,
        };
        closed.map_err(|cause| MoveError::Database {
            database: self.name,
            cause,
        })
    }
}

/// SQLite's BUSY (5), and PostgreSQL's 55P03 of a lock that was not to be had.
fn is_busy(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    error.code().is_some_and(|code| match code.len() {
        5 => code == "55P03",
        _ => code.parse::<u32>().is_ok_and(|code| code & 0xff == 5),
    })
}
