//! `/tenant/data-pipelines` and what is done with one pipeline.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::{Answer, Created, NoContent};
use hub_core::http::extract::{Json, JsonOrNothing, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authz::{Authorized, Scope, permission as perm};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::super::definition::{Delivery, Source};
use super::super::draft::{PipelineBody, ReplacementBody};
use super::super::lag::{self, Lag};
use super::super::members::time_of;
use super::super::operations::{self, From, Written};
use super::super::store::{self, PipelineRow};
use super::super::{PipelineStatus, Pipelines};
use super::TAG;
use crate::Parts;
use crate::http::PipelinePath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/data-pipelines",
            get_with(
                list,
                operation("pipelines.list", TAG, "Pipelines, oldest first"),
            )
            .post_with(
                create,
                operation_failing(&[409], "pipelines.create", TAG, "Create a pipeline"),
            ),
        )
        .api_route(
            "/tenant/data-pipelines/{pipelineUuid}",
            get_with(get, operation("pipelines.get", TAG, "One pipeline"))
                .put_with(
                    replace,
                    operation_failing(&[409], "pipelines.replace", TAG, "Replace a pipeline"),
                )
                .delete_with(
                    delete,
                    operation_failing(&[409], "pipelines.delete", TAG, "Delete a pipeline"),
                ),
        )
        .api_route(
            "/tenant/data-pipelines/{pipelineUuid}/pause",
            post_with(
                pause,
                operation("pipelines.pause", TAG, "Stop a pipeline where it is"),
            ),
        )
        .api_route(
            "/tenant/data-pipelines/{pipelineUuid}/resume",
            post_with(
                resume,
                operation(
                    "pipelines.resume",
                    TAG,
                    "Run a pipeline, whatever had stopped it",
                ),
            ),
        )
        .api_route(
            "/tenant/data-pipelines/{pipelineUuid}/rotate-secret",
            post_with(
                rotate_secret,
                operation_failing(
                    &[409],
                    "pipelines.rotateSecret",
                    TAG,
                    "Make another signing secret",
                ),
            ),
        )
}

/// A pipeline.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineConfigResponse {
    /// The pipeline.
    pipeline_uuid: Uuid,
    /// Display name.
    name: String,
    /// Free-text description.
    description: Option<String>,
    /// Whether it was not paused.
    enabled: bool,
    /// Which events it takes.
    source: Source,
    /// What is done with each event, in order.
    steps: Value,
    /// Where what is left goes. Of `auth`, what is secret is left out.
    destination: Map<String, Value>,
    /// How it is sent.
    delivery: Delivery,
    /// Raised with each change of the definition.
    #[schemars(range(min = 1))]
    revision: i64,
    /// Whether it works.
    status: PipelineStatus,
    /// The id of the last event up to which everything is settled, which is its time of receipt in
    /// microseconds since 1970.
    #[schemars(range(min = 0))]
    cursor: i64,
    /// Events of the log after the cursor, whether it takes them or not, counted up to 100,000.
    #[schemars(range(min = 0, max = 100_000))]
    lag_events: i64,
    /// The age of the oldest of them in seconds; 0 if there is none.
    #[schemars(range(min = 0))]
    lag_seconds: i64,
    /// When a receiver last took a message; null if none has.
    last_delivered_at: Option<Timestamp>,
    /// Since when deliveries fail; null while they do not.
    failing_since: Option<Timestamp>,
    /// What failed last, for people; null while nothing fails.
    last_error: Option<String>,
    /// When its receiver is tried again; null unless the status is OPEN_CIRCUIT.
    next_attempt_at: Option<Timestamp>,
    /// Events that were deleted before they were sent, as their retention was over; null for none.
    lost: Option<LostRange>,
    /// The signing secret, whole: where it was made, and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    signing_secret: Option<String>,
    /// The end of the signing secret; null for a destination whose messages are not signed.
    secret_hint: Option<String>,
    /// Until when the signing secret before this one signs as well; null if none does.
    previous_secret_until: Option<Timestamp>,
    /// When it was created.
    created_at: Timestamp,
    /// When it was last changed.
    updated_at: Timestamp,
}

/// A part of the log.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LostRange {
    /// Events received at this time or later.
    from: Timestamp,
    /// Events received before this time.
    to: Timestamp,
}

impl PipelineConfigResponse {
    fn new(row: PipelineRow, lag: Lag, now: Timestamp) -> Result<Self> {
        let definition = row.stored_definition()?;
        let is_signed = hub_destinations::is_signed(&definition.destination);
        let Value::Object(destination) = definition.destination else {
            return Err(Error::internal("a stored destination is no object"));
        };
        let lost = row
            .lost_from
            .zip(row.lost_to)
            .map(|(after, last)| LostRange {
                from: Timestamp::from_micros(after.saturating_add(1)),
                to: Timestamp::from_micros(last.saturating_add(1)),
            });
        let status = row.status.of_pipeline(row.enabled);
        Ok(Self {
            pipeline_uuid: row.pipeline_uuid,
            name: row.name,
            description: row.description,
            enabled: row.enabled,
            source: definition.source,
            steps: definition.steps,
            destination,
            delivery: definition.delivery,
            revision: row.revision,
            status,
            cursor: row.cursor,
            lag_events: lag.events,
            lag_seconds: lag.seconds,
            last_delivered_at: row.last_delivered_at,
            failing_since: row.failing_since,
            last_error: row.last_error,
            next_attempt_at: row
                .next_attempt_at
                .filter(|_| status == PipelineStatus::OpenCircuit),
            lost,
            signing_secret: None,
            secret_hint: row.secret_hint.filter(|_| is_signed),
            previous_secret_until: row
                .previous_secret_until
                .filter(|until| is_signed && now < *until),
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

async fn responses(
    core: &Core,
    scope: &Scope,
    rows: Vec<PipelineRow>,
) -> Result<Vec<PipelineConfigResponse>> {
    let now = core.clock.now();
    let cursors = rows.iter().map(|row| row.cursor).collect();
    let lags = lag::of(core, scope.tenant_uuid(), cursors, now).await?;
    let lag = |row: &PipelineRow| lags.get(&row.cursor).copied().unwrap_or_default();
    rows.into_iter()
        .map(|row| {
            let lag = lag(&row);
            PipelineConfigResponse::new(row, lag, now)
        })
        .collect()
}

async fn response(core: &Core, scope: &Scope, row: PipelineRow) -> Result<PipelineConfigResponse> {
    let shown = responses(core, scope, vec![row]).await?.pop();
    shown.ok_or_else(|| Error::internal("a pipeline was not shown"))
}

async fn written(core: &Core, scope: &Scope, written: Written) -> Result<PipelineConfigResponse> {
    let signing_secret = written
        .secret
        .map(|secret| secret.expose_secret().to_owned());
    Ok(PipelineConfigResponse {
        signing_secret,
        ..response(core, scope, written.row).await?
    })
}

async fn list(
    auth: Authorized<perm::PipelinesRead>,
    State(core): State<Core>,
) -> Result<Answer<Vec<PipelineConfigResponse>>> {
    let rows = store::list(&mut core.db.read().await?, &auth.scope).await?;
    Ok(Answer(responses(&core, &auth.scope, rows).await?))
}

async fn create(
    auth: Authorized<perm::PipelinesWrite>,
    State(pipelines): State<Pipelines>,
    Json(PipelineBody(given)): Json<PipelineBody>,
) -> Result<Created<PipelineConfigResponse>> {
    let created = operations::create(&pipelines, &auth.scope, &given).await?;
    Ok(Created(
        written(&pipelines.core, &auth.scope, created).await?,
    ))
}

async fn get(
    auth: Authorized<perm::PipelinesRead>,
    State(core): State<Core>,
    Path(PipelinePath { pipeline_uuid }): Path<PipelinePath>,
) -> Result<Answer<PipelineConfigResponse>> {
    let row = operations::get(&mut core.db.read().await?, &auth.scope, pipeline_uuid).await?;
    Ok(Answer(response(&core, &auth.scope, row).await?))
}

async fn replace(
    auth: Authorized<perm::PipelinesWrite>,
    State(pipelines): State<Pipelines>,
    Path(PipelinePath { pipeline_uuid }): Path<PipelinePath>,
    Json(ReplacementBody(given)): Json<ReplacementBody>,
) -> Result<Answer<PipelineConfigResponse>> {
    let replaced = operations::replace(&pipelines, &auth.scope, pipeline_uuid, &given).await?;
    Ok(Answer(
        written(&pipelines.core, &auth.scope, replaced).await?,
    ))
}

async fn delete(
    auth: Authorized<perm::PipelinesWrite>,
    State(pipelines): State<Pipelines>,
    Path(PipelinePath { pipeline_uuid }): Path<PipelinePath>,
) -> Result<NoContent> {
    operations::delete(&pipelines, &auth.scope, pipeline_uuid).await?;
    Ok(NoContent)
}

async fn pause(
    auth: Authorized<perm::PipelinesWrite>,
    State(pipelines): State<Pipelines>,
    Path(PipelinePath { pipeline_uuid }): Path<PipelinePath>,
) -> Result<Answer<PipelineConfigResponse>> {
    let row = operations::pause(&pipelines, &auth.scope, pipeline_uuid).await?;
    Ok(Answer(response(&pipelines.core, &auth.scope, row).await?))
}

/// Where a pipeline goes on.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct ResumeRequest {
    /// `CURSOR`: where it stopped; `NOW`: with the events from now on; or the time of receipt of
    /// the first event. CURSOR when absent.
    from: Option<String>,
}

async fn resume(
    auth: Authorized<perm::PipelinesWrite>,
    State(pipelines): State<Pipelines>,
    Path(PipelinePath { pipeline_uuid }): Path<PipelinePath>,
    JsonOrNothing(request): JsonOrNothing<ResumeRequest>,
) -> Result<Answer<PipelineConfigResponse>> {
    let from = match request.from.as_deref() {
        None | Some("CURSOR") => From::Cursor,
        Some("NOW") => From::Now,
        Some(text) => match time_of(text) {
            Some(time) if time <= pipelines.core.clock.now() => From::At(time),
            Some(_) => return Err(Error::field("from", "must not be in the future")),
            None => return Err(Error::field("from", "must be CURSOR, NOW or a time")),
        },
    };
    let row = operations::resume(&pipelines, &auth.scope, pipeline_uuid, from).await?;
    Ok(Answer(response(&pipelines.core, &auth.scope, row).await?))
}

async fn rotate_secret(
    auth: Authorized<perm::PipelinesWrite>,
    State(pipelines): State<Pipelines>,
    Path(PipelinePath { pipeline_uuid }): Path<PipelinePath>,
) -> Result<Answer<PipelineConfigResponse>> {
    let rotated = operations::rotate_secret(&pipelines, &auth.scope, pipeline_uuid).await?;
    Ok(Answer(
        written(&pipelines.core, &auth.scope, rotated).await?,
    ))
}
