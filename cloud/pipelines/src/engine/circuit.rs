//! When a lane may try its receiver: after failures in a row its circuit opens, and one attempt at
//! a time tells whether the receiver is back. Knows neither clock nor receiver.

use std::time::Duration;

use hub_protocol::Timestamp;

use super::super::LaneStatus;

/// Failures in a row after which the circuit is open.
const OPEN_AFTER: i64 = 5;
/// Before that, the first delay, which doubles.
const FIRST_DELAY_MICROS: i64 = 250_000;
/// The first delay of an open circuit, which grows threefold,
const FIRST_PROBE_MICROS: i64 = 5_000_000;
/// up to this one.
const LAST_PROBE_MICROS: i64 = 15 * 60 * 1_000_000;
/// A receiver may ask for a longer delay, but for no longer one than this.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);
/// A receiver that failed for as long as this is given up until an operator resumes the pipeline.
const SUSPEND_AFTER_SECS: i64 = 5 * 24 * 3600;
const MAX_ERROR_CHARS: usize = 500;

/// How the receiver of a lane does.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    pub status: LaneStatus,
    /// Failures in a row.
    pub failures: i64,
    /// No attempt is made before.
    pub next_attempt_at: Option<Timestamp>,
    pub failing_since: Option<Timestamp>,
    /// Why the last attempt failed; kept after it has succeeded again.
    pub last_error: Option<String>,
    pub last_delivered_at: Option<Timestamp>,
}

impl Health {
    /// The receiver answered: it accepted a message, or refused that one alone.
    pub fn answered(&mut self) {
        self.status = LaneStatus::Running;
        self.failures = 0;
        self.next_attempt_at = None;
        self.failing_since = None;
    }

    /// The receiver failed. `jitter` is from 0 to 1.
    pub fn failed(
        &mut self,
        now: Timestamp,
        reason: &str,
        retry_after: Option<Duration>,
        jitter: f64,
    ) {
        self.failures = self.failures.saturating_add(1);
        self.note(now, reason);
        let (first, factor, nth, last) = match self.failures {
            ..OPEN_AFTER => (FIRST_DELAY_MICROS, 2, self.failures - 1, FIRST_PROBE_MICROS),
            _ => (
                FIRST_PROBE_MICROS,
                3,
                self.failures - OPEN_AFTER,
                LAST_PROBE_MICROS,
            ),
        };
        let nth = u32::try_from(nth.clamp(0, 16)).unwrap_or_default();
        let delay = first.saturating_mul(i64::pow(factor, nth)).min(last);
        // Receivers that failed at the same moment are not tried at the same moment.
        let delay = delay - (delay as f64 * 0.2 * jitter.clamp(0.0, 1.0)) as i64;
        let asked = retry_after.map_or(0, |asked| micros(asked.min(MAX_RETRY_AFTER)));
        self.next_attempt_at = Some(now.plus_micros(delay.max(asked)));
        if self.failures >= OPEN_AFTER {
            self.status = LaneStatus::OpenCircuit;
        }
        let since = self.failing_since.unwrap_or(now);
        if now.as_secs().saturating_sub(since.as_secs()) >= SUSPEND_AFTER_SECS {
            self.suspend(
                now,
                &format!("the receiver failed for 5 days; the last failure: {reason}"),
            );
        }
    }

    /// The receiver refuses the credentials: the circuit opens at once.
    pub fn refused_credentials(&mut self, now: Timestamp, reason: &str, jitter: f64) {
        self.failures = self.failures.max(OPEN_AFTER - 1);
        self.failed(now, reason, None, jitter);
    }

    /// Nothing is sent until an operator resumes the pipeline.
    pub fn suspend(&mut self, now: Timestamp, reason: &str) {
        self.note(now, reason);
        self.status = LaneStatus::Suspended;
        self.next_attempt_at = None;
    }

    fn note(&mut self, now: Timestamp, reason: &str) {
        self.failing_since = self.failing_since.or(Some(now));
        self.last_error = Some(reason.chars().take(MAX_ERROR_CHARS).collect());
    }

    /// Whether anything is to be sent at all, now or later.
    pub fn is_working(&self) -> bool {
        matches!(self.status, LaneStatus::Running | LaneStatus::OpenCircuit)
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn healthy() -> Health {
        Health {
            status: LaneStatus::Running,
            failures: 0,
            next_attempt_at: None,
            failing_since: None,
            last_error: None,
            last_delivered_at: None,
        }
    }

    fn delay_secs(health: &Health, now: Timestamp) -> f64 {
        let at = health.next_attempt_at.map_or(0, Timestamp::as_micros);
        (at - now.as_micros()) as f64 / 1e6
    }

    #[test]
    fn the_circuit_opens_after_five_failures_and_closes_with_an_answer() {
        let (mut health, now) = (healthy(), Timestamp::from_micros(1));
        let mut delays = Vec::new();
        for nth in 1..=12 {
            health.failed(now, "reset", None, 0.0);
            assert_eq!(
                health.status == LaneStatus::OpenCircuit,
                nth >= 5,
                "after {nth} failures"
            );
            delays.push(delay_secs(&health, now));
        }
        assert_eq!(
            delays,
            [
                0.25, 0.5, 1.0, 2.0, 5.0, 15.0, 45.0, 135.0, 405.0, 900.0, 900.0, 900.0
            ]
        );
        health.answered();
        assert_eq!(
            health,
            Health {
                last_error: Some("reset".to_owned()),
                ..healthy()
            }
        );
    }

    #[test]
    fn a_receiver_may_ask_for_an_hour_at_most() {
        let (mut health, now) = (healthy(), Timestamp::from_micros(0));
        health.failed(now, "429", Some(Duration::from_secs(60)), 1.0);
        assert_eq!(delay_secs(&health, now), 60.0);
        health.failed(now, "429", Some(Duration::from_secs(86_400)), 1.0);
        assert_eq!(delay_secs(&health, now), 3600.0);
    }

    #[test]
    fn five_days_of_failures_suspend() {
        let (mut health, start) = (healthy(), Timestamp::from_micros(0));
        health.failed(start, "reset", None, 0.5);
        health.failed(start.plus_secs(SUSPEND_AFTER_SECS - 1), "reset", None, 0.5);
        assert_eq!(health.status, LaneStatus::Running);
        health.failed(start.plus_secs(SUSPEND_AFTER_SECS), "reset", None, 0.5);
        assert_eq!(health.status, LaneStatus::Suspended);
        assert!(
            health
                .last_error
                .is_some_and(|error| error.contains("5 days"))
        );
    }

    #[test]
    fn refused_credentials_open_the_circuit_at_once() {
        let mut health = healthy();
        health.refused_credentials(Timestamp::from_micros(0), "401", 0.0);
        assert_eq!(health.status, LaneStatus::OpenCircuit);
    }
}
