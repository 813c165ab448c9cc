//! The entry point for everything that hubs upload. A handler validates an upload and submits it.
//! The writer commits all uploads that have queued up in one transaction, and responses are sent
//! only after that. So all uploads in flight share the cost of a commit, and no acknowledged upload
//! can be lost. The queue is bounded: when it is full, hubs are told to retry, and their spools
//! keep the data. A large upload takes several transactions, so that no other one waits long.

mod body;
mod commits;
mod derived;
mod group;
mod kinds;
mod observations;
mod parts;
mod quota;
mod retention;
mod rewrite;
mod single;
mod status;
mod store;
mod writer;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hub_protocol::{TenantUuid, Timestamp};
use tokio::sync::{mpsc, oneshot};

use crate::authn::hub::Hub;
use crate::budget::Held;
use crate::core::Core;
use crate::error::{Error, Result};
use crate::http::body::no_memory;
use crate::http::describe::{may_fail, rate_limit_headers};

pub use body::{HubUpload, UploadBody};
pub use commits::{
    Commit, Commits, CommittedRecord, Follower, LogKey, Queued, TOPIC, announcement,
    parse_announcement,
};
pub use derived::{Derived, Due, Heard, HeardUpload};
pub use kinds::Kind;
pub use quota::{
    count_stored, forget_month, forget_months_before, has_months_before, lower_stored,
    stored_of_kind,
};
pub use retention::{BLE_EVENTS, Holder, delete_of_hub, holders, log_of, oldest_of_hub};
pub use rewrite::{Rewritten, rewrite};
pub use single::{Ids, issue_id, store_answer, stored_answer};
pub use status::ProcessingStatus;
pub use store::{delete_keys, last_id, last_ids};
pub use writer::Writer;

/// Uploads that may wait for the writer.
const QUEUE_UPLOADS: usize = 4096;
/// Records, summed over all waiting uploads, beyond which new uploads are refused for now.
const QUEUE_RECORDS: usize = 200_000;
/// The most tenants whose limit is remembered as reached.
const MAX_EXHAUSTED: usize = 100_000;

/// When to ask again after a full quota of stored bytes. Retention lowers it by and by.
const STORED_BYTES_RETRY_SECS: u64 = 600;

/// A record to store: a BLE event, a log entry or a telemetry document.
#[derive(Clone, Debug)]
pub struct Record {
    /// JSON as the hub sent it.
    pub text: Arc<str>,
    pub device_instance_id: Option<i64>,
    /// The window of a windowed BLE upload.
    pub window: Option<(Timestamp, Timestamp)>,
    /// How far it was processed before the commit, for a BLE event.
    pub processing_status: ProcessingStatus,
    /// What was read from it, as JSON.
    pub reading: Option<Arc<str>>,
    /// Equal for all receptions of one frame, whichever hub received it.
    pub observation: Option<Observation>,
}

/// What tells that two receptions are of one frame.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// A hash of the sender and of its sequence number or its payload.
    pub hash: u64,
    pub observed_at: Timestamp,
    /// A sequence number tells frames apart; without one, a hub that receives the payload again
    /// receives another frame.
    pub has_sequence: bool,
}

impl Record {
    /// A record that streams send unchanged as one line. Line breaks can occur between the tokens
    /// of JSON, never inside of one.
    pub fn on_one_line(json: &str) -> Self {
        Self::new(
            match json.bytes().any(|byte| matches!(byte, b'\n' | b'\r')) {
                true => json.replace(['\n', '\r'], " ").into(),
                false => json.into(),
            },
        )
    }

    /// A record of which nothing but the text is known.
    pub fn new(text: Arc<str>) -> Self {
        Self {
            text,
            device_instance_id: None,
            window: None,
            processing_status: ProcessingStatus::Received,
            reading: None,
            observation: None,
        }
    }
}

impl Record {
    /// The memory that it uses.
    fn bytes(&self) -> usize {
        self.text.len() + self.reading.as_deref().map_or(0, str::len) + size_of::<Self>()
    }
}

/// An upload that was validated and can be stored.
#[derive(Debug)]
pub struct Upload {
    pub hub: Hub,
    pub kind: Kind,
    /// The idempotency key, by which a retry of this upload is recognised.
    pub key: Option<String>,
    pub records: Vec<Record>,
    /// What the records say of devices.
    pub heard: Vec<Heard>,
    /// The response, now and to a retry.
    pub answer: String,
    /// The agent version reported by telemetry.
    pub agent_version: Option<Arc<str>>,
}

/// The result of an upload.
#[derive(Clone, Debug)]
pub struct Receipt {
    pub answer: String,
    /// An earlier request stored the upload; nothing was written now.
    pub duplicate: bool,
    /// The owner of the hub has not consented to it; nothing was written.
    pub withheld: bool,
    pub rate_limit: RateLimit,
}

/// The tenant's use of its limit in the current minute.
#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    pub limit: i64,
    pub remaining: i64,
    /// Seconds until the minute is over.
    pub reset_secs: i64,
}

struct Pending {
    upload: Upload,
    /// Whether it counts against the limit of the minute. Of an upload in parts, the first does.
    is_counted: bool,
    /// The memory of its records.
    bytes: usize,
    _held: Arc<Held>,
    answer_to: oneshot::Sender<Result<Receipt, Refusal>>,
}

/// An upload that was read, and the memory that a large one uses.
pub struct Received<R> {
    pub hub: Hub,
    /// What the body contains, or what is wrong with it.
    pub content: Result<R>,
    pub held: Option<Held>,
}

/// Why an upload was not stored. Small and copyable, since a failed commit is reported to every
/// upload of its group.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    TokenNotInForce,
    RateLimited(RateLimit),
    StoredBytes {
        used: i64,
        limit: i64,
    },
    BytesPerDay {
        limit: i64,
        /// Seconds until the day is over.
        reset_secs: i64,
    },
    /// The disk is full.
    StorageFull,
    Unavailable,
    Failed,
}

/// Submits uploads to the writer; cheap to clone.
#[derive(Clone)]
pub struct Ingest {
    pub core: Core,
    queue: mpsc::Sender<Pending>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    waiting_records: AtomicUsize,
    /// Tenants that reached their limit: (minute, limit). That holds until the minute ends,
    /// whatever other replicas do, so no further queries are needed.
    exhausted: Mutex<HashMap<(TenantUuid, Kind), (i64, i64)>>,
}

/// Creates the two ends of the queue.
pub fn queue(core: &Core, commits: Commits, derived: Arc<dyn Derived>) -> (Ingest, Writer) {
    let (sender, receiver) = mpsc::channel(QUEUE_UPLOADS);
    let state = Arc::new(State::default());
    let writer = Writer::new(receiver, state.clone(), commits, derived);
    (
        Ingest {
            core: core.clone(),
            queue: sender,
            state,
        },
        writer,
    )
}

impl Ingest {
    /// Reads, unpacks and parses an upload. Nothing of it is read if the tenant has reached its
    /// limit.
    pub async fn receive<T, R: Send + 'static>(
        &self,
        kind: Kind,
        upload: HubUpload<T>,
        parse: impl FnOnce(&[u8]) -> Result<R> + Send + 'static,
    ) -> Result<Received<R>> {
        let HubUpload { hub, request, .. } = upload;
        self.require_below_limit(&hub, kind).await?;
        let body::Parsed { content, held } =
            body::receive(&self.core, &hub, request, parse).await?;
        Ok(Received { hub, content, held })
    }

    /// Stores the upload; returns when it is durable.
    pub async fn submit(&self, upload: Upload) -> Result<Receipt> {
        self.submit_held(upload, None).await
    }

    /// As [`Ingest::submit`], with the memory that was reserved for a large upload.
    pub async fn submit_held(&self, upload: Upload, held: Option<Held>) -> Result<Receipt> {
        self.require_below_limit(&upload.hub, upload.kind).await?;
        let bytes = bytes_of(&upload);
        let held = match held {
            Some(mut held) => {
                held.shrink_to(bytes);
                held
            }
            None => self
                .core
                .bodies
                .queued
                .reserve(body::holder(&upload.hub), bytes)
                .map_err(no_memory)?,
        };
        let held = Arc::new(held);
        match bytes {
            ..=parts::PART_BYTES => self.enqueue(upload, true, &held).await,
            _ => parts::submit(self, upload, &held).await,
        }
    }

    /// Fails if the tenant has reached its limit of the minute.
    async fn require_below_limit(&self, hub: &Hub, kind: Kind) -> Result<()> {
        let now = self.core.clock.now();
        let Some(limit) = self.state.exhausted_limit(hub.tenant_uuid, kind, now) else {
            return Ok(());
        };
        // A hub that has to refresh its token must get 401, even if others have used up the minute.
        hub.require_in_force(&self.core).await?;
        Err(rate_limited(RateLimit {
            limit,
            remaining: 0,
            reset_secs: secs_left(now),
        }))
    }

    /// Passes an upload, or a part of one, to the writer and waits until it is durable.
    async fn enqueue(&self, upload: Upload, is_counted: bool, held: &Arc<Held>) -> Result<Receipt> {
        let (records, bytes) = (upload.records.len(), bytes_of(&upload));
        let waiting = self
            .state
            .waiting_records
            .fetch_add(records, Ordering::Relaxed);
        let (answer_to, answer) = oneshot::channel();
        let pending = Pending {
            upload,
            is_counted,
            bytes,
            _held: held.clone(),
            answer_to,
        };
        // An empty queue accepts an upload of any size, which otherwise could never be stored.
        let has_room = waiting == 0 || waiting + records <= QUEUE_RECORDS;
        if !has_room || self.queue.try_send(pending).is_err() {
            self.state
                .waiting_records
                .fetch_sub(records, Ordering::Relaxed);
            let message = "the queue of uploads is full; try again shortly";
            return Err(Error::unavailable("INGEST_BUSY", message));
        }
        match answer.await {
            Ok(Ok(receipt)) => Ok(receipt),
            Ok(Err(refusal)) => Err(refusal.into()),
            Err(_) => Err(Refusal::Unavailable.into()),
        }
    }

    /// The response to an upload that cannot be stored because of `error`. It counts like any other
    /// upload. A token that is no longer in force and a reached limit take precedence over `error`.
    pub async fn refuse(&self, hub: Hub, kind: Kind, error: Error) -> Error {
        let nothing = Upload {
            hub,
            kind,
            key: None,
            records: Vec::new(),
            heard: Vec::new(),
            answer: String::new(),
            agent_version: None,
        };
        self.submit(nothing).await.err().unwrap_or(error)
    }
}

/// The memory that an upload uses while it waits.
fn bytes_of(upload: &Upload) -> usize {
    let heard: usize = upload.heard.iter().map(Heard::bytes).sum();
    size_of::<Pending>()
        + upload.answer.len()
        + heard
        + upload.records.iter().map(Record::bytes).sum::<usize>()
}

impl State {
    fn exhausted_limit(&self, tenant_uuid: TenantUuid, kind: Kind, now: Timestamp) -> Option<i64> {
        let exhausted = self
            .exhausted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (minute, limit) = exhausted.get(&(tenant_uuid, kind)).copied()?;
        (minute == minute_of(now)).then_some(limit)
    }

    fn set_exhausted(&self, tenant: &group::Exhausted) {
        let mut exhausted = self
            .exhausted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !exhausted.contains_key(&(tenant.tenant_uuid, tenant.kind)) {
            exhausted.retain(|_, (minute, _)| *minute >= tenant.minute);
        }
        if exhausted.len() >= MAX_EXHAUSTED {
            exhausted.clear();
        }
        exhausted.insert(
            (tenant.tenant_uuid, tenant.kind),
            (tenant.minute, tenant.limit),
        );
    }
}

impl Refusal {
    /// The quota that is full, as `PUT /platform/tenants/{tenantUuid}/limits` names it.
    const fn quota(self) -> Option<&'static str> {
        match self {
            Self::StoredBytes { .. } => Some("storedBytes"),
            Self::BytesPerDay { .. } => Some("bytesPerDay"),
            _ => None,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TokenNotInForce => crate::authn::invalid_token(),
            Refusal::RateLimited(rate_limit) => rate_limited(rate_limit),
            Refusal::StoredBytes { used, limit } => {
                let message = format!(
                    "the quota storedBytes is full: this tenant stores {used} of {limit} bytes; \
                     retention deletes old records, or ask for a higher quota"
                );
                Self::new(
                    StatusCode::INSUFFICIENT_STORAGE,
                    "STORED_BYTES_EXCEEDED",
                    message,
                )
                .with_retry_after(STORED_BYTES_RETRY_SECS)
            }
            Refusal::BytesPerDay { limit, reset_secs } => {
                let message = format!(
                    "the quota bytesPerDay is full: this tenant has uploaded its {limit} bytes of the day; \
                     wait for the next day (UTC), or ask for a higher quota"
                );
                Self::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "BYTES_PER_DAY_EXCEEDED",
                    message,
                )
                .with_retry_after(reset_secs.unsigned_abs())
            }
            Refusal::StorageFull => Self::storage_full(),
            Refusal::Unavailable => Self::unavailable(
                "DATABASE_UNAVAILABLE",
                "the database is not available; try again shortly",
            ),
            Refusal::Failed => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "INTERNAL",
                "the service failed to process the request; contact support with the request id",
            ),
        }
    }
}

fn rate_limited(rate_limit: RateLimit) -> Error {
    let message = format!(
        "this tenant is limited to {} such uploads a minute; wait for the next minute",
        rate_limit.limit
    );
    let error = Error::too_many_requests(message, rate_limit.reset_secs.unsigned_abs());
    rate_limit
        .headers()
        .into_iter()
        .fold(error, |error, (name, value)| error.with_header(name, value))
}

impl RateLimit {
    const fn headers(self) -> [(&'static str, i64); 3] {
        [
            ("ratelimit-limit", self.limit),
            ("ratelimit-remaining", self.remaining),
            ("ratelimit-reset", self.reset_secs),
        ]
    }
}

/// The calendar minute, counted from 1970.
const fn minute_of(now: Timestamp) -> i64 {
    now.as_secs().div_euclid(60)
}

const fn secs_left(now: Timestamp) -> i64 {
    60 - now.as_secs().rem_euclid(60)
}

/// A response with the tenant's rate limit in its headers.
pub struct Limited<R>(pub R, pub RateLimit);

impl<R: IntoResponse> IntoResponse for Limited<R> {
    fn into_response(self) -> Response {
        let mut response = self.0.into_response();
        for (name, value) in self.1.headers() {
            response.headers_mut().insert(name, value.into());
        }
        response
    }
}

impl<R: aide::OperationOutput> aide::OperationOutput for Limited<R> {
    type Inner = R::Inner;
    fn inferred_responses(
        ctx: &mut aide::generate::GenContext,
        operation: &mut aide::openapi::Operation,
    ) -> Vec<(Option<u16>, aide::openapi::Response)> {
        let mut responses = R::inferred_responses(ctx, operation);
        for (_, response) in &mut responses {
            response.headers.extend(rate_limit_headers::<Vec<_>>());
        }
        may_fail(operation, &[429]);
        responses
    }
}
