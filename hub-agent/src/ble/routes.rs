//! Applies the rules of a scan configuration to advertisements: which are passed on, and which are
//! folded into windows. Bounded in memory, and never reads a clock.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use hub_adverts::advertisement::frame_of;
use hub_adverts::catalog::{Advertisers, Before, KeyUse, Read};
use hub_adverts::outcome::Identity;
use hub_adverts::{Frame, Kind, Measurement, Quantity, Value};
use hub_protocol::Timestamp;
use hub_protocol::ble::Advertisement;

use super::selection::{Action, Selection, Sender};
use super::types::Heard;
use super::windows::{Dedup, HashedMap, Window, within};

/// The most devices of which something is remembered, over all rules.
const MAX_DEVICES: usize = 16_384;
/// The most values that are remembered of a device.
const MAX_VALUES: usize = 64;
/// The least number of payloads whose readings are kept; the most is twice that number.
const KEPT_READINGS: usize = 1_024;
/// The seconds between two reports of an unchanged device whose model has no interval of its own.
const LIFE_SIGN_SECS: i64 = 600;
/// The tolerance of a delta: values are decimal fractions, and binary differences of them are not.
const ROUNDING: f64 = 1e-9;

/// The decision on an advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The advertisement is reported as without rules: repetitions are de-duplicated.
    Reported,
    /// The advertisement is reported, whatever was reported before.
    Selected,
    /// The advertisement is folded, and reported as a single event as well.
    Event,
    /// The advertisement is dropped or folded.
    Withheld,
}

#[derive(Debug)]
pub struct Router {
    selection: Arc<Selection>,
    hasher: RandomState,
    /// The devices by the hash of rule and device.
    devices: HashMap<u64, Device>,
    /// The number of uses of devices so far.
    uses: u64,
    /// The windows, one for each length.
    windows: Vec<Folded>,
    readings: Readings,
    /// What was heard before, where makers put values into the company identifier.
    advertisers: Advertisers,
    /// A buffer for the measurements of one advertisement.
    measured: Vec<Measurement>,
}

/// The readings of the latest payloads, since most payloads are sent several times. The selection
/// never changes, so a payload always has the same reading, unless it has the manufacturer data of
/// several companies, of which some may be older.
#[derive(Debug, Default)]
struct Readings {
    latest: HashedMap<Arc<Reading>>,
    earlier: HashedMap<Arc<Reading>>,
}

#[derive(Debug)]
struct Reading {
    recognition: Recognition,
    measured: Box<[Measurement]>,
}

impl Readings {
    fn get(&mut self, payload: u64) -> Option<Arc<Reading>> {
        if let Some(known) = self.latest.get(&payload) {
            return Some(known.clone());
        }
        let known = self.earlier.remove(&payload)?;
        self.keep(payload, known.clone());
        Some(known)
    }

    fn keep(&mut self, payload: u64, reading: Arc<Reading>) {
        if self.latest.len() >= KEPT_READINGS {
            self.earlier = std::mem::take(&mut self.latest);
        }
        self.latest.insert(payload, reading);
    }
}

#[derive(Debug)]
struct Folded {
    window: Window,
    /// The payloads of events and counters that were reported on their own.
    events: Dedup,
}

/// The values of a device that were last reported.
#[derive(Debug)]
struct Device {
    used: u64,
    at: Timestamp,
    /// The hash that distinguishes two frames with events.
    event: Option<u64>,
    values: Vec<(&'static str, Option<u8>, Value)>,
}

/// The sender of an advertisement, and how its payload was read.
#[derive(Clone, Copy, Debug, Default)]
struct Recognition {
    sender: Sender,
    /// The sender, whatever its address is now.
    identity: u64,
    expected_interval_secs: Option<i64>,
    observation: u64,
    /// The payload is encrypted, and the hub does not have its key.
    is_unreadable: bool,
}

impl Router {
    pub fn new(selection: Arc<Selection>, least_window_micros: &Arc<AtomicI64>) -> Self {
        let lengths = selection
            .window_secs
            .iter()
            .map(|secs| Duration::from_secs(secs.unsigned_abs()));
        let devices = MAX_DEVICES / selection.window_secs.len().max(1);
        let windows = lengths.map(|length| Folded {
            window: Window::with_capacity(length, least_window_micros.clone(), devices),
            events: Dedup::new(length, devices),
        });
        Self {
            windows: windows.collect(),
            selection,
            hasher: RandomState::new(),
            devices: HashMap::new(),
            uses: 0,
            readings: Readings::default(),
            advertisers: Advertisers::default(),
            measured: Vec::new(),
        }
    }

    /// Decides on an advertisement, and folds it where that is its rule. `device` and `payload` are
    /// the hashes of its advertiser and adapter, and of what it sent. Windows that end are added to
    /// `ready`.
    pub fn pass(
        &mut self,
        at: Timestamp,
        advertisement: &Advertisement,
        device: u64,
        payload: u64,
        ready: &mut Vec<Heard>,
    ) -> Decision {
        let selection = self.selection.clone();
        let mut reading = None;
        let fitting = selection.rules.iter().position(|rule| {
            if rule.is_of_senders() && reading.is_none() {
                reading = Some(self.reading(advertisement, device, payload));
            }
            rule.fits(
                advertisement,
                &reading
                    .as_ref()
                    .map(|read| read.recognition.sender)
                    .unwrap_or_default(),
            )
        });
        let (rule, action) = match fitting.and_then(|at| Some((at, selection.rules.get(at)?))) {
            Some((at, rule)) => (at, &rule.action),
            None => (usize::MAX, &selection.otherwise),
        };
        match action {
            Action::Forward => return Decision::Reported,
            Action::Drop => return Decision::Withheld,
            Action::Sample { .. } | Action::Window(_) | Action::OnChange(_) => {}
        }
        let reading = reading.unwrap_or_else(|| self.reading(advertisement, device, payload));
        let recognition = &reading.recognition;
        match action {
            Action::Window(place) => {
                let has_event = reading.measured.iter().any(is_counted);
                let Some(folded) = self.windows.get_mut(*place) else {
                    return Decision::Reported;
                };
                ready.extend(folded.window.close_if_due(at).map(Heard::Window));
                folded.window.add(device, payload, at, advertisement);
                if has_event && folded.events.is_new(payload, at) {
                    Decision::Event
                } else {
                    Decision::Withheld
                }
            }
            Action::Sample { every_micros } => self.changed(at, rule, &reading, &[], *every_micros),
            // The service may have the key, now or later.
            Action::OnChange(_) if recognition.is_unreadable => Decision::Reported,
            Action::OnChange(quantities) => {
                let life_secs = recognition
                    .expected_interval_secs
                    .filter(|secs| *secs > 0)
                    .unwrap_or(LIFE_SIGN_SECS);
                self.changed(
                    at,
                    rule,
                    &reading,
                    quantities,
                    life_secs.saturating_mul(1_000_000),
                )
            }
            Action::Forward | Action::Drop => Decision::Reported,
        }
    }

    /// Adds the windows that have ended to `ready`.
    pub fn flush(&mut self, now: Timestamp, ready: &mut Vec<Heard>) {
        ready.extend(
            self.windows
                .iter_mut()
                .filter_map(|folded| folded.window.close_if_due(now))
                .map(Heard::Window),
        );
    }

    /// Adds all windows to `ready`.
    pub fn finish(&mut self, now: Timestamp, ready: &mut Vec<Heard>) {
        ready.extend(
            self.windows
                .iter_mut()
                .filter_map(|folded| folded.window.close(now))
                .map(Heard::Window),
        );
    }

    fn reading(
        &mut self,
        advertisement: &Advertisement,
        device: u64,
        payload: u64,
    ) -> Arc<Reading> {
        if self.selection.catalog.models().takes_several_companies()
            && !advertisement.manufacturer_data.is_empty()
        {
            let frame = frame_of(advertisement);
            let before = frame.with(|frame| self.advertisers.note(device, frame));
            if advertisement.manufacturer_data.len() > 1 {
                return Arc::new(self.read(advertisement, &before));
            }
        }
        self.readings.get(payload).unwrap_or_else(|| {
            let reading = Arc::new(self.read(advertisement, &Before::default()));
            self.readings.keep(payload, reading.clone());
            reading
        })
    }

    fn read(&mut self, advertisement: &Advertisement, before: &Before) -> Reading {
        let recognition = self.recognise(advertisement, before);
        Reading {
            recognition,
            measured: self.measured.drain(..).collect(),
        }
    }

    fn recognise(&mut self, advertisement: &Advertisement, before: &Before) -> Recognition {
        let hasher = &self.hasher;
        let by_address = || hasher.hash_one(advertisement.address.as_str());
        if self.selection.catalog.is_empty() {
            self.measured.clear();
            return Recognition {
                identity: by_address(),
                ..Recognition::default()
            };
        }
        let recognition =
            |read: &Read<'_>, frame: &Frame<'_>, measured: &[Measurement]| Recognition {
                sender: Sender {
                    device_uuid: read.model.map(|model| model.device_uuid),
                    device_instance_id: read.instance.map(|instance| instance.device_instance_id),
                },
                identity: match (read.instance, read.facts.identity) {
                    (Some(instance), _) => hasher.hash_one(instance.device_instance_id),
                    // The tail of an address is not of one device alone.
                    (None, Some(identity)) if !matches!(identity, Identity::MacTail(_)) => {
                        hasher.hash_one(identity)
                    }
                    _ => by_address(),
                },
                expected_interval_secs: read.model.and_then(|model| model.expected_interval_secs),
                observation: read.observation(frame, measured).hash,
                is_unreadable: matches!(read.key, Some(KeyUse::Missing | KeyUse::Wrong)),
            };
        self.selection
            .read(advertisement, before, &mut self.measured, recognition)
    }

    /// Reports an advertisement if a value or a counter has changed, if it has another event, and
    /// if nothing of the device was reported for this long.
    fn changed(
        &mut self,
        at: Timestamp,
        rule: usize,
        Reading {
            recognition,
            measured,
        }: &Reading,
        quantities: &[(String, f64)],
        life_micros: i64,
    ) -> Decision {
        self.uses += 1;
        let key = self.hasher.hash_one((rule, recognition.identity));
        let event = measured
            .iter()
            .any(|one| one.kind == Kind::Event)
            .then_some(recognition.observation);
        if let Some(device) = self.devices.get_mut(&key) {
            device.used = self.uses;
            let is_old = !within(device.at, at, life_micros);
            let is_event = event.is_some() && event != device.event;
            if !is_old && !is_event && !measured.iter().any(|one| device.is_moved(one, quantities))
            {
                return Decision::Withheld;
            }
        } else {
            self.make_room();
        }
        let new = Device {
            used: self.uses,
            at,
            event: None,
            values: Vec::new(),
        };
        let device = self.devices.entry(key).or_insert(new);
        device.at = at;
        device.event = event.or(device.event);
        for measurement in measured {
            if measurement.kind == Kind::Counter || delta_of(measurement, quantities).is_some() {
                device.remember(measurement);
            }
        }
        Decision::Selected
    }

    /// Forgets a quarter of the devices when there are too many: the least recently used.
    fn make_room(&mut self) {
        if self.devices.len() < MAX_DEVICES {
            return;
        }
        let mut uses: Vec<u64> = self.devices.values().map(|device| device.used).collect();
        let (_, last_forgotten, _) = uses.select_nth_unstable(MAX_DEVICES / 4);
        let last_forgotten = *last_forgotten;
        self.devices
            .retain(|_, device| device.used > last_forgotten);
    }
}

impl Device {
    fn value(&self, quantity: &Quantity, index: Option<u8>) -> Option<&Value> {
        self.values
            .iter()
            .find(|(name, at, _)| (*name, *at) == (quantity.name, index))
            .map(|(_, _, value)| value)
    }

    fn is_moved(&self, now: &Measurement, quantities: &[(String, f64)]) -> bool {
        let before = || self.value(now.quantity, now.index);
        if now.kind == Kind::Counter && before() != Some(&now.value) {
            return true;
        }
        let Some(delta) = delta_of(now, quantities) else {
            return false;
        };
        match (before(), &now.value) {
            (Some(Value::Number(before)), Value::Number(now)) => {
                let moved = (now - before).abs();
                moved > 0.0 && moved >= delta * (1.0 - ROUNDING)
            }
            (before, now) => before != Some(now),
        }
    }

    fn remember(&mut self, now: &Measurement) {
        let key = (now.quantity.name, now.index);
        if let Some((_, _, value)) = self
            .values
            .iter_mut()
            .find(|(name, index, _)| (*name, *index) == key)
        {
            value.clone_from(&now.value);
        } else if self.values.len() < MAX_VALUES {
            self.values.push((key.0, key.1, now.value.clone()));
        }
    }
}

/// Something that must not be lost.
fn is_counted(measurement: &Measurement) -> bool {
    matches!(measurement.kind, Kind::Event | Kind::Counter)
}

fn delta_of(measurement: &Measurement, quantities: &[(String, f64)]) -> Option<f64> {
    quantities
        .iter()
        .find(|(name, _)| name == measurement.quantity.name)
        .map(|(_, delta)| *delta)
}

#[cfg(test)]
mod tests;
