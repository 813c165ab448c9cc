//! `/tenant/data-pipelines/{pipelineUuid}/dlq/**`.

use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with, post_with};
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::{Answer, NoContent};
use hub_core::http::extract::{JsonOrNothing, Path, Query};
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::super::store::dead_letters::{self, DeadLetterRow};
use super::super::{Pipelines, Retry, dead_letters as operations_on, operations};
use super::TAG;
use crate::Parts;
use crate::http::PipelinePath;

/// Dead letters that one request names.
const MAX_NAMED: usize = 1000;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/data-pipelines/{pipelineUuid}/dlq",
            get_with(
                list,
                operation(
                    "deadLetters.list",
                    TAG,
                    "Messages that could not be delivered, newest first",
                ),
            ),
        )
        .api_route(
            "/tenant/data-pipelines/{pipelineUuid}/dlq/retry",
            post_with(
                retry_some,
                operation(
                    "deadLetters.retrySome",
                    TAG,
                    "Deliver several dead letters again",
                ),
            ),
        )
        .api_route(
            "/tenant/data-pipelines/{pipelineUuid}/dlq/{dlqId}",
            delete_with(
                delete,
                operation("deadLetters.delete", TAG, "Delete a dead letter"),
            ),
        )
        .api_route(
            "/tenant/data-pipelines/{pipelineUuid}/dlq/{dlqId}/retry",
            post_with(
                retry,
                operation("deadLetters.retry", TAG, "Deliver a dead letter again"),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterPath {
    /// The pipeline.
    pub pipeline_uuid: Uuid,
    /// The id of the dead letter.
    pub dlq_id: i64,
}

/// A message that could not be delivered.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DlqMessageResponse {
    /// The id of the dead letter.
    #[schemars(range(min = 1))]
    dlq_id: i64,
    /// The pipeline.
    pipeline_uuid: Uuid,
    /// The revision that made the message.
    #[schemars(range(min = 1))]
    revision: i64,
    /// The first of its events.
    #[schemars(range(min = 1))]
    first_event_id: i64,
    /// The last of its events.
    #[schemars(range(min = 1))]
    last_event_id: i64,
    /// How many they are.
    #[schemars(range(min = 1))]
    events: i64,
    /// The first of its events, as it was before the steps.
    #[schemars(with = "Value")]
    payload: Box<RawValue>,
    /// Why it could not be delivered, for people.
    reason: String,
    /// The status that the receiver answered; null if it answered none.
    response_status: Option<i64>,
    /// How often it was tried.
    #[schemars(range(min = 0))]
    attempts: i64,
    /// Whether it waits to be delivered again.
    retrying: bool,
    /// When it was given up.
    created_at: Timestamp,
}

impl DlqMessageResponse {
    fn new(row: DeadLetterRow) -> Result<Self> {
        let payload = match RawValue::from_string(row.payload) {
            Ok(payload) => payload,
            Err(error) => {
                return Err(Error::internal(format!(
                    "dead letter {}: {error}",
                    row.dlq_id
                )));
            }
        };
        Ok(Self {
            dlq_id: row.dlq_id,
            pipeline_uuid: row.pipeline_uuid,
            revision: row.revision,
            first_event_id: row.first_event_id,
            last_event_id: row.last_event_id,
            events: row.events,
            payload,
            reason: row.reason,
            response_status: row.response_status,
            attempts: row.attempts,
            retrying: row.retry.is_some(),
            created_at: row.created_at,
        })
    }
}

/// A page has at most 8 MiB of payloads.
async fn list(
    auth: Authorized<perm::PipelinesRead>,
    State(core): State<Core>,
    Path(PipelinePath { pipeline_uuid }): Path<PipelinePath>,
    page: Page,
) -> Result<Listed<DlqMessageResponse>> {
    let mut conn = core.db.read().await?;
    operations::require(&mut conn, &auth.scope, pipeline_uuid).await?;
    let bytes = dead_letters::page_bytes(&mut conn, pipeline_uuid, page.slice()).await?;
    let _held = page.hold(&core, auth.scope.tenant_uuid(), bytes, "payloads")?;
    let (rows, total) = dead_letters::list(&mut conn, pipeline_uuid, page.slice()).await?;
    let shown: Result<Vec<_>> = rows.into_iter().map(DlqMessageResponse::new).collect();
    Ok(page.listed(shown?, total))
}

/// How a dead letter is delivered again.
#[derive(Debug, Deserialize, JsonSchema)]
struct RetryQuery {
    /// The revision that makes the message: `original`, the one that made it before, or `current`,
    /// the one in force. `current` when absent.
    revision: Option<Retry>,
}

async fn retry(
    auth: Authorized<perm::PipelinesWrite>,
    State(pipelines): State<Pipelines>,
    Path(DeadLetterPath {
        pipeline_uuid,
        dlq_id,
    }): Path<DeadLetterPath>,
    Query(RetryQuery { revision }): Query<RetryQuery>,
) -> Result<Answer<()>> {
    operations_on::retry(
        &pipelines,
        &auth.scope,
        pipeline_uuid,
        dlq_id,
        revision.unwrap_or_default(),
    )
    .await?;
    Ok(Answer(()))
}

/// Which dead letters are delivered again.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryRequest {
    /// The dead letters; all of the pipeline when absent. Ids that are not known are left out.
    #[schemars(length(min = 1, max = MAX_NAMED))]
    dlq_ids: Option<Vec<i64>>,
}

/// What is delivered again.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryResponse {
    /// Dead letters that wait to be delivered again now.
    #[schemars(range(min = 0))]
    retrying: u64,
}

async fn retry_some(
    auth: Authorized<perm::PipelinesWrite>,
    State(pipelines): State<Pipelines>,
    Path(PipelinePath { pipeline_uuid }): Path<PipelinePath>,
    Query(RetryQuery { revision }): Query<RetryQuery>,
    JsonOrNothing(RetryRequest { dlq_ids }): JsonOrNothing<RetryRequest>,
) -> Result<Answer<RetryResponse>> {
    if dlq_ids
        .as_ref()
        .is_some_and(|ids| ids.is_empty() || ids.len() > MAX_NAMED)
    {
        return Err(Error::field(
            "dlqIds",
            format!("must have 1 to {MAX_NAMED} ids"),
        ));
    }
    let revision = revision.unwrap_or_default();
    let retrying = operations_on::retry_some(
        &pipelines,
        &auth.scope,
        pipeline_uuid,
        dlq_ids.as_deref(),
        revision,
    );
    Ok(Answer(RetryResponse {
        retrying: retrying.await?,
    }))
}

async fn delete(
    auth: Authorized<perm::PipelinesWrite>,
    State(pipelines): State<Pipelines>,
    Path(DeadLetterPath {
        pipeline_uuid,
        dlq_id,
    }): Path<DeadLetterPath>,
) -> Result<NoContent> {
    operations_on::delete(&pipelines, &auth.scope, pipeline_uuid, dlq_id).await?;
    Ok(NoContent)
}
