//! `/tenant/ble/reprocess/**`.

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use axum::extract;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::{Answer, json_response};
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authz::{Authorized, permission as perm};
use hub_ingest::ProcessingStatus;
use hub_protocol::{Data, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::dry_run::{self, MAX_EXAMPLES, Preview};
use super::{Cause, Range, Run, State, store};
use crate::Parts;
use crate::ble::{MeasurementResponse, Processed, ReprocessedEvent};
use crate::recognition::Recognition;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/ble/reprocess",
            post_with(
                post,
                operation_failing(
                    &[404, 409, 429],
                    "bleReprocess.create",
                    "tenant-ble",
                    "Read stored BLE events again, or see what that would change",
                ),
            ),
        )
        .api_route(
            "/tenant/ble/reprocess/{taskId}",
            get_with(
                get,
                operation(
                    "bleReprocess.get",
                    "tenant-ble",
                    "How far stored BLE events are read again",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReprocessPath {
    /// The task that reprocesses events.
    pub task_id: Uuid,
}

/// The events to reprocess.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReprocessRequest {
    /// Events received at this time or later.
    from: Timestamp,
    /// Events received before this time, which is after `from`.
    to: Timestamp,
    /// Only events that are of this model, as stored or as read now.
    device_uuid: Option<Uuid>,
    /// Only events that are of this device, as stored or as read now.
    #[schemars(range(min = 1))]
    device_instance_id: Option<i64>,
    /// Whether only to report the changes; true when absent.
    dry_run: Option<bool>,
}

/// The changes that a run would make.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReprocessPreviewResponse {
    /// Reprocessed events.
    #[schemars(range(min = 0))]
    events: i64,
    /// Events whose result differs from the stored one.
    #[schemars(range(min = 0))]
    changed: i64,
    /// Events that are decoded now and were not.
    #[schemars(range(min = 0))]
    newly_decoded: i64,
    /// Events that were decoded and are not now.
    #[schemars(range(min = 0))]
    no_longer_decoded: i64,
    /// Whether all events of the range were read. A dry run reads 100,000 events, for 5 seconds.
    complete: bool,
    /// Events received before this time were read. Where `complete` is false, another dry run
    /// with it as `from` reads on.
    read_to: Timestamp,
    /// The first events that change.
    #[schemars(length(max = MAX_EXAMPLES))]
    examples: Vec<ReprocessExampleResponse>,
}

/// An event that changes.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReprocessExampleResponse {
    /// The event.
    #[schemars(range(min = 1))]
    ble_event_id: i64,
    /// The stored result.
    before: ReprocessSideResponse,
    /// The present result.
    after: ReprocessSideResponse,
}

/// A result for an event.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReprocessSideResponse {
    /// The processing state.
    processing_status: ProcessingStatus,
    /// The model of the device that sent it; null if it is not known.
    device_uuid: Option<Uuid>,
    /// The device; null if it is not known.
    #[schemars(range(min = 1))]
    device_instance_id: Option<i64>,
    /// The values that are read from it.
    measurements: Vec<MeasurementResponse>,
}

impl From<&Processed> for ReprocessSideResponse {
    fn from(processed: &Processed) -> Self {
        Self {
            processing_status: processed.status,
            device_uuid: processed.device_uuid,
            device_instance_id: processed.device_instance_id,
            measurements: processed.measurements(),
        }
    }
}

impl ReprocessExampleResponse {
    fn of(event: &ReprocessedEvent) -> Option<Self> {
        let change = event.change.as_ref()?;
        let (before, after) = ((&change.before).into(), (&change.after).into());
        Some(Self {
            ble_event_id: event.ble_event_id,
            before,
            after,
        })
    }
}

/// A run was accepted.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReprocessTaskResponse {
    /// Its task: `GET /tenant/ble/reprocess/{taskId}` shows it.
    task_id: Uuid,
}

/// 200 with what would change, or 202 with the task.
pub enum Reprocessed {
    Preview(ReprocessPreviewResponse),
    Accepted(ReprocessTaskResponse),
}

impl IntoResponse for Reprocessed {
    fn into_response(self) -> Response {
        match self {
            Self::Preview(data) => (StatusCode::OK, axum::Json(Data { data })).into_response(),
            Self::Accepted(data) => {
                (StatusCode::ACCEPTED, axum::Json(Data { data })).into_response()
            }
        }
    }
}

impl OperationOutput for Reprocessed {
    type Inner = ReprocessPreviewResponse;
    fn operation_response(ctx: &mut GenContext, _: &mut Operation) -> Option<ApiResponse> {
        Some(json_response::<Data<ReprocessPreviewResponse>>(
            ctx,
            "What would change.",
        ))
    }
    fn inferred_responses(
        ctx: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let preview = json_response::<Data<ReprocessPreviewResponse>>(ctx, "What would change.");
        let accepted =
            json_response::<Data<ReprocessTaskResponse>>(ctx, "Accepted as background work.");
        vec![(Some(200), preview), (Some(202), accepted)]
    }
}

async fn post(
    auth: Authorized<perm::BleReprocess>,
    extract::State(core): extract::State<Core>,
    extract::State(recognition): extract::State<Recognition>,
    Json(request): Json<ReprocessRequest>,
) -> Result<Reprocessed> {
    if request.from >= request.to {
        return Err(Error::field("to", "must be after `from`"));
    }
    let range = Range {
        from_id: request.from.as_micros(),
        to_id: request.to.as_micros(),
        device_uuid: request.device_uuid,
        device_instance_id: request.device_instance_id,
    };
    super::require_own(&core, &auth.scope, &range).await?;
    if !request.dry_run.unwrap_or(true) {
        let task_id = super::begin(&core, &auth.scope, range).await?;
        return Ok(Reprocessed::Accepted(ReprocessTaskResponse { task_id }));
    }
    let Preview {
        counts,
        examples,
        next_id,
    } = dry_run::preview(&core, &recognition, &auth.scope, range).await?;
    Ok(Reprocessed::Preview(ReprocessPreviewResponse {
        events: counts.events,
        changed: counts.changed,
        newly_decoded: counts.newly_decoded,
        no_longer_decoded: counts.no_longer_decoded,
        complete: next_id >= range.to_id,
        read_to: Timestamp::from_micros(next_id),
        examples: examples
            .iter()
            .filter_map(ReprocessExampleResponse::of)
            .collect(),
    }))
}

/// A run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReprocessResponse {
    /// The run.
    task_id: Uuid,
    /// The state.
    state: State,
    /// The cause.
    cause: Cause,
    /// Events received at this time or later are read.
    from: Timestamp,
    /// Events received before this time are read.
    to: Timestamp,
    /// Only events of this model; null for all.
    device_uuid: Option<Uuid>,
    /// Only events of this device; null for all.
    #[schemars(range(min = 1))]
    device_instance_id: Option<i64>,
    /// Reprocessed events.
    #[schemars(range(min = 0))]
    events: i64,
    /// Events that were rewritten.
    #[schemars(range(min = 0))]
    changed: i64,
    /// Events that are decoded now and were not.
    #[schemars(range(min = 0))]
    newly_decoded: i64,
    /// Events that were decoded and are not now.
    #[schemars(range(min = 0))]
    no_longer_decoded: i64,
    /// Events received before this time are done.
    read_to: Timestamp,
    /// When it was asked for.
    created_at: Timestamp,
    /// When it began; null while it waits.
    started_at: Option<Timestamp>,
    /// When it ended; null until then.
    finished_at: Option<Timestamp>,
    /// The reason why it was given up; null otherwise.
    error: Option<String>,
}

impl From<Run> for ReprocessResponse {
    fn from(run: Run) -> Self {
        Self {
            task_id: run.task_uuid,
            state: run.state(),
            cause: run.cause,
            from: Timestamp::from_micros(run.range.from_id),
            to: Timestamp::from_micros(run.range.to_id),
            device_uuid: run.range.device_uuid,
            device_instance_id: run.range.device_instance_id,
            events: run.counts.events,
            changed: run.counts.changed,
            newly_decoded: run.counts.newly_decoded,
            no_longer_decoded: run.counts.no_longer_decoded,
            read_to: Timestamp::from_micros(run.next_id),
            created_at: run.created_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
            error: run.error,
        }
    }
}

async fn get(
    auth: Authorized<perm::BleRead>,
    extract::State(core): extract::State<Core>,
    Path(ReprocessPath { task_id }): Path<ReprocessPath>,
) -> Result<Answer<ReprocessResponse>> {
    let run = store::get(&mut core.db.read().await?, &auth.scope, task_id).await?;
    Ok(Answer(
        run.ok_or_else(|| Error::not_found("reprocessing task"))?
            .into(),
    ))
}
