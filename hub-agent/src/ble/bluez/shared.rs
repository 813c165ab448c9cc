//! What the listener, the supervisor and the scanners share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::world::World;

#[derive(Clone, Debug)]
pub struct Shared {
    world: Arc<Mutex<World>>,
    /// Counts changes of adapters and of bluetoothd's presence.
    pub changes: watch::Sender<u64>,
}

impl Shared {
    pub fn new(world: World) -> Self {
        Self {
            world: Arc::new(Mutex::new(world)),
            changes: watch::Sender::new(0),
        }
    }

    /// The lock is held only briefly, and never across an await.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn note_change(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}
