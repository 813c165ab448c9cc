//! `/tenant/simulator/**`.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::extract::Json;
use hub_core::http::operation::{operation, operation_failing};
use hub_devices::ble::{
    BleEventResponse, CandidateResponse, MatchedResponse, MeasurementResponse,
    ProtocolUsedResponse, Reading, RouteDecisionResponse, run_scripts,
};
use hub_devices::ble_routes::{self, Route};
use hub_devices::recognition::Recognition;
use hub_fleet::hubs;
use hub_identity::authz::{Authorized, Scope, permission as perm};
use hub_ingest::ProcessingStatus;
use hub_pipelines::{Rehearsed, rehearsal};
use hub_protocol::HubUuid;
use hub_protocol::ble::{Advertisement, BleEvent};
use hub_scripts::TRIAL_TIME;
use hub_steps::{Input, StepTrace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{Outcome, Simulated, presets, simulate};
use crate::Parts;

const TAG: &str = "tenant-simulator";
/// Events of one simulation.
const MAX_EVENTS: usize = 100;
/// A day.
const MAX_INTERVAL_MILLIS: i64 = 86_400_000;
const INTERVAL_MILLIS: i64 = 1000;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/simulator/presets",
            get_with(
                list,
                operation(
                    "simulator.listPresets",
                    TAG,
                    "Examples of events, one of each library model",
                ),
            ),
        )
        .api_route(
            "/tenant/simulator/run",
            post_with(
                run,
                operation_failing(
                    &[404],
                    "simulator.run",
                    TAG,
                    "What would become of an event",
                ),
            ),
        )
        .api_route(
            "/tenant/simulator/stream",
            post_with(
                stream,
                operation_failing(
                    &[404],
                    "simulator.stream",
                    TAG,
                    "What would become of several events",
                ),
            ),
        )
}

/// An example of an event.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SimulationPreset {
    /// The key of the library's model.
    key: String,
    /// The name of the model.
    title: String,
    /// Its maker.
    brand: String,
    /// An event as hubs upload it, received now.
    event: BleEvent,
}

/// An event to simulate: `preset` or `event`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SimulationRequest {
    /// The key of an example.
    #[schemars(length(max = 200))]
    preset: Option<String>,
    /// An event as hubs upload it.
    #[schemars(with = "Option<BleEvent>")]
    event: Option<Box<RawValue>>,
    /// The hub that receives it, for rules that name hubs.
    hub_uuid: Option<HubUuid>,
    /// The pipeline to try alone; all when absent.
    pipeline_uuid: Option<Uuid>,
}

/// Events to simulate: `events`, or `preset` or `event` with `count`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamSimulationRequest {
    /// The key of an example.
    #[schemars(length(max = 200))]
    preset: Option<String>,
    /// An event as hubs upload it.
    #[schemars(with = "Option<BleEvent>")]
    event: Option<Box<RawValue>>,
    /// Events as hubs upload them.
    #[schemars(with = "Option<Vec<BleEvent>>", length(min = 1, max = MAX_EVENTS))]
    events: Option<Vec<Box<RawValue>>>,
    /// The number of receptions of `preset` or `event`; one when absent.
    #[schemars(range(min = 1, max = MAX_EVENTS))]
    count: Option<i64>,
    /// Milliseconds between two receptions of `preset` or `event`; 1,000 when absent.
    #[schemars(range(min = 0, max = MAX_INTERVAL_MILLIS))]
    interval_millis: Option<i64>,
    /// The hub that receives them, for rules that name hubs.
    hub_uuid: Option<HubUuid>,
    /// The pipeline to try alone; all when absent.
    pipeline_uuid: Option<Uuid>,
}

/// The predicted processing of an event.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SimulationResult {
    /// The event.
    event: BleEvent,
    /// The processing state that it would reach.
    processing_status: ProcessingStatus,
    /// The model, and the identifier that wins; null if no model is known.
    matched: Option<MatchedResponse>,
    /// All identifiers that it fits, the most specific first.
    candidates: Vec<CandidateResponse>,
    /// The registered device; null if it is none.
    #[schemars(range(min = 1))]
    device_instance_id: Option<i64>,
    /// The protocol that decodes it; null without one.
    protocol: Option<ProtocolUsedResponse>,
    /// The measurements.
    measurements: Vec<MeasurementResponse>,
    /// The decision of the hub.
    hub_route: RouteDecisionResponse,
    /// The decision of the service if the event arrives.
    cloud_route: RouteDecisionResponse,
    /// The results of the pipelines that accept it.
    pipelines: Vec<SimulatedPipelineResponse>,
    /// The time to recognise and read it.
    #[schemars(range(min = 0))]
    duration_micros: i64,
    /// The reason why it cannot be read; null if it can.
    error: Option<String>,
}

/// The result of a pipeline for an event.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SimulatedPipelineResponse {
    /// The pipeline.
    pipeline_uuid: Uuid,
    /// The event after its steps, or the text of a template; a list if a script made several; null
    /// if nothing is left.
    output: Value,
    /// The steps, as far as the event gets.
    steps: Vec<StepTrace>,
    /// The reason why the pipeline could not be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<Rehearsed> for SimulatedPipelineResponse {
    fn from(rehearsed: Rehearsed) -> Self {
        let Rehearsed {
            pipeline_uuid,
            output,
            steps,
            error,
        } = rehearsed;
        Self {
            pipeline_uuid,
            output: output.unwrap_or_default(),
            steps,
            error,
        }
    }
}

impl SimulationResult {
    fn new(event: BleEvent, outcome: Outcome, pipelines: Vec<Rehearsed>) -> Self {
        let Outcome {
            trace,
            hub_route,
            cloud_route,
        } = outcome;
        let reading = trace.reading.as_ref();
        Self {
            event,
            processing_status: trace.status,
            matched: reading.map(Reading::matched),
            candidates: trace.candidates,
            device_instance_id: trace.device_instance_id,
            protocol: reading.and_then(Reading::protocol),
            measurements: reading.map(Reading::measurements).unwrap_or_default(),
            hub_route,
            cloud_route,
            pipelines: pipelines
                .into_iter()
                .map(SimulatedPipelineResponse::from)
                .collect(),
            duration_micros: trace.duration_micros,
            error: trace.reading.and_then(|reading| reading.error),
        }
    }
}

async fn list(
    _: Authorized<perm::BleRead>,
    State(core): State<Core>,
) -> Answer<Vec<SimulationPreset>> {
    let preset = |(model, event): (&hub_adverts::library::Model, BleEvent)| SimulationPreset {
        key: model.key.clone(),
        title: model.name.clone(),
        brand: model.brand.clone(),
        event,
    };
    Answer(presets::all(core.clock.now()).map(preset).collect())
}

/// The simulated event, from exactly one of the two.
fn simulated(core: &Core, preset: Option<&str>, event: Option<&RawValue>) -> Result<Simulated> {
    match (preset, event) {
        (Some(key), None) => {
            let unknown = || {
                Error::field(
                    "preset",
                    "is not known; GET /tenant/simulator/presets lists all",
                )
            };
            let event = presets::preset(key, core.clock.now()).ok_or_else(unknown)?;
            Simulated::of(
                &serde_json::to_string(&event).map_err(Error::internal)?,
                "preset",
            )
        }
        (None, Some(event)) => Simulated::of(event.get(), "event"),
        (None, None) => Err(Error::field(
            "event",
            "is required unless `preset` is given",
        )),
        (Some(_), Some(_)) => Err(Error::field(
            "event",
            "must not be given together with `preset`",
        )),
    }
}

/// The tenant's route, after a check of what the request names.
async fn route_for(core: &Core, scope: &Scope, hub_uuid: Option<HubUuid>) -> Result<Route> {
    let mut conn = core.db.read().await?;
    if let Some(hub_uuid) = hub_uuid {
        hubs::require(&mut conn, scope, hub_uuid).await?;
    }
    ble_routes::get(&mut conn, scope.tenant_uuid()).await
}

async fn run(
    auth: Authorized<perm::BleRead>,
    State(core): State<Core>,
    State(recognition): State<Recognition>,
    Json(request): Json<SimulationRequest>,
) -> Result<Answer<SimulationResult>> {
    let SimulationRequest {
        preset,
        event,
        hub_uuid,
        pipeline_uuid,
    } = request;
    let simulated = simulated(&core, preset.as_deref(), event.as_deref())?;
    let route = route_for(&core, &auth.scope, hub_uuid).await?;
    let mut rehearsal = rehearsal(&core, &auth.scope, pipeline_uuid).await?;
    let catalog = recognition.catalog(auth.scope.tenant_uuid()).await?;
    let mut outcome = simulate(&catalog.catalog, &route, hub_uuid, &simulated);
    run_scripts(
        &core.scripts,
        auth.scope.tenant_uuid(),
        &mut [&mut outcome.trace],
        TRIAL_TIME,
    )
    .await;
    let input = input(&core, &simulated.event, hub_uuid, &outcome)?;
    let pipelines = rehearsal.run(&core, input, &outcome.cloud_route).await?;
    Ok(Answer(SimulationResult::new(
        simulated.event,
        outcome,
        pipelines,
    )))
}

async fn stream(
    auth: Authorized<perm::BleRead>,
    State(core): State<Core>,
    State(recognition): State<Recognition>,
    Json(request): Json<StreamSimulationRequest>,
) -> Result<Answer<Vec<SimulationResult>>> {
    let events = received(&core, &request)?;
    let hub_uuid = request.hub_uuid;
    let route = route_for(&core, &auth.scope, hub_uuid).await?;
    let mut rehearsal = rehearsal(&core, &auth.scope, request.pipeline_uuid).await?;
    let catalog = recognition.catalog(auth.scope.tenant_uuid()).await?;
    let simulate_all = move || {
        let result = |(simulated, event): (&Simulated, BleEvent)| {
            (
                event,
                simulate(&catalog.catalog, &route, hub_uuid, simulated),
            )
        };
        let Events {
            all,
            count,
            interval_millis,
        } = events;
        let micros = |index: i64| index.saturating_mul(interval_millis).saturating_mul(1000);
        let repeated = |one| (0..count).map(move |index| (one, micros(index)));
        all.iter()
            .flat_map(repeated)
            .map(|(one, micros)| result((one, one.later(micros))))
            .collect()
    };
    let mut outcomes: Vec<(BleEvent, Outcome)> = core.bodies.work(simulate_all).await?;
    let mut traces: Vec<_> = outcomes
        .iter_mut()
        .map(|(_, outcome)| &mut outcome.trace)
        .collect();
    run_scripts(
        &core.scripts,
        auth.scope.tenant_uuid(),
        &mut traces,
        TRIAL_TIME,
    )
    .await;
    let mut results = Vec::with_capacity(outcomes.len());
    for (event, outcome) in outcomes {
        let input = input(&core, &event, hub_uuid, &outcome)?;
        let pipelines = rehearsal.run(&core, input, &outcome.cloud_route).await?;
        results.push(SimulationResult::new(event, outcome, pipelines));
    }
    Ok(Answer(results))
}

/// The event as the steps of a pipeline would get it.
fn input(
    core: &Core,
    event: &BleEvent,
    hub_uuid: Option<HubUuid>,
    outcome: &Outcome,
) -> Result<Input> {
    let trace = &outcome.trace;
    let reading = trace.reading.as_ref();
    let received_at = core.clock.now();
    let hub_uuid = hub_uuid.unwrap_or(HubUuid(Uuid::nil()));
    let shown = BleEventResponse {
        ble_event_id: received_at.as_micros(),
        received_at,
        hub_uuid,
        device_instance_id: trace.device_instance_id,
        device_uuid: reading.map(|reading| reading.matched().device_uuid),
        measurements: reading.map(Reading::measurements).unwrap_or_default(),
        protocol_revision: reading
            .and_then(Reading::protocol)
            .map(|protocol| protocol.revision),
        counter_status: None,
        payload_address: None,
        processing_status: trace.status.name().to_owned(),
        delivery_status: "PENDING".to_owned(),
        event_uuid: event.event_uuid,
        observed_at: event.observed_at,
        traceparent: None,
        advertisement: Advertisement {
            device_instance_id: None,
            ..event.payload.clone()
        },
        window: None,
        receptions: None,
    };
    let Value::Object(shown) = serde_json::to_value(shown).map_err(Error::internal)? else {
        return Err(Error::internal("an event is no object"));
    };
    Ok(Input {
        event: shown,
        received_at,
        observed_at: event.observed_at,
        hub_uuid,
        device_instance_id: trace.device_instance_id,
        address: event.payload.address.clone(),
        observation_id: None,
        ble_event_id: received_at.as_micros(),
    })
}

/// Events of a stream, each received so often.
struct Events {
    all: Vec<Simulated>,
    count: i64,
    interval_millis: i64,
}

fn received(core: &Core, request: &StreamSimulationRequest) -> Result<Events> {
    let StreamSimulationRequest {
        preset,
        event,
        events,
        count,
        interval_millis,
        ..
    } = request;
    let most = i64::try_from(MAX_EVENTS).unwrap_or(i64::MAX);
    if count.is_some_and(|count| !(1..=most).contains(&count)) {
        return Err(Error::field(
            "count",
            format!("must be between 1 and {MAX_EVENTS}"),
        ));
    }
    if interval_millis.is_some_and(|millis| !(0..=MAX_INTERVAL_MILLIS).contains(&millis)) {
        return Err(Error::field(
            "intervalMillis",
            format!("must be between 0 and {MAX_INTERVAL_MILLIS}"),
        ));
    }
    let Some(events) = events else {
        let all = vec![simulated(core, preset.as_deref(), event.as_deref())?];
        let (count, interval_millis) = (
            count.unwrap_or(1),
            interval_millis.unwrap_or(INTERVAL_MILLIS),
        );
        return Ok(Events {
            all,
            count,
            interval_millis,
        });
    };
    let others = [
        ("preset", preset.is_some()),
        ("event", event.is_some()),
        ("count", count.is_some()),
        ("intervalMillis", interval_millis.is_some()),
    ];
    if let Some((name, _)) = others.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Error::field(
            name,
            "must not be given together with `events`",
        ));
    }
    if events.is_empty() || events.len() > MAX_EVENTS {
        return Err(Error::field(
            "events",
            format!("must have 1 to {MAX_EVENTS} events"),
        ));
    }
    let all = events
        .iter()
        .enumerate()
        .map(|(at, event)| Simulated::of(event.get(), &format!("events[{at}]")));
    Ok(Events {
        all: all.collect::<Result<_>>()?,
        count: 1,
        interval_millis: 0,
    })
}
