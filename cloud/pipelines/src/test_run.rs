//! Test runs: what a pipeline, saved or not, makes of some events. Nothing is stored. Only what the
//! caller asks to be sent is sent, as a test.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::check::Check;
use hub_destinations::{
    self as destinations, Attempt, Connections, Failure, Message, Payload, Preview, Signing,
};
use hub_devices::ble;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, Timestamp};
use hub_steps::{self as steps, Body, Input, Outcome, Output, Program, StepTrace};
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::bound;
use super::definition::{self, Delivery, Source, input_of};
use super::destination::Destination;
use super::draft::{self, require_own, source_of, steps_of};
use super::members::Members;
use super::operations;

/// Events of one test run.
pub const MAX_EVENTS: usize = 100;
/// Events at the end of the log of which `last` takes some.
const SEARCHED: i64 = 10_000;
/// Events that one statement reads.
const PAGE: i64 = 1000;
const PAGE_BYTES: i64 = 8 * 1024 * 1024;
/// After this time no further event is tried.
const MAX_TIME: Duration = Duration::from_secs(20);
const MEMBERS: [&str; 7] = [
    "steps",
    "source",
    "destination",
    "event",
    "bleEventIds",
    "last",
    "send",
];

/// The outcome of one event.
pub struct Tried {
    pub input: Map<String, Value>,
    /// Whether the source takes it.
    pub selected: bool,
    pub steps: Vec<StepTrace>,
    /// The event after the steps, or a text; a list if a script made several.
    pub output: Option<Value>,
    pub request: Option<Preview>,
    pub response: Option<Response>,
}

/// What a receiver answered.
pub struct Response {
    pub delivered: bool,
    pub status: Option<u16>,
    pub body: Option<String>,
    pub error: Option<String>,
    pub duration: Duration,
}

impl From<Attempt> for Response {
    fn from(attempt: Attempt) -> Self {
        let error = attempt.result.err().map(|failure| match failure {
            Failure::Receiver { reason, .. }
            | Failure::Credentials { reason }
            | Failure::Message { reason }
            | Failure::Gone { reason } => reason,
        });
        Self {
            delivered: error.is_none(),
            status: attempt.response_status,
            body: attempt.response_body,
            error,
            duration: attempt.duration,
        }
    }
}

/// What is tried: the saved revision, but for the parts that are given.
struct Trial {
    pipeline_uuid: Uuid,
    source: Source,
    program: Program,
    destination: destinations::Definition,
    auth: Option<SecretString>,
    signing: Option<Signing>,
    delivery: Delivery,
}

/// Whether the request asks for sending.
pub fn sends(given: &Map<String, Value>) -> bool {
    given
        .get("send")
        .and_then(Value::as_bool)
        .unwrap_or_default()
}

/// One at a time for each tenant.
pub async fn run(
    core: &Core,
    scope: &Scope,
    pipeline_uuid: Uuid,
    given: &Map<String, Value>,
) -> Result<Vec<Tried>> {
    let _turn = core.turns.dry_runs.take(scope.tenant_uuid().0).await?;
    let mut check = Check::new();
    let chosen = Chosen::of(given, core.clock.now(), &mut check);
    check.done()?;
    let trial = Trial::of(core, scope, pipeline_uuid, given).await?;
    let inputs = match chosen {
        Chosen::Event(input) => vec![*input],
        Chosen::Ids(ids) => stored(core, scope, &ids).await?,
        Chosen::Last(count) => last(core, scope, pipeline_uuid, &trial.source, count).await?,
    };
    trial.run(core, scope, inputs, sends(given)).await
}

/// The events to try.
enum Chosen {
    Event(Box<Input>),
    Ids(Vec<i64>),
    Last(usize),
}

impl Chosen {
    fn of(given: &Map<String, Value>, now: Timestamp, check: &mut Check) -> Self {
        let named: Vec<&str> = ["event", "bleEventIds", "last"]
            .into_iter()
            .filter(|name| given.get(*name).is_some_and(|it| !it.is_null()))
            .collect();
        let mut members = Members::of("", given, &MEMBERS, check);
        members.flag("send");
        if let [_, second, ..] = named[..] {
            members.refuse(second, "does not go with another choice of events");
        }
        match named.first() {
            Some(&"event") => match given.get("event").and_then(Value::as_object) {
                Some(event) => Self::Event(Box::new(input_given(event, now, check))),
                None => {
                    members.refuse("event", "must be an object");
                    Self::Last(1)
                }
            },
            Some(&"bleEventIds") => {
                let ids = members.list("bleEventIds", "the id of an event");
                if ids.len() > MAX_EVENTS || ids.is_empty() {
                    members.refuse("bleEventIds", format!("must have 1 to {MAX_EVENTS} ids"));
                }
                Self::Ids(ids)
            }
            _ => {
                let count = members.whole("last", 1..=MAX_EVENTS as u64).unwrap_or(1);
                Self::Last(usize::try_from(count).unwrap_or(1))
            }
        }
    }
}

/// An event that was made up. What it does not say is as of an event of an unknown device.
fn input_given(event: &Map<String, Value>, now: Timestamp, check: &mut Check) -> Input {
    let defaults = json!({
        "bleEventId": now.as_micros(),
        "receivedAt": now,
        "hubUuid": HubUuid(Uuid::nil()),
        "deviceUuid": null,
        "measurements": [],
        "protocolRevision": null,
        "processingStatus": "RECEIVED",
        "deliveryStatus": "PENDING",
        "observedAt": now,
        "address": "00:00:00:00:00:00",
    });
    let mut whole = defaults.as_object().cloned().unwrap_or_default();
    whole.extend(event.clone());
    let bytes = serde_json::to_string(&whole).map_or(usize::MAX, |text| text.len());
    check.that(
        bytes <= steps::MAX_EVENT_BYTES,
        "/event",
        format!("must have at most {} KiB", steps::MAX_EVENT_BYTES / 1024),
    );
    let all: Vec<&str> = whole.keys().map(String::as_str).collect();
    let mut members = Members::of("/event", &whole, &all, check);
    let received_at = members.read("receivedAt", "a time").unwrap_or(now);
    let observed_at = members.read("observedAt", "a time").unwrap_or(received_at);
    let hub_uuid = members
        .read("hubUuid", "the UUID of a hub")
        .unwrap_or(HubUuid(Uuid::nil()));
    let device_instance_id = members.read("deviceInstanceId", "the id of a device");
    let address = members.read("address", "an address").unwrap_or_default();
    let ble_event_id = members
        .read("bleEventId", "the id of an event")
        .unwrap_or_default();
    Input {
        event: whole,
        received_at,
        observed_at,
        hub_uuid,
        device_instance_id,
        address,
        observation_id: None,
        ble_event_id,
    }
}

async fn stored(core: &Core, scope: &Scope, ids: &[i64]) -> Result<Vec<Input>> {
    let events = ble::some(core, scope, ids).await?;
    if events.len() < ids.len() {
        let at = ids
            .iter()
            .position(|id| events.iter().all(|event| event.ble_event_id != *id))
            .unwrap_or_default();
        return Err(Error::field(
            format!("/bleEventIds/{at}"),
            "is no BLE event of this tenant",
        ));
    }
    events.into_iter().map(input_of).collect()
}

/// The last events that the source takes, among the last ones of the log; oldest first.
async fn last(
    core: &Core,
    scope: &Scope,
    pipeline_uuid: Uuid,
    source: &Source,
    count: usize,
) -> Result<Vec<Input>> {
    let mut found = Vec::with_capacity(count);
    let mut before = i64::MAX;
    for _ in 0..SEARCHED / PAGE {
        let events = ble::last_before(core, scope, before, PAGE, PAGE_BYTES).await?;
        let Some(oldest) = events.first().map(|event| event.ble_event_id) else {
            break;
        };
        let hubs = events.iter().map(|event| event.hub_uuid);
        let bound = bound::among(&mut core.db.read().await?, pipeline_uuid, source, hubs).await?;
        for event in events.into_iter().rev() {
            let input = input_of(event)?;
            if source.selects(
                input.hub_uuid,
                &bound,
                input.device_instance_id,
                &input.event,
            ) {
                found.push(input);
                if found.len() == count {
                    found.reverse();
                    return Ok(found);
                }
            }
        }
        before = oldest;
    }
    found.reverse();
    Ok(found)
}

impl Trial {
    async fn of(
        core: &Core,
        scope: &Scope,
        pipeline_uuid: Uuid,
        given: &Map<String, Value>,
    ) -> Result<Self> {
        let row = operations::get(&mut core.db.read().await?, scope, pipeline_uuid).await?;
        let stored = row.stored_definition()?;
        let is_given = |part: &str| given.get(part).is_some_and(|value| !value.is_null());
        let source = match is_given("source") {
            true => {
                let mut check = Check::new();
                let (source, _) = source_of("", given, core.clock.now(), &mut check);
                check.done()?;
                require_own(&mut core.db.read().await?, scope, "", &source).await?;
                source
            }
            false => stored.source.clone(),
        };
        let of_stored = |problem: steps::Problem| {
            Error::field(format!("/steps{}", problem.pointer), problem.message)
        };
        let program = match is_given("steps") {
            true => {
                let (_, program) = steps_of("", given)?;
                draft::require_compiled(core, scope, "", &program).await?;
                program
            }
            false => Program::compile(&stored.steps).map_err(of_stored)?,
        };
        let before = row.stored_destination(core, &stored)?;
        let (destination, auth) = match is_given("destination") {
            true => {
                let read = Destination::read(core, "", given, Some(&before))?;
                (read.definition, read.auth)
            }
            false => {
                let definition = before
                    .compile(core)
                    .map_err(|problem| Error::field("/destination", problem))?;
                (definition, before.auth)
            }
        };
        let signing = definition::signing_of(core, (pipeline_uuid, row.revision)).await?;
        Ok(Self {
            pipeline_uuid,
            source,
            program,
            destination,
            auth,
            signing,
            delivery: stored.delivery,
        })
    }

    async fn run(
        &self,
        core: &Core,
        scope: &Scope,
        inputs: Vec<Input>,
        sends: bool,
    ) -> Result<Vec<Tried>> {
        let ends_at = Instant::now() + MAX_TIME;
        let connections = Connections::new();
        let mut state = self.program.new_state();
        let mut all = Vec::with_capacity(inputs.len());
        let hubs = inputs.iter().map(|input| input.hub_uuid);
        let bound = bound::among(
            &mut core.db.read().await?,
            self.pipeline_uuid,
            &self.source,
            hubs,
        )
        .await?;
        for input in inputs {
            let mut tried = Tried {
                input: input.event.clone(),
                selected: self.source.selects(
                    input.hub_uuid,
                    &bound,
                    input.device_instance_id,
                    &input.event,
                ),
                steps: Vec::new(),
                output: None,
                request: None,
                response: None,
            };
            if tried.selected && Instant::now() < ends_at {
                let id = input.ble_event_id;
                let scripts = Some(&core.scripts);
                let traced =
                    self.program
                        .trace_to_end(&mut state, input, scripts, scope.tenant_uuid());
                let (steps, outcome) = traced.await;
                tried.steps = steps;
                if let Outcome::Passed(outputs) = outcome {
                    tried.output = shown(&outputs);
                    let message = self.message(core, scope, id, outputs);
                    tried.request = Some(destinations::preview(&self.destination, &message));
                    if sends {
                        tried.response =
                            Some(self.send(core, &message, &connections, ends_at).await);
                    }
                }
            }
            all.push(tried);
        }
        connections.close(self.pipeline_uuid);
        Ok(all)
    }

    fn message(
        &self,
        core: &Core,
        scope: &Scope,
        ble_event_id: i64,
        outputs: Vec<Output>,
    ) -> Message {
        let payload = |Output { body, event }| Payload {
            body,
            event: Arc::new(event),
        };
        Message {
            id: format!("test_{}", Uuid::new_v4().simple()),
            event_type: "ble.event",
            sent_at: core.clock.now(),
            bodies: outputs.into_iter().map(payload).collect(),
            is_batch: self.delivery.batch_events > 1,
            tenant_uuid: scope.tenant_uuid(),
            pipeline_uuid: self.pipeline_uuid,
            first_event_id: ble_event_id,
            last_event_id: ble_event_id,
            trace: None,
        }
    }

    async fn send(
        &self,
        core: &Core,
        message: &Message,
        connections: &Connections,
        ends_at: Instant,
    ) -> Response {
        let within = self
            .delivery
            .timeout
            .min(ends_at.saturating_duration_since(Instant::now()));
        if within.is_zero() {
            let error = Some("there was no time for it in this test run".to_owned());
            return Response {
                delivered: false,
                status: None,
                body: None,
                error,
                duration: Duration::ZERO,
            };
        }
        let (auth, signing) = (self.auth.as_ref(), self.signing.as_ref());
        destinations::send(
            &self.destination,
            auth,
            signing,
            message,
            connections,
            &core.outgoing,
            within,
        )
        .await
        .retried_on(&self.delivery.retry_on)
        .into()
    }
}

/// What left the steps.
pub fn shown(outputs: &[Output]) -> Option<Value> {
    let one = |output: &Output| match &output.body {
        Body::Event(event) => Value::Object(event.clone()),
        Body::Text(text) => Value::String(text.clone()),
    };
    match outputs {
        [] => None,
        [output] => Some(one(output)),
        outputs => Some(outputs.iter().map(one).collect()),
    }
}
