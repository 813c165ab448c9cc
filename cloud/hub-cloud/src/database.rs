//! Reaches and opens the database of the service, and says why that fails.

use std::path::Path;

use hub_base::db::migrate::{self, Schema, UnfinishedMove};
use hub_base::db::{self, Db, postgres_name, sqlite_file};
use hub_base::error::{Error, is_unavailable};
use hub_core::config::Config;
use rustix::fs::StatVfsMountFlags;
use secrecy::ExposeSecret;
use sqlx::migrate::MigrateError;

use crate::start_error::StartError;

/// A restore works in this folder of the data directory. What is there is whole once it is gone.
pub const UNFINISHED_RESTORE: &str = "restore.partial";

/// Connects to the database once, so that a start that cannot succeed names the cause.
pub async fn reach(url: &str) -> Result<(), StartError> {
    match sqlite_file(url) {
        Some(file) => reach_file(url, file).await,
        None => match Db::try_out(url).await {
            Ok(()) => Ok(()),
            Err(error) => Err(refusal(postgres_name(url)?, error)),
        },
    }
}

/// As [`reach`], of an SQLite database.
pub async fn reach_file(url: &str, file: &Path) -> Result<(), StartError> {
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let refused = |reason| StartError::DatabaseNotOpened {
        path: path.display().to_string(),
        reason,
    };
    let dir = path.parent().unwrap_or(&path);
    let is_read_only =
        rustix::fs::statvfs(dir).is_ok_and(|disk| disk.f_flag.contains(StatVfsMountFlags::RDONLY));
    if is_read_only {
        let reason =
            "its file system is mounted read-only; mount it writable, or correct database-url";
        return Err(refused(reason.to_owned()));
    }
    match std::fs::metadata(file) {
        Ok(_) => Db::try_out(url).await.map_err(|error| {
            refused(format!("{error}; the user who runs this has to be its owner, and it has to be an SQLite database"))
        }),
        // The start creates it.
        Err(_) => match path.parent().map(std::fs::metadata) {
            Some(Err(error)) => Err(refused(format!("its directory: {error}; create it, or correct database-url"))),
            _ => Ok(()),
        },
    }
}

/// Explains a refusal of PostgreSQL by its error code (PostgreSQL documentation, appendix A).
fn refusal(name: String, error: sqlx::Error) -> StartError {
    let code = error
        .as_database_error()
        .and_then(|error| error.code())
        .unwrap_or_default()
        .into_owned();
    let fix = match code.as_str() {
        "28000" => "create the role with createuser, or correct the user in the setting",
        "28P01" => "correct the password in the setting",
        "3D000" => "create the database with createdb, or correct its name in the setting",
        _ if is_unavailable(&error) => {
            return StartError::DatabaseUnavailable(format!("{name}: {error}"));
        }
        _ => "correct the setting, or what the server permits this user",
    };
    let reason = error
        .as_database_error()
        .map_or_else(|| error.to_string(), |error| error.message().to_owned());
    StartError::DatabaseRefused {
        reason: format!("the database refuses the connection: {reason}"),
        fix,
        name,
    }
}

pub fn migration_error(db: &Db, url: &str, error: MigrateError) -> StartError {
    let unavailable = match &error {
        MigrateError::VersionMissing(_) => return StartError::NewerDatabase,
        MigrateError::VersionMismatch(_) => return StartError::UnreleasedDatabase,
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _)
            if is_unavailable(cause) =>
        {
            cause.to_string()
        }
        MigrateError::Source(cause) => match cause.downcast_ref::<Error>() {
            Some(cause) if cause.is_database_unavailable() => cause.to_string(),
            None if cause.is::<UnfinishedMove>() => {
                return StartError::UnfinishedMove(db::name(url));
            }
            _ => return StartError::Migrate(error),
        },
        _ => return StartError::Migrate(error),
    };
    match db {
        Db::Postgres { .. } => StartError::DatabaseUnavailable(unavailable),
        // A file is never unreachable: it cannot be created, or the disk is full.
        Db::Sqlite { .. } => StartError::Migrate(error),
    }
}

/// Opens the database that `serve`, `migrate` or `demo` created, whatever its version.
pub async fn open_existing(config: &Config) -> Result<Db, StartError> {
    require_restored(config)?;
    let url = config.database_url.expose_secret();
    require_database(url)?;
    reach(url).await?;
    Ok(Db::open_existing(url)?)
}

/// Fails while a restore works in the data directory, or after it was killed there.
pub fn require_restored(config: &Config) -> Result<(), StartError> {
    match config.data_dir.join(UNFINISHED_RESTORE).exists() {
        true => Err(StartError::UnfinishedRestore(
            config.data_dir.display().to_string(),
        )),
        false => Ok(()),
    }
}

/// Opens a database that has the schema of this version. Creates and migrates nothing.
pub async fn open_current(config: &Config) -> Result<Db, StartError> {
    let db = open_existing(config).await?;
    let schema =
        migrate::schema(&db)
            .await
            .map_err(|error| match error.is_database_unavailable() {
                true => StartError::DatabaseUnavailable(error.to_string()),
                false => StartError::Schema(error),
            })?;
    let name = db::name(config.database_url.expose_secret());
    match schema {
        Schema::Current => Ok(db),
        Schema::None => Err(StartError::NoDatabase(name)),
        Schema::UnfinishedMove => Err(StartError::UnfinishedMove(name)),
        Schema::Older(missing) => Err(StartError::OlderDatabase { name, missing }),
        Schema::Newer(_) => Err(StartError::NewerDatabase),
        Schema::Unreleased(_) => Err(StartError::UnreleasedDatabase),
    }
}

/// Fails if the database is a file that does not exist.
fn require_database(url: &str) -> Result<(), StartError> {
    let Some(file) = sqlite_file(url) else {
        return Ok(());
    };
    let path = db::name(url);
    match std::fs::metadata(file) {
        Ok(metadata) if metadata.len() > 0 => Ok(()),
        Ok(_) => Err(StartError::NoDatabase(path)),
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
            Err(StartError::NoDatabase(path))
        }
        Err(source) => Err(StartError::DatabaseFile { path, source }),
    }
}
