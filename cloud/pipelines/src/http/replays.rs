//! `/tenant/data-pipelines/{pipelineUuid}/replay` and `.../replays`.

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with, post_with};
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::{NoContent, json_response};
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::{Data, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::replays::{self, Range};
use super::super::store::operators::{self, ReplayRow};
use super::super::{LaneStatus, Pipelines, operations};
use super::TAG;
use crate::Parts;
use crate::http::PipelinePath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/data-pipelines/{pipelineUuid}/replay",
            post_with(
                begin,
                operation_failing(
                    &[409],
                    "pipelineReplays.begin",
                    TAG,
                    "Send stored events once more",
                ),
            ),
        )
        .api_route(
            "/tenant/data-pipelines/{pipelineUuid}/replays",
            get_with(
                list,
                operation(
                    "pipelineReplays.list",
                    TAG,
                    "Replays of a pipeline, newest first",
                ),
            ),
        )
        .api_route(
            "/tenant/data-pipelines/{pipelineUuid}/replays/{replayUuid}",
            delete_with(
                cancel,
                operation("pipelineReplays.cancel", TAG, "Cancel a replay"),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayPath {
    /// The pipeline.
    pub pipeline_uuid: Uuid,
    /// The replay.
    pub replay_uuid: Uuid,
}

/// Which of the events a replay sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReplayDestination {
    /// All that the pipeline takes.
    #[default]
    Live,
    /// Events that are in a dead letter.
    DeadLettersOnly,
}

/// Events to send once more.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ReplayRequest {
    /// Events received at this time or later.
    from: Timestamp,
    /// Events received before this time, which is after `from`.
    to: Timestamp,
    /// Which of them; LIVE when absent.
    destination: Option<ReplayDestination>,
}

/// A replay was accepted.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayStartedResponse {
    /// The replay.
    replay_uuid: Uuid,
}

/// 202 with the replay.
pub struct ReplayStarted(ReplayStartedResponse);

impl IntoResponse for ReplayStarted {
    fn into_response(self) -> Response {
        (StatusCode::ACCEPTED, axum::Json(Data { data: self.0 })).into_response()
    }
}

impl OperationOutput for ReplayStarted {
    type Inner = ReplayStartedResponse;
    fn inferred_responses(
        ctx: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        vec![(
            Some(202),
            json_response::<Data<ReplayStartedResponse>>(ctx, "Accepted as background work."),
        )]
    }
}

/// A replay.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayResponse {
    /// The replay.
    replay_uuid: Uuid,
    /// How far it is.
    status: LaneStatus,
    /// Events received at this time or later are sent.
    from: Timestamp,
    /// Events received before this time are sent; not after the replay was asked for.
    to: Timestamp,
    /// Which of them.
    destination: ReplayDestination,
    /// The id of the last event up to which everything is settled.
    #[schemars(range(min = 0))]
    cursor: i64,
    /// Events that were sent.
    #[schemars(range(min = 0))]
    events: i64,
    /// Since when its deliveries fail; null while they do not.
    failing_since: Option<Timestamp>,
    /// What failed last, for people; null while nothing fails.
    last_error: Option<String>,
    /// When it was asked for.
    created_at: Timestamp,
    /// When it ended; null until then.
    finished_at: Option<Timestamp>,
}

impl From<ReplayRow> for ReplayResponse {
    fn from(row: ReplayRow) -> Self {
        let after = |id: i64| Timestamp::from_micros(id.saturating_add(1));
        Self {
            replay_uuid: row.lane_uuid,
            status: row.status,
            from: after(row.start_id),
            to: after(row.until_id.unwrap_or(row.cursor)),
            destination: match row.dead_letters_only {
                true => ReplayDestination::DeadLettersOnly,
                false => ReplayDestination::Live,
            },
            cursor: row.cursor,
            events: row.events,
            failing_since: row.failing_since,
            last_error: row.last_error,
            created_at: row.created_at,
            finished_at: row.finished_at,
        }
    }
}

async fn begin(
    auth: Authorized<perm::PipelinesWrite>,
    State(pipelines): State<Pipelines>,
    Path(PipelinePath { pipeline_uuid }): Path<PipelinePath>,
    Json(request): Json<ReplayRequest>,
) -> Result<ReplayStarted> {
    let ReplayRequest {
        from,
        to,
        destination,
    } = request;
    if from >= to {
        return Err(Error::field("to", "must be after `from`"));
    }
    let dead_letters_only = destination == Some(ReplayDestination::DeadLettersOnly);
    let range = Range {
        from,
        to,
        dead_letters_only,
    };
    let replay_uuid = replays::begin(&pipelines, &auth.scope, pipeline_uuid, range).await?;
    Ok(ReplayStarted(ReplayStartedResponse { replay_uuid }))
}

async fn list(
    auth: Authorized<perm::PipelinesRead>,
    State(core): State<Core>,
    Path(PipelinePath { pipeline_uuid }): Path<PipelinePath>,
    page: Page,
) -> Result<Listed<ReplayResponse>> {
    let mut conn = core.db.read().await?;
    operations::require(&mut conn, &auth.scope, pipeline_uuid).await?;
    let (rows, total) = operators::replays(&mut conn, pipeline_uuid, page.slice()).await?;
    Ok(page.listed(rows.into_iter().map(ReplayResponse::from).collect(), total))
}

async fn cancel(
    auth: Authorized<perm::PipelinesWrite>,
    State(pipelines): State<Pipelines>,
    Path(ReplayPath {
        pipeline_uuid,
        replay_uuid,
    }): Path<ReplayPath>,
) -> Result<NoContent> {
    replays::cancel(&pipelines, &auth.scope, pipeline_uuid, replay_uuid).await?;
    Ok(NoContent)
}
