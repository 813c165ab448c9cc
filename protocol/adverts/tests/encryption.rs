//! Encrypted frames that are published with their keys and what they say.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect fails"
)]

mod common;

use common::{Advertisement, address, close, lines};
use hub_adverts::{Builtin, Decoder, Identity, Keys, Measurement, Outcome, Value};
use serde_json::{Value as Json, json};

const BTHOME: u16 = 0xFCD2;
const BTHOME_V1: u16 = 0x181E;
const MIBEACON: u16 = 0xFE95;

fn decode(service: u16, data: &str, from: &str, key: &str) -> (Outcome, Vec<Measurement>) {
    let decoder = if service == MIBEACON {
        Builtin::MiBeacon
    } else {
        Builtin::BtHome
    };
    let key = hex::decode(key).unwrap();
    let keys = if key.is_empty() {
        Keys::default()
    } else {
        Keys::with_bind_key(&key).unwrap()
    };
    let from = (!from.is_empty()).then(|| address(from));
    let mut out = Vec::new();
    let advertisement = Advertisement::service(service, &hex::decode(data).unwrap(), from);
    let outcome = advertisement.with_frame(|frame| decoder.decode(frame, &keys, &mut out));
    (outcome, out)
}

fn assert_says(name: &str, out: &[Measurement], expected: &Json) {
    for (quantity, expected) in expected.as_object().unwrap() {
        let Some(found) = out.iter().find(|found| found.quantity.name == *quantity) else {
            panic!("{name}: no {quantity} in {out:?}");
        };
        let agrees = match (&found.value, expected) {
            (Value::Number(found), Json::Number(expected)) => {
                close(*found, expected.as_f64().unwrap())
            }
            (Value::Text(found), Json::String(expected)) => found == expected,
            (Value::Bool(found), Json::Bool(expected)) => found == expected,
            _ => false,
        };
        assert!(
            agrees,
            "{name}: {quantity} is {:?}, not {expected}",
            found.value
        );
    }
}

/// bthome.io, "Encryption": the example, its key and its parts.
const EXAMPLE: &str = "41e445f3c9962b332211006c7c4519";
const EXAMPLE_KEY: &str = "231d39c1d7cc1ab1aee224cd096db932";
const EXAMPLE_ADDRESS: &str = "54:48:E6:8F:80:A5";

#[test]
fn the_example_of_bthome_is_decrypted() {
    let (outcome, out) = decode(BTHOME, EXAMPLE, EXAMPLE_ADDRESS, EXAMPLE_KEY);
    let Outcome::Decoded(facts) = outcome else {
        panic!("{outcome:?}")
    };
    let sequence = facts.sequence.unwrap();
    assert_eq!(
        (sequence.value, sequence.bits, sequence.authenticated),
        (1_122_867, 32, true)
    );
    assert!(facts.encrypted);
    assert_says(
        "example",
        &out,
        &json!({"temperature": 25.06, "humidity": 50.55}),
    );
    assert_eq!(out.len(), 2);
}

#[test]
fn other_keys_and_other_frames_are_told_apart() {
    let wrong_key = "814aac74c4f17b6c1581e1ab87816b99";
    for (data, from, key) in [
        (EXAMPLE, EXAMPLE_ADDRESS, wrong_key),
        (EXAMPLE, EXAMPLE_ADDRESS, "b853075158487ca39a5b5ea9"),
        (EXAMPLE, "54:48:E6:8F:80:A6", EXAMPLE_KEY),
        (
            "41e445f3c9962b332211006c7c4518",
            EXAMPLE_ADDRESS,
            EXAMPLE_KEY,
        ),
        (
            "41e445f3c9962b342211006c7c4519",
            EXAMPLE_ADDRESS,
            EXAMPLE_KEY,
        ),
        (
            "41e445f3c9962c332211006c7c4519",
            EXAMPLE_ADDRESS,
            EXAMPLE_KEY,
        ),
        (
            "45e445f3c9962b332211006c7c4519",
            EXAMPLE_ADDRESS,
            EXAMPLE_KEY,
        ),
    ] {
        let (outcome, out) = decode(BTHOME, data, from, key);
        let Outcome::WrongKey(facts) = outcome else {
            panic!("{data}: {outcome:?}")
        };
        assert!(!facts.sequence.unwrap().authenticated);
        assert!(out.is_empty());
    }
    let (outcome, out) = decode(BTHOME, EXAMPLE, EXAMPLE_ADDRESS, "");
    assert!(matches!(outcome, Outcome::NeedsKey(_)) && out.is_empty());
    let (outcome, out) = decode(BTHOME, EXAMPLE, "", EXAMPLE_KEY);
    assert!(matches!(outcome, Outcome::NeedsKey(_)) && out.is_empty());
    assert_eq!(
        decode(BTHOME, "4100112233", EXAMPLE_ADDRESS, EXAMPLE_KEY).0,
        Outcome::Invalid
    );
}

#[test]
fn bthome_with_an_address_in_the_payload_and_version_1_are_decrypted() {
    let climate = json!({"temperature": 25.06, "humidity": 50.55});
    let (outcome, out) = decode(
        BTHOME,
        "43a5808fe64854f196c06ffb4900112233f08ecbde",
        "",
        EXAMPLE_KEY,
    );
    let Outcome::Decoded(facts) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        facts.identity,
        Some(Identity::Mac(address(EXAMPLE_ADDRESS)))
    );
    assert_says("address", &out, &climate);
    let (outcome, out) = decode(
        BTHOME_V1,
        "fba435e4d3c312fb0011223357d90a99",
        EXAMPLE_ADDRESS,
        EXAMPLE_KEY,
    );
    assert!(matches!(outcome, Outcome::Decoded(_)), "{outcome:?}");
    assert_says("version 1", &out, &climate);
    let (_, out) = decode(
        BTHOME,
        "450aeb84467f85ba0100003188788c",
        "B4:35:22:F5:3D:A4",
        "90bffd73cb6b26ef58a7a8eba9232036",
    );
    assert_says("button", &out, &json!({"battery": 100.0}));
}

/// Frames of Xiaomi's devices with their keys, as the tests of xiaomi-ble publish them. The values
/// have the names and units of the library.
fn mibeacon_frames() -> Vec<Json> {
    lines("tests/data/mibeacon-encrypted.jsonl")
}

#[test]
fn mibeacon_frames_are_decrypted() {
    for frame in mibeacon_frames() {
        let [name, data, from, key] = parts(&frame);
        let (outcome, out) = decode(MIBEACON, data, from, key);
        let Outcome::Decoded(facts) = outcome else {
            panic!("{name}: {outcome:?}")
        };
        assert!(facts.encrypted && facts.model.is_some(), "{name}");
        assert_eq!(
            facts.sequence.unwrap().authenticated,
            key.len() == 32,
            "{name}"
        );
        assert_says(name, &out, &frame["expected"]);

        let (outcome, out) = decode(MIBEACON, data, from, "");
        assert!(
            matches!(outcome, Outcome::NeedsKey(_)) && out.is_empty(),
            "{name}: {outcome:?}"
        );
        let wrong = format!("00{}", &key[2..]);
        let (outcome, out) = decode(MIBEACON, data, from, &wrong);
        assert!(
            matches!(outcome, Outcome::WrongKey(_)) && out.is_empty(),
            "{name}: {outcome:?}"
        );
    }
}

/// Name, data, address and key.
fn parts(frame: &Json) -> [&str; 4] {
    [
        &frame["id"],
        &frame["serviceData"]["fe95"],
        &frame["address"],
        &frame["bindkey"],
    ]
    .map(|part| part.as_str().unwrap())
}

#[test]
fn the_counter_of_mibeacon_goes_on_in_the_frame() {
    let frames = mibeacon_frames();
    let [name, data, from, key] = parts(&frames[0]);
    assert_eq!(name, "cgg1");
    let (outcome, _) = decode(MIBEACON, data, from, key);
    let Outcome::Decoded(facts) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(facts.sequence.unwrap().value, 0x000E_0068);
    assert_eq!(facts.identity, Some(Identity::Mac(address(from))));
}

/// The user manual of EnOcean's PTM 215B, "Telegram authentication": the telegram, its key, the
/// address of its sender and its signature.
#[test]
fn a_signature_is_checked_where_the_key_is_known() {
    const KEY: &str = "3dda31ad44767ae3ce56dce2b3ce2abb";
    const TELEGRAM: &str = "5d04000011b2fa88ff";
    const FROM: &str = "E2:15:00:00:19:B8";
    let file: Json =
        serde_json::from_str(include_str!("../library/enocean/ptm-215b.json")).unwrap();
    let decoder = Decoder::compile(&file["protocol"]["definition"]).unwrap();
    let read = |telegram: &str, from: &str, key: Option<&str>| {
        let key = key.map(|key| hex::decode(key).unwrap());
        let keys = key
            .as_deref()
            .map_or_else(Keys::default, |key| Keys::with_bind_key(key).unwrap());
        let advertisement = Advertisement::manufacturer(0x03DA, &hex::decode(telegram).unwrap());
        let advertisement = Advertisement {
            address: Some(address(from)),
            ..advertisement
        };
        let mut out = Vec::new();
        let outcome = advertisement.with_frame(|frame| decoder.decode(frame, keys, &mut out));
        (outcome, out)
    };
    let (outcome, out) = read(TELEGRAM, FROM, Some(KEY));
    let Outcome::Decoded(facts) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(facts.encrypted && facts.sequence.unwrap().authenticated);
    assert_eq!(out.len(), 1);
    let (outcome, out) = read(TELEGRAM, FROM, None);
    let Outcome::Decoded(facts) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(!facts.encrypted && !facts.sequence.unwrap().authenticated);
    assert_eq!(out.len(), 1, "it is not encrypted");
    for (telegram, from, key) in [
        ("5e04000011b2fa88ff", FROM, KEY),
        ("5d04000010b2fa88ff", FROM, KEY),
        ("5d04000011b2fa88fe", FROM, KEY),
        (TELEGRAM, "E2:15:00:00:19:B9", KEY),
        (TELEGRAM, FROM, "3dda31ad44767ae3ce56dce2b3ce2abc"),
    ] {
        let (outcome, out) = read(telegram, from, Some(key));
        assert!(
            matches!(outcome, Outcome::WrongKey(_)) && out.is_empty(),
            "{telegram} of {from} under {key}: {outcome:?}"
        );
    }
}
