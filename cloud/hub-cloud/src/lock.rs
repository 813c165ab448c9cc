//! The lock of an SQLite database: one service runs on it at a time. Commands that work beside a
//! running service do not lock.

use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use hub_base::db::sqlite_file;
use hub_base::paths::with_suffix;
use hub_core::config::Config;
use secrecy::ExposeSecret;

use crate::app::{create_data_dir, try_settings};
use crate::database::{reach_file, require_restored};
use crate::start_error::StartError;

/// Locks the database for as long as the file is open. Several services may share a PostgreSQL
/// database: `None`.
pub async fn lock(config: &Config) -> Result<Option<File>, StartError> {
    let url = config.database_url.expose_secret();
    let Some(database) = sqlite_file(url) else {
        return Ok(None);
    };
    try_settings(config).await?;
    // What is restored has to find the directory empty.
    require_restored(config)?;
    create_data_dir(config)?;
    // A database that is moved cannot be opened meanwhile.
    let in_use = || StartError::DatabaseInUse(database.display().to_string());
    if is_locked(database) {
        return Err(in_use());
    }
    reach_file(url, database).await?;
    let path = lock_file(database);
    let failed = |error: std::io::Error| StartError::DatabaseNotOpened {
        path: database.display().to_string(),
        reason: format!("its lock file: {error}; make its directory writable to this user"),
    };
    let mut options = File::options();
    let file = options.create(true).truncate(false).write(true).mode(0o600);
    let file = file.open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(in_use()),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// The file that is locked, beside the database.
pub fn lock_file(database: &Path) -> PathBuf {
    with_suffix(database, "-lock")
}

/// Whether a service runs on this database. Creates nothing.
pub fn is_locked(database: &Path) -> bool {
    File::open(lock_file(database))
        .is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}
