//! Who may change credentials now. Thousands of hubs may claim or refresh at the same moment, after an outage for one; they queue here, first come
//! first served, and never crowd the uploads out of the database's connections.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::{Error, Result};

/// A part of the connections to PostgreSQL; on SQLite more would only wait for its one writer.
const AT_ONCE: usize = 8;
/// Longer than any queue takes that moves on; only a database that stands still is met by it.
const WAIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Turns(Semaphore);

impl Turns {
    pub const fn new() -> Self {
        Self(Semaphore::const_new(AT_ONCE))
    }

    /// Waits for a turn, which lasts until the permit is dropped.
    pub async fn next(&self) -> Result<SemaphorePermit<'_>> {
        match tokio::time::timeout(WAIT, self.0.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Error::unavailable("BUSY", "too many hubs ask for credentials just now; try again shortly")),
        }
    }
}

impl Default for Turns {
    fn default() -> Self {
        Self::new()
    }
}
