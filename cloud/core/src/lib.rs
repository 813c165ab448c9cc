//! What every endpoint and worker shares: the configuration, the state in [`Core`], audit entries,
//! background tasks, mail, and the ground of HTTP. Knows no subject.
//!
//! A module imports only from earlier lines:
//!
//! ```layers
//! config
//! lib
//! beats http pace replicas
//! audit tasks
//! mail outbox
//! ```

pub mod audit;
pub mod beats;
pub mod config;
pub mod http;
pub mod mail;
pub mod outbox;
pub mod pace;
pub mod replicas;
pub mod tasks;

use std::ops::Deref;
use std::sync::Arc;

use hub_base::bodies::Bodies;
use hub_base::bus::Bus;
use hub_base::clock::Clock;
use hub_base::db::Db;
use hub_base::metrics::Metrics;
use hub_base::revisions::Revisions;
use hub_base::sealing::Sealer;
use hub_base::seldom::Seldom;
use hub_base::storage::Storage;
use hub_base::surge::Surges;
use hub_base::turns::WriteTurns;
use hub_history::{History, Place};
use hub_outgoing::{Outgoing, OutgoingSettingsError};
use hub_scripts::Scripts;
use hub_traces::Traces;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{Config, FilesConfig};

/// The shared state. Created once, at the start; cheap to clone.
#[derive(Clone)]
pub struct Core(Arc<Inner>);

pub struct Inner {
    pub config: Config,
    pub db: Db,
    pub clock: Clock,
    pub sealer: Sealer,
    pub bus: Bus,
    pub metrics: Metrics,
    /// Spans for the collector, if there is one.
    pub traces: Traces,
    /// Whether there is room to store more.
    pub storage: Storage,
    /// Where BLE events are.
    pub event_log: EventLog,
    /// The memory and threads of bodies.
    pub bodies: Bodies,
    /// The processes that run scripts of tenants.
    pub scripts: Scripts,
    /// Calls to addresses that tenants chose.
    pub outgoing: Outgoing,
    /// The limits of writes by hubs and logins.
    pub turns: WriteTurns,
    /// Refusals of hubs that were noted.
    pub refused: Seldom,
    /// What the log says in numbers when it is frequent.
    pub surges: Surges,
    /// The revisions of the device catalogs, which recognise and read devices.
    pub catalog_revisions: Revisions,
    /// Wakes the task runner, see [`crate::tasks::enqueue`].
    pub task_wake: Notify,
    /// Cancelled when the service is to end: streams close, and workers finish their current work.
    pub shutdown: CancellationToken,
    /// Cancelled when no request that could upload is left.
    pub stop_ingest: CancellationToken,
    /// All workers that run beside the requests.
    pub workers: TaskTracker,
}

/// Where BLE events are: in the database, and in files. Cheap to clone.
#[derive(Clone)]
pub struct EventLog {
    pub db: Db,
    pub history: History,
    pub read_failures: Counter,
}

impl Deref for Core {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Core {
    pub fn new(
        config: Config,
        db: Db,
        clock: Clock,
        sealer: Sealer,
        bus: Bus,
    ) -> Result<Self, OutgoingSettingsError> {
        let bodies = Bodies::new(config.body_memory_bytes);
        let reports_per_minute = config.hub_reports_per_minute;
        let metrics = Metrics::new();
        let scripts = Scripts::with(
            config.script_program.clone(),
            config.script_processes,
            metrics.clone(),
            config.scripts_without_seccomp,
        );
        let files = match &config.files {
            FilesConfig::Directory(dir) => Place::Directory(dir.clone()),
            FilesConfig::S3 { bucket, prefix } => Place::S3 {
                bucket: bucket.clone(),
                prefix: prefix.clone(),
            },
        };
        let event_log = EventLog {
            db: db.clone(),
            history: History::new(files, config.history_group_events),
            read_failures: metrics.history_read_failures.clone(),
        };
        let outgoing = Outgoing::new(&config.outgoing, metrics.clone())?;
        Ok(Self(Arc::new(Inner {
            config,
            db,
            clock,
            sealer,
            bus,
            metrics,
            traces: Traces::default(),
            storage: Storage::default(),
            event_log,
            bodies,
            scripts,
            outgoing,
            refused: Seldom::default(),
            surges: Surges::default(),
            turns: WriteTurns::new(reports_per_minute),
            catalog_revisions: Revisions::default(),
            task_wake: Notify::new(),
            shutdown: CancellationToken::new(),
            stop_ingest: CancellationToken::new(),
            workers: TaskTracker::new(),
        })))
    }
}
