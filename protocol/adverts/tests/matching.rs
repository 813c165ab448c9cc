//! Recognition: what each kind of condition fits, how specific it is, and what is found among many.

#![allow(
    clippy::unwrap_used,
    reason = "a test that meets what it does not expect fails"
)]

use hub_adverts::Frame;
use hub_adverts::frame::uuid16;
use hub_adverts::matching::{Identifier, Recogniser, Tie};
use serde_json::json;

fn identifier(conditions: &[(&str, &str)]) -> Identifier {
    let conditions: Vec<_> = conditions
        .iter()
        .map(|(kind, value)| json!({"kind": kind, "value": value}))
        .collect();
    Identifier::parse(&json!({ "conditions": conditions })).unwrap()
}

const BEACON: &[u8] = &[
    0x02, 0x15, 0x65, 0x5F, 0x83, 0xCA, 0xAE, 0x16, 0xA1, 0x0A, 0x70, 0x2E, 0x31, 0xF3, 0x0D, 0x58,
    0xDD, 0x82, 0, 1, 0, 2, 0xC5,
];
const UID: &[u8] = &[
    0x00, 0xE7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 0,
];

#[test]
fn each_kind_fits_its_frames() {
    let service = [
        (uuid16(0xFCD2), [0x40, 1].as_slice()),
        (uuid16(0xFEAA), UID),
    ];
    let frame = Frame {
        address: Some([0xC4, 0x11, 3, 4, 5, 6]),
        name: Some("GVH5075_1234"),
        manufacturer_data: &[(0x0499, &[5, 6, 7]), (0x004C, BEACON)],
        service_data: &service,
        service_uuids: &[uuid16(0xFFF0)],
        ..Frame::default()
    };
    let cases = [
        ("MANUFACTURER_ID", "0499", "0498", 16),
        ("MANUFACTURER_PREFIX", "0499:0506", "0499:0507", 32),
        ("SERVICE_UUID", "fff0", "fff1", 16),
        ("SERVICE_DATA_UUID", "fcd2", "fcd3", 16),
        ("SERVICE_DATA_PREFIX", "fcd2:40", "fcd2:41", 24),
        ("NAME", "GVH5075_1234", "GVH5075", 104),
        ("NAME_PREFIX", "GVH5075", "GVH5076", 56),
        ("ADDRESS_PREFIX", "C4:11", "C4:12", 16),
        (
            "IBEACON",
            "655f83ca-ae16-a10a-702e-31f30d58dd82/1",
            "655f83ca-ae16-a10a-702e-31f30d58dd82/2",
            176,
        ),
        (
            "EDDYSTONE_UID",
            "0102030405060708090a/0b0c0d0e0f10",
            "0102030405060708090a/0b0c0d0e0f11",
            152,
        ),
        ("PAYLOAD_LENGTH", "0499:3", "0499:4", 24),
    ];
    for (kind, fitting, other, bits) in cases {
        let fits = identifier(&[(kind, fitting)]);
        assert_eq!(
            (fits.matches(&frame), fits.specificity()),
            (true, bits),
            "{kind}"
        );
        assert!(!identifier(&[(kind, other)]).matches(&frame), "{kind}");
        let recogniser = Recogniser::new(vec![(7, identifier(&[(kind, other)])), (8, fits)]);
        assert_eq!(
            recogniser
                .recognise(&frame)
                .map(|found| (found.model, found.identifier)),
            Some((8, 1)),
            "{kind}"
        );
    }
    assert_eq!(Recogniser::default().recognise(&frame), None);
    let long = identifier(&[("SERVICE_UUID", "ef090000-11d6-42ba-93b8-9dd7ec090ab0")]);
    assert_eq!(long.specificity(), 128);
    let masked = json!({"kind": "MANUFACTURER_PREFIX", "value": "0499:0706", "mask": "0fff"});
    let masked = Identifier::parse(&masked).unwrap();
    assert_eq!((masked.matches(&frame), masked.specificity()), (false, 28));
}

#[test]
fn conditions_hold_together_and_count_once() {
    let both = identifier(&[
        ("MANUFACTURER_ID", "0499"),
        ("MANUFACTURER_PREFIX", "0499:05"),
        ("NAME_PREFIX", "ab"),
    ]);
    assert_eq!(both.specificity(), 16 + 8 + 16);
    let frame = Frame {
        manufacturer_data: &[(0x0499, &[5])],
        ..Frame::default()
    };
    assert!(!both.matches(&frame));
    assert!(both.matches(&Frame {
        name: Some("abc"),
        ..frame
    }));
    // A length is that of the service's data where the identifier is about it.
    let service = identifier(&[("PAYLOAD_LENGTH", "181a:2"), ("SERVICE_DATA_UUID", "181a")]);
    assert!(service.matches(&Frame {
        service_data: &[(uuid16(0x181A), &[1, 2])],
        ..Frame::default()
    }));
    assert_eq!(service.specificity(), 24);
}

#[test]
fn a_mistake_is_reported_with_its_place() {
    let cases = [
        (json!({"conditions": []}), "/conditions"),
        (
            json!({"conditions": [{"kind": "COLOUR", "value": "red"}]}),
            "/conditions/0/kind",
        ),
        (
            json!({"conditions": [{"kind": "NAME", "value": ""}]}),
            "/conditions/0/value",
        ),
        (
            json!({"conditions": [{"kind": "NAME", "value": "a", "mask": "ff"}]}),
            "/conditions/0/mask",
        ),
        (
            json!({"conditions": [{"kind": "MANUFACTURER_PREFIX", "value": "0499:05", "mask": "ffff"}]}),
            "/conditions/0/mask",
        ),
        (
            json!({"conditions": [{"kind": "PAYLOAD_LENGTH", "value": "0499"}]}),
            "/conditions/0/value",
        ),
        (
            json!({"kind": "IBEACON", "value": "655f83ca-ae16-a10a-702e-31f30d58dd82/70000"}),
            "/value",
        ),
        (json!({"kind": "NAME", "value": "a", "nam": 1}), "/nam"),
        (
            json!({"conditions": [
                {"kind": "MANUFACTURER_PREFIX", "value": "0499:05"},
                {"kind": "MANUFACTURER_PREFIX", "value": "0499:06"}
            ]}),
            "/conditions/1/value",
        ),
    ];
    for (value, pointer) in cases {
        assert_eq!(
            Identifier::parse(&value).unwrap_err().pointer,
            pointer,
            "{value}"
        );
    }
}

#[test]
fn the_most_specific_wins_and_ties_are_reported() {
    let one = |value: &str| identifier(&[("MANUFACTURER_PREFIX", value)]);
    let recogniser = Recogniser::new(vec![
        (0, identifier(&[("MANUFACTURER_ID", "0499")])),
        (1, one("0499:05")),
        (2, one("0499:06")),
        (3, one("0499:0507")),
    ]);
    assert_eq!(recogniser.ties(), []);
    let frame = Frame {
        manufacturer_data: &[(0x0499, &[5, 7])],
        ..Frame::default()
    };
    let models: Vec<usize> = recogniser
        .candidates(&frame)
        .iter()
        .map(|found| found.model)
        .collect();
    assert_eq!(models, [3, 1, 0]);
    // Other parts of a frame are no tie, nor are two identifiers of one model.
    let list = vec![
        (0, one("0499:05")),
        (0, one("0499:05")),
        (1, identifier(&[("NAME_PREFIX", "tps")])),
        (2, one("0499:05")),
    ];
    let ties = Recogniser::new(list).ties();
    assert_eq!(
        ties,
        [
            Tie {
                first: 0,
                second: 3
            },
            Tie {
                first: 1,
                second: 3
            }
        ]
    );
}

/// Each of 10,000 addresses and 500 payloads is found, and by looking at few identifiers.
#[test]
fn ten_thousand_identifiers_are_distinguished() {
    let address = |at: usize| format!("C4:11:{:02X}:{:02X}:00:01", at / 256, at % 256);
    let mut list: Vec<(usize, Identifier)> = (0..10_000)
        .map(|at| (at, identifier(&[("ADDRESS_PREFIX", &address(at))])))
        .collect();
    list.extend((0..500).map(|at| {
        (
            10_000 + at,
            identifier(&[("MANUFACTURER_PREFIX", &format!("0499:{at:04x}"))]),
        )
    }));
    let recogniser = Recogniser::new(list);
    assert_eq!(recogniser.ties(), []);
    for at in (0..10_000_u16).step_by(97) {
        let [high, low] = at.to_be_bytes();
        let frame = Frame {
            address: Some([0xC4, 0x11, high, low, 0, 1]),
            ..Frame::default()
        };
        assert_eq!(
            recogniser.recognise(&frame).map(|found| found.model),
            Some(usize::from(at))
        );
    }
    for at in 0..500_u16 {
        let payload = at.to_be_bytes();
        let frame = Frame {
            manufacturer_data: &[(0x0499, &payload)],
            ..Frame::default()
        };
        assert_eq!(
            recogniser.recognise(&frame).map(|found| found.model),
            Some(10_000 + usize::from(at))
        );
    }
}
