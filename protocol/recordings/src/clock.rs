//! The time since the first report, from times of a clock that somebody may have set meanwhile.

use hub_protocol::Timestamp;

/// Receivers may report in a slightly different order.
const BACK_US: i64 = 1_000_000;
/// A longer pause is a step of the clock.
const FORWARD_US: i64 = 86_400_000_000;
/// 2010-01-01, the year of the first specification of Bluetooth LE. A clock that shows an earlier
/// time was never set.
const EARLIEST_US: i64 = 1_262_304_000_000_000;

#[derive(Debug, Default)]
pub struct Clock {
    /// The time, in microseconds since 1970, that counts as the beginning.
    base_us: Option<i64>,
    last_us: i64,
}

impl Clock {
    /// The microseconds since the first report. A step of the clock takes no time.
    pub fn elapsed_us(&mut self, unix_us: Option<i64>) -> u64 {
        if let Some(unix_us) = unix_us {
            let base_us = *self.base_us.get_or_insert(unix_us);
            let elapsed_us = unix_us.saturating_sub(base_us);
            let pause_us = elapsed_us.saturating_sub(self.last_us);
            if (-BACK_US..=FORWARD_US).contains(&pause_us) {
                self.last_us = self.last_us.max(elapsed_us);
            } else {
                self.base_us = Some(unix_us.saturating_sub(self.last_us));
            }
        }
        self.last_us.unsigned_abs()
    }
}

/// The time of day, if the clock was set.
pub fn time_of_day(unix_us: Option<i64>) -> Option<Timestamp> {
    unix_us
        .filter(|unix_us| *unix_us >= EARLIEST_US)
        .map(Timestamp::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_the_clock_take_no_time() {
        let mut clock = Clock::default();
        let elapsed = [
            Some(5_000_000),
            Some(5_250_000),
            Some(5_200_000),
            None,
            Some(1_700_000_000_000_000),
            Some(1_700_000_000_500_000),
            Some(1_000),
            Some(2_000),
            Some(i64::MAX),
            Some(i64::MIN),
        ]
        .map(|unix_us| clock.elapsed_us(unix_us));
        let expected = [
            0, 250_000, 250_000, 250_000, 250_000, 750_000, 750_000, 751_000, 751_000, 751_000,
        ];
        assert_eq!(elapsed, expected);
    }

    #[test]
    fn a_clock_that_was_never_set_tells_no_time_of_day() {
        assert_eq!(time_of_day(Some(12_000_000)), None);
        let set = time_of_day(Some(1_790_000_000_000_000)).map(|at| at.to_string());
        assert_eq!(set.as_deref(), Some("2026-09-21T14:13:20.000000Z"));
    }
}
