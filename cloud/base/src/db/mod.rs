//! The only access to the database: PostgreSQL or SQLite, chosen by the URL in the configuration.
//! All other code writes one text of SQL for both (see [`sql`]) and does not know which it runs on.
//! The differences are in [`dialect`] and [`bulk`].

pub mod aged;
pub mod bulk;
pub mod citus;
mod copy;
pub mod dialect;
pub mod distributed;
mod log;
pub mod migrate;
pub mod months;
pub mod moves;
pub mod nodelay;
pub mod partitions;
pub mod sessions;
pub mod snapshot;
pub mod space;
pub mod sql;
mod storable;

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::pool::PoolConnection;
use sqlx::{ConnectOptions, Connection, Transaction};
use sqlx_postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, Postgres};
use sqlx_sqlite::{
    Sqlite, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool,
    SqlitePoolOptions, SqliteSynchronous,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use crate::error::{self, Error, Result};
use dialect::Dialect;
pub use log::{Log, LogRange};
pub use sql::{Arg, DbRow, Direction, MAX_COUNT, Slice, Sql, sql};

/// How long a request waits for a connection before it is answered 503.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(3);

/// The same for a connection to read with in the background.
const BACKGROUND_ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);

/// Background connections to PostgreSQL.
pub const BACKGROUND_CONNECTIONS: u32 = 4;

/// Connections to PostgreSQL, besides those in the background.
pub const DEFAULT_CONNECTIONS: u32 = 20;

/// The time that a background reader leaves between two reads. SQLite's write-ahead log starts over
/// only while no reader uses an older state.
const BACKGROUND_PAUSE: Duration = Duration::from_millis(10);

/// Transactions that may wait for SQLite's one writing connection.
const MAX_WAITING: usize = 1024;

/// A handle to the database; cheap to clone.
#[derive(Clone)]
pub enum Db {
    Postgres {
        pool: PgPool,
        /// The replica whose name the sessions have.
        replica_uuid: Uuid,
    },
    /// One connection writes, so that a transaction never fails with `SQLITE_BUSY`; the others only
    /// read.
    Sqlite {
        writer: SqlitePool,
        reader: SqlitePool,
        lane: Lane,
        replica_uuid: Uuid,
    },
}

/// The queue of all transactions but those of uploads before the one writing connection of SQLite.
/// Only the first in the queue waits for the connection itself, which serves whoever comes first,
/// so uploads wait for at most one other transaction, however many there are.
#[derive(Clone)]
pub struct Lane {
    waiting: Arc<Semaphore>,
    first: Arc<Semaphore>,
}

impl Lane {
    fn new() -> Self {
        Self {
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
            first: Arc::new(Semaphore::new(1)),
        }
    }

    /// Waits to be the first. The transaction holds the place until it ends.
    async fn enter(&self) -> std::result::Result<OwnedSemaphorePermit, sqlx::Error> {
        let _waiting = self
            .waiting
            .try_acquire()
            .map_err(|_| sqlx::Error::PoolTimedOut)?;
        match tokio::time::timeout(ACQUIRE_TIMEOUT, self.first.clone().acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(sqlx::Error::PoolTimedOut),
        }
    }
}

impl Db {
    /// Opens `postgres://...` or `sqlite:PATH`, whose file is created. An unreachable PostgreSQL is
    /// no error here: requests are answered with 503 until it is reachable.
    pub fn open(url: &str) -> std::result::Result<Self, sqlx::Error> {
        Self::open_with(url, DEFAULT_CONNECTIONS)
    }

    /// As [`Db::open`], with this many connections to PostgreSQL at most, besides those of
    /// [`Db::background`].
    pub fn open_with(url: &str, connections: u32) -> std::result::Result<Self, sqlx::Error> {
        match sqlite_file(url) {
            Some(path) => Self::open_sqlite(path, Missing::Create),
            None => Self::open_postgres(url, connections),
        }
    }

    /// As [`Db::open`], for a database that exists. A missing file is an error when it is first
    /// used.
    pub fn open_existing(url: &str) -> std::result::Result<Self, sqlx::Error> {
        match sqlite_file(url) {
            Some(path) => Self::open_sqlite(path, Missing::Refuse),
            None => Self::open_postgres(url, DEFAULT_CONNECTIONS),
        }
    }

    /// Connects once and returns the error if that fails. Does not change an existing database.
    pub async fn try_out(url: &str) -> std::result::Result<(), sqlx::Error> {
        match sqlite_file(url) {
            Some(path) => {
                let mut conn = SqliteConnectOptions::new().filename(path).connect().await?;
                sqlx::query("SELECT COUNT(*) FROM sqlite_schema")
                    .execute(&mut conn)
                    .await?;
                conn.close().await
            }
            None => {
                PgConnectOptions::from_str(url)?
                    .connect()
                    .await?
                    .close()
                    .await
            }
        }
    }

    fn open_postgres(url: &str, connections: u32) -> std::result::Result<Self, sqlx::Error> {
        // A statement that takes longer is blocked by another; it fails instead of blocking others
        // too.
        let replica_uuid = Uuid::new_v4();
        let options = PgConnectOptions::from_str(url)?
            .application_name(&sessions::name(replica_uuid))
            .options([
                ("statement_timeout", "60s"),
                // A replica that is paused in a transaction must not hold up the others.
                ("idle_in_transaction_session_timeout", "5s"),
                // JIT compilation takes 100 ms, more than any statement here would gain.
                ("jit", "off"),
            ]);
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .idle_timeout(Duration::from_secs(300))
            .after_connect(|_, _| {
                nodelay::set();
                Box::pin(std::future::ready(Ok(())))
            })
            .connect_lazy_with(options);
        Ok(Self::Postgres { pool, replica_uuid })
    }

    fn open_sqlite(path: &Path, missing: Missing) -> std::result::Result<Self, sqlx::Error> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(missing == Missing::Create)
            .journal_mode(SqliteJournalMode::Wal)
            // An answered upload survives a power cut.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(Duration::from_secs(5))
            // Every bulk statement has eleven sizes; the remaining entries are for all other
            // statements.
            .statement_cache_capacity(256)
            .pragma("cache_size", "-32768")
            // A checkpoint costs the same for many changes as for few.
            .pragma(
                "wal_autocheckpoint",
                space::log_pages_before_checkpoint(path).to_string(),
            )
            .pragma("temp_store", "MEMORY")
            .pragma("journal_size_limit", "67108864");
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .before_acquire(|conn, _| {
                // When a statement finds the disk full, SQLite rolls the transaction back itself.
                // The ROLLBACK that follows then fails, and sqlx 0.9.0 believes the connection to
                // be in a transaction for ever, and refuses to begin one. A new connection can.
                let is_usable = !conn.is_in_transaction();
                Box::pin(std::future::ready(Ok(is_usable)))
            })
            .connect_lazy_with(options.clone());
        let reader = SqlitePoolOptions::new()
            .max_connections(8)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_lazy_with(options.pragma("query_only", "ON"));
        Ok(Self::Sqlite {
            writer,
            reader,
            lane: Lane::new(),
            replica_uuid: Uuid::new_v4(),
        })
    }

    /// The same database with a few connections of its own to read with, for those who read a lot
    /// and must not hold up requests. Connections are opened by the threads that use it, and the
    /// threads that SQLite works on have the priority of these.
    pub fn background(&self) -> Self {
        match self {
            Self::Postgres { pool, replica_uuid } => {
                let pool = PgPoolOptions::new()
                    .max_connections(BACKGROUND_CONNECTIONS)
                    .acquire_timeout(BACKGROUND_ACQUIRE_TIMEOUT)
                    .idle_timeout(Duration::from_secs(60))
                    .connect_lazy_with(PgConnectOptions::clone(&pool.connect_options()));
                Self::Postgres {
                    pool,
                    replica_uuid: *replica_uuid,
                }
            }
            Self::Sqlite {
                writer,
                reader,
                lane,
                replica_uuid,
            } => {
                let options = SqliteConnectOptions::clone(&reader.connect_options());
                let reader = SqlitePoolOptions::new()
                    .max_connections(1)
                    .acquire_timeout(BACKGROUND_ACQUIRE_TIMEOUT)
                    .idle_timeout(Duration::from_secs(60))
                    .after_release(|_, _| {
                        Box::pin(async {
                            tokio::time::sleep(BACKGROUND_PAUSE).await;
                            Ok(true)
                        })
                    })
                    // Pages that are read once need no cache.
                    .connect_lazy_with(options.pragma("cache_size", "-2048"));
                Self::Sqlite {
                    writer: writer.clone(),
                    reader,
                    lane: lane.clone(),
                    replica_uuid: *replica_uuid,
                }
            }
        }
    }

    pub fn dialect(&self) -> Dialect {
        match self {
            Self::Postgres { .. } => Dialect::Postgres,
            Self::Sqlite { .. } => Dialect::Sqlite,
        }
    }

    // An idle connection is used without a check: if it broke meanwhile, the statement fails, the
    // connection is dropped, and the client gets a 503 and retries. The future that waits for a
    // connection holds 16 KiB; boxed, only those that wait pay for it, and the compiler does not
    // analyse it for each handler.

    /// A connection to read with.
    pub fn read(&self) -> BoxFuture<'_, Result<Conn>> {
        Box::pin(async move {
            Ok(match self {
                Self::Postgres { pool, .. } => Conn::Postgres(match pool.try_acquire() {
                    Some(conn) => conn,
                    None => Box::pin(pool.acquire()).await?,
                }),
                Self::Sqlite { reader, .. } => Conn::Sqlite(match reader.try_acquire() {
                    Some(conn) => conn,
                    None => Box::pin(reader.acquire()).await?,
                }),
            })
        })
    }

    /// A transaction to write in. Dropped without a commit, it leaves nothing behind.
    pub fn begin(&self) -> BoxFuture<'_, Result<Tx>> {
        Box::pin(async move {
            let place = match self {
                Self::Postgres { .. } => None,
                Self::Sqlite { lane, .. } => Some(lane.enter().await?),
            };
            Ok(Tx {
                place,
                ..self.begin_first().await?
            })
        })
    }

    /// As [`Db::begin`], ahead of all waiting transactions. For uploads alone, of which one runs at
    /// a time.
    pub fn begin_first(&self) -> BoxFuture<'_, Result<Tx>> {
        Box::pin(async move {
            let conn = match self {
                Self::Postgres { pool, .. } => Conn::PostgresTx(match pool.try_begin().await? {
                    Some(tx) => tx,
                    None => Box::pin(pool.begin()).await?,
                }),
                Self::Sqlite { writer, .. } => {
                    // A connection that found the file read-only stays so.
                    if error::take_read_only() {
                        Box::pin(writer.acquire()).await?.close().await?;
                    }
                    Conn::SqliteTx(Box::pin(writer.begin_with("BEGIN IMMEDIATE")).await?)
                }
            };
            Ok(Tx {
                conn,
                effects: Vec::new(),
                place: None,
            })
        })
    }

    /// Holds what only one replica may do at a time, until the value is dropped or this process
    /// ends; `None` while another replica holds it.
    pub async fn try_hold(&self, what: i64) -> Result<Option<Held>> {
        let Self::Postgres { pool, .. } = self else {
            // One process serves an SQLite database.
            return Ok(Some(Held { _session: None }));
        };
        let mut session = pool.acquire().await?;
        // The lock is the session's, which must not return to the pool with it.
        session.close_on_drop();
        let mut conn = Conn::Postgres(session);
        let is_held: bool = sql("SELECT pg_try_advisory_lock($1)")
            .bind(what)
            .scalar(&mut conn)
            .await?;
        Ok(is_held.then_some(Held {
            _session: Some(conn),
        }))
    }

    /// Name, open connections and idle ones of each pool.
    pub fn connections(&self) -> Vec<(&'static str, i64, i64)> {
        let counts = |name, open: u32, idle: usize| {
            (
                name,
                i64::from(open),
                i64::try_from(idle).unwrap_or(i64::MAX),
            )
        };
        match self {
            Self::Postgres { pool, .. } => vec![counts("postgres", pool.size(), pool.num_idle())],
            Self::Sqlite { writer, reader, .. } => vec![
                counts("writer", writer.size(), writer.num_idle()),
                counts("reader", reader.size(), reader.num_idle()),
            ],
        }
    }

    /// Gives back what idle connections keep of one wave of requests: up to 32 MiB of pages each on
    /// SQLite, buffers as large as the largest upload on PostgreSQL. A pool hands out whichever
    /// connection has been idle longest, so each is visited once.
    pub async fn release_memory(&self) -> Result<()> {
        match self {
            Self::Postgres { pool, .. } => {
                for _ in 0..pool.num_idle() {
                    let Some(mut conn) = pool.try_acquire() else {
                        break;
                    };
                    conn.shrink_buffers();
                }
            }
            Self::Sqlite { writer, reader, .. } => {
                for pool in [reader, writer] {
                    for _ in 0..pool.num_idle() {
                        let Some(conn) = pool.try_acquire() else {
                            break;
                        };
                        sql("PRAGMA shrink_memory")
                            .run(&mut Conn::Sqlite(conn))
                            .await?;
                    }
                }
            }
        }
        Ok(())
    }

    pub async fn ping(&self) -> Result<()> {
        let mut conn = self.read().await?;
        sql("SELECT 1").run(&mut conn).await
    }

    /// Fails while nothing can be written. On SQLite it is tried only after a write has found so.
    pub async fn require_writable(&self) -> Result<()> {
        if let Self::Postgres { .. } = self {
            let mut conn = self.read().await?;
            let setting: String = sql("SELECT CASE WHEN pg_is_in_recovery() THEN 'on' \
                 ELSE current_setting('default_transaction_read_only') END")
            .scalar(&mut conn)
            .await?;
            return match setting.as_str() {
                "on" => Err(Error::read_only()),
                _ => Ok(()),
            };
        }
        if error::is_read_only_seen() {
            self.begin().await?;
        }
        Ok(())
    }

    /// Closes all connections. On SQLite this also checkpoints the write-ahead log.
    pub async fn close(&self) {
        self.close_readers().await;
        if let Self::Sqlite { writer, .. } = self {
            writer.close().await;
        }
    }

    /// Closes what [`Db::background`] has opened, and nothing else.
    pub async fn close_readers(&self) {
        match self {
            Self::Postgres { pool, .. } => pool.close().await,
            Self::Sqlite { reader, .. } => reader.close().await,
        }
    }
}

/// The action when the database file is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Create,
    Refuse,
}

/// The host and database that a `postgres://` URL names, without user and password.
pub fn postgres_name(url: &str) -> std::result::Result<String, sqlx::Error> {
    let options = PgConnectOptions::from_str(url)?;
    let database = options.get_database().unwrap_or(options.get_username());
    Ok(format!(
        "postgres://{}:{}/{database}",
        options.get_host(),
        options.get_port()
    ))
}

/// The database for messages: a path, or host and database.
pub fn name(url: &str) -> String {
    match sqlite_file(url) {
        Some(file) => std::path::absolute(file)
            .unwrap_or_else(|_| file.to_owned())
            .display()
            .to_string(),
        None => postgres_name(url).unwrap_or_default(),
    }
}

/// The file that a `sqlite:` URL names.
pub fn sqlite_file(url: &str) -> Option<&Path> {
    let path = url.strip_prefix("sqlite:")?;
    Some(Path::new(path.strip_prefix("//").unwrap_or(path)))
}

/// A connection, in a transaction or not.
pub enum Conn {
    Postgres(PoolConnection<Postgres>),
    PostgresTx(Transaction<'static, Postgres>),
    Sqlite(PoolConnection<Sqlite>),
    SqliteTx(Transaction<'static, Sqlite>),
}

/// See [`Db::try_hold`].
pub struct Held {
    _session: Option<Conn>,
}

enum Raw<'c> {
    Postgres(&'c mut PgConnection),
    Sqlite(&'c mut SqliteConnection),
}

impl Conn {
    fn raw(&mut self) -> Raw<'_> {
        match self {
            Self::Postgres(conn) => Raw::Postgres(conn),
            Self::PostgresTx(tx) => Raw::Postgres(tx),
            Self::Sqlite(conn) => Raw::Sqlite(conn),
            Self::SqliteTx(tx) => Raw::Sqlite(tx),
        }
    }

    pub fn dialect(&self) -> Dialect {
        match self {
            Self::Postgres(_) | Self::PostgresTx(_) => Dialect::Postgres,
            Self::Sqlite(_) | Self::SqliteTx(_) => Dialect::Sqlite,
        }
    }
}

/// The record that a transaction is committed with, so that no change is stored without its author.
pub trait CommitEntry: Send {
    /// The log line for the committed change, if an operator has to see it.
    fn log_line(&self) -> Option<String>;
    fn insert(self, conn: &mut Conn) -> impl Future<Output = Result<()>> + Send;
}

/// A transaction. It commits with an entry that records who made the change, or states why it has
/// none. Dropped without a commit, it changes nothing and runs no effect.
pub struct Tx {
    conn: Conn,
    effects: Vec<BoxFuture<'static, ()>>,
    /// The place in the lane, for a transaction that came through it. Dropped after the connection.
    place: Option<OwnedSemaphorePermit>,
}

impl Tx {
    /// Commits the change together with the record of who made it, then runs the effects.
    pub async fn commit(mut self, entry: impl CommitEntry) -> Result<()> {
        if let Some(line) = entry.log_line() {
            self.after_commit(async move { tracing::info!("{line}") });
        }
        entry.insert(&mut self).await?;
        self.finish().await
    }

    /// Commits a change that needs no audit entry, then runs the effects. `reason` is there to be
    /// searched for.
    pub async fn commit_unaudited(self, _reason: &'static str) -> Result<()> {
        self.finish().await
    }

    /// Adds an effect: what must happen once the change is committed, such as waking a hub. Effects
    /// run in the order they were added, before the commit returns.
    pub fn after_commit(&mut self, effect: impl Future<Output = ()> + Send + 'static) {
        self.effects.push(Box::pin(effect));
    }

    fn finish(self) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            match self.conn {
                Conn::PostgresTx(tx) => tx.commit().await?,
                Conn::SqliteTx(tx) => tx.commit().await?,
                // A Tx is only ever built around a transaction.
                Conn::Postgres(_) | Conn::Sqlite(_) => {}
            }
            // Effects may wait; the next transaction does not wait for them.
            drop(self.place);
            for effect in self.effects {
                effect.await;
            }
            Ok(())
        })
    }
}

impl Deref for Tx {
    type Target = Conn;
    fn deref(&self) -> &Conn {
        &self.conn
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.conn
    }
}
