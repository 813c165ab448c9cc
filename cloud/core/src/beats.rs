//! Which replicas are there. Each counts beats in the database, and the others look whether the
//! count still grows: by their own clocks, which cannot jump, and never by the time of day.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use uuid::Uuid;

/// What was seen of other replicas.
pub struct Others {
    seen: HashMap<Uuid, (i64, Instant)>,
    /// A replica that was not seen to beat for so long is gone. Counted from after a beat is read.
    gone_after: Duration,
}

impl Others {
    pub fn new(gone_after: Duration) -> Self {
        Self {
            seen: HashMap::new(),
            gone_after,
        }
    }

    /// Notes the beats of all replicas that there are now; returns those that are gone.
    pub fn see(&mut self, own: Uuid, beats: &[(Uuid, i64)], now: Instant) -> Vec<Uuid> {
        self.seen
            .retain(|replica, _| beats.iter().any(|(other, _)| other == replica));
        for (replica, count) in beats.iter().filter(|(replica, _)| *replica != own) {
            let seen = self.seen.entry(*replica).or_insert((*count, now));
            if seen.0 != *count {
                *seen = (*count, now);
            }
        }
        let is_gone =
            |seen_at: &Instant| now.saturating_duration_since(*seen_at) >= self.gone_after;
        self.seen
            .iter()
            .filter(|(_, (_, seen_at))| is_gone(seen_at))
            .map(|(replica, _)| *replica)
            .collect()
    }

    /// The next moment at which one of them is gone, unless it beats before.
    pub fn next_gone_at(&self, now: Instant) -> Option<Instant> {
        self.seen
            .values()
            .map(|(_, seen_at)| *seen_at + self.gone_after)
            .filter(|gone_at| *gone_at > now)
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GONE_AFTER: Duration = Duration::from_secs(5);

    #[test]
    fn a_replica_that_stops_beating_is_gone() {
        let (own, other, now) = (Uuid::new_v4(), Uuid::new_v4(), Instant::now());
        let mut others = Others::new(GONE_AFTER);
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
}
