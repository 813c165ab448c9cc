//! Exponential backoff with jitter, and no shorter than the service's `Retry-After`.

use std::time::Duration;

use uuid::Uuid;

/// Waits that double, with jitter.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            failures: 0,
        }
    }

    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// The wait after one more failure. `retry_after` is the service's own minimum.
    pub fn next(&mut self, retry_after: Option<Duration>) -> Duration {
        let wait = self.wait(retry_after, random_fraction());
        self.failures = self.failures.saturating_add(1);
        wait
    }

    fn wait(&self, retry_after: Option<Duration>, fraction: f64) -> Duration {
        let doubled = self
            .first
            .saturating_mul(2_u32.saturating_pow(self.failures.min(31)))
            .min(self.longest);
        match retry_after {
            // All hubs get the same value: jitter spreads them over some time after it.
            Some(retry_after) => retry_after + doubled.mul_f64(fraction),
            // Between half and the whole, so that it still grows.
            None => doubled.mul_f64(0.5 + fraction / 2.0),
        }
    }
}

/// 0 or more, less than 1.
pub fn random_fraction() -> f64 {
    // The uuid's random bits make a generator of our own unnecessary; 52 of them fill a float
    // exactly.
    (Uuid::new_v4().as_u128() >> 76) as f64 / (1_u64 << 52) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_double_up_to_the_longest_and_start_over_after_a_reset() {
        let mut backoff = Backoff::new(SECOND, 8 * SECOND);
        for expected in [1, 2, 4, 8, 8] {
            assert_eq!(backoff.wait(None, 1.0), SECOND * expected);
            assert_eq!(backoff.wait(None, 0.0), SECOND * expected / 2);
            backoff.next(None);
        }
        backoff.reset();
        assert_eq!(backoff.wait(None, 1.0), SECOND);
        for _ in 0..100 {
            backoff.next(None);
        }
        assert_eq!(backoff.wait(None, 1.0), 8 * SECOND);
    }

    #[test]
    fn a_wait_is_never_shorter_than_retry_after() {
        let backoff = Backoff::new(SECOND, 8 * SECOND);
        assert_eq!(backoff.wait(Some(30 * SECOND), 0.0), 30 * SECOND);
        assert_eq!(
            backoff.wait(Some(30 * SECOND), 0.5),
            30 * SECOND + SECOND / 2
        );
    }

    #[test]
    fn fractions_stay_below_one() {
        assert!(
            (0..1_000)
                .map(|_| random_fraction())
                .all(|fraction| (0.0..1.0).contains(&fraction))
        );
    }
}
