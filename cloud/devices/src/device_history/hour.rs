//! What was heard of a device within an hour: small, and joined with what comes late.

use std::collections::BTreeMap;

use hub_protocol::{HubUuid, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::HOUR_SECS;
use crate::ble::{Reception, Strength};

/// The most quantities, and hubs, of an hour.
const MAX_ENTRIES: usize = 64;

/// The values of a quantity. Texts and booleans count, and may be the last one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stat {
    #[serde(rename = "c")]
    pub count: i64,
    /// The values that are numbers.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Numbers>,
    #[serde(rename = "l")]
    pub last: Value,
    /// The time in microseconds since 1970.
    #[serde(rename = "t")]
    pub last_at: i64,
}

/// The number of numbers, the least, the greatest, and the sum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Numbers(pub i64, pub f64, pub f64, pub f64);

/// A sum that is too large for a number stays the greatest one: JSON has no infinity.
fn joined(one: Option<Numbers>, two: Option<Numbers>) -> Option<Numbers> {
    let (Some(one), Some(two)) = (one, two) else {
        return one.or(two);
    };
    Some(Numbers(
        one.0.saturating_add(two.0),
        one.1.min(two.1),
        one.2.max(two.2),
        (one.3 + two.3).clamp(f64::MIN, f64::MAX),
    ))
}

impl Stat {
    pub fn new(value: &Value, at: Timestamp) -> Self {
        let numbers = value
            .as_f64()
            .map(|number| Numbers(1, number, number, number));
        Self {
            count: 1,
            numbers,
            last: value.clone(),
            last_at: at.as_micros(),
        }
    }

    pub fn join(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.numbers = joined(self.numbers, other.numbers);
        if other.last_at >= self.last_at {
            self.last = other.last;
            self.last_at = other.last_at;
        }
    }

    pub fn mean(&self) -> Option<f64> {
        self.numbers
            .filter(|numbers| numbers.0 > 0)
            .map(|numbers| numbers.3 / numbers.0 as f64)
    }
}

/// The reception of a device by a hub.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    #[serde(rename = "c")]
    pub count: i64,
    /// The signal strengths of the receptions with a known one, in dBm.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub strengths: Option<Numbers>,
    /// The time in microseconds since 1970.
    #[serde(rename = "t")]
    pub last_at: i64,
}

impl Signal {
    pub fn new(reception: &Reception) -> Self {
        let count = reception.count;
        let numbers = |strength: Strength| {
            Numbers(
                count,
                f64::from(strength.min),
                f64::from(strength.max),
                strength.mean * count as f64,
            )
        };
        Self {
            count,
            strengths: reception.strength.map(numbers),
            last_at: reception.observed_at.as_micros(),
        }
    }

    pub fn join(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.strengths = joined(self.strengths, other.strengths);
        self.last_at = self.last_at.max(other.last_at);
    }
}

/// The receptions of a device within an hour.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hour {
    /// The first and the last event of the hour.
    pub first_id: i64,
    pub last_id: i64,
    /// The minutes with a reception, a bit for each.
    pub minutes: i64,
    /// The statistics by key.
    pub quantities: BTreeMap<String, Stat>,
    pub hubs: BTreeMap<HubUuid, Signal>,
}

/// The hour of a time, in seconds since 1970.
pub const fn hour_of(at: Timestamp) -> i64 {
    at.as_secs().div_euclid(HOUR_SECS) * HOUR_SECS
}

impl Hour {
    /// An hour of which no event is here; its beginning stands for the first and the last one.
    pub fn at(hour: i64) -> Self {
        let id = hour.saturating_mul(1_000_000);
        Self {
            first_id: id,
            last_id: id,
            ..Self::default()
        }
    }

    /// Adds the quantities that the hour does not have, as far as it has room for them. Returns how
    /// many these are.
    pub fn add_missing(&mut self, quantities: BTreeMap<String, Stat>) -> usize {
        let before = self.quantities.len();
        for (key, stat) in quantities {
            if !self.quantities.contains_key(&key) && self.quantities.len() < MAX_ENTRIES {
                self.quantities.insert(key, stat);
            }
        }
        self.quantities.len() - before
    }

    pub fn add(&mut self, reception: Reception) {
        self.join(Self::of(reception));
    }

    fn of(reception: Reception) -> Self {
        let at = reception.observed_at;
        let minute = at.as_secs().rem_euclid(HOUR_SECS) / 60;
        let values = if reception.is_repeat {
            serde_json::Map::new()
        } else {
            reception.values.clone()
        };
        Self {
            first_id: reception.ble_event_id,
            last_id: reception.ble_event_id,
            minutes: 1 << minute,
            quantities: values
                .into_iter()
                .map(|(key, value)| (key, Stat::new(&value, at)))
                .collect(),
            hubs: BTreeMap::from([(reception.hub_uuid, Signal::new(&reception))]),
        }
    }

    pub fn join(&mut self, other: Self) {
        self.first_id = if self.first_id == 0 {
            other.first_id
        } else {
            self.first_id.min(other.first_id)
        };
        self.last_id = self.last_id.max(other.last_id);
        self.minutes |= other.minutes;
        for (key, stat) in other.quantities {
            join_in(&mut self.quantities, key, stat, Stat::join);
        }
        for (hub_uuid, signal) in other.hubs {
            join_in(&mut self.hubs, hub_uuid, signal, Signal::join);
        }
    }
}

/// Joins an entry with the one of its key. One that would be too many is left out.
fn join_in<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: V, join: fn(&mut V, V)) {
    let has_room = map.len() < MAX_ENTRIES;
    match map.get_mut(&key) {
        Some(known) => join(known, value),
        None if has_room => {
            map.insert(key, value);
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_beyond_all_numbers_can_be_stored() {
        let at = Timestamp::from_micros(0);
        let mut stat = Stat::new(&Value::from(f64::MAX), at);
        stat.join(Stat::new(&Value::from(f64::MAX), at));
        let text = serde_json::to_string(&stat).expect("JSON");
        assert_eq!(
            serde_json::from_str::<Stat>(&text).expect("as it was"),
            stat
        );
    }

    #[test]
    fn quantities_that_are_there_stay() {
        let stat = |number: i64| Stat::new(&Value::from(number), Timestamp::from_micros(0));
        let mut hour = Hour::at(3600);
        let first = BTreeMap::from([("temperature".to_owned(), stat(1))]);
        assert_eq!(hour.add_missing(first.clone()), 1);
        assert_eq!(hour.add_missing(first), 0);
        let many = (0..100).map(|at| (format!("q{at}"), stat(2)));
        assert_eq!(hour.add_missing(many.collect()), MAX_ENTRIES - 1);
        assert_eq!(hour.quantities["temperature"], stat(1));
    }
}
