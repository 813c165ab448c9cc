//! The sensors of the sample, what they measure at a time, and the frames that they send.

use std::f64::consts::TAU;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hub_protocol::Timestamp;
use serde_json::{Map, Value, json};

const HOUR_SECS: f64 = 3600.0;
const DAY_SECS: f64 = 24.0 * HOUR_SECS;
/// How long ago the silent sensor was last heard.
const SILENT_SECS: i64 = 5 * 3600;
/// When the cold store warmed up, before the start of the demo, and for how long.
const WARM_FROM_SECS: f64 = 9.0 * HOUR_SECS;
const WARM_FOR_SECS: f64 = 1.5 * HOUR_SECS;

/// What a sensor measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A room with people: temperature, humidity and air pressure, as a RuuviTag sends them.
    Room,
    /// A cold store, whose door was open for a while last night.
    ColdStore,
    Freezer,
    /// Temperature and humidity as BTHome sends them.
    Hall,
    /// The same, of a sensor that has not been heard for hours.
    Silent,
    Door,
    Button,
}

/// A sensor of the sample.
pub struct Sensor {
    pub name: &'static str,
    pub address: &'static str,
    pub kind: Kind,
    /// The strength at each hub of the sample, in dBm; 0 where it is out of reach.
    rssi_dbm: [i64; 3],
    /// The charge of its battery, in percent.
    battery: u8,
}

const fn sensor(
    name: &'static str,
    address: &'static str,
    kind: Kind,
    rssi_dbm: [i64; 3],
    battery: u8,
) -> Sensor {
    Sensor {
        name,
        address,
        kind,
        rssi_dbm,
        battery,
    }
}

pub const SENSORS: [Sensor; 9] = [
    sensor("Office", "C6:11:5A:0D:21:01", Kind::Room, [-58, -81, 0], 96),
    sensor(
        "Meeting room",
        "C6:11:5A:0D:21:02",
        Kind::Room,
        [-71, -66, 0],
        91,
    ),
    sensor(
        "Cold store",
        "C6:11:5A:0D:21:03",
        Kind::ColdStore,
        [0, -62, -78],
        88,
    ),
    sensor(
        "Freezer",
        "C6:11:5A:0D:21:04",
        Kind::Freezer,
        [0, -69, -74],
        74,
    ),
    sensor("Hall", "D4:0E:84:31:7C:05", Kind::Hall, [-74, -70, -80], 83),
    sensor(
        "Loading dock",
        "D4:0E:84:31:7C:06",
        Kind::Hall,
        [0, -82, -59],
        9,
    ),
    sensor(
        "Archive",
        "D4:0E:84:31:7C:07",
        Kind::Silent,
        [-79, 0, -72],
        41,
    ),
    sensor(
        "Dock door",
        "D4:0E:84:31:7C:08",
        Kind::Door,
        [0, -77, -55],
        79,
    ),
    sensor(
        "Call button",
        "D4:0E:84:31:7C:09",
        Kind::Button,
        [-64, -76, 0],
        92,
    ),
];

/// The template of the library that reads its frames.
pub const fn template(kind: Kind) -> &'static str {
    match kind {
        Kind::Room | Kind::ColdStore | Kind::Freezer => "ruuvi/ruuvitag",
        Kind::Hall | Kind::Silent | Kind::Door | Kind::Button => "bthome/v2",
    }
}

impl Sensor {
    /// Its strength at a hub, in dBm, if the hub hears it.
    pub fn strength_at(&self, place: usize) -> Option<i64> {
        self.rssi_dbm.get(place).copied().filter(|dbm| *dbm != 0)
    }

    /// Seconds between two of its frames in the history.
    pub const fn every_secs(&self) -> i64 {
        match self.kind {
            Kind::Door => 600,
            Kind::Button => 5400,
            _ => 60,
        }
    }

    /// Whether it sends at a time, in seconds since 1970. `start` is the demo's first start.
    pub fn sends(&self, at: i64, start: i64) -> bool {
        self.kind != Kind::Silent || at < start - SILENT_SECS
    }

    /// The payloads of an advertisement at a time: manufacturer data and service data.
    pub fn payloads(&self, at: i64, start: i64) -> Map<String, Value> {
        let number = at.div_euclid(2);
        let (company, service) = match template(self.kind) {
            "ruuvi/ruuvitag" => (Some(self.ruuvi(at, start, number)), None),
            _ => (None, Some(self.bthome(at, start, number))),
        };
        let mut payloads = Map::new();
        if let Some(data) = company {
            let data = json!({"0499": STANDARD.encode(data)});
            payloads.insert("manufacturerData".to_owned(), data);
        }
        if let Some(data) = service {
            let data = json!({"fcd2": STANDARD.encode(data)});
            payloads.insert("serviceData".to_owned(), data);
        }
        payloads
    }

    /// An event that a hub uploads.
    pub fn event(&self, at: i64, start: i64, rssi_dbm: i64) -> Value {
        let mut event = self.payloads(at, start);
        event.insert(
            "observedAt".to_owned(),
            json!(Timestamp::from_micros(at * 1_000_000)),
        );
        event.insert("rssi".to_owned(), json!(rssi_dbm));
        event.insert("address".to_owned(), json!(self.address));
        event.insert("addressType".to_owned(), json!("random"));
        Value::Object(event)
    }

    /// A line of a recording, whose payloads are hexadecimal.
    pub fn recorded(&self, at: i64, start: i64) -> Map<String, Value> {
        let mut line = self.payloads(at, start);
        for payloads in line.values_mut().filter_map(Value::as_object_mut) {
            for payload in payloads.values_mut() {
                let bytes = payload.as_str().and_then(|text| STANDARD.decode(text).ok());
                *payload = json!(hex::encode(bytes.unwrap_or_default()));
            }
        }
        line.insert("address".to_owned(), json!(self.address));
        line.insert("addressType".to_owned(), json!("random"));
        line
    }

    /// Degrees Celsius.
    pub fn temperature(&self, at: i64, start: i64) -> f64 {
        let (mean, swing) = match self.kind {
            Kind::Room => (21.4, 1.3),
            Kind::ColdStore => (4.2, 0.4),
            Kind::Freezer => (-18.6, 0.5),
            _ => (17.8, 2.2),
        };
        let time = at as f64;
        // Warmest in the afternoon; compressors and people make it waver.
        let day = swing * (TAU * (time / DAY_SECS - 0.375)).sin();
        let waver = 0.15 * (TAU * time / 1700.0).sin() + 0.07 * (TAU * time / 431.0).sin();
        // Two rooms are never quite alike.
        let own = 0.2 * f64::from(self.battery % 7) - 0.6;
        mean + own + day + waver + self.warming(time - start as f64)
    }

    /// What a door that was left open adds, by the time since the first start.
    fn warming(&self, since: f64) -> f64 {
        let into = since + WARM_FROM_SECS;
        match self.kind {
            Kind::ColdStore if (0.0..WARM_FOR_SECS).contains(&into) => 7.0 * into / WARM_FOR_SECS,
            Kind::ColdStore if into >= WARM_FOR_SECS => {
                7.0 * (-(into - WARM_FOR_SECS) / (0.6 * HOUR_SECS)).exp()
            }
            _ => 0.0,
        }
    }

    /// Percent; falls as it becomes warmer.
    fn humidity(&self, at: i64, start: i64) -> f64 {
        let mean = match self.kind {
            Kind::ColdStore => 78.0,
            Kind::Freezer => 62.0,
            _ => 44.0,
        };
        let usual = match self.kind {
            Kind::Room => 21.4,
            Kind::ColdStore => 4.2,
            Kind::Freezer => -18.6,
            _ => 17.8,
        };
        (mean - 1.6 * (self.temperature(at, start) - usual)).clamp(5.0, 97.0)
    }

    /// RuuviTag, data format 5 (docs.ruuvi.com).
    fn ruuvi(&self, at: i64, start: i64, number: i64) -> Vec<u8> {
        let pressure_pa = 101_300.0 + 420.0 * (TAU * at as f64 / (2.6 * DAY_SECS)).sin();
        let millivolts = 2_500 + 5 * i64::from(self.battery);
        let fields = [
            (self.temperature(at, start) * 200.0).round() as i64,
            (self.humidity(at, start) * 400.0).round() as i64,
            pressure_pa.round() as i64 - 50_000,
            // At rest, 1 g downwards, in thousandths.
            12,
            -8,
            1_004,
            ((millivolts - 1_600) << 5) | ((4 + 40) / 2),
        ];
        let mut data = vec![5];
        // Each field has its lower 16 bits.
        data.extend(
            fields
                .iter()
                .flat_map(|field| (*field as u16).to_be_bytes()),
        );
        data.push(7);
        data.extend((number as u16).to_be_bytes());
        data.extend(octets(self.address));
        data
    }

    /// BTHome v2 (bthome.io/format).
    fn bthome(&self, at: i64, start: i64, number: i64) -> Vec<u8> {
        let mut data = vec![0x40, 0x00, number as u8, 0x01, self.battery];
        match self.kind {
            Kind::Door => data.extend([0x1A, u8::from(is_open(at))]),
            // Pressed once.
            Kind::Button => data.extend([0x3A, 0x01]),
            _ => {
                let temperature = (self.temperature(at, start) * 100.0).round() as i16;
                let humidity = (self.humidity(at, start) * 100.0).round() as u16;
                data.push(0x02);
                data.extend(temperature.to_le_bytes());
                data.push(0x03);
                data.extend(humidity.to_le_bytes());
            }
        }
        data
    }
}

/// Whether the dock door is open: for ten minutes of each hour and a half of the working day.
fn is_open(at: i64) -> bool {
    let of_day = at.rem_euclid(86_400);
    (6 * 3600..19 * 3600).contains(&of_day) && of_day.rem_euclid(5400) < 600
}

fn octets(address: &str) -> impl Iterator<Item = u8> {
    address
        .split(':')
        .filter_map(|octet| u8::from_str_radix(octet, 16).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_800_000_000;

    #[test]
    fn what_is_sent_is_read_as_meant() {
        for sensor in &SENSORS {
            for at in (START - 86_400..START + 86_400).step_by(1800) {
                let mut advertisement = json!({"address": sensor.address, "addressType": "random"});
                let members = advertisement.as_object_mut().expect("an object");
                members.extend(sensor.payloads(at, START));
                let advertisement: hub_protocol::ble::Advertisement =
                    serde_json::from_value(advertisement).expect("an advertisement");
                let frame = hub_adverts::advertisement::frame_of(&advertisement);
                let read = frame.with(hub_adverts::library::read);
                let (model, values) = match read {
                    Some(reading) => (reading.model.key.as_str(), reading.measurements),
                    None => panic!("{}: nothing reads {advertisement:?}", sensor.name),
                };
                assert_eq!(model, template(sensor.kind), "{}", sensor.name);
                let number = |name: &str| {
                    let found = values.iter().find(|one| one.quantity.name == name);
                    found.map(|one| one.value.clone())
                };
                if !matches!(sensor.kind, Kind::Door | Kind::Button) {
                    let expected = sensor.temperature(at, START);
                    match number("temperature") {
                        Some(hub_adverts::Value::Number(read)) => {
                            assert!((read - expected).abs() < 0.01, "{}: {read}", sensor.name);
                        }
                        other => panic!("{}: {other:?}", sensor.name),
                    }
                }
                if sensor.kind == Kind::Room {
                    match number("pressure") {
                        Some(hub_adverts::Value::Number(pressure)) => {
                            assert!((100_000.0..103_000.0).contains(&pressure), "{pressure}");
                        }
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
    }

    #[test]
    fn the_cold_store_warmed_up_and_recovered() {
        let store = &SENSORS[2];
        let at = |hours: f64| store.temperature(START + (hours * 3600.0) as i64, START);
        assert!(at(-12.0) < 5.5 && at(-7.6) > 9.5 && at(0.0) < 5.5 && at(5.0) < 5.5);
    }
}
