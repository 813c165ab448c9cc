//! Reports of people whose devices were read wrong: frames in the order in which one hub heard
//! them, and what the last one says. Each line of the file names its report.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect fails"
)]

mod common;

use std::collections::BTreeSet;

use common::{close, lines};
use hub_adverts::catalog::Advertisers;
use hub_adverts::library::{OwnedFrame, whole_library};
use hub_adverts::{Measurement, Value};
use serde_json::Value as Json;

fn is(value: Option<&Value>, expected: &Json) -> bool {
    match (value, expected) {
        (None, Json::Null) => true,
        (value, Json::Object(choice)) => choice["oneOf"]
            .as_array()
            .is_some_and(|choices| choices.iter().any(|one| is(value, one))),
        (Some(Value::Number(number)), Json::Number(expected)) => {
            close(*number, expected.as_f64().expect("a number"))
        }
        (Some(Value::Text(text)), Json::String(expected)) => text == expected,
        (Some(Value::Bool(truth)), Json::Bool(expected)) => truth == expected,
        _ => false,
    }
}

#[test]
fn reported_frames_are_read_right() {
    let catalog = whole_library();
    let mut wrong = Vec::new();
    for case in lines("../../tests/data/ble/cases.jsonl") {
        let mut advertisers = Advertisers::default();
        let mut observations = BTreeSet::new();
        let mut history: BTreeSet<String> = BTreeSet::new();
        let mut last: (Option<String>, Vec<Measurement>) = (None, Vec::new());
        for frame in case["frames"].as_array().expect("frames") {
            let frame = OwnedFrame::parse(frame).expect("a frame");
            last = frame.with(|frame| {
                let before = advertisers.note(1, frame);
                let frame = &before.complete(frame);
                let mut out = Vec::new();
                let read = catalog.read(frame, &mut out);
                observations.insert(read.observation(frame, &out).hash);
                (read.model.map(|model| model.name.clone()), out)
            });
            history.extend(last.1.iter().map(Measurement::key));
        }
        let (model, measurements) = last;
        for (name, expected) in case["expected"].as_object().expect("an object") {
            let holds = match name.as_str() {
                "model" => model.as_deref() == expected.as_str(),
                "observations" => expected == observations.len(),
                "history" => expected.as_array().is_some_and(|names| {
                    names
                        .iter()
                        .all(|name| name.as_str().is_some_and(|name| history.contains(name)))
                }),
                _ => {
                    let found = measurements.iter().find(|one| one.key() == *name);
                    is(found.map(|one| &one.value), expected)
                }
            };
            if !holds {
                wrong.push(format!(
                    "{} ({}): {name} is not {expected}: {model:?} {:?}",
                    case["report"],
                    case["what"],
                    measurements
                        .iter()
                        .map(|one| (one.key(), &one.value))
                        .collect::<Vec<_>>()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
