//! A definition as somebody gives it: read, checked, compiled. Errors name their
//! place as a JSON pointer, all of a part at once.

use std::time::Duration;

use hub_adverts::quantity::quantity;
use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::check::{Check, filled};
use hub_destinations as destinations;
use hub_devices::{device_catalog, device_instances};
use hub_fleet::hubs;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, Timestamp};
use hub_scripts::Trial;
use hub_steps::{self as steps, Program};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::definition::{Delivery, Source};
use super::destination::{Destination, Stored};
use super::members::{Members, object, refused, require_small, time_of};

const MAX_NAME_CHARS: usize = 200;
const MAX_TEXT_CHARS: usize = 2000;
/// What a request may have. The rest of what is shown of a pipeline is ignored, so that what was
/// read can be changed and sent back.
const MEMBERS: [&str; 7] = [
    "name",
    "description",
    "enabled",
    "source",
    "steps",
    "destination",
    "delivery",
];
const SHOWN: [&str; 16] = [
    "pipelineUuid",
    "revision",
    "status",
    "cursor",
    "lagEvents",
    "lagSeconds",
    "lastDeliveredAt",
    "failingSince",
    "lastError",
    "nextAttemptAt",
    "lost",
    "secretHint",
    "signingSecret",
    "previousSecretUntil",
    "createdAt",
    "updatedAt",
];

const MAX_BATCH_EVENTS: u64 = 1000;
const MAX_BATCH_MILLIS: u64 = 60_000;
const DEFAULT_BATCH_MILLIS: u64 = 1000;
const MAX_CONCURRENCY: u64 = 32;
const MAX_TIMEOUT_SECS: u64 = 30;
const DEFAULT_TIMEOUT_SECS: u64 = 15;
const MAX_RETRY_ON: usize = 32;

/// A pipeline to create. A member that is not known is an error.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "only describes the request; `Draft` reads it")]
pub struct CreatePipelineRequest {
    /// Display name.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: String,
    /// Free-text description.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    description: Option<String>,
    /// Whether it runs; true when absent.
    enabled: Option<bool>,
    /// Which events it takes.
    source: SourceRequest,
    /// What is done with each event, in order.
    #[schemars(length(max = steps::MAX_STEPS))]
    steps: Option<Vec<Map<String, Value>>>,
    /// Where what is left goes. `kind` is HTTP, MQTT, NATS or S3; each has members of its own.
    #[schemars(extend("x-kinds" = destinations::forms().map(|form| form.kind)))]
    destination: Map<String, Value>,
    /// How it is sent.
    delivery: Option<DeliveryRequest>,
}

/// Which events a pipeline takes; all where nothing is named.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "only describes the request; `Draft` reads it")]
pub struct SourceRequest {
    /// Events of devices of these models.
    #[schemars(length(max = 256))]
    device_uuids: Option<Vec<Uuid>>,
    /// Events of these devices.
    #[schemars(length(max = 256))]
    device_instance_ids: Option<Vec<i64>>,
    /// Events that these hubs received.
    #[schemars(length(max = 256))]
    hub_uuids: Option<Vec<HubUuid>>,
    /// Events of hubs to which a bundle has bound the pipeline, and of those in `hubUuids`. Where
    /// `hubUuids` names any, those that it is bound to are taken as well.
    bound_hubs: Option<bool>,
    /// Events with a measurement of one of these quantities.
    #[schemars(length(max = 256))]
    quantities: Option<Vec<String>>,
    /// Whether a model of the catalog has to be known, or must not be.
    known: Option<bool>,
    /// Where a new pipeline begins: `NOW`, or the time of receipt of its first event; NOW when
    /// absent. A change does not move a pipeline.
    start_at: Option<String>,
}

/// How messages are sent.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "only describes the request; `Draft` reads it")]
pub struct DeliveryRequest {
    /// Events of one message at most; 1 when absent, with another default for S3.
    #[schemars(range(min = 1, max = MAX_BATCH_EVENTS))]
    batch_events: Option<i64>,
    /// How long an event waits for others; 1,000 when absent.
    #[schemars(range(min = 0, max = MAX_BATCH_MILLIS))]
    batch_millis: Option<i64>,
    /// Whether a message waits for the one before it; true when absent, unless `concurrency` is
    /// above 1.
    ordered: Option<bool>,
    /// Messages under way at once; 1 when absent.
    #[schemars(range(min = 1, max = MAX_CONCURRENCY))]
    concurrency: Option<i64>,
    /// How long a receiver may take to answer; 15 when absent.
    #[schemars(range(min = 1, max = MAX_TIMEOUT_SECS))]
    timeout_seconds: Option<i64>,
    /// Statuses from 400 to 599 that count as failures of the receiver, so that the message is sent
    /// again: `[404]` where a receiver is away now and then behind a proxy. None when absent.
    #[schemars(length(max = MAX_RETRY_ON))]
    retry_on: Option<Vec<u16>>,
}

/// A pipeline as it is given, read as one JSON object.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct PipelineBody(pub Map<String, Value>);

impl JsonSchema for PipelineBody {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        CreatePipelineRequest::schema_name()
    }
    fn schema_id() -> std::borrow::Cow<'static, str> {
        CreatePipelineRequest::schema_id()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        CreatePipelineRequest::json_schema(generator)
    }
}

/// A pipeline in place of another, read as one JSON object. It has the members of a new one.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct ReplacementBody(pub Map<String, Value>);

impl JsonSchema for ReplacementBody {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "UpdatePipelineRequest".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        CreatePipelineRequest::json_schema(generator)
    }
}

/// Where a new pipeline begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    Now,
    At(Timestamp),
}

/// A whole definition that was checked.
pub struct Draft {
    pub name: String,
    pub description: Option<String>,
    pub enabled: bool,
    pub start_at: StartAt,
    pub source: Source,
    pub steps: Value,
    pub program: Program,
    pub destination: Destination,
    pub delivery: Delivery,
}

impl Draft {
    /// Reads a definition at `at`, a JSON pointer. `before` is the destination that it replaces.
    pub async fn of(
        core: &Core,
        scope: &Scope,
        at: &str,
        given: &Map<String, Value>,
        before: Option<&Stored>,
    ) -> Result<Self> {
        let mut check = Check::new();
        let (name, description, enabled) = {
            // An answer names what can be given.
            let unknown = given
                .iter()
                .filter(|(name, _)| !SHOWN.contains(&name.as_str()));
            let named: Map<String, Value> = unknown
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            let mut members = Members::of(at, &named, &MEMBERS, &mut check);
            let name: Option<String> = members.read("name", "text");
            let description: Option<String> = members.read("description", "text");
            let enabled = members.flag("enabled").unwrap_or(true);
            for part in ["name", "source", "destination"] {
                if given.get(part).is_none_or(Value::is_null) {
                    members.refuse(part, "is required");
                }
            }
            (name, description, enabled)
        };
        if let Some(name) = &name {
            check.required(&format!("{at}/name"), name, MAX_NAME_CHARS);
        }
        check.lines(
            &format!("{at}/description"),
            description.as_deref(),
            MAX_TEXT_CHARS,
        );
        let (source, start_at) = source_of(at, given, core.clock.now(), &mut check);
        check.done()?;
        require_own(&mut core.db.read().await?, scope, at, &source).await?;
        let (steps, program) = steps_of(at, given)?;
        require_compiled(core, scope, at, &program).await?;
        let destination = Destination::read(core, at, given, before)?;
        let delivery = delivery_of(at, given, &destination.definition)?;
        Ok(Self {
            name: name.unwrap_or_default().trim().to_owned(),
            description: filled(description.as_deref()).map(str::to_owned),
            enabled,
            start_at,
            source,
            steps,
            program,
            destination,
            delivery,
        })
    }

    /// As it is stored, without secrets.
    pub fn definition(&self) -> Value {
        json!({
            "source": self.source,
            "steps": self.steps,
            "destination": self.destination.shown,
            "delivery": self.delivery,
        })
    }
}

/// Which events are taken, without a look at what is the tenant's.
pub fn source_of(
    at: &str,
    given: &Map<String, Value>,
    now: Timestamp,
    check: &mut Check,
) -> (Source, StartAt) {
    const KNOWN: [&str; 7] = [
        "deviceUuids",
        "deviceInstanceIds",
        "hubUuids",
        "boundHubs",
        "quantities",
        "known",
        "startAt",
    ];
    let empty = Map::new();
    let members = object(at, given, "source", check).unwrap_or(&empty);
    let place = format!("{at}/source");
    let mut members = Members::of(&place, members, &KNOWN, check);
    let source = Source {
        device_uuids: members.list("deviceUuids", "the UUID of a device model"),
        device_instance_ids: members.list("deviceInstanceIds", "the id of a device"),
        hub_uuids: members.list("hubUuids", "the UUID of a hub"),
        bound_hubs: members.flag("boundHubs").unwrap_or(false),
        quantities: members.list("quantities", "the name of a quantity"),
        known: members.flag("known"),
    };
    for (place, name) in source.quantities.iter().enumerate() {
        if quantity(name).is_none() {
            members.refuse(
                &format!("quantities/{place}"),
                "is not known; GET /public/quantities lists all",
            );
        }
    }
    let start_at = match members
        .read::<String>("startAt", "NOW or a time")
        .as_deref()
    {
        None | Some("NOW") => StartAt::Now,
        Some(text) => match time_of(text) {
            Some(time) if time <= now => StartAt::At(time),
            Some(_) => {
                members.refuse("startAt", "must not be in the future");
                StartAt::Now
            }
            None => {
                members.refuse("startAt", "must be NOW or a time");
                StartAt::Now
            }
        },
    };
    (source, start_at)
}

/// 400 naming every model, device and hub that is not the tenant's.
pub async fn require_own(conn: &mut Conn, scope: &Scope, at: &str, source: &Source) -> Result<()> {
    let models = device_catalog::own(conn, scope, &source.device_uuids).await?;
    let devices =
        device_instances::existing(conn, scope.tenant_uuid(), &source.device_instance_ids).await?;
    let hubs = hubs::own(conn, scope, &source.hub_uuids).await?;
    let mut check = Check::new();
    let mut own = |member: &str, place: usize, is_own: bool, what: &str| {
        check.that(
            is_own,
            format!("{at}/source/{member}/{place}"),
            format!("is no {what} of this tenant"),
        );
    };
    for (place, uuid) in source.device_uuids.iter().enumerate() {
        own("deviceUuids", place, models.contains(uuid), "device model");
    }
    for (place, id) in source.device_instance_ids.iter().enumerate() {
        own("deviceInstanceIds", place, devices.contains(id), "device");
    }
    for (place, uuid) in source.hub_uuids.iter().enumerate() {
        own("hubUuids", place, hubs.contains(uuid), "hub");
    }
    check.done()
}

/// The steps as given, and compiled.
pub fn steps_of(at: &str, given: &Map<String, Value>) -> Result<(Value, Program)> {
    let steps = given
        .get("steps")
        .filter(|steps| !steps.is_null())
        .cloned()
        .unwrap_or_else(|| json!([]));
    require_small(at, "/steps", &steps)?;
    let problem = |problem: steps::Problem| {
        refused(at, &format!("/steps{}", problem.pointer), problem.message)
    };
    let program = Program::compile(&steps).map_err(problem)?;
    Ok((steps, program))
}

/// 400 if a script cannot be compiled.
pub async fn require_compiled(
    core: &Core,
    scope: &Scope,
    at: &str,
    program: &Program,
) -> Result<()> {
    for (step, source) in program.scripts() {
        match core.scripts.try_process(scope.tenant_uuid(), source).await {
            Ok(()) => {}
            Err(Trial::Refused(problem)) => {
                return Err(refused(at, &format!("/steps/{step}/source"), problem));
            }
            Err(Trial::Busy) => {
                return Err(Error::unavailable(
                    "BUSY",
                    "no script can be tried now; try again shortly",
                ));
            }
        }
    }
    Ok(())
}

/// How it is sent. What is absent is as the kind of destination has it.
pub fn delivery_of(
    at: &str,
    given: &Map<String, Value>,
    destination: &destinations::Definition,
) -> Result<Delivery> {
    const KNOWN: [&str; 6] = [
        "batchEvents",
        "batchMillis",
        "ordered",
        "concurrency",
        "timeoutSeconds",
        "retryOn",
    ];
    let mut check = Check::new();
    let empty = Map::new();
    let members = object(at, given, "delivery", &mut check).unwrap_or(&empty);
    let place = format!("{at}/delivery");
    let mut members = Members::of(&place, members, &KNOWN, &mut check);
    let (default_events, default_millis) = match destination.batch_defaults() {
        Some(defaults) => (
            MAX_BATCH_EVENTS,
            u64::try_from(defaults.every.as_millis()).unwrap_or(DEFAULT_BATCH_MILLIS),
        ),
        None => (1, DEFAULT_BATCH_MILLIS),
    };
    let batch_events = members.whole("batchEvents", 1..=MAX_BATCH_EVENTS);
    let batch_millis = members.whole("batchMillis", 0..=MAX_BATCH_MILLIS);
    let concurrency = members
        .whole("concurrency", 1..=MAX_CONCURRENCY)
        .unwrap_or(1);
    let ordered = members.flag("ordered").unwrap_or(concurrency == 1);
    let timeout_secs = members
        .whole("timeoutSeconds", 1..=MAX_TIMEOUT_SECS)
        .unwrap_or(DEFAULT_TIMEOUT_SECS);
    let retry_on: Vec<u16> = members.list("retryOn", "a status");
    if retry_on.len() > MAX_RETRY_ON || retry_on.iter().any(|status| !(400..600).contains(status)) {
        members.refuse(
            "retryOn",
            format!("must be at most {MAX_RETRY_ON} statuses from 400 to 599"),
        );
    }
    if ordered && concurrency > 1 {
        members.refuse(
            "concurrency",
            "must be 1 with `ordered`: messages go one after the other",
        );
    }
    check.done()?;
    Ok(Delivery {
        batch_events: usize::try_from(batch_events.unwrap_or(default_events)).unwrap_or(1),
        batch_millis: batch_millis.unwrap_or(default_millis),
        ordered,
        concurrency: usize::try_from(concurrency).unwrap_or(1),
        timeout: Duration::from_secs(timeout_secs),
        retry_on,
    })
}
