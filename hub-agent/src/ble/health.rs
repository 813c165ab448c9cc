//! The health of each adapter, as facts with times: they distinguish a hub that was blind from
//! devices that were silent. Bounded, and never reads a clock: the caller passes the time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hub_protocol::Timestamp;
use hub_protocol::telemetry::{BlindPeriod, ScanHealth, ScanState};

/// The most blind periods of an adapter; older ones are forgotten.
const MAX_BLIND_PERIODS: usize = 64;
/// Rates are those of the last whole slot of this length, once there is one.
const RATE_SLOT_SECS: i64 = 10;

/// The health of all adapters, shared.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Mutex<BTreeMap<String, Adapter>>>);

#[derive(Debug)]
struct Adapter {
    state: ScanState,
    advertisements: u64,
    first_heard_at: Option<Timestamp>,
    last_heard_at: Option<Timestamp>,
    restarts: u64,
    blind: VecDeque<BlindPeriod>,
    slot: i64,
    in_slot: u64,
    in_slot_before: u64,
}

impl Health {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// The health of every adapter, with the blind periods that end after `since`.
    pub fn report(&self, since: Timestamp, now: Timestamp) -> BTreeMap<String, ScanHealth> {
        self.lock()
            .iter()
            .map(|(address, adapter)| (address.clone(), adapter.report(since, now)))
            .collect()
    }

    /// Advertisements received by all adapters since the start, before de-duplication.
    pub fn advertisements(&self) -> u64 {
        self.lock()
            .values()
            .map(|adapter| adapter.advertisements)
            .sum()
    }

    /// Notes advertisements. An adapter that receives is listening: this ends a blind period.
    pub(super) fn heard(&self, address: &str, at: Timestamp, count: u64) {
        self.change(address, |adapter| {
            adapter.advertisements += count;
            adapter.first_heard_at.get_or_insert(at);
            adapter.last_heard_at = Some(at);
            adapter.advance_to(at);
            adapter.in_slot += count;
            if matches!(adapter.state, ScanState::Blind | ScanState::Silent) {
                adapter.enter(ScanState::Listening, at);
            }
        });
    }

    /// Scanning has begun.
    pub(super) fn listening(&self, address: &str, at: Timestamp) {
        self.change(address, |adapter| adapter.enter(ScanState::Listening, at));
    }

    pub(super) fn silent(&self, address: &str, at: Timestamp) {
        self.change(address, |adapter| adapter.enter(ScanState::Silent, at));
    }

    pub(super) fn disabled(&self, address: &str, at: Timestamp) {
        self.change(address, |adapter| adapter.enter(ScanState::Disabled, at));
    }

    /// Blind since `from`, which may be in the past: blindness is often noticed late. Returns
    /// whether anything changed.
    pub(super) fn blind(&self, address: &str, from: Timestamp, reason: &str) -> bool {
        self.change(address, |adapter| {
            adapter.state = ScanState::Blind;
            match adapter
                .blind
                .back_mut()
                .filter(|period| period.to.is_none())
            {
                Some(period) => {
                    // The cause is known better; it is one blind period.
                    let is_changed = period.reason != reason;
                    period.reason.replace_range(.., reason);
                    is_changed
                }
                None => {
                    adapter.remember(BlindPeriod {
                        from,
                        to: None,
                        reason: reason.to_owned(),
                    });
                    true
                }
            }
        })
    }

    /// A blind period that was only noticed when it had ended.
    pub(super) fn was_blind(&self, address: &str, from: Timestamp, to: Timestamp, reason: &str) {
        self.change(address, |adapter| {
            adapter.remember(BlindPeriod {
                from,
                to: Some(to.max(from)),
                reason: reason.to_owned(),
            });
        });
    }

    pub(super) fn restarted(&self, address: &str) {
        self.change(address, |adapter| adapter.restarts += 1);
    }

    fn change<T>(&self, address: &str, change: impl FnOnce(&mut Adapter) -> T) -> T {
        let mut adapters = self.lock();
        match adapters.get_mut(address) {
            Some(adapter) => change(adapter),
            None => change(
                adapters
                    .entry(address.to_owned())
                    .or_insert_with(Adapter::new),
            ),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Adapter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Adapter {
    fn new() -> Self {
        Self {
            state: ScanState::Listening,
            advertisements: 0,
            first_heard_at: None,
            last_heard_at: None,
            restarts: 0,
            blind: VecDeque::new(),
            slot: 0,
            in_slot: 0,
            in_slot_before: 0,
        }
    }

    fn enter(&mut self, state: ScanState, at: Timestamp) {
        self.state = state;
        if let Some(period) = self.blind.back_mut().filter(|period| period.to.is_none()) {
            period.to = Some(at.max(period.from));
        }
    }

    fn remember(&mut self, period: BlindPeriod) {
        if self.blind.len() == MAX_BLIND_PERIODS {
            self.blind.pop_front();
        }
        self.blind.push_back(period);
    }

    fn advance_to(&mut self, now: Timestamp) {
        let slot = now.as_secs().div_euclid(RATE_SLOT_SECS);
        if slot != self.slot {
            self.in_slot_before = if slot == self.slot + 1 {
                self.in_slot
            } else {
                0
            };
            self.in_slot = 0;
            self.slot = slot;
        }
    }

    /// Of the last whole slot; before there is one, of the time since the first advertisement.
    fn advertisements_per_sec(&self, now: Timestamp) -> f64 {
        let slot = now.as_secs().div_euclid(RATE_SLOT_SECS);
        if let Some(first) = self.first_heard_at
            && first.as_secs() > (slot - 1) * RATE_SLOT_SECS
            // The clock may have been set back.
            && first <= now
        {
            let secs = (now.as_secs() - first.as_secs()).max(1);
            return self.advertisements as f64 / secs as f64;
        }
        let whole_slot = match slot - self.slot {
            0 => self.in_slot_before,
            1 => self.in_slot,
            _ => 0,
        };
        whole_slot as f64 / RATE_SLOT_SECS as f64
    }

    fn report(&self, since: Timestamp, now: Timestamp) -> ScanHealth {
        let current = self.blind.back().filter(|period| period.to.is_none());
        ScanHealth {
            state: self.state,
            reason: current.map(|period| period.reason.clone()),
            advertisements: self.advertisements,
            advertisements_per_sec: self.advertisements_per_sec(now),
            last_heard_at: self.last_heard_at,
            restarts: self.restarts,
            blind: self
                .blind
                .iter()
                .filter(|period| period.to.is_none_or(|to| to >= since))
                .cloned()
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADAPTER: &str = "00:00:00:00:00:01";

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    #[test]
    fn an_advertisement_ends_a_blind_period_which_stays_in_the_report() {
        let health = Health::new();
        health.listening(ADAPTER, at(0));
        health.blind(ADAPTER, at(10), "bluetoothd is not running");
        health.blind(ADAPTER, at(11), "the adapter is gone");
        let now = health.report(at(0), at(12))[ADAPTER].clone();
        assert_eq!(
            (now.state, now.reason.as_deref()),
            (ScanState::Blind, Some("the adapter is gone"))
        );
        assert_eq!(
            now.blind,
            [BlindPeriod {
                from: at(10),
                to: None,
                reason: "the adapter is gone".into()
            }]
        );

        health.heard(ADAPTER, at(20), 3);
        let now = health.report(at(0), at(21))[ADAPTER].clone();
        assert_eq!((now.state, now.reason), (ScanState::Listening, None));
        assert_eq!(now.blind[0].to, Some(at(20)));
        assert!(
            health.report(at(21), at(22))[ADAPTER].blind.is_empty(),
            "it ended before the requested period"
        );
    }

    #[test]
    fn a_disabled_adapter_that_still_receives_stays_disabled() {
        let health = Health::new();
        health.disabled(ADAPTER, at(0));
        health.heard(ADAPTER, at(1), 1);
        assert_eq!(
            health.report(at(0), at(2))[ADAPTER].state,
            ScanState::Disabled
        );
        assert_eq!(health.advertisements(), 1);
    }

    #[test]
    fn the_rate_is_that_of_the_last_whole_slot() {
        let health = Health::new();
        health.heard(ADAPTER, at(100), 40);
        health.heard(ADAPTER, at(109), 60);
        for (now, rate) in [(110, 10.0), (119, 10.0), (120, 0.0)] {
            assert_eq!(
                health.report(at(0), at(now))[ADAPTER].advertisements_per_sec,
                rate,
                "at {now}"
            );
        }
        health.heard(ADAPTER, at(115), 1);
        assert_eq!(
            health.report(at(0), at(116))[ADAPTER].advertisements_per_sec,
            10.0
        );
    }

    #[test]
    fn before_a_whole_slot_the_rate_is_of_the_time_so_far() {
        let health = Health::new();
        health.heard(ADAPTER, at(103), 30);
        health.heard(ADAPTER, at(113), 50);
        // At 90 the clock has been set back; at 120 there is a whole slot.
        for (now, rate) in [(90, 0.0), (113, 8.0), (118, 80.0 / 15.0), (120, 5.0)] {
            assert_eq!(
                health.report(at(0), at(now))[ADAPTER].advertisements_per_sec,
                rate,
                "at {now}"
            );
        }
    }

    #[test]
    fn blind_periods_are_bounded() {
        let health = Health::new();
        for time in 0..200 {
            health.blind(ADAPTER, at(time * 2), "gone");
            health.listening(ADAPTER, at(time * 2 + 1));
        }
        let blind = &health.report(at(0), at(1000))[ADAPTER].blind;
        assert_eq!((blind.len(), blind[63].from), (MAX_BLIND_PERIODS, at(398)));
    }
}
