//! The values of a device in buckets of equal length, which begin at multiples of it since 1970.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Formatter;

use hub_base::db::Direction;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
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
    core: &Core,
    device: Device,
    period: Period,
    every: i64,
    quantity: Option<&str>,
) -> Result<Vec<SensorBucketResponse>> {
    let is_coarse = every % HOUR_SECS == 0;
    let mut conn = core.db.read().await?;
    let (hours, measured) = match is_coarse {
        true => Hours::read_joined(&mut conn, device, period, every).await?,
        false => {
            let hours = Hours::read(&mut conn, device, period, Part::Ids).await?;
            (hours, Vec::new())
        }
    };
    drop(conn);
    let (first, end) = period.whole_hours();
    let is_whole = |hour: i64| is_coarse && first <= hour && hour < end;
    let is_wanted =
        |key: &str| quantity.is_none_or(|wanted| key == wanted || split_key(key).0 == wanted);

    let mut buckets: BTreeMap<i64, Stats> = BTreeMap::new();
    for (slot, texts) in &measured {
        let stats = buckets.entry(*slot).or_default();
        stats.join_all(texts, is_wanted).map_err(Error::internal)?;
    }
    let take = |reception: Reception| {
        if reception.is_repeat {
            return;
        }
        let at = reception.observed_at;
        for (key, value) in reception.values.iter().filter(|(key, _)| is_wanted(key)) {
            let slot = at.as_secs().div_euclid(every);
            let stats = buckets.entry(slot).or_default();
            stats.join(key, Stat::new(value, at));
        }
    };
    let by_event = |hour: i64| !is_whole(hour);
    if !hours
        .each(core, by_event, Direction::Ascending, MAX_EVENTS, take)
        .await?
    {
        let message = format!(
            "more than {MAX_EVENTS} events would have to be read; ask for buckets of `1h` or more, or for a shorter period"
        );
        return Err(Error::field("every", message));
    }
    if buckets.values().map(|stats| stats.0.len()).sum::<usize>() > MAX_ITEMS {
        let message = format!(
            "there are more than {MAX_ITEMS} buckets of all quantities; ask for one quantity"
        );
        return Err(Error::field("quantity", message));
    }
    let of_slot = |(slot, stats): (i64, Stats)| {
        let start = Timestamp::from_micros(slot.saturating_mul(every).saturating_mul(1_000_000));
        let bucket = move |(quantity, stat): (String, Stat)| SensorBucketResponse {
            from: start.max(period.from),
            to: start.plus_secs(every).min(period.to),
            unit: unit_of(&quantity),
            count: stat.count,
            min: stat.numbers.map(|numbers| numbers.1),
            max: stat.numbers.map(|numbers| numbers.2),
            mean: stat.mean(),
            last: stat.last,
            quantity,
        };
        stats.0.into_iter().map(bucket)
    };
    Ok(buckets.into_iter().flat_map(of_slot).collect())
}

/// The values of a bucket, in the order of their quantities.
#[derive(Default)]
struct Stats(Vec<(String, Stat)>);

impl Stats {
    fn join(&mut self, key: &str, stat: Stat) {
        self.join_at(0, key, stat);
    }

    /// Joins values of a quantity, which is probably at this place. Returns the place behind it,
    /// where the next quantity of an hour is looked for.
    fn join_at(&mut self, place: usize, key: &str, stat: Stat) -> usize {
        let is_there = self.0.get(place).is_some_and(|(known, _)| known == key);
        let found = match is_there {
            true => Ok(place),
            false => self
                .0
                .binary_search_by(|(known, _)| known.as_str().cmp(key)),
        };
        match found {
            Ok(place) => {
                if let Some((_, known)) = self.0.get_mut(place) {
                    known.join(stat);
                }
                place + 1
            }
            Err(place) => {
                self.0.insert(place, (key.to_owned(), stat));
                place + 1
            }
        }
    }

    /// Joins the wanted values of hours, which are JSON objects in a line each.
    fn join_all(
        &mut self,
        hours: &str,
        is_wanted: impl Fn(&str) -> bool + Copy,
    ) -> serde_json::Result<()> {
        for hour in hours.lines() {
            let join = HourJoin {
                stats: self,
                is_wanted,
            };
            join.deserialize(&mut serde_json::Deserializer::from_str(hour))?;
        }
        Ok(())
    }
}

/// Joins the values of an hour as they are read: years have many.
struct HourJoin<'a, F> {
    stats: &'a mut Stats,
    is_wanted: F,
}

impl<'de, F: Fn(&str) -> bool> DeserializeSeed<'de> for HourJoin<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, F: Fn(&str) -> bool> Visitor<'de> for HourJoin<'_, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the values of an hour by quantity")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        #[derive(Deserialize)]
        struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
        let mut place = 0;
        while let Some(Key(key)) = map.next_key()? {
            match (self.is_wanted)(&key) {
                true => place = self.stats.join_at(place, &key, map.next_value()?),
                false => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_joined_whatever_quantities_they_have() {
        let hours = [
            r#"{"b":{"c":1,"n":[1,2,2,2],"l":2,"t":5},"d":{"c":1,"l":"on","t":5}}"#,
            r#"{"a":{"c":2,"n":[2,1,3,4],"l":3,"t":9},"b":{"c":1,"n":[1,4,4,4],"l":4,"t":9}}"#,
            r#"{"b":{"c":1,"n":[1,6,6,6],"l":6,"t":1},"c":{"c":1,"l":true,"t":1},"d":{"c":1,"l":"off","t":7}}"#,
        ];
        let mut stats = Stats::default();
        stats.join_all(&hours.join("\n"), |_| true).expect("hours");
        let joined: Vec<_> = stats
            .0
            .iter()
            .map(|(key, stat)| (key.as_str(), stat.count, stat.mean(), stat.last.clone()))
            .collect();
        let expected = [
            ("a", 2, Some(2.0), Value::from(3)),
            ("b", 3, Some(4.0), Value::from(4)),
            ("c", 1, None, Value::from(true)),
            ("d", 2, None, Value::from("off")),
        ];
        assert_eq!(joined, expected);
        let mut one = Stats::default();
        one.join_all(&hours.join("\n"), |key| key == "c")
            .expect("hours");
        assert_eq!((one.0.len(), one.0[0].1.count), (1, 1));
    }

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
