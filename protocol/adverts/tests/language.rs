//! The decoder language: its documentation, its schema, what it refuses, and what cannot break it.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect fails"
)]

use std::time::{Duration, Instant};

use hub_adverts::library::{FILES, ModelTest};
use hub_adverts::{Decoder, DefinitionError, Frame, Keys, Outcome, Value};
use serde_json::json;

const DOCUMENT: &str = include_str!("../../../docs/decoders.md");
const SCHEMA: &str = include_str!("../schema/decoder.json");
const MODEL_SCHEMA: &str = include_str!("../schema/model.json");

/// Names of the examples in the documentation, with their definitions and tests.
fn examples() -> Vec<(String, serde_json::Value)> {
    let blocks = DOCUMENT.split("```json example=").skip(1);
    blocks
        .map(|block| {
            let (name, text) = block.split_once('\n').unwrap();
            let text = text.split_once("```").unwrap().0;
            (
                name.to_owned(),
                serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}")),
            )
        })
        .collect()
}

fn definitions() -> Vec<(String, serde_json::Value)> {
    let files = FILES
        .iter()
        .map(|(key, text)| ((*key).to_owned(), serde_json::from_str(text).unwrap()));
    let declarative = files.filter(|(_, file): &(String, serde_json::Value)| {
        file["protocol"]["kind"] == "DECLARATIVE"
    });
    let library = declarative.map(|(key, file)| (key, file["protocol"]["definition"].clone()));
    library
        .chain(
            examples()
                .into_iter()
                .map(|(name, example)| (name, example["definition"].clone())),
        )
        .collect()
}

#[test]
fn the_examples_of_the_documentation_work() {
    let examples = examples();
    assert!(examples.len() >= 6);
    for (name, example) in examples {
        let decoder = Decoder::compile(&example["definition"])
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        for test in example["tests"].as_array().unwrap() {
            let test = ModelTest::parse(test).unwrap();
            let mut measurements = Vec::new();
            let outcome = test.with(|frame, keys| decoder.decode(frame, keys, &mut measurements));
            assert_eq!(test.differences(&measurements), [], "{name}: {outcome:?}");
            assert_eq!(
                test.unexpected(&measurements),
                Vec::<String>::new(),
                "{name}"
            );
        }
    }
}

#[test]
fn the_schema_takes_every_definition() {
    let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (name, definition) in definitions() {
        let errors: Vec<String> = validator
            .iter_errors(&definition)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
}

#[test]
fn the_schema_takes_every_model_file() {
    let schema: serde_json::Value = serde_json::from_str(MODEL_SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (key, text) in FILES {
        let file = serde_json::from_str(text).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&file)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{key}: {errors:?}");
    }
}

fn compile(step: serde_json::Value) -> Result<Decoder, DefinitionError> {
    Decoder::compile(&json!({"match": {"manufacturer": "0499"}, "read": [step]}))
}

/// What a step with `quantity` reads from a payload.
fn read(step: serde_json::Value, payload: &[u8]) -> Option<Value> {
    let decoder = compile(step).unwrap();
    let mut measurements = Vec::new();
    decode(&decoder, payload, &mut measurements);
    measurements.pop().map(|measurement| measurement.value)
}

fn decode(
    decoder: &Decoder,
    payload: &[u8],
    output: &mut Vec<hub_adverts::Measurement>,
) -> Outcome {
    let frame = Frame {
        manufacturer_data: &[(0x0499, payload)],
        ..Frame::default()
    };
    decoder.decode(&frame, Keys::default(), output)
}

/// The value of an expression over the payload 01 02 ... 08.
fn value(expression: &str) -> Option<f64> {
    let step = json!({"quantity": "count", "kind": "MEASUREMENT", "value": expression, "scale": 1});
    // A count is not negative: what may be negative is read as a temperature.
    let step = match expression.starts_with("-") {
        true => json!({"quantity": "temperature", "value": expression}),
        false => step,
    };
    match read(step, &[1, 2, 3, 4, 5, 6, 7, 8]) {
        Some(Value::Number(value)) => Some(value),
        None => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn expressions_give_what_they_say() {
    let cases = [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("7 div 2", 3.0),
        ("0 - 7 div 2 + 10", 7.0),
        ("-7 div 2", -3.0),
        ("-7 mod 4", -3.0),
        ("0xff & 0x0f | 0b110000", 63.0),
        ("5 ^ 1", 4.0),
        ("1 << 4 >> 2", 4.0),
        ("3 & 1 == 1", 1.0),
        ("1 < 2 && 2 <= 2 && 3 != 4 || 0", 1.0),
        ("!5 + !0", 1.0),
        ("~0 & 255", 255.0),
        ("min(3, max(1, 2))", 2.0),
        ("abs(0 - 4)", 4.0),
        ("select(u8(0), 10, 20)", 10.0),
        ("select(1, 10, u8(99))", 10.0),
        ("otherwise(u8(99), 5)", 5.0),
        ("available(u8(99)) * 2 + available(u8(7))", 1.0),
        ("bits(0x1234, 4, 11)", 35.0),
        ("-signed(0xfff, 12)", 1.0),
        ("bcd(0x1234)", 1234.0),
        ("length", 8.0),
        ("u8(-1)", 8.0),
        ("u16(0)", 513.0),
        ("u16be(0)", 258.0),
        ("u8(u8(2))", 4.0),
        ("u8(frame, 1)", 2.0),
    ];
    for (expression, expected) in cases {
        assert_eq!(value(expression), Some(expected), "{expression}");
    }
    let absent = [
        "u8(8)",
        "u16(7)",
        "u8(-9)",
        "u8(0 * u8(0) - 1)",
        "1 div (u8(0) - 1)",
        "1 mod (u8(0) - 1)",
        "1 << (u8(0) + 63)",
        "1 >> (0 - u8(0))",
        "bcd(0x1a)",
        "address(0)",
        "u64(0) * u64(0) * u64(0) * u64(0)",
        "u8(99) + 1",
    ];
    for expression in absent {
        assert_eq!(value(expression), None, "{expression}");
    }
}

#[test]
fn fields_are_read_as_their_types_say() {
    let number = |step: serde_json::Value, payload: &[u8]| match read(step, payload) {
        Some(Value::Number(value)) => value,
        other => panic!("{other:?}"),
    };
    let temperature = |members: serde_json::Value, payload: &[u8]| {
        let mut step = json!({"quantity": "temperature"});
        step.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        number(step, payload)
    };
    assert_eq!(
        temperature(
            json!({"at": 0, "type": "i16be", "scale": 0.01}),
            &[0xFF, 0x9C]
        ),
        -1.0
    );
    assert_eq!(
        temperature(
            json!({"at": 0, "type": "i24", "scale": 0.001}),
            &[0xE8, 0x03, 0x00]
        ),
        1.0
    );
    assert_eq!(
        temperature(json!({"at": 0, "type": "i8", "bits": "0-3"}), &[0x0F]),
        -1.0
    );
    assert_eq!(temperature(json!({"at": 0, "unit": "degF"}), &[212]), 100.0);
    assert_eq!(
        temperature(json!({"at": 0, "type": "f32be"}), &23.45_f32.to_be_bytes()),
        23.45
    );
    assert_eq!(
        temperature(json!({"at": 0, "type": "digits"}), b"+023.5"),
        23.5
    );
    assert_eq!(
        temperature(json!({"at": -2, "type": "sfloat"}), &[0, 0x6C, 0xF1]),
        36.4
    );
    let text = |members: serde_json::Value, payload: &[u8]| {
        let mut step = json!({"quantity": "text"});
        step.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        match read(step, payload) {
            Some(Value::Text(text)) => text,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(text(json!({"at": 1, "type": "text"}), b"?hub\0"), "hub");
    assert_eq!(
        text(json!({"at": 0, "type": "hex", "size": 2}), &[0xAB, 1, 2]),
        "ab01"
    );
    assert_eq!(
        text(
            json!({"at": 0, "type": "mac-reversed"}),
            &[1, 2, 3, 4, 5, 0xC6]
        ),
        "C6:05:04:03:02:01"
    );
    // Beyond the sane range of its quantity, a value is none.
    assert_eq!(read(json!({"quantity": "battery", "at": 0}), &[101]), None);
}

#[test]
fn a_mistake_is_reported_with_its_place() {
    let deep = (0..12).fold(json!([]), |inner, _| json!([{"if": 1, "then": inner}]));
    let cases = [
        (
            json!({"quantity": "temperatur", "at": 0}),
            "/read/0/quantity",
        ),
        (
            json!({"quantity": "temperature", "at": 0, "scal": 1}),
            "/read/0/scal",
        ),
        (
            json!({"quantity": "temperature", "at": 0, "unit": "hPa"}),
            "/read/0/unit",
        ),
        (
            json!({"quantity": "temperature", "at": 0, "scale": 0}),
            "/read/0/scale",
        ),
        (
            json!({"quantity": "temperature", "at": 0, "scale": "1/0"}),
            "/read/0/scale",
        ),
        (json!({"quantity": "temperature", "at": 5000}), "/read/0/at"),
        (
            json!({"quantity": "temperature", "at": 0, "type": "u12"}),
            "/read/0/type",
        ),
        (
            json!({"quantity": "temperature", "at": 0, "bits": 8}),
            "/read/0/bits",
        ),
        (json!({"quantity": "temperature"}), "/read/0"),
        (
            json!({"quantity": "temperature", "value": "1 div 0"}),
            "/read/0/value",
        ),
        (
            json!({"quantity": "temperature", "value": "u8(0) mod (2 - 2)"}),
            "/read/0/value",
        ),
        (
            json!({"quantity": "temperature", "value": "u8(0) << 64"}),
            "/read/0/value",
        ),
        (
            json!({"quantity": "temperature", "value": "unknown + 1"}),
            "/read/0/value",
        ),
        (
            json!({"quantity": "temperature", "value": "u8(1, 2)"}),
            "/read/0/value",
        ),
        (
            json!({"quantity": "temperature", "value": "(1"}),
            "/read/0/value",
        ),
        (
            json!({"quantity": "temperature", "value": "1 +"}),
            "/read/0/value",
        ),
        (
            json!({"quantity": "temperature", "value": "((((((((((((((((((((((((((1))))))))))))))))))))))))))"}),
            "/read/0/value",
        ),
        (json!({"let": "length", "at": 0}), "/read/0/let"),
        (
            json!({"switch": 1, "cases": {"1-3": [], "2": []}}),
            "/read/0/cases",
        ),
        (json!({"switch": 1, "cases": {"x": []}}), "/read/0/cases/x"),
        (
            json!({"if": 1, "then": deep}),
            "/read/0/then/0/then/0/then/0/then/0/then/0/then/0/then/0/then",
        ),
        (
            json!({"decrypt": {"cipher": "AES-CCM", "nonce": "00", "tag": {"at": -4, "size": 4}}, "read": []}),
            "/read/0/decrypt/nonce",
        ),
        (
            json!({"decrypt": {"cipher": "AES-ECB", "key": ["00"]}, "read": []}),
            "/read/0/decrypt/key",
        ),
        (
            json!({"authenticate": {"nonce": ["00"], "tag": {"at": -4, "size": 4}}}),
            "/read/0/authenticate/nonce",
        ),
        (
            json!({"authenticate": {"nonce": ["address", "00"], "tag": {"at": -4, "size": 5}}}),
            "/read/0/authenticate/tag",
        ),
        (
            json!({"tlv": {"header": 0, "tag": 1, "length": 1}, "cases": {}}),
            "/read/0/tlv/header",
        ),
        (json!({"nonsense": 1}), "/read/0"),
    ];
    for (step, pointer) in cases {
        let error = compile(step.clone())
            .err()
            .unwrap_or_else(|| panic!("{step} is taken"));
        assert_eq!(error.pointer, pointer, "{step}: {error}");
    }
}

/// A small generator of numbers, so that failures come again.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % below
    }
}

#[test]
fn no_frame_breaks_a_decoder() {
    let decoders: Vec<Decoder> = definitions()
        .iter()
        .map(|(_, one)| Decoder::compile(one).unwrap())
        .collect();
    let frames: Vec<(u16, uuid::Uuid, Vec<u8>)> = {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let companies = [
            0x0000, 0x0001, 0x0010, 0x004C, 0x0059, 0x00DC, 0x0100, 0x02E1, 0x0499, 0x0969, 0xA0AC,
            0xEC88,
        ];
        let services = [
            0x0D00, 0x181A, 0x2A6E, 0xFD3D, 0xFDCD, 0xFFF1, 0xFFF2, 0xFFF3,
        ];
        let frame = |_| {
            let longest = if random.next(3) == 0 { 1_651 } else { 40 };
            let size = random.next(longest);
            let payload = (0..size)
                .map(|_| {
                    if random.next(4) == 0 {
                        0
                    } else {
                        random.next(256) as u8
                    }
                })
                .collect();
            let service = hub_adverts::frame::uuid16(services[random.next(services.len())]);
            (companies[random.next(companies.len())], service, payload)
        };
        (0..2_000).map(frame).collect()
    };
    let key = [7; 16];
    let keys = Keys::with_bind_key(&key).unwrap();
    let mut output = Vec::new();
    for (company, service, payload) in &frames {
        let frame = Frame {
            address: Some([1, 2, 3, 4, 5, 6]),
            name: Some("sps"),
            manufacturer_data: &[(*company, payload)],
            service_data: &[(*service, payload)],
            ..Frame::default()
        };
        for decoder in &decoders {
            output.clear();
            decoder.decode(&frame, keys, &mut output);
            assert!(output.len() <= 64);
            assert!(
                output
                    .iter()
                    .all(|one| !matches!(one.value, Value::Number(value) if !value.is_finite()))
            );
        }
    }
}

/// Parts of definitions are exchanged, removed and put elsewhere.
#[test]
fn no_definition_breaks_the_compiler() {
    fn parts<'a>(value: &'a serde_json::Value, all: &mut Vec<&'a serde_json::Value>) {
        all.push(value);
        match value {
            serde_json::Value::Array(items) => items.iter().for_each(|item| parts(item, all)),
            serde_json::Value::Object(members) => {
                members.values().for_each(|member| parts(member, all))
            }
            _ => {}
        }
    }
    fn change(value: &mut serde_json::Value, random: &mut Random, all: &[&serde_json::Value]) {
        match value {
            serde_json::Value::Array(items) if !items.is_empty() && random.next(8) != 0 => {
                let at = random.next(items.len());
                change(&mut items[at], random, all);
            }
            serde_json::Value::Object(members) if !members.is_empty() && random.next(8) != 0 => {
                let at = random.next(members.len());
                if let Some(member) = members.values_mut().nth(at) {
                    change(member, random, all);
                }
            }
            serde_json::Value::String(text) if random.next(2) == 0 => {
                let mut bytes = text.clone().into_bytes();
                let at = random.next(bytes.len() + 1);
                bytes.insert(at, b"(),+-*<>&|!~0x9_ umod"[random.next(21)]);
                *text = String::from_utf8_lossy(&bytes).into_owned();
            }
            other => *other = (*all[random.next(all.len())]).clone(),
        }
    }
    let definitions: Vec<serde_json::Value> =
        definitions().into_iter().map(|(_, one)| one).collect();
    let mut all = Vec::new();
    definitions.iter().for_each(|one| parts(one, &mut all));
    let odd = [
        json!(null),
        json!(-1),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!([]),
        json!({}),
        json!("\u{1F600}"),
    ];
    all.extend(&odd);
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let mut taken = 0;
    let payload: Vec<u8> = (0_u8..40).map(|at| at.wrapping_mul(7)).collect();
    for round in 0..20_000 {
        let mut definition = definitions[round % definitions.len()].clone();
        for _ in 0..=random.next(3) {
            change(&mut definition, &mut random, &all);
        }
        if let Ok(decoder) = Decoder::compile(&definition) {
            taken += 1;
            decode(&decoder, &payload, &mut Vec::new());
        }
    }
    assert!(
        taken > 1_000,
        "{taken} of the changed definitions are taken"
    );
}

/// The costliest definitions that are taken end within the budget.
#[test]
fn no_definition_runs_for_long() {
    let heavy = format!("1{}", " * u8(0) div u8(0)".repeat(16));
    let inner = json!([{"let": "x", "value": heavy}, {"checksum": {"kind": "crc16", "polynomial": "1021", "in": "frame", "equals": "0"}}]);
    let one = json!({"repeat": {"every": 1, "in": "frame"}, "read": inner});
    let definition = json!({"match": {"manufacturer": "0499"}, "read": [{"repeat": {"every": 1}, "read": [one]}]});
    let aes = json!({"match": {"manufacturer": "0499"}, "read": [{"repeat": {"every": 1}, "read": [
        {"decrypt": {"cipher": "AES-CTR", "key": ["00112233445566778899aabbccddeeff"], "in": "frame", "initial": "00"}, "read": []}
    ]}]});
    let calls = json!({"match": {"manufacturer": "0499"}, "read": [{"repeat": {"every": 1}, "read": [{"let": "x", "value": heavy}]}]});
    let texts = json!({"match": {"manufacturer": "0499"}, "read": [{"repeat": {"every": 1}, "read": [
        {"quantity": "text", "in": "frame", "at": 0, "type": "hex", "index": 256},
        {"quantity": "temperature", "in": "frame", "at": 0, "type": "f64", "offset": 1e9}
    ]}]});
    let payload = vec![1; 1_650];
    for definition in [definition, aes, calls, texts] {
        let decoder = Decoder::compile(&definition).unwrap();
        let mut best = Duration::MAX;
        for _ in 0..5 {
            let begin = Instant::now();
            decode(&decoder, &payload, &mut Vec::new());
            best = best.min(begin.elapsed());
        }
        // A build without optimisation is many times slower than what runs in the field.
        let limit = if cfg!(debug_assertions) { 50 } else { 1 };
        assert!(
            best < Duration::from_millis(limit),
            "{best:?}: {definition}"
        );
    }
}
