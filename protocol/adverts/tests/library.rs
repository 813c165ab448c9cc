//! Every model file is read, its tests hold, and no two models claim one frame.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect fails"
)]

use hub_adverts::Outcome;
use hub_adverts::library::{FILES, Model, OwnedFrame, library, model, recogniser};

const VECTORS: &str = include_str!("../../../tests/data/ble/vectors.jsonl");

fn vectors() -> impl Iterator<Item = (String, OwnedFrame)> {
    VECTORS.lines().map(|line| {
        let vector: serde_json::Value = serde_json::from_str(line).unwrap();
        (
            vector["id"].as_str().unwrap().to_owned(),
            OwnedFrame::parse(&vector).unwrap(),
        )
    })
}

#[test]
fn every_file_is_a_model() {
    let mut wrong = Vec::new();
    for (key, text) in FILES {
        match serde_json::from_str(text) {
            Err(error) => wrong.push(format!("{key}: {error}")),
            Ok(file) => wrong.extend(
                Model::parse(key, &file)
                    .err()
                    .map(|error| format!("{key}: {error}")),
            ),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(library().len(), FILES.len());
    assert!(library().iter().all(|one| model(&one.key).is_some()));
}

/// The values are those of the file, nothing else is read, the model is recognised, and each
/// quantity is among the metrics.
#[test]
fn the_tests_of_every_model_hold() {
    let recogniser = recogniser();
    let mut wrong = Vec::new();
    for (number, model) in library().iter().enumerate() {
        assert!(!model.tests.is_empty(), "{} has no tests", model.key);
        for (at, test) in model.tests.iter().enumerate() {
            let mut measurements = Vec::new();
            let outcome =
                test.with(|frame, keys| model.protocol.decode(frame, keys, &mut measurements));
            let unread = test.expect.values().any(Option::is_some)
                && !matches!(outcome, Outcome::Decoded(_));
            let mut problems: Vec<String> = test
                .differences(&measurements)
                .iter()
                .map(ToString::to_string)
                .collect();
            problems.extend(
                test.unexpected(&measurements)
                    .into_iter()
                    .map(|name| format!("{name} is not expected")),
            );
            if unread {
                problems.push(format!("the outcome is {outcome:?}"));
            }
            if test
                .frame
                .with(|frame| recogniser.recognise(frame))
                .map(|found| found.model)
                != Some(number)
            {
                problems.push("the model is not recognised".to_owned());
            }
            wrong.extend(
                problems
                    .into_iter()
                    .map(|problem| format!("{}, test {at}: {problem}", model.key)),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_two_models_tie() {
    let recogniser = recogniser();
    let owners: Vec<&str> = library()
        .iter()
        .flat_map(|model| model.identifiers.iter().map(|_| model.key.as_str()))
        .collect();
    let ties: Vec<String> = recogniser
        .ties()
        .into_iter()
        .map(|tie| format!("{} and {}", owners[tie.first], owners[tie.second]))
        .collect();
    assert!(ties.is_empty(), "{}", ties.join("\n"));
}

#[test]
fn no_two_models_claim_a_vector_with_equal_specificity() {
    let recogniser = recogniser();
    let mut wrong = Vec::new();
    for (id, frame) in vectors() {
        let candidates = frame.with(|frame| recogniser.candidates(frame));
        if let [first, rest @ ..] = candidates.as_slice() {
            let rivals = rest.iter().filter(|rival| {
                rival.model != first.model && rival.specificity == first.specificity
            });
            wrong.extend(rivals.map(|rival| {
                let models = library();
                format!(
                    "{id}: {} and {}",
                    models[first.model].key, models[rival.model].key
                )
            }));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Values that no sensor in use gives, each with the reason why a test has it: the model, the place
/// of the test or `*`, the quantity and the reason, apart by tabs.
const IMPLAUSIBLE: &str = include_str!("implausible.tsv");

/// What is plausible on the ground: the lowest and the highest pressure ever measured at sea level,
/// reduced by 1,500 m of height, and the temperatures that sensors of batteries survive.
const PLAUSIBLE: [(&str, f64, f64); 4] = [
    ("pressure", 84_000.0, 108_500.0),
    ("humidity", 0.0, 100.0),
    ("temperature", -60.0, 125.0),
    ("battery", 0.0, 100.0),
];
/// Standard gravity, in m/s2, and how far from it the acceleration at rest may be read.
const GRAVITY: f64 = 9.80665;
const GRAVITY_TOLERANCE: f64 = 1.2;

#[test]
fn what_tests_expect_is_physically_plausible_or_has_a_reason() {
    let reasons: Vec<[&str; 4]> = IMPLAUSIBLE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let parts: Vec<&str> = line.split('\t').collect();
            parts.try_into().unwrap()
        })
        .collect();
    let mut used = vec![false; reasons.len()];
    let mut wrong = Vec::new();
    for model in library() {
        for (at, test) in model.tests.iter().enumerate() {
            let number = |key: &str| match test.expect.get(key) {
                Some(Some(hub_adverts::Value::Number(number))) => Some(*number),
                _ => None,
            };
            let mut implausible: Vec<(&str, f64)> = PLAUSIBLE
                .iter()
                .filter_map(|(quantity, least, most)| {
                    let value = number(quantity)?;
                    (value < *least || value > *most).then_some((*quantity, value))
                })
                .collect();
            let axes = ["acceleration_x", "acceleration_y", "acceleration_z"].map(number);
            if let [Some(x), Some(y), Some(z)] = axes {
                let length = (x * x + y * y + z * z).sqrt();
                if (length - GRAVITY).abs() > GRAVITY_TOLERANCE {
                    implausible.push(("acceleration", length));
                }
            }
            for (quantity, value) in implausible {
                let place = at.to_string();
                let known = reasons.iter().position(|row| {
                    let is_place = row[1] == place || row[1] == "*";
                    row[0] == model.key && is_place && row[2] == quantity
                });
                match known {
                    Some(known) => used[known] = true,
                    None => wrong.push(format!("{}\t{at}\t{quantity}\t{value}", model.key)),
                }
            }
        }
    }
    for (row, used) in reasons.iter().zip(used) {
        if !used {
            wrong.push(format!("{} is not needed", row.join(" ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
