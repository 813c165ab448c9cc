use hub_protocol::Timestamp;

use super::Clock;
use crate::feeds::Exploited;

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

#[test]
fn clock_begins_when_both_are_known() {
    let exploited = |added_on: &str| Exploited {
        vulnerability_id: "CVE-2024-3094".to_owned(),
        added_on: added_on.to_owned(),
        due_on: None,
        ransomware: false,
    };
    let seen = at("2026-03-10T08:00:00Z");
    let earlier = Clock::new(seen, Some(&exploited("2026-03-01")));
    assert_eq!(earlier.aware_at, seen);
    let later = Clock::new(seen, Some(&exploited("2026-03-12")));
    assert_eq!(later.aware_at, at("2026-03-12T00:00:00Z"));
    assert_eq!(later.early_warning_at, at("2026-03-13T00:00:00Z"));
    assert_eq!(later.notification_at, at("2026-03-15T00:00:00Z"));
    assert_eq!(later.final_report_at, at("2026-03-26T00:00:00Z"));
    assert_eq!(Clock::new(seen, Some(&exploited("soon"))).aware_at, seen);
}
