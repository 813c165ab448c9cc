//! The service's part in jobs: releases and their files, job events, reports of installed apps,
//! certificates. It checks what it receives, and its file server cuts, delays, replaces and forgets
//! files on demand.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use hub_protocol::release::{AppRun, ReleaseKind, ReleaseManifest};
use hub_protocol::{AppUuid, HubJobUuid, ReleaseUuid, TenantUuid, Timestamp};
use minisign::KeyPair;
use serde_json::{Value, json};

use super::service::{HUB, Shared, TENANT, authorized, problem};

/// What happens to a request for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFate {
    Whole,
    /// The connection ends after this many bytes.
    CutAfter(usize),
    /// The URL has expired.
    Expired,
    /// Other content of the same length.
    Mixed,
    /// More than the manifest states.
    TooLong,
    /// The whole file, whatever range was requested.
    NoRanges,
    /// A range is refused, as by a server that has a shorter file.
    RangeRefused,
    /// A proxy's page, which announces its own length, or none and no type.
    LoginPage,
    PlainPage,
    /// This many bytes every ten milliseconds.
    Slow(usize),
    Unavailable,
}

const PAGE: &str = "<!doctype html><title>Welcome to the guest network</title>";

#[derive(Clone)]
pub struct Release {
    pub release_uuid: ReleaseUuid,
    pub app_uuid: Option<AppUuid>,
    pub manifest: String,
    pub signature: String,
    pub file: Bytes,
}

#[derive(Clone, Debug, PartialEq)]
pub struct JobEvent {
    pub job: HubJobUuid,
    pub uuid: String,
    pub kind: String,
    pub body: Value,
}

pub struct Fleet {
    pub keys: KeyPair,
    pub releases: BTreeMap<ReleaseUuid, Release>,
    /// By the number of the request, from 1.
    pub file_fate: Box<dyn Fn(usize) -> FileFate + Send>,
    /// The server of the files, if it is not the service.
    pub store: Option<String>,
    /// Headers of all requests for files, in order.
    pub file_requests: Vec<HeaderMap>,
    /// Statuses of the first requests with job events. 502 stores the event and loses the answer.
    pub event_fates: Vec<u16>,
    event_requests: usize,
    /// Stored once each, in order.
    pub events: Vec<JobEvent>,
    /// Events that came after their job's end.
    pub late_events: Vec<JobEvent>,
    pub installed: Vec<Value>,
    /// The validity of issued certificates in seconds; without one the answer is 404.
    pub certificate_secs: Option<i64>,
    pub certificate_requests: Vec<Value>,
    pub certificates_since_claim: usize,
    /// Another one since the claim is issued only over a connection that shows one.
    pub certificates_required: bool,
    /// The ports of connections to this service that come from one that showed a certificate.
    pub shown_ports: Arc<Mutex<BTreeSet<u16>>>,
    /// Refuses every call with this code until this many certificates were requested.
    pub certificate_refused: Option<(&'static str, usize)>,
    pub authority: Arc<Authority>,
}

pub type Authority = rcgen::CertifiedIssuer<'static, rcgen::KeyPair>;

fn authority() -> Authority {
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    rcgen::CertifiedIssuer::self_signed(params, rcgen::KeyPair::generate().unwrap()).unwrap()
}

impl Default for Fleet {
    fn default() -> Self {
        Self {
            keys: KeyPair::generate_unencrypted_keypair().unwrap(),
            releases: BTreeMap::new(),
            file_fate: Box::new(|_| FileFate::Whole),
            store: None,
            file_requests: Vec::new(),
            event_fates: Vec::new(),
            event_requests: 0,
            events: Vec::new(),
            late_events: Vec::new(),
            installed: Vec::new(),
            certificate_secs: None,
            certificate_requests: Vec::new(),
            certificates_since_claim: 0,
            certificates_required: false,
            shown_ports: Arc::default(),
            certificate_refused: None,
            authority: Arc::new(authority()),
        }
    }
}

impl Fleet {
    /// Kinds and reasons of a job's events.
    pub fn reported(&self, job: HubJobUuid) -> Vec<String> {
        let events = self.events.iter().filter(|event| event.job == job);
        events
            .map(|event| match event.body["detail"]["reason"].as_str() {
                Some(reason) => format!("{} {reason}", event.kind),
                None => event.kind.clone(),
            })
            .collect()
    }

    pub fn end(&self, job: HubJobUuid) -> Option<String> {
        self.reported(job)
            .into_iter()
            .find(|reported| reported.starts_with("SUCCEEDED") || reported.starts_with("FAILED"))
    }

    pub fn app(&mut self, app_uuid: AppUuid, version: &str, file: Vec<u8>) -> ReleaseUuid {
        self.release(Some(app_uuid), version, file, |_| {})
    }

    /// A correctly signed release, after `change` was applied.
    pub fn release(
        &mut self,
        app_uuid: Option<AppUuid>,
        version: &str,
        file: Vec<u8>,
        change: impl FnOnce(&mut ReleaseManifest),
    ) -> ReleaseUuid {
        let run: AppRun =
            serde_json::from_value(json!({"entryPoint": "bin/app", "healthSecs": 1})).unwrap();
        let mut manifest = ReleaseManifest {
            name: if app_uuid.is_some() {
                "logger"
            } else {
                "hub-agent"
            }
            .into(),
            kind: if app_uuid.is_some() {
                ReleaseKind::App
            } else {
                ReleaseKind::Agent
            },
            architecture: rustix::system::uname().machine().to_str().unwrap().into(),
            version: version.into(),
            size_bytes: file.len() as u64,
            sha256: sha256(&file),
            counter: 1,
            downgrade: false,
            app: app_uuid.map(|_| run),
            sbom: None,
            vex: None,
        };
        change(&mut manifest);
        let manifest = serde_json::to_string_pretty(&manifest).unwrap();
        let signature = sign(&self.keys, &manifest);
        let release_uuid = ReleaseUuid::new();
        self.releases.insert(
            release_uuid,
            Release {
                release_uuid,
                app_uuid,
                manifest,
                signature,
                file: file.into(),
            },
        );
        release_uuid
    }
}

pub fn sign(keys: &KeyPair, manifest: &str) -> String {
    minisign::sign(Some(&keys.pk), &keys.sk, manifest.as_bytes(), None, None)
        .unwrap()
        .to_string()
}

pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes))
}

pub fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/test", get(test))
        .route("/v1/apps/{release}/manifest", get(manifest))
        .route("/v1/agent/releases/latest", get(latest))
        .route("/installer/{release}", get(file))
        .route("/v1/hubs/{hub}/jobs/{job}/events", post(event))
        .route("/v1/hubs/{hub}/installed-apps", put(installed))
        .route("/v1/hubs/{hub}/certificates", post(certificate))
}

async fn test(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    if !authorized(&shared.stored.lock().unwrap(), &headers) {
        return problem(401, "TOKEN_INVALID");
    }
    let now = Timestamp::from(chrono::Utc::now()).to_string();
    Json(json!({"data": {"hubUuid": HUB, "tenantUuid": TENANT.parse::<TenantUuid>().unwrap(), "time": now}}))
        .into_response()
}

async fn manifest(
    State(shared): State<Arc<Shared>>,
    Path(release): Path<ReleaseUuid>,
    headers: HeaderMap,
) -> Response {
    offer(&shared, release, &headers)
}

async fn latest(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<HashMap<String, ReleaseUuid>>,
    headers: HeaderMap,
) -> Response {
    offer(&shared, query["releaseUuid"], &headers)
}

fn offer(shared: &Shared, release: ReleaseUuid, headers: &HeaderMap) -> Response {
    let stored = shared.stored.lock().unwrap();
    if !authorized(&stored, headers) {
        return problem(401, "TOKEN_INVALID");
    }
    let Some(release) = stored.fleet.releases.get(&release) else {
        return problem(404, "RELEASE_NOT_FOUND");
    };
    let version: Value = serde_json::from_str(&release.manifest).unwrap();
    let store = stored.fleet.store.as_deref().unwrap_or_default();
    let offer = json!({"releaseUuid": release.release_uuid, "appUuid": release.app_uuid, "version": version["version"],
        "manifest": release.manifest, "signature": release.signature,
        "downloadUrl": format!("{store}/installer/{}?signature=1", release.release_uuid),
        "downloadUrlExpiresAt": Timestamp::from(chrono::Utc::now()).plus_secs(300).to_string()});
    Json(json!({ "data": offer })).into_response()
}

async fn file(
    State(shared): State<Arc<Shared>>,
    Path(release): Path<ReleaseUuid>,
    headers: HeaderMap,
) -> Response {
    let (file, fate) = {
        let mut stored = shared.stored.lock().unwrap();
        let fleet = &mut stored.fleet;
        fleet.file_requests.push(headers.clone());
        (
            fleet.releases[&release].file.clone(),
            (fleet.file_fate)(fleet.file_requests.len()),
        )
    };
    shared.changed.notify_waiters();
    let etag = format!("\"{}\"", sha256(&file));
    let range = headers
        .get(header::RANGE)
        .map(|range| range.to_str().unwrap().to_owned());
    let may_resume = headers
        .get(header::IF_RANGE)
        .is_none_or(|tag| tag == etag.as_str());
    let start = match range.filter(|_| may_resume && fate != FileFate::NoRanges) {
        Some(range) => range
            .strip_prefix("bytes=")
            .unwrap()
            .strip_suffix('-')
            .unwrap()
            .parse()
            .unwrap(),
        None => 0,
    };
    let (content, cut, pause) = match fate {
        FileFate::Expired => return problem(403, "URL_EXPIRED"),
        FileFate::Unavailable => return problem(503, "UNAVAILABLE"),
        FileFate::RangeRefused if start > 0 => {
            return StatusCode::RANGE_NOT_SATISFIABLE.into_response();
        }
        FileFate::LoginPage => return axum::response::Html(PAGE).into_response(),
        FileFate::PlainPage => {
            let page = futures_util::stream::iter([Ok::<_, std::io::Error>(PAGE)]);
            return Body::from_stream(page).into_response();
        }
        FileFate::Mixed => (Bytes::from(vec![7; file.len()]), None, None),
        FileFate::TooLong => (Bytes::from([&file[..], b"more"].concat()), None, None),
        FileFate::CutAfter(bytes) => (file.clone(), Some(bytes), None),
        FileFate::Slow(bytes) => (file.clone(), None, Some(bytes)),
        FileFate::Whole | FileFate::NoRanges | FileFate::RangeRefused => (file.clone(), None, None),
    };
    let rest = content.slice(start..);
    let length = rest.len();
    let piece = pause.unwrap_or(4_096);
    let pieces: Vec<Result<Bytes, std::io::Error>> = {
        let sent = rest.slice(..cut.unwrap_or(length).min(length));
        let mut pieces: Vec<_> = sent
            .chunks(piece)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        if sent.len() < length {
            pieces.push(Err(std::io::ErrorKind::ConnectionReset.into()));
        }
        pieces
    };
    let stream = futures_util::stream::unfold(pieces.into_iter(), move |mut pieces| async move {
        // Also without a pace: a piece that is sent together with the connection's end may be lost
        // with it.
        tokio::time::sleep(Duration::from_millis(if pause.is_some() { 10 } else { 1 })).await;
        pieces.next().map(|piece| (piece, pieces))
    });
    let status = if start > 0 {
        StatusCode::PARTIAL_CONTENT
    } else {
        StatusCode::OK
    };
    let mut response = (status, [(header::ETAG, etag)], Body::from_stream(stream)).into_response();
    let headers = response.headers_mut();
    // A server that sends too much does not announce it.
    if fate != FileFate::TooLong {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    if start > 0 {
        let range = format!("bytes {start}-{}/{}", content.len() - 1, content.len());
        headers.insert(header::CONTENT_RANGE, range.parse().unwrap());
    }
    response
}

async fn event(
    State(shared): State<Arc<Shared>>,
    Path((hub, job)): Path<(String, HubJobUuid)>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    assert_eq!(hub, HUB);
    let mut stored = shared.stored.lock().unwrap();
    if !authorized(&stored, &headers) {
        return problem(401, "TOKEN_INVALID");
    }
    let fleet = &mut stored.fleet;
    fleet.event_requests += 1;
    let fate = fleet
        .event_fates
        .get(fleet.event_requests - 1)
        .copied()
        .unwrap_or(204);
    if !matches!(fate, 204 | 502) {
        return problem(fate, "AS_CONFIGURED");
    }
    let uuid = body["eventUuid"].as_str().unwrap().to_owned();
    assert_eq!(headers["idempotency-key"], uuid.as_str());
    let kind = body["kind"].as_str().unwrap().to_owned();
    let event = JobEvent {
        job,
        uuid,
        kind,
        body,
    };
    let answer = if fleet.events.iter().any(|known| known.uuid == event.uuid) {
        StatusCode::NO_CONTENT.into_response()
    } else if fleet.end(job).is_some() {
        fleet.late_events.push(event);
        problem(409, "JOB_IS_OVER")
    } else {
        let is_end = matches!(event.kind.as_str(), "SUCCEEDED" | "FAILED");
        fleet.events.push(event);
        if is_end {
            stored.end_job(job);
        }
        StatusCode::NO_CONTENT.into_response()
    };
    drop(stored);
    shared.changed.notify_waiters();
    if fate == 502 {
        problem(502, "BAD_GATEWAY")
    } else {
        answer
    }
}

async fn installed(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let mut stored = shared.stored.lock().unwrap();
    if !authorized(&stored, &headers) {
        return problem(401, "TOKEN_INVALID");
    }
    stored.fleet.installed.push(body);
    drop(stored);
    shared.changed.notify_waiters();
    StatusCode::NO_CONTENT.into_response()
}

async fn certificate(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let mut stored = shared.stored.lock().unwrap();
    if !authorized(&stored, &headers) {
        return problem(401, "TOKEN_INVALID");
    }
    let fleet = &mut stored.fleet;
    let is_shown = fleet.shown_ports.lock().unwrap().contains(&peer.port());
    if fleet.certificates_required && fleet.certificates_since_claim > 0 && !is_shown {
        return problem(401, "CLIENT_CERTIFICATE_REQUIRED");
    }
    fleet.certificates_since_claim += 1;
    let csr = body["csr"].clone();
    stored.fleet.certificate_requests.push(body);
    let secs = stored.fleet.certificate_secs;
    let authority = stored.fleet.authority.clone();
    drop(stored);
    shared.changed.notify_waiters();
    let Some(secs) = secs else {
        return problem(404, "NOT_FOUND");
    };
    let csr = csr.as_str().unwrap();
    let mut request = rcgen::CertificateSigningRequestParams::from_pem(csr)
        .expect("a request that is signed with its key");
    request.params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let issued = request.signed_by(&authority).unwrap().pem();
    let now = Timestamp::from(chrono::Utc::now());
    let answer = json!({"certificate": issued, "chain": authority.pem(), "serialNumber": "01", "notBefore": now.to_string(),
        "notAfter": now.plus_secs(secs).to_string()});
    Json(json!({ "data": answer })).into_response()
}
