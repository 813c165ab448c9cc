//! What every handler and worker can reach: database, clock, configuration, keys. Cheap to clone; made once, at the start.

use std::ops::Deref;
use std::sync::Arc;

use hub_protocol::Timestamp;
use secrecy::ExposeSecret;
use sqlx::migrate::MigrateError;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::authn::key_shares;
use crate::authn::keys::Keys;
use crate::authn::oidc::Oidc;
use crate::authz::Permissions;
use crate::bus::Bus;
use crate::clock::Clock;
use crate::config::Config;
use crate::db::{Db, migrate};
use crate::domain::accounts::password::Passwords;
use crate::domain::hubs;
use crate::domain::releases::files::{Files, OpenFilesError};
use crate::domain::streams::{Publisher, Streams};
use crate::error::{Error, is_away};
use crate::http::metrics::Metrics;
use crate::ingest::{self, Ingest};
use crate::sealing::{MasterKeyError, OpenError, Sealer, stored};

#[derive(Clone)]
pub struct App(Arc<Inner>);

pub struct Inner {
    pub config: Config,
    pub db: Db,
    pub clock: Clock,
    pub sealer: Sealer,
    pub keys: Keys,
    /// The external issuer of people's tokens, where there is one.
    pub oidc: Option<Oidc>,
    pub permissions: Permissions,
    pub key_shares: key_shares::Shares,
    pub passwords: Passwords,
    pub metrics: Metrics,
    pub credential_turns: hubs::Turns,
    pub ingest: Ingest,
    pub streams: Streams,
    pub hub_changes: hubs::Changes,
    pub files: Files,
    /// Background work was added: see [`crate::tasks::wake`].
    pub task_wake: Notify,
    /// Cancelled when the service is to end: streams close, workers stop after what they are doing.
    pub shutdown: CancellationToken,
    /// Cancelled when no request is left that could upload.
    pub stop_ingest: CancellationToken,
    /// Everything that runs beside the requests.
    pub workers: TaskTracker,
}

impl Deref for App {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(
        "the data directory {dir} cannot be made: {source}; make it and give it to the user who runs this, or name another with data-dir"
    )]
    DataDir { dir: String, source: std::io::Error },
    #[error(transparent)]
    MasterKey(#[from] MasterKeyError),
    #[error("database-url cannot be used: {0}")]
    DatabaseUrl(#[from] sqlx::Error),
    #[error("the database does not answer: is database-url right, and is it running? ({0})")]
    DatabaseAway(String),
    #[error("this database was used by a newer hub-cloud: run that, or restore a backup from before it")]
    NewerDatabase,
    #[error("the database's schema cannot be brought up to date: {0}")]
    Migrate(MigrateError),
    #[error(
        "the master key does not fit this database: its signing keys were sealed with another one; put back the key that was used (the setting \
         master-key, or master.key in the data directory), or name another database"
    )]
    OtherMasterKey,
    #[error(
        "the database holds secrets sealed with the master key {missing}, and only {held} is at hand; put the missing key back (the setting master-key, or \
         master.key in the data directory), or name another database"
    )]
    MissingMasterKey { missing: String, held: String },
    #[error("the keys cannot be read: {0}")]
    Keys(Error),
    #[error("requests to oidc-issuer cannot be made: {0}")]
    Oidc(reqwest::Error),
    #[error(transparent)]
    Files(#[from] OpenFilesError),
    #[error("the bus cannot be used: {0}")]
    Bus(#[from] async_nats::ConnectError),
    #[error("no thread can be started: {0}")]
    Thread(std::io::Error),
    #[error("{0}")]
    Listen(String),
    #[error("{key}: {file}: {reason}")]
    Tls { key: &'static str, file: String, reason: String },
}

impl StartError {
    /// Whether it may go by itself: the same start may well succeed later.
    pub const fn is_temporary(&self) -> bool {
        matches!(self, Self::DatabaseAway(_))
    }

    /// Whether a setting is at fault, so that starting again with the same ones will not help.
    pub const fn is_wrong_setting(&self) -> bool {
        match self {
            Self::MasterKey(MasterKeyError::Setting | MasterKeyError::Malformed(_) | MasterKeyError::Lost(_)) => true,
            // The database is opened, and the bus connected, in the background: what fails here is the URL.
            Self::DatabaseUrl(_) | Self::Bus(_) => true,
            Self::OtherMasterKey | Self::MissingMasterKey { .. } | Self::Tls { .. } => true,
            Self::Files(_) | Self::NewerDatabase => true,
            Self::DataDir { .. } | Self::MasterKey(MasterKeyError::File { .. }) => false,
            Self::DatabaseAway(_)
            | Self::Migrate(_)
            | Self::Keys(_)
            | Self::Oidc(_)
            | Self::Thread(_)
            | Self::Listen(_) => false,
        }
    }
}

/// A key that cannot be opened is no fault of the database.
fn keys_unread(error: Error) -> StartError {
    if error.is_caused_by::<OpenError>() { StartError::OtherMasterKey } else { unread(error) }
}

/// Why what the start needs could not be read from the database.
pub fn unread(error: Error) -> StartError {
    match error.is_database_away() {
        true => StartError::DatabaseAway(error.to_string()),
        false => StartError::Keys(error),
    }
}

fn unmigrated(db: &Db, error: MigrateError) -> StartError {
    let away = match &error {
        MigrateError::VersionMissing(_) => return StartError::NewerDatabase,
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) if is_away(cause) => cause.to_string(),
        MigrateError::Source(cause) => match cause.downcast_ref::<Error>() {
            Some(cause) if cause.is_database_away() => cause.to_string(),
            _ => return StartError::Migrate(error),
        },
        _ => return StartError::Migrate(error),
    };
    match db {
        Db::Postgres(_) => StartError::DatabaseAway(away),
        // A file is not away: it cannot be made, or the disk is full.
        Db::Sqlite { .. } => StartError::Migrate(error),
    }
}

impl App {
    /// Opens the database, brings its schema up to date, reads the keys, and starts the workers.
    pub async fn start(config: Config, clock: Clock) -> Result<Self, StartError> {
        create_data_dir(&config)?;
        let db = Db::open(config.database_url.expose_secret())?;
        let now = clock.now();
        migrate::run(&db, now).await.map_err(|error| unmigrated(&db, error))?;
        let sealer = open_sealer(&config, &db, now).await?;
        let keys = Keys::new(sealer.clone());
        keys.load(&db, now).await.map_err(keys_unread)?;
        let oidc = config.oidc.clone().map(Oidc::new).transpose().map_err(StartError::Oidc)?;
        let files = Files::open(&config.files)?;
        let bus = Bus::open(config.bus.as_ref()).await?;
        let (ingest, writer) = ingest::queue();
        let (streams, commits) = Streams::new(bus.is_shared());
        let metrics = Metrics::new();
        let inner = Inner {
            config,
            db,
            clock,
            sealer,
            keys,
            oidc,
            permissions: Permissions::new(),
            key_shares: key_shares::Shares::new(),
            passwords: Passwords::new(),
            hub_changes: hubs::Changes::new(metrics.hub_waits.clone(), bus.clone()),
            metrics,
            credential_turns: hubs::Turns::new(),
            files,
            ingest,
            streams,
            task_wake: Notify::new(),
            shutdown: CancellationToken::new(),
            stop_ingest: CancellationToken::new(),
            workers: TaskTracker::new(),
        };
        let app = Self(Arc::new(inner));
        let publisher = Publisher { streams: app.streams.clone(), commits, bus };
        writer.start(app.clone()).map_err(StartError::Thread)?;
        app.workers.spawn(publisher.run(app.clone()));
        app.workers.spawn(key_shares::give_back(app.clone()));
        app.workers.spawn(hubs::look_for_changes(app.clone()));
        Ok(app)
    }

    /// Ends the workers once they have done what they accepted, and closes the database. No request may be under way any more.
    pub async fn stop(&self) {
        self.shutdown.cancel();
        self.stop_ingest.cancel();
        self.workers.close();
        self.workers.wait().await;
        self.db.close().await;
    }
}

/// The master keys, once it is sure that they are all that this database needs.
pub async fn open_sealer(config: &Config, db: &Db, now: Timestamp) -> Result<Sealer, StartError> {
    let mut conn = db.read().await.map_err(unread)?;
    let registered = stored::registered(&mut conn).await.map_err(unread)?;
    let holds_unregistered = stored::holds_unregistered(&mut conn).await.map_err(unread)?;
    drop(conn);
    let is_new = registered.is_empty() && !holds_unregistered;
    let sealer = Sealer::load(config.master_key.as_ref(), &config.data_dir, is_new)?;
    let held = sealer.key_ids();
    let missing: Vec<String> = registered.iter().filter(|id| !held.contains(id)).cloned().collect();
    if !missing.is_empty() {
        return Err(StartError::MissingMasterKey { missing: missing.join(", "), held: held.join(", ") });
    }
    if holds_unregistered {
        stored::reseal(db, &sealer, |_| ()).await.map_err(keys_unread)?;
    }
    if let Some(sealing) = held.first().filter(|id| !registered.contains(id)) {
        stored::register(db, sealing, now).await.map_err(unread)?;
    }
    Ok(sealer)
}

/// The directory holds keys: only its owner may look in.
fn create_data_dir(config: &Config) -> Result<(), StartError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&config.data_dir)
        .map_err(|source| StartError::DataDir { dir: config.data_dir.display().to_string(), source })
}
