//! `hub-cloud backup`, `restore` and `drill`, and the backups that the service makes by itself. One
//! file is a backup: the database as of one moment, the master keys (sealed with a passphrase, or
//! not in it), and the release files. A backup appears under its name only when it was restored
//! into a scratch database and counted; a restore leaves everything or nothing.

mod archive;
mod create;
mod drill;
mod keys;
mod places;
mod restore;
pub mod schedule;
mod unpack;
mod work;

use std::path::Path;

use hub_base::error::Error;
use hub_core::config::Config;
use secrecy::SecretString;

use crate::start_error::StartError;

pub use create::backup;
pub use drill::drill;
pub use places::newest;
pub use restore::restore;

/// The reason for a failed command, with a message that names the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    WrongUsage(String),
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    Start(#[from] StartError),
}

type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    fn newer(version: &str) -> Self {
        Self::Failed(format!(
            "a newer hub-cloud ({version}) made this backup; restore it with that version or a later one"
        ))
    }

    /// What failed, at this path, and why. A full disk comes with its remedy.
    fn at(path: &Path, what: &str, error: std::io::Error) -> Self {
        let remedy = match error.kind() {
            std::io::ErrorKind::StorageFull => {
                "; free disk space there, or choose a place on another disk"
            }
            std::io::ErrorKind::PermissionDenied => {
                "; run the command as the user of the service (runuser -u hub-cloud -- hub-cloud ...), \
                 and let that user write there"
            }
            std::io::ErrorKind::NotFound => "; create the directory it is in, or correct the path",
            _ => "",
        };
        Self::Failed(format!("{what} {}: {error}{remedy}", path.display()))
    }

    fn of_database(what: &str, error: &Error) -> Self {
        let remedy = match error.is_storage_full() {
            true => "; free disk space there, or choose a place on another disk",
            false => "",
        };
        let cause = std::error::Error::source(error).map(ToString::to_string);
        Self::Failed(format!(
            "{what}: {}{remedy}",
            cause.unwrap_or_else(|| error.to_string())
        ))
    }
}

/// What becomes of the master keys in a backup.
#[derive(Clone)]
pub enum SealKeys {
    With(SecretString),
    /// They are kept apart.
    Not,
}

impl SealKeys {
    /// By the settings; without a passphrase, `without_keys` has to say that they stay out.
    pub fn choose(config: &Config, without_keys: bool) -> Result<Self> {
        match &config.backup.passphrase_file {
            _ if without_keys => Ok(Self::Not),
            Some(file) => keys::read_passphrase(file).map(Self::With),
            None => Err(Failure::WrongUsage(
                "no database is of use without its master keys: seal them into the backup with \
                 --backup-passphrase-file FILE, or keep them apart and say --without-keys"
                    .to_owned(),
            )),
        }
    }
}

/// Bytes as people read them.
fn shown(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
