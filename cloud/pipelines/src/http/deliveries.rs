//! `/tenant/data-pipelines/{pipelineUuid}/deliveries` and `/tenant/ble-query/deliveries`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::db::Direction;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::extract::{Path, Query};
use hub_core::http::operation::operation;
use hub_core::http::page::{LimitedPage, Listed, PageOf, Pageable};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::store::deliveries::{self, DeliveryRow, Filter};
use super::super::{DeliveryOutcome, event_ids, operations};
use super::TAG;
use crate::Parts;
use crate::http::PipelinePath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/data-pipelines/{pipelineUuid}/deliveries",
            get_with(
                list,
                operation(
                    "pipelines.listDeliveries",
                    TAG,
                    "What a pipeline tried to deliver, newest first",
                ),
            ),
        )
        .api_route(
            "/tenant/ble-query/deliveries",
            get_with(
                query,
                operation(
                    "bleDeliveries.query",
                    "tenant-ble",
                    "What all pipelines tried to deliver, as pages",
                ),
            ),
        )
}

/// An attempt to deliver a message.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BleDeliveryResponse {
    /// The attempt.
    #[schemars(range(min = 1))]
    delivery_id: i64,
    /// The pipeline, which may have been deleted since.
    pipeline_uuid: Uuid,
    /// The revision that made the message.
    #[schemars(range(min = 1))]
    revision: i64,
    /// What came of it.
    status: DeliveryOutcome,
    /// The events in the message.
    #[schemars(length(max = 1000))]
    event_ids: Vec<i64>,
    /// How many they are.
    #[schemars(range(min = 1))]
    events: i64,
    /// Which attempt it was for this message, from 1.
    #[schemars(range(min = 1))]
    attempt: i64,
    /// The status that the receiver answered; null if it answered none.
    response_status: Option<i64>,
    /// The first KiB of its answer; null if there was none.
    response_body: Option<String>,
    /// Why it failed, for people; null if it did not.
    error: Option<String>,
    /// How long it took.
    #[schemars(range(min = 0))]
    duration_millis: i64,
    /// When it began.
    started_at: Timestamp,
}

impl From<DeliveryRow> for BleDeliveryResponse {
    fn from(row: DeliveryRow) -> Self {
        Self {
            delivery_id: row.delivery_id,
            pipeline_uuid: row.pipeline_uuid,
            revision: row.revision,
            status: row.status,
            event_ids: event_ids::decode(row.first_event_id, row.event_ids.as_deref()),
            events: row.events,
            attempt: row.attempt,
            response_status: row.response_status,
            response_body: row.response_body,
            error: row.error,
            duration_millis: row.duration_millis,
            started_at: row.started_at,
        }
    }
}

/// Which deliveries are wanted.
#[derive(Debug, Deserialize, JsonSchema)]
struct DeliveriesQuery {
    /// Only those that began at this time or later.
    from: Option<Timestamp>,
    /// Only those that began before this time.
    to: Option<Timestamp>,
    /// Only those with this outcome.
    status: Option<DeliveryOutcome>,
}

async fn list(
    auth: Authorized<perm::PipelinesRead>,
    State(core): State<Core>,
    Path(PipelinePath { pipeline_uuid }): Path<PipelinePath>,
    LimitedPage(page): LimitedPage,
    Query(DeliveriesQuery { from, to, status }): Query<DeliveriesQuery>,
) -> Result<Listed<BleDeliveryResponse>> {
    let mut conn = core.db.read().await?;
    operations::require(&mut conn, &auth.scope, pipeline_uuid).await?;
    let filter = Filter {
        pipeline_uuid: Some(pipeline_uuid),
        status,
        from,
        to,
    };
    let tenant_uuid = auth.scope.tenant_uuid();
    let found = deliveries::list(
        &mut conn,
        tenant_uuid,
        &filter,
        Direction::Descending,
        page.slice(),
    )
    .await?;
    Ok(page.listed(
        found.0.into_iter().map(BleDeliveryResponse::from).collect(),
        found.1,
    ))
}

async fn query(
    auth: Authorized<perm::BleRead>,
    State(core): State<Core>,
    page: Pageable,
    Query(DeliveriesQuery { from, to, status }): Query<DeliveriesQuery>,
) -> Result<Answer<PageOf<BleDeliveryResponse>>> {
    let direction = page.direction("startedAt", Direction::Descending)?;
    let filter = Filter {
        pipeline_uuid: None,
        status,
        from,
        to,
    };
    let mut conn = core.db.read().await?;
    let found = deliveries::list(
        &mut conn,
        auth.scope.tenant_uuid(),
        &filter,
        direction,
        page.slice(),
    )
    .await?;
    Ok(Answer(page.page_of(
        found.0.into_iter().map(BleDeliveryResponse::from).collect(),
        found.1,
    )))
}
