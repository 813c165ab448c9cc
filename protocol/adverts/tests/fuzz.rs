//! Decoders, definitions and matchers with input that nobody wrote: none may panic or run long.
//! Each target runs for a second; BOLERO_RANDOM_TEST_TIME_MS sets another time, and `cargo bolero`
//! runs the targets with a fuzzer that follows the coverage.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect fails"
)]

use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bolero::check;
use hub_adverts::builtin::noise;
use hub_adverts::frame::LONGEST_PAYLOAD;
use hub_adverts::library::{FILES, OwnedFrame, library, read, recogniser};
use hub_adverts::matching::Identifier;
use hub_adverts::{Builtin, Decoder, Keys, Outcome};
use serde_json::Value as Json;

/// The longest that one frame may take. A machine that is busy may need several attempts.
const LIMIT: Duration = if cfg!(debug_assertions) {
    Duration::from_millis(20)
} else {
    Duration::from_millis(1)
};
const ATTEMPTS: u32 = 5;

fn within_limit(run: impl Fn()) {
    for attempt in 1.. {
        let started_at = Instant::now();
        run();
        let took = started_at.elapsed();
        if took < LIMIT {
            return;
        }
        assert!(attempt < ATTEMPTS, "it took {took:?}");
    }
}

/// The frames of the library's tests.
static FRAMES: LazyLock<Vec<OwnedFrame>> = LazyLock::new(|| {
    library()
        .iter()
        .flat_map(|model| &model.tests)
        .map(|test| test.frame.clone())
        .collect()
});

/// A frame of the library with a few bytes changed, cut off or added.
fn mutated(seed: u16, changes: &[(u16, u8)], length: Option<u16>, tail: &[u8]) -> OwnedFrame {
    let mut frame = FRAMES[usize::from(seed) % FRAMES.len()].clone();
    let manufacturer = frame
        .manufacturer_data
        .iter_mut()
        .map(|(_, payload)| payload);
    let service = frame.service_data.iter_mut().map(|(_, payload)| payload);
    for payload in manufacturer.chain(service) {
        if let Some(length) = length {
            payload.truncate(usize::from(length));
        }
        payload.extend_from_slice(tail);
        payload.truncate(LONGEST_PAYLOAD);
        for (at, byte) in changes {
            let at = usize::from(*at) % payload.len().max(1);
            if let Some(place) = payload.get_mut(at) {
                *place ^= byte;
            }
        }
    }
    frame
}

type Mutation = (u16, Vec<(u16, u8)>, Option<u16>, Vec<u8>, [u8; 16]);

#[test]
fn frames_are_read() {
    check!()
        .with_type::<Mutation>()
        .for_each(|(seed, changes, length, tail, key)| {
            let frame = mutated(*seed, changes, *length, tail);
            frame.with(|frame| {
                within_limit(|| {
                    let _ = (read(frame), noise::of(frame));
                    for keys in [Some(Keys::default()), Keys::with_bind_key(key)]
                        .into_iter()
                        .flatten()
                    {
                        for decoder in Builtin::ALL {
                            let mut out = Vec::new();
                            let outcome = decoder.decode(frame, &keys, &mut out);
                            assert!(
                                matches!(outcome, Outcome::Decoded(_)) || out.is_empty(),
                                "{outcome:?}: {out:?}"
                            );
                            for measurement in &out {
                                let json = measurement.value.json();
                                assert!(
                                    !json.is_null(),
                                    "{measurement:?} is a number that JSON has"
                                );
                            }
                        }
                    }
                });
            });
        });
}

#[test]
fn one_model_wins() {
    check!()
        .with_type::<Mutation>()
        .for_each(|(seed, changes, length, tail, _)| {
            let frame = mutated(*seed, changes, *length, tail);
            frame.with(|frame| {
                let candidates = recogniser().candidates(frame);
                let best = recogniser().recognise(frame);
                assert_eq!(
                    best.map(|best| best.specificity),
                    candidates.first().map(|first| first.specificity)
                );
                let top = candidates
                    .iter()
                    .filter(|one| Some(one.specificity) == best.map(|best| best.specificity));
                let models: HashSet<usize> = top.map(|one| one.model).collect();
                assert!(models.len() <= 1, "{models:?} tie");
            });
        });
}

/// The definitions of the library.
static DEFINITIONS: LazyLock<Vec<Json>> = LazyLock::new(|| {
    let definition = |(_, text): &(&str, &str)| {
        let file: Json = serde_json::from_str(text).expect("a model file");
        (file["protocol"]["kind"] == "DECLARATIVE").then(|| file["protocol"]["definition"].clone())
    };
    FILES.iter().filter_map(definition).collect()
});

/// Replaces one value of a document, counted in its order, by another one.
fn replace(value: &mut Json, at: &mut usize, by: &Json) {
    if *at == 0 {
        *value = by.clone();
        *at = usize::MAX;
        return;
    }
    *at -= 1;
    match value {
        Json::Array(items) => items.iter_mut().for_each(|item| replace(item, at, by)),
        Json::Object(members) => members
            .iter_mut()
            .for_each(|(_, member)| replace(member, at, by)),
        _ => {}
    }
}

fn size(value: &Json) -> usize {
    1 + match value {
        Json::Array(items) => items.iter().map(size).sum(),
        Json::Object(members) => members.values().map(size).sum(),
        _ => 0,
    }
}

/// Texts that expressions and numbers consist of.
const WORDS: [&str; 24] = [
    "u8(0)",
    "i16be(1)",
    "u32(2)",
    "len",
    "length",
    "(",
    ")",
    "+",
    "*",
    "<<",
    ">>",
    "div",
    "mod",
    "&",
    "^",
    "-1",
    "0",
    "99999999999999999999",
    "min(1, 2)",
    "select(1, 2, 3)",
    " ",
    "not_there",
    "0x7fffffff",
    "u8(len - 1)",
];

fn replacement(kind: u8, words: &[u8], number: i64) -> Json {
    match kind % 6 {
        0 => Json::from(number),
        1 => Json::Bool(number % 2 == 0),
        2 => Json::Null,
        3 => Json::Array(vec![Json::from(number)]),
        4 => Json::from(number as f64 / 3.0),
        _ => {
            let word = |word: &u8| WORDS[usize::from(*word) % WORDS.len()];
            Json::String(words.iter().take(64).map(word).collect())
        }
    }
}

type Change = (u16, u8, Vec<u8>, i64);

#[test]
fn definitions_are_compiled_or_refused() {
    check!()
        .with_type::<(u16, Vec<Change>, Mutation)>()
        .for_each(|(seed, changes, mutation)| {
            let mut definition = DEFINITIONS[usize::from(*seed) % DEFINITIONS.len()].clone();
            for (at, kind, words, number) in changes.iter().take(8) {
                let mut at = usize::from(*at) % size(&definition);
                replace(
                    &mut definition,
                    &mut at,
                    &replacement(*kind, words, *number),
                );
            }
            let Ok(decoder) = Decoder::compile(&definition) else {
                return;
            };
            let (seed, changes, length, tail, key) = mutation;
            let frame = mutated(*seed, changes, *length, tail);
            frame.with(|frame| {
                within_limit(|| {
                    let mut out = Vec::new();
                    decoder.decode(
                        frame,
                        Keys::with_bind_key(key).unwrap_or_default(),
                        &mut out,
                    );
                });
            });
        });
}

#[test]
fn identifiers_are_parsed_or_refused() {
    let kinds = [
        "MANUFACTURER_ID",
        "MANUFACTURER_PREFIX",
        "SERVICE_UUID",
        "SERVICE_DATA_UUID",
        "SERVICE_DATA_PREFIX",
        "NAME",
        "NAME_PREFIX",
        "ADDRESS_PREFIX",
        "IBEACON",
        "EDDYSTONE_UID",
        "PAYLOAD_LENGTH",
        "NONE_SUCH",
    ];
    let letters = b"0123456789abcdefABCDEF:-/ x";
    check!().with_type::<(Vec<(u8, Vec<u8>, Option<Vec<u8>>)>, Mutation)>().for_each(|(conditions, mutation)| {
        let text = |bytes: &Vec<u8>| -> String {
            bytes.iter().map(|byte| char::from(letters[usize::from(*byte) % letters.len()])).collect()
        };
        let condition = |(kind, value, mask): &(u8, Vec<u8>, Option<Vec<u8>>)| {
            let mut condition =
                serde_json::json!({"kind": kinds[usize::from(*kind) % kinds.len()], "value": text(value)});
            if let Some(mask) = mask {
                condition["mask"] = text(mask).into();
            }
            condition
        };
        let conditions: Vec<Json> = conditions.iter().map(condition).collect();
        let Ok(identifier) = Identifier::parse(&serde_json::json!({"conditions": conditions})) else { return };
        let (seed, changes, length, tail, _) = mutation;
        let frame = mutated(*seed, changes, *length, tail);
        frame.with(|frame| within_limit(|| _ = identifier.matches(frame)));
    });
}
