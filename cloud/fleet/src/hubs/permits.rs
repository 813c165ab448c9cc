//! Limits how many hubs change credentials concurrently. Thousands of hubs may claim or refresh at
//! the same moment, for example after an outage. They queue here in order of arrival, and leave
//! enough database connections for uploads.

use std::sync::Arc;
use std::time::Duration;

use hub_base::error::{Error, Result};
use tokio::sync::{Semaphore, SemaphorePermit};

/// A part of the PostgreSQL connections. On SQLite, more would only wait for its single writer.
const CONCURRENT: usize = 8;
/// The limit of a wait, longer than in any moving queue; only a database that does not respond
/// exceeds it.
const WAIT: Duration = Duration::from_secs(30);

/// The permits of requests for credentials. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CredentialPermits(Arc<Semaphore>);

impl CredentialPermits {
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(CONCURRENT)))
    }

    /// Waits for a permit, which is released when dropped.
    pub async fn acquire(&self) -> Result<SemaphorePermit<'_>> {
        match tokio::time::timeout(WAIT, self.0.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Error::unavailable(
                "BUSY",
                "too many hubs request credentials at the moment; try again shortly",
            )),
        }
    }
}

impl Default for CredentialPermits {
    fn default() -> Self {
        Self::new()
    }
}
