//! Runs the steps of a program on a batch of events, one step after the other.

use std::time::{Duration, Instant};

use hub_adverts::rounded;
use hub_protocol::{HubUuid, TenantUuid};
use hub_scripts::{Processed, Scripts};
use serde_json::{Map, Value as Json};

use super::definition::{By, Step, canonical};
use super::expression::{Measured, Work, number};
use super::state::{Key, Remembered, State, Undo};
use super::wire::hash;
use super::{Body, Event, Input, Outcome, Output, Program, size};

/// About the bytes that the events of a batch may become in a step. What is more has to wait for
/// the next batch.
const MAX_BATCH_BYTES: usize = 64 * 1024 * 1024;
/// Events that may come of one.
const MAX_PARTS: usize = 100;
const TOO_LARGE: &str = "the events of a batch became too large together";

/// An event between two steps.
pub struct Item {
    /// The position of its input.
    pub input: usize,
    pub event: Event,
    /// The result of a template.
    pub text: Option<String>,
}

/// The members of an input that stateful steps use.
struct Facts {
    /// Microseconds since 1970.
    at: i64,
    device: Key,
    hub_uuid: HubUuid,
    observation: Key,
}

/// Why nothing of an input is left.
pub enum End {
    Dropped(usize),
    Failed(usize, String),
    NotRun(String),
}

/// A batch on its way through the steps.
pub struct Batch<'a> {
    state: &'a mut State,
    /// The changes to undo if events have to wait; None if none is recorded.
    undo: Option<Vec<Undo>>,
    facts: Vec<Facts>,
    /// The remaining work for each input.
    work: Vec<Work>,
    /// The approximate bytes that the current step has made.
    made: usize,
    pub items: Vec<Item>,
    pub ends: Vec<Option<End>>,
}

impl Program {
    /// Runs a batch, in order. The outcomes are in the order of the inputs. Without `scripts`, an
    /// event that reaches a script fails. If there is no time for a script on an event, or the
    /// batch becomes too large, neither this event nor those after it are run. The state is then
    /// that of before this event, so that the rest can be repeated.
    pub async fn run(
        &self,
        state: &mut State,
        inputs: Vec<Input>,
        scripts: Option<&Scripts>,
        tenant_uuid: TenantUuid,
        within: Duration,
    ) -> Vec<Outcome> {
        let deadline = Instant::now() + within;
        let mut batch = Batch::new(self, state, inputs);
        for (at, (_, step)) in self.steps.iter().enumerate() {
            batch.step(at, step, scripts, tenant_uuid, deadline).await;
        }
        batch.outcomes()
    }
}

impl<'a> Batch<'a> {
    pub fn new(program: &Program, state: &'a mut State, inputs: Vec<Input>) -> Self {
        let undo = program.has_state().then(Vec::new);
        let facts = inputs.iter().map(Facts::of).collect();
        let ends = inputs.iter().map(|_| None).collect();
        let work = inputs.iter().map(|_| Work::default()).collect();
        let item = |(input, given): (usize, Input)| Item {
            input,
            event: given.event,
            text: None,
        };
        let items = inputs.into_iter().enumerate().map(item).collect();
        Self {
            state,
            undo,
            facts,
            work,
            made: 0,
            items,
            ends,
        }
    }

    pub async fn step(
        &mut self,
        at: usize,
        step: &Step,
        scripts: Option<&Scripts>,
        tenant_uuid: TenantUuid,
        deadline: Instant,
    ) {
        self.made = 0;
        if let Step::Script(source) = step {
            return self
                .script(at, source, scripts, tenant_uuid, deadline)
                .await;
        }
        for mut item in std::mem::take(&mut self.items) {
            match self.apply(step, &mut item) {
                Ok(true) if self.is_too_large(item.input) => {
                    self.wait(item.input, TOO_LARGE);
                    break;
                }
                Ok(true) => self.items.push(item),
                Ok(false) => self.dropped(item.input, at),
                Err(problem) => self.failed(item.input, at, problem),
            }
        }
        self.leave_out_ended();
    }

    /// The first input never has to wait: there would be no end of it.
    fn is_too_large(&self, input: usize) -> bool {
        self.made > MAX_BATCH_BYTES && input > 0
    }

    /// This input and all after it were not run, and leave nothing behind.
    fn wait(&mut self, from: usize, problem: &str) {
        if let Some(undo) = &mut self.undo {
            let (after, before) = std::mem::take(undo)
                .into_iter()
                .partition(|change: &Undo| change.input >= from);
            *undo = before;
            self.state.undo(after);
        }
        for end in self.ends.iter_mut().skip(from) {
            *end = Some(End::NotRun(problem.to_owned()));
        }
    }

    fn dropped(&mut self, input: usize, at: usize) {
        if let Some(end) = self.ends.get_mut(input)
            && !matches!(end, Some(End::Failed(..) | End::NotRun(_)))
        {
            *end = Some(End::Dropped(at));
        }
    }

    fn failed(&mut self, input: usize, at: usize, problem: String) {
        if let Some(end) = self.ends.get_mut(input) {
            *end = Some(End::Failed(at, problem));
        }
    }

    /// An event of which a part has failed has failed as a whole.
    fn leave_out_ended(&mut self) {
        let ends = &self.ends;
        self.items.retain(|item| {
            !matches!(
                ends.get(item.input),
                Some(Some(End::Failed(..) | End::NotRun(_)))
            )
        });
    }

    /// The events of one batch go to the script together.
    async fn script(
        &mut self,
        at: usize,
        source: &str,
        scripts: Option<&Scripts>,
        tenant_uuid: TenantUuid,
        deadline: Instant,
    ) {
        let items = std::mem::take(&mut self.items);
        let Some(scripts) = scripts else {
            items.into_iter().for_each(|item| {
                self.failed(item.input, at, "scripts are not run here".to_owned())
            });
            return;
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let events: Vec<&Event> = items.iter().map(|item| &item.event).collect();
        let answers = scripts.process(tenant_uuid, source, &events, left).await;
        let mut parts = vec![0_usize; self.ends.len()];
        for (item, answer) in items.into_iter().zip(answers) {
            let input = item.input;
            let events = match answer {
                Processed::Events(events) => events,
                Processed::Failed(problem) => {
                    self.failed(input, at, problem);
                    continue;
                }
                Processed::NotRun(problem) => {
                    self.wait(input, &problem);
                    break;
                }
            };
            if events.is_empty() {
                self.dropped(input, at);
            }
            let Some(parts) = parts.get_mut(input) else {
                continue;
            };
            *parts += events.len();
            let bytes = events
                .iter()
                .map(size::check)
                .sum::<Result<usize, String>>();
            match bytes {
                Err(problem) => self.failed(input, at, problem),
                Ok(_) if *parts > MAX_PARTS => {
                    self.failed(
                        input,
                        at,
                        format!("more than {MAX_PARTS} events came of one"),
                    );
                }
                Ok(bytes) => {
                    let text = item.text;
                    self.items.extend(events.into_iter().map(|event| Item {
                        input,
                        event,
                        text: text.clone(),
                    }));
                    self.made += bytes;
                }
            }
            if self.is_too_large(input) {
                self.wait(input, TOO_LARGE);
                break;
            }
        }
        self.leave_out_ended();
    }

    /// Whether the event continues.
    fn apply(&mut self, step: &Step, item: &mut Item) -> Result<bool, String> {
        let Some(facts) = self.facts.get(item.input) else {
            return Ok(false);
        };
        let Some(work) = self.work.get_mut(item.input) else {
            return Ok(false);
        };
        let (input, now) = (item.input, facts.at);
        let event = &mut item.event;
        match step {
            Step::Filter(condition) => return condition.holds(event, work),
            Step::Map(set) => {
                let values = set
                    .iter()
                    .map(|(_, expression)| expression.json(event, work))
                    .collect::<Result<Vec<_>, _>>()?;
                for ((path, _), value) in set.iter().zip(values) {
                    path.set(event, value);
                }
                self.made += size::check(event)?;
            }
            Step::Rename(fields) => {
                let taken: Vec<Option<Json>> =
                    fields.iter().map(|(from, _)| from.take(event)).collect();
                for ((_, to), value) in fields.iter().zip(taken) {
                    if let Some(value) = value {
                        to.set(event, value);
                    }
                }
                self.made += size::check(event)?;
            }
            Step::Drop(fields) => {
                for field in fields {
                    field.take(event);
                }
            }
            Step::Scale {
                measured,
                factor,
                offset,
            } => {
                for one in measured.all_mut(event) {
                    scale(measured, one, *factor, *offset)?;
                }
            }
            Step::Convert {
                measured,
                quantity,
                unit,
            } => {
                for one in measured.all_mut(event) {
                    let given = one
                        .get("unit")
                        .and_then(Json::as_str)
                        .or(quantity.unit)
                        .unwrap_or_default();
                    let Some((factor, offset)) =
                        quantity.conversion(canonical(given), canonical(unit))
                    else {
                        return Err(format!(
                            "{} cannot be converted from {given} to {unit}",
                            measured.name
                        ));
                    };
                    scale(measured, one, factor, offset)?;
                    one.insert("unit".to_owned(), unit.as_str().into());
                }
            }
            Step::Sample { every, by, slot } => {
                let key = if *by == By::Hub {
                    Key::Hub(facts.hub_uuid)
                } else {
                    facts.device
                };
                return Ok(self.is_due((input, *slot), key, now, *every));
            }
            Step::Dedupe { within, slot } => {
                let key = facts.observation;
                return Ok(self.is_due((input, *slot), key, now, *within));
            }
            Step::OnChange {
                measured,
                delta,
                most,
                slot,
            } => {
                let key = facts.device;
                let values = remembered(measured, event);
                let has_changed = values.iter().any(|(index, value)| {
                    let last = self.state.get(*slot, &(key, *index));
                    last.is_none_or(|last| {
                        is_over(last.at, now, *most) || last.value.differs(*value, *delta)
                    })
                });
                if has_changed {
                    for (index, value) in values {
                        self.state
                            .put((input, *slot), (key, index), (now, value), &mut self.undo);
                    }
                }
                return Ok(has_changed);
            }
            Step::Template(template) => {
                let text = template.render_within(event, work)?;
                self.made += text.len();
                item.text = Some(text);
            }
            Step::Script(_) => {}
        }
        Ok(true)
    }

    /// Whether so much time has passed since something passed for this key. If so, it passes now.
    fn is_due(&mut self, (input, slot): (usize, usize), key: Key, now: i64, every: i64) -> bool {
        let place = (key, None);
        let is_due = self
            .state
            .get(slot, &place)
            .is_none_or(|last| is_over(last.at, now, Some(every)));
        if is_due {
            self.state.put(
                (input, slot),
                place,
                (now, Remembered::Nothing),
                &mut self.undo,
            );
        }
        is_due
    }

    pub fn outcomes(self) -> Vec<Outcome> {
        let mut outputs: Vec<Vec<Output>> = self.ends.iter().map(|_| Vec::new()).collect();
        for item in self.items {
            if let Some(outputs) = outputs.get_mut(item.input) {
                let body = item
                    .text
                    .map_or_else(|| Body::Event(item.event.clone()), Body::Text);
                outputs.push(Output {
                    body,
                    event: item.event,
                });
            }
        }
        let outcome = |(end, outputs): (Option<End>, Vec<Output>)| match end {
            Some(End::Failed(step, problem)) => Outcome::Failed { step, problem },
            Some(End::NotRun(problem)) => Outcome::NotRun { problem },
            Some(End::Dropped(step)) if outputs.is_empty() => Outcome::Dropped { step },
            _ => Outcome::Passed(outputs),
        };
        self.ends.into_iter().zip(outputs).map(outcome).collect()
    }
}

impl Facts {
    fn of(input: &Input) -> Self {
        let address = || {
            let digits: String = input.address.chars().filter(|c| *c != ':').collect();
            let bits = u64::from_str_radix(&digits, 16)
                .ok()
                .filter(|_| digits.len() == 12);
            Key::Address(bits.unwrap_or_else(|| hash(input.address.as_bytes()) | 1 << 63))
        };
        Self {
            at: input.received_at.as_micros(),
            device: input.device_instance_id.map_or_else(address, Key::Device),
            hub_uuid: input.hub_uuid,
            observation: Key::Observation(input.observation_id.unwrap_or(input.ble_event_id)),
        }
    }
}

/// Whether a time is over. Before its beginning it is too: then the pipeline was set back.
fn is_over(since: i64, now: i64, lasts: Option<i64>) -> bool {
    now < since || lasts.is_some_and(|lasts| now.saturating_sub(since) >= lasts)
}

fn scale(
    measured: &Measured,
    one: &mut Map<String, Json>,
    factor: f64,
    offset: f64,
) -> Result<(), String> {
    let Some(value) = one.get("value").and_then(Json::as_f64) else {
        return Err(format!("the value of {} is not a number", measured.name));
    };
    let scaled = number(rounded(value * factor + offset));
    if scaled.is_null() {
        return Err(format!("{} becomes too large for a number", measured.name));
    }
    one.insert("value".to_owned(), scaled);
    Ok(())
}

/// The values of a quantity in an event, with their indexes.
fn remembered(measured: &Measured, event: &Event) -> Vec<(Option<u8>, Remembered)> {
    let value = |one: &Map<String, Json>| {
        let index = one
            .get("index")
            .and_then(Json::as_u64)
            .and_then(|index| u8::try_from(index).ok());
        let value = match one.get("value")? {
            Json::Bool(value) => Remembered::Bool(*value),
            Json::Number(value) => Remembered::Number(value.as_f64()?),
            Json::String(text) => Remembered::Text(hash(text.as_bytes())),
            _ => return None,
        };
        Some((index, value))
    };
    measured.all(event).filter_map(value).collect()
}

impl Remembered {
    /// Whether two numbers differ by `delta`.
    fn differs(self, other: Self, delta: f64) -> bool {
        match (self, other) {
            // Halves of a last digit are not held against what is as far as asked for.
            (Self::Number(last), Self::Number(now)) => {
                last != now && rounded((now - last).abs()) >= delta
            }
            (last, now) => last != now,
        }
    }
}
