//! The schedule of a hub's uploads of a kind, so that the hubs of a tenant together keep to its
//! limit of uploads a minute. Nothing here is random or reads a clock: times are milliseconds since
//! 1970, by the service's clock.
//!
//! A hub takes turns, at times that follow from its pause and its place alone. So the hub keeps its
//! turns over restarts, and hubs that begin at the same moment still upload one after the other.
//! Without a pause from the service (an older one, or one whose limit is far away) the interval
//! between two uploads grows with each refusal and shrinks slowly.

/// A calendar minute, for which the service counts uploads.
const MINUTE_MS: i64 = 60_000;
/// Hubs that wait for the next minute come back within so much of it.
const SPREAD_MS: i64 = 45_000;
/// The longest interval without a pause from the service.
const LONGEST_INTERVAL_MS: i64 = 600_000;
const SHORTEST_GROWN_INTERVAL_MS: i64 = 1_000;
/// The longest pause and the longest wait that are believed: a mistake in the service must not
/// silence hubs for days.
const LONGEST_PAUSE_MS: i64 = 86_400_000;
const LONGEST_WAIT_MS: i64 = 3_600_000;
/// Consecutive multiples of it, without their whole parts, lie evenly between 0 and 1.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;

/// The limit of the current minute, as an answer states it in its `RateLimit-*` headers. The limit
/// is the tenant's, so other hubs use it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Uploads a minute.
    pub limit: i64,
    /// Uploads left in the current minute.
    pub remaining: i64,
    /// Seconds until the next minute begins.
    pub reset_secs: i64,
}

impl RateLimit {
    /// Whether more is left than hubs with a steady pace need for the rest of the minute, by a
    /// tenth of the limit.
    fn has_spare(self) -> bool {
        let needed = self.limit.saturating_mul(self.reset_secs.saturating_add(6));
        self.remaining > 1 && self.remaining.saturating_mul(60) > needed
    }

    /// Whether the minute will be used up long before its end.
    fn is_crowded(self) -> bool {
        self.remaining.saturating_mul(120) < self.limit.saturating_mul(self.reset_secs)
    }
}

/// The turns that the service gives to a hub.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Turns {
    pause_ms: i64,
    offset_ms: i64,
}

impl Turns {
    /// The first turn after `now_ms`.
    fn after(self, now_ms: i64) -> i64 {
        let since = now_ms
            .saturating_sub(self.offset_ms)
            .rem_euclid(self.pause_ms);
        now_ms.saturating_add(self.pause_ms - since)
    }
}

/// The pace of one hub's uploads of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    /// The hub's own shortest interval.
    base_ms: i64,
    /// The interval without turns.
    interval_ms: i64,
    turns: Option<Turns>,
    /// Between 0 and 1: what the hubs of a tenant differ in.
    phase: f64,
    /// The number of refusals in a row.
    refusals: u32,
}

impl Pace {
    /// A pace that the service has not influenced yet. `base_ms` is the hub's own shortest
    /// interval; `phase` is any number from 0 to 1 that other hubs do not share.
    pub fn new(base_ms: i64, phase: f64) -> Self {
        let base_ms = base_ms.max(0);
        Self {
            base_ms,
            interval_ms: base_ms,
            turns: None,
            phase,
            refusals: 0,
        }
    }

    /// Follows the pause and the phase of the service from now on.
    pub fn set(&mut self, pause_ms: i64, phase: f64) {
        if phase.is_finite() {
            self.phase = phase.rem_euclid(1.0);
        }
        let pause_ms = pause_ms.min(LONGEST_PAUSE_MS);
        let offset_ms = (self.phase * pause_ms as f64) as i64;
        // The hub's own interval is longer than a short pause.
        self.turns = (pause_ms > self.base_ms).then_some(Turns {
            pause_ms,
            offset_ms,
        });
    }

    /// Milliseconds between two uploads.
    pub fn pause_ms(&self) -> i64 {
        self.turns.map_or(self.interval_ms, |turns| turns.pause_ms)
    }

    /// Whether the hub takes turns that the service gave it.
    pub fn has_turns(&self) -> bool {
        self.turns.is_some()
    }

    /// Refusals since the last upload that was accepted.
    pub fn refusals(&self) -> u32 {
        self.refusals
    }

    /// When the first upload is due. A hub that has just started is no reason to upload out of
    /// turn.
    pub fn first(&self, now_ms: i64) -> i64 {
        self.turns
            .map_or(now_ms, |turns| turns.after(now_ms.saturating_sub(1)))
    }

    /// The time of the next check after there was nothing to upload.
    pub fn idle(&self, now_ms: i64) -> i64 {
        self.turns
            .map_or(now_ms.saturating_add(self.interval_ms), |turns| {
                turns.after(now_ms)
            })
    }

    /// When the next upload is due after one that was accepted. `has_more`: there is enough left
    /// for a full upload, which may be sent at once if no other hub needs the place.
    pub fn accepted(&mut self, now_ms: i64, rate: Option<RateLimit>, has_more: bool) -> i64 {
        self.refusals = 0;
        let due_ms = match self.turns {
            Some(_) if has_more && rate.is_some_and(RateLimit::has_spare) => {
                now_ms.saturating_add(self.base_ms)
            }
            Some(turns) => turns.after(now_ms),
            None => {
                // Slowly back to the hub's own interval, while there is room.
                self.interval_ms = match rate.is_some_and(RateLimit::is_crowded) {
                    true => (self.interval_ms.max(SHORTEST_GROWN_INTERVAL_MS) * 5 / 4)
                        .min(LONGEST_INTERVAL_MS),
                    false => (self.interval_ms * 9 / 10).max(self.base_ms),
                };
                let at_once = has_more
                    && self.interval_ms == self.base_ms
                    && rate.is_none_or(RateLimit::has_spare);
                if at_once {
                    now_ms
                } else {
                    now_ms.saturating_add(self.interval_ms)
                }
            }
        };
        match rate.filter(|rate| rate.remaining <= 0) {
            // The next upload of this minute would be refused.
            Some(rate) => {
                due_ms.max(self.after_wait(now_ms, rate.reset_secs.saturating_mul(1_000)))
            }
            None => due_ms,
        }
    }

    /// The time of the next attempt after the service answered that there are too many uploads.
    /// `retry_after_ms` is the wait that it asks for, if any.
    pub fn refused(&mut self, now_ms: i64, retry_after_ms: Option<i64>) -> i64 {
        self.refusals = self.refusals.saturating_add(1);
        let wait_ms = retry_after_ms.unwrap_or(0).max(1_000);
        match self.turns {
            Some(turns) => {
                // Minutes that are left out: none, 1, 3, 7, as long as a pause at most.
                let left_out = (1_i64 << (self.refusals - 1).min(10)) - 1;
                let left_out_ms = (left_out * MINUTE_MS).min(turns.pause_ms);
                self.after_wait(now_ms, wait_ms.saturating_add(left_out_ms))
            }
            None => {
                self.interval_ms = (self.interval_ms.saturating_mul(2))
                    .clamp(SHORTEST_GROWN_INTERVAL_MS, LONGEST_INTERVAL_MS);
                self.after_wait(now_ms, wait_ms)
                    .max(now_ms.saturating_add(self.interval_ms))
            }
        }
    }

    /// The end of a wait, which the service may have requested of all hubs at once: each hub
    /// returns at a moment of its own.
    fn after_wait(&self, now_ms: i64, wait_ms: i64) -> i64 {
        let place = (self.phase + f64::from(self.refusals) * GOLDEN_RATIO).fract();
        let spread_ms = (place * self.pause_ms().min(SPREAD_MS) as f64) as i64;
        now_ms
            .saturating_add(wait_ms.clamp(0, LONGEST_WAIT_MS))
            .saturating_add(spread_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON_MS: i64 = 1_800_014_400_000;

    fn rate(remaining: i64, reset_secs: i64) -> Option<RateLimit> {
        Some(RateLimit {
            limit: 100,
            remaining,
            reset_secs,
        })
    }

    #[test]
    fn turns_do_not_depend_on_when_the_hub_started() {
        let mut pace = Pace::new(1_000, 0.5);
        pace.set(570_000, 0.25);
        let turn = pace.first(NOON_MS);
        assert!((NOON_MS..NOON_MS + 570_000).contains(&turn));
        assert_eq!(turn.rem_euclid(570_000), 142_500);
        assert_eq!(
            pace.first(turn),
            turn,
            "a turn may be taken at its very moment"
        );
        for late_ms in [0, 1, 40_000, 569_999] {
            assert_eq!(pace.accepted(turn + late_ms, None, true), turn + 570_000);
            assert_eq!(pace.idle(turn + late_ms), turn + 570_000);
        }
    }

    #[test]
    fn a_short_pause_is_the_hubs_own_interval() {
        let mut pace = Pace::new(1_000, 0.5);
        pace.set(600, 0.9);
        assert_eq!(
            (pace.first(NOON_MS), pace.idle(NOON_MS)),
            (NOON_MS, NOON_MS + 1_000)
        );
        assert_eq!(
            pace.accepted(NOON_MS, None, true),
            NOON_MS,
            "a full spool is emptied at once"
        );
        assert_eq!(
            pace.accepted(NOON_MS, rate(60, 60), true),
            NOON_MS + 1_000,
            "unless the limit is near"
        );
        assert_eq!(
            pace.accepted(NOON_MS, rate(0, 30), true),
            NOON_MS + 30_000 + 1_125,
            "or used up"
        );
    }

    #[test]
    fn what_others_leave_is_used_for_a_full_spool() {
        let mut pace = Pace::new(1_000, 0.0);
        pace.set(60_000, 0.0);
        let next_turn = NOON_MS + 60_000;
        assert_eq!(
            pace.accepted(NOON_MS + 30_000, rate(80, 30), true),
            NOON_MS + 31_000
        );
        assert_eq!(
            pace.accepted(NOON_MS + 30_000, rate(50, 30), true),
            next_turn,
            "the others need the rest"
        );
        assert_eq!(
            pace.accepted(NOON_MS + 30_000, rate(80, 30), false),
            next_turn,
            "there is nothing to send"
        );
    }

    #[test]
    fn a_refused_hub_comes_back_in_the_next_minute_and_then_leaves_minutes_out() {
        let mut pace = Pace::new(1_000, 0.0);
        pace.set(570_000, 0.3);
        let mut waits = Vec::new();
        for _ in 0..6 {
            waits.push((pace.refused(NOON_MS, Some(7_000)) - NOON_MS - 7_000) / MINUTE_MS);
        }
        assert_eq!(waits, [0, 1, 3, 7, 9, 9]);
        assert_eq!(pace.refusals(), 6);
        pace.accepted(NOON_MS, None, false);
        assert_eq!(pace.refusals(), 0);
    }

    #[test]
    fn hubs_that_are_refused_together_do_not_come_back_together() {
        let back: std::collections::BTreeSet<i64> = (0..100)
            .map(|hub| {
                let mut pace = Pace::new(1_000, 0.0);
                pace.set(570_000, f64::from(hub) / 100.0);
                pace.refused(NOON_MS, Some(10_000))
            })
            .collect();
        assert_eq!(back.len(), 100);
        assert!(
            back.iter()
                .all(|at| (NOON_MS + 10_000..NOON_MS + 10_000 + SPREAD_MS).contains(at))
        );
    }

    #[test]
    fn without_a_pause_the_interval_grows_with_refusals_and_shrinks_slowly() {
        let mut pace = Pace::new(1_000, 0.0);
        for expected_ms in [2_000, 4_000, 8_000] {
            assert!(pace.refused(NOON_MS, None) >= NOON_MS + expected_ms);
            assert_eq!(pace.pause_ms(), expected_ms);
        }
        assert_eq!(pace.accepted(NOON_MS, None, true), NOON_MS + 7_200);
        assert_eq!(
            pace.accepted(NOON_MS, rate(5, 50), true),
            NOON_MS + 9_000,
            "most of the minute is used up"
        );
        for _ in 0..200 {
            pace.refused(NOON_MS, None);
        }
        assert_eq!(pace.pause_ms(), LONGEST_INTERVAL_MS);
        for _ in 0..200 {
            pace.accepted(NOON_MS, None, false);
        }
        assert_eq!(pace.accepted(NOON_MS, None, true), NOON_MS);
    }

    #[test]
    fn whatever_the_service_says_the_next_upload_is_later_and_not_never() {
        for pause_ms in [i64::MIN, -1, 0, 1, i64::MAX] {
            for phase in [f64::NAN, -3.5, 7.25, f64::INFINITY] {
                let mut pace = Pace::new(1_000, 0.5);
                pace.set(pause_ms, phase);
                let odd = Some(RateLimit {
                    limit: i64::MAX,
                    remaining: i64::MIN,
                    reset_secs: i64::MAX,
                });
                for due_ms in [
                    pace.idle(NOON_MS),
                    pace.accepted(NOON_MS, odd, true),
                    pace.refused(NOON_MS, Some(i64::MAX)),
                    pace.first(NOON_MS),
                ] {
                    let is_soon = (NOON_MS..NOON_MS + 2 * LONGEST_PAUSE_MS).contains(&due_ms);
                    assert!(is_soon, "{pause_ms} {phase}: {due_ms}");
                }
            }
        }
    }
}
