//! The right of a replica to work on its lanes. It beats in the database; another replica that sees
//! no beat for a while takes its lanes. Both measure with clocks that cannot jump, and the replica
//! itself stops sooner than others give it up.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a replica beats.
pub const BEAT_INTERVAL: Duration = Duration::from_secs(1);
/// After a beat, a replica works for so long at most without another. Counted from before the beat
/// is stored.
const VALID: Duration = Duration::from_secs(4);
/// A replica that was not seen to beat for so long is gone. Counted from after a beat is read.
pub const GONE_AFTER: Duration = Duration::from_secs(5);

/// Whether this replica may work; cheap to clone.
#[derive(Clone)]
pub struct Lease(Arc<Mutex<Option<Instant>>>);

impl Lease {
    /// Not valid before the first beat.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(None)))
    }

    /// A beat that was begun at this moment is stored.
    pub fn renew(&self, begun_at: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun_at + VALID);
    }

    pub fn is_valid(&self) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some_and(|until| Instant::now() < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_before_others_take_the_lanes() {
        let lease = Lease::new();
        assert!(!lease.is_valid());
        lease.renew(Instant::now());
        assert!(lease.is_valid());
        assert!(VALID < GONE_AFTER);
    }
}
