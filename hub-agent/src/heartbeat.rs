//! The heartbeats of the agent's loops. Each loop has to beat within its own limit; the watchdog
//! reads which one did not.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::since_boot_micros;

#[derive(Clone, Default)]
pub struct Heartbeats(Arc<Mutex<Vec<Heartbeat>>>);

/// The beat of one loop.
#[derive(Clone)]
pub struct Heartbeat {
    name: &'static str,
    limit_micros: i64,
    last_micros: Arc<AtomicI64>,
}

impl Heartbeat {
    pub fn beat(&self) {
        self.last_micros
            .store(since_boot_micros(), Ordering::Relaxed);
    }

    fn is_late(&self, now_micros: i64) -> bool {
        now_micros - self.last_micros.load(Ordering::Relaxed) > self.limit_micros
    }
}

impl Heartbeats {
    pub fn register(&self, name: &'static str, limit: Duration) -> Heartbeat {
        let beat = Heartbeat {
            name,
            limit_micros: limit.as_micros() as i64,
            last_micros: Arc::new(AtomicI64::new(since_boot_micros())),
        };
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(beat.clone());
        beat
    }

    /// The first loop that has stopped moving.
    pub fn stalled(&self) -> Option<&'static str> {
        let now = since_boot_micros();
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .find(|beat| beat.is_late(now))
            .map(|beat| beat.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stalled_loop_is_named() {
        let heartbeats = Heartbeats::default();
        let _fine = heartbeats.register("fine", Duration::from_secs(3_600));
        assert_eq!(heartbeats.stalled(), None);
        let late = heartbeats.register("late", Duration::from_secs(10));
        late.last_micros
            .store(since_boot_micros() - 11_000_000, Ordering::Relaxed);
        assert_eq!(heartbeats.stalled(), Some("late"));
        late.beat();
        assert_eq!(heartbeats.stalled(), None);
    }
}
