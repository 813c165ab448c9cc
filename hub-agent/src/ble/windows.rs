//! State about earlier advertisements: the payloads that were reported recently, and the devices of
//! a window. Bounded in memory, and never reads a clock.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hub_protocol::Timestamp;
use hub_protocol::ble::{Advertisement, BleDeviceWindow, Payload};

use super::types::HeardWindow;

/// A window with this many devices closes early.
pub const MAX_WINDOW_DEVICES: usize = 2_000;
/// "Not available" as a signal strength, as Bluetooth defines it.
pub const RSSI_UNKNOWN: i16 = 127;

/// The hasher of keys that are hashes already.
#[derive(Debug, Default)]
pub struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        // Keys are written whole, by the function below.
        bytes
            .iter()
            .for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

pub type HashedMap<T> = HashMap<u64, T, BuildHasherDefault<Hashed>>;

/// When each payload was last reported.
#[derive(Debug)]
pub struct Dedup {
    window_micros: i64,
    capacity: usize,
    reported: HashedMap<Timestamp>,
}

impl Dedup {
    pub fn new(window: Duration, capacity: usize) -> Self {
        Self {
            window_micros: micros(window),
            capacity,
            reported: HashedMap::default(),
        }
    }

    pub fn is_new(&mut self, payload: u64, at: Timestamp) -> bool {
        if self.window_micros == 0 {
            return true;
        }
        let window = self.window_micros;
        match self.reported.get_mut(&payload) {
            Some(before) if within(*before, at, window) => false,
            Some(before) => {
                *before = at;
                true
            }
            None => {
                if self.reported.len() >= self.capacity {
                    self.prune(at);
                }
                self.reported.insert(payload, at);
                true
            }
        }
    }

    /// Forgets expired payloads, then the oldest until a quarter is free: reporting one twice is
    /// better than growing.
    fn prune(&mut self, now: Timestamp) {
        let mut horizon = self.window_micros;
        while self.reported.len() > self.capacity / 4 * 3 {
            self.reported
                .retain(|_, before| within(*before, now, horizon));
            horizon /= 2;
        }
    }
}

/// If the clock was set back, nothing is a duplicate.
pub fn within(before: Timestamp, at: Timestamp, window_micros: i64) -> bool {
    (0..window_micros).contains(&at.as_micros().saturating_sub(before.as_micros()))
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[derive(Debug)]
pub struct Window {
    length_micros: i64,
    /// The number of devices with which the window closes early.
    most_devices: usize,
    least_length_micros: Arc<AtomicI64>,
    start: Option<Timestamp>,
    devices: HashedMap<Device>,
}

#[derive(Debug)]
struct Device {
    payload_hash: u64,
    rssi_sum: i64,
    rssi_count: i64,
    summary: BleDeviceWindow,
}

impl Window {
    pub fn new(length: Duration, least_length_micros: Arc<AtomicI64>) -> Self {
        Self::with_capacity(length, least_length_micros, MAX_WINDOW_DEVICES)
    }

    pub fn with_capacity(
        length: Duration,
        least_length_micros: Arc<AtomicI64>,
        most_devices: usize,
    ) -> Self {
        Self {
            length_micros: micros(length),
            most_devices: most_devices.min(MAX_WINDOW_DEVICES),
            least_length_micros,
            start: None,
            devices: HashedMap::default(),
        }
    }

    pub fn add(&mut self, device: u64, payload: u64, at: Timestamp, advertisement: &Advertisement) {
        self.start.get_or_insert(at);
        match self.devices.entry(device) {
            Entry::Occupied(entry) => entry.into_mut().add(payload, at, advertisement),
            Entry::Vacant(entry) => {
                entry.insert(Device::new(payload, at, advertisement));
            }
        }
    }

    pub fn close_if_due(&mut self, now: Timestamp) -> Option<HeardWindow> {
        let start = self.start?;
        // A window also ends when the clock was set back: its end must not be before its start.
        let length_micros = self
            .length_micros
            .max(self.least_length_micros.load(Ordering::Relaxed));
        let open = within(start, now, length_micros) && self.devices.len() < self.most_devices;
        if open { None } else { self.close(now) }
    }

    pub fn close(&mut self, now: Timestamp) -> Option<HeardWindow> {
        let start = self.start.take()?;
        let mut devices: Vec<_> = self
            .devices
            .drain()
            .map(|(_, device)| device.summary)
            .collect();
        devices.sort_by(|a, b| {
            (a.first_seen_at, &a.payload.address).cmp(&(b.first_seen_at, &b.payload.address))
        });
        let last = devices
            .iter()
            .map(|device| device.last_seen_at)
            .max()
            .unwrap_or(start);
        Some(HeardWindow {
            start,
            end: now.max(last),
            devices,
        })
    }
}

impl Device {
    fn new(payload_hash: u64, at: Timestamp, advertisement: &Advertisement) -> Self {
        let rssi = advertisement.rssi.unwrap_or(RSSI_UNKNOWN);
        Self {
            payload_hash,
            rssi_sum: advertisement.rssi.map_or(0, i64::from),
            rssi_count: advertisement.rssi.map_or(0, |_| 1),
            summary: BleDeviceWindow {
                count: 1,
                rssi_min: rssi,
                rssi_max: rssi,
                rssi_mean: f64::from(rssi),
                first_seen_at: at,
                last_seen_at: at,
                payload: advertisement.clone(),
            },
        }
    }

    fn add(&mut self, payload_hash: u64, at: Timestamp, advertisement: &Advertisement) {
        let summary = &mut self.summary;
        summary.count += 1;
        summary.last_seen_at = at.max(summary.last_seen_at);
        if let Some(rssi) = advertisement.rssi {
            let first = self.rssi_count == 0;
            summary.rssi_min = if first {
                rssi
            } else {
                summary.rssi_min.min(rssi)
            };
            summary.rssi_max = if first {
                rssi
            } else {
                summary.rssi_max.max(rssi)
            };
            self.rssi_sum += i64::from(rssi);
            self.rssi_count += 1;
            summary.rssi_mean = self.rssi_sum as f64 / self.rssi_count as f64;
        }
        if payload_hash == self.payload_hash {
            summary.payload.rssi = advertisement.rssi;
        } else {
            self.payload_hash = payload_hash;
            overwrite(&mut summary.payload, advertisement);
        }
    }
}

/// As `clone_from`, but keeps the memory: nearly always only bytes under the same identifiers
/// differ.
fn overwrite(kept: &mut Advertisement, new: &Advertisement) {
    let Advertisement {
        adapter_address,
        address,
        address_type,
        rssi,
        tx_power,
        name,
        manufacturer_data,
        service_data,
        service_uuids,
        device_instance_id,
    } = kept;
    adapter_address.clone_from(&new.adapter_address);
    address.clone_from(&new.address);
    address_type.clone_from(&new.address_type);
    (*rssi, *tx_power, *device_instance_id) = (new.rssi, new.tx_power, new.device_instance_id);
    name.clone_from(&new.name);
    overwrite_data(manufacturer_data, &new.manufacturer_data);
    overwrite_data(service_data, &new.service_data);
    service_uuids.clone_from(&new.service_uuids);
}

fn overwrite_data(kept: &mut BTreeMap<String, Payload>, new: &BTreeMap<String, Payload>) {
    if kept.len() == new.len() && kept.keys().eq(new.keys()) {
        for (kept, new) in kept.values_mut().zip(new.values()) {
            kept.0.clone_from(&new.0);
        }
    } else {
        kept.clone_from(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembered_payloads_are_bounded() {
        let mut dedup = Dedup::new(Duration::from_secs(10), 100);
        for payload in 0..10_000 {
            assert!(dedup.is_new(
                payload,
                Timestamp::from_micros(i64::try_from(payload).unwrap() * 10)
            ));
            assert!(dedup.reported.len() <= 100);
        }
        assert!(
            !dedup.is_new(9_999, Timestamp::from_micros(100_000)),
            "the newest is still remembered"
        );
        // All at one moment: none is older than another, and the bound still holds.
        for payload in 20_000..30_000 {
            assert!(dedup.is_new(payload, Timestamp::from_micros(200_000)));
            assert!(dedup.reported.len() <= 100);
        }
    }
}
