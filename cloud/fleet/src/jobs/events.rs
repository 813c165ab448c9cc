//! Events that hubs report about their jobs. An event is stored once, with an id that increases
//! within the tenant, in the transaction that updates its job.

use std::sync::Arc;

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::http::check::Check;
use hub_core::http::json::{MAX_DEPTH, depth};
use hub_identity::authn::hub::Hub;
use hub_identity::authz::Scope;
use hub_ingest::{
    Commit, CommittedRecord, Kind, Record, count_stored, issue_id, store_answer, stored_answer,
};
use hub_protocol::job::{HubJobEventKind, HubJobEventRequest, HubJobStatus, PASSING_REASONS};
use hub_protocol::{HubJobUuid, HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::dispatch::LEASE_SECS;
use super::store::events::StoredJobEvent;
use super::{End, HubJob, Jobs, finish, not_found, store};
use crate::hubs::{self, Changes};

const MAX_MESSAGE_CHARS: usize = 2000;
const MAX_DETAIL_BYTES: usize = 16 * 1024;
/// Events of one job before its final one.
const MAX_EVENTS: i64 = 10_000;

/// One event of a job.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubJobEventResponse {
    /// The id: `receivedAt` in microseconds since 1970, unique and rising within the tenant.
    #[schemars(range(min = 1))]
    hub_job_event_id: i64,
    /// The hub.
    hub_uuid: HubUuid,
    /// The job.
    hub_job_uuid: HubJobUuid,
    /// The event's id, set by the hub.
    event_uuid: Uuid,
    /// The kind of the event.
    kind: HubJobEventKind,
    /// A message to show.
    message: Option<String>,
    /// The progress in percent.
    #[schemars(range(min = 0, max = 100))]
    progress: Option<i64>,
    /// Further details. Of a failure, `reason` is a stable word.
    detail: Option<Value>,
    /// When it happened, by the clock of the hub.
    occurred_at: Timestamp,
    /// When the service received it.
    received_at: Timestamp,
}

/// A stored event.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    hub_job_uuid: HubJobUuid,
    #[serde(flatten)]
    event: HubJobEventRequest,
}

impl StoredJobEvent {
    pub fn response(self) -> Result<HubJobEventResponse> {
        let Body {
            hub_job_uuid,
            event,
        } = serde_json::from_str(&self.body).map_err(Error::internal)?;
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

fn checked(event: HubJobEventRequest) -> Result<HubJobEventRequest> {
    let mut check = Check::new();
    check.lines("message", event.message.as_deref(), MAX_MESSAGE_CHARS);
    check.that(
        event
            .progress
            .is_none_or(|percent| (0..=100).contains(&percent)),
        "progress",
        "must be from 0 to 100",
    );
    if let Some(detail) = &event.detail {
        let text = detail.to_string();
        check.that(detail.is_object(), "detail", "must be an object");
        check.that(
            text.len() <= MAX_DETAIL_BYTES,
            "detail",
            format!("may have at most {MAX_DETAIL_BYTES} bytes"),
        );
        check.that(
            depth(&text) <= MAX_DEPTH,
            "detail",
            format!("must not nest deeper than {MAX_DEPTH} levels"),
        );
    }
    check.done().map(|()| event)
}

/// Stores an event of a hub's job and updates the job. A repeated event, recognised by its
/// `eventUuid` or its idempotency key, gets the same response and changes nothing, even if the job
/// is finished. An event that will not be stored begins no transaction.
pub async fn record(
    jobs: &Jobs,
    hub: &Hub,
    hub_job_uuid: HubJobUuid,
    key: Option<&str>,
    event: HubJobEventRequest,
) -> Result<()> {
    let event = checked(event)?;
    let scope = Scope::of_hub(hub);
    let body = serde_json::to_string(&Body {
        hub_job_uuid,
        event: event.clone(),
    })
    .map_err(Error::internal)?;
    // An event's own uuid is stored with the event.
    let event_uuid = event.event_uuid;
    let key = key.filter(|key| key.parse() != Ok(event_uuid));
    let mut conn = jobs.core.db.read().await?;
    if expected(&mut conn, &scope, hub, hub_job_uuid, key, event_uuid)
        .await?
        .is_none()
    {
        return Ok(());
    }
    drop(conn);
    let mut tx = jobs.core.db.begin().await?;
    let now = jobs.core.clock.now();
    hubs::touch(&mut tx, hub.tenant_uuid, hub.hub_uuid, now).await?;
    let Some(job) = expected(&mut tx, &scope, hub, hub_job_uuid, key, event_uuid).await? else {
        return Ok(());
    };
    if let Some(key) = key {
        store_answer(&mut tx, hub, Kind::JobEvents.name(), key, "", now).await?;
    }
    advance(&mut tx, &jobs.changes, &job, &event, now).await?;
    let ids = issue_id(&mut tx, hub.tenant_uuid, Kind::JobEvents, now).await?;
    let stored = StoredJobEvent {
        hub_job_event_id: ids.id,
        hub_uuid: hub.hub_uuid,
        body,
    };
    store::events::insert(&mut tx, &scope, hub_job_uuid, event_uuid, &stored).await?;
    // The event is counted and never refused: the outcome of a job has to be stored, and the events
    // of a job are limited.
    count_stored(&mut tx, hub.tenant_uuid, Kind::JobEvents, &stored.body, now).await?;
    let record = Record::on_one_line(&stored.body);
    let record = CommittedRecord {
        id: ids.id,
        hub_uuid: hub.hub_uuid,
        observation_id: None,
        record,
    };
    let commit = Commit {
        tenant_uuid: hub.tenant_uuid,
        kind: Kind::JobEvents,
        previous_id: ids.previous_id,
        last_id: ids.id,
        records: Arc::new(vec![record]),
    };
    let commits = jobs.commits.clone();
    tx.after_commit(async move { commits.announce(vec![commit]) });
    tx.commit_unaudited("events are stored with their job")
        .await
}

/// The open job that the event belongs to; None if the event is stored already.
async fn expected(
    conn: &mut Conn,
    scope: &Scope,
    hub: &Hub,
    hub_job_uuid: HubJobUuid,
    key: Option<&str>,
    event_uuid: Uuid,
) -> Result<Option<HubJob>> {
    let job = store::get(conn, scope, hub.hub_uuid, hub_job_uuid)
        .await?
        .ok_or_else(not_found)?;
    if store::events::is_known(conn, hub_job_uuid, event_uuid).await? {
        return Ok(None);
    }
    if let Some(key) = key
        && stored_answer(conn, hub, Kind::JobEvents.name(), key)
            .await?
            .is_some()
    {
        return Ok(None);
    }
    job.require_open()?;
    Ok(Some(job))
}

/// Updates the job according to the event.
async fn advance(
    tx: &mut Tx,
    changes: &Changes,
    job: &HubJob,
    event: &HubJobEventRequest,
    now: Timestamp,
) -> Result<()> {
    let (status, is_end) = match event.kind {
        HubJobEventKind::Accepted | HubJobEventKind::Progress => (HubJobStatus::Running, false),
        // A hub that reports on a job must have received it, whether or not the dispatch was
        // recorded.
        HubJobEventKind::Log if job.status == HubJobStatus::Pending => {
            (HubJobStatus::Dispatched, false)
        }
        HubJobEventKind::Log => (job.status, false),
        HubJobEventKind::Succeeded => (HubJobStatus::Succeeded, true),
        HubJobEventKind::Failed => (HubJobStatus::Failed, true),
    };
    if !is_end && job.event_count >= MAX_EVENTS {
        let message = format!(
            "a job accepts at most {MAX_EVENTS} events before its final event; send that one"
        );
        return Err(Error::conflict("TOO_MANY_EVENTS", message));
    }
    let step = store::Step {
        // A final event passes through RUNNING, so that the job has a start time.
        status: if is_end {
            HubJobStatus::Running
        } else {
            status
        },
        detail: event
            .message
            .as_deref()
            .filter(|_| event.kind != HubJobEventKind::Log),
        progress: if status == HubJobStatus::Succeeded {
            Some(100)
        } else {
            event.progress
        },
        leased_until: now.plus_secs(LEASE_SECS),
    };
    store::step(tx, job.hub_job_uuid, step, now).await?;
    if is_end {
        let result = event.detail.as_ref().map(Value::to_string);
        let reason = || event.detail.as_ref()?.get("reason")?.as_str();
        let fails_in_passing = status == HubJobStatus::Failed
            && reason().is_some_and(|reason| PASSING_REASONS.contains(&reason));
        finish(
            tx,
            changes,
            job,
            End {
                status,
                detail: None,
                result: result.as_deref(),
                fails_in_passing,
            },
            now,
        )
        .await?;
    }
    Ok(())
}
