//! Whether advertisements are recorded. While the hub is handed over to another service none is:
//! the owner before must not get what is heard for the next one, nor the other way round.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Clone, Debug, Default)]
pub struct Recording(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_paused: AtomicBool,
    skipped: AtomicU64,
}

impl Recording {
    pub fn pause(&self) {
        self.0.is_paused.store(true, Ordering::Relaxed);
    }

    /// Records again. Returns how many advertisements were not recorded since the pause.
    pub fn resume(&self) -> u64 {
        self.0.is_paused.store(false, Ordering::Relaxed);
        self.0.skipped.swap(0, Ordering::Relaxed)
    }

    /// Whether so many advertisements are not to be recorded, which are counted then.
    pub fn skips(&self, advertisements: usize) -> bool {
        let is_paused = self.0.is_paused.load(Ordering::Relaxed);
        if is_paused {
            self.0
                .skipped
                .fetch_add(advertisements as u64, Ordering::Relaxed);
        }
        is_paused
    }

    /// The advertisements that were not recorded since the pause.
    pub fn skipped(&self) -> u64 {
        self.0.skipped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_recorded_is_counted() {
        let recording = Recording::default();
        assert!(!recording.skips(2));
        recording.pause();
        assert!(recording.skips(3) && recording.clone().skips(4));
        assert_eq!((recording.skipped(), recording.resume()), (7, 7));
        assert!(!recording.skips(1));
        assert_eq!(recording.resume(), 0);
    }
}
