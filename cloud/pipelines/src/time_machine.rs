//! The time machine: what a draft would have made of stored events, beside what the revision in
//! force makes of them. Nothing is stored or sent.

use std::time::{Duration, Instant};

use hub_base::db::LogRange;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_devices::ble;
use hub_identity::authz::Scope;
use hub_steps::{Input, Outcome, Output, Program, State};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::definition::{Source, input_of};
use super::draft::Draft;
use super::test_run::shown;
use super::{bound, operations};

/// Events that one comparison reads.
pub const MAX_EVENTS: i64 = 10_000;
/// Examples that it shows.
pub const MAX_EXAMPLES: usize = 20;
const MAX_TIME: Duration = Duration::from_secs(5);
const PAGE: i64 = 500;
const PAGE_BYTES: i64 = 4 * 1024 * 1024;
/// Bytes of all examples.
const MAX_EXAMPLE_BYTES: usize = 1024 * 1024;

/// Which events to compare on.
pub struct Range {
    pub from_id: i64,
    /// Without this one.
    pub to_id: i64,
    pub limit: i64,
}

/// How one event differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    Changed,
    OnlyBefore,
    OnlyAfter,
    Error,
}

/// What one revision makes of an event.
#[derive(Default)]
pub struct Side {
    pub output: Option<Value>,
    pub error: Option<String>,
}

pub struct Example {
    pub ble_event_id: i64,
    pub difference: Difference,
    pub before: Side,
    pub after: Side,
}

#[derive(Default)]
pub struct Comparison {
    pub events: i64,
    pub same: i64,
    pub changed: i64,
    pub only_before: i64,
    pub only_after: i64,
    pub errors: i64,
    /// Events with lower ids were read.
    pub next_id: i64,
    pub complete: bool,
    pub examples: Vec<Example>,
}

/// A revision with a state of its own.
struct Machine {
    pipeline_uuid: Uuid,
    source: Source,
    program: Program,
    state: State,
}

/// The outcome of an event.
#[derive(PartialEq)]
enum Made {
    Nothing,
    Outputs(Vec<Output>),
    Failed(String),
}

impl Machine {
    fn new(pipeline_uuid: Uuid, source: Source, program: Program) -> Self {
        let state = program.new_state();
        Self {
            pipeline_uuid,
            source,
            program,
            state,
        }
    }

    /// What it makes of each event. None if there is no time to say.
    async fn make(
        &mut self,
        core: &Core,
        scope: &Scope,
        inputs: &[Input],
        within: Duration,
    ) -> Result<Option<Vec<Made>>> {
        let hubs = inputs.iter().map(|one| one.hub_uuid);
        let bound = bound::among(
            &mut core.db.read().await?,
            self.pipeline_uuid,
            &self.source,
            hubs,
        )
        .await?;
        let selects = |one: &Input| {
            self.source
                .selects(one.hub_uuid, &bound, one.device_instance_id, &one.event)
        };
        let takes: Vec<bool> = inputs.iter().map(selects).collect();
        let taken = inputs
            .iter()
            .zip(&takes)
            .filter(|(_, takes)| **takes)
            .map(|(input, _)| input.clone())
            .collect();
        let scripts = Some(&core.scripts);
        let outcomes = self
            .program
            .run(&mut self.state, taken, scripts, scope.tenant_uuid(), within)
            .await;
        let mut outcomes = outcomes.into_iter();
        let mut made = Vec::with_capacity(inputs.len());
        for takes in takes {
            made.push(match takes.then(|| outcomes.next()).flatten() {
                None | Some(Outcome::Dropped { .. }) => Made::Nothing,
                Some(Outcome::Passed(outputs)) if outputs.is_empty() => Made::Nothing,
                Some(Outcome::Passed(outputs)) => Made::Outputs(outputs),
                Some(Outcome::Failed { step, problem }) => {
                    Made::Failed(format!("/steps/{step}: {problem}"))
                }
                Some(Outcome::NotRun { .. }) => return Ok(None),
            });
        }
        Ok(Some(made))
    }
}

/// One at a time for each tenant.
pub async fn compare(
    core: &Core,
    scope: &Scope,
    pipeline_uuid: Uuid,
    draft: &Map<String, Value>,
    range: Range,
) -> Result<Comparison> {
    let _turn = core.turns.dry_runs.take(scope.tenant_uuid().0).await?;
    let row = operations::get(&mut core.db.read().await?, scope, pipeline_uuid).await?;
    let stored = row.stored_definition()?;
    let destination = row.stored_destination(core, &stored)?;
    let draft = Draft::of(core, scope, "/draft", draft, Some(&destination)).await?;
    let program = Program::compile(&stored.steps).map_err(|problem| {
        Error::conflict(
            "REVISION_INVALID",
            format!("the revision in force cannot run any more: {problem}"),
        )
    })?;
    let mut before = Machine::new(pipeline_uuid, stored.source, program);
    let mut after = Machine::new(pipeline_uuid, draft.source, draft.program);
    let ends_at = Instant::now() + MAX_TIME;
    let mut found = Comparison {
        next_id: range.from_id,
        ..Comparison::default()
    };
    let mut example_bytes = 0;
    while found.events < range.limit {
        let page = LogRange {
            after: found.next_id.saturating_sub(1),
            last: range.to_id.saturating_sub(1),
            max_rows: PAGE.min(range.limit - found.events),
            max_bytes: PAGE_BYTES,
        };
        let events = ble::after(&core.event_log, scope.tenant_uuid(), page).await?;
        if events.is_empty() {
            found.next_id = range.to_id;
            found.complete = true;
            return Ok(found);
        }
        let read = move || {
            events
                .into_iter()
                .map(input_of)
                .collect::<Result<Vec<Input>>>()
        };
        let inputs = core.bodies.work(read).await??;
        let left = || ends_at.saturating_duration_since(Instant::now());
        let Some(made_before) = before.make(core, scope, &inputs, left()).await? else {
            return Ok(found);
        };
        let Some(made_after) = after.make(core, scope, &inputs, left()).await? else {
            return Ok(found);
        };
        for ((input, one), other) in inputs.iter().zip(made_before).zip(made_after) {
            found.next_id = input.ble_event_id.saturating_add(1);
            if let Some(example) = found.count(input.ble_event_id, one, other)
                && found.examples.len() < MAX_EXAMPLES
            {
                example_bytes += example.bytes();
                if example_bytes <= MAX_EXAMPLE_BYTES {
                    found.examples.push(example);
                }
            }
        }
        if left().is_zero() {
            break;
        }
    }
    found.complete = found.next_id >= range.to_id;
    Ok(found)
}

impl Comparison {
    /// Counts an event, and returns it as an example if it differs.
    fn count(&mut self, ble_event_id: i64, before: Made, after: Made) -> Option<Example> {
        self.events += 1;
        let (counter, difference) = match (&before, &after) {
            (Made::Failed(_), _) | (_, Made::Failed(_)) => (&mut self.errors, Difference::Error),
            (before, after) if before == after => {
                self.same += 1;
                return None;
            }
            (_, Made::Nothing) => (&mut self.only_before, Difference::OnlyBefore),
            (Made::Nothing, _) => (&mut self.only_after, Difference::OnlyAfter),
            _ => (&mut self.changed, Difference::Changed),
        };
        *counter += 1;
        (self.examples.len() < MAX_EXAMPLES).then(|| Example {
            ble_event_id,
            difference,
            before: before.into(),
            after: after.into(),
        })
    }
}

impl From<Made> for Side {
    fn from(made: Made) -> Self {
        match made {
            Made::Nothing => Self::default(),
            Made::Outputs(outputs) => Self {
                output: shown(&outputs),
                error: None,
            },
            Made::Failed(problem) => Self {
                output: None,
                error: Some(problem),
            },
        }
    }
}

impl Example {
    fn bytes(&self) -> usize {
        let size = |side: &Side| {
            side.output
                .as_ref()
                .map_or(0, |output| output.to_string().len())
        };
        size(&self.before) + size(&self.after)
    }
}
