//! Counts the token refreshes of each hub. They are limited by an allowance that refills evenly, so
//! that a hub whose copy uses it up waits for seconds and not for the next hour. The audit log has
//! an entry for the first of a day (UTC) and for the first from another address than before. The
//! other refreshes of the day are stated in one entry when the day is over: how many, the first and
//! the last.

use hub_base::db::{Conn, Db, Tx};
use hub_base::error::{Error, Result};
use hub_core::audit::{self, Actor, Audit, Author};
use hub_core::config::Config;
use hub_core::http::client_address;
use hub_identity::authn::hub::Hub;
use hub_protocol::{HubUuid, Timestamp};
use serde_json::json;

use super::store::refreshes::{self as store, Day};

const HOUR_SECS: i64 = 3600;
const MICROS: i64 = 1_000_000;
/// The most refreshes of a hub in an hour, for any lifetime of its token.
const PER_HOUR: i64 = 60;
/// The same for each lifetime of a token that fits into an hour.
const PER_LIFETIME: i64 = 4;
/// Entries of a hub on one day. Refreshes from further addresses are only counted.
const ENTRIES: i64 = 16;

/// The refreshes of a hub's token that are allowed in an hour.
pub fn per_hour(config: &Config) -> i64 {
    let lifetime_secs = i64::try_from(config.hub_token_lifetime.as_secs())
        .unwrap_or(i64::MAX)
        .max(1);
    PER_HOUR + PER_LIFETIME * (HOUR_SECS / lifetime_secs)
}

/// Refuses with 429 a hub that has used up its allowance. Costs no write.
pub async fn require_allowance(
    conn: &mut Conn,
    hub_uuid: HubUuid,
    per_hour: i64,
    now: Timestamp,
) -> Result<()> {
    match store::day(conn, hub_uuid, day_of(now)).await? {
        Some(day) => day.require_allowance(per_hour, now),
        None => Ok(()),
    }
}

/// Counts a refresh, or refuses it. Returns whether it gets an audit entry of its own. The caller
/// has locked the hub.
pub async fn count(tx: &mut Tx, hub: &Hub, per_hour: i64, now: Timestamp) -> Result<bool> {
    let before = store::day(tx, hub.hub_uuid, day_of(now)).await?;
    if let Some(day) = &before {
        day.require_allowance(per_hour, now)?;
    }
    let address = client_address::current().map(|address| address.to_string());
    let (day, has_entry) = Day::after(before, address, per_hour, now);
    store::put(tx, hub, day_of(now), &day, now).await?;
    Ok(has_entry)
}

/// Writes the entries of up to `limit` days that are over and returns of how many.
pub async fn close_refreshes(db: &Db, now: Timestamp, limit: i64) -> Result<u64> {
    let mut tx = db.begin().await?;
    let ended = store::ended(&mut tx, day_of(now), limit).await?;
    for ended in &ended {
        if ended.refreshes > ended.entries {
            let author = Author {
                tenant_uuid: Some(ended.tenant_uuid),
                actor: Actor::Hub(ended.hub_uuid),
            };
            let detail = json!({"refreshes": ended.refreshes, "firstAt": ended.first_at, "lastAt": ended.last_at});
            audit::insert(
                &mut tx,
                Audit::new(author, "hub.refresh", ended.hub_uuid, now).with(detail),
            )
            .await?;
        }
        store::delete(&mut tx, ended.hub_uuid, ended.day).await?;
    }
    tx.commit_unaudited("states what hubs did, in entries of theirs")
        .await?;
    Ok(ended.len() as u64)
}

impl Day {
    fn require_allowance(&self, per_hour: i64, now: Timestamp) -> Result<()> {
        // With one refresh more, what is used has to fit into an hour.
        let used = self.used_until.as_micros() - now.as_micros() + refill_micros(per_hour);
        let wait_micros = used - HOUR_SECS * MICROS;
        if wait_micros <= 0 {
            return Ok(());
        }
        let wait_secs = wait_micros.unsigned_abs().div_ceil(MICROS.unsigned_abs());
        let message = format!(
            "a hub may refresh its token {per_hour} times an hour; the next refresh is allowed in {wait_secs} s"
        );
        Err(Error::too_many_requests(message, wait_secs))
    }

    /// The day with one refresh more, and whether that gets an entry.
    fn after(
        before: Option<Self>,
        address: Option<String>,
        per_hour: i64,
        now: Timestamp,
    ) -> (Self, bool) {
        let refill_micros = refill_micros(per_hour);
        let Some(before) = before else {
            let used_until = now.plus_micros(refill_micros);
            return (
                Self {
                    refreshes: 1,
                    entries: 1,
                    address,
                    used_until,
                },
                true,
            );
        };
        let has_entry = before.address != address && before.entries < ENTRIES;
        let day = Self {
            refreshes: before.refreshes + 1,
            entries: before.entries + i64::from(has_entry),
            address: if has_entry { address } else { before.address },
            used_until: before.used_until.max(now).plus_micros(refill_micros),
        };
        (day, has_entry)
    }
}

/// The time in which one refresh is allowed again.
const fn refill_micros(per_hour: i64) -> i64 {
    HOUR_SECS * MICROS / per_hour
}

/// The day, counted from 1970.
const fn day_of(now: Timestamp) -> i64 {
    now.as_secs().div_euclid(24 * HOUR_SECS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_tell_who_and_when_and_stay_few() {
        let now = Timestamp::from_micros(0);
        let from =
            |before, address: &str, now| Day::after(before, Some(address.to_owned()), 60, now);
        let (day, first) = from(None, "a", now);
        let (day, again) = from(Some(day), "a", now);
        let (mut day, elsewhere) = from(Some(day), "b", now);
        assert_eq!((first, again, elsewhere), (true, false, true));
        for number in 0..100 {
            day = from(Some(day), &number.to_string(), now.plus_secs(number)).0;
        }
        assert_eq!((day.refreshes, day.entries), (103, ENTRIES));
    }

    #[test]
    fn an_allowance_refills_evenly() {
        let start = Timestamp::from_micros(0);
        let refresh = |day: &mut Option<Day>, at: Timestamp| {
            if let Some(day) = day {
                day.require_allowance(60, at)?;
            }
            *day = Some(Day::after(day.take(), None, 60, at).0);
            Ok::<(), Error>(())
        };
        let mut day = None;
        for number in 0..60 {
            refresh(&mut day, start).unwrap_or_else(|error| panic!("{number}: {error}"));
        }
        let refused = refresh(&mut day, start.plus_secs(1)).expect_err("all are used");
        assert!(refused.to_string().contains("in 59 s"), "{refused}");
        // One a minute goes on, whatever was used before.
        for minute in 1..=10 {
            let at = start.plus_secs(60 * minute);
            refresh(&mut day, at).unwrap_or_else(|error| panic!("{minute}: {error}"));
            refresh(&mut day, at).expect_err("one a minute");
        }
        let rested = start.plus_secs(10 * 60 + HOUR_SECS);
        for number in 0..60 {
            refresh(&mut day, rested).unwrap_or_else(|error| panic!("{number}: {error}"));
        }
    }
}
