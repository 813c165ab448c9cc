//! Maintenance windows, by the time of day at the hub. Reads the system's time zone, and nothing
//! else.

use std::time::Duration;

use chrono::{DateTime, Local, TimeZone, Timelike, Utc};
use hub_protocol::Timestamp;
use hub_protocol::job::MaintenanceWindow;

use crate::clock::Clock;

/// How often the clock is compared with a window or a deadline.
pub const CHECK_EVERY: Duration = Duration::from_secs(10);

/// The time is known soon after the start.
const CLOCK_EVERY: Duration = Duration::from_secs(1);

/// Whether a change is allowed now; `None` for a malformed window. No window is always open.
pub fn is_open(window: Option<&MaintenanceWindow>, now: Timestamp) -> Option<bool> {
    is_open_in(window, now, &Local)
}

fn is_open_in<Z: TimeZone>(
    window: Option<&MaintenanceWindow>,
    now: Timestamp,
    zone: &Z,
) -> Option<bool> {
    let Some(window) = window else {
        return Some(true);
    };
    let local = DateTime::<Utc>::from_timestamp_micros(now.as_micros())?.with_timezone(zone);
    window.is_open(local.hour() * 60 + local.minute())
}

/// Waits until one of these windows is open, by a clock that is known to be right.
pub async fn until_open(clock: &Clock, windows: &[MaintenanceWindow]) {
    if windows.is_empty() {
        return std::future::pending().await;
    }
    while !clock.offset().known {
        tokio::time::sleep(CLOCK_EVERY).await;
    }
    while !windows
        .iter()
        .any(|window| is_open(Some(window), clock.now()) == Some(true))
    {
        tokio::time::sleep(CHECK_EVERY).await;
    }
}

/// Waits until this time, by a clock that is known to be right.
pub async fn until(clock: &Clock, time: Timestamp) {
    while !clock.offset().known || clock.now() < time {
        let left_secs = u64::try_from(time.as_secs() - clock.now().as_secs()).unwrap_or(0);
        tokio::time::sleep(Duration::from_secs(left_secs.max(1)).min(CHECK_EVERY)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_in_the_hubs_time_zone() {
        let window = MaintenanceWindow {
            start: "02:00".into(),
            end: "04:00".into(),
        };
        let seoul = chrono::FixedOffset::east_opt(9 * 3_600).unwrap();
        let open = |time: &str| is_open_in(Some(&window), time.parse().unwrap(), &seoul);
        assert_eq!(open("2026-11-21T16:59:59Z"), Some(false));
        assert_eq!(open("2026-11-21T17:00:00Z"), Some(true));
        assert_eq!(open("2026-11-21T19:00:00Z"), Some(false));
        assert_eq!(open("2026-11-21T03:00:00Z"), Some(false), "not by UTC");
        assert_eq!(
            is_open(None, "2026-11-21T03:00:00Z".parse().unwrap()),
            Some(true)
        );
        let malformed = MaintenanceWindow {
            start: "2".into(),
            end: "4".into(),
        };
        assert_eq!(
            is_open(Some(&malformed), "2026-11-21T03:00:00Z".parse().unwrap()),
            None
        );
    }
}
