//! One batch on its way to the service, and whether the answer says that it is stored.

use hub_protocol::HubUuid;
use hub_protocol::ble::{BleUploadResult, RejectedEvent};
use reqwest::header::CONTENT_ENCODING;

use crate::cloud::{Answer, CallError, IDEMPOTENCY_KEY, Request, Service};
use crate::identity::Credentials;
use crate::jobs::JobRecord;
use crate::spool::{Batch, Kind};

/// The largest job event that is unpacked: far larger than any of the agent's.
const MAX_JOB_EVENT_BYTES: usize = 256 << 10;

/// Why a batch has no answer.
pub enum NotSent {
    Call(CallError),
    /// The batch is malformed: no later attempt can send it.
    Unreadable(String),
}

impl From<CallError> for NotSent {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

pub async fn send(
    service: &Service,
    credentials: &Credentials,
    batch: &Batch,
) -> Result<Answer, NotSent> {
    if batch.kind == Kind::JobEvents {
        return send_job_event(service, credentials, batch).await;
    }
    let mut request =
        Request::post_json(path(batch.kind, credentials.hub_uuid), batch.body.clone())
            .header(CONTENT_ENCODING, "zstd")
            .header(IDEMPOTENCY_KEY, &batch.batch.to_string());
    // A batch keeps its size: on a slow connection it needs its time, or it would never arrive.
    request.timeout = Some(service.time_for(batch.body.len()));
    Ok(service.call_as(credentials, &request).await?)
}

fn path(kind: Kind, hub_uuid: HubUuid) -> String {
    match kind {
        Kind::BleEvents => "/v1/ble/events".to_owned(),
        Kind::BleWindows => "/v1/ble/events/windowed".to_owned(),
        Kind::Telemetry => format!("/v1/hubs/{hub_uuid}/telemetry"),
        Kind::Logs => format!("/v1/hubs/{hub_uuid}/logs"),
        // The path of a job event continues with its job and `/events`.
        Kind::JobEvents => format!("/v1/hubs/{hub_uuid}/jobs"),
    }
}

/// An event of one job. The path contains the job, and the idempotency key is the event's uuid: an
/// event that is sent twice is stored once.
async fn send_job_event(
    service: &Service,
    credentials: &Credentials,
    batch: &Batch,
) -> Result<Answer, NotSent> {
    let unreadable =
        |error: &dyn std::fmt::Display| NotSent::Unreadable(format!("a job's event: {error}"));
    let json = zstd::bulk::decompress(&batch.body, MAX_JOB_EVENT_BYTES)
        .map_err(|error| unreadable(&error))?;
    let JobRecord {
        hub_job_uuid,
        event,
    } = serde_json::from_slice(&json).map_err(|error| unreadable(&error))?;
    let path = format!(
        "{}/{hub_job_uuid}/events",
        path(batch.kind, credentials.hub_uuid)
    );
    let body = serde_json::to_vec(&event).map_err(|error| unreadable(&error))?;
    let request =
        Request::post_json(path, body).header(IDEMPOTENCY_KEY, &event.event_uuid.to_string());
    Ok(service.call_as(credentials, &request).await?)
}

/// The records that the service refused in an upload that it has stored. `None` if the answer is
/// not the service's own confirmation: a login page or a proxy answers 200 to anything, and a batch
/// that counts as delivered is deleted.
pub fn stored(kind: Kind, answer: &Answer) -> Option<Vec<RejectedEvent>> {
    match (kind.is_ble(), answer.status) {
        (true, 201) => answer
            .data::<BleUploadResult>()
            .ok()
            .map(|result| result.rejected),
        (false, 204) => Some(Vec::new()),
        _ => None,
    }
}
