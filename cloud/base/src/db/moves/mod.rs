//! Moves a service from SQLite to PostgreSQL, or back: copies every row of one database into
//! another, in the order of keys, then reads both again and compares them row by row.
//!
//! Each commit adds the next rows of a table, so that an interrupted move continues behind the
//! target's last row of each table. Until the comparison has succeeded, the target has the table
//! [`migrate::UNFINISHED_MOVE`], and no service starts on it.

mod append;
mod compare;
mod mark;
mod row;
mod rows;
mod side;
mod tables;

use hub_protocol::Timestamp;
use sqlx::migrate::MigrateError;
use tokio::sync::watch;

use super::migrate::{self, Schema};
use super::{Db, name, partitions, sessions, sqlite_file};
use crate::error::{Error, is_unavailable};
use side::Side;
use tables::Table;

/// Why a move cannot begin, or did not end. Whatever it is, the source is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error(
        "both databases are {0}, and a move is from SQLite to PostgreSQL or back; copy a database to another of its kind \
         with a backup"
    )]
    SameKind(&'static str),
    #[error(
        "{database} is in use by {by}; stop every hub-cloud that uses it, then run the command again"
    )]
    InUse { database: String, by: String },
    #[error("{0} contains a hub-cloud database; a move needs an empty one: name another with --to")]
    NotEmpty(String),
    #[error(
        "{0} contains a database of a newer version of hub-cloud; a move needs an empty one: name another with --to"
    )]
    Newer(String),
    #[error(
        "{target} contains the unfinished move of another database, or {from} has been used since that move began; \
         name an empty database with --to, and remove this one"
    )]
    OtherMove { from: String, target: String },
    #[error("{database}: {cause}; what was copied stays, and the same command continues there")]
    Database {
        database: String,
        cause: sqlx::Error,
    },
    #[error("cannot create the schema in {database}: {cause}")]
    Schema {
        database: String,
        cause: MigrateError,
    },
    #[error("cannot read the schema of {database}: {cause}")]
    Unreadable { database: String, cause: Error },
    #[error("the databases have different schemas: {0}")]
    Schemas(String),
    #[error("{from}: the row of {table} with {key} cannot be moved: {column} {reason}")]
    Unfit {
        from: String,
        table: String,
        key: String,
        column: String,
        reason: &'static str,
    },
    #[error(
        "the databases differ in {table}: {difference}; the target is not usable: remove it, and move to an empty one. \
         If it happens again, a disk or the memory of a machine is faulty"
    )]
    Differs { table: String, difference: String },
}

impl MoveError {
    /// Whether the same command may succeed later without any change.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Database { cause, .. }
            | Self::Schema {
                cause: MigrateError::Execute(cause),
                ..
            } => is_unavailable(cause),
            Self::Unreadable { cause, .. } => cause.is_database_unavailable(),
            Self::InUse { .. } => true,
            _ => false,
        }
    }
}

/// What a move is doing, and how far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Step {
    #[default]
    Counting,
    Copying,
    /// Creating the indexes, which are left out while rows are copied.
    Indexing,
    Comparing,
}

#[derive(Clone, Debug, Default)]
pub struct Progress {
    pub step: Step,
    pub table: String,
    /// Rows, or indexes: those that are done, and all.
    pub done: u64,
    pub all: u64,
}

/// What was moved.
#[derive(Debug)]
pub struct Moved {
    pub rows: u64,
    /// The tables that have rows, with their number.
    pub tables: Vec<(String, u64)>,
}

/// A move whose databases are open, locked and of one schema.
pub struct Move {
    source: Side,
    target: Side,
    tables: Vec<Table>,
    /// Whether an earlier call has begun it.
    pub is_continued: bool,
}

impl Move {
    /// Locks the source, whose schema is current, and prepares the target: an empty database, or
    /// one with an unfinished move of this source.
    pub async fn begin(
        source: Db,
        source_url: &str,
        target_url: &str,
        now: Timestamp,
    ) -> Result<Self, MoveError> {
        match (sqlite_file(source_url), sqlite_file(target_url)) {
            (Some(_), Some(_)) => return Err(MoveError::SameKind("SQLite")),
            (None, None) => return Err(MoveError::SameKind("PostgreSQL")),
            _ => {}
        }
        let own_sessions = sessions::name(source.replica_uuid());
        source.close().await;
        let mut source = Side::open_source(source_url, &own_sessions).await?;
        prepare(&mut source, target_url, now).await?;
        let mut target = Side::open_target(target_url).await?;
        let tables = tables::read(&mut source, &mut target).await?;
        source.lock(&tables).await?;
        let is_continued = mark::claim(&mut source, &mut target, &tables).await?;
        Ok(Self {
            source,
            target,
            tables,
            is_continued,
        })
    }

    /// Copies what is missing, and compares all. The target is ready for a service if this
    /// succeeds.
    pub async fn run(mut self, progress: &watch::Sender<Progress>) -> Result<Moved, MoveError> {
        let (counts, copied) = self.count(progress).await?;
        let rows: u64 = counts.iter().sum();
        start(progress, Step::Copying, copied, rows);
        for table in &self.tables {
            progress.send_modify(|shown| shown.table.clone_from(&table.name));
            append::copy(&mut self.source, &mut self.target, table, progress).await?;
        }
        mark::restore_indexes(&mut self.target, progress).await?;
        for table in &self.tables {
            let last_id = self.source.last_id(table).await?;
            self.target.continue_ids(table, last_id).await?;
        }
        self.target.analyze().await?;
        start(progress, Step::Comparing, 0, rows);
        for table in &self.tables {
            progress.send_modify(|shown| shown.table.clone_from(&table.name));
            compare::compare(&mut self.source, &mut self.target, table, progress).await?;
        }
        mark::remove(&mut self.target).await?;
        self.source.close().await?;
        self.target.close().await?;
        let tables = self.tables.into_iter().map(|table| table.name).zip(counts);
        Ok(Moved {
            rows,
            tables: tables.filter(|(_, rows)| *rows > 0).collect(),
        })
    }

    /// The rows of each table in the source, and all that are in the target.
    async fn count(
        &mut self,
        progress: &watch::Sender<Progress>,
    ) -> Result<(Vec<u64>, u64), MoveError> {
        let mut counts = Vec::with_capacity(self.tables.len());
        let mut copied = 0;
        for table in &self.tables {
            progress.send_modify(|shown| shown.table.clone_from(&table.name));
            counts.push(self.source.count(table).await?);
            if self.is_continued {
                copied += self.target.count(table).await?;
            }
        }
        Ok((counts, copied))
    }
}

fn start(progress: &watch::Sender<Progress>, step: Step, done: u64, all: u64) {
    progress.send_replace(Progress {
        step,
        table: String::new(),
        done,
        all,
    });
}

/// Marks an empty target as unfinished and creates the schema in it. A target that is marked gets
/// what an interrupted call has left out.
async fn prepare(source: &mut Side, url: &str, now: Timestamp) -> Result<(), MoveError> {
    let database = name(url);
    let failed = |cause| MoveError::Database {
        database: database.clone(),
        cause,
    };
    let unreadable = |cause| MoveError::Unreadable {
        database: database.clone(),
        cause,
    };
    let not_created = |cause| MoveError::Schema {
        database: database.clone(),
        cause,
    };
    let db = Db::open(url).map_err(failed)?;
    migrate::create_file(&db).await.map_err(not_created)?;
    match migrate::schema(&db).await.map_err(unreadable)? {
        Schema::UnfinishedMove => {}
        Schema::None => mark::create(&db).await.map_err(unreadable)?,
        Schema::Newer(_) => return Err(MoveError::Newer(database)),
        Schema::Current | Schema::Older(_) | Schema::Unreleased(_) => {
            return Err(MoveError::NotEmpty(database));
        }
    }
    migrate::apply(&db, now).await.map_err(not_created)?;
    if let Some(first) = source.first_record().await? {
        let first = Timestamp::from_micros(first);
        partitions::ensure_from(&db, first, now)
            .await
            .map_err(unreadable)?;
    }
    db.close().await;
    Ok(())
}
