//! What all lanes of this replica share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hub_core::Core;
use hub_destinations::{Connections, Failure};
use hub_protocol::Timestamp;

use super::super::LaneStatus;
use super::super::definition::Compiled;
use super::circuit::Health;
use super::feed::Feeds;
use super::settle::Settler;
use super::slots::Slots;
use super::workers::Workers;

/// Cheap to clone.
#[derive(Clone)]
pub struct Shared {
    pub core: Core,
    pub feeds: Feeds,
    pub slots: Slots,
    pub settler: Settler,
    pub connections: Arc<Connections>,
    pub workers: Workers,
}

/// A random number from 0 to 1.
fn jitter() -> f64 {
    f64::from(u32::from_le_bytes(hub_base::sealing::random())) / f64::from(u32::MAX)
}

/// The longest wait for the next attempt.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// When the next attempt is due, by a clock that cannot be set. A lane waits no longer since
/// somebody set the other one back.
#[derive(Default)]
pub struct NextAttempt(Option<(Timestamp, Instant)>);

impl NextAttempt {
    /// How long to wait; None if the attempt is due.
    pub fn wait(&mut self, health: &Health, wall: Timestamp, now: Instant) -> Option<Duration> {
        let at = health.next_attempt_at?;
        let left =
            u64::try_from(at.as_micros().saturating_sub(wall.as_micros())).unwrap_or_default();
        let left = Duration::from_micros(left).min(LONGEST_WAIT);
        let due_at = match self.0 {
            Some((known, due_at)) if known == at => due_at.min(now + left),
            _ => now + left,
        };
        self.0 = Some((at, due_at));
        Some(due_at.saturating_duration_since(now)).filter(|wait| !wait.is_zero())
    }
}

/// Notes what an attempt says of the receiver.
pub fn judge(health: &mut Health, result: &Result<(), Failure>, now: Timestamp) {
    match result {
        Ok(()) => {
            health.answered();
            health.last_delivered_at = Some(now);
        }
        Err(Failure::Message { reason }) => {
            health.answered();
            health.last_error = Some(reason.clone());
        }
        Err(Failure::Receiver {
            reason,
            retry_after,
        }) => health.failed(now, reason, *retry_after, jitter()),
        Err(Failure::Credentials { reason }) => health.refused_credentials(now, reason, jitter()),
        Err(Failure::Gone { reason }) => health.suspend(now, reason),
    }
}

/// Logs that a pipeline has begun to fail, or delivers again.
pub fn log_change(shared: &Shared, compiled: &Compiled, before: LaneStatus, health: &Health) {
    if before == health.status {
        return;
    }
    let Compiled {
        pipeline_uuid,
        tenant_uuid,
        ..
    } = compiled;
    let surges = &shared.core.surges;
    let reason = health.last_error.as_deref();
    match health.status {
        LaneStatus::OpenCircuit if surges.failing_pipelines.is_single() => tracing::warn!(
            %pipeline_uuid, %tenant_uuid, reason,
            "a pipeline fails: its receiver accepts no messages; they wait and are sent again"
        ),
        LaneStatus::Suspended if surges.failing_pipelines.is_single() => tracing::warn!(
            %pipeline_uuid, %tenant_uuid, reason,
            "a pipeline is suspended until its tenant resumes it"
        ),
        LaneStatus::Running if surges.recovered_pipelines.is_single() => tracing::warn!(
            %pipeline_uuid, %tenant_uuid,
            "a pipeline delivers again"
        ),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_delays_no_attempt() {
        let (wall, now, second) = (
            Timestamp::from_micros(1_000_000_000_000),
            Instant::now(),
            Duration::from_secs(1),
        );
        let mut health = Health {
            status: LaneStatus::Running,
            failures: 1,
            next_attempt_at: Some(wall.plus_micros(5_000_000)),
            failing_since: None,
            last_error: None,
            last_delivered_at: None,
        };
        let mut next = NextAttempt::default();
        assert_eq!(next.wait(&health, wall, now), Some(5 * second));
        let day_before = wall.plus_micros(-86_400_000_000);
        assert_eq!(
            next.wait(&health, day_before, now + 2 * second),
            Some(3 * second)
        );
        assert_eq!(next.wait(&health, day_before, now + 5 * second), None);
        health.next_attempt_at = Some(wall.plus_micros(9_000_000));
        assert_eq!(
            next.wait(&health, wall.plus_micros(9_000_000), now + 6 * second),
            None,
            "set forward"
        );
        assert_eq!(
            NextAttempt::default().wait(&health, day_before, now),
            Some(LONGEST_WAIT),
            "at most"
        );
    }
}
