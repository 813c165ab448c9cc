//! One event step by step, for test runs.

use std::time::Instant;

use hub_protocol::TenantUuid;
use hub_scripts::{Scripts, TRIAL_TIME};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::run::{Batch, End, Item};
use super::state::State;
use super::{Input, Outcome, Program};

/// The result of a step for an event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepTrace {
    /// The step.
    pub op: String,
    /// The event after it, or the text of a template; a list of them if a script made several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Whether it dropped the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<bool>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took.
    pub duration_micros: u64,
}

impl Program {
    /// The result of each step for an event, up to the last step that it reaches.
    pub async fn trace(
        &self,
        state: &mut State,
        input: Input,
        scripts: Option<&Scripts>,
        tenant_uuid: TenantUuid,
    ) -> Vec<StepTrace> {
        self.trace_to_end(state, input, scripts, tenant_uuid)
            .await
            .0
    }

    /// As [`Self::trace`], with the outcome.
    pub async fn trace_to_end(
        &self,
        state: &mut State,
        input: Input,
        scripts: Option<&Scripts>,
        tenant_uuid: TenantUuid,
    ) -> (Vec<StepTrace>, Outcome) {
        let deadline = Instant::now() + TRIAL_TIME;
        let mut batch = Batch::new(self, state, vec![input]);
        let mut traces = Vec::with_capacity(self.steps.len());
        for (at, (op, step)) in self.steps.iter().enumerate() {
            let begun = Instant::now();
            batch.step(at, step, scripts, tenant_uuid, deadline).await;
            let duration_micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
            let error = batch.ends.iter().flatten().find_map(|end| match end {
                End::Failed(_, problem) | End::NotRun(problem) => Some(problem.clone()),
                End::Dropped(_) => None,
            });
            let is_over = batch.items.is_empty();
            let dropped = (is_over && error.is_none()).then_some(true);
            traces.push(StepTrace {
                op: (*op).to_owned(),
                output: output(&batch.items),
                dropped,
                error,
                duration_micros,
            });
            if is_over {
                break;
            }
        }
        let problem = || "nothing became of it".to_owned();
        let outcome = batch
            .outcomes()
            .pop()
            .unwrap_or_else(|| Outcome::NotRun { problem: problem() });
        (traces, outcome)
    }
}

fn output(items: &[Item]) -> Option<Value> {
    let one = |item: &Item| match &item.text {
        Some(text) => Value::String(text.clone()),
        None => Value::Object(item.event.clone()),
    };
    match items {
        [] => None,
        [item] => Some(one(item)),
        items => Some(Value::Array(items.iter().map(one).collect())),
    }
}
