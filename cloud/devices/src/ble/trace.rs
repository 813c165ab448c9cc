//! A readable trace of how an event is recognised and read. Nothing is stored or changed by it.

use std::time::{Duration, Instant};

use hub_adverts::Frame;
use hub_adverts::catalog::Catalog;
use hub_adverts::library::OwnedFrame;
use hub_ingest::ProcessingStatus;
use hub_protocol::TenantUuid;
use hub_protocol::scan_config::RouteAction;
use hub_scripts::Scripts;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::reading::{Reading, reading_text};
use super::scripts::{self, Scripted};
use crate::ble_routes::{Decision, Route};

/// Identifiers that an event names, the most specific first.
const MAX_CANDIDATES: usize = 64;

/// The result of a tenant's catalog for a frame.
pub struct Trace {
    pub status: ProcessingStatus,
    /// The reading; None for an unknown model.
    pub reading: Option<Reading>,
    pub device_instance_id: Option<i64>,
    /// All identifiers that the frame fits, the most specific first.
    pub candidates: Vec<CandidateResponse>,
    pub duration_micros: i64,
    /// If a script has to read it.
    scripted: Option<Scripted>,
}

/// The model of an event, and how it was recognised.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MatchedResponse {
    /// The model.
    pub device_uuid: Uuid,
    /// The identifier that won; absent of a registered device that no identifier fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub identifier_id: Option<i64>,
    /// The number of bits that it fixes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub specificity: Option<u32>,
}

/// An identifier that an event fits.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CandidateResponse {
    /// The model.
    pub device_uuid: Uuid,
    /// The name of the model.
    pub device_name: String,
    /// The identifier.
    #[schemars(range(min = 1))]
    pub identifier_id: i64,
    /// The number of bits that it fixes; the highest wins.
    #[schemars(range(min = 0))]
    pub specificity: u32,
}

/// The protocol that read an event.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProtocolUsedResponse {
    /// The protocol.
    #[schemars(range(min = 1))]
    pub device_protocol_id: i64,
    /// Its revision.
    #[schemars(range(min = 1))]
    pub revision: i64,
}

/// The decision of one layer of the route for an event.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteDecisionResponse {
    /// The place of the rule that fits among all rules, from 0; null if none of the layer does.
    #[schemars(range(min = 0))]
    pub rule: Option<i64>,
    /// The action for the event.
    pub action: RouteAction,
    /// The period of `SAMPLE` and `WINDOW`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub every_seconds: Option<i64>,
    /// The pipelines that see the event; absent for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline_uuids: Option<Vec<Uuid>>,
}

impl RouteDecisionResponse {
    pub fn new(route: &Route, decision: Decision) -> Self {
        let rule = decision.rule.and_then(|at| route.rules.get(at));
        Self {
            rule: decision.rule.and_then(|at| i64::try_from(at).ok()),
            action: decision.action,
            every_seconds: rule.and_then(|rule| rule.every_seconds),
            pipeline_uuids: rule
                .map(|rule| rule.pipeline_uuids.clone())
                .filter(|named| !named.is_empty()),
        }
    }
}

/// Recognises and reads a frame.
pub fn trace(catalog: &Catalog, owned: &OwnedFrame, frame: &Frame<'_>) -> Trace {
    let begun = Instant::now();
    let mut measurements = Vec::new();
    let read = catalog.read(frame, &mut measurements);
    let duration = begun.elapsed();
    let models = catalog.models();
    let candidates = models
        .candidates(frame)
        .into_iter()
        .take(MAX_CANDIDATES)
        .map(|found| CandidateResponse {
            device_uuid: found.device_uuid,
            device_name: models
                .model(found.device_uuid)
                .map(|model| model.name.clone())
                .unwrap_or_default(),
            identifier_id: found.identifier_id,
            specificity: found.specificity,
        });
    Trace {
        status: read.status.into(),
        reading: reading_text(&read, &measurements)
            .and_then(|text| serde_json::from_str(&text).ok()),
        device_instance_id: read.instance.map(|instance| instance.device_instance_id),
        candidates: candidates.collect(),
        duration_micros: i64::try_from(duration.as_micros()).unwrap_or(i64::MAX),
        scripted: Scripted::of(&read, owned),
    }
}

/// Runs the scripts that have to read some of the frames, within a time for all.
pub async fn run_scripts(
    scripts: &Scripts,
    tenant_uuid: TenantUuid,
    traces: &mut [&mut Trace],
    within: Duration,
) {
    let begun = Instant::now();
    let mut frames = Vec::new();
    let mut concerned = Vec::new();
    for trace in traces {
        if let Some(scripted) = trace.scripted.take() {
            frames.push(scripted);
            concerned.push(trace);
        }
    }
    if frames.is_empty() {
        return;
    }
    let outcomes = scripts::run(scripts, tenant_uuid, frames, within).await;
    let micros = begun.elapsed().as_micros() / concerned.len().max(1) as u128;
    for (trace, outcome) in concerned.into_iter().zip(outcomes) {
        trace.status = outcome.status;
        trace.duration_micros = trace
            .duration_micros
            .saturating_add(i64::try_from(micros).unwrap_or(i64::MAX));
        trace.reading = outcome
            .reading_text()
            .and_then(|text| serde_json::from_str(&text).ok());
    }
}

impl Reading {
    pub fn matched(&self) -> MatchedResponse {
        let Self {
            device_uuid,
            identifier_id,
            specificity,
            ..
        } = self;
        MatchedResponse {
            device_uuid: *device_uuid,
            identifier_id: *identifier_id,
            specificity: *specificity,
        }
    }

    pub fn protocol(&self) -> Option<ProtocolUsedResponse> {
        let (device_protocol_id, revision) = self.device_protocol_id.zip(self.protocol_revision)?;
        Some(ProtocolUsedResponse {
            device_protocol_id,
            revision,
        })
    }
}
