//! What is known of one device between two writes of its row.

use std::collections::BTreeMap;

use hub_adverts::{Measurement, Sequence};
use hub_ingest::Heard;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

use crate::device_instances::LastValue;
use crate::device_instances::states::DeviceState;

/// The weight of a new signal strength in the smoothed one.
const SMOOTHING: f64 = 0.4;
/// A hub that is nearer by 30 % is the nearest at once. The distance follows from the signal with a
/// path loss exponent of 3: 30 % are 4 dB, 15 % are 2 dB.
const NEARER_AT_ONCE_DB: f64 = 4.0;
/// A hub that is nearer by 15 % is the nearest after this many receptions.
const NEARER_BY_AND_BY_DB: f64 = 2.0;
const NEARER_RECEPTIONS: u8 = 5;
/// The hubs of one device whose signal strengths are remembered.
const MAX_HUBS: usize = 8;
/// The nearest hub is forgotten when it did not receive the device for this long, or for three of
/// the device's intervals.
const NEAREST_STALE_SECS: i64 = 60;
/// The time after a reception for which a device is online, unless three of its intervals are
/// longer.
const ONLINE_SECS: i64 = 600;
/// The weight of a new interval in the learned one.
const INTERVAL_WEIGHT: f64 = 0.2;
/// Receptions that are closer are of one advertisement, or of its repetitions.
const SAME_ADVERTISEMENT_MICROS: i64 = 1_000_000;
/// The time for which a decreased counter has to increase to count as that of a restarted device.
const COUNTER_HEALS_AFTER_MICROS: i64 = 30_000_000;

/// The least time between two audit entries of a decreased counter.
const REPLAY_AUDIT_INTERVAL_MICROS: i64 = 3_600_000_000;

/// The reception of the device by a hub.
#[derive(Clone, Debug)]
struct Reception {
    hub_uuid: HubUuid,
    rssi_dbm: f64,
    at: Timestamp,
    /// Receptions in a row in which it was nearer than the nearest.
    nearer: u8,
}

/// A decreased counter.
#[derive(Clone, Copy, Debug)]
struct WentBack {
    value: u32,
    since: Timestamp,
}

#[derive(Clone, Debug)]
pub struct Tracked {
    pub tenant_uuid: TenantUuid,
    receptions: Vec<Reception>,
    nearest: Option<(HubUuid, Timestamp)>,
    last_seen_at: Option<Timestamp>,
    last_rssi_dbm: Option<i64>,
    interval_secs: Option<f64>,
    expected_interval_secs: Option<i64>,
    /// The values since the last write. A device has few.
    values: Vec<Latest>,
    counter: Option<(u32, Timestamp)>,
    went_back: Option<WentBack>,
    replay_audited_at: Option<Timestamp>,
    /// When the row was written last, by the service's clock.
    pub written_at: Option<Timestamp>,
    pub is_dirty: bool,
}

/// The last value of a quantity.
#[derive(Clone, Debug)]
struct Latest {
    measurement: Measurement,
    at: Timestamp,
}

impl Latest {
    fn last_value(&self) -> LastValue {
        let unit = self.measurement.quantity.unit.map(str::to_owned);
        LastValue {
            value: self.measurement.value.json(),
            unit,
            at: self.at,
        }
    }
}

/// The later one of two values; of the same time, the same one in whichever order they come.
fn is_later(new: &LastValue, old: &LastValue) -> bool {
    (new.at, new.value.to_string()) > (old.at, old.value.to_string())
}

impl Tracked {
    pub fn new(tenant_uuid: TenantUuid) -> Self {
        Self {
            tenant_uuid,
            receptions: Vec::new(),
            nearest: None,
            last_seen_at: None,
            last_rssi_dbm: None,
            interval_secs: None,
            expected_interval_secs: None,
            values: Vec::new(),
            counter: None,
            went_back: None,
            replay_audited_at: None,
            written_at: None,
            is_dirty: false,
        }
    }

    /// Adds a stored event. An older event than those before changes none of the values that they
    /// set.
    pub fn hear(&mut self, hub_uuid: HubUuid, heard: &Heard, now: Timestamp) {
        // The clock of a hub may be ahead.
        let at = heard.observed_at.min(now);
        self.expected_interval_secs = heard.expected_interval_secs.or(self.expected_interval_secs);
        let rssi_dbm = heard.rssi_dbm.map(i64::from);
        match self.last_seen_at {
            Some(before) if at < before => {}
            Some(before) if at == before => self.last_rssi_dbm = self.last_rssi_dbm.max(rssi_dbm),
            before => {
                if let Some(before) = before {
                    self.learn_interval(at.as_micros() - before.as_micros());
                }
                self.last_seen_at = Some(at);
                self.last_rssi_dbm = rssi_dbm;
            }
        }
        for measurement in &heard.measurements {
            self.set_value(measurement, at);
        }
        if let Some(rssi_dbm) = heard.rssi_dbm {
            self.receive(hub_uuid, f64::from(rssi_dbm), at);
        }
    }

    /// Adds an event that was decoded long after it was stored. It is no evidence of the nearest
    /// hub, nor of the device's interval.
    pub fn hear_late(&mut self, heard: &Heard, now: Timestamp) {
        let at = heard.observed_at.min(now);
        self.expected_interval_secs = heard.expected_interval_secs.or(self.expected_interval_secs);
        if self.last_seen_at.is_none_or(|before| at >= before) {
            self.last_seen_at = Some(at);
            self.last_rssi_dbm = heard.rssi_dbm.map(i64::from);
        }
        for measurement in &heard.measurements {
            self.set_value(measurement, at);
        }
    }

    /// The row with what is later here; None if nothing is. Of one time, what is here was read with
    /// today's catalog.
    pub fn later_than(
        mut self,
        device_instance_id: i64,
        mut row: DeviceState,
    ) -> Option<DeviceState> {
        let mut is_later = self.last_seen_at > row.last_seen_at;
        for latest in std::mem::take(&mut self.values) {
            let (key, value) = (latest.measurement.key(), latest.last_value());
            if row
                .values
                .get(&key)
                .is_none_or(|known| known.at <= value.at && *known != value)
            {
                row.values.insert(key, value);
                is_later = true;
            }
        }
        if self.last_seen_at > row.last_seen_at {
            self.adopt(&row);
            row = self.state(device_instance_id, row.values);
        }
        is_later.then_some(row)
    }

    fn set_value(&mut self, measurement: &Measurement, at: Timestamp) {
        let new = |measurement: &Measurement| Latest {
            measurement: measurement.clone(),
            at,
        };
        let is_same = |known: &&mut Latest| {
            (known.measurement.quantity.name, known.measurement.index)
                == (measurement.quantity.name, measurement.index)
        };
        match self.values.iter_mut().find(is_same) {
            None => self.values.push(new(measurement)),
            Some(known) if at > known.at => *known = new(measurement),
            Some(known)
                if at == known.at
                    && is_later(&new(measurement).last_value(), &known.last_value()) =>
            {
                *known = new(measurement);
            }
            Some(_) => {}
        }
    }

    fn learn_interval(&mut self, gap_micros: i64) {
        if gap_micros < SAME_ADVERTISEMENT_MICROS {
            return;
        }
        let gap_secs = gap_micros as f64 / 1e6;
        self.interval_secs = Some(match self.interval_secs {
            // A long absence does not make the interval longer.
            Some(known) if gap_secs > 10.0 * known.max(60.0) => known,
            Some(known) => known + INTERVAL_WEIGHT * (gap_secs - known),
            None => gap_secs,
        });
    }

    fn receive(&mut self, hub_uuid: HubUuid, rssi_dbm: f64, at: Timestamp) {
        let place = match self
            .receptions
            .iter()
            .position(|known| known.hub_uuid == hub_uuid)
        {
            Some(place) => place,
            None => {
                if self.receptions.len() >= MAX_HUBS
                    && let Some(oldest) = (0..self.receptions.len())
                        .min_by_key(|place| self.receptions.get(*place).map(|known| known.at))
                {
                    self.receptions.swap_remove(oldest);
                }
                self.receptions.push(Reception {
                    hub_uuid,
                    rssi_dbm,
                    at,
                    nearer: 0,
                });
                self.receptions.len() - 1
            }
        };
        let Some(own) = self.receptions.get_mut(place) else {
            return;
        };
        if at < own.at {
            return;
        }
        own.rssi_dbm += SMOOTHING * (rssi_dbm - own.rssi_dbm);
        own.at = at;
        let own_rssi_dbm = own.rssi_dbm;
        let stale_micros = NEAREST_STALE_SECS.max(3 * self.interval_in_secs()) * 1_000_000;
        let nearest = self.nearest.and_then(|(hub, _)| {
            let known = self.receptions.iter().find(|known| known.hub_uuid == hub)?;
            (at.as_micros() - known.at.as_micros() <= stale_micros).then_some((hub, known.rssi_dbm))
        });
        let Some((nearest_hub, nearest_rssi_dbm)) = nearest else {
            self.nearest = Some((hub_uuid, at));
            return;
        };
        let Some(own) = self
            .receptions
            .get_mut(place)
            .filter(|own| own.hub_uuid != nearest_hub)
        else {
            return;
        };
        let by_db = own_rssi_dbm - nearest_rssi_dbm;
        own.nearer = if by_db >= NEARER_BY_AND_BY_DB {
            own.nearer.saturating_add(1)
        } else {
            0
        };
        if by_db >= NEARER_AT_ONCE_DB || own.nearer >= NEARER_RECEPTIONS {
            self.nearest = Some((hub_uuid, at));
            self.receptions
                .iter_mut()
                .for_each(|known| known.nearer = 0);
        }
    }

    /// The expected interval, else the learned one.
    fn interval_in_secs(&self) -> i64 {
        self.expected_interval_secs
            .unwrap_or_else(|| self.interval_secs.map_or(0, |secs| secs.ceil() as i64))
    }

    /// Whether an authenticated counter is lower than an earlier one. Frames may arrive late, so
    /// only a frame that was received later than a higher counter counts. A device whose counter
    /// starts over, as after a change of its battery, is believed after a while.
    pub fn is_replayed(&mut self, sequence: Sequence, at: Timestamp) -> bool {
        let Some((last, last_at)) = self.counter else {
            self.counter = Some((sequence.value, at));
            return false;
        };
        if at < last_at {
            return false;
        }
        if is_ahead(sequence.value, last, sequence.bits) {
            self.counter = Some((sequence.value, at));
            self.went_back = None;
            return false;
        }
        match self.went_back {
            Some(back) if is_ahead(sequence.value, back.value, sequence.bits) => {
                if at.as_micros() - back.since.as_micros() >= COUNTER_HEALS_AFTER_MICROS {
                    self.counter = Some((sequence.value, at));
                    self.went_back = None;
                    return false;
                }
                self.went_back = Some(WentBack {
                    value: sequence.value,
                    since: back.since,
                });
            }
            _ => {
                self.went_back = Some(WentBack {
                    value: sequence.value,
                    since: at,
                })
            }
        }
        true
    }

    pub fn may_audit_replay(&mut self, now: Timestamp) -> bool {
        let is_over =
            |at: Timestamp| now.as_micros() - at.as_micros() >= REPLAY_AUDIT_INTERVAL_MICROS;
        let may = self.replay_audited_at.is_none_or(is_over);
        if may {
            self.replay_audited_at = Some(now);
        }
        may
    }

    /// Adopts the members of the row, other than the values, where it is later: another replica may
    /// have written it.
    pub fn adopt(&mut self, row: &DeviceState) {
        if row.last_seen_at > self.last_seen_at {
            self.last_seen_at = row.last_seen_at;
            self.last_rssi_dbm = row.last_rssi_dbm;
        }
        if self.interval_secs.is_none() {
            self.interval_secs = row.interval_secs.map(|secs| secs as f64);
        }
        let counter = row
            .counter
            .and_then(|counter| Some((u32::try_from(counter).ok()?, row.counter_at?)));
        if counter.is_some_and(|(_, at)| self.counter.is_none_or(|(_, known)| known < at)) {
            self.counter = counter;
        }
        let Some((hub_uuid, since)) = row.nearest_hub_uuid.zip(row.nearest_since) else {
            return;
        };
        if self
            .nearest
            .is_some_and(|(hub, own_since)| hub == hub_uuid || own_since > since)
        {
            self.nearest = self.nearest.map(|(hub, own_since)| {
                if hub == hub_uuid {
                    (hub, since)
                } else {
                    (hub, own_since)
                }
            });
            return;
        }
        if let Some((rssi_dbm, at)) = row.nearest_rssi_dbm.zip(row.last_seen_at)
            && !self
                .receptions
                .iter()
                .any(|known| known.hub_uuid == hub_uuid)
        {
            self.receptions.push(Reception {
                hub_uuid,
                rssi_dbm: rssi_dbm as f64,
                at,
                nearer: 0,
            });
        }
        self.nearest = Some((hub_uuid, since));
    }

    /// The row to write. `values` are those of the row as it is.
    pub fn state(
        &self,
        device_instance_id: i64,
        mut values: BTreeMap<String, LastValue>,
    ) -> DeviceState {
        for latest in &self.values {
            let (key, value) = (latest.measurement.key(), latest.last_value());
            if values.get(&key).is_none_or(|known| is_later(&value, known)) {
                values.insert(key, value);
            }
        }
        let nearest = self.nearest.and_then(|(hub, since)| {
            let known = self.receptions.iter().find(|known| known.hub_uuid == hub)?;
            Some((hub, since, known.rssi_dbm.round() as i64))
        });
        let online_secs = ONLINE_SECS.max(3 * self.interval_in_secs());
        let online_until = self
            .last_seen_at
            .map(|at| Timestamp::from_micros(at.as_micros() + online_secs * 1_000_000));
        DeviceState {
            device_instance_id,
            tenant_uuid: self.tenant_uuid,
            last_seen_at: self.last_seen_at,
            last_rssi_dbm: self.last_rssi_dbm,
            nearest_hub_uuid: nearest.map(|(hub, ..)| hub),
            nearest_rssi_dbm: nearest.map(|(.., rssi_dbm)| rssi_dbm),
            nearest_since: nearest.map(|(_, since, _)| since),
            interval_secs: self.interval_secs.map(|secs| secs.ceil() as i64),
            online_until,
            values,
            counter: self.counter.map(|(value, _)| value.into()),
            counter_at: self.counter.map(|(_, at)| at),
        }
    }

    /// The row was written with what is known now.
    pub fn written(&mut self, at: Timestamp) {
        self.written_at = Some(at);
        self.is_dirty = false;
        self.values.clear();
    }
}

/// Whether a counter is the same as another one or ahead of it, by less than half of its range.
fn is_ahead(value: u32, of: u32, bits: u8) -> bool {
    let range = 1_u64 << bits.min(32);
    let by = (u64::from(value) + range - u64::from(of) % range) % range;
    by < range / 2
}
