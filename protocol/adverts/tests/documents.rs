//! Examples of the formats' documents, and frames that no document has.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect fails"
)]

mod common;

use common::{Advertisement, address};
use hub_adverts::frame::uuid16;
use hub_adverts::{BindKey, Builtin, Frame, Identity, Keys, Kind, Measurement, Outcome, Value};

/// What a frame has to say, of one quantity, to the last bit.
#[derive(Debug)]
enum Expected {
    Number(f64),
    Text(&'static str),
    Truth(bool),
}
use Expected::{Number, Text, Truth};

impl PartialEq<Expected> for Value {
    fn eq(&self, expected: &Expected) -> bool {
        match (self, expected) {
            (Self::Number(found), Number(expected)) => found == expected,
            (Self::Text(found), Text(expected)) => found == expected,
            (Self::Bool(found), Truth(expected)) => found == expected,
            _ => false,
        }
    }
}

fn decode(decoder: Builtin, advertisement: &Advertisement) -> (Outcome, Vec<Measurement>) {
    let mut out = Vec::new();
    let outcome =
        advertisement.with_frame(|frame| decoder.decode(frame, &Keys::default(), &mut out));
    (outcome, out)
}

fn bthome(data: &str) -> (Outcome, Vec<Measurement>) {
    decode(
        Builtin::BtHome,
        &Advertisement::service(0xFCD2, &hex::decode(data).unwrap(), None),
    )
}

fn bthome_v1(data: &str) -> (Outcome, Vec<Measurement>) {
    decode(
        Builtin::BtHome,
        &Advertisement::service(0x181C, &hex::decode(data).unwrap(), None),
    )
}

fn ruuvi(data: &str) -> (Outcome, Vec<Measurement>) {
    decode(
        Builtin::Ruuvi,
        &Advertisement::manufacturer(0x0499, &hex::decode(data).unwrap()),
    )
}

fn mibeacon(data: &str) -> (Outcome, Vec<Measurement>) {
    decode(
        Builtin::MiBeacon,
        &Advertisement::service(0xFE95, &hex::decode(data).unwrap(), None),
    )
}

fn assert_is(out: &[Measurement], expected: &[(&str, Expected)]) {
    let found: Vec<_> = out
        .iter()
        .map(|found| (found.quantity.name, &found.value))
        .collect();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (quantity, expected) in expected {
        assert!(
            found
                .iter()
                .any(|(name, value)| name == quantity && *value == expected),
            "{expected:?} in {found:?}"
        );
    }
}

#[test]
fn every_object_of_bthome_is_read_as_its_example() {
    for (object, quantity, expected) in BTHOME_EXAMPLES {
        let (outcome, out) = bthome(&format!("40{object}"));
        assert!(
            matches!(outcome, Outcome::Decoded(_)),
            "{object}: {outcome:?}"
        );
        assert_eq!(out[0].quantity.name, *quantity, "{object}");
        assert_eq!(out[0].value, *expected, "{object}");
        assert_eq!(out[0].index, None, "{object}");
        for cut in 0..object.len() / 2 {
            let (outcome, out) = bthome(&format!("40{}", &object[..cut * 2]));
            assert!(
                outcome == Outcome::Invalid && out.is_empty(),
                "{object} cut to {cut}: {outcome:?} {out:?}"
            );
        }
    }
}

#[test]
fn what_occurs_more_than_once_has_an_index() {
    let (_, out) = bthome("403a003a013a033c00003c0103");
    let found: Vec<_> = out
        .iter()
        .map(|found| (found.quantity.name, found.index))
        .collect();
    assert_eq!(
        found,
        [
            ("button", Some(1)),
            ("button", Some(2)),
            ("dimmer", Some(1)),
            ("dimmer_steps", Some(1))
        ]
    );
    assert!(out.iter().all(|found| found.kind == Kind::Event));
    let (_, out) = bthome("403b0103053b0010");
    assert_eq!(out[0].value, Text("step_up"));
    assert_eq!(
        (&out[1].value, out[1].index),
        (&Value::Number(5.0), Some(0))
    );
    assert_eq!(
        (&out[2].value, out[2].index),
        (&Value::Text("16".into()), Some(1))
    );
}

#[test]
fn bthome_stops_at_what_it_does_not_know() {
    let (outcome, out) = bthome("400161fe0102ca09");
    assert!(matches!(outcome, Outcome::Decoded(_)));
    assert_is(&out, &[("battery", Number(97.0))]);
    let (outcome, out) = bthome("40016102ca");
    assert!(matches!(outcome, Outcome::Decoded(_)));
    assert_is(&out, &[("battery", Number(97.0))]);
    assert_eq!(bthome("600161").0, Outcome::NotMine);
    assert_eq!(bthome("200161").0, Outcome::NotMine);
    assert_eq!(bthome("40").0, Outcome::Invalid);
    assert_eq!(bthome("").0, Outcome::Invalid);
    let (outcome, out) = bthome("42b2188d38c1a404138a01");
    let Outcome::Decoded(facts) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        facts.identity,
        Some(Identity::Mac(address("A4:C1:38:8D:18:B2")))
    );
    assert_is(&out, &[("pressure", Number(100_883.0))]);
    let (_, out) = bthome("405302c328016153016153ff");
    assert_is(&out, &[("battery", Number(97.0)), ("text", Text("a"))]);
}

#[test]
fn the_first_version_of_bthome_tells_lengths_and_encodings() {
    let (outcome, out) = bthome_v1("0200092302c4090303bf1302fe01421361");
    let Outcome::Decoded(facts) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(facts.sequence.unwrap().value, 9);
    assert_is(
        &out,
        &[
            ("packet_id", Number(9.0)),
            ("temperature", Number(25.0)),
            ("humidity", Number(50.55)),
        ],
    );
    let (_, out) = bthome_v1(
        "0d5348656c6c6f20576f726c64210550 5d396164a5505d396164"
            .replace(' ', "")
            .as_str(),
    );
    assert_eq!(out[0].value, Text("Hello World!"));
    assert_eq!(
        (&out[1].value, out[1].index),
        (&Value::Text("2023-05-14T19:41:17Z".into()), Some(0))
    );
    assert_eq!(
        (&out[2].value, out[2].index),
        (&Value::Text("2023-05-14T19:41:17Z".into()), Some(1))
    );
    let (_, out) = bthome_v1("4502cdcc1445430200654502000000c0");
    assert_eq!(out[0].value, Number(23.81));
    assert_eq!(out[1].value, Number(12.8));
    assert_eq!(out.len(), 3);
    assert_eq!(bthome_v1("2302c4").0, Outcome::Invalid);
}

#[test]
fn ruuvi_air_is_read_as_documented() {
    let (outcome, out) = ruuvi("06170c5668c79e007000c90501d9ffcd004c884f");
    let Outcome::Decoded(facts) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(facts.identity, Some(Identity::MacTail([0x4C, 0x88, 0x4F])));
    let expected = [
        ("data_format", Number(6.0)),
        ("temperature", Number(29.5)),
        ("humidity", Number(55.3)),
        ("pressure", Number(101_102.0)),
        ("pm25", Number(11.2)),
        ("co2", Number(201.0)),
        ("voc_index", Number(10.0)),
        ("nox_index", Number(2.0)),
        ("illuminance", Number(13_026.67)),
        ("calibrating", Truth(false)),
        ("measurement_sequence", Number(205.0)),
    ];
    assert_is(&out, &expected);
    let (outcome, out) = ruuvi("068000ffffffffffffffffffffffffffffffffff");
    let Outcome::Decoded(facts) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(facts.identity, None);
    let expected = [
        ("data_format", Number(6.0)),
        ("calibrating", Truth(true)),
        // The format has no mark for a sequence that is not available.
        ("measurement_sequence", Number(255.0)),
    ];
    assert_is(&out, &expected);

    let (outcome, out) =
        ruuvi("e1170c5668c79e0065007004bd11ca00c90a0213e0acffffffdecdee01ffffffffffcbb8334c884f");
    let Outcome::Decoded(facts) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        facts.identity,
        Some(Identity::Mac(address("CB:B8:33:4C:88:4F")))
    );
    assert_eq!(facts.sequence.unwrap().bits, 24);
    let expected = [
        ("data_format", Number(225.0)),
        ("temperature", Number(29.5)),
        ("humidity", Number(55.3)),
        ("pressure", Number(101_102.0)),
        ("pm1", Number(10.1)),
        ("pm25", Number(11.2)),
        ("pm4", Number(121.3)),
        ("pm10", Number(455.4)),
        ("co2", Number(201.0)),
        ("voc_index", Number(20.0)),
        ("nox_index", Number(4.0)),
        ("illuminance", Number(13_027.0)),
        ("calibrating", Truth(true)),
        ("measurement_sequence", Number(14_601_710.0)),
    ];
    assert_is(&out, &expected);
    let (outcome, out) =
        ruuvi("e18000fffffffffffffffffffffffffffffffffffffffffffffffffffeffffffffffffffffffffff");
    assert!(matches!(outcome, Outcome::Decoded(_)), "{outcome:?}");
    assert_is(
        &out,
        &[
            ("data_format", Number(225.0)),
            ("calibrating", Truth(false)),
        ],
    );
}

#[test]
fn ruuvi_tags_are_read_as_documented() {
    let (_, out) = ruuvi("c512fc5394c37cac364200cdcbb8334c884f");
    let expected = [
        ("data_format", Number(197.0)),
        ("temperature", Number(24.3)),
        ("humidity", Number(53.49)),
        ("pressure", Number(100_044.0)),
        ("voltage", Number(2.977)),
        ("tx_power", Number(4.0)),
        ("movement_counter", Number(66.0)),
        ("measurement_sequence", Number(205.0)),
    ];
    assert_is(&out, &expected);
    let (outcome, out) = ruuvi("0843825b56324fe019c4bd4d6d3cecac6e1caabbccddeedd");
    let Outcome::NeedsKey(facts) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        facts.identity,
        Some(Identity::Mac(address("AA:BB:CC:DD:EE:DD")))
    );
    assert!(facts.encrypted && out.is_empty());
    assert_eq!(ruuvi("07").0, Outcome::NotMine);
    assert_eq!(ruuvi("").0, Outcome::NotMine);
    // https://ruu.vi/#BFwaAMjlQ, the example of format 4.
    let url = [&[0x10, 0x00, 0x03][..], b"ruu.vi/#BFwaAMjlQ"].concat();
    let (outcome, out) = decode(Builtin::Ruuvi, &Advertisement::service(0xFEAA, &url, None));
    assert!(matches!(outcome, Outcome::Decoded(_)));
    let expected = [
        ("data_format", Number(4.0)),
        ("temperature", Number(26.0)),
        ("humidity", Number(46.0)),
        ("pressure", Number(101_429.0)),
    ];
    assert_is(&out, &expected);
}

#[test]
fn plain_frames_of_xiaomi_devices_are_read() {
    for (data, expected) in MIBEACON_EXAMPLES {
        let (outcome, mut out) = mibeacon(data);
        assert!(
            matches!(outcome, Outcome::Decoded(_)),
            "{data}: {outcome:?}"
        );
        assert_eq!(out.remove(0).quantity.name, "frame_counter");
        assert_is(&out, expected);
    }
    // Not known, a mesh, another version, cut short.
    let (outcome, out) = mibeacon("5020ffffa3bf2e3b342d580d1004b40095020a10013b");
    let Outcome::Decoded(facts) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!((facts.model, out.len()), (None, 4));
    assert_eq!(mibeacon("d020aa01a3bf2e3b342d580d1004b4009502").1.len(), 1);
    assert_eq!(
        mibeacon("5010aa01a3bf2e3b342d580d1004b4009502").0,
        Outcome::NotMine
    );
    assert_eq!(
        mibeacon("5060aa01a3bf2e3b342d580d1004b4009502").0,
        Outcome::NotMine
    );
    assert_eq!(
        mibeacon("5020aa01a3bf2e3b342d580d1004b40095").0,
        Outcome::Invalid
    );
    // Two bytes tell how the device is paired.
    assert_eq!(mibeacon("3058480b01ffeeddccbbaa280100").1.len(), 1);
    let (_, out) = mibeacon("7050aa0101ffeeddccbbaa2801000a10013b");
    assert_eq!(out[1].value, Number(59.0));
}

#[test]
fn beacons_of_other_lengths_are_none() {
    let eddystone = |data: &str| {
        decode(
            Builtin::Eddystone,
            &Advertisement::service(0xFEAA, &hex::decode(data).unwrap(), None),
        )
        .0
    };
    assert_eq!(eddystone("20000bb81900000000640000"), Outcome::Invalid);
    assert_eq!(
        eddystone("20000bb8190000000064000003e800"),
        Outcome::Invalid
    );
    assert_eq!(eddystone("2002"), Outcome::NotMine);
    assert_eq!(eddystone("30e3454944"), Outcome::Invalid);
    assert_eq!(eddystone("10ee04676f6f"), Outcome::Invalid);
    assert_eq!(eddystone("10ee02670e"), Outcome::Invalid);
    assert_eq!(eddystone("10ee02"), Outcome::Invalid);
    assert_eq!(
        eddystone("410b0d83b421ea92034602c6b21119d5b626a3ce4bb0"),
        Outcome::NotMine
    );
    assert_eq!(eddystone(""), Outcome::NotMine);
}

#[test]
fn decoders_have_names() {
    for decoder in Builtin::ALL {
        assert_eq!(Builtin::named(decoder.name()), Some(decoder));
    }
    assert_eq!(Builtin::named("Ruuvi"), None);
}

/// A generator of numbers (xorshift), so that a failure can be repeated.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn no_bytes_make_a_decoder_panic() {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let keys = Keys {
        bind_key: Some(BindKey::Full(&[7; 16])),
    };
    let short = Keys {
        bind_key: Some(BindKey::Short(&[7; 12])),
    };
    let starts: [&[u8]; 12] = [
        &[0x40],
        &[0x41],
        &[0x43],
        &[0x02, 0x15],
        &[0x50, 0x20],
        &[0x58, 0x58],
        &[0x58, 0x30],
        &[0x05],
        &[0xE1],
        &[0x10, 0x00, 0x03],
        &[0x20, 0x00],
        &[],
    ];
    for round in 0..20_000 {
        let length =
            usize::try_from(numbers.next() % 64).unwrap() * if round % 100 == 0 { 26 } else { 1 };
        let start = starts[usize::try_from(numbers.next()).unwrap() % starts.len()];
        let mut data = start.to_vec();
        data.extend((0..length).map(|_| numbers.next().to_le_bytes()[0]));
        data.truncate(1_650);
        let services = [0xFCD2, 0x181C, 0x181E, 0xFE95, 0xFEAA, 0xFD6F]
            .map(|id| (uuid16(id), data.as_slice()));
        let companies = [0x0499, 0x004C, 0x0006, 0x0075].map(|id| (id, data.as_slice()));
        for (service, company) in services.iter().zip(companies.iter().cycle()) {
            let frame = Frame {
                address: Some([1, 2, 3, 4, 5, 6]),
                service_data: std::slice::from_ref(service),
                manufacturer_data: std::slice::from_ref(company),
                ..Frame::default()
            };
            hub_adverts::builtin::noise::of(&frame);
            for decoder in Builtin::ALL {
                for keys in [&keys, &short, &Keys::default()] {
                    let mut out = Vec::new();
                    let outcome = decoder.decode(&frame, keys, &mut out);
                    assert!(
                        out.is_empty() || matches!(outcome, Outcome::Decoded(_)),
                        "{data:02x?}: {outcome:?}"
                    );
                    for found in out {
                        assert!(
                            !matches!(found.value, Value::Number(number) if !number.is_finite())
                        );
                    }
                }
            }
        }
    }
}

/// Frames of MiBeacon without encryption, and all that they say beside their counter.
const MIBEACON_EXAMPLES: &[(&str, &[(&str, Expected)])] = &[
    (
        "5030e1048e54d3e63053e2011003010000",
        &[("cube", Text("rotate_left"))],
    ),
    (
        "71205d01015d01008d7cc40d081001400910025702",
        &[("moisture", Number(64.0)), ("conductivity", Number(0.0599))],
    ),
    (
        "5040d60301d6030a38c1a419100100",
        &[("opening", Truth(true))],
    ),
    (
        "5040d60301d6030a38c1a419100102",
        &[("opening", Truth(true)), ("door_left_open", Truth(true))],
    ),
    (
        "504063080101630838c1a4011003000000",
        &[("button", Text("press"))],
    ),
    (
        "5040f6070101f60738c1a40f0003640000",
        &[("motion", Truth(true)), ("light", Truth(true))],
    ),
    (
        "5040830a0183000a38c1a40f0003640000",
        &[("motion", Truth(true)), ("illuminance", Number(100.0))],
    ),
    ("4030dd032403000101", &[("motion", Truth(true))]),
    (
        "702291030fdbab531824d0090a0002750d07",
        &[("temperature", Number(34.45))],
    ),
    (
        "7022db006fc16fddf9810009002005c60d630d51",
        &[
            ("temperature", Number(36.87)),
            ("temperature_probe", Number(35.26)),
            ("temperature_probe", Number(34.27)),
            ("battery", Number(81.0)),
        ],
    ),
    (
        "7130890437115b174371e6091000020003",
        &[("toothbrush", Truth(true)), ("count", Number(3.0))],
    ),
    (
        "50449e0642918aeb441fd7060005ffffffff00",
        &[
            ("key_id", Text("unknown operator")),
            ("fingerprint", Text("match_successful")),
        ],
    ),
    (
        "50449e0643918aeb441fd70b000920020001807c442f61",
        &[
            ("lock_action", Text("unlock_outside_the_door")),
            ("lock", Truth(true)),
            ("lock_method", Text("biometrics")),
            ("key_id", Text("fingerprint 2")),
        ],
    ),
    (
        "503053013f7450e94124f8011003000000",
        &[("button", Text("press"))],
    ),
    (
        "504069150101691538c1a4011003020000",
        &[("button", Text("press")), ("button", Text("press"))],
    ),
    (
        "5040fd0d0101fd0d38c1a4011003060001",
        &[
            ("button", Text("long_press")),
            ("button", Text("long_press")),
            ("button", Text("long_press")),
        ],
    ),
    (
        "504080030180030a38c1a408000100",
        &[
            ("armed", Truth(true)),
            ("lock_method", Text("manual")),
            ("lock_action", Text("lock_outside_the_door")),
        ],
    ),
    (
        "505989180167e56638c1a41a4a0101",
        &[("opening", Truth(true)), ("door_left_open", Truth(true))],
    ),
];

/// bthome.io, "Format": the example of each object, and the value in the unit of its quantity.
const BTHOME_EXAMPLES: &[(&str, &str, Expected)] = &[
    ("518756", "acceleration", Number(22.151)),
    ("630057d0ff", "acceleration", Number(-3.123456)),
    ("0161", "battery", Number(97.0)),
    ("6001", "channel", Number(1.0)),
    ("12e204", "co2", Number(1250.0)),
    ("56e803", "conductivity", Number(0.1)),
    ("0960", "count", Number(96.0)),
    ("3d0960", "count", Number(24585.0)),
    ("3e2a2c0960", "count", Number(1611213866.0)),
    ("59ea", "count", Number(-22.0)),
    ("5aeaea", "count", Number(-5398.0)),
    ("5bea0234ea", "count", Number(-365690134.0)),
    ("434e34", "current", Number(13.39)),
    ("5d02ea", "current", Number(-5.63)),
    ("08ca06", "dew_point", Number(17.38)),
    ("5e9f8c", "direction", Number(359.99)),
    ("400c00", "distance", Number(0.012)),
    ("414e00", "distance", Number(7.8)),
    ("424e3400", "duration", Number(13.39)),
    ("4d12138a14", "energy", Number(1240535412000.0)),
    ("0a138a14", "energy", Number(4845841200.0)),
    ("4b138a14", "gas", Number(1346.067)),
    ("4c41018a01", "gas", Number(25821.505)),
    ("528756", "gyroscope", Number(22.151_f64.to_radians())),
    ("03bf13", "humidity", Number(50.55)),
    ("2e23", "humidity", Number(35.0)),
    ("05138a14", "illuminance", Number(13460.67)),
    ("6402", "light_level", Number(2.0)),
    ("065e1f", "mass", Number(80.3)),
    ("073e1d", "mass", Number(33.9559248182)),
    ("14020c", "moisture", Number(30.74)),
    ("2f23", "moisture", Number(35.0)),
    ("0d120c", "pm25", Number(3090.0)),
    ("0e021c", "pm10", Number(7170.0)),
    ("0b021b00", "power", Number(69.14)),
    ("5c02fbffff", "power", Number(-12.78)),
    ("5fa00f", "precipitation", Number(0.4)),
    ("04138a01", "pressure", Number(100883.0)),
    (
        "540c48656c6c6f20576f726c6421",
        "raw",
        Text("48656c6c6f20576f726c6421"),
    ),
    ("3f020c", "rotation", Number(307.4)),
    ("61ac0d", "rotational_speed", Number(3500.0)),
    ("6503", "settings_revision", Number(3.0)),
    ("444e34", "speed", Number(133.9)),
    ("624099dfff", "speed", Number(-2.123456)),
    ("57ea", "temperature", Number(-22.0)),
    ("58ea", "temperature", Number(-7.7)),
    ("451101", "temperature", Number(27.3)),
    ("02ca09", "temperature", Number(25.06)),
    ("530c48656c6c6f20576f726c6421", "text", Text("Hello World!")),
    ("505d396164", "timestamp", Text("2023-05-14T19:41:17Z")),
    ("133301", "tvoc", Number(307.0)),
    ("0c020c", "voltage", Number(3.074)),
    ("4a020c", "voltage", Number(307.4)),
    ("4e87562a01", "volume", Number(19.551879)),
    ("478756", "volume", Number(2.2151)),
    ("48dc87", "volume", Number(0.03478)),
    ("5587562a01", "volume_stored", Number(19.551879)),
    ("49dc87", "volume_flow", Number(34.78 / 3600.0)),
    ("4632", "uv_index", Number(5.0)),
    ("4f87562a01", "water", Number(19.551879)),
    ("1501", "battery_low", Truth(true)),
    ("1601", "battery_charging", Truth(true)),
    ("1700", "carbon_monoxide", Truth(false)),
    ("1801", "cold", Truth(true)),
    ("1900", "connectivity", Truth(false)),
    ("1a00", "door", Truth(false)),
    ("1b01", "garage_door", Truth(true)),
    ("1c01", "gas_detected", Truth(true)),
    ("0f01", "generic_boolean", Truth(true)),
    ("1d00", "heat", Truth(false)),
    ("1e01", "light", Truth(true)),
    ("1f01", "lock", Truth(true)),
    ("2001", "moisture_detected", Truth(true)),
    ("2100", "motion", Truth(false)),
    ("2201", "moving", Truth(true)),
    ("2301", "occupancy", Truth(true)),
    ("1100", "opening", Truth(false)),
    ("2400", "plug", Truth(false)),
    ("1001", "power_on", Truth(true)),
    ("2500", "presence", Truth(false)),
    ("2601", "problem", Truth(true)),
    ("2701", "running", Truth(true)),
    ("2800", "safety", Truth(false)),
    ("2901", "smoke", Truth(true)),
    ("2a00", "sound", Truth(false)),
    ("2b00", "tamper", Truth(false)),
    ("2c01", "vibration", Truth(true)),
    ("2d01", "window", Truth(true)),
    ("3a01", "button", Text("press")),
    ("3a02", "button", Text("double_press")),
    ("3a03", "button", Text("triple_press")),
    ("3a04", "button", Text("long_press")),
    ("3a05", "button", Text("long_double_press")),
    ("3a06", "button", Text("long_triple_press")),
    ("3a80", "button", Text("hold_press")),
    ("3b0000", "command", Text("off")),
    ("3b0001", "command", Text("on")),
    ("3b0002", "command", Text("toggle")),
    ("3b010305", "command", Text("step_up")),
    ("3b010405", "command", Text("step_down")),
    ("3c0103", "dimmer", Text("rotate_left")),
    ("3c020a", "dimmer", Text("rotate_right")),
    ("f00100", "device_type_id", Number(1.0)),
    ("f100010204", "firmware_version", Text("4.2.1.0")),
    ("f2000106", "firmware_version", Text("6.1.0")),
    ("0009", "packet_id", Number(9.0)),
];
