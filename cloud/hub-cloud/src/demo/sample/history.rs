//! A day of history. The clock of the service is set back by a day when there is no data yet, and
//! goes through the day while the hubs upload what they heard: it is stored as received then.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::future::try_join_all;
use hub_base::clock::Clock;
use hub_client::now;
use serde_json::Value;
use uuid::Uuid;

use super::hub::PlayedHub;
use super::sensors::SENSORS;
use super::{BLIND_FOR_SECS, BLIND_FROM_SECS, DUE_SECS, Made, wavering};
use crate::demo::Failure;

const DAY_SECS: i64 = 24 * 3600;
/// The time in which hubs upload as often as they do live, but for the seconds.
const LAST_SECS: i64 = 3600;
const LAST_STEP_SECS: i64 = 60;
/// Each step of the day has equally many frames of a sensor.
const STEP_SECS: i64 = 360;

/// The clock of the service, which the history sets.
pub struct Past(Arc<AtomicI64>);

impl Past {
    /// Begins a day before the first start of the demo, if its history is still to be made.
    pub fn new(made: &Made) -> Self {
        let past = Self(Arc::default());
        if !made.is_complete {
            past.go_to(made.start - DAY_SECS);
        }
        past
    }

    pub fn clock(&self) -> Clock {
        Clock::Behind(self.0.clone())
    }

    fn go_to(&self, secs: i64) {
        let behind = now().as_micros() - secs * 1_000_000;
        self.0.store(behind, Ordering::Relaxed);
    }

    fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Uploads the day of the hubs, in batches that are stored once however often they are sent, and
/// arrives at the present.
pub async fn upload(hubs: &mut [PlayedHub], made: &Made, past: &Past) -> Result<(), Failure> {
    for (number, (from, until)) in (0_u128..).zip(steps(made.start)) {
        past.go_to(until);
        let uploads = hubs.iter_mut().map(|hub| {
            let of_hub = (hub.place as u128) << 32;
            let batch_uuid = made.batches.as_u128().wrapping_add(of_hub + number);
            let events = heard(hub.place, (from, until), made.start);
            async move {
                let events: Vec<&Value> = events.iter().collect();
                hub.upload(Uuid::from_u128(batch_uuid), &events).await
            }
        });
        try_join_all(uploads).await?;
    }
    past.end();
    Ok(())
}

/// The uploads of a hub: from when, and until when, in seconds since 1970.
fn steps(start: i64) -> impl Iterator<Item = (i64, i64)> {
    let last = start - LAST_SECS;
    let day = (start - DAY_SECS..last).step_by(STEP_SECS as usize);
    let day = day.map(|from| (from, from + STEP_SECS));
    let last = (last..start).step_by(LAST_STEP_SECS as usize);
    day.chain(last.map(|from| (from, from + LAST_STEP_SECS)))
}

/// What a hub heard in a time.
fn heard(place: usize, (from, until): (i64, i64), start: i64) -> Vec<Value> {
    let blind_from = start - BLIND_FROM_SECS;
    let blind = blind_from..blind_from + BLIND_FOR_SECS;
    let mut events = Vec::new();
    for sensor in &SENSORS {
        let Some(dbm) = sensor.strength_at(place) else {
            continue;
        };
        let every = match sensor.every_secs() {
            STEP_SECS.. => sensor.every_secs(),
            usual if from < start - LAST_SECS => usual,
            _ => DUE_SECS,
        };
        let first = from + (-from).rem_euclid(every);
        for at in (first..until).step_by(every as usize) {
            let is_blind = place == 2 && blind.contains(&at);
            if sensor.sends(at, start) && !is_blind {
                events.push((at, sensor.event(at, start, wavering(dbm, at))));
            }
        }
    }
    events.sort_by_key(|(at, _)| *at);
    events.into_iter().map(|(_, event)| event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_are_the_day_without_a_gap() {
        let start = 1_800_000_017;
        let mut at = start - DAY_SECS;
        for (from, until) in steps(start) {
            assert_eq!(from, at);
            at = until;
        }
        assert_eq!(at, start);
    }
}
