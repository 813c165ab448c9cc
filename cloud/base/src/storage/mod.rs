//! Whether the disk under the database has room for more. While it has not, what would grow is
//! refused with 507. Reads go on, and so do refreshes of tokens, retention and what ends or deletes
//! something: out of a reserve that is held back for them. `watch` finds out; nothing else does,
//! except that a write that failed reports it at once.

mod disk;
mod postgres;
pub mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, RwLock, RwLockReadGuard};

use crate::error::{Error, Result};

/// Cheap to clone.
#[derive(Clone, Default)]
pub struct Storage(Arc<Inner>);

#[derive(Default)]
struct Inner {
    is_full: AtomicBool,
    /// A write failed because the disk is full.
    is_reported: AtomicBool,
    reported: Notify,
    /// Held to write while what is left must not be tried out.
    quiet: RwLock<()>,
}

impl Storage {
    pub fn is_full(&self) -> bool {
        self.0.is_full.load(Ordering::Relaxed)
    }

    /// Fails with 507 while there is no room.
    pub fn require_room(&self) -> Result<()> {
        if self.is_full() {
            Err(Error::storage_full())
        } else {
            Ok(())
        }
    }

    /// Notes that a write failed because the disk is full.
    pub fn report_full(&self) {
        self.0.is_full.store(true, Ordering::Relaxed);
        self.0.is_reported.store(true, Ordering::Relaxed);
        self.0.reported.notify_one();
    }

    /// The guard of a write that goes on out of the reserve: meanwhile no probe for free space uses
    /// the reserve up.
    pub async fn quiet(&self) -> RwLockReadGuard<'_, ()> {
        self.0.quiet.read().await
    }
}
