//! The backups that the service makes by itself, whenever the newest one at `backup-to` is older
//! than the interval. Of several replicas one at a time makes them, and all know the age of the
//! newest.

use std::time::{Duration, Instant};

use hub_core::config::BackupPlace;
use hub_protocol::Timestamp;

use super::places::{self, shown};
use super::{Result, SealKeys, backup};
use crate::app::App;

/// How often the age is looked at.
const INTERVAL: Duration = Duration::from_secs(30);
/// The pause after a backup that failed.
const RETRY_AFTER: Duration = Duration::from_secs(600);
/// What replicas hold in turn, see [`hub_base::db::Db::try_hold`].
const HELD: i64 = 7_310_466;

/// What the schedule remembers between two looks.
pub struct Schedule {
    /// The time of the newest backup; before the first one, that of the start.
    newest: Timestamp,
    /// The place is not read before this time.
    due_at: Timestamp,
    /// When a backup or the look at the place failed.
    failed_at: Option<Instant>,
}

/// Runs until the service ends. Does nothing without `backup-to`.
pub async fn run(app: App) {
    let Some(place) = app.config.backup.to.clone() else {
        return;
    };
    let mut schedule = Schedule::new(&app);
    while !app.shutdown.is_cancelled() {
        app.shutdown
            .run_until_cancelled(schedule.look(&app, &place))
            .await;
        tokio::select! {
            () = app.shutdown.cancelled() => {}
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

impl Schedule {
    pub fn new(app: &App) -> Self {
        Self {
            newest: app.clock.now(),
            due_at: app.clock.now(),
            failed_at: None,
        }
    }

    /// Makes a backup if one is due, and sets the metric.
    pub async fn look(&mut self, app: &App, place: &BackupPlace) {
        let is_waiting = self
            .failed_at
            .is_some_and(|failed_at| failed_at.elapsed() < RETRY_AFTER);
        if !is_waiting {
            match self.make_due(app, place).await {
                Ok(()) => {
                    if self.failed_at.take().is_some() {
                        tracing::warn!("backups work again");
                    }
                }
                Err(error) => {
                    if self.failed_at.replace(Instant::now()).is_none() {
                        let place = shown(place);
                        tracing::error!(%error, place, "the backup failed; it is tried again every ten minutes");
                    }
                }
            }
        }
        let age_secs = app.clock.now().as_secs() - self.newest.as_secs();
        app.metrics.backup_age_seconds.set(age_secs.max(0));
    }

    async fn make_due(&mut self, app: &App, place: &BackupPlace) -> Result<()> {
        if !self.is_due(app, place).await? {
            return Ok(());
        }
        let held = app.db.try_hold(HELD).await;
        let held = held.map_err(|error| super::Failure::of_database("cannot begin", &error))?;
        // Another replica may have made it in the meantime.
        if held.is_none() || !self.is_due(app, place).await? {
            return Ok(());
        }
        let config = &app.config;
        let seal = SealKeys::choose(config, config.backup.passphrase_file.is_none())?;
        let report = backup(
            &app.db,
            config,
            app.clock.now(),
            place,
            &seal,
            &app.shutdown,
        )
        .await?;
        self.is_due(app, place).await?;
        let deleted = places::prune(place, config.backup.keep, app.clock.now()).await?;
        tracing::info!(deleted, "{}", report.trim_end().replace('\n', "; "));
        Ok(())
    }

    async fn is_due(&mut self, app: &App, place: &BackupPlace) -> Result<bool> {
        let now = app.clock.now();
        if now < self.due_at {
            return Ok(false);
        }
        let Some(newest) = places::newest(place, now).await? else {
            return Ok(true);
        };
        self.newest = newest;
        let every_secs = i64::try_from(app.config.backup.every.as_secs()).unwrap_or(i64::MAX);
        self.due_at = newest.plus_secs(every_secs);
        Ok(self.due_at <= now)
    }
}
