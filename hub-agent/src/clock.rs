//! The time on a machine whose clock may be wrong: many hubs have a clock without a battery and
//! start in 1970. Time is the kernel's time since boot, which never jumps, plus an offset: the
//! machine's own, or the service's where the two disagree. Never sets the machine's clock.

use std::sync::Mutex;
use std::sync::PoisonError;

use hub_protocol::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use uuid::Uuid;

/// 2026-01-01: no agent of this version ran before, so a clock that shows an earlier time was never
/// set.
const EARLIEST: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);

/// The service's time comes from a header in whole seconds and was delayed on its way: a smaller
/// difference means nothing.
const TOLERANCE_MICROS: i64 = 5_000_000;

/// The agent's one source of time.
#[derive(Debug)]
pub struct Clock {
    boot: Uuid,
    /// The service's time at this machine's boot, once an answer has shown it.
    service_offset_micros: Mutex<Option<i64>>,
}

/// The difference between the time of day and the time since boot, and whether it is known to be
/// right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    pub micros: i64,
    pub known: bool,
}

impl Clock {
    pub fn new() -> Self {
        Self {
            boot: boot_id(),
            service_offset_micros: Mutex::new(None),
        }
    }

    /// The kernel's id of this boot.
    pub fn boot(&self) -> Uuid {
        self.boot
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_micros(since_boot_micros().saturating_add(self.offset().micros))
    }

    pub fn offset(&self) -> Offset {
        let service = *self
            .service_offset_micros
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        choose(machine_offset_micros(), since_boot_micros(), service)
    }

    /// Notes the time in an answer of the service.
    pub fn learn_service_time(&self, time: Timestamp) {
        // The service's own clock may be wrong too.
        if !is_plausible(time) {
            return;
        }
        // Half a second: the average of what the header's whole seconds omit.
        let offset = time
            .plus_micros(500_000)
            .as_micros()
            .saturating_sub(since_boot_micros());
        let before = self.offset();
        *self
            .service_offset_micros
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(offset);
        let after = self.offset();
        if !before.known || (after.micros - before.micros).abs() > TOLERANCE_MICROS {
            tracing::info!(
                by_secs = (after.micros - before.micros) / 1_000_000,
                "this machine's clock differs from the service's; times are corrected by this much"
            );
        }
    }
}

/// The machine's own clock is used while it agrees with the service's: it is more precise.
fn choose(machine_micros: i64, since_boot_micros: i64, service_micros: Option<i64>) -> Offset {
    match service_micros {
        Some(service) if (service - machine_micros).abs() > TOLERANCE_MICROS => Offset {
            micros: service,
            known: true,
        },
        Some(_) => Offset {
            micros: machine_micros,
            known: true,
        },
        None => {
            let now = Timestamp::from_micros(machine_micros.saturating_add(since_boot_micros));
            Offset {
                micros: machine_micros,
                known: is_plausible(now),
            }
        }
    }
}

/// Whether a clock that showed this time had been set.
pub fn is_plausible(time: Timestamp) -> bool {
    time >= EARLIEST
}

/// Time since boot, counted through suspend.
pub fn since_boot_micros() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec
        .saturating_mul(1_000_000)
        .saturating_add(time.tv_nsec / 1_000)
}

/// The machine's own time, right or wrong. Records have it until the spool corrects them.
pub fn machine_now() -> Timestamp {
    Timestamp::from_micros(since_boot_micros().saturating_add(machine_offset_micros()))
}

/// The machine's own time at boot, by its clock as it is now.
pub fn machine_offset_micros() -> i64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec
        .saturating_mul(1_000_000)
        .saturating_add(time.tv_nsec / 1_000)
        .saturating_sub(since_boot_micros())
}

fn boot_id() -> Uuid {
    // Without /proc each start counts as a boot of its own. That is safe: no time of another start
    // is trusted.
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or_else(Uuid::new_v4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn a_clock_of_1970_is_not_known_until_the_service_has_answered() {
        assert_eq!(
            choose(0, HOUR, None),
            Offset {
                micros: 0,
                known: false
            }
        );
        let service = EARLIEST.as_micros() + 10 * HOUR;
        assert_eq!(
            choose(0, HOUR, Some(service)),
            Offset {
                micros: service,
                known: true
            }
        );
    }

    #[test]
    fn an_implausible_time_of_the_service_is_ignored() {
        let clock = Clock::new();
        let before = clock.offset();
        clock.learn_service_time(Timestamp::from_micros(0));
        assert!((clock.offset().micros - before.micros).abs() < 1_000_000);
        clock.learn_service_time(machine_now().plus_secs(86_400));
        assert!(
            clock.offset().known && (clock.offset().micros - before.micros) / 1_000_000 > 86_000
        );
    }

    #[test]
    fn a_small_difference_keeps_the_machine_clock() {
        let machine = EARLIEST.as_micros() + HOUR;
        assert_eq!(
            choose(machine, 0, Some(machine + 2_000_000)).micros,
            machine
        );
        assert_eq!(
            choose(machine, 0, Some(machine + 60_000_000)).micros,
            machine + 60_000_000
        );
    }
}
