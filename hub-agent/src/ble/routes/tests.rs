//! The rules on advertisements of thermometers with buttons, in BTHome.

mod recorded;

use std::sync::atomic::AtomicI64;

use hub_protocol::HubUuid;
use hub_protocol::ble::Payload;
use serde_json::{Value as Json, json};
use tokio::sync::watch;

use super::super::health::Health;
use super::super::queue::{self, HeardReceiver};
use super::super::reports::Pipeline;
use super::super::types::{HeardWindow, RadioConfig};
use super::*;

const MODEL: &str = "0190a000-0000-7000-8000-0000000000aa";
const HUB: &str = "0190a000-0000-7000-8000-000000000002";
const REGISTERED: &str = "C4:00:00:00:00:07";
const OTHER: &str = "C4:00:00:00:00:08";

fn config(routes: Json, otherwise: &str) -> Json {
    json!({
        "revision": 3,
        "devices": [
            {"deviceUuid": MODEL, "name": "Thermometer", "deviceProtocolId": 21},
            {"deviceUuid": MODEL, "deviceInstanceId": 7, "name": "Cold store", "address": REGISTERED},
        ],
        "identifiers": [
            {"id": 11, "deviceUuid": MODEL, "conditions": [{"kind": "SERVICE_DATA_UUID", "value": "fcd2"}]},
        ],
        "protocols": [
            {"deviceProtocolId": 21, "revision": 1, "kind": "BUILTIN", "definition": {"decoder": "bthome"}},
        ],
        "routes": routes, "otherwise": otherwise, "keys": [],
    })
}

fn compile(config: Json) -> Result<Selection, String> {
    let config = serde_json::from_value(config).map_err(|error| error.to_string())?;
    Selection::new(&config, HUB.parse::<HubUuid>().unwrap())
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_micros(1_769_846_400_000_000 + secs * 1_000_000)
}

fn advertisement(address: &str, data: &[u8]) -> Advertisement {
    Advertisement {
        adapter_address: Some("00:00:00:00:00:01".into()),
        address: address.into(),
        rssi: Some(-60),
        service_data: [("fcd2".to_owned(), Payload([&[0x40], data].concat()))].into(),
        ..Advertisement::default()
    }
}

/// Hundredths of a degree.
fn temperature(hundredths: i16) -> Vec<u8> {
    let [low, high] = hundredths.to_le_bytes();
    vec![0x02, low, high]
}

fn count(count: u8) -> Vec<u8> {
    vec![0x09, count]
}

/// A press with the number of its packet.
fn press(packet: u8) -> Vec<u8> {
    vec![0x00, packet, 0x3a, 0x01]
}

struct Lab {
    pipeline: Pipeline,
    receiver: HeardReceiver,
    selections: watch::Sender<Option<Arc<Selection>>>,
}

impl Lab {
    fn new(routes: Json, otherwise: &str) -> Self {
        let selection = Arc::new(compile(config(routes, otherwise)).unwrap());
        let (selections, selected) = watch::channel(Some(selection));
        let config = RadioConfig {
            selection: Some(selected),
            ..RadioConfig::default()
        };
        let (sender, receiver) = queue::channel();
        Self {
            pipeline: Pipeline::new(&config, Health::new(), sender),
            receiver,
            selections,
        }
    }

    fn hear(&mut self, secs: i64, address: &str, data: &[u8]) {
        self.pipeline.heard(at(secs), &advertisement(address, data));
    }

    /// The seconds at which events that were reported were received, and the windows.
    async fn end(mut self, secs: i64) -> (Vec<i64>, Vec<HeardWindow>) {
        self.pipeline.finish(at(secs));
        drop(self.pipeline);
        let (mut events, mut windows) = (Vec::new(), Vec::new());
        while let Some(items) = self.receiver.next().await {
            for item in items {
                match item {
                    Heard::Events(list) => events.extend(
                        list.iter()
                            .map(|(time, _)| time.as_secs() - at(0).as_secs()),
                    ),
                    Heard::Window(window) => windows.push(window),
                }
            }
        }
        (events, windows)
    }

    async fn events(self, secs: i64) -> Vec<i64> {
        let (events, windows) = self.end(secs).await;
        assert!(windows.is_empty(), "{windows:?}");
        events
    }
}

#[tokio::test]
async fn the_first_rule_that_fits_decides() {
    let drop = |fits: Json| json!([{"layer": "HUB", "match": fits, "action": "DROP"}]);
    let other_hub = "0190a000-0000-7000-8000-000000000003";
    // The reports that remain of the registered device, of the other one, and of an unknown one.
    for (fits, left) in [
        (json!({}), vec![]),
        (json!({"known": true}), vec![3]),
        (json!({"known": false}), vec![1, 2]),
        (json!({"deviceUuid": MODEL}), vec![3]),
        (json!({"deviceInstanceId": 7}), vec![2, 3]),
        (json!({"deviceInstanceId": 8}), vec![1, 2, 3]),
        (json!({"hubUuid": HUB, "known": true}), vec![3]),
        (json!({"hubUuid": other_hub}), vec![1, 2, 3]),
        (json!({"minRssiDbm": -60}), vec![]),
        (json!({"minRssiDbm": -59}), vec![1, 2, 3]),
        (json!({"companyId": "004C"}), vec![1, 2]),
        (json!({"serviceUuid": "FCD2"}), vec![3]),
        (
            json!({"serviceUuid": "0000FCD2-0000-1000-8000-00805F9B34FB"}),
            vec![3],
        ),
        (
            json!({"serviceUuid": "fcd2", "companyId": "004c"}),
            vec![1, 2, 3],
        ),
    ] {
        let mut lab = Lab::new(drop(fits.clone()), "FORWARD");
        lab.hear(1, REGISTERED, &temperature(2_100));
        lab.hear(2, OTHER, &temperature(2_100));
        let stranger = Advertisement {
            service_data: [].into(),
            manufacturer_data: [("004c".to_owned(), Payload(vec![0x10, 5]))].into(),
            ..advertisement("C4:00:00:00:00:09", &[])
        };
        lab.pipeline.heard(at(3), &stranger);
        assert_eq!(lab.events(4).await, left, "{fits}");
    }
    let both = json!([
        {"layer": "CLOUD", "action": "DROP"},
        {"layer": "HUB", "match": {"deviceInstanceId": 7}, "action": "FORWARD"},
        {"layer": "HUB", "match": {"known": true}, "action": "DROP"},
    ]);
    let mut lab = Lab::new(both, "FORWARD");
    lab.hear(1, REGISTERED, &temperature(2_100));
    lab.hear(2, OTHER, &temperature(2_100));
    assert_eq!(lab.events(3).await, [1]);
}

#[tokio::test]
async fn what_no_rule_fits_has_a_rule_of_its_own() {
    let cloud = json!([{"layer": "CLOUD", "match": {"known": true}, "action": "FORWARD"}]);
    for (routes, otherwise, events, windows) in [
        (json!([]), "FORWARD", vec![1, 20], 0),
        (json!([]), "DROP", vec![], 0),
        // The service selects from it.
        (cloud, "DROP", vec![1, 20], 0),
        (json!([]), "WINDOW", vec![], 2),
    ] {
        let mut lab = Lab::new(routes, otherwise);
        for secs in [1, 2, 20, 61] {
            lab.hear(
                secs,
                OTHER,
                &temperature(if secs == 61 { 2_100 } else { 2_200 }),
            );
        }
        let (reported, folded) = lab.end(62).await;
        let reported: Vec<i64> = reported.into_iter().filter(|secs| *secs < 61).collect();
        assert_eq!((reported, folded.len()), (events, windows), "{otherwise}");
    }
}

#[test]
fn without_a_rule_that_selects_nothing_is_applied() {
    let forward = json!([{"layer": "HUB", "match": {"known": true}, "action": "FORWARD"}]);
    assert!(!compile(config(forward, "FORWARD")).unwrap().is_selective());
    assert!(compile(config(json!([]), "WINDOW")).unwrap().is_selective());
}

#[test]
fn a_configuration_that_is_not_understood_is_refused() {
    let rule = |rule: Json| config(json!([rule]), "FORWARD");
    let mut no_protocol = config(json!([]), "FORWARD");
    no_protocol["protocols"][0]["kind"] = json!("MAGIC");
    for (config, reason) in [
        (
            rule(json!({"layer": "HUB", "action": "SAMPLE"})),
            "rule 0: everySeconds is missing",
        ),
        (
            rule(json!({"layer": "HUB", "action": "WINDOW", "everySeconds": 0})),
            "rule 0: everySeconds is 0",
        ),
        (
            rule(json!({"layer": "HUB", "action": "TELEPORT"})),
            "unknown variant",
        ),
        (
            rule(json!({"layer": "HUB", "action": "DROP", "match": {"weather": "rain"}})),
            "unknown field",
        ),
        (no_protocol, "protocol 21"),
    ] {
        let error = compile(config).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    // A rule of another hub is not this one's business.
    let other = json!({"layer": "HUB", "action": "SAMPLE", "match": {"hubUuid": HubUuid::new()}});
    assert!(compile(rule(other)).is_ok());
}

#[tokio::test]
async fn one_of_each_device_is_sampled_and_no_event_is_lost() {
    let mut lab = Lab::new(
        json!([{"layer": "HUB", "action": "SAMPLE", "everySeconds": 30}]),
        "FORWARD",
    );
    for secs in 0..90 {
        lab.hear(secs, REGISTERED, &temperature(2_000 + secs as i16));
        if secs >= 10 {
            lab.hear(secs, OTHER, &temperature(2_000 + secs as i16));
        }
    }
    assert_eq!(lab.events(90).await, [0, 10, 30, 40, 60, 70]);

    let mut lab = Lab::new(
        json!([{"layer": "HUB", "action": "SAMPLE", "everySeconds": 30}]),
        "FORWARD",
    );
    for (secs, data) in [
        (0, press(1)),
        (1, press(1)),
        (2, press(2)),
        (3, count(5)),
        (4, count(5)),
        (5, count(6)),
        (6, temperature(1)),
    ] {
        lab.hear(secs, OTHER, &data);
    }
    assert_eq!(lab.events(7).await, [0, 2, 3, 5]);
}

#[tokio::test]
async fn windows_fold_each_device_and_keep_events_and_counters() {
    let rules = json!([
        {"layer": "HUB", "match": {"deviceInstanceId": 7}, "action": "WINDOW", "everySeconds": 20},
        {"layer": "HUB", "action": "WINDOW", "everySeconds": 60},
    ]);
    let mut lab = Lab::new(rules, "DROP");
    for secs in 0..60 {
        lab.hear(secs, REGISTERED, &temperature(2_000 + secs as i16));
        lab.hear(secs, OTHER, &temperature(2_000));
        if secs % 10 == 5 {
            lab.hear(secs, OTHER, &press(secs as u8 / 20));
        }
    }
    let (events, windows) = lab.end(60).await;
    assert_eq!(events, [5, 25, 45], "a press that is repeated is one");
    let mut counts: Vec<(i64, i64)> = windows
        .iter()
        .map(|window| {
            (
                window.end.as_secs() - window.start.as_secs(),
                window.devices.iter().map(|one| one.count).sum(),
            )
        })
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, [(20, 20), (20, 20), (20, 20), (60, 66)]);
    assert!(windows.iter().all(|window| window.devices.len() == 1));
}

fn on_change(delta: f64) -> Json {
    json!([{"layer": "HUB", "action": "ON_CHANGE", "quantities": {"temperature": delta}}])
}

#[tokio::test]
async fn a_change_an_event_a_counter_and_a_life_sign_pass() {
    let mut lab = Lab::new(on_change(0.1), "FORWARD");
    for (secs, data) in [
        (0, temperature(2_100)),
        (1, temperature(2_109)),
        // The difference is the delta, although 21.1 - 21.0 is less in binary.
        (2, temperature(2_110)),
        (3, temperature(2_101)),
        // Back to a payload that was reported a moment ago.
        (4, temperature(2_100)),
        (5, press(1)),
        (6, press(1)),
        (7, press(2)),
        (8, count(1)),
        (9, count(1)),
        (10, count(2)),
        (11, temperature(2_100)),
        (609, temperature(2_100)),
        (610, temperature(2_100)),
        (611, temperature(2_100)),
    ] {
        lab.hear(secs, OTHER, &data);
    }
    assert_eq!(lab.events(612).await, [0, 2, 4, 5, 7, 8, 10, 610]);

    let mut quick = config(on_change(0.1), "FORWARD");
    quick["devices"][0]["expectedIntervalSeconds"] = json!(30);
    let mut lab = Lab::new(json!([]), "FORWARD");
    lab.selections
        .send_replace(Some(Arc::new(compile(quick).unwrap())));
    lab.pipeline.flush(at(0));
    for secs in 0..100 {
        lab.hear(secs, OTHER, &temperature(2_100));
    }
    assert_eq!(lab.events(100).await, [0, 30, 60, 90]);
}

#[tokio::test]
async fn what_is_encrypted_with_an_unknown_key_passes() {
    let mut lab = Lab::new(on_change(0.1), "FORWARD");
    for (secs, counter) in [(0, 1), (1, 1), (2, 2)] {
        let mut encrypted = advertisement(OTHER, &[]);
        let data = [
            &[0x41, 0xa4, 0x72, 0x66, 0xc9, 0x5f, 0x73][..],
            &[counter, 0, 0, 0],
            &[0x78, 0x23, 0x72, 0x14],
        ];
        encrypted.service_data = [("fcd2".to_owned(), Payload(data.concat()))].into();
        lab.pipeline.heard(at(secs), &encrypted);
    }
    assert_eq!(lab.events(3).await, [0, 2]);
}

/// Pseudo-random, from 0 to 1 (splitmix64).
fn random(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut x = *seed;
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Twenty sensors over a day, one value in ten seconds: they follow the sun, with noise, and with
/// steps of 0.1 K and of several degrees where a door opens.
#[tokio::test]
async fn a_curve_is_kept_within_the_delta_with_a_tenth_of_the_upload() {
    const SENSORS: usize = 20;
    let mut lab = Lab::new(on_change(0.1), "FORWARD");
    let mut seed = 20_261_123;
    let mut steps = [0.0; SENSORS];
    let mut sent: Vec<Vec<(i64, f64)>> = vec![Vec::new(); SENSORS];
    let (mut received, mut reported) = (0, 0);
    let mut kept: Vec<Vec<(i64, f64)>> = vec![Vec::new(); SENSORS];
    for secs in (0..86_400).step_by(10) {
        for sensor in 0..SENSORS {
            match random(&mut seed) {
                chance if chance < 0.002 => {
                    steps[sensor] += if random(&mut seed) < 0.5 { 0.1 } else { -0.1 }
                }
                chance if chance < 0.0025 => steps[sensor] = 6.0 * random(&mut seed) - 3.0,
                _ => {}
            }
            let sun = 2.0 * (secs as f64 / 86_400.0 * std::f64::consts::TAU + sensor as f64).sin();
            let noise = 0.06 * (random(&mut seed) - 0.5);
            let hundredths = ((20.0 + sun + steps[sensor] + noise) * 100.0).round() as i16;
            lab.hear(
                secs,
                &format!("C4:00:00:00:01:{sensor:02X}"),
                &temperature(hundredths),
            );
            sent[sensor].push((secs, f64::from(hundredths) / 100.0));
            received += 1;
        }
        lab.pipeline.flush(at(secs));
        // The events of one moment are never more than the queue holds, and often there are none.
        let waiting = tokio::time::timeout(Duration::ZERO, lab.receiver.next()).await;
        let items = waiting.ok().flatten().unwrap_or_default();
        for item in items {
            let Heard::Events(events) = item else {
                panic!("no window was requested")
            };
            for event in events.parsed() {
                let sensor = usize::from_str_radix(&event.payload.address[15..], 16).unwrap();
                let data = &event.payload.service_data["fcd2"].0;
                let value = f64::from(i16::from_le_bytes([data[2], data[3]])) / 100.0;
                kept[sensor].push((event.observed_at.as_secs() - at(0).as_secs(), value));
                reported += 1;
            }
        }
    }
    assert!(reported * 10 <= received, "{reported} of {received}");
    for (sent, kept) in sent.iter().zip(&kept) {
        let mut last = kept.iter().peekable();
        let mut held = f64::NAN;
        for (secs, value) in sent {
            while let Some((_, value)) = last.next_if(|(at, _)| at <= secs) {
                held = *value;
            }
            assert!(
                (held - value).abs() < 0.1 + 1e-9,
                "{held} instead of {value} at {secs} s"
            );
        }
    }
}

#[test]
fn what_is_remembered_is_bounded_and_the_newest_stays() {
    let selection = Arc::new(compile(config(on_change(0.1), "FORWARD")).unwrap());
    let mut router = Router::new(selection, &Arc::new(AtomicI64::new(0)));
    let mut pass = |number: usize| {
        let address = format!(
            "C4:00:00:{:02X}:{:02X}:{:02X}",
            number >> 16,
            number >> 8 & 0xff,
            number & 0xff
        );
        let sent = advertisement(&address, &temperature(2_100));
        let decision = router.pass(at(0), &sent, 1, number as u64, &mut Vec::new());
        assert!(router.readings.latest.len() + router.readings.earlier.len() <= 2 * KEPT_READINGS);
        (decision, router.devices.len())
    };
    for number in 0..3 * MAX_DEVICES {
        let (decision, remembered) = pass(number);
        assert_eq!(decision, Decision::Selected);
        assert!(remembered <= MAX_DEVICES);
        // The first device is used throughout, so it is never forgotten.
        assert_eq!(pass(0).0, Decision::Withheld);
    }
    assert_eq!(pass(0).0, Decision::Withheld);
    assert_eq!(pass(3 * MAX_DEVICES - 1).0, Decision::Withheld);
    assert_eq!(
        pass(1).0,
        Decision::Selected,
        "the least recently used is forgotten"
    );
}

#[tokio::test]
async fn another_configuration_ends_the_windows_of_the_last_one() {
    let mut lab = Lab::new(
        json!([{"layer": "HUB", "action": "WINDOW", "everySeconds": 3_600}]),
        "FORWARD",
    );
    lab.hear(0, OTHER, &temperature(2_100));
    lab.selections.send_replace(None);
    lab.pipeline.flush(at(1));
    lab.hear(2, OTHER, &temperature(2_100));
    let (events, windows) = lab.end(3).await;
    assert_eq!((events, windows.len()), (vec![2], 1));
}
