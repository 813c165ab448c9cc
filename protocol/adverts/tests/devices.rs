//! Published advertisements of devices are recognised among the whole library, and the model that
//! wins reads what their sources say. Sources have other names and units: `ROWS` maps them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect fails"
)]

mod common;

use std::collections::BTreeMap;

use common::{Advertisement, vectors};
use hub_adverts::library::{library, recogniser};
use hub_adverts::{Facts, Identity, Keys, Measurement, Outcome, Value};
use serde_json::Value as Json;

/// Beginnings of devices' names (separated by `|`, empty for all), the source's field, ours (with
/// `|` between alternatives, `-` for what no frame says), and what one of the source's unit is in
/// ours. The first row that fits counts. A field without a row is our quantity in our unit.
const ROWS: &[(&str, &str, &str, f64)] = &[
    // Names that one device has of its own.
    ("switchbot_w270160x", "motion", "moving", 1.0),
    ("xiaomi_m1s", "counter", "count", 1.0),
    ("xiaomi_xmmf01jqd", "button", "cube", 1.0),
    ("xiaomi_znms", "result", "fingerprint", 1.0),
    ("xiaomi_", "lock", "lock_action|lock", 1.0),
    // Labels of the sources.
    ("", "brand", "-", 1.0),
    ("", "type", "-", 1.0),
    ("", "model", "-", 1.0),
    ("", "model_id", "-", 1.0),
    ("", "device", "-", 1.0),
    ("", "uri", "-", 1.0),
    ("", "manufacturer", "-", 1.0),
    ("", "number_of_sectors", "-", 1.0),
    ("", "avgu", "-", 1.0),
    ("", "sumu", "-", 1.0),
    ("", "energy_unit", "-", 1.0),
    ("", "power_unit", "-", 1.0),
    // Encrypted and without a key.
    ("", "encr", "encrypted", 1.0),
    ("", "cipher", "encrypted", 1.0),
    ("", "ctr", "encrypted", 1.0),
    ("", "mic", "encrypted", 1.0),
    // Temperatures.
    (
        "inkbird_ibt|inkbird-tenergy",
        "tempc",
        "temperature_probe[0]",
        1.0,
    ),
    ("govee_h5055|inkbird", "tempc1", "temperature_probe[0]", 1.0),
    ("govee_h5055|inkbird", "tempc2", "temperature_probe[1]", 1.0),
    ("govee_h5055|inkbird", "tempc3", "temperature_probe[2]", 1.0),
    ("govee_h5055|inkbird", "tempc4", "temperature_probe[3]", 1.0),
    ("govee_h5055|inkbird", "tempc5", "temperature_probe[4]", 1.0),
    ("govee_h5055|inkbird", "tempc6", "temperature_probe[5]", 1.0),
    ("", "tempc2_dp", "dew_point", 1.0),
    ("", "tempc", "temperature", 1.0),
    ("", "tempc_max", "temperature_max", 1.0),
    ("", "tempc_min", "temperature_min", 1.0),
    ("", "time_max", "temperature_max_age", 1.0),
    ("", "time_min", "temperature_min_age", 1.0),
    ("", "dewpoint", "dew_point", 1.0),
    ("", "temperature_probe_1", "temperature_probe[0]", 1.0),
    ("", "temperature_probe_2", "temperature_probe[1]", 1.0),
    ("", "temperature_probe_3", "temperature_probe[2]", 1.0),
    ("", "temperature_probe_4", "temperature_probe[3]", 1.0),
    ("", "temperature_probe_5", "temperature_probe[4]", 1.0),
    ("", "temperature_probe_6", "temperature_probe[5]", 1.0),
    (
        "",
        "temperature_alarm_probe_1",
        "temperature_alarm_high[0]",
        1.0,
    ),
    (
        "",
        "temperature_alarm_probe_2",
        "temperature_alarm_high[1]",
        1.0,
    ),
    (
        "",
        "temperature_alarm_probe_3",
        "temperature_alarm_high[2]",
        1.0,
    ),
    (
        "",
        "temperature_alarm_probe_4",
        "temperature_alarm_high[3]",
        1.0,
    ),
    (
        "",
        "temperature_alarm_probe_5",
        "temperature_alarm_high[4]",
        1.0,
    ),
    (
        "",
        "temperature_alarm_probe_6",
        "temperature_alarm_high[5]",
        1.0,
    ),
    (
        "",
        "low_temperature_alarm_probe_1",
        "temperature_alarm_low[0]",
        1.0,
    ),
    (
        "",
        "low_temperature_alarm_probe_2",
        "temperature_alarm_low[1]",
        1.0,
    ),
    (
        "",
        "low_temperature_alarm_probe_3",
        "temperature_alarm_low[2]",
        1.0,
    ),
    (
        "",
        "low_temperature_alarm_probe_4",
        "temperature_alarm_low[3]",
        1.0,
    ),
    (
        "",
        "low_temperature_alarm_probe_5",
        "temperature_alarm_low[4]",
        1.0,
    ),
    (
        "",
        "low_temperature_alarm_probe_6",
        "temperature_alarm_low[5]",
        1.0,
    ),
    ("", "temperature_probe_tip", "temperature_tip", 1.0),
    ("", "meat_temperature", "temperature", 1.0),
    ("", "extprobe", "external_probe", 1.0),
    // Air, light, soil, liquids.
    ("", "hum", "humidity", 1.0),
    ("generic_tpms", "pres", "pressure", 1e5),
    ("", "pres", "pressure", 100.0),
    ("oral-b", "pressure", "brushing_pressure", 1.0),
    ("", "pressure", "pressure", 100.0),
    ("", "pm2.5", "pm25", 1.0),
    ("", "formaldehyde", "formaldehyde", 1e3),
    ("", "aqi", "air_quality_index", 1.0),
    ("", "lux", "illuminance", 1.0),
    ("", "lightlevel", "light_level|light", 1.0),
    ("", "moi", "moisture", 1.0),
    ("", "fer", "conductivity", 1e-4),
    ("", "lvl_cm", "liquid_level", 0.01),
    ("", "quality", "signal_quality", 1.0),
    ("", "level", "fill_level", 1.0),
    // Supply.
    ("", "batt", "battery", 1.0),
    ("", "volt", "voltage", 1.0),
    ("", "lowbatt", "battery_low", 1.0),
    ("", "plugged-in", "plug", 1.0),
    ("", "avg", "power", 1e3),
    ("", "sum", "energy", 3.6e6),
    ("", "energy", "energy", 3.6e6),
    ("", "constant", "pulses_per_unit", 1.0),
    ("", "week_day_total", "week_day_energy", 3.6e6 / 1500.0),
    // Motion. The sources leave the device's own unit.
    (
        "mopeka",
        "accx",
        "acceleration_x",
        STANDARD_GRAVITY / 1024.0,
    ),
    (
        "mopeka",
        "accy",
        "acceleration_y",
        STANDARD_GRAVITY / 1024.0,
    ),
    ("radioland|mikrotik", "accx", "acceleration_x", 1.0),
    ("radioland|mikrotik", "accy", "acceleration_y", 1.0),
    ("radioland|mikrotik", "accz", "acceleration_z", 1.0),
    ("", "accx", "acceleration_x", MILLI_GRAVITY),
    ("", "accy", "acceleration_y", MILLI_GRAVITY),
    ("", "accz", "acceleration_z", MILLI_GRAVITY),
    (
        "kkm|blustream",
        "acceleration",
        "acceleration",
        MILLI_GRAVITY,
    ),
    ("kkm", "acceleration_x", "acceleration_x", MILLI_GRAVITY),
    ("kkm", "acceleration_y", "acceleration_y", MILLI_GRAVITY),
    ("kkm", "acceleration_z", "acceleration_z", MILLI_GRAVITY),
    (
        "inode",
        "acceleration",
        "acceleration",
        STANDARD_GRAVITY / 8.0,
    ),
    (
        "inode",
        "acceleration_x",
        "acceleration_x",
        STANDARD_GRAVITY / 8.0,
    ),
    (
        "inode",
        "acceleration_y",
        "acceleration_y",
        STANDARD_GRAVITY / 8.0,
    ),
    (
        "inode",
        "acceleration_z",
        "acceleration_z",
        STANDARD_GRAVITY / 8.0,
    ),
    ("", "dropping", "free_fall", 1.0),
    ("", "rot", "rotation", 1.0),
    // Openings, buttons, states.
    ("switchbot_w270160x", "open", "position", 1.0),
    ("", "open", "opening|door|window", 1.0),
    ("switchbot", "direction", "travel_direction", 1.0),
    ("bthome", "switch", "power_on", 1.0),
    ("", "binary", "generic_boolean", 1.0),
    ("", "scopetested", "scope_tested", 1.0),
    ("", "sensingdistance", "sensing_distance", 1.0),
    ("", "in_ct", "entry_count", 1.0),
    ("", "out_ct", "exit_count", 1.0),
    ("", "push_ct", "press_count", 1.0),
    ("", "button1", "button[0]", 1.0),
    ("", "button2", "button[1]", 1.0),
    ("", "button3", "button[2]", 1.0),
    ("", "button4", "button[3]", 1.0),
    ("switchbot_x1", "state", "power_on|state|switch", 1.0),
    // Bodies and scales.
    ("", "bpm", "heart_rate", 1.0),
    ("", "act_bpm", "heart_rate", 1.0),
    ("atomax", "weight", "mass", 1e-3),
    ("", "weight", "mass", 1.0),
    ("", "non-stabilized_weight", "mass", 1.0),
    ("", "weight_unit", "display_unit", 1.0),
    ("xiaomi_xmtzc", "unit", "display_unit", 1.0),
    ("", "weighing_mode", "weighed", 1.0),
    ("oral-b", "mode", "brushing_mode", 1.0),
    ("oral-b", "sector", "brushing_sector", 1.0),
    ("oral-b", "duration", "brushing_duration", 1.0),
    ("oral-b", "counter", "brushing_duration", 1.0),
    ("", "toothbrush_state", "state", 1.0),
    ("", "sector_timer", "sector_duration", 1.0),
    // Beacons and numbers.
    ("", "uuid", "beacon_uuid", 1.0),
    ("", "major", "beacon_major", 1.0),
    ("", "minor", "beacon_minor", 1.0),
    ("", "txpower", "tx_power", 1.0),
    ("", "measured_power", "tx_power", 1.0),
    ("", "packet", "packet_id", 1.0),
    ("generic_tpms", "count", "channel", 1.0),
    ("", "time", "uptime", 1.0),
    ("", "version", "data_format", 1.0),
    ("", "beaconmodel", "model", 1.0),
    ("", "serial", "serial_number", 1.0),
    ("", "modeltype", "device_type_id", 1.0),
    ("otodata", "status", "state|problem", 1.0),
];

/// Beginnings of the device's name and of the source's field, its value, and our value.
const WORDS: &[(&str, &str, &str, &str)] = &[
    ("holyiot", "button", "toggle", "press"),
    ("miscale", "weight_unit", "lbs", "lb"),
    ("nodon", "button", "1", "press"),
    ("nodon", "button", "2", "double_press"),
    ("nodon", "button", "3", "triple_press"),
    ("nodon", "button", "9", "long_press"),
    ("nodon", "button", "10", "release"),
    ("oral-b", "pressure", "unknown pressure 40", "40"),
    ("oral-b", "sector", "sector 55", "55"),
    ("shelly", "button", "0", "null"),
    ("shelly", "button", "1", "press"),
    ("shelly", "button", "2", "double_press"),
    ("shelly", "button", "3", "triple_press"),
    ("shelly", "button", "9", "long_press"),
    ("shelly", "button", "11", "hold_press"),
    ("switchbot", "lightlevel", "dark", "false"),
    ("switchbot", "lightlevel", "bright", "true"),
    ("switchbot", "direction", "—", "null"),
    ("xiaomi_xmmf01jqd", "button", "left", "rotate_left"),
    ("xiaomi_xmmf01jqd", "button", "right", "rotate_right"),
    ("xiaomi_znms", "fingerprint", "1", "match_successful"),
    (
        "xiaomi_znms",
        "result",
        "match successful",
        "match_successful",
    ),
];

const STANDARD_GRAVITY: f64 = 9.80665;
const MILLI_GRAVITY: f64 = 0.009_806_65;
const POUND: f64 = 0.453_592_37;

/// The percentage of fields that must be read as their source has them.
const NEEDED: usize = 97;

#[test]
fn devices_are_read_as_their_sources_say() {
    let recogniser = recogniser();
    let (mut met, mut unmet, mut unknown) = (0, Vec::new(), Vec::new());
    let mut models: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for vector in vectors() {
        let id = vector["id"].as_str().unwrap();
        let Some(device) = vector["format"].as_str().unwrap().strip_prefix("device:") else {
            continue;
        };
        let Json::Object(expected) = &vector["expected"] else {
            continue;
        };
        let advertisement = Advertisement::of(&vector);
        let Some(found) = advertisement.with_frame(|frame| recogniser.recognise(frame)) else {
            unknown.push(id.to_owned());
            continue;
        };
        let model = &library()[found.model];
        let known = models.entry(device.to_owned()).or_default();
        if !known.contains(&model.key.as_str()) {
            known.push(&model.key);
        }
        let key = vector["bindkey"]
            .as_str()
            .map(|key| hex::decode(key).unwrap());
        let keys = key
            .as_deref()
            .map_or(Keys::default(), |key| Keys::with_bind_key(key).unwrap());
        let mut out = Vec::new();
        let outcome =
            advertisement.with_frame(|frame| model.protocol.decode(frame, keys, &mut out));
        let unit = expected.get("unit").or(expected.get("weight_unit"));
        let in_pounds = unit.is_some_and(|unit| unit == "lb" || unit == "lbs");
        let seen = Seen {
            device,
            advertisement: &advertisement,
            outcome,
            out: &out,
            in_pounds,
        };
        for (field, value) in expected {
            match seen.difference(field, value) {
                None => {}
                Some(None) => met += 1,
                Some(Some(difference)) => {
                    unmet.push(format!("{id} ({}): {field}: {difference}", model.key))
                }
            }
        }
    }
    for (device, keys) in &models {
        println!("{device}: {}", keys.join(", "));
    }
    println!("no model: {}", unknown.join(" "));
    println!(
        "{met} fields met, {} not:\n{}",
        unmet.len(),
        unmet.join("\n")
    );
    assert!(
        met * 100 >= (met + unmet.len()) * NEEDED,
        "{} of {} fields",
        met,
        met + unmet.len()
    );
}

/// The outcome of a frame.
struct Seen<'a> {
    device: &'a str,
    advertisement: &'a Advertisement,
    outcome: Outcome,
    out: &'a [Measurement],
    /// The source's masses are in pounds.
    in_pounds: bool,
}

impl Seen<'_> {
    /// None for what no frame says, else whether something differs.
    fn difference(&self, field: &str, expected: &Json) -> Option<Option<String>> {
        if field == "mac" {
            return Some(self.address_differs(expected));
        }
        let fits = |devices: &str| {
            devices
                .split('|')
                .any(|start| self.device.starts_with(start))
        };
        let row = ROWS
            .iter()
            .find(|(devices, name, ..)| *name == field && fits(devices));
        let (ours, size) = row.map_or((field, 1.0), |(_, _, ours, size)| (*ours, *size));
        match ours {
            "-" => return None,
            "encrypted" => {
                let met = matches!(self.outcome, Outcome::NeedsKey(_));
                return Some((!met).then(|| format!("the outcome is {:?}", self.outcome)));
            }
            _ => {}
        }
        let found: Vec<Value> = ours
            .split('|')
            .filter_map(|label| self.value(label))
            .collect();
        let word = WORDS
            .iter()
            .find(|(device, name, theirs, _)| {
                self.device.starts_with(device)
                    && field.starts_with(name)
                    && shown(expected) == *theirs
            })
            .map(|(_, _, _, ours)| {
                serde_json::from_str(ours).unwrap_or_else(|_| Json::from(*ours))
            });
        let wanted = word.as_ref().unwrap_or(expected);
        if wanted.is_null() {
            return Some((!found.is_empty()).then(|| format!("must be absent, is {found:?}")));
        }
        let size = if ours == "mass" && self.in_pounds {
            POUND
        } else {
            size
        };
        let met = found.iter().any(|found| same(found, wanted, size));
        Some((!met).then(|| {
            format!(
                "{ours} is {found:?}, expected {wanted} x {size}; {:?}",
                self.outcome
            )
        }))
    }

    fn facts(&self) -> Option<Facts> {
        match self.outcome {
            Outcome::Decoded(facts) | Outcome::NeedsKey(facts) | Outcome::WrongKey(facts) => {
                Some(facts)
            }
            Outcome::NotMine | Outcome::Invalid => None,
        }
    }

    /// The device's address is in the payload, or it is the advertiser's.
    fn address_differs(&self, expected: &Json) -> Option<String> {
        let Some(facts) = self.facts() else {
            return Some(format!("the outcome is {:?}", self.outcome));
        };
        let address = match facts.identity {
            Some(Identity::Mac(address)) => Some(address),
            _ => self.advertisement.address,
        };
        let text = address.map(|address| address.map(|byte| format!("{byte:02X}")).join(":"));
        (text.as_deref() != expected.as_str()).then(|| format!("is {text:?}, expected {expected}"))
    }

    /// The value of `quantity` or `quantity[index]`, or what the identity says instead. The first
    /// may be the only one.
    fn value(&self, label: &str) -> Option<Value> {
        let (name, index) = match label.split_once('[') {
            None => (label, None),
            Some((name, index)) => (
                name,
                Some(index.trim_end_matches(']').parse::<u8>().unwrap()),
            ),
        };
        let fits = |one: &&Measurement| {
            one.quantity.name == name
                && (one.index == index || index == Some(0) && one.index.is_none())
        };
        if let Some(found) = self.out.iter().find(fits) {
            return Some(found.value.clone());
        }
        let Some(Identity::Beacon { uuid, major, minor }) = self.facts()?.identity else {
            return None;
        };
        match name {
            "beacon_uuid" => Some(Value::Text(uuid.to_string())),
            "beacon_major" => Some(Value::Number(major.into())),
            "beacon_minor" => Some(Value::Number(minor.into())),
            _ => None,
        }
    }
}

fn shown(value: &Json) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether a value is what the source has, to the digits shown, which are rounded or cut off.
/// A whole number is exact.
fn same(found: &Value, expected: &Json, size: f64) -> bool {
    match (found, expected) {
        (Value::Bool(found), Json::Bool(expected)) => found == expected,
        (Value::Bool(found), Json::Number(expected)) => {
            expected.as_f64() == Some(f64::from(u8::from(*found)))
        }
        (Value::Number(found), Json::Bool(expected)) => *found == f64::from(u8::from(*expected)),
        (Value::Text(found), Json::String(expected)) => {
            found.replace('-', "") == expected.replace('-', "")
        }
        (Value::Number(found), Json::Number(expected)) => {
            let text = expected.to_string();
            let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
            let (found, expected) = (found / size, expected.as_f64().unwrap());
            let close = (found - expected).abs() <= 1e-6 * expected.abs().max(1e-3);
            let power = 10_f64.powi(i32::try_from(digits).unwrap());
            let off = |shown: f64| (shown - expected * power).abs() > 1e-6 * power.max(1.0);
            close || digits > 0 && !(off((found * power).round()) && off((found * power).trunc()))
        }
        _ => false,
    }
}
