//! Why a command or the service cannot start, as its users read it.

use hub_base::error::Error;
use hub_base::sealing::{MasterKeyError, OpenError};
use hub_fleet::releases::files::OpenFilesError;
use hub_outgoing::OutgoingSettingsError;
use hub_traces::SettingsError;
use sqlx::migrate::MigrateError;

/// The reason why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(
        "cannot create the data directory {dir}: {source}; create it and make the user who runs this its owner, or set data-dir to another one"
    )]
    DataDir { dir: String, source: std::io::Error },
    #[error(
        "a restore into the data directory {0} did not end; run `hub-cloud restore` again, which begins anew"
    )]
    UnfinishedRestore(String),
    #[error(transparent)]
    MasterKey(#[from] MasterKeyError),
    #[error(transparent)]
    Outgoing(#[from] OutgoingSettingsError),
    #[error("database-url is not valid: {0}")]
    DatabaseUrl(#[from] sqlx::Error),
    #[error(
        "the database does not respond: {0}; check database-url, and that the database is running"
    )]
    DatabaseUnavailable(String),
    #[error("{reason}; {fix} (database-url: {name})")]
    DatabaseRefused {
        reason: String,
        fix: &'static str,
        name: String,
    },
    #[error(
        "another hub-cloud is running on {0}; stop it first, or give this one a --data-dir of its own"
    )]
    DatabaseInUse(String),
    #[error("cannot open the database file {path}: {reason}")]
    DatabaseNotOpened { path: String, reason: String },
    #[error(
        "there is no hub-cloud database at {0}; start the service first, which creates it, or name its settings with \
         --config FILE"
    )]
    NoDatabase(String),
    #[error(
        "cannot reach the database at {path}: {source}; run the command as the user of the service: \
         runuser -u hub-cloud -- hub-cloud ..."
    )]
    DatabaseFile {
        path: String,
        source: std::io::Error,
    },
    #[error(
        "the database at {name} lacks {missing} migrations of this version; take a backup, then start the service or \
         run `hub-cloud migrate`: both apply them"
    )]
    OlderDatabase { name: String, missing: usize },
    #[error(
        "the database at {0} is the target of a move that has not ended; run the same `hub-cloud move` again until it says \
         that it is done, or set database-url to the database that is moved"
    )]
    UnfinishedMove(String),
    #[error("cannot read the schema of the database: {0}")]
    Schema(Error),
    #[error(
        "a newer version of hub-cloud has migrated this database; run that version, or restore a backup from before its first start"
    )]
    NewerDatabase,
    #[error(
        "a version of hub-cloud from before the first release created this database, and no later version can use it; \
         set database-url to a new database, or move the old one away"
    )]
    UnreleasedDatabase,
    #[error("cannot migrate the schema of the database: {0}")]
    Migrate(MigrateError),
    #[error(
        "wrong master key: the signing keys in this database were sealed with another one; restore that key (the setting \
         master-key, or master.key in the data directory), or set database-url to another database"
    )]
    OtherMasterKey,
    #[error(
        "the database contains secrets sealed with the master key {missing}, but only {held} is available; restore the missing key (the setting \
         master-key, or master.key in the data directory), or set database-url to another database"
    )]
    MissingMasterKey { missing: String, held: String },
    #[error("cannot read the keys from the database: {0}")]
    Keys(Error),
    #[error("cannot create the HTTP client for oidc-issuer: {0}")]
    Oidc(reqwest::Error),
    #[error(transparent)]
    Files(#[from] OpenFilesError),
    #[error("cannot use the bus: {0}; check the setting bus")]
    Bus(#[from] async_nats::ConnectError),
    #[error(transparent)]
    Collector(#[from] SettingsError),
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    #[error("{0}")]
    Listen(String),
    #[error("{key}: {file}: {reason}")]
    Tls {
        key: &'static str,
        file: String,
        reason: String,
    },
}

impl StartError {
    /// Whether the same start may succeed later without any change.
    pub const fn is_temporary(&self) -> bool {
        matches!(self, Self::DatabaseUnavailable(_))
    }

    /// Whether a setting is wrong, so that starting again with the same settings cannot succeed.
    pub const fn is_wrong_setting(&self) -> bool {
        match self {
            Self::MasterKey(
                MasterKeyError::Setting | MasterKeyError::Malformed(_) | MasterKeyError::Lost(_),
            ) => true,
            // The database and the bus connect in the background, so an error here is about the
            // URL.
            Self::DatabaseUrl(_) | Self::Bus(_) | Self::Outgoing(_) | Self::Collector(_) => true,
            Self::OtherMasterKey | Self::MissingMasterKey { .. } | Self::Tls { .. } => true,
            Self::Files(_) | Self::NewerDatabase | Self::UnreleasedDatabase => true,
            Self::UnfinishedMove(_) => true,
            Self::DataDir { .. }
            | Self::UnfinishedRestore(_)
            | Self::MasterKey(MasterKeyError::File { .. }) => false,
            Self::DatabaseUnavailable(_)
            | Self::DatabaseRefused { .. }
            | Self::DatabaseNotOpened { .. }
            | Self::DatabaseInUse(_)
            | Self::NoDatabase(_)
            | Self::DatabaseFile { .. }
            | Self::OlderDatabase { .. }
            | Self::Schema(_)
            | Self::Migrate(_)
            | Self::Keys(_)
            | Self::Oidc(_)
            | Self::Thread(_)
            | Self::Listen(_) => false,
        }
    }
}

/// A key that cannot be decrypted is a wrong master key, not a database error.
pub fn keys_error(error: Error) -> StartError {
    if error.is_caused_by::<OpenError>() {
        StartError::OtherMasterKey
    } else {
        read_error(error)
    }
}

/// Classifies a failure to read from the database during the start.
pub fn read_error(error: Error) -> StartError {
    match error.is_database_unavailable() {
        true => StartError::DatabaseUnavailable(error.to_string()),
        false => StartError::Keys(error),
    }
}
