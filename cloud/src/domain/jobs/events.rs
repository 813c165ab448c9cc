//! What hubs tell about their jobs. An event is stored once, with an id that rises within the tenant, in the transaction that moves its job on.

use hub_protocol::job::{HubJobEventKind, HubJobEventRequest, HubJobStatus};
use hub_protocol::{HubJobUuid, HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::event_store::{self, StoredJobEvent};
use super::hand_out::LEASE_SECS;
use super::{End, HubJob, finish, not_found, store};
use crate::app::App;
use crate::authn::hub::Hub;
use crate::authz::Scope;
use crate::domain::hubs::{self, desired};
use crate::domain::streams::{Published, PublishedRecord};
use crate::domain::telemetry::{MAX_DEPTH, depth};
use crate::error::{Error, Result};
use crate::http::check::Check;
use crate::ingest::{Kind, Record, known_answer, remember_answer, take_id};

const MAX_MESSAGE_CHARS: usize = 2000;
const MAX_DETAIL_BYTES: usize = 16 * 1024;
/// What a hub may say about one job before it ends it.
const MAX_EVENTS: i64 = 10_000;

/// One event of a job.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubJobEventResponse {
    /// `receivedAt` in microseconds since 1970: unique and rising within the tenant.
    hub_job_event_id: i64,
    hub_uuid: HubUuid,
    hub_job_uuid: HubJobUuid,
    event_uuid: Uuid,
    kind: HubJobEventKind,
    message: Option<String>,
    /// Percent done.
    progress: Option<i64>,
    /// What else the hub had to say; of a failure, `reason` is a stable word.
    detail: Option<Value>,
    /// By the hub's clock.
    occurred_at: Timestamp,
    received_at: Timestamp,
}

/// An event as it is stored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    hub_job_uuid: HubJobUuid,
    #[serde(flatten)]
    event: HubJobEventRequest,
}

impl StoredJobEvent {
    pub fn response(self) -> Result<HubJobEventResponse> {
        let Body { hub_job_uuid, event } = serde_json::from_str(&self.body).map_err(Error::internal)?;
        Ok(HubJobEventResponse {
            hub_job_event_id: self.hub_job_event_id,
            hub_uuid: self.hub_uuid,
            hub_job_uuid,
            event_uuid: event.event_uuid,
            kind: event.kind,
            message: event.message,
            progress: event.progress,
            detail: event.detail,
            occurred_at: event.occurred_at,
            received_at: Timestamp::from_micros(self.hub_job_event_id),
        })
    }
}

fn check(event: &HubJobEventRequest) -> Result<()> {
    let mut check = Check::new();
    check.lines("message", event.message.as_deref(), MAX_MESSAGE_CHARS);
    check.that(event.progress.is_none_or(|percent| (0..=100).contains(&percent)), "progress", "must be from 0 to 100");
    if let Some(detail) = &event.detail {
        let text = detail.to_string();
        check.that(detail.is_object(), "detail", "must be an object");
        check.that(text.len() <= MAX_DETAIL_BYTES, "detail", format!("may have at most {MAX_DETAIL_BYTES} bytes"));
        check.that(depth(&text) <= MAX_DEPTH, "detail", format!("must not nest deeper than {MAX_DEPTH} levels"));
    }
    check.done()
}

/// Stores what the hub tells about one of its jobs, and moves the job on. What it told before, as its `eventUuid` or its key says, is answered alike and
/// changes nothing, also when the job is over by now.
pub async fn record(
    app: &App,
    hub: &Hub,
    hub_job_uuid: HubJobUuid,
    key: Option<&str>,
    event: HubJobEventRequest,
) -> Result<()> {
    check(&event)?;
    let scope = Scope::of_hub(hub);
    let body = serde_json::to_string(&Body { hub_job_uuid, event: event.clone() }).map_err(Error::internal)?;
    // An event's own uuid is kept with the event.
    let event_uuid = event.event_uuid;
    let key = key.filter(|key| key.parse() != Ok(event_uuid));
    let mut tx = app.db.begin().await?;
    let now = app.clock.now();
    hubs::touch(&mut tx, hub.hub_uuid, now).await?;
    let job = store::get(&mut tx, &scope, hub.hub_uuid, hub_job_uuid).await?.ok_or_else(not_found)?;
    if event_store::is_known(&mut tx, hub_job_uuid, event_uuid).await? {
        return Ok(());
    }
    if let Some(key) = key {
        if known_answer(&mut tx, hub.hub_uuid, Kind::JobEvents.name(), key).await?.is_some() {
            return Ok(());
        }
        remember_answer(&mut tx, hub.hub_uuid, Kind::JobEvents.name(), key, "", now).await?;
    }
    job.require_open()?;
    let ended = move_on(&mut tx, &job, &event, now).await?;
    let ids = take_id(&mut tx, hub.tenant_uuid, Kind::JobEvents, now).await?;
    let stored = StoredJobEvent { hub_job_event_id: ids.id, hub_uuid: hub.hub_uuid, body };
    event_store::insert(&mut tx, &scope, hub_job_uuid, event_uuid, &stored).await?;
    tx.commit_unaudited("what a hub tells is kept with its job").await?;
    let record = PublishedRecord { id: ids.id, hub_uuid: hub.hub_uuid, record: Record::on_one_line(&stored.body) };
    app.streams.publish(vec![Published {
        tenant_uuid: hub.tenant_uuid,
        kind: Kind::JobEvents,
        previous_id: ids.previous_id,
        last_id: ids.id,
        records: vec![record],
    }]);
    if ended {
        desired::changed(app, hub.hub_uuid).await;
    }
    Ok(())
}

/// What the event does to its job; whether it ends it.
async fn move_on(tx: &mut crate::db::Tx, job: &HubJob, event: &HubJobEventRequest, now: Timestamp) -> Result<bool> {
    let (status, is_end) = match event.kind {
        HubJobEventKind::Accepted | HubJobEventKind::Progress => (HubJobStatus::Running, false),
        // Whoever tells of a job was given it, whatever we know of that.
        HubJobEventKind::Log if job.status == HubJobStatus::Pending => (HubJobStatus::Dispatched, false),
        HubJobEventKind::Log => (job.status, false),
        HubJobEventKind::Succeeded => (HubJobStatus::Succeeded, true),
        HubJobEventKind::Failed => (HubJobStatus::Failed, true),
    };
    if !is_end && job.event_count >= MAX_EVENTS {
        let message = format!("a job takes at most {MAX_EVENTS} events before the one that ends it");
        return Err(Error::conflict("TOO_MANY_EVENTS", message));
    }
    let step = store::Step {
        // What ends is under way for a moment, so that it has a beginning.
        status: if is_end { HubJobStatus::Running } else { status },
        detail: event.message.as_deref().filter(|_| event.kind != HubJobEventKind::Log),
        progress: if status == HubJobStatus::Succeeded { Some(100) } else { event.progress },
        leased_until: now.plus_secs(LEASE_SECS),
    };
    store::step(tx, job.hub_job_uuid, step, now).await?;
    if is_end {
        let result = event.detail.as_ref().map(Value::to_string);
        finish(tx, job, End { status, detail: None, result: result.as_deref() }, now).await?;
    }
    Ok(is_end)
}
