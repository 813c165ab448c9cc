//! Runs the tests of a protocol, stored or not: what it reads of their frames, and what differs
//! from what they expect.

use hub_adverts::library::{Difference, ModelTest, Protocol};
use hub_adverts::{Measurement, Outcome};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::json;
use hub_identity::authz::Scope;
use hub_protocol::FieldError;
use hub_scripts::{Decoded, Trial};
use serde_json::{Value, json};

use super::protocols::ProtocolKind;
use super::{MAX_DOCUMENT_BYTES, MAX_ITEMS, member_path};

/// Failed tests that an answer names.
const NAMED_FAILURES: usize = 32;

/// The result of a protocol for the frame of one test.
#[derive(Debug)]
pub struct Reading {
    pub measurements: Vec<Measurement>,
    /// The differences from the test's expected values.
    pub differences: Vec<Difference>,
    /// The reason for having no values, as a sentence.
    pub problem: Option<String>,
    /// Whether the protocol is at fault for any expected values: its script failed.
    is_fault: bool,
}

impl Reading {
    fn new(
        test: &ModelTest,
        measurements: Vec<Measurement>,
        problem: Option<String>,
        is_fault: bool,
    ) -> Self {
        Self {
            differences: test.differences(&measurements),
            measurements,
            problem,
            is_fault,
        }
    }

    pub fn has_passed(&self) -> bool {
        self.differences.is_empty() && !self.is_fault
    }

    /// The failures, each with the quantity at fault.
    fn failures(&self, index: usize) -> Vec<FieldError> {
        let why = self.problem.as_deref().unwrap_or_default();
        if self.is_fault && self.differences.is_empty() {
            return vec![FieldError {
                field: test_path(index),
                message: why.to_owned(),
            }];
        }
        let separator = if why.is_empty() { "" } else { "; " };
        let failure = |difference: &Difference| FieldError {
            field: format!("{}.expect.{}", test_path(index), difference.quantity),
            message: format!("{difference}{separator}{why}"),
        };
        self.differences
            .iter()
            .map(failure)
            .take(NAMED_FAILURES)
            .collect()
    }
}

fn test_path(index: usize) -> String {
    format!("tests[{index}]")
}

/// Compiles a definition and reads the frames of its tests, one reading for each. That is work on
/// what a caller wrote, so it happens outside of the request threads.
pub async fn run(
    core: &Core,
    scope: &Scope,
    kind: ProtocolKind,
    definition: String,
    tests: String,
) -> Result<Vec<Reading>> {
    match kind {
        ProtocolKind::Script => run_script(core, scope, &definition, &tests).await,
        _ => {
            core.bodies
                .work(move || decode(kind, &definition, &tests))
                .await?
        }
    }
}

/// An error that names what differs, unless all tests have passed.
pub fn require_passed(readings: &[Reading]) -> Result<()> {
    let failures = readings
        .iter()
        .enumerate()
        .flat_map(|(index, reading)| reading.failures(index));
    let failures: Vec<FieldError> = failures.take(NAMED_FAILURES).collect();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(Error::fields(failures))
    }
}

/// A definition and its tests.
fn parsed(definition: &str, tests: &str) -> Result<(Value, Vec<ModelTest>)> {
    for (member, text) in [("definition", definition), ("tests", tests)] {
        if text.len() > MAX_DOCUMENT_BYTES {
            let message = format!("must have at most {} KiB", MAX_DOCUMENT_BYTES / 1024);
            return Err(Error::field(member, message));
        }
        if json::depth(text) > json::MAX_DEPTH {
            let message = format!("must not be nested deeper than {} levels", json::MAX_DEPTH);
            return Err(Error::field(member, message));
        }
    }
    let definition: Value = serde_json::from_str(definition).map_err(Error::internal)?;
    let tests: Vec<Value> = serde_json::from_str(tests).map_err(Error::internal)?;
    if tests.len() > MAX_ITEMS {
        return Err(Error::field(
            "tests",
            format!("must have at most {MAX_ITEMS} items"),
        ));
    }
    let test = |(index, test): (usize, &Value)| {
        ModelTest::parse(test).map_err(|error| {
            Error::field(
                member_path(&test_path(index), &error.pointer),
                error.problem,
            )
        })
    };
    Ok((
        definition,
        tests.iter().enumerate().map(test).collect::<Result<_>>()?,
    ))
}

fn decode(kind: ProtocolKind, definition: &str, tests: &str) -> Result<Vec<Reading>> {
    let (definition, tests) = parsed(definition, tests)?;
    let protocol = Protocol::parse(&json!({"kind": kind, "definition": definition}))
        .map_err(|error| Error::field(error.pointer.trim_start_matches('/'), error.problem))?;
    let read = |test: &ModelTest| {
        let mut measurements = Vec::new();
        let outcome = test.with(|frame, keys| protocol.decode(frame, keys, &mut measurements));
        let problem = match outcome {
            Outcome::Decoded(_) => None,
            Outcome::NotMine => Some("the decoder does not take this frame for one of its own"),
            Outcome::Invalid => Some("the decoder takes this frame for a broken one"),
            Outcome::NeedsKey(_) => {
                Some("the frame is encrypted, and `secrets` or `address` is missing")
            }
            Outcome::WrongKey(_) => Some("the frame is encrypted with another key"),
        };
        Reading::new(test, measurements, problem.map(str::to_owned), false)
    };
    Ok(tests.iter().map(read).collect())
}

async fn run_script(
    core: &Core,
    scope: &Scope,
    definition: &str,
    tests: &str,
) -> Result<Vec<Reading>> {
    let (definition, tests) = parsed(definition, tests)?;
    let source = source_of(&definition)?;
    let frames: Vec<_> = tests.iter().map(|test| test.frame.clone()).collect();
    let decoded = core
        .scripts
        .trial(scope.tenant_uuid(), source, &frames)
        .await;
    let decoded = decoded.map_err(|problem| match problem {
        Trial::Busy => {
            Error::unavailable("BUSY", "too many scripts are being run; try again shortly")
        }
        Trial::Refused(problem) => Error::field("definition/source", problem),
    })?;
    let read = |(test, decoded): (&ModelTest, Decoded)| match decoded {
        Decoded::Values(measurements) => Reading::new(test, measurements, None, false),
        Decoded::NotMine => Reading::new(
            test,
            Vec::new(),
            Some("decode returns null for this frame".to_owned()),
            false,
        ),
        Decoded::Failed(problem) | Decoded::NotRun(problem) => {
            Reading::new(test, Vec::new(), Some(problem), true)
        }
    };
    Ok(tests.iter().zip(decoded).map(read).collect())
}

/// The only member of a script's definition.
fn source_of(definition: &Value) -> Result<&str> {
    const SOURCE: &str = "definition/source";
    let members = definition
        .as_object()
        .ok_or_else(|| Error::field("definition", "must be an object"))?;
    if let Some(unknown) = members.keys().find(|name| *name != "source") {
        return Err(Error::field(
            format!("definition/{unknown}"),
            "is not known; a script has `source` alone",
        ));
    }
    let source = members
        .get("source")
        .ok_or_else(|| Error::field("definition", "needs source"))?;
    let source = source
        .as_str()
        .ok_or_else(|| Error::field(SOURCE, "must be text"))?;
    match source.contains('\0') {
        true => Err(Error::field(SOURCE, "must not contain a NUL character")),
        false => Ok(source),
    }
}
