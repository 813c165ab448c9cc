//! What is not supported for much longer: device models, and releases of apps and of the agent that
//! hubs run. Each has an incident for each of its phases, so that each phase is told of once.

use hub_base::db::Conn;
use hub_base::error::Result;
use hub_devices::device_catalog;
use hub_fleet::releases;
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;

use super::conditions::{Found, MAX_FOUND};
use super::words::name_of;

const DAY_SECS: i64 = 24 * 3600;
/// The days before the end at which a phase begins.
const EARLY_DAYS: i64 = 90;
const LATE_DAYS: i64 = 30;
/// For how many days it is said that support has ended.
const ENDED_DAYS: i64 = 30;
/// The suffix of the subjects of what has ended.
const ENDED: &str = ":ended";

/// Whether an incident is that support has ended.
pub fn has_ended(subject: &str) -> bool {
    subject.ends_with(ENDED)
}

/// The device models and releases whose support ends soon, or has ended lately.
pub async fn ending(conn: &mut Conn, scope: &Scope, now: Timestamp) -> Result<Vec<Found>> {
    let (from, to) = (day_in(now, -ENDED_DAYS), day_in(now, EARLY_DAYS));
    let models = device_catalog::support_ending(conn, scope, &from, &to, MAX_FOUND).await?;
    let mut found = Vec::new();
    for (device_uuid, name, day) in models {
        found.push(of(&format!("model:{device_uuid}"), &name, &day, now));
    }
    let most = usize::try_from(MAX_FOUND).unwrap_or(usize::MAX);
    let of_apps = releases::support_ending(conn, scope, &from, &to, MAX_FOUND).await?;
    let of_agent = releases::agent_support_ending(conn, scope, &from, &to, MAX_FOUND).await?;
    for (release_uuid, product, version, day) in of_apps.into_iter().chain(of_agent) {
        let name = format!("{product} {version}");
        found.push(of(&format!("release:{release_uuid}"), &name, &day, now));
    }
    found.truncate(most);
    Ok(found)
}

fn of(subject: &str, name: &str, day: &str, now: Timestamp) -> Found {
    let phase = phase(day, now);
    let detail = match has_ended(phase) {
        true => format!("The last day of its support was {day}."),
        false => format!("The last day of its support is {day}."),
    };
    Found {
        subject: format!("{subject}{phase}"),
        name: name_of(Some(name), subject),
        detail,
        hub_uuid: None,
        device_instance_id: None,
        since: now,
    }
}

/// The suffix of the subject: which phase it is in.
fn phase(day: &str, now: Timestamp) -> &'static str {
    if day < day_in(now, 0).as_str() {
        ENDED
    } else if day <= day_in(now, LATE_DAYS).as_str() {
        ":late"
    } else {
        ":early"
    }
}

/// The day of a time, some days later.
fn day_in(now: Timestamp, days: i64) -> String {
    let day = now.plus_secs(days * DAY_SECS).to_string();
    day.chars().take(10).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn support_lasts_through_its_last_day() {
        let now: Timestamp = "2026-01-31T23:59:00Z".parse().expect("a time");
        for (day, expected) in [
            ("2026-01-30", ENDED),
            ("2026-01-31", ":late"),
            ("2026-03-02", ":late"),
            ("2026-03-03", ":early"),
        ] {
            assert_eq!(phase(day, now), expected, "{day}");
        }
    }
}
