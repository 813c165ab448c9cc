//! Maintenance windows, by the time of day where the hub stands. Reads the system's time zone and nothing else.

use chrono::{DateTime, Local, TimeZone, Timelike, Utc};
use hub_protocol::Timestamp;
use hub_protocol::job::MaintenanceWindow;

/// Whether a change may be made now; `None` when the window makes no sense. No window is always open.
pub fn is_open(window: Option<&MaintenanceWindow>, now: Timestamp) -> Option<bool> {
    is_open_in(window, now, &Local)
}

fn is_open_in<Z: TimeZone>(window: Option<&MaintenanceWindow>, now: Timestamp, zone: &Z) -> Option<bool> {
    let Some(window) = window else { return Some(true) };
    let local = DateTime::<Utc>::from_timestamp_micros(now.as_micros())?.with_timezone(zone);
    window.is_open(local.hour() * 60 + local.minute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_of_the_hubs_own_day() {
        let window = MaintenanceWindow { start: "02:00".into(), end: "04:00".into() };
        let seoul = chrono::FixedOffset::east_opt(9 * 3_600).unwrap();
        let open = |time: &str| is_open_in(Some(&window), time.parse().unwrap(), &seoul);
        assert_eq!(open("2026-11-21T16:59:59Z"), Some(false));
        assert_eq!(open("2026-11-21T17:00:00Z"), Some(true));
        assert_eq!(open("2026-11-21T19:00:00Z"), Some(false));
        assert_eq!(open("2026-11-21T03:00:00Z"), Some(false), "not by UTC");
        assert_eq!(is_open(None, "2026-11-21T03:00:00Z".parse().unwrap()), Some(true));
        let malformed = MaintenanceWindow { start: "2".into(), end: "4".into() };
        assert_eq!(is_open(Some(&malformed), "2026-11-21T03:00:00Z".parse().unwrap()), None);
    }
}
