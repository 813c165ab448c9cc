//! The objects of BlueZ: its adapters, and the last advertisement of each device, so that a signal
//! with only a new RSSI still makes a whole report. Updated by signals alone; makes no calls.
//! Accepts values of any type: those that do not fit are ignored.

use std::collections::{BTreeMap, HashMap, HashSet};

use hub_protocol::Timestamp;
use hub_protocol::ble::{Advertisement, Payload};
use hub_protocol::hub::Adapter;

use super::super::reports::Pipeline;
use super::super::types::is_address;
use super::monitor::Registry;
use super::wire::Value;

pub const ADAPTER: &str = "org.bluez.Adapter1";
pub const DEVICE: &str = "org.bluez.Device1";
pub const MONITOR_MANAGER: &str = "org.bluez.AdvertisementMonitorManager1";

/// BlueZ itself forgets devices; this is a bound in case it does not.
const MAX_DEVICES: usize = 4_096;
/// The number of advertisers that do not all fall silent at once.
pub const SEVERAL_ADVERTISERS: usize = 8;
const BASE_UUID_HEAD: &str = "0000";
const BASE_UUID_TAIL: &str = "-0000-1000-8000-00805f9b34fb";

#[derive(Debug)]
pub struct Objects {
    /// bluetoothd's name on the bus; empty while it is not running.
    pub owner: String,
    /// The serial number of the call that requests all objects. Its answer is processed among the
    /// signals, in the order of arrival.
    pub listing: u32,
    /// The adapters by object path.
    adapters: BTreeMap<String, Seen>,
    devices: HashMap<String, Device>,
    pub monitors: Registry,
    pipeline: Pipeline,
}

/// An adapter and the state of its scan.
#[derive(Clone, Debug)]
pub struct Seen {
    pub adapter: Adapter,
    /// BlueZ can scan passively on it.
    pub passive: bool,
    /// Advertisements on it are reported. Advertisements of another program's discovery, on an
    /// adapter that the agent does not use, are not.
    pub reporting: bool,
    /// Advertisements since it appeared.
    pub heard: u64,
    /// The first few advertisers since `forget_advertisers`.
    advertisers: HashSet<String>,
}

#[derive(Debug)]
struct Device {
    advertisement: Advertisement,
    adapter_path: String,
    /// A program is connected to it, so a name or service may have been read instead of advertised.
    connected: bool,
    last_heard: Timestamp,
}

impl Objects {
    pub fn new(pipeline: Pipeline) -> Self {
        Self {
            owner: String::new(),
            listing: 0,
            adapters: BTreeMap::new(),
            devices: HashMap::new(),
            monitors: Registry::default(),
            pipeline,
        }
    }

    pub fn pipeline(&mut self) -> &mut Pipeline {
        &mut self.pipeline
    }

    pub fn adapters(&self) -> impl Iterator<Item = (&String, &Seen)> {
        self.adapters.iter()
    }

    pub fn adapter(&self, path: &str) -> Option<&Seen> {
        self.adapters.get(path)
    }

    pub fn set_reporting(&mut self, path: &str, reporting: bool) {
        if let Some(seen) = self.adapters.get_mut(path) {
            seen.reporting = reporting;
        }
    }

    pub fn forget_advertisers(&mut self, path: &str) {
        if let Some(seen) = self.adapters.get_mut(path) {
            seen.advertisers.clear();
        }
    }

    /// bluetoothd has started, ended, or been replaced: everything known is void.
    pub fn set_owner(&mut self, owner: &str) {
        self.owner = owner.to_owned();
        self.adapters.clear();
        self.devices.clear();
    }

    /// All objects.
    pub fn load(&mut self, objects: &Value<'_>, at: Timestamp) {
        for (path, interfaces) in objects.entries() {
            if let Some(path) = path
                .as_str()
                .filter(|path| !self.adapters.contains_key(*path))
            {
                self.added(path, interfaces, at, false);
            }
        }
    }

    /// Interfaces were added to an object; `heard` if the radio is the cause. True if adapters
    /// changed.
    pub fn added(
        &mut self,
        path: &str,
        interfaces: &Value<'_>,
        at: Timestamp,
        heard: bool,
    ) -> bool {
        if let Some(properties) = interfaces.get(DEVICE) {
            self.device_changed(path, properties, &[], at, heard);
        }
        if let Some(properties) = interfaces.get(ADAPTER) {
            let mut seen = Seen::new(path);
            seen.change(properties);
            self.adapters.insert(path.to_owned(), seen);
        }
        if let Some(properties) = interfaces.get(MONITOR_MANAGER)
            && let Some(seen) = self.adapters.get_mut(path)
        {
            seen.passive = can_listen_passively(properties);
        }
        interfaces.get(ADAPTER).is_some() || interfaces.get(MONITOR_MANAGER).is_some()
    }

    /// Interfaces were removed from an object. True if adapters changed.
    pub fn removed(&mut self, path: &str, interfaces: &[Value<'_>]) -> bool {
        let is_removed = |interface| {
            interfaces
                .iter()
                .any(|name| name.as_str() == Some(interface))
        };
        if is_removed(DEVICE) {
            self.devices.remove(path);
        }
        if !is_removed(ADAPTER) {
            return false;
        }
        self.devices.retain(|_, device| device.adapter_path != path);
        self.adapters.remove(path).is_some()
    }

    /// Properties of an object changed. True if adapters changed.
    pub fn changed(
        &mut self,
        path: &str,
        interface: &str,
        properties: &Value<'_>,
        invalidated: &[Value<'_>],
        at: Timestamp,
    ) -> bool {
        match interface {
            DEVICE => {
                self.device_changed(path, properties, invalidated, at, true);
                false
            }
            ADAPTER => match self.adapters.get_mut(path) {
                Some(seen) => {
                    seen.change(properties);
                    true
                }
                None => false,
            },
            _ => false,
        }
    }

    fn device_changed(
        &mut self,
        path: &str,
        properties: &Value<'_>,
        invalidated: &[Value<'_>],
        at: Timestamp,
        by_radio: bool,
    ) {
        let device = match self.devices.get_mut(path) {
            Some(device) => device,
            None => {
                let Some(device) = Device::new(path, at) else {
                    return;
                };
                if self.devices.len() >= MAX_DEVICES {
                    self.forget_stale(at);
                }
                self.devices.entry(path.to_owned()).or_insert(device)
            }
        };
        let heard = device.change(properties, invalidated);
        let Some(seen) = self.adapters.get_mut(&device.adapter_path) else {
            return;
        };
        if !(heard && by_radio && seen.reporting) {
            return;
        }
        device.last_heard = at;
        if device.advertisement.adapter_address.as_ref() != Some(&seen.adapter.address) {
            device.advertisement.adapter_address = Some(seen.adapter.address.clone());
        }
        seen.heard += 1;
        if seen.advertisers.len() < SEVERAL_ADVERTISERS
            && !seen.advertisers.contains(&device.advertisement.address)
        {
            seen.advertisers
                .insert(device.advertisement.address.clone());
        }
        self.pipeline.heard(at, &device.advertisement);
    }

    fn forget_stale(&mut self, now: Timestamp) {
        let mut age_secs = 600;
        while self.devices.len() > MAX_DEVICES / 4 * 3 {
            // The loop ends even if the clock was set back: at age 0 nothing is kept.
            self.devices.retain(|_, device| {
                (0..age_secs).contains(&(now.as_secs() - device.last_heard.as_secs()))
            });
            age_secs /= 2;
        }
    }
}

/// Whether these are the properties of a monitor manager that accepts our monitors.
fn can_listen_passively(manager: &Value<'_>) -> bool {
    let kinds = manager
        .get("SupportedMonitorTypes")
        .map(Value::items)
        .unwrap_or_default();
    kinds
        .iter()
        .any(|kind| kind.as_str() == Some("or_patterns"))
}

impl Seen {
    pub fn new(path: &str) -> Self {
        Self {
            adapter: Adapter {
                address: String::new(),
                name: path.rsplit('/').next().unwrap_or_default().to_owned(),
                alias: None,
                powered: false,
                discovering: None,
                address_type: None,
                manufacturer: None,
                modalias: None,
            },
            passive: false,
            reporting: false,
            heard: 0,
            advertisers: HashSet::new(),
        }
    }

    pub fn change(&mut self, properties: &Value<'_>) {
        let adapter = &mut self.adapter;
        for (name, value) in properties.entries() {
            let text = || value.as_str().map(str::to_owned);
            match name.as_str() {
                Some("Address") => {
                    adapter.address = text().unwrap_or_default().to_ascii_uppercase()
                }
                Some("Alias") => adapter.alias = text(),
                Some("AddressType") => adapter.address_type = text(),
                Some("Modalias") => adapter.modalias = text(),
                Some("Manufacturer") => {
                    adapter.manufacturer = value.as_int().map(|id| format!("{id:04x}"))
                }
                Some("Powered") => adapter.powered = value.as_bool().unwrap_or_default(),
                Some("Discovering") => adapter.discovering = value.as_bool(),
                _ => {}
            }
        }
    }

    pub fn is_discovering(&self) -> bool {
        self.adapter.discovering == Some(true)
    }

    pub fn heard_several(&self) -> bool {
        self.advertisers.len() >= SEVERAL_ADVERTISERS
    }
}

impl Device {
    /// `None` if the path is not a device's.
    fn new(path: &str, at: Timestamp) -> Option<Self> {
        let (adapter_path, name) = path.rsplit_once('/')?;
        let address = name
            .strip_prefix("dev_")?
            .replace('_', ":")
            .to_ascii_uppercase();
        is_address(&address).then(|| Self {
            advertisement: Advertisement {
                address,
                ..Advertisement::default()
            },
            adapter_path: adapter_path.to_owned(),
            connected: false,
            last_heard: at,
        })
    }

    /// True if only an advertisement can have caused this change.
    fn change(&mut self, properties: &Value<'_>, invalidated: &[Value<'_>]) -> bool {
        let (mut heard, mut read_or_heard) = (false, false);
        let advertisement = &mut self.advertisement;
        for (name, value) in properties.entries() {
            match name.as_str().unwrap_or_default() {
                "RSSI" => {
                    advertisement.rssi = level(value);
                    heard = true;
                }
                "TxPower" => {
                    advertisement.tx_power = level(value);
                    heard = true;
                }
                "ManufacturerData" => {
                    replace(&mut advertisement.manufacturer_data, value, company_key);
                    heard = true;
                }
                "ServiceData" => {
                    replace(&mut advertisement.service_data, value, uuid_key);
                    heard = true;
                }
                "AdvertisingFlags" | "AdvertisingData" => heard = true,
                "UUIDs" => {
                    advertisement.service_uuids = value
                        .items()
                        .iter()
                        .filter_map(Value::as_str)
                        .map(short_uuid)
                        .collect();
                    // BlueZ does not guarantee an order; another order is not another payload.
                    advertisement.service_uuids.sort_unstable();
                    read_or_heard = true;
                }
                "Name" => {
                    advertisement.name = value.as_str().map(str::to_owned);
                    read_or_heard = true;
                }
                "AddressType" => advertisement.address_type = value.as_str().map(str::to_owned),
                "Connected" => self.connected = value.as_bool().unwrap_or_default(),
                _ => {}
            }
        }
        for name in invalidated {
            match name.as_str() {
                Some("RSSI") => advertisement.rssi = None,
                Some("TxPower") => advertisement.tx_power = None,
                _ => {}
            }
        }
        heard || (read_or_heard && !self.connected)
    }
}

fn level(value: &Value<'_>) -> Option<i16> {
    value.as_int().and_then(|level| level.try_into().ok())
}

/// Replaces payloads. The identifiers are nearly always equal: then only the bytes are replaced.
fn replace(
    data: &mut BTreeMap<String, Payload>,
    value: &Value<'_>,
    key_of: fn(&Value<'_>) -> Option<Key>,
) {
    let entries = dictionary(value);
    let new = || {
        entries
            .iter()
            .filter_map(|(id, bytes)| Some((key_of(id)?, bytes.as_bytes()?)))
    };
    let mut count = 0;
    for (key, bytes) in new() {
        count += 1;
        let Some(Payload(kept)) = data.get_mut(key.as_str()) else {
            count = usize::MAX;
            break;
        };
        kept.clear();
        kept.extend_from_slice(bytes);
    }
    if count != data.len() {
        *data = new()
            .map(|(key, bytes)| (key.as_str().to_owned(), Payload(bytes.to_vec())))
            .collect();
    }
}

/// A dictionary, or one in an array, which some mocks of BlueZ send.
fn dictionary<'v, 'a>(value: &'v Value<'a>) -> &'v [(Value<'a>, Value<'a>)] {
    match value {
        Value::Array(items) => items.first().map(Value::entries).unwrap_or_default(),
        value => value.entries(),
    }
}

/// An identifier in the wire format, without an allocation.
struct Key([u8; 36], usize);

impl Key {
    fn as_str(&self) -> &str {
        self.0
            .get(..self.1)
            .and_then(|text| std::str::from_utf8(text).ok())
            .unwrap_or_default()
    }
}

fn company_key(id: &Value<'_>) -> Option<Key> {
    let id = u16::try_from(id.as_int()?).ok()?;
    let mut text = [0; 36];
    hex::encode_to_slice(id.to_be_bytes(), text.get_mut(..4)?).ok()?;
    Some(Key(text, 4))
}

fn uuid_key(uuid: &Value<'_>) -> Option<Key> {
    let short = short_uuid_of(uuid.as_str()?);
    let mut text = [0; 36];
    text.get_mut(..short.len())?
        .copy_from_slice(short.as_bytes());
    text.make_ascii_lowercase();
    Some(Key(text, short.len()))
}

fn short_uuid(uuid: &str) -> String {
    short_uuid_of(uuid).to_ascii_lowercase()
}

/// The 4 digits of a 16-bit UUID, or the whole of any other.
fn short_uuid_of(uuid: &str) -> &str {
    match uuid.split_at_checked(8) {
        Some((head, tail))
            if head.starts_with(BASE_UUID_HEAD) && tail.eq_ignore_ascii_case(BASE_UUID_TAIL) =>
        {
            head.get(4..).unwrap_or(uuid)
        }
        _ => uuid,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{RadioConfig, queue};
    use super::*;
    use crate::ble::{Health, Heard};

    const HCI0: &str = "/org/bluez/hci0";
    const BEACON: &str = "/org/bluez/hci0/dev_C0_00_00_00_00_01";

    fn dict<'a>(entries: Vec<(&'a str, Value<'a>)>) -> Value<'a> {
        Value::Dict(
            entries
                .into_iter()
                .map(|(key, value)| (Value::Str(key), value))
                .collect(),
        )
    }

    fn objects() -> (Objects, queue::HeardReceiver) {
        let (sender, receiver) = queue::channel();
        let config = RadioConfig {
            dedup_window: std::time::Duration::ZERO,
            ..RadioConfig::default()
        };
        let mut objects = Objects::new(Pipeline::new(&config, Health::new(), sender));
        let adapter = dict(vec![(
            ADAPTER,
            dict(vec![("Address", Value::Str("00:11:22:33:44:55"))]),
        )]);
        objects.added(HCI0, &adapter, Timestamp::from_micros(0), true);
        objects.set_reporting(HCI0, true);
        (objects, receiver)
    }

    async fn heard(mut objects: Objects, mut receiver: queue::HeardReceiver) -> Vec<Advertisement> {
        objects.pipeline().finish(Timestamp::from_micros(0));
        drop(objects);
        let items = receiver.next().await.unwrap_or_default();
        items
            .into_iter()
            .flat_map(|item| match item {
                Heard::Events(events) => events
                    .parsed()
                    .map(|event| event.payload)
                    .collect::<Vec<_>>(),
                Heard::Window(window) => panic!("no window was requested: {window:?}"),
            })
            .collect()
    }

    #[tokio::test]
    async fn values_of_unexpected_types_are_ignored() {
        let (mut objects, receiver) = objects();
        let data = Value::Dict(vec![
            (Value::Int(0x0499), Value::Bytes(&[5, 1])),
            (Value::Int(-1), Value::Bytes(&[1])),
        ]);
        let properties = dict(vec![
            ("RSSI", Value::Str("loud")),
            ("TxPower", Value::Int(100_000)),
            // python-dbusmock sends a new device's dictionary in an array.
            ("ManufacturerData", Value::Array(vec![data])),
            ("ServiceData", Value::Bool(true)),
            ("UUIDs", Value::Int(3)),
            ("Name", Value::Array(vec![])),
        ]);
        objects.changed(BEACON, DEVICE, &properties, &[], Timestamp::from_micros(0));
        objects.changed(
            "/org/bluez/hci0/dev_nonsense",
            DEVICE,
            &properties,
            &[],
            Timestamp::from_micros(0),
        );
        objects.changed(
            "nonsense",
            DEVICE,
            &Value::Int(1),
            &[Value::Int(1)],
            Timestamp::from_micros(0),
        );
        let expected = Advertisement {
            adapter_address: Some("00:11:22:33:44:55".into()),
            address: "C0:00:00:00:00:01".into(),
            manufacturer_data: [("0499".to_owned(), Payload(vec![5, 1]))].into(),
            ..Advertisement::default()
        };
        assert_eq!(heard(objects, receiver).await, [expected]);
    }

    #[tokio::test]
    async fn properties_read_over_a_connection_are_not_advertisements() {
        let (mut objects, receiver) = objects();
        let at = Timestamp::from_micros(0);
        objects.changed(
            BEACON,
            DEVICE,
            &dict(vec![("Connected", Value::Bool(true))]),
            &[],
            at,
        );
        objects.changed(
            BEACON,
            DEVICE,
            &dict(vec![("Name", Value::Str("read over GATT"))]),
            &[],
            at,
        );
        objects.changed(BEACON, DEVICE, &dict(vec![]), &[Value::Str("RSSI")], at);
        assert!(heard(objects, receiver).await.is_empty());
    }

    #[test]
    fn devices_are_removed_with_bluez_and_bounded_otherwise() {
        let (mut objects, _receiver) = objects();
        for number in 0..20_000 {
            let path = format!(
                "{HCI0}/dev_C0_00_00_00_{:02X}_{:02X}",
                number / 256,
                number % 256
            );
            let at = Timestamp::from_micros(i64::from(number) * 1_000);
            objects.changed(
                &path,
                DEVICE,
                &dict(vec![("RSSI", Value::Int(-50))]),
                &[],
                at,
            );
            assert!(objects.devices.len() <= MAX_DEVICES);
        }
        let last = format!("{HCI0}/dev_C0_00_00_00_4E_1F");
        assert!(objects.devices.contains_key(&last), "the newest is kept");
        objects.removed(&last, &[Value::Str(DEVICE)]);
        assert!(!objects.devices.contains_key(&last));
        assert!(objects.removed(HCI0, &[Value::Str(ADAPTER)]));
        assert!(objects.devices.is_empty() && objects.adapter(HCI0).is_none());
    }

    #[test]
    fn identifiers_have_the_wire_format() {
        for (uuid, short) in [
            ("0000FCD2-0000-1000-8000-00805F9B34FB", "fcd2"),
            (
                "0001fcd2-0000-1000-8000-00805f9b34fb",
                "0001fcd2-0000-1000-8000-00805f9b34fb",
            ),
            (
                "6E400001-b5a3-f393-e0a9-e50e24dcca9e",
                "6e400001-b5a3-f393-e0a9-e50e24dcca9e",
            ),
            ("x", "x"),
        ] {
            assert_eq!(short_uuid(uuid), short);
            assert_eq!(uuid_key(&Value::Str(uuid)).unwrap().as_str(), short);
        }
        assert!(uuid_key(&Value::Str(&"x".repeat(100))).is_none());
        assert_eq!(company_key(&Value::Int(0x4c)).unwrap().as_str(), "004c");
        assert!(company_key(&Value::Int(0x1_0000)).is_none());
    }
}
