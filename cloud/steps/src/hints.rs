//! What is allowed in a pipeline, and probably not meant.

use serde_json::Value;

use super::Program;
use super::definition::{By, Step};

/// A finding in a step, or in the destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The index of the step; None for the destination.
    pub step: Option<usize>,
    pub message: String,
}

/// The findings in valid steps, before a destination.
pub fn hints(steps: &Value, destination: &Value) -> Vec<Hint> {
    let Ok(program) = Program::compile(steps) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut template = None;
    let mut thinned = None;
    for (at, (op, step)) in program.steps.iter().enumerate() {
        let mut tell = |message: String| {
            found.push(Hint {
                step: Some(at),
                message,
            })
        };
        match step {
            Step::Filter(condition) => match condition.constant() {
                Some(true) => tell("is always true: the filter lets every event pass".to_owned()),
                Some(false) => tell("is never true: the filter drops every event".to_owned()),
                None => {}
            },
            Step::Sample { by: By::Device, .. } | Step::OnChange { .. } => thinned = Some(*op),
            Step::Dedupe { .. } => {
                if let Some(op) = thinned {
                    let place =
                        format!("comes after `{op}`, which lets few further receptions pass");
                    tell(format!("{place}: put `dedupe` before it"));
                }
            }
            _ => {}
        }
        let changes = !matches!(
            step,
            Step::Filter(_)
                | Step::Sample { .. }
                | Step::OnChange { .. }
                | Step::Dedupe { .. }
                | Step::Template(_)
        );
        match (step, template) {
            (Step::Template(_), Some(before)) => {
                tell(format!(
                    "replaces the text of the template in step {before}"
                ));
            }
            (_, Some(before)) if changes => {
                tell(format!(
                    "changes the event, and not the text that the template in step {before} has made"
                ));
            }
            _ => {}
        }
        if matches!(step, Step::Template(_)) {
            template = Some(at + 1);
        }
    }
    let format = destination.get("format").and_then(Value::as_str);
    let message = match (template, format) {
        (None, Some("TEMPLATE")) => "the format is TEMPLATE, and there is no `template` step",
        (Some(_), Some("INFLUX_LINE")) => {
            "the format is INFLUX_LINE, and a `template` step makes the text"
        }
        _ => return found,
    };
    found.push(Hint {
        step: None,
        message: message.to_owned(),
    });
    found
}
