//! The way in for everything hubs upload. A handler checks an upload and hands it over; the writer commits what has gathered in one
//! transaction, and only then is anyone answered. So the cost of a commit is shared by every upload in flight, and nothing that was
//! answered can be lost. The queue is bounded: when it is full, hubs are told to come back, and their spools hold the data.

mod group;
mod single;
mod writer;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use hub_protocol::{TenantUuid, Timestamp};
use tokio::sync::{mpsc, oneshot};

use crate::app::App;
use crate::authn::hub::Hub;
use crate::error::{Error, Result};

pub use single::{Ids, known_answer, remember_answer, take_id};
pub use writer::Writer;

/// Uploads that may wait for the writer.
const QUEUE_UPLOADS: usize = 4096;
/// Records, over all waiting uploads, beyond which new uploads are told to come back.
const QUEUE_RECORDS: usize = 200_000;

/// The kinds of upload, each with a count and an order of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    BleEvents,
    Logs,
    Telemetry,
    /// Stored by `domain/jobs`, each in the transaction that moves its job on; here only for their ids and their streams.
    JobEvents,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::BleEvents, Self::Logs, Self::Telemetry, Self::JobEvents];

    /// As stored in `upload_clocks` and `upload_keys`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BleEvents => "BLE_EVENTS",
            Self::Logs => "LOGS",
            Self::Telemetry => "TELEMETRY",
            Self::JobEvents => "JOB_EVENTS",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// One thing to store: a BLE event, a log entry or a telemetry document.
#[derive(Clone, Debug)]
pub struct Record {
    /// JSON as the hub sent it.
    pub text: Arc<str>,
    pub device_instance_id: Option<i64>,
    /// Of a windowed BLE upload.
    pub window: Option<(Timestamp, Timestamp)>,
}

impl Record {
    /// A record that streams send as it is, as one line. Line breaks may stand between the tokens of JSON but in none of them.
    pub fn on_one_line(json: &str) -> Self {
        let text = match json.bytes().any(|byte| matches!(byte, b'\n' | b'\r')) {
            true => json.replace(['\n', '\r'], " ").into(),
            false => json.into(),
        };
        Self { text, device_instance_id: None, window: None }
    }
}

/// An upload that was checked and is ready to be stored.
#[derive(Debug)]
pub struct Upload {
    pub hub: Hub,
    pub kind: Kind,
    /// What a retry of this upload is recognised by.
    pub key: Option<String>,
    pub records: Vec<Record>,
    /// What to answer, now and to a retry.
    pub answer: String,
    /// What telemetry says that the hub runs.
    pub agent_version: Option<Arc<str>>,
}

/// What became of an upload.
#[derive(Clone, Debug)]
pub struct Receipt {
    pub answer: String,
    /// Stored by an earlier request; nothing was written now.
    pub duplicate: bool,
    pub rate_limit: RateLimit,
}

/// Where the tenant stands in the present minute.
#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    pub limit: i64,
    pub remaining: i64,
    /// Seconds until the minute is over.
    pub reset_secs: i64,
}

struct Pending {
    upload: Upload,
    answer_to: oneshot::Sender<Result<Receipt, Refusal>>,
}

/// Why an upload was not stored. Small and copyable, since one failed commit is told to every upload of its group.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    TokenNotInForce,
    RateLimited(RateLimit),
    Unavailable,
    Failed,
}

/// Hands uploads to the writer; cheap to clone.
#[derive(Clone)]
pub struct Ingest {
    queue: mpsc::Sender<Pending>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    waiting_records: AtomicUsize,
    /// Tenants that used their minute up: (minute, limit). Once so, it stays so until the minute ends, whatever other replicas do, so the
    /// database need not be asked again.
    exhausted: Mutex<HashMap<(TenantUuid, Kind), (i64, i64)>>,
}

/// The two ends of the queue.
pub fn queue() -> (Ingest, Writer) {
    let (sender, receiver) = mpsc::channel(QUEUE_UPLOADS);
    let state = Arc::new(State::default());
    (Ingest { queue: sender, state: state.clone() }, Writer::new(receiver, state))
}

impl Ingest {
    /// Stores the upload; answers when it is durable.
    pub async fn submit(&self, app: &App, upload: Upload) -> Result<Receipt> {
        let now = app.clock.now();
        if let Some(limit) = self.state.exhausted_limit(upload.hub.tenant_uuid, upload.kind, now) {
            // A hub that has to refresh its token is to hear that, also while others use up the minute.
            upload.hub.require_in_force(app).await?;
            return Err(rate_limited(RateLimit { limit, remaining: 0, reset_secs: secs_left(now) }));
        }
        let records = upload.records.len();
        let waiting = self.state.waiting_records.fetch_add(records, Ordering::Relaxed);
        let (answer_to, answer) = oneshot::channel();
        // Into an empty queue any upload is let, however large, else it never could be.
        let has_room = waiting == 0 || waiting + records <= QUEUE_RECORDS;
        if !has_room || self.queue.try_send(Pending { upload, answer_to }).is_err() {
            self.state.waiting_records.fetch_sub(records, Ordering::Relaxed);
            let message = "more uploads are waiting than can be taken in; try again shortly";
            return Err(Error::unavailable("INGEST_BUSY", message));
        }
        match answer.await {
            Ok(Ok(receipt)) => Ok(receipt),
            Ok(Err(refusal)) => Err(refusal.into()),
            Err(_) => Err(Refusal::Unavailable.into()),
        }
    }
}

impl Ingest {
    /// What an upload is answered that cannot be stored because of `error`. It counts like any other; and that its token is not in force any more, or
    /// the minute used up, matters more than what is wrong with it.
    pub async fn refuse(&self, app: &App, hub: Hub, kind: Kind, error: Error) -> Error {
        let nothing = Upload { hub, kind, key: None, records: Vec::new(), answer: String::new(), agent_version: None };
        self.submit(app, nothing).await.err().unwrap_or(error)
    }
}

impl State {
    fn exhausted_limit(&self, tenant_uuid: TenantUuid, kind: Kind, now: Timestamp) -> Option<i64> {
        let exhausted = self.exhausted.lock().unwrap_or_else(PoisonError::into_inner);
        let (minute, limit) = exhausted.get(&(tenant_uuid, kind)).copied()?;
        (minute == minute_of(now)).then_some(limit)
    }

    fn set_exhausted(&self, tenant: &group::Exhausted) {
        let mut exhausted = self.exhausted.lock().unwrap_or_else(PoisonError::into_inner);
        exhausted.retain(|_, (minute, _)| *minute >= tenant.minute);
        exhausted.insert((tenant.tenant_uuid, tenant.kind), (tenant.minute, tenant.limit));
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TokenNotInForce => crate::authn::invalid_token(),
            Refusal::RateLimited(rate_limit) => rate_limited(rate_limit),
            Refusal::Unavailable => {
                Self::unavailable("DATABASE_UNAVAILABLE", "the database is not available now; try again shortly")
            }
            Refusal::Failed => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "INTERNAL",
                "something went wrong on our side; tell support the request id",
            ),
        }
    }
}

fn rate_limited(rate_limit: RateLimit) -> Error {
    let message = format!("this tenant may make {} such uploads a minute; wait for the next minute", rate_limit.limit);
    let error = Error::too_many_requests(message, rate_limit.reset_secs.unsigned_abs());
    rate_limit.headers().into_iter().fold(error, |error, (name, value)| error.with_header(name, value))
}

impl RateLimit {
    const fn headers(self) -> [(&'static str, i64); 3] {
        [("ratelimit-limit", self.limit), ("ratelimit-remaining", self.remaining), ("ratelimit-reset", self.reset_secs)]
    }
}

/// A calendar minute, counted from 1970.
const fn minute_of(now: Timestamp) -> i64 {
    now.as_secs().div_euclid(60)
}

const fn secs_left(now: Timestamp) -> i64 {
    60 - now.as_secs().rem_euclid(60)
}

/// An answer that says where the tenant stands in the present minute.
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
        R::inferred_responses(ctx, operation)
    }
}

/// The `Idempotency-Key` header of an upload: 1 to 200 visible characters.
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    match value.to_str() {
        Ok(key) if (1..=200).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Ok(Some(key.to_owned()))
        }
        _ => Err(Error::field("Idempotency-Key", "must be 1 to 200 visible ASCII characters")),
    }
}
