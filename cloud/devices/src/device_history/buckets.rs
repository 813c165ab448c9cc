//! The values of a device in buckets of equal length, which begin at multiples of it since 1970.

use std::collections::BTreeMap;

use hub_base::db::{Conn, Direction};
use hub_base::error::{Error, Result};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::hour::Stat;
use super::reader::{Device, Hours, Period};
use super::store::Part;
use super::{DAY_SECS, HOUR_SECS, MAX_EVENTS};
use crate::ble::{Reception, split_key, unit_of};

const LEAST_SECS: i64 = 10;
/// Buckets of one quantity.
pub const MAX_BUCKETS: i64 = 5000;
/// Buckets of all quantities.
const MAX_ITEMS: usize = 50_000;
/// The buckets of a period without a beginning, which covers a day at least.
const USUAL_BUCKETS: i64 = 500;

/// The values of a quantity within a bucket.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SensorBucketResponse {
    /// When the bucket begins; the first one not before `from`.
    pub from: Timestamp,
    /// When it ends, not included; the last one not after `to`.
    pub to: Timestamp,
    /// A quantity of `GET /public/quantities`, or `quantity[index]` of one that occurs more than
    /// once.
    pub quantity: String,
    /// The unit of the quantity in SenML (RFC 8428); null for what has none.
    pub unit: Option<&'static str>,
    /// The number of values.
    #[schemars(range(min = 1))]
    pub count: i64,
    /// The least value; null of what is no number.
    pub min: Option<f64>,
    /// The greatest value; null of what is no number.
    pub max: Option<f64>,
    /// The mean of the values; null of what is no number.
    pub mean: Option<f64>,
    /// The value that was observed last: a number, a text or a boolean.
    #[schemars(extend("type" = ["number", "string", "boolean"]))]
    pub last: Value,
}

/// The length of a bucket in seconds: `10s`, `5m`, `1h` or `1d`.
pub fn length(text: &str) -> Result<i64> {
    let refused = || {
        Error::field(
            "every",
            "must be from 10s to 1d, such as `30s`, `5m`, `1h` or `1d`",
        )
    };
    let (at, unit) = text.char_indices().next_back().ok_or_else(refused)?;
    let unit_secs = match unit {
        's' => 1,
        'm' => 60,
        'h' => HOUR_SECS,
        'd' => DAY_SECS,
        _ => return Err(refused()),
    };
    let digits = text
        .get(..at)
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let number: i64 = digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(refused)?;
    let secs = number
        .checked_mul(unit_secs)
        .filter(|secs| (LEAST_SECS..=DAY_SECS).contains(secs));
    secs.ok_or_else(refused)
}

/// The period that is asked for; one without a beginning ends with the last buckets.
pub fn period(
    every: i64,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    now: Timestamp,
) -> Result<Period> {
    let to = to.unwrap_or(now);
    let usual = (USUAL_BUCKETS * every)
        .max(DAY_SECS)
        .min((MAX_BUCKETS - 1) * every);
    let from = from.unwrap_or_else(|| to.plus_secs(-usual));
    let last = to.plus_micros(-1).as_secs().div_euclid(every);
    if last - from.as_secs().div_euclid(every) >= MAX_BUCKETS {
        let message = format!(
            "there may be at most {MAX_BUCKETS} buckets; ask for longer ones, or for a shorter period"
        );
        return Err(Error::field("every", message));
    }
    Ok(Period {
        from,
        to: to.max(from),
    })
}

/// The buckets that have values, oldest first.
pub async fn read(
    conn: &mut Conn,
    device: Device,
    period: Period,
    every: i64,
    quantity: Option<&str>,
) -> Result<Vec<SensorBucketResponse>> {
    let is_coarse = every % HOUR_SECS == 0;
    let hours = Hours::read(
        conn,
        device,
        period,
        if is_coarse { Part::Measured } else { Part::Ids },
    )
    .await?;
    let (first, end) = period.whole_hours();
    let is_whole = |hour: i64| is_coarse && first <= hour && hour < end;
    let slot = |secs: i64| secs.div_euclid(every);
    let is_wanted =
        |key: &str| quantity.is_none_or(|wanted| key == wanted || split_key(key).0 == wanted);

    let mut buckets: BTreeMap<(i64, String), Stat> = BTreeMap::new();
    let mut add = |slot: i64, key: String, stat: Stat| match buckets.entry((slot, key)) {
        std::collections::btree_map::Entry::Occupied(mut known) => known.get_mut().join(stat),
        std::collections::btree_map::Entry::Vacant(place) => {
            place.insert(stat);
        }
    };
    for (start, hour) in hours.hours.iter().filter(|(start, _)| is_whole(*start)) {
        for (key, stat) in hour.quantities.iter().filter(|(key, _)| is_wanted(key)) {
            add(slot(*start), key.clone(), stat.clone());
        }
    }
    let take = |reception: Reception| {
        if reception.is_repeat {
            return;
        }
        let at = reception.observed_at;
        for (key, value) in reception.values.iter().filter(|(key, _)| is_wanted(key)) {
            add(slot(at.as_secs()), key.clone(), Stat::new(value, at));
        }
    };
    let by_event = |hour: i64| !is_whole(hour);
    if !hours
        .each(conn, by_event, Direction::Ascending, MAX_EVENTS, take)
        .await?
    {
        let message = format!(
            "more than {MAX_EVENTS} events would have to be read; ask for buckets of `1h` or more, or for a shorter period"
        );
        return Err(Error::field("every", message));
    }
    if buckets.len() > MAX_ITEMS {
        let message = format!(
            "there are more than {MAX_ITEMS} buckets of all quantities; ask for one quantity"
        );
        return Err(Error::field("quantity", message));
    }
    let bucket = |((slot, quantity), stat): ((i64, String), Stat)| {
        let start = Timestamp::from_micros(slot.saturating_mul(every).saturating_mul(1_000_000));
        SensorBucketResponse {
            from: start.max(period.from),
            to: start.plus_secs(every).min(period.to),
            unit: unit_of(&quantity),
            count: stat.count,
            min: stat.numbers.map(|numbers| numbers.1),
            max: stat.numbers.map(|numbers| numbers.2),
            mean: stat.mean(),
            last: stat.last,
            quantity,
        }
    };
    Ok(buckets.into_iter().map(bucket).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read() {
        for (text, secs) in [
            ("10s", 10),
            ("90s", 90),
            ("5m", 300),
            ("1h", 3600),
            ("24h", 86_400),
            ("1d", 86_400),
        ] {
            assert_eq!(length(text).ok(), Some(secs), "{text}");
        }
        for text in [
            "",
            "s",
            "5",
            "9s",
            "25h",
            "2d",
            "-5m",
            "+5m",
            "5 m",
            "5M",
            "1.5h",
            "99999999999999999999m",
            "5é",
        ] {
            assert!(length(text).is_err(), "{text}");
        }
    }

    #[test]
    fn periods_are_bounded() {
        let at = |secs: i64| Timestamp::from_micros(secs * 1_000_000);
        let now = at(2_000_000_000);
        let usual = |every| {
            now.as_secs()
                - period(every, None, None, now)
                    .expect("a period")
                    .from
                    .as_secs()
        };
        assert_eq!(
            [10, 60, 300, 3600, 86_400].map(usual),
            [49_990, 86_400, 150_000, 1_800_000, 43_200_000]
        );
        assert!(period(10, Some(at(1_999_950_000)), None, now).is_ok());
        assert!(period(10, Some(at(1_999_949_989)), None, now).is_err());
        let turned = period(10, Some(now), Some(at(0)), now).expect("a period");
        assert_eq!((turned.from, turned.to), (now, now), "nothing");
    }
}
