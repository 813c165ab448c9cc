//! What can be tried before it is saved: `.../test-run`, `.../compare` and
//! `/tenant/data-pipelines/transpile`.

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::Timestamp;
use hub_steps::graph::{Warning, from_graph, to_graph};
use hub_steps::text::from_text;
use hub_steps::{MAX_STEPS, StepTrace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::draft::{CreatePipelineRequest, PipelineBody, SourceRequest};
use super::super::members::refused;
use super::super::test_run::{self, Tried};
use super::super::time_machine::{self, Difference, Example, MAX_EXAMPLES, Range, Side};
use super::TAG;
use crate::Parts;
use crate::http::PipelinePath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/data-pipelines/{pipelineUuid}/test-run",
            post_with(
                run,
                operation_failing(
                    &[429],
                    "pipelines.testRun",
                    TAG,
                    "Try a pipeline on some events",
                ),
            ),
        )
        .api_route(
            "/tenant/data-pipelines/{pipelineUuid}/compare",
            post_with(
                compare,
                operation_failing(
                    &[409, 429],
                    "pipelines.compare",
                    TAG,
                    "Compare a draft with what runs, on stored events",
                ),
            ),
        )
        .api_route(
            "/tenant/data-pipelines/transpile",
            post_with(
                transpile,
                operation(
                    "pipelines.transpile",
                    TAG,
                    "Make a pipeline of a graph or a text, or a graph of a pipeline",
                ),
            ),
        )
}

/// What to try: the saved pipeline, but for the parts that are given, on some events. A member that
/// is not known is an error.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "only describes the request; `test_run` reads it")]
pub struct PipelineTestRequest {
    /// Steps in place of the saved ones.
    #[schemars(length(max = MAX_STEPS))]
    steps: Option<Vec<Map<String, Value>>>,
    /// A source in place of the saved one.
    source: Option<SourceRequest>,
    /// A destination in place of the saved one.
    destination: Option<Map<String, Value>>,
    /// An event in the form of `BleEventResponse`, of which any member may be left out.
    event: Option<Map<String, Value>>,
    /// Stored events.
    #[schemars(length(min = 1, max = test_run::MAX_EVENTS))]
    ble_event_ids: Option<Vec<i64>>,
    /// So many of the last events that the source takes; 1 when no events are chosen.
    #[schemars(range(min = 1, max = test_run::MAX_EVENTS))]
    last: Option<i64>,
    /// Whether what is made is also sent; false when absent.
    send: Option<bool>,
}

/// A test as it is given, read as one JSON object.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct TestBody(Map<String, Value>);

impl JsonSchema for TestBody {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        PipelineTestRequest::schema_name()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        PipelineTestRequest::json_schema(generator)
    }
}

/// The outcomes of the events.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PipelineTestResult {
    /// The events in their order.
    #[schemars(length(max = test_run::MAX_EVENTS))]
    results: Vec<PipelineTestEvent>,
}

/// The outcome of one event.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PipelineTestEvent {
    /// The event before the steps.
    input: Map<String, Value>,
    /// Whether the source takes it. If not, nothing else was tried.
    selected: bool,
    /// The steps, as far as the event got.
    steps: Vec<StepTrace>,
    /// The event after the steps, or the text of a template; a list if a script made several.
    /// Absent if nothing is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    /// The message, without secrets and signatures.
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<PipelineTestMessage>,
    /// With `send`: what came back.
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<PipelineTestAnswer>,
}

/// A message; of a protocol other than HTTP, the equivalent.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PipelineTestMessage {
    /// The method, or what is done.
    method: String,
    /// Where to.
    url: String,
    /// What goes with it.
    headers: std::collections::BTreeMap<String, String>,
    /// The content.
    body: String,
    /// Why it would not be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What came back.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineTestAnswer {
    /// Whether the receiver took it.
    delivered: bool,
    /// The status that it answered; null if it answered none.
    status: Option<u16>,
    /// The first KiB of its answer; null if there was none.
    body: Option<String>,
    /// Why it was not delivered; null if it was.
    error: Option<String>,
    /// How long it took.
    #[schemars(range(min = 0))]
    duration_millis: u64,
}

impl From<Tried> for PipelineTestEvent {
    fn from(tried: Tried) -> Self {
        Self {
            input: tried.input,
            selected: tried.selected,
            steps: tried.steps,
            output: tried.output,
            request: tried.request.map(|message| PipelineTestMessage {
                method: message.method,
                url: message.url,
                headers: message.headers,
                body: message.body,
                error: message.error,
            }),
            response: tried.response.map(|answer| PipelineTestAnswer {
                delivered: answer.delivered,
                status: answer.status,
                body: answer.body,
                error: answer.error,
                duration_millis: u64::try_from(answer.duration.as_millis()).unwrap_or(u64::MAX),
            }),
        }
    }
}

async fn run(
    auth: Authorized<perm::PipelinesRead>,
    State(core): State<Core>,
    Path(PipelinePath { pipeline_uuid }): Path<PipelinePath>,
    Json(TestBody(given)): Json<TestBody>,
) -> Result<Answer<PipelineTestResult>> {
    if test_run::sends(&given) {
        auth.require::<perm::PipelinesWrite>()?;
    }
    let tried = test_run::run(&core, &auth.scope, pipeline_uuid, &given).await?;
    Ok(Answer(PipelineTestResult {
        results: tried.into_iter().map(PipelineTestEvent::from).collect(),
    }))
}

/// A draft, and the stored events to try it on.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct CompareRequest {
    /// The pipeline as it would be saved.
    draft: PipelineBody,
    /// Events received at this time or later.
    from: Timestamp,
    /// Events received before this time, which is after `from`.
    to: Timestamp,
    /// So many events at most; 10,000 when absent.
    #[schemars(range(min = 1, max = time_machine::MAX_EVENTS))]
    limit: Option<i64>,
}

/// How a draft differs from what runs.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompareResponse {
    /// Events that were tried. Each is in one of the five counts that follow.
    #[schemars(range(min = 0))]
    events: i64,
    /// Events of which both make the same, or nothing.
    #[schemars(range(min = 0))]
    same: i64,
    /// Events of which both make something, and not the same.
    #[schemars(range(min = 0))]
    changed: i64,
    /// Events of which only the revision in force makes something.
    #[schemars(range(min = 0))]
    only_before: i64,
    /// Events of which only the draft makes something.
    #[schemars(range(min = 0))]
    only_after: i64,
    /// Events on which a step of either fails.
    #[schemars(range(min = 0))]
    errors: i64,
    /// Whether all events of the range were tried. A comparison takes 5 seconds at most.
    complete: bool,
    /// Events received before this time were tried. Where `complete` is false, another comparison
    /// with it as `from` goes on.
    read_to: Timestamp,
    /// The first events that differ.
    #[schemars(length(max = MAX_EXAMPLES))]
    examples: Vec<CompareExample>,
}

/// An event that differs.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompareExample {
    /// The event.
    #[schemars(range(min = 1))]
    ble_event_id: i64,
    /// How it differs.
    difference: CompareDifference,
    /// What the revision in force makes of it.
    before: CompareSide,
    /// What the draft makes of it.
    after: CompareSide,
}

/// How an event differs.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CompareDifference {
    /// Both make something of it, and not the same.
    Changed,
    /// Only the revision in force makes something of it.
    OnlyBefore,
    /// Only the draft makes something of it.
    OnlyAfter,
    /// A step of either fails.
    Error,
}

/// What a revision makes of an event; nothing if it is empty.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CompareSide {
    /// The event after the steps, or the text of a template; a list if a script made several.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    /// Which step fails, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<Side> for CompareSide {
    fn from(side: Side) -> Self {
        Self {
            output: side.output,
            error: side.error,
        }
    }
}

impl From<Example> for CompareExample {
    fn from(example: Example) -> Self {
        let difference = match example.difference {
            Difference::Changed => CompareDifference::Changed,
            Difference::OnlyBefore => CompareDifference::OnlyBefore,
            Difference::OnlyAfter => CompareDifference::OnlyAfter,
            Difference::Error => CompareDifference::Error,
        };
        let Example {
            ble_event_id,
            before,
            after,
            ..
        } = example;
        Self {
            ble_event_id,
            difference,
            before: before.into(),
            after: after.into(),
        }
    }
}

async fn compare(
    auth: Authorized<perm::PipelinesRead>,
    State(core): State<Core>,
    Path(PipelinePath { pipeline_uuid }): Path<PipelinePath>,
    Json(request): Json<CompareRequest>,
) -> Result<Answer<CompareResponse>> {
    let CompareRequest {
        draft: PipelineBody(draft),
        from,
        to,
        limit,
    } = request;
    if from >= to {
        return Err(Error::field("to", "must be after `from`"));
    }
    let limit = limit.unwrap_or(time_machine::MAX_EVENTS);
    if !(1..=time_machine::MAX_EVENTS).contains(&limit) {
        return Err(Error::field(
            "limit",
            format!("must be between 1 and {}", time_machine::MAX_EVENTS),
        ));
    }
    let range = Range {
        from_id: from.as_micros(),
        to_id: to.as_micros(),
        limit,
    };
    let found = time_machine::compare(&core, &auth.scope, pipeline_uuid, &draft, range).await?;
    Ok(Answer(CompareResponse {
        events: found.events,
        same: found.same,
        changed: found.changed,
        only_before: found.only_before,
        only_after: found.only_after,
        errors: found.errors,
        complete: found.complete,
        read_to: Timestamp::from_micros(found.next_id),
        examples: found
            .examples
            .into_iter()
            .map(CompareExample::from)
            .collect(),
    }))
}

/// A graph `{"nodes", "edges"}`, a pipeline as text in `{"text"}` or as a JSON string, or
/// `{"pipeline"}` to make a graph of.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TranspileRequest(Value);

/// What was made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TranspileResponse {
    /// The pipeline, as it can be posted. Its destination may have to be completed, where a warning
    /// says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<CreatePipelineRequest>")]
    pipeline: Option<Value>,
    /// The graph of the pipeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    graph: Option<Value>,
    /// What to know of it.
    warnings: Vec<Warning>,
}

async fn transpile(
    _: Authorized<perm::PipelinesRead>,
    Json(TranspileRequest(given)): Json<TranspileRequest>,
) -> Result<Answer<TranspileResponse>> {
    let forms = hub_destinations::forms();
    let text = given
        .as_str()
        .or_else(|| given.get("text").and_then(Value::as_str));
    if let Some(text) = text {
        let (pipeline, warnings) = from_text(text, &forms).map_err(|problem| {
            let message = match problem.line {
                Some(line) => format!("line {line}: {}", problem.message),
                None => problem.message,
            };
            Error::field("/text", message)
        })?;
        return Ok(Answer(TranspileResponse {
            pipeline: Some(pipeline),
            graph: None,
            warnings,
        }));
    }
    if let Some(pipeline) = given.get("pipeline") {
        if !pipeline.is_object() {
            return Err(refused("", "/pipeline", "must be an object"));
        }
        return Ok(Answer(TranspileResponse {
            pipeline: None,
            graph: Some(to_graph(pipeline)),
            warnings: Vec::new(),
        }));
    }
    let (pipeline, warnings) = from_graph(&given, &forms).map_err(|problem| {
        let nodes = given.get("nodes").and_then(Value::as_array);
        let is_node = |node: &Value, id: &str| node.get("id").and_then(Value::as_str) == Some(id);
        let place = problem
            .node_id
            .as_deref()
            .and_then(|id| nodes?.iter().position(|node| is_node(node, id)));
        let field = place.map_or_else(|| "/nodes".to_owned(), |place| format!("/nodes/{place}"));
        let message = match problem.node_id {
            Some(id) => format!("node {id:?}: {}", problem.message),
            None => problem.message,
        };
        Error::field(field, message)
    })?;
    Ok(Answer(TranspileResponse {
        pipeline: Some(pipeline),
        graph: None,
        warnings,
    }))
}
