//! What every layer above the database shares. Knows no subject. Created once, at the start; cheap
//! to clone.

use std::ops::Deref;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bodies::Bodies;
use crate::bus::Bus;
use crate::clock::Clock;
use crate::config::Config;
use crate::db::Db;
use crate::metrics::Metrics;
use crate::outgoing::{Outgoing, OutgoingSettingsError};
use crate::revisions::Revisions;
use crate::scripts::Scripts;
use crate::sealing::Sealer;
use crate::storage::Storage;
use crate::turns::WriteTurns;

#[derive(Clone)]
pub struct Core(Arc<Inner>);

pub struct Inner {
    pub config: Config,
    pub db: Db,
    pub clock: Clock,
    pub sealer: Sealer,
    pub bus: Bus,
    pub metrics: Metrics,
    /// Whether there is room to store more.
    pub storage: Storage,
    /// What bodies may use of memory and threads.
    pub bodies: Bodies,
    /// The processes that run scripts of tenants.
    pub scripts: Scripts,
    /// Calls to addresses that tenants chose.
    pub outgoing: Outgoing,
    /// How often hubs and logins may cause a write.
    pub turns: WriteTurns,
    /// Of the device catalogs: what recognises and reads devices.
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
        let scripts = Scripts::new(
            config.script_program.clone(),
            config.script_processes,
            metrics.clone(),
        );
        let outgoing = Outgoing::new(&config.outgoing, metrics.clone())?;
        Ok(Self(Arc::new(Inner {
            config,
            db,
            clock,
            sealer,
            bus,
            metrics,
            storage: Storage::default(),
            bodies,
            scripts,
            outgoing,
            turns: WriteTurns::new(reports_per_minute),
            catalog_revisions: Revisions::default(),
            task_wake: Notify::new(),
            shutdown: CancellationToken::new(),
            stop_ingest: CancellationToken::new(),
            workers: TaskTracker::new(),
        })))
    }
}
