//! A fake service: real HTTP on a loopback port, stores what it receives, and fails on demand like
//! real ones.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use hub_protocol::{HubJobUuid, TenantUuid};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::packages::{self, Software};
use super::releases::{self, Fleet};

pub const CODE: &str = "ABCD-EFGH-JKMN-PQRS";
pub const TENANT: &str = "0190a000-0000-7000-8000-000000000001";
pub const HUB: &str = "0190a000-0000-7000-8000-000000000002";

/// What happens to an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Stored,
    /// Stored, and the answer is lost.
    StoredUnanswered,
    /// 503.
    Unavailable,
    /// 401, as if another replica had replaced the token.
    TokenRefused,
    /// 429 with `Retry-After: 1`.
    TooMany,
    /// A router's login page answers, with a wrong clock.
    LoginPage,
}

#[derive(Default)]
pub struct Stored {
    /// Bodies as they arrived, by batch.
    pub batches: HashMap<String, Vec<u8>>,
    /// Batches in the order they first arrived.
    pub order: Vec<String>,
    /// Events stored, by batch.
    pub events: BTreeMap<String, Vec<Value>>,
    /// Batches that arrived twice with different content.
    pub changed: Vec<String>,
    pub claims: Vec<Value>,
    /// The idempotency keys of the same.
    pub claim_keys: Vec<String>,
    pub refreshes: usize,
    pub adapters: Vec<Value>,
    pub telemetry: Vec<Value>,
    pub logs: Vec<Value>,
    telemetry_keys: BTreeSet<String>,
    tokens: usize,
    blocked: bool,
    codes: Vec<String>,
    /// Statuses of the first claims.
    pub claims_fail_with: Vec<u16>,
    claims_tried: usize,
    /// Codes work for more than one claim.
    pub endless_codes: bool,
    lifetime_secs: i64,
    lose_refreshes: usize,
    /// Until then, claims and refreshes get 429 with the remaining time as `Retry-After`.
    limited_until: Option<Instant>,
    /// Claims and refreshes that got it.
    pub limited: usize,
    /// The names of events for which an upload is refused with 400.
    pub refused_names: Vec<String>,
    login_page: bool,
    desired: Option<Value>,
    scan_config: Option<Value>,
    /// The entity tags that requests for the scan configuration named, and whether it was sent.
    pub scan_config_requests: Vec<(Option<String>, bool)>,
    pub fleet: Fleet,
    pub software: Software,
    /// The tenant of the next claim, if not the usual one.
    pub tenant: Option<TenantUuid>,
    /// How far the service's clock is ahead of the hub's.
    pub ahead_secs: i64,
    /// How long its answers are on their way.
    pub late_secs: u64,
}

pub struct Service {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

pub struct Shared {
    pub stored: Mutex<Stored>,
    pub changed: Notify,
    fate: Box<dyn Fn(usize) -> Fate + Send + Sync>,
    uploads: Mutex<usize>,
}

impl Service {
    pub async fn start() -> Self {
        Self::with_fate(|_| Fate::Stored).await
    }

    /// `fate` decides on each BLE upload, by its number.
    pub async fn with_fate(fate: impl Fn(usize) -> Fate + Send + Sync + 'static) -> Self {
        let mut stored = Stored {
            codes: vec![CODE.into()],
            lifetime_secs: 86_400,
            ..Stored::default()
        };
        stored.desire(json!({}));
        let shared = Arc::new(Shared {
            stored: Mutex::new(stored),
            changed: Notify::new(),
            fate: Box::new(fate),
            uploads: Mutex::new(0),
        });
        let app = Router::new()
            .route("/v1/hubs/claim", post(claim))
            .route("/v1/hubs/refresh", post(refresh))
            .route("/v1/hubs/adapters", post(adapters))
            .route("/v1/hubs/{hub}/telemetry", post(telemetry))
            .route("/v1/hubs/{hub}/logs", post(logs))
            .route("/v1/hubs/{hub}/desired-state", get(desired_state))
            .route("/v1/hubs/scan-config", get(scan_config))
            .route("/v1/ble/events", post(events))
            .merge(releases::routes())
            .merge(packages::routes())
            .layer(axum::middleware::from_fn_with_state(
                shared.clone(),
                check_certificate,
            ))
            .layer(axum::middleware::from_fn_with_state(shared.clone(), date))
            .with_state(shared.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn change(&self, change: impl FnOnce(&mut Stored)) {
        change(&mut self.shared.stored.lock().unwrap());
        self.shared.changed.notify_waiters();
    }

    /// Waits until `look` returns a value.
    pub async fn until<T>(&self, what: &str, look: impl Fn(&Stored) -> Option<T>) -> T {
        let found = async {
            loop {
                let changed = self.shared.changed.notified();
                if let Some(found) = look(&self.shared.stored.lock().unwrap()) {
                    return found;
                }
                changed.await;
            }
        };
        match tokio::time::timeout(Duration::from_secs(60), found).await {
            Ok(found) => found,
            Err(_) => panic!("timed out waiting for {what}"),
        }
    }
}

impl Stored {
    pub fn all_events(&self) -> impl Iterator<Item = &Value> {
        self.events.values().flatten()
    }

    pub fn event_count(&self) -> usize {
        self.all_events().count()
    }

    /// Blocks the hub.
    pub fn block(&mut self) {
        self.blocked = true;
    }

    pub fn unblock_with(&mut self, code: &str) {
        self.blocked = false;
        self.codes.push(code.to_owned());
    }

    pub fn set_lifetime_secs(&mut self, secs: i64) {
        self.lifetime_secs = secs;
    }

    /// The answers of the next refreshes never arrive.
    pub fn lose_refreshes(&mut self, count: usize) {
        self.lose_refreshes = count;
    }

    /// Accepts no claim and no refresh for so long.
    pub fn limit(&mut self, time: Duration) {
        self.limited_until = Some(Instant::now() + time);
    }

    fn refuse_limited(&mut self) -> Option<Response> {
        let left = self.limited_until?.checked_duration_since(Instant::now())?;
        self.limited += 1;
        let retry_after = (left.as_secs() + 1).to_string();
        let limited = problem(429, "TOO_MANY_REQUESTS");
        Some(([(header::RETRY_AFTER, retry_after)], limited).into_response())
    }

    /// A login page in between answers all uploads with status 200.
    pub fn login_page(&mut self, is_there: bool) {
        self.login_page = is_there;
    }

    pub fn desire(&mut self, settings: Value) {
        let revision = self
            .desired
            .as_ref()
            .map_or(1, |state| state["revision"].as_i64().unwrap() + 1);
        self.desired = Some(
            json!({"revision": revision, "agent": {}, "apps": [], "jobs": [], "scanConfigRevision": 0,
            "settings": settings}),
        );
    }

    /// Requests for the desired state are answered, and never have news.
    pub fn desire_nothing(&mut self) {
        self.desired = None;
    }

    pub fn desire_jobs(&mut self, jobs: Vec<Value>) {
        let state = self.desired.as_mut().unwrap();
        state["revision"] = json!(state["revision"].as_i64().unwrap() + 1);
        state["jobs"] = json!(jobs);
    }

    /// The hub has to fetch this scan configuration.
    pub fn configure(&mut self, config: Value) {
        let state = self.desired.as_mut().unwrap();
        state["revision"] = json!(state["revision"].as_i64().unwrap() + 1);
        state["scanConfigRevision"] = config["revision"].clone();
        self.scan_config = Some(config);
    }

    /// The next claim is of another tenant, which has no scan configuration.
    pub fn give_away(&mut self, code: &str) {
        self.tenant = Some(TenantUuid::new());
        self.scan_config = None;
        self.unblock_with(code);
    }

    pub fn jobs(&self) -> &[Value] {
        self.desired.as_ref().unwrap()["jobs"].as_array().unwrap()
    }

    /// A finished job leaves the desired state.
    pub fn end_job(&mut self, job: HubJobUuid) {
        let left = self
            .jobs()
            .iter()
            .filter(|known| known["hubJobUuid"] != json!(job))
            .cloned()
            .collect();
        self.desire_jobs(left);
    }

    fn token(&self, number: usize) -> String {
        format!("access-{number}")
    }

    fn expires_at(&self) -> String {
        hub_protocol::Timestamp::from(chrono::Utc::now())
            .plus_secs(self.lifetime_secs)
            .to_string()
    }
}

/// Shows the time of the service's clock.
async fn date(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let (ahead_secs, late_secs) = {
        let stored = shared.stored.lock().unwrap();
        (stored.ahead_secs, stored.late_secs)
    };
    let mut response = next.run(request).await;
    if ahead_secs != 0 || late_secs != 0 {
        let now = chrono::Utc::now() + chrono::Duration::seconds(ahead_secs);
        let text = now.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        response
            .headers_mut()
            .insert(header::DATE, text.parse().unwrap());
        tokio::time::sleep(Duration::from_secs(late_secs)).await;
    }
    response
}

pub fn problem(status: u16, code: &str) -> Response {
    let body = json!({"message": format!("It is {code}."), "code": code, "requestId": "req-1"});
    (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
}

fn bearer(headers: &HeaderMap) -> &str {
    headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "))
        .unwrap_or_default()
}

pub fn authorized(stored: &Stored, headers: &HeaderMap) -> bool {
    !stored.blocked && stored.tokens > 0 && bearer(headers) == stored.token(stored.tokens)
}

/// Like the service: claim, refresh and the request for another certificate need none.
async fn check_certificate(
    State(shared): State<Arc<Shared>>,
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> Response {
    let free = ["/claim", "/refresh", "/certificates"]
        .iter()
        .any(|end| request.uri().path().ends_with(end));
    let refused = {
        let fleet = &shared.stored.lock().unwrap().fleet;
        fleet
            .certificate_refused
            .filter(|(_, until)| !free && fleet.certificate_requests.len() < *until)
    };
    match refused {
        Some((code, _)) => problem(401, code),
        None => next.run(request).await,
    }
}

async fn claim(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let mut stored = shared.stored.lock().unwrap();
    if stored.blocked {
        return problem(423, "HUB_BLOCKED");
    }
    if let Some(limited) = stored.refuse_limited() {
        return limited;
    }
    stored.claims_tried += 1;
    match stored
        .claims_tried
        .checked_sub(1)
        .and_then(|number| stored.claims_fail_with.get(number))
        .copied()
    {
        None => {}
        // Something else answers.
        Some(200) => return "<html>Please log in</html>".into_response(),
        Some(404) => return StatusCode::NOT_FOUND.into_response(),
        Some(status) => return problem(status, "CLAIM_FAILED"),
    }
    let Some(at) = stored
        .codes
        .iter()
        .position(|code| body["claimCode"] == json!(code))
    else {
        return problem(400, "CLAIM_CODE_INVALID");
    };
    if stored.endless_codes {
        // Invalidates the tokens of the previous claim.
        stored.tokens += 1;
    } else {
        stored.codes.remove(at);
    }
    stored.claims.push(body);
    stored
        .claim_keys
        .push(headers["idempotency-key"].to_str().unwrap().to_owned());
    stored.fleet.certificates_since_claim = 0;
    stored.tokens += 1;
    let tenant = stored
        .tenant
        .map_or(TENANT.to_owned(), |tenant| tenant.to_string());
    let answer = json!({"hubUuid": HUB, "tenantUuid": tenant, "accessToken": stored.token(stored.tokens), "refreshToken": "refresh",
        "expiresAt": stored.expires_at()});
    drop(stored);
    shared.changed.notify_waiters();
    (StatusCode::CREATED, Json(json!({"data": answer}))).into_response()
}

async fn refresh(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let mut stored = shared.stored.lock().unwrap();
    if let Some(limited) = stored.refuse_limited() {
        return limited;
    }
    if stored.blocked {
        return problem(403, "HUB_BLOCKED");
    }
    let known = [
        stored.token(stored.tokens),
        stored.token(stored.tokens.saturating_sub(1)),
    ];
    if body["refreshToken"] != "refresh" || !known.iter().any(|token| token == bearer(&headers)) {
        return problem(401, "REFRESH_TOKEN_INVALID");
    }
    // The replaced token still works here: only a token that was used proves that its answer
    // arrived.
    if bearer(&headers) == stored.token(stored.tokens) {
        stored.tokens += 1;
    }
    stored.refreshes += 1;
    let answer = json!({"hubUuid": HUB, "accessToken": stored.token(stored.tokens), "expiresAt": stored.expires_at()});
    let lost = stored.lose_refreshes > 0;
    stored.lose_refreshes = stored.lose_refreshes.saturating_sub(1);
    drop(stored);
    shared.changed.notify_waiters();
    if lost {
        problem(502, "BAD_GATEWAY")
    } else {
        Json(json!({"data": answer})).into_response()
    }
}

async fn events(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    if shared.stored.lock().unwrap().login_page {
        return Html("<html>Please log in</html>").into_response();
    }
    if !authorized(&shared.stored.lock().unwrap(), &headers) {
        return problem(401, "TOKEN_INVALID");
    }
    let number = {
        let mut uploads = shared.uploads.lock().unwrap();
        *uploads += 1;
        *uploads
    };
    let fate = (shared.fate)(number);
    match fate {
        Fate::Unavailable => return problem(503, "UNAVAILABLE"),
        Fate::TokenRefused => {
            // Replaced by a refresh whose answer the hub never received.
            shared.stored.lock().unwrap().tokens += 1;
            return problem(401, "TOKEN_INVALID");
        }
        Fate::TooMany => {
            return (
                [(header::RETRY_AFTER, "1")],
                problem(429, "TOO_MANY_REQUESTS"),
            )
                .into_response();
        }
        Fate::LoginPage => {
            let headers = [
                (header::DATE, "Sat, 01 Jan 2050 00:00:00 GMT"),
                (header::LOCATION, "http://192.0.2.1/login"),
            ];
            return (StatusCode::FOUND, headers).into_response();
        }
        Fate::Stored | Fate::StoredUnanswered => {}
    }
    let upload: Value = serde_json::from_slice(&unpack(&headers, &body)).unwrap();
    let batch = upload["batchUuid"].as_str().unwrap().to_owned();
    assert_eq!(headers["idempotency-key"], batch.as_str());
    let events = upload["events"].as_array().unwrap().clone();
    let accepted = events.len();
    let mut stored = shared.stored.lock().unwrap();
    let is_refused = |event: &Value| {
        stored
            .refused_names
            .iter()
            .any(|name| event["name"] == **name)
    };
    if events.iter().any(is_refused) {
        return problem(400, "BAD_REQUEST");
    }
    let duplicate = match stored.batches.get(&batch) {
        Some(before) => {
            if *before != body {
                stored.changed.push(batch.clone());
            }
            true
        }
        None => {
            stored.batches.insert(batch.clone(), body.to_vec());
            stored.order.push(batch.clone());
            stored.events.insert(batch, events);
            false
        }
    };
    drop(stored);
    shared.changed.notify_waiters();
    if fate == Fate::StoredUnanswered {
        return problem(502, "BAD_GATEWAY");
    }
    let answer = json!({"data": {"accepted": accepted, "rejected": [], "duplicate": duplicate}});
    (StatusCode::CREATED, Json(answer)).into_response()
}

async fn adapters(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let answer = Json(json!({"data": {"upserted": 1, "poweredOff": 0}}));
    store(&shared, &headers, answer, |stored| {
        stored.adapters.push(body)
    })
}

async fn telemetry(
    State(shared): State<Arc<Shared>>,
    Path(hub): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    assert_eq!(hub, HUB);
    let Value::Array(records) = serde_json::from_slice(&unpack(&headers, &body)).unwrap() else {
        panic!("an array")
    };
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    store(&shared, &headers, StatusCode::NO_CONTENT, |stored| {
        // Sent again if the answer was lost: stored once.
        if stored.telemetry_keys.insert(key) {
            stored.telemetry.extend(records);
        }
    })
}

async fn logs(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let Value::Array(records) = serde_json::from_slice(&unpack(&headers, &body)).unwrap() else {
        panic!("an array")
    };
    store(&shared, &headers, StatusCode::NO_CONTENT, |stored| {
        stored.logs.extend(records)
    })
}

fn store(
    shared: &Shared,
    headers: &HeaderMap,
    answer: impl IntoResponse,
    store: impl FnOnce(&mut Stored),
) -> Response {
    let mut stored = shared.stored.lock().unwrap();
    if stored.login_page {
        return Html("<html>Please log in</html>").into_response();
    }
    if !authorized(&stored, headers) {
        return problem(401, "TOKEN_INVALID");
    }
    store(&mut stored);
    drop(stored);
    shared.changed.notify_waiters();
    answer.into_response()
}

async fn desired_state(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let wait = Duration::from_secs(query["wait"].parse().unwrap());
    let seen = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("none")
        .to_owned();
    let change = async {
        loop {
            let changed = shared.changed.notified();
            {
                let stored = shared.stored.lock().unwrap();
                if !authorized(&stored, &headers) {
                    return problem(401, "TOKEN_INVALID");
                }
                if let Some(state) = &stored.desired {
                    let etag = format!("\"{}\"", state["revision"]);
                    if etag != seen {
                        return ([(header::ETAG, etag)], Json(json!({"data": state})))
                            .into_response();
                    }
                }
            }
            changed.await;
        }
    };
    tokio::time::timeout(wait, change)
        .await
        .unwrap_or_else(|_| StatusCode::NOT_MODIFIED.into_response())
}

async fn scan_config(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let mut stored = shared.stored.lock().unwrap();
    if !authorized(&stored, &headers) {
        return problem(401, "TOKEN_INVALID");
    }
    let Some(config) = stored.scan_config.clone() else {
        return problem(404, "NOT_FOUND");
    };
    let etag = format!("\"scan-{}\"", config["revision"]);
    let known = headers
        .get(header::IF_NONE_MATCH)
        .map(|value| value.to_str().unwrap().to_owned());
    let is_sent = known.as_deref() != Some(etag.as_str());
    stored.scan_config_requests.push((known, is_sent));
    drop(stored);
    shared.changed.notify_waiters();
    assert_eq!(headers[header::ACCEPT_ENCODING], "zstd");
    let packed =
        || zstd::bulk::compress(json!({"data": config}).to_string().as_bytes(), 1).unwrap();
    match is_sent {
        true => (
            [
                (header::ETAG, etag.as_str()),
                (header::CONTENT_ENCODING, "zstd"),
            ],
            packed(),
        )
            .into_response(),
        false => StatusCode::NOT_MODIFIED.into_response(),
    }
}

pub fn unpack(headers: &HeaderMap, body: &[u8]) -> Vec<u8> {
    match headers.get(header::CONTENT_ENCODING) {
        Some(encoding) => assert_eq!(encoding, "zstd"),
        // The last word of an agent that cannot spool.
        None => return body.to_vec(),
    }
    zstd::stream::decode_all(body).unwrap()
}
