//! The time on a machine whose clock may be wrong: many hubs have a clock without a battery and
//! start in 1970. Time is the kernel's time since boot, which never jumps, plus an offset: the
//! machine's own, or the service's where the two disagree. Never sets the machine's clock.
//!
//! The last time that is known to have passed is kept on disk. Certificates are never judged by an
//! earlier time: a hub without a battery for its clock gets in again, and an old certificate does
//! not become valid with it.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hub_protocol::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;
use uuid::Uuid;

use crate::identity::StateDir;

/// 2026-01-01: no agent of this version ran before, so a clock that shows an earlier time was never
/// set.
const EARLIEST: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);

/// A smaller difference between this machine's clock and the service's means nothing.
const TOLERANCE_MICROS: i64 = 5_000_000;
/// What the service's time is uncertain by at least: it comes from a header in whole seconds.
const HALF_SECOND_MICROS: i64 = 500_000;
/// The time in which a crystal may be wrong by one unit of it: 100 parts in a million.
const DRIFT: i64 = 10_000;

/// Readings of two clocks at most, and how long a fast one takes.
const READINGS: usize = 4;
const FAST_MICROS: i64 = 1_000;

/// The file with the last known time, in seconds since 1970.
const KNOWN_TIME_FILE: &str = "known-time";

/// How often the last known time is written, and how often it is looked at.
const SAVE_EVERY_SECS: i64 = 3_600;
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// The agent's one source of time.
#[derive(Debug)]
pub struct Clock {
    boot: Uuid,
    /// The service's time, once an answer has shown it.
    service: Mutex<Option<Shown>>,
    /// This time has passed.
    known_micros: AtomicI64,
    /// The end of the certificate that was accepted last. A service whose clock is wrong must not
    /// make a hub believe that this time has passed.
    accepted_until_micros: AtomicI64,
}

/// The difference between the time of day and the time since boot, and whether it is known to be
/// right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    pub micros: i64,
    pub known: bool,
}

/// The service's time, as an answer has shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shown {
    /// The time at this machine's boot.
    offset_micros: i64,
    /// What it may be wrong by: an answer was on its way for as long as nobody knows.
    uncertain_micros: i64,
    /// When it came, since boot.
    at_micros: i64,
}

impl Shown {
    /// Between these two times since boot the service's clock showed this second.
    fn between(time: Timestamp, asked_at: i64, answered_at: i64) -> Self {
        let half = answered_at.saturating_sub(asked_at).max(0) / 2;
        let time = time.as_micros().saturating_add(HALF_SECOND_MICROS);
        Self {
            offset_micros: time.saturating_sub(answered_at.saturating_sub(half)),
            uncertain_micros: HALF_SECOND_MICROS.saturating_add(half),
            at_micros: answered_at,
        }
    }

    /// Whether this one is to be believed, after another one. One that was slow says less, unless
    /// both cannot be true.
    fn replaces(&self, before: &Self) -> bool {
        let age = self.at_micros.saturating_sub(before.at_micros).max(0);
        let uncertain = before.uncertain_micros.saturating_add(age / DRIFT);
        let apart = (self.offset_micros - before.offset_micros).abs();
        self.uncertain_micros <= uncertain
            || apart > self.uncertain_micros.saturating_add(uncertain)
    }
}

impl Clock {
    /// A clock that knows nothing.
    #[cfg(test)]
    pub fn new() -> Self {
        Self::knowing(built_at())
    }

    /// The clock of an agent with this state directory.
    pub fn load(state_dir: &Path) -> Self {
        let known = std::fs::read_to_string(state_dir.join(KNOWN_TIME_FILE))
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .map(|secs: i64| Timestamp::from_micros(secs.saturating_mul(1_000_000)));
        Self::knowing(known.map_or(built_at(), |known| known.max(built_at())))
    }

    fn knowing(known: Timestamp) -> Self {
        Self {
            boot: boot_id(),
            service: Mutex::new(None),
            known_micros: AtomicI64::new(known.as_micros()),
            accepted_until_micros: AtomicI64::new(i64::MAX),
        }
    }

    /// The last time that is known to have passed.
    pub fn known(&self) -> Timestamp {
        Timestamp::from_micros(self.known_micros.load(Ordering::Relaxed))
    }

    /// The time by which certificates are judged.
    pub fn for_certificates(&self) -> Timestamp {
        self.now().max(self.known())
    }

    /// Notes the end of a certificate that was accepted.
    pub fn accept_until(&self, not_after: Timestamp) {
        self.accepted_until_micros
            .store(not_after.as_micros(), Ordering::Relaxed);
    }

    /// Writes the last known time to disk, soon after the service has first shown it and then now
    /// and then, until it is dropped.
    pub async fn keep_known(&self, state_dir: &StateDir) {
        let mut saved_secs = None;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Err(error) = self.save_known(state_dir, &mut saved_secs).await {
                tracing::debug!(%error, "the known time cannot be written");
            }
        }
    }

    async fn save_known(
        &self,
        state_dir: &StateDir,
        saved_secs: &mut Option<i64>,
    ) -> std::io::Result<()> {
        let has_answer = self.service().is_some();
        let known_secs = self.known().as_secs();
        if has_answer && saved_secs.is_none_or(|saved| known_secs - saved >= SAVE_EVERY_SECS) {
            let text = known_secs.to_string().into_bytes();
            state_dir.replace(KNOWN_TIME_FILE, text).await?;
            *saved_secs = Some(known_secs);
        }
        Ok(())
    }

    /// The kernel's id of this boot.
    pub fn boot(&self) -> Uuid {
        self.boot
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_micros(since_boot_micros().saturating_add(self.offset().micros))
    }

    pub fn offset(&self) -> Offset {
        choose(
            machine_offset_micros(),
            since_boot_micros(),
            self.service(),
            self.known(),
        )
    }

    fn service(&self) -> Option<Shown> {
        *self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the time in an answer of the service, and when the request was sent and its answer
    /// came, in microseconds since boot.
    pub fn learn_service_time(&self, time: Timestamp, asked_at: i64, answered_at: i64) {
        // The service's own clock may be wrong too.
        if !is_plausible(time) {
            return;
        }
        let accepted_until = self.accepted_until_micros.load(Ordering::Relaxed);
        self.known_micros
            .fetch_max(time.as_micros().min(accepted_until), Ordering::Relaxed);
        let shown = Shown::between(time, asked_at, answered_at);
        let before = self.offset();
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        if service.is_none_or(|known| shown.replaces(&known)) {
            *service = Some(shown);
        }
        drop(service);
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
fn choose(
    machine_micros: i64,
    since_boot_micros: i64,
    service: Option<Shown>,
    known: Timestamp,
) -> Offset {
    let differs = |service: &Shown| {
        let apart = service
            .offset_micros
            .saturating_sub(machine_micros)
            .saturating_abs();
        apart > service.uncertain_micros.saturating_add(TOLERANCE_MICROS)
    };
    match service {
        Some(service) if differs(&service) => Offset {
            micros: service.offset_micros,
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
                known: now >= known,
            }
        }
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let secs = u64::try_from(self.for_certificates().as_secs()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(secs)))
    }
}

/// The time at which this program was built, by its build script.
fn built_at() -> Timestamp {
    let secs: i64 = env!("BUILT_AT_SECS").parse().unwrap_or_default();
    Timestamp::from_micros(secs.saturating_mul(1_000_000)).max(EARLIEST)
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
    // Something may come in between the two clocks, such as another process or a suspend: of some
    // readings the fastest.
    let readings = std::iter::repeat_with(|| {
        let before = since_boot_micros();
        let time = clock_gettime(ClockId::Realtime);
        let took = since_boot_micros() - before;
        let time = time
            .tv_sec
            .saturating_mul(1_000_000)
            .saturating_add(time.tv_nsec / 1_000);
        (took, time.saturating_sub(before))
    });
    let mut best = (i64::MAX, 0);
    for reading in readings.take(READINGS) {
        best = best.min(reading);
        if best.0 < FAST_MICROS {
            break;
        }
    }
    best.1
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
    const SECOND: i64 = 1_000_000;

    const fn shown(offset_micros: i64) -> Shown {
        Shown {
            offset_micros,
            uncertain_micros: HALF_SECOND_MICROS,
            at_micros: 0,
        }
    }

    /// An answer that comes at once.
    fn learn(clock: &Clock, time: Timestamp) {
        let now = since_boot_micros();
        clock.learn_service_time(time, now, now);
    }

    #[test]
    fn a_clock_of_1970_is_not_known_until_the_service_has_answered() {
        assert_eq!(
            choose(0, HOUR, None, EARLIEST),
            Offset {
                micros: 0,
                known: false
            }
        );
        let service = EARLIEST.as_micros() + 10 * HOUR;
        assert_eq!(
            choose(0, HOUR, Some(shown(service)), EARLIEST),
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
        learn(&clock, Timestamp::from_micros(0));
        assert!((clock.offset().micros - before.micros).abs() < 1_000_000);
        learn(&clock, machine_now().plus_secs(86_400));
        assert!(
            clock.offset().known && (clock.offset().micros - before.micros) / 1_000_000 > 86_000
        );
    }

    #[test]
    fn an_answer_that_was_slow_does_not_move_the_clock() {
        let clock = Clock::new();
        let machine = clock.offset().micros;
        let is_machine = || (clock.offset().micros - machine).abs() < SECOND;
        // Sent by the service at once, and on its way for most of a minute.
        let (now, asked) = (since_boot_micros(), since_boot_micros() - 50 * SECOND);
        clock.learn_service_time(machine_now().plus_secs(-49), asked, now);
        assert!(clock.offset().known && is_machine());
        // The same after the service's time was known well.
        learn(&clock, machine_now());
        clock.learn_service_time(machine_now().plus_secs(-49), asked, now);
        assert!(is_machine());
        // Nor does the service answer a request that it held with a time from before.
        clock.learn_service_time(machine_now(), asked, now);
        assert!(is_machine());
        // What cannot be explained by that is believed.
        clock.learn_service_time(machine_now().plus_secs(-3600), asked, now);
        assert!((clock.offset().micros - machine + 3600 * SECOND).abs() < 60 * SECOND);
        learn(&clock, machine_now().plus_secs(-3600));
        assert!((clock.offset().micros - machine + 3600 * SECOND).abs() < 2 * SECOND);
    }

    #[test]
    fn a_good_time_is_replaced_when_it_is_old() {
        let good = shown(0);
        let slow = |hours: i64| Shown {
            offset_micros: SECOND,
            uncertain_micros: 3 * SECOND,
            at_micros: hours * HOUR,
        };
        assert!(!slow(1).replaces(&good));
        assert!(
            slow(12).replaces(&good),
            "a crystal may have lost four seconds"
        );
        assert!(good.replaces(&slow(0)));
    }

    #[test]
    fn a_small_difference_keeps_the_machine_clock() {
        let machine = EARLIEST.as_micros() + HOUR;
        assert_eq!(
            choose(machine, 0, Some(shown(machine + 2_000_000)), EARLIEST).micros,
            machine
        );
        assert_eq!(
            choose(machine, 0, Some(shown(machine + 60_000_000)), EARLIEST).micros,
            machine + 60_000_000
        );
    }

    #[test]
    fn a_clock_before_the_last_known_time_is_not_known_to_be_right() {
        let known = EARLIEST.plus_secs(86_400);
        let machine = EARLIEST.as_micros();
        assert!(!choose(machine, HOUR, None, known).known);
        assert!(choose(machine, 25 * HOUR, None, known).known);
    }

    #[tokio::test]
    async fn the_known_time_survives_a_restart_and_never_goes_back() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        let clock = Clock::load(dir.path());
        let later = machine_now().plus_secs(86_400);
        learn(&clock, later);
        let mut saved_secs = None;
        clock.save_known(&state, &mut saved_secs).await.unwrap();
        let restarted = Clock::load(dir.path());
        assert_eq!(restarted.known().as_secs(), later.as_secs());
        assert!(restarted.for_certificates() >= restarted.known());
        learn(&restarted, later.plus_secs(-40_000));
        assert_eq!(restarted.known().as_secs(), later.as_secs());
    }

    #[test]
    fn a_service_with_a_wrong_clock_makes_no_hub_refuse_its_certificate() {
        let clock = Clock::new();
        let end = machine_now().plus_secs(30 * 86_400);
        clock.accept_until(end);
        learn(&clock, end.plus_secs(400 * 86_400));
        assert_eq!(clock.known(), end);
    }
}
