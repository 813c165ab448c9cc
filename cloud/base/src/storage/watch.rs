//! Watches the disk under the database, holds the reserve, and releases it when the disk is full.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::disk::{Disk, Level, Room};
use super::{Storage, postgres};
use crate::db::{Db, space};
use crate::error::{Error, Result};
use crate::metrics::Metrics;

/// How often the file system is asked, which costs nothing.
const DISK_EVERY: Duration = Duration::from_millis(500);
/// How often PostgreSQL is asked, and tried out while its disk is full.
const POSTGRES_EVERY: Duration = Duration::from_secs(2);
/// How long writes that go on may keep PostgreSQL from being tried out.
const QUIET_TIMEOUT: Duration = Duration::from_secs(1);

/// The parts of the storage that are watched.
pub struct Watch {
    pub storage: Storage,
    pub db: Db,
    pub metrics: Metrics,
    /// The database file; None for PostgreSQL.
    pub file: Option<PathBuf>,
    pub reserve_bytes: u64,
    pub shutdown: CancellationToken,
}

impl Watch {
    /// Watches until the service ends.
    pub async fn run(self) {
        match &self.file {
            Some(file) => self.watch_disk(Disk::of(file, self.reserve_bytes)).await,
            None => self.watch_postgres().await,
        }
    }

    /// Waits for the next look; returns false when the service ends.
    async fn wait(&self, every: Duration) -> bool {
        tokio::select! {
            () = self.shutdown.cancelled() => false,
            () = tokio::time::sleep(every) => true,
            () = self.storage.0.reported.notified() => true,
        }
    }

    fn take_report(&self) -> bool {
        self.storage.0.is_reported.swap(false, Ordering::Relaxed)
    }

    fn set(&self, is_full: bool) {
        self.metrics.storage_full.set(i64::from(is_full));
        self.storage.0.is_full.store(is_full, Ordering::Relaxed);
    }

    async fn watch_disk(&self, disk: Disk) {
        let mut level = Level {
            is_full: false,
            holds_reserve: disk.holds_reserve(),
        };
        loop {
            match self.look_at_disk(&disk, level).await {
                Ok(found) => level = found,
                Err(error) => tracing::debug!(%error, "the disk cannot be looked at"),
            }
            if !self.wait(DISK_EVERY).await {
                return;
            }
        }
    }

    async fn look_at_disk(&self, disk: &Disk, level: Level) -> Result<Level> {
        let is_reported = self.take_report();
        let free_bytes = disk.free_bytes().map_err(Error::internal)?;
        self.metrics
            .storage_free_bytes
            .set(i64::try_from(free_bytes).unwrap_or(i64::MAX));
        // Only a disk that is nearly full is worth a query.
        let inside = match free_bytes < 4 * disk.reserve_bytes {
            true => space::pages(&self.db)
                .await?
                .map_or(0, |pages| pages.free_bytes().unsigned_abs()),
            false => 0,
        };
        let mut decided = disk.decide(
            level,
            Room {
                disk: free_bytes,
                inside,
            },
            is_reported,
        );
        if level.holds_reserve && !decided.holds_reserve {
            disk.release_reserve();
        }
        if decided.holds_reserve && !level.holds_reserve {
            decided.holds_reserve = disk.hold_reserve().is_ok();
        }
        if decided.is_full && !level.is_full {
            tracing::error!(
                free_bytes,
                "the disk is full: what would grow is refused until there is room"
            );
        }
        if level.is_full && !decided.is_full {
            tracing::warn!(free_bytes, "the disk has room again");
        }
        self.set(decided.is_full);
        if decided.is_full {
            // A checkpoint returns the space that retention has freed to the file system, and
            // restarts the log.
            space::checkpoint(&self.db).await?;
        }
        Ok(decided)
    }

    async fn watch_postgres(&self) {
        let bytes = i64::try_from(self.reserve_bytes)
            .unwrap_or(i64::MAX)
            .min(postgres::MOST_BYTES);
        let mut has_held = false;
        let mut was_full = false;
        loop {
            match self.look_at_postgres(bytes, &mut has_held).await {
                Ok(is_full) => {
                    if is_full && !was_full {
                        tracing::error!(
                            "the disk of PostgreSQL is full: what would grow is refused until there is room"
                        );
                    }
                    if was_full && !is_full {
                        tracing::warn!("the disk of PostgreSQL has room again");
                    }
                    was_full = is_full;
                    self.set(is_full);
                }
                Err(error) => tracing::debug!(%error, "the disk of PostgreSQL cannot be looked at"),
            }
            if !self.wait(POSTGRES_EVERY).await {
                return;
            }
        }
    }

    /// Returns whether the disk is full. `has_held` is whether the reserve was ever seen.
    async fn look_at_postgres(&self, bytes: i64, has_held: &mut bool) -> Result<bool> {
        if self.take_report() {
            postgres::release_reserve(&self.db).await?;
            return Ok(true);
        }
        let is_held = match bytes {
            // Without a reserve, the reported state alone decides.
            0 => !self.storage.is_full(),
            _ => postgres::holds_reserve(&self.db, bytes).await?,
        };
        if is_held {
            *has_held = true;
            return Ok(false);
        }
        let Ok(_alone) = tokio::time::timeout(QUIET_TIMEOUT, self.storage.0.quiet.write()).await
        else {
            return Ok(*has_held);
        };
        match postgres::hold_reserve(&self.db, bytes).await {
            Ok(true) => {
                if bytes == 0 {
                    postgres::release_reserve(&self.db).await?;
                }
                *has_held = true;
                Ok(false)
            }
            // Another replica is at it.
            Ok(false) => Ok(self.storage.is_full()),
            Err(error) if error.is_storage_full() => Ok(true),
            Err(error) => Err(error),
        }
    }
}
