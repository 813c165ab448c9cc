//! The composition of the service: builds the shared core and the subjects on top of it, and starts
//! the workers. Only the router, the command line and the demo import it.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use hub_base::bus::Bus;
use hub_base::clock::Clock;
use hub_base::db::migrate::{self, Schema};
use hub_base::db::{Db, postgres_name, sqlite_file};
use hub_base::error::{Error, is_unavailable};
use hub_base::sealing::{MasterKeyError, OpenError, Sealer, stored};
use hub_base::storage::watch::Watch;
use hub_composed::dashboard::Dashboards;
use hub_composed::desired_state;
use hub_composed::device_commands::DeviceCommands;
use hub_composed::scan_config::ScanConfigs;
use hub_core::Core;
use hub_core::config::Config;
use hub_core::replicas;
use hub_devices::recognition::Recognition;
use hub_fleet::hubs::{Changes, CredentialPermits, Hubs};
use hub_fleet::jobs::Jobs;
use hub_fleet::releases::Releases;
use hub_fleet::releases::files::{Files, OpenFilesError};
use hub_fleet::update_policies::Policies;
use hub_identity::authn::{Authn, key_shares, keys::Keys, oidc::Oidc};
use hub_ingest::{self as ingest, Commits, Ingest};
use hub_outgoing::OutgoingSettingsError;
use hub_people::accounts::{Accounts, Passwords};
use hub_people::billing::Billing;
use hub_people::registration_events::Pushes;
use hub_people::supplier_links::SupplierLinks;
use hub_people::tenants;
use hub_pipelines::{self as pipelines, Engine, Pipelines};
use hub_protocol::Timestamp;
use hub_streams::{Channels, Publisher, Slots, Streams};
use rustix::fs::StatVfsMountFlags;
use secrecy::ExposeSecret;
use sqlx::migrate::MigrateError;

/// The whole service. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Inner>);

pub struct Inner {
    pub core: Core,
    pub authn: Authn,
    pub ingest: Ingest,
    pub recognition: Recognition,
    pub accounts: Accounts,
    pub hubs: Hubs,
    pub releases: Releases,
    pub jobs: Jobs,
    pub pipelines: Pipelines,
    pub policies: Policies,
    pub streams: Streams,
    pub scan_configs: ScanConfigs,
    pub pushes: Pushes,
    pub dashboards: Dashboards,
    pub supplier_links: SupplierLinks,
    pub billing: Billing,
    pub device_commands: DeviceCommands,
}

/// The shared core is available directly: `app.db`, `app.clock` and so on.
impl Deref for App {
    type Target = Core;
    fn deref(&self) -> &Core {
        &self.0.core
    }
}

impl App {
    pub fn parts(&self) -> &Inner {
        &self.0
    }

    pub fn core(&self) -> Core {
        self.0.core.clone()
    }

    pub fn people(&self) -> hub_people::Parts {
        hub_people::Parts {
            core: self.0.core.clone(),
            authn: self.0.authn.clone(),
            accounts: self.0.accounts.clone(),
            supplier_links: self.0.supplier_links.clone(),
            billing: self.0.billing.clone(),
        }
    }

    pub fn fleet(&self) -> hub_fleet::Parts {
        hub_fleet::Parts {
            core: self.0.core.clone(),
            authn: self.0.authn.clone(),
            ingest: self.0.ingest.clone(),
            hubs: self.0.hubs.clone(),
            releases: self.0.releases.clone(),
            jobs: self.0.jobs.clone(),
            policies: self.0.policies.clone(),
        }
    }

    pub fn devices(&self) -> hub_devices::Parts {
        hub_devices::Parts {
            core: self.0.core.clone(),
            authn: self.0.authn.clone(),
            ingest: self.0.ingest.clone(),
            recognition: self.0.recognition.clone(),
        }
    }

    pub fn pipelines(&self) -> hub_pipelines::Parts {
        hub_pipelines::Parts {
            core: self.0.core.clone(),
            authn: self.0.authn.clone(),
            pipelines: self.0.pipelines.clone(),
        }
    }

    pub fn composed(&self) -> hub_composed::Parts {
        hub_composed::Parts {
            core: self.0.core.clone(),
            authn: self.0.authn.clone(),
            accounts: self.0.accounts.clone(),
            supplier_links: self.0.supplier_links.clone(),
            hubs: self.0.hubs.clone(),
            recognition: self.0.recognition.clone(),
            scan_configs: self.0.scan_configs.clone(),
            dashboards: self.0.dashboards.clone(),
            device_commands: self.0.device_commands.clone(),
        }
    }
}

/// The base of the commands beside `serve`: no endpoints, no workers, no files. Cheap to clone.
#[derive(Clone)]
pub struct Base {
    pub core: Core,
    pub authn: Authn,
    pub accounts: Accounts,
}

impl Deref for Base {
    type Target = Core;
    fn deref(&self) -> &Core {
        &self.core
    }
}

/// The reason why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(
        "cannot create the data directory {dir}: {source}; create it and make the user who runs this its owner, or set data-dir to another one"
    )]
    DataDir { dir: String, source: std::io::Error },
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
    #[error("cannot open the database file {path}: {reason}")]
    DatabaseNotOpened { path: String, reason: String },
    #[error(
        "there is no hub-cloud database at {0}; only `serve`, `migrate` and `demo` create one: start the service first, \
         or name its settings with --config FILE"
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
            Self::DatabaseUrl(_) | Self::Bus(_) | Self::Outgoing(_) => true,
            Self::OtherMasterKey | Self::MissingMasterKey { .. } | Self::Tls { .. } => true,
            Self::Files(_) | Self::NewerDatabase | Self::UnreleasedDatabase => true,
            Self::DataDir { .. } | Self::MasterKey(MasterKeyError::File { .. }) => false,
            Self::DatabaseUnavailable(_)
            | Self::DatabaseRefused { .. }
            | Self::DatabaseNotOpened { .. }
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
fn keys_error(error: Error) -> StartError {
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

/// Connects to the database once, so that a start that cannot succeed names the cause.
async fn reach(url: &str) -> Result<(), StartError> {
    match sqlite_file(url) {
        Some(file) => reach_file(url, file).await,
        None => match Db::try_out(url).await {
            Ok(()) => Ok(()),
            Err(error) => Err(refusal(postgres_name(url)?, error)),
        },
    }
}

async fn reach_file(url: &str, file: &Path) -> Result<(), StartError> {
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

fn migration_error(db: &Db, error: MigrateError) -> StartError {
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

impl Base {
    /// Opens the database that `serve`, `migrate` or `demo` created, and loads the keys. Creates
    /// and migrates nothing.
    pub async fn attach(config: Config, clock: Clock) -> Result<Self, StartError> {
        let url = config.database_url.expose_secret();
        let name = existing_database(url)?;
        reach(url).await?;
        let db = Db::open_existing(url)?;
        let schema =
            migrate::schema(&db)
                .await
                .map_err(|error| match error.is_database_unavailable() {
                    true => StartError::DatabaseUnavailable(error.to_string()),
                    false => StartError::Schema(error),
                })?;
        match schema {
            Schema::Current => Self::on(config, db, clock).await,
            Schema::None => Err(StartError::NoDatabase(name)),
            Schema::Older(missing) => Err(StartError::OlderDatabase { name, missing }),
            Schema::Newer(_) => Err(StartError::NewerDatabase),
            Schema::Unreleased(_) => Err(StartError::UnreleasedDatabase),
        }
    }

    /// As [`Self::attach`], on a database with the current schema.
    async fn on(config: Config, db: Db, clock: Clock) -> Result<Self, StartError> {
        let now = clock.now();
        let sealer = open_sealer(&config, &db, now).await?;
        let keys = Keys::new(sealer.clone(), config.tokens_live_secs());
        keys.load(&db, now).await.map_err(keys_error)?;
        let oidc = config
            .oidc
            .clone()
            .map(Oidc::new)
            .transpose()
            .map_err(StartError::Oidc)?;
        let bus = Bus::open(config.bus.as_ref()).await?;
        let core = Core::new(config, db, clock, sealer, bus)?;
        core.scripts.set_owner_of(owner_of(core.db.clone()));
        let authn = Authn::new(core.clone(), keys, oidc);
        let accounts = Accounts {
            core: core.clone(),
            authn: authn.clone(),
            passwords: Arc::new(Passwords::new()),
        };
        Ok(Self {
            core,
            authn,
            accounts,
        })
    }

    /// Closes the database.
    pub async fn stop(&self) {
        self.shutdown.cancel();
        self.db.close().await;
    }
}

/// The database for a message, without its password; an error if it is a file that does not exist.
fn existing_database(url: &str) -> Result<String, StartError> {
    let Some(file) = sqlite_file(url) else {
        return Ok(postgres_name(url)?);
    };
    let path = std::path::absolute(file)
        .unwrap_or_else(|_| file.to_owned())
        .display()
        .to_string();
    match std::fs::metadata(file) {
        Ok(metadata) if metadata.len() > 0 => Ok(path),
        Ok(_) => Err(StartError::NoDatabase(path)),
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
            Err(StartError::NoDatabase(path))
        }
        Err(source) => Err(StartError::DatabaseFile { path, source }),
    }
}

impl App {
    /// Opens the database, migrates its schema, loads the keys and starts the workers.
    pub async fn start(config: Config, clock: Clock) -> Result<Self, StartError> {
        create_data_dir(&config)?;
        reach(config.database_url.expose_secret()).await?;
        let db = Db::open(config.database_url.expose_secret())?;
        migrate::run(&db, clock.now())
            .await
            .map_err(|error| migration_error(&db, error))?;
        let Base {
            core,
            authn,
            accounts,
        } = Base::on(config, db, clock).await?;
        let files = Files::open(&core.config.files)?;

        let commits = Commits::default();
        // Other replicas may follow a log that this one does not.
        let (stream_follower, committed) = commits.follower(core.bus.is_shared());
        let recognition = Recognition::new(&core);
        let (ingest, writer) = ingest::queue(&core, commits.clone(), recognition.derived());
        let changes = Changes::new(core.metrics.hub_waits.clone(), core.bus.clone());
        let channels = Channels::new(stream_follower);
        let releases = Releases {
            core: core.clone(),
            files,
        };
        let pipelines = Pipelines::new(core.clone());
        let (engine, read_logs, logs) = Engine::new(pipelines.clone(), &commits);
        let jobs = Jobs {
            core: core.clone(),
            changes: changes.clone(),
            commits,
        };
        let supplier_links = SupplierLinks::new(core.clone(), authn.clone());
        let app = Self(Arc::new(Inner {
            accounts,
            hubs: Hubs {
                core: core.clone(),
                authn: authn.clone(),
                changes: changes.clone(),
                permits: CredentialPermits::new(),
            },
            device_commands: DeviceCommands::new(
                core.clone(),
                jobs.clone(),
                supplier_links.clone(),
            ),
            jobs,
            pipelines: pipelines.clone(),
            policies: Policies {
                core: core.clone(),
                changes: changes.clone(),
                releases: releases.clone(),
            },
            streams: Streams {
                core: core.clone(),
                authn: authn.clone(),
                channels: channels.clone(),
                slots: Slots::new(core.metrics.stream_subscribers.clone()),
            },
            scan_configs: ScanConfigs::new(core.clone()),
            pushes: Pushes::new(core.clone()),
            dashboards: Dashboards::new(core.clone()),
            supplier_links,
            billing: Billing::new(core.clone())?,
            core: core.clone(),
            authn: authn.clone(),
            ingest,
            recognition,
            releases,
        }));

        let watch = Watch {
            storage: core.storage.clone(),
            db: core.db.clone(),
            metrics: core.metrics.clone(),
            file: sqlite_file(core.config.database_url.expose_secret()).map(Path::to_owned),
            reserve_bytes: core.config.storage_reserve_bytes,
            shutdown: core.shutdown.clone(),
        };
        core.workers.spawn(watch.run());
        writer.start(core.clone()).map_err(StartError::Thread)?;
        let (publisher, records) = Publisher::new(core.clone(), channels, committed);
        let (follow_replicas, desired_states) = changes.follow_replicas(core.clone());
        core.workers.spawn(publisher.run());
        core.workers.spawn(follow_replicas);
        core.workers
            .spawn(desired_state::follow_catalogs(app.parts().hubs.clone()));
        core.workers
            .spawn(key_shares::return_unused(core.clone(), authn.key_shares));
        let (follow_announcements, announcements) = replicas::follow(core.clone());
        core.workers.spawn(follow_announcements);
        let (follow_pipelines, pipelines) = pipelines::follow(pipelines);
        core.workers.spawn(follow_pipelines);
        core.workers.spawn(read_logs);
        if core.config.delivers {
            core.workers.spawn(engine.run());
        }
        let subscriptions = vec![records, desired_states, announcements, pipelines, logs];
        let dispatch = core.bus.clone().dispatch(subscriptions);
        let shutdown = core.shutdown.clone();
        core.workers.spawn(async move {
            shutdown.run_until_cancelled(dispatch).await;
        });
        Ok(app)
    }

    /// Stops the workers after they have finished the work they accepted, then closes the database.
    /// Call it only when no request is in progress.
    pub async fn stop(&self) {
        self.shutdown.cancel();
        self.stop_ingest.cancel();
        self.workers.close();
        self.workers.wait().await;
        self.db.close().await;
    }
}

/// Loads the master keys after checking that they include every key this database needs.
async fn open_sealer(config: &Config, db: &Db, now: Timestamp) -> Result<Sealer, StartError> {
    let mut conn = db.read().await.map_err(read_error)?;
    let registered = stored::registered(&mut conn).await.map_err(read_error)?;
    let holds_unregistered = stored::holds_unregistered(&mut conn)
        .await
        .map_err(read_error)?;
    drop(conn);
    let is_new = registered.is_empty() && !holds_unregistered;
    let sealer = Sealer::load(config.master_key.as_ref(), &config.data_dir, is_new)?;
    let held = sealer.key_ids();
    let missing: Vec<String> = registered
        .iter()
        .filter(|id| !held.contains(id))
        .cloned()
        .collect();
    if !missing.is_empty() {
        return Err(StartError::MissingMasterKey {
            missing: missing.join(", "),
            held: held.join(", "),
        });
    }
    if holds_unregistered {
        stored::reseal(db, &sealer, |_| ())
            .await
            .map_err(keys_error)?;
    }
    if let Some(sealing) = held.first().filter(|id| !registered.contains(id)) {
        stored::register(db, sealing, now)
            .await
            .map_err(read_error)?;
    }
    Ok(sealer)
}

/// The directory contains keys, so only its owner may read it.
fn create_data_dir(config: &Config) -> Result<(), StartError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&config.data_dir)
        .map_err(|source| StartError::DataDir {
            dir: config.data_dir.display().to_string(),
            source,
        })
}

/// Looks up the person behind a tenant, whose tenants share the time of scripts.
fn owner_of(db: Db) -> hub_scripts::OwnerOf {
    Box::new(move |tenant_uuid| {
        let db = db.clone();
        Box::pin(async move {
            let mut conn = db.read().await.ok()?;
            let owner = tenants::owner(&mut conn, tenant_uuid).await.ok()?;
            owner.map(|user_uuid| user_uuid.0)
        })
    })
}
