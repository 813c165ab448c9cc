//! Makes messages of a lane's part of the log: reads events, picks those of its source, runs the
//! steps, gathers batches. Where batches end after a restart is given by what was planned before,
//! so that a message that may have been sent is made again with the same id and the same events.
//!
//! The state of the steps is stored as a snapshot at some event. A lane that is taken over runs the
//! steps from there up to its cursor and sends nothing: the state is then what it was.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hub_base::error::Result;
use hub_destinations::{Message, Payload};
use hub_protocol::Timestamp;
use hub_scripts::Scripts;
use hub_steps::{Body, Input, Outcome, Output, State};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::super::definition::Compiled;
use super::done::DeadLetter;
use super::feed::{Feed, LogEvent};
use super::progress::{Batch, Unit};

/// Events that are read and run through the steps at once, for messages of one event each.
const SMALL_PAGE: usize = 64;
/// The same for batches.
const LARGE_PAGE: usize = 1000;
/// Pages of which nothing is sent, before others have their turn.
const MAX_PAGES: usize = 4;
/// A message is closed when it is as large as this.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;
/// How long the scripts of a page may take.
const SCRIPT_TIME: Duration = Duration::from_secs(10);
/// The event type in the envelope of a message.
pub const EVENT_TYPE: &str = "ble.event";

/// What the steps made of one event.
struct Item {
    event: Arc<LogEvent>,
    made: Made,
}

enum Made {
    Nothing,
    Message(Vec<Output>),
    Dead(String),
}

pub struct Builder {
    pub compiled: Arc<Compiled>,
    feed: Arc<Feed>,
    scripts: Scripts,
    state: State,
    /// Events up to here have gone through the steps.
    read_to: i64,
    /// Events up to here are in units.
    covered_to: i64,
    /// Of which these are not in a unit yet.
    ready: VecDeque<Item>,
    /// The start of a planned message whose rest could not be made yet.
    unfinished: Option<Gathered>,
    /// Ranges that were settled before this lane was taken over.
    settled: Vec<(i64, i64)>,
    /// Ends of messages that may have been sent before it was taken over.
    planned: VecDeque<i64>,
    /// The last event of a replay.
    until: i64,
    /// What the ids of its messages begin with.
    id_prefix: String,
}

/// What could be built.
pub enum Built {
    /// At least one unit.
    Units(Vec<Unit>),
    /// There is nothing to read.
    Nothing,
    /// There was no time for a script.
    NotRun(String),
}

/// Where a builder begins.
pub struct Start {
    pub settled: Vec<(i64, i64)>,
    pub planned: VecDeque<i64>,
    pub until: i64,
    /// The state of the steps, and the event after which it was so.
    pub state: State,
    pub state_id: i64,
}

impl Builder {
    pub fn new(
        compiled: Arc<Compiled>,
        feed: Arc<Feed>,
        scripts: Scripts,
        id: Uuid,
        start: Start,
    ) -> Self {
        let Start {
            settled,
            planned,
            until,
            state,
            state_id,
        } = start;
        let id_prefix = format!("msg_{}", id.simple());
        Self {
            compiled,
            feed,
            scripts,
            state,
            read_to: state_id,
            covered_to: state_id,
            ready: VecDeque::new(),
            unfinished: None,
            settled,
            planned,
            until,
            id_prefix,
        }
    }

    /// Runs the steps on events that are settled, for their state alone. Returns whether the state
    /// is that of `cursor`.
    pub async fn warm_up(&mut self, cursor: i64) -> Result<bool> {
        while self.read_to < cursor {
            let before = self.read_to;
            let until = std::mem::replace(&mut self.until, cursor);
            let filled = self.fill(LARGE_PAGE).await;
            self.until = until;
            self.ready.clear();
            if filled?.is_some() {
                return Ok(false);
            }
            if self.read_to == before {
                // The log does not reach that far yet.
                self.read_to = cursor;
            }
        }
        self.covered_to = self.read_to;
        Ok(true)
    }

    pub fn is_batched(&self) -> bool {
        self.compiled.delivery.batch_events > 1
    }

    /// Whether there is more to build, now.
    pub fn has_more(&self) -> bool {
        // Events of which nothing is sent may follow the last unit.
        !self.ready.is_empty()
            || self.unfinished.is_some()
            || self.covered_to < self.read_to
            || (self.read_to < self.until && self.read_to < *self.feed.head().borrow())
    }

    /// Ends of messages that may have been sent before this lane was taken over, and are not made
    /// yet.
    pub fn planned(&self) -> &VecDeque<i64> {
        &self.planned
    }

    /// Whether a batch need not wait for more events.
    pub fn has_batch(&self) -> bool {
        !self.planned.is_empty()
            || self.until < i64::MAX
            || self.feed.has(
                self.read_to,
                self.compiled
                    .delivery
                    .batch_events
                    .saturating_sub(self.ready.len()),
            )
    }

    /// Whether all that a replay is to read has been.
    pub fn is_finished(&self) -> bool {
        self.ready.is_empty() && self.unfinished.is_none() && self.read_to >= self.until
    }

    /// The state of the steps, and the event after which it is so; None while events that have
    /// gone through the steps are not in a unit.
    pub fn snapshot(&self) -> Option<(i64, Vec<u8>)> {
        let has_rest = !self.ready.is_empty() || self.unfinished.is_some();
        (self.compiled.program.has_state() && !has_rest)
            .then(|| (self.read_to, self.state.to_bytes()))
    }

    /// The next units: one with a message at most.
    pub async fn next(&mut self, now: Timestamp) -> Result<Built> {
        let built = self.build(now).await?;
        if let Built::Units(units) = &built
            && let Some(last) = units.last()
        {
            self.covered_to = last.to;
        }
        Ok(built)
    }

    async fn build(&mut self, now: Timestamp) -> Result<Built> {
        let mut gathered = self.unfinished.take().unwrap_or_default();
        let mut units = Vec::new();
        let mut pages = 0;
        let page = if self.is_batched() {
            LARGE_PAGE
        } else {
            SMALL_PAGE
        };
        // A planned message is made to its end, however sparse its events are.
        while pages < MAX_PAGES || (gathered.has_message() && !self.planned.is_empty()) {
            pages += 1;
            while let Some(item) = self.ready.pop_front() {
                let to = item.event.id();
                if self.is_settled(to) {
                    gathered.passed = Some(to);
                    // The end of a settled message is not that of the next one.
                    while self.planned.pop_front_if(|end| *end <= to).is_some() {}
                    continue;
                }
                // Events of which nothing is sent may have ended a message before this one.
                let mut is_past_end = false;
                while self.planned.pop_front_if(|end| *end < to).is_some() {
                    is_past_end = true;
                }
                if is_past_end && gathered.has_message() {
                    self.ready.push_front(item);
                    units.extend(gathered.close(self, now));
                    return Ok(Built::Units(units));
                }
                gathered.add(&self.compiled, item, now);
                let is_planned_end = self.planned.pop_front_if(|end| *end == to).is_some();
                let is_full = gathered.payloads.len() >= self.compiled.delivery.batch_events
                    || gathered.bytes >= MAX_MESSAGE_BYTES;
                if gathered.has_message()
                    && (is_planned_end || (is_full && self.planned.is_empty()))
                {
                    units.extend(gathered.close(self, now));
                    return Ok(Built::Units(units));
                }
            }
            if self.read_to >= self.until {
                break;
            }
            if let Some(problem) = self.fill(page).await? {
                if gathered.has_message() && !self.planned.is_empty() {
                    self.unfinished = Some(gathered);
                    return Ok(Built::NotRun(problem));
                }
                // What was gathered before is sent.
                match gathered.close(self, now) {
                    Some(unit) => return Ok(Built::Units(vec![unit])),
                    None => return Ok(Built::NotRun(problem)),
                }
            }
            if self.ready.is_empty() && self.read_to >= (*self.feed.head().borrow()).min(self.until)
            {
                break;
            }
        }
        // All events up to here were read; those after the last one that was gathered say nothing.
        if self.ready.is_empty() {
            gathered.reach(self.read_to);
        }
        units.extend(gathered.close(self, now));
        Ok(if units.is_empty() {
            Built::Nothing
        } else {
            Built::Units(units)
        })
    }

    fn is_settled(&mut self, id: i64) -> bool {
        self.settled.retain(|(_, end)| *end >= id);
        self.settled
            .iter()
            .any(|(after, end)| *after < id && id <= *end)
    }

    /// Reads a page and runs the steps. Returns why not, if there was no time for a script.
    async fn fill(&mut self, limit: usize) -> Result<Option<String>> {
        let read = self.feed.read(self.read_to, limit).await?;
        let mut complete_to = read.complete_to;
        let mut events = read.events;
        if complete_to > self.until {
            events.retain(|event| event.id() <= self.until);
            complete_to = self.until;
        }
        let source = &self.compiled.source;
        let bound = self
            .feed
            .bound(self.compiled.pipeline_uuid, source, &events)
            .await?;
        let is_wanted = |event: &Arc<LogEvent>| {
            let selects = |input: &Input| {
                source.selects(
                    input.hub_uuid,
                    &bound,
                    input.device_instance_id,
                    &input.event,
                )
            };
            event.may_be_of(source, &bound) && event.input().is_some_and(selects)
        };
        events.retain(is_wanted);
        if let Some(route) = self.feed.route().await? {
            events.retain(|event| event.is_for(&route, self.compiled.pipeline_uuid));
        }
        let before = self
            .compiled
            .program
            .has_script()
            .then(|| self.state.clone());
        let mut outcomes = self.run(&events).await;
        let mut problem = None;
        if let Some(at) = outcomes
            .iter()
            .position(|outcome| matches!(outcome, Outcome::NotRun { .. }))
        {
            // What comes after it has changed the state, and is run again.
            if let Some(Outcome::NotRun { problem: why }) = outcomes.get(at) {
                problem = Some(why.clone());
            }
            if let Some(before) = before {
                self.state = before;
            }
            complete_to = events.get(at).map_or(self.read_to, |event| event.id() - 1);
            events.truncate(at);
            outcomes = self.run(&events).await;
            if outcomes
                .iter()
                .any(|outcome| matches!(outcome, Outcome::NotRun { .. }))
            {
                // Not even those before it: nothing of this page is kept.
                return Ok(problem);
            }
        }
        for (event, outcome) in events.into_iter().zip(outcomes) {
            let made = match outcome {
                Outcome::Passed(outputs) if outputs.is_empty() => Made::Nothing,
                Outcome::Passed(outputs) => Made::Message(outputs),
                Outcome::Dropped { .. } | Outcome::NotRun { .. } => Made::Nothing,
                Outcome::Failed { step, problem } => {
                    Made::Dead(format!("step {}: {problem}", step + 1))
                }
            };
            self.ready.push_back(Item { event, made });
        }
        self.read_to = complete_to;
        Ok(problem)
    }

    async fn run(&mut self, events: &[Arc<LogEvent>]) -> Vec<Outcome> {
        let inputs: Vec<Input> = events
            .iter()
            .filter_map(|event| event.input().cloned())
            .collect();
        let tenant_uuid = self.compiled.tenant_uuid;
        self.compiled
            .program
            .run(
                &mut self.state,
                inputs,
                Some(&self.scripts),
                tenant_uuid,
                SCRIPT_TIME,
            )
            .await
    }
}

/// An event as steps take it, of which only the JSON is left.
pub fn input_of_json(id: i64, event: Map<String, Value>) -> Option<Input> {
    let text = |member: &str| event.get(member).and_then(Value::as_str);
    let received_at = Timestamp::from_micros(id);
    Some(Input {
        received_at,
        observed_at: text("observedAt")
            .and_then(|at| at.parse().ok())
            .unwrap_or(received_at),
        hub_uuid: text("hubUuid")?.parse().ok()?,
        device_instance_id: event.get("deviceInstanceId").and_then(Value::as_i64),
        address: text("address").unwrap_or_default().to_owned(),
        observation_id: None,
        ble_event_id: id,
        event,
    })
}

/// What goes into the next unit.
#[derive(Default)]
struct Gathered {
    payloads: Vec<Payload>,
    ids: Vec<i64>,
    first: Option<Arc<LogEvent>>,
    bytes: usize,
    dead: Vec<DeadLetter>,
    /// The last event that it covers.
    passed: Option<i64>,
}

impl Gathered {
    fn has_message(&self) -> bool {
        !self.payloads.is_empty()
    }

    fn reach(&mut self, id: i64) {
        self.passed = self.passed.max(Some(id));
    }

    fn add(&mut self, compiled: &Compiled, item: Item, now: Timestamp) {
        let Item { event, made } = item;
        self.reach(event.id());
        match made {
            Made::Nothing => {}
            Made::Dead(reason) => {
                let id = format!("msg_{}_{}", compiled.pipeline_uuid.simple(), event.id());
                self.dead.push(DeadLetter::new(
                    compiled,
                    id,
                    &[event.id()],
                    &event,
                    reason,
                    now,
                ));
            }
            Made::Message(outputs) => {
                self.ids.push(event.id());
                for Output {
                    body,
                    event: origin,
                } in outputs
                {
                    self.bytes += size_of_body(&body);
                    self.payloads.push(Payload {
                        body,
                        event: Arc::new(origin),
                    });
                }
                self.first.get_or_insert(event);
            }
        }
    }

    /// The unit, if it covers anything.
    fn close(self, builder: &Builder, now: Timestamp) -> Option<Unit> {
        let Self {
            payloads,
            ids,
            first,
            bytes,
            dead,
            passed,
        } = self;
        let to = passed?;
        let batch = match (first, ids.first(), ids.last()) {
            (Some(first), Some(first_id), Some(last_id)) => {
                let id = match first_id == last_id {
                    true => format!("{}_{first_id}", builder.id_prefix),
                    false => format!("{}_{first_id}_{last_id}", builder.id_prefix),
                };
                let message = Message {
                    id,
                    event_type: EVENT_TYPE,
                    sent_at: now,
                    is_batch: builder.is_batched() || payloads.len() > 1,
                    bodies: payloads,
                    tenant_uuid: builder.compiled.tenant_uuid,
                    pipeline_uuid: builder.compiled.pipeline_uuid,
                    first_event_id: *first_id,
                    last_event_id: *last_id,
                    trace: None,
                };
                Some(Arc::new(Batch {
                    message,
                    ids,
                    first,
                    bytes,
                }))
            }
            _ => None,
        };
        Some(Unit::new(to, batch, dead))
    }
}

/// About the bytes of a body.
fn size_of_body(body: &Body) -> usize {
    fn of_value(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len() + 2,
            Value::Array(items) => 2 + items.iter().map(|item| of_value(item) + 1).sum::<usize>(),
            Value::Object(members) => of_members(members),
            _ => 8,
        }
    }
    fn of_members(members: &Map<String, Value>) -> usize {
        2 + members
            .iter()
            .map(|(name, value)| name.len() + 4 + of_value(value))
            .sum::<usize>()
    }
    match body {
        Body::Event(event) => of_members(event),
        Body::Text(text) => text.len(),
    }
}
