//! What bodies may use of the service at a time: memory, by the stage that a body is in, and
//! threads for the work on large ones. What finds no room is refused: with 429 if its tenant or hub
//! has its share in use, else with 503.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::budget::Budget;
use crate::error::{Error, Result};

/// Work on this much is little enough for a request thread: less than a millisecond.
pub const INLINE_BYTES: usize = 64 * 1024;
/// How long a large body waits for a thread. The memory that it holds bounds how many wait.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Bodies {
    /// Bodies that are being received, as sent. A client may take long over it.
    pub arriving: Budget,
    /// Large bodies, from before they are unpacked until what they contain is stored.
    pub unpacked: Budget,
    /// The records of small uploads, which wait for the writer.
    pub queued: Budget,
    /// Large responses, until the client has received them.
    pub answers: Budget,
    workers: Arc<Semaphore>,
}

impl Bodies {
    /// `bytes` is the sum of all budgets.
    pub fn new(bytes: usize) -> Self {
        // The service answers other requests and writes meanwhile.
        let workers = std::thread::available_parallelism()
            .map_or(1, |threads| threads.get() / 2)
            .max(1);
        Self {
            arriving: Budget::new(bytes / 4),
            unpacked: Budget::new(bytes / 2),
            queued: Budget::new(bytes / 8),
            answers: Budget::new(bytes / 8),
            workers: Arc::new(Semaphore::new(workers)),
        }
    }

    /// Memory in use by all bodies.
    pub fn used_bytes(&self) -> usize {
        [&self.arriving, &self.unpacked, &self.queued, &self.answers]
            .into_iter()
            .map(Budget::used_bytes)
            .sum()
    }

    /// Works on a large body outside of the request threads, on few at a time. Work that has begun
    /// is finished even if nobody waits for it anymore, so memory that it uses has to be held by
    /// the work itself.
    pub async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let place = tokio::time::timeout(MAX_WAIT, self.workers.clone().acquire_owned()).await;
        let Ok(Ok(place)) = place else {
            let message = "too many large bodies are being processed; try again shortly";
            return Err(Error::unavailable("BUSY", message));
        };
        let work = move || {
            let _place = place;
            work()
        };
        tokio::task::spawn_blocking(work)
            .await
            .map_err(Error::internal)
    }
}
