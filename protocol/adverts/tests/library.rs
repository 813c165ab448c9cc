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
