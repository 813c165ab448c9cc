//! The composition of the service: builds the shared core and the subjects on top of it, and starts
//! the workers. Only the router, the command line and the demo import it.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use hub_base::bus::Bus;
use hub_base::clock::Clock;
use hub_base::db::{Db, citus, migrate, sqlite_file};
use hub_base::metrics::Metrics;
use hub_base::sealing::{Sealer, stored};
use hub_base::storage::watch::Watch;
use hub_composed::dashboard::Dashboards;
use hub_composed::desired_state;
use hub_composed::device_commands::DeviceCommands;
use hub_composed::mandates::access::Calls;
use hub_composed::scan_config::ScanConfigs;
use hub_core::Core;
use hub_core::config::{CollectorConfig, Config, DatabaseLayout, FilesConfig};
use hub_core::replicas;
use hub_devices::recognition::Recognition;
use hub_fleet::hubs::{Changes, CredentialPermits, Hubs};
use hub_fleet::jobs::Jobs;
use hub_fleet::releases::Releases;
use hub_fleet::releases::files::Files;
use hub_fleet::update_policies::Policies;
use hub_identity::authn::{Authn, key_shares, keys::Keys, oidc::Oidc};
use hub_ingest::{self as ingest, Commits, Ingest};
use hub_outgoing::Outgoing;
use hub_people::accounts::{Accounts, Passwords};
use hub_people::billing::Billing;
use hub_people::registration_events::Pushes;
use hub_people::supplier_links::SupplierLinks;
use hub_people::tenants;
use hub_pipelines::{self as pipelines, Engine, Pipelines};
use hub_protocol::Timestamp;
use hub_streams::{Channels, Publisher, Slots, Streams};
use hub_traces::{Collector, SettingsError};
use secrecy::ExposeSecret;
use sqlx::migrate::MigrateError;
use uuid::Uuid;

use crate::database::{migration_error, open_current, reach, reach_file, require_restored};
use crate::start_error::{StartError, keys_error, read_error};

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
    pub mandate_calls: Calls,
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

    pub fn exposure(&self) -> hub_exposure::Parts {
        hub_exposure::Parts {
            core: self.0.core.clone(),
            authn: self.0.authn.clone(),
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
            streams: self.0.streams.clone(),
            mandate_calls: self.0.mandate_calls.clone(),
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

impl Base {
    /// Opens the database that `serve`, `migrate` or `demo` created, and loads the keys. Creates
    /// and migrates nothing.
    pub async fn attach(config: Config, clock: Clock) -> Result<Self, StartError> {
        let db = open_current(&config).await?;
        Self::on(config, db, clock).await
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
        let passwords = Arc::new(Passwords::new(core.config.password_cost));
        let accounts = Accounts {
            core: core.clone(),
            authn: authn.clone(),
            passwords,
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

/// Fails on a setting that names what cannot be used, before anything is created.
pub async fn try_settings(config: &Config) -> Result<(), StartError> {
    Outgoing::new(&config.outgoing, Metrics::new())?;
    if let Some(settings) = &config.collector {
        collector(settings, Clock::System)?;
    }
    if let Some(bus) = &config.bus {
        Bus::check(bus)?;
    }
    if let Some(key) = &config.master_key {
        Sealer::check(key)?;
    }
    match &config.files {
        // The data directory is created first.
        FilesConfig::Directory(dir) if dir.starts_with(&config.data_dir) => {}
        files => Files::check(files)?,
    }
    if !config.is_sqlite() {
        reach(config.database_url.expose_secret()).await?;
    }
    Ok(())
}

fn collector(config: &CollectorConfig, clock: Clock) -> Result<Collector, SettingsError> {
    let headers = config.headers.expose_secret();
    let instance = Uuid::now_v7().to_string();
    Collector::new(&config.endpoint, headers, instance, clock)
}

impl App {
    /// Opens the database, migrates its schema, loads the keys and starts the workers.
    pub async fn start(config: Config, clock: Clock) -> Result<Self, StartError> {
        try_settings(&config).await?;
        create_data_dir(&config)?;
        require_restored(&config)?;
        if let Some(file) = sqlite_file(config.database_url.expose_secret()) {
            reach_file(config.database_url.expose_secret(), file).await?;
        }
        let url = config.database_url.expose_secret();
        let db = Db::open_with(url, config.database_connections)?;
        migrate::run(&db, clock.now())
            .await
            .map_err(|error| migration_error(&db, config.database_url.expose_secret(), error))?;
        if config.database_layout == DatabaseLayout::Citus {
            citus::distribute(&db).await.map_err(|error| {
                let error = MigrateError::Source(Box::new(error));
                migration_error(&db, config.database_url.expose_secret(), error)
            })?;
        }
        let Base {
            core,
            authn,
            accounts,
        } = Base::on(config, db, clock).await?;
        let files = Files::open(&core.config.files)?;
        if let Some(settings) = &core.config.collector {
            let collector = collector(settings, core.clock.clone())?;
            let (ratio, metrics) = (settings.trace_ratio, core.metrics.clone());
            let exporter = core.traces.start(collector, ratio, metrics);
            core.workers.spawn(exporter.run(core.stop_ingest.clone()));
        }

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
            mandate_calls: Calls::default(),
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
pub fn create_data_dir(config: &Config) -> Result<(), StartError> {
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
