//! The right of a replica to work on its lanes. It beats in the database; another replica that sees
//! no beat for a while takes its lanes. Both measure with clocks that cannot jump, and the replica
//! itself stops sooner than others give it up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use uuid::Uuid;

/// How often a replica beats.
pub const BEAT_INTERVAL: Duration = Duration::from_secs(1);
/// After a beat, a replica works for so long at most without another. Counted from before the beat
/// is stored.
const VALID: Duration = Duration::from_secs(4);
/// A replica that was not seen to beat for so long is gone. Counted from after a beat is read.
const GONE_AFTER: Duration = Duration::from_secs(5);

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

/// What was seen of other replicas.
#[derive(Default)]
pub struct Others(HashMap<Uuid, (i64, Instant)>);

impl Others {
    /// Notes the beats of all replicas that there are now; returns those that are gone.
    pub fn see(&mut self, own: Uuid, beats: &[(Uuid, i64)], now: Instant) -> Vec<Uuid> {
        self.0
            .retain(|replica, _| beats.iter().any(|(other, _)| other == replica));
        for (replica, count) in beats.iter().filter(|(replica, _)| *replica != own) {
            let seen = self.0.entry(*replica).or_insert((*count, now));
            if seen.0 != *count {
                *seen = (*count, now);
            }
        }
        let is_gone = |seen_at: &Instant| now.saturating_duration_since(*seen_at) >= GONE_AFTER;
        self.0
            .iter()
            .filter(|(_, (_, seen_at))| is_gone(seen_at))
            .map(|(replica, _)| *replica)
            .collect()
    }

    /// The next moment at which one of them is gone, unless it beats before.
    pub fn next_gone_at(&self, now: Instant) -> Option<Instant> {
        self.0
            .values()
            .map(|(_, seen_at)| *seen_at + GONE_AFTER)
            .filter(|gone_at| *gone_at > now)
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_that_stops_beating_is_gone() {
        let (own, other, now) = (Uuid::new_v4(), Uuid::new_v4(), Instant::now());
        let mut others = Others::default();
        assert!(others.see(own, &[(own, 1), (other, 7)], now).is_empty());
        assert!(
            others
                .see(own, &[(own, 1), (other, 8)], now + GONE_AFTER)
                .is_empty(),
            "it has beaten"
        );
        assert_eq!(
            others.next_gone_at(now + GONE_AFTER),
            Some(now + GONE_AFTER * 2)
        );
        assert_eq!(
            others.see(own, &[(own, 1), (other, 8)], now + GONE_AFTER * 2),
            [other],
            "not this one itself"
        );
        assert_eq!(
            others.next_gone_at(now + GONE_AFTER * 2),
            None,
            "it is gone already"
        );
        assert!(
            others
                .see(own, &[(own, 1)], now + GONE_AFTER * 3)
                .is_empty(),
            "it has ended"
        );
    }

    #[test]
    fn a_lease_ends_before_others_take_the_lanes() {
        let lease = Lease::new();
        assert!(!lease.is_valid());
        lease.renew(Instant::now());
        assert!(lease.is_valid());
        assert!(VALID < GONE_AFTER);
    }
}
