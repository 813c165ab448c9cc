//! `ON_CHANGE` on what sensors really sent, and on the trace.

use std::collections::{BTreeMap, HashMap};

use hub_adverts::library;
use hub_protocol::scan_config::ScanConfig;

use super::*;

/// The measurements of a RuuviTag over 26 minutes, about once a second.
const MEASURED: &str = include_str!("../../../../../tests/data/ble/ruuvi.csv");
const TRACE: &[u8] = include_bytes!("../../../../../tests/data/ble/trace.jsonl.zst");
const TAG: [u8; 6] = [0xC0, 0, 0, 0, 0x02, 0x33];
const DELTA: f64 = 0.1;

/// All models of the library, and a rule for what they send.
fn of_the_library(expected_interval_seconds: Option<i64>) -> Selection {
    let (mut devices, mut identifiers, mut protocols) = (Vec::new(), Vec::new(), Vec::new());
    for (at, model) in library::library().iter().enumerate() {
        let (id, device_uuid) = (at as i64 + 1, uuid::Uuid::from_u128(at as u128 + 1));
        devices.push(json!({
            "deviceUuid": device_uuid, "name": model.name, "deviceProtocolId": id,
            "expectedIntervalSeconds": expected_interval_seconds,
        }));
        let conditions = model
            .identifier_definitions
            .iter()
            .map(|definition| &definition["conditions"]);
        identifiers.extend(
            conditions.map(|one| json!({"id": id, "deviceUuid": device_uuid, "conditions": one})),
        );
        let mut protocol = model.protocol_definition.clone();
        (protocol["deviceProtocolId"], protocol["revision"]) = (json!(id), json!(1));
        protocols.push(protocol);
    }
    let routes = json!([
        {"layer": "HUB", "match": {"known": true}, "action": "ON_CHANGE", "quantities": {"temperature": DELTA}},
    ]);
    let config = json!({
        "revision": 1, "devices": devices, "identifiers": identifiers, "protocols": protocols,
        "routes": routes, "otherwise": "DROP", "keys": [],
    });
    let config: ScanConfig = serde_json::from_value(config).unwrap();
    Selection::new(&config, HUB.parse::<HubUuid>().unwrap()).unwrap()
}

fn router(selection: &Arc<Selection>) -> Router {
    Router::new(selection.clone(), &Arc::new(AtomicI64::new(0)))
}

/// Ruuvi data format 5. The tag was moved this often.
fn ruuvi(
    temperature: f64,
    humidity: f64,
    hectopascals: f64,
    movements: u8,
    number: u16,
) -> Advertisement {
    let steps = |value: f64, step: f64| ((value / step).round() as i32 as u16).to_be_bytes();
    let measured = [
        steps(temperature, 0.005),
        steps(humidity, 0.0025),
        steps(hectopascals * 100.0 - 50_000.0, 1.0),
    ];
    let resting = [0, 4, 0xff, 0xfc, 0x04, 0x0c, 0xac, 0x36, movements];
    let data = [
        &[5],
        measured.as_flattened(),
        &resting,
        &number.to_be_bytes(),
        &TAG,
    ]
    .concat();
    Advertisement {
        address: "C0:00:00:00:02:33".into(),
        manufacturer_data: [("0499".to_owned(), Payload(data))].into(),
        ..Advertisement::default()
    }
}

/// The temperatures are a recording, sent once each. The tag was not moved during the recording, so
/// the test adds movements. A tenant that has its RuuviTags report on change expects them once a
/// minute: the ten seconds of the library's model alone make a tenth of what a tag sends.
#[test]
fn a_measured_curve_is_kept_within_the_delta_with_a_tenth_of_the_upload() {
    for (interval, least_factor) in [(60, 10), (10, 9)] {
        let selection = Arc::new(of_the_library(Some(interval)));
        let mut router = router(&selection);
        let (mut held, mut last, mut movements) = (f64::NAN, i64::MIN, 0);
        let (mut received, mut reported) = (0, 0);
        for (number, line) in MEASURED.lines().skip(1).enumerate() {
            let values: Vec<f64> = line
                .split(',')
                .map(|value| value.parse().unwrap())
                .collect();
            let [secs, temperature, humidity, hectopascals] = values[..] else {
                panic!("{line}")
            };
            let is_moved = number % 300 == 150;
            movements += u8::from(is_moved);
            let sent = ruuvi(
                temperature,
                humidity,
                hectopascals,
                movements,
                number as u16,
            );
            let decision = router.pass(at(secs as i64), &sent, 1, number as u64, &mut Vec::new());
            received += 1;
            if decision == Decision::Selected {
                (held, last) = (temperature, secs as i64);
                reported += 1;
            }
            assert!(
                !is_moved || decision == Decision::Selected,
                "a movement at {secs} s is lost"
            );
            assert!(
                (held - temperature).abs() < DELTA,
                "{held} instead of {temperature} at {secs} s"
            );
            assert!(secs as i64 - last < interval, "no life sign at {secs} s");
        }
        assert_eq!(received, 1_413);
        assert!(
            reported * least_factor <= received,
            "{reported} of {received} with {interval} s"
        );
    }
}

/// The measurements in the trace's reports, as read without rules.
struct Held {
    values: HashMap<(&'static str, Option<u8>), Value>,
    event: Option<u64>,
}

/// The trace consists of published frames, also of different devices at one address. The reduction
/// of uploads cannot be measured with it, but it has events and counters of all kinds that must not
/// be lost.
#[test]
fn of_the_trace_nothing_is_lost() {
    let selection = Arc::new(of_the_library(None));
    let mut router = router(&selection);
    let mut all: BTreeMap<u64, Held> = BTreeMap::new();
    let (mut received, mut reported, mut temperatures, mut counts, mut events) = (0, 0, 0, 0, 0);
    let text = String::from_utf8(zstd::decode_all(TRACE).unwrap()).unwrap();
    for line in text.lines() {
        let (ms, advertisement) = report(line);
        let payload = router.hasher.hash_one(format!("{advertisement:?}"));
        let mut measured = Vec::new();
        let at = Timestamp::from_micros(ms * 1_000);
        let recognition = router.recognise(&advertisement, &Before::default());
        measured.append(&mut router.measured);
        let decision = router.pass(at, &advertisement, 1, payload, &mut Vec::new());
        if recognition.sender.device_uuid.is_none() {
            assert_eq!(decision, Decision::Withheld);
            continue;
        }
        received += 1;
        let device = all.entry(recognition.identity).or_insert_with(|| Held {
            values: HashMap::new(),
            event: None,
        });
        let event = measured
            .iter()
            .any(|one| one.kind == Kind::Event)
            .then_some(recognition.observation);
        if decision == Decision::Withheld {
            assert!(
                event.is_none() || event == device.event,
                "an event is lost: {line}"
            );
        } else {
            reported += 1;
            device.event = event.or(device.event);
        }
        for one in measured {
            let key = (one.quantity.name, one.index);
            if decision != Decision::Withheld {
                device.values.insert(key, one.value.clone());
            }
            let held = device.values.get(&key);
            match (one.kind, held, &one.value) {
                (Kind::Counter, held, value) => {
                    assert_eq!(held, Some(value), "a count is lost: {line}");
                    counts += 1;
                }
                (_, Some(Value::Number(held)), Value::Number(value)) if key.0 == "temperature" => {
                    assert!(
                        (held - value).abs() < DELTA,
                        "{held} instead of {value}: {line}"
                    );
                    temperatures += 1;
                }
                (_, None, _) if key.0 == "temperature" => panic!("a temperature is lost: {line}"),
                (Kind::Event, ..) => events += 1,
                _ => {}
            }
        }
    }
    assert!(
        temperatures > 1_000 && counts > 500 && events > 50,
        "{temperatures}, {counts}, {events}"
    );
    assert!(reported * 2 < received, "{reported} of {received}");
}

/// A line of the trace: payloads are hexadecimal there.
fn report(line: &str) -> (i64, Advertisement) {
    let line: Json = serde_json::from_str(line).unwrap();
    let data = |name: &str| {
        let data = line[name].as_object().into_iter().flatten();
        data.map(|(id, digits)| {
            (
                id.clone(),
                Payload(hex::decode(digits.as_str().unwrap()).unwrap()),
            )
        })
        .collect()
    };
    let text = |name: &str| line[name].as_str().map(str::to_owned);
    let uuids = line["serviceUuids"].as_array().into_iter().flatten();
    let advertisement = Advertisement {
        address: text("address").unwrap(),
        address_type: text("addressType"),
        name: text("name"),
        manufacturer_data: data("manufacturerData"),
        service_data: data("serviceData"),
        service_uuids: uuids
            .map(|uuid| uuid.as_str().unwrap().to_owned())
            .collect(),
        ..Advertisement::default()
    };
    (line["t_ms"].as_i64().unwrap(), advertisement)
}
