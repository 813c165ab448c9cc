//! Published advertisements of the built-in formats, and what they say.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect fails"
)]

mod common;

use common::{Advertisement, close, vectors};
use hub_adverts::{Builtin, Facts, Identity, Keys, Measurement, Outcome, Value};
use serde_json::Value as Json;

const STANDARD_GRAVITY: f64 = 9.80665;

/// The decoder of a format. None for devices that a declarative definition reads.
fn decoder_of(format: &str) -> Option<Builtin> {
    Some(match format {
        "ruuvi-df3" | "ruuvi-df5" | "device:ruuvi_url" => Builtin::Ruuvi,
        "bthome-v2" | "device:bthome-v1_bthome" => Builtin::BtHome,
        "eddystone-uid" | "eddystone-url" | "eddystone-tlm" | "eddystone-eid" => Builtin::Eddystone,
        "ibeacon" => Builtin::IBeacon,
        "mibeacon" => Builtin::MiBeacon,
        _ => return None,
    })
}

#[test]
fn every_vector_is_read_as_it_was_published() {
    let mut checked = 0;
    for vector in vectors() {
        let Some(decoder) = decoder_of(vector["format"].as_str().unwrap()) else {
            continue;
        };
        let advertisement = Advertisement::of(&vector);
        let key = vector["bindkey"]
            .as_str()
            .map(|key| hex::decode(key).unwrap());
        let keys = key
            .as_deref()
            .map_or(Keys::default(), |key| Keys::with_bind_key(key).unwrap());
        let mut out = Vec::new();
        let outcome = advertisement.with_frame(|frame| decoder.decode(frame, &keys, &mut out));
        check(&vector, outcome, &out);
        checked += 1;
    }
    assert_eq!(checked, 157 + 8);
}

fn check(vector: &Json, outcome: Outcome, out: &[Measurement]) {
    let id = vector["id"].as_str().unwrap();
    let Json::Object(expected) = &vector["expected"] else {
        assert!(
            matches!(outcome, Outcome::NotMine | Outcome::Invalid),
            "{id}: {outcome:?}"
        );
        assert!(out.is_empty(), "{id}: {out:?}");
        return;
    };
    let Outcome::Decoded(facts) = outcome else {
        panic!("{id}: {outcome:?}")
    };
    let mut seen = 0;
    for (field, value) in expected {
        if is_of_source(field) || is_identity(id, &facts, field, value) {
            continue;
        }
        match value {
            Json::Array(values) => {
                for (index, value) in values.iter().enumerate() {
                    seen += check_value(
                        vector,
                        out,
                        field,
                        value,
                        Some(u8::try_from(index).unwrap()),
                    );
                }
            }
            _ => seen += check_value(vector, out, field, value, None),
        }
    }
    if vector["format"] == "bthome-v2" {
        assert_eq!(seen, out.len(), "{id}: read more than there is: {out:?}");
    }
}

/// What a source calls the device, which no frame says.
fn is_of_source(field: &str) -> bool {
    field == "type"
}

/// Compares what belongs to the frame's identity. False for other fields.
fn is_identity(id: &str, facts: &Facts, field: &str, expected: &Json) -> bool {
    let found = match (field, facts.identity) {
        ("mac", Some(Identity::Mac(mac))) => mac.map(|byte| format!("{byte:02X}")).join(":"),
        ("mac", None)
            if expected.is_null()
                || id.starts_with("blemonitor-bthome")
                || id.ends_with("ruuvitag-v2") =>
        {
            return true;
        }
        ("uuid", Some(Identity::Beacon { uuid, .. })) => uuid.to_string(),
        ("major", Some(Identity::Beacon { major, .. })) => major.to_string(),
        ("minor", Some(Identity::Beacon { minor, .. })) => minor.to_string(),
        ("namespace", Some(Identity::Eddystone { namespace, .. })) => hex::encode(namespace),
        ("instance", Some(Identity::Eddystone { instance, .. })) => hex::encode(instance),
        // One source names the maker in the model too.
        ("model", _) => facts.model.unwrap().replace("HHCCJCY01", "HHCCJCY01HHCC"),
        _ => return false,
    };
    let expected = expected
        .as_str()
        .map_or_else(|| expected.to_string(), str::to_owned);
    assert!(
        found == expected
            || field == "model" && found.replace("HHCCJCY01HHCC", "HHCCJCY01") == expected,
        "{id}"
    );
    true
}

/// Compares one value, and gives how many measurements it stands for.
fn check_value(
    vector: &Json,
    out: &[Measurement],
    field: &str,
    expected: &Json,
    index: Option<u8>,
) -> usize {
    let id = vector["id"].as_str().unwrap();
    if let Json::Object(event) = expected {
        check_value(vector, out, field, &event["event"], index);
        let steps = event.get("steps").map_or(0, |steps| {
            let name = format!("{field}_steps");
            check_value(vector, out, &name, steps, index)
        });
        return 1 + steps;
    }
    let name = quantity_of(field, expected);
    let found: Vec<_> = out
        .iter()
        .filter(|found| found.quantity.name == name && found.index == index)
        .collect();
    if expected.is_null() {
        assert!(
            found.is_empty(),
            "{id}: {field} is not available, but was read"
        );
        return 0;
    }
    let [found] = found.as_slice() else {
        panic!("{id}: {name} {index:?} in {out:?}")
    };
    match (&found.value, expected) {
        (Value::Bool(found), Json::Bool(expected)) => assert_eq!(found, expected, "{id}: {field}"),
        (Value::Bool(found), Json::Number(expected)) => {
            assert_eq!(
                u64::from(*found),
                expected.as_u64().unwrap(),
                "{id}: {field}"
            );
        }
        (Value::Text(found), Json::String(expected)) => {
            assert_eq!(found, expected, "{id}: {field}")
        }
        (Value::Number(found), Json::Number(expected)) => {
            let expected = expected.as_f64().unwrap() * factor(vector, field);
            assert!(
                close(*found, expected),
                "{id}: {field} is {found}, not {expected}"
            );
        }
        (found, expected) => panic!("{id}: {field} is {found:?}, not {expected}"),
    }
    1
}

/// Our name of a field, which for some depends on whether it is a state or a number.
fn quantity_of(field: &str, value: &Json) -> String {
    let name = match (field, value.is_boolean()) {
        ("battery", true) => "battery_low",
        ("gas", true) => "gas_detected",
        ("moisture", true) => "moisture_detected",
        ("power", true) | ("switch", _) => "power_on",
        ("binary", _) => "generic_boolean",
        ("dewpoint", _) => "dew_point",
        ("volume_storage", _) => "volume_stored",
        ("weight", _) => "mass",
        ("pm2.5", _) => "pm25",
        ("version", _) => "telemetry_version",
        ("advCount", _) => "advertisement_count",
        (other, _) => other,
    };
    let mut snake = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

/// What a value is multiplied with to be in the unit of its quantity.
fn factor(vector: &Json, field: &str) -> f64 {
    let format = vector["format"].as_str().unwrap();
    if format.starts_with("ruuvi") && field.starts_with("acceleration") {
        return STANDARD_GRAVITY;
    }
    if format == "device:ruuvi_url" && field == "pressure" {
        return 100.0;
    }
    match (format, field) {
        ("mibeacon", "conductivity") => return 1e-4,
        ("mibeacon", "formaldehyde") => return 1e3,
        _ => {}
    }
    match vector["units"][field].as_str() {
        Some("hPa") => 100.0,
        Some("kWh") => 3.6e6,
        Some("lb") => 0.453_592_37,
        Some("L" | "mm") => 1e-3,
        Some("mL") => 1e-6,
        Some("µS/cm") => 1e-4,
        Some("°/s") => std::f64::consts::PI / 180.0,
        Some("m³/h" | "m³/hr") => 1.0 / 3600.0,
        _ => 1.0,
    }
}

/// Frames of a format cut short anywhere are read in part or not at all: what is read from a part
/// is what the whole says too.
#[test]
fn a_frame_cut_short_never_says_anything_else() {
    for vector in vectors() {
        let Some(decoder) = decoder_of(vector["format"].as_str().unwrap()) else {
            continue;
        };
        if vector["expected"].is_null() {
            continue;
        }
        let advertisement = Advertisement::of(&vector);
        let key = vector["bindkey"]
            .as_str()
            .map(|key| hex::decode(key).unwrap());
        let keys = key
            .as_deref()
            .map_or(Keys::default(), |key| Keys::with_bind_key(key).unwrap());
        let mut whole = Vec::new();
        advertisement.with_frame(|frame| decoder.decode(frame, &keys, &mut whole));
        for length in 0..advertisement.longest() {
            let mut part = Vec::new();
            let cut = advertisement.cut(length);
            let outcome = cut.with_frame(|frame| decoder.decode(frame, &keys, &mut part));
            if !matches!(outcome, Outcome::Decoded(_)) {
                assert!(
                    part.is_empty(),
                    "{}: {outcome:?} with {part:?}",
                    vector["id"]
                );
            }
            for found in part {
                // A text may end early where its length is that of the frame.
                let is_prefix = |whole: &Measurement| match (&whole.value, &found.value) {
                    (Value::Text(whole), Value::Text(found)) => whole.starts_with(found.as_str()),
                    (whole, found) => whole == found,
                };
                assert!(
                    whole
                        .iter()
                        .any(|whole| whole.quantity == found.quantity && is_prefix(whole)),
                    "{} cut to {length}: {found:?}",
                    vector["id"]
                );
            }
        }
    }
}

#[test]
fn what_a_decoder_reads_is_no_noise() {
    for vector in vectors() {
        let format = vector["format"].as_str().unwrap();
        let noise = Advertisement::of(&vector).with_frame(hub_adverts::builtin::noise::of);
        if !vector["expected"].is_null() && decoder_of(format).is_some() {
            assert_eq!(noise, None, "{}", vector["id"]);
        }
        if format.starts_with("device:apple_") || format == "device:google_find-hub" {
            assert!(noise.is_some(), "{}", vector["id"]);
        }
    }
}
