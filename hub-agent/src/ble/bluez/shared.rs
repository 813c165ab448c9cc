//! The state that the listener, the supervisor and the scanners share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::objects::Objects;

#[derive(Clone, Debug)]
pub struct Shared {
    objects: Arc<Mutex<Objects>>,
    /// Counts changes of adapters and of bluetoothd's presence.
    pub changes: watch::Sender<u64>,
}

impl Shared {
    pub fn new(objects: Objects) -> Self {
        Self {
            objects: Arc::new(Mutex::new(objects)),
            changes: watch::Sender::new(0),
        }
    }

    /// The lock is held only briefly, and never across an await.
    pub fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn note_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}
