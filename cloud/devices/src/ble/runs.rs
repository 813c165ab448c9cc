//! `/tenant/ble/events/{bleEventId}/runs` and `/tenant/ble-query/events/{bleEventId}/runs`: how a
//! stored event was processed. Runs are derived from the event and from today's catalog; they are
//! not stored.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_adverts::catalog::Catalog;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::extract::Path;
use hub_core::http::operation::operation;
use hub_identity::authz::{Authorized, permission as perm};
use hub_ingest::ProcessingStatus;
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::reading::{MeasurementResponse, Reading};
use super::trace::{
    CandidateResponse, MatchedResponse, ProtocolUsedResponse, RouteDecisionResponse, Trace, trace,
};
use super::{StoredEvent, check, store};
use crate::Parts;
use crate::ble::http::BleEventPath;
use crate::ble_routes::{self, Facts, Route};
use crate::delivery_status::{self, Attempt, DeliveryStatus};
use crate::recognition::Recognition;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/ble/events/{bleEventId}/runs",
            get_with(
                runs,
                operation(
                    "bleEvents.listRuns",
                    "tenant-ble",
                    "How a BLE event was processed",
                ),
            ),
        )
        .api_route(
            "/tenant/ble-query/events/{bleEventId}/runs",
            get_with(
                runs,
                operation(
                    "bleEvents.queryRuns",
                    "tenant-ble",
                    "How a BLE event was processed, newest last",
                ),
            ),
        )
}

/// The cause of a run.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RunTrigger {
    /// The event was taken in.
    Ingest,
    /// The stored event was reprocessed.
    Reprocess,
}

/// One processing of an event.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BleProcessingRunResponse {
    /// The run, unique among those of its event; of the run at ingest, the id of the event.
    #[schemars(range(min = 1))]
    run_id: i64,
    /// The event.
    #[schemars(range(min = 1))]
    ble_event_id: i64,
    /// The cause of the run.
    trigger: RunTrigger,
    /// When it began.
    started_at: Timestamp,
    /// The time to recognise and read the event, measured now.
    #[schemars(range(min = 0))]
    duration_micros: i64,
    /// The processing state that it reached.
    #[schemars(with = "hub_ingest::ProcessingStatus")]
    status: String,
    /// The model, and the identifier that won.
    #[serde(skip_serializing_if = "Option::is_none")]
    matched: Option<MatchedResponse>,
    /// The identifiers of today's catalog that the event fits, the most specific first.
    candidates: Vec<CandidateResponse>,
    /// The registered device.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    device_instance_id: Option<i64>,
    /// The protocol that read the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<ProtocolUsedResponse>,
    /// The measurements of the event.
    measurements: Vec<MeasurementResponse>,
    /// The decision of today's `CLOUD` rules for the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<RouteDecisionResponse>,
    /// The attempts to deliver it, oldest first: those of the first 20,000 attempts after it was
    /// received, 100 at most. Of several runs, the last one has them.
    deliveries: Vec<RunDeliveryResponse>,
    /// The reason why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// An attempt to deliver an event.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunDeliveryResponse {
    /// The attempt.
    #[schemars(range(min = 1))]
    delivery_id: i64,
    /// The pipeline, which may have been deleted since.
    pipeline_uuid: Uuid,
    /// The revision that made the message.
    #[schemars(range(min = 1))]
    revision: i64,
    /// The result.
    #[schemars(with = "DeliveryStatus")]
    status: String,
    /// The number of the attempt for this message, from 1.
    #[schemars(range(min = 1))]
    attempt: i64,
    /// The status that the receiver answered; null if it answered none.
    response_status: Option<i64>,
    /// The reason of a failure, as a sentence; null without one.
    error: Option<String>,
    /// When it began.
    started_at: Timestamp,
    /// The duration.
    #[schemars(range(min = 0))]
    duration_millis: i64,
}

impl From<Attempt> for RunDeliveryResponse {
    fn from(attempt: Attempt) -> Self {
        Self {
            delivery_id: attempt.delivery_id,
            pipeline_uuid: attempt.pipeline_uuid,
            revision: attempt.revision,
            status: attempt.status,
            attempt: attempt.attempt,
            response_status: attempt.response_status,
            error: attempt.error,
            started_at: attempt.started_at,
            duration_millis: attempt.duration_millis,
        }
    }
}

/// The runs of an event, newest last. Parts that depend on more than the event are as of now. The
/// earlier results of a reprocessed event are not kept: the first run shows its reception.
fn runs_of(
    event: StoredEvent,
    catalog: &Catalog,
    route: &Route,
) -> Result<Vec<BleProcessingRunResponse>> {
    // Stored events have passed validation.
    let parse_failed =
        |error: String| Error::internal(format!("stored event {}: {error}", event.ble_event_id));
    let check = if event.window.is_some() {
        check::device
    } else {
        check::event
    };
    let checked = check(&event.event).map_err(parse_failed)?;
    let reading: Option<Reading> = match &event.reading {
        None => None,
        Some(text) => {
            Some(serde_json::from_str(text).map_err(|error| parse_failed(error.to_string()))?)
        }
    };
    let (
        Trace {
            candidates,
            duration_micros,
            ..
        },
        decision,
    ) = checked.frame.with(|frame| {
        let facts = Facts {
            device_uuid: reading.as_ref().map(|reading| reading.device_uuid),
            device_instance_id: event.device_instance_id,
            hub_uuid: event.hub_uuid,
            rssi_dbm: checked.rssi_dbm,
            frame,
        };
        (
            trace(catalog, &checked.frame, frame),
            route.cloud_decision(&facts),
        )
    });
    let received = BleProcessingRunResponse {
        run_id: event.ble_event_id,
        ble_event_id: event.ble_event_id,
        trigger: RunTrigger::Ingest,
        started_at: Timestamp::from_micros(event.ble_event_id),
        duration_micros,
        status: ProcessingStatus::Received.name().to_owned(),
        matched: None,
        candidates,
        device_instance_id: None,
        protocol: None,
        measurements: Vec::new(),
        route: Some(RouteDecisionResponse::new(route, decision)),
        deliveries: Vec::new(),
        error: None,
    };
    let processed = BleProcessingRunResponse {
        status: event.processing_status.name().to_owned(),
        matched: reading.as_ref().map(Reading::matched),
        device_instance_id: event.device_instance_id,
        protocol: reading.as_ref().and_then(Reading::protocol),
        measurements: reading
            .as_ref()
            .map(Reading::measurements)
            .unwrap_or_default(),
        error: reading.and_then(|reading| reading.error),
        ..received.clone()
    };
    Ok(match event.reprocessed_at {
        None => vec![processed],
        Some(at) => {
            let again = BleProcessingRunResponse {
                run_id: at.as_micros(),
                trigger: RunTrigger::Reprocess,
                started_at: at,
                ..processed
            };
            vec![received, again]
        }
    })
}

async fn runs(
    auth: Authorized<perm::BleRead>,
    State(core): State<Core>,
    State(recognition): State<Recognition>,
    Path(BleEventPath { ble_event_id }): Path<BleEventPath>,
) -> Result<Answer<Vec<BleProcessingRunResponse>>> {
    let tenant_uuid = auth.scope.tenant_uuid();
    let event = store::get(&core, &auth.scope, ble_event_id).await?;
    let event = event.ok_or_else(|| Error::not_found("BLE event"))?;
    let mut conn = core.db.read().await?;
    let route = ble_routes::get(&mut conn, tenant_uuid).await?;
    let attempts = delivery_status::attempts_of(&mut conn, tenant_uuid, ble_event_id).await?;
    drop(conn);
    let catalog = recognition.catalog(tenant_uuid).await?;
    let mut runs = runs_of(event, &catalog.catalog, &route)?;
    if let Some(last) = runs.last_mut() {
        last.deliveries = attempts
            .into_iter()
            .map(RunDeliveryResponse::from)
            .collect();
    }
    Ok(Answer(runs))
}
