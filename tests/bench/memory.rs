//! *memory*: what the service keeps resident at rest, at 50,000 events a second, under hostile
//! uploads and logins, and a minute after; and whether others notice the attacks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hub_tests::Backend;
use tokio::task::JoinSet;

use crate::fleet::{Fleet, recorded_events};
use crate::service::Service;
use crate::wire::{Connection, UploadRequest};

const TENANTS: usize = 100;
const HUBS: usize = 1000;
const EVENTS_PER_UPLOAD: usize = 50;
const UPLOADS_PER_SEC: u32 = 1000;
const CONNECTIONS: u32 = 100;
const LOAD_TIME: Duration = Duration::from_secs(15);
const BOMBS: usize = 256;
const LARGEST_BODY: usize = 32 << 20;
const ATTACK_TIME: Duration = Duration::from_secs(10);
const LOGINS: usize = 52;
const REST: Duration = Duration::from_secs(60);

pub async fn run(backend: Backend) {
    let service = Arc::new(Service::start(backend).await);
    let fleet = Fleet::claim(&service, TENANTS, HUBS).await;
    tokio::time::sleep(REST / 4).await;
    let rest = service.resident_bytes();

    let requests = requests(&fleet);
    let watch = Watch::start(&service);
    let events_per_sec = load(&service.url, &requests).await;
    let loaded = watch.stop().await;
    tokio::time::sleep(REST).await;
    let after_load = service.resident_bytes();

    // The attacker's hub is in one tenant, the neighbour's in another.
    let attacker = bomb_request(&fleet.hubs[0].access_token);
    let neighbour = requests[HUBS - 1].clone();
    let watch = Watch::start(&service);
    let (mut health, mut uploads, statuses) = attack(&service.url, attacker, neighbour).await;
    let attacked = watch.stop().await;
    tokio::time::sleep(REST).await;
    let after_attack = service.resident_bytes();

    let watch = Watch::start(&service);
    failed_logins(&service.url).await;
    let hashing = watch.stop().await;
    tokio::time::sleep(REST).await;
    let after_logins = service.resident_bytes();

    println!(
        "memory {backend:?}: at rest {:.1} MiB, with {HUBS} hubs claimed",
        mib(rest)
    );
    println!(
        "memory {backend:?}: at {events_per_sec:.0} events/s {:.1} MiB at most; a minute after {:.1} MiB",
        mib(loaded),
        mib(after_load)
    );
    println!(
        "memory {backend:?}: {BOMBS} uploads at once of a small body that unpacks to 32 MiB: {:.1} MiB at most, {:.1} more than before (wanted: 256); \
         statuses {statuses:?}; meanwhile /healthz p99 {:.1} ms, another tenant's uploads p99 {:.1} ms (wanted: 100); a minute after {:.1} MiB",
        mib(attacked),
        mib(attacked.saturating_sub(after_load)),
        p99_ms(&mut health),
        p99_ms(&mut uploads),
        mib(after_attack),
    );
    println!(
        "memory {backend:?}: {LOGINS} failed logins at once: {:.1} MiB at most; a minute after {:.1} MiB, {:.2} of rest (wanted: 1.10)",
        mib(hashing),
        mib(after_logins),
        after_logins as f64 / rest as f64
    );
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}

fn p99_ms(times: &mut [Duration]) -> f64 {
    times.sort();
    times
        .get(times.len() * 99 / 100)
        .map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0)
}

/// The most memory that is resident while something goes on.
struct Watch {
    most: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<()>,
}

impl Watch {
    fn start(service: &Arc<Service>) -> Self {
        let most = Arc::new(AtomicU64::new(0));
        let (service, seen) = (service.clone(), most.clone());
        let task = tokio::spawn(async move {
            loop {
                seen.fetch_max(service.resident_bytes(), Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        Self { most, task }
    }

    async fn stop(self) -> u64 {
        self.task.abort();
        self.most.load(Ordering::Relaxed)
    }
}

fn requests(fleet: &Fleet) -> Vec<UploadRequest> {
    let events = recorded_events();
    let batches: Vec<&[String]> = events.chunks_exact(EVENTS_PER_UPLOAD).collect();
    let batch_of = |index: usize| format!("[{}]", batches[index % batches.len()].join(","));
    fleet
        .hubs
        .iter()
        .enumerate()
        .map(|(at, hub)| UploadRequest::new(&hub.access_token, &batch_of(at)))
        .collect()
}

/// Uploads at a steady pace; returns the events a second that were reached.
async fn load(url: &str, requests: &[UploadRequest]) -> f64 {
    let started_at = Instant::now();
    let mut connections = JoinSet::new();
    for connection in 0..CONNECTIONS {
        let mut requests: Vec<UploadRequest> = requests
            .iter()
            .skip(connection as usize)
            .step_by(CONNECTIONS as usize)
            .cloned()
            .collect();
        let url = url.to_owned();
        connections.spawn(async move {
            let mut connection = Connection::open(&url).await.expect("a connection");
            let mut pace =
                tokio::time::interval(Duration::from_secs(1) * CONNECTIONS / UPLOADS_PER_SEC);
            let mut count = 0;
            for index in (0..requests.len()).cycle() {
                pace.tick().await;
                if started_at.elapsed() >= LOAD_TIME {
                    break;
                }
                let status = connection
                    .send(requests[index].fresh())
                    .await
                    .expect("an answer");
                assert_eq!(status, 201, "every upload is taken in");
                count += 1;
            }
            count
        });
    }
    let uploads: usize = connections.join_all().await.into_iter().sum();
    (uploads * EVENTS_PER_UPLOAD) as f64 / started_at.elapsed().as_secs_f64()
}

/// An upload of no events and very much white space.
fn bomb_request(access_token: &str) -> Vec<u8> {
    let mut body =
        format!("{{\"batchUuid\":\"{}\",\"events\":[", uuid::Uuid::now_v7()).into_bytes();
    body.resize(LARGEST_BODY - 2, b' ');
    body.extend(b"]}");
    let packed = zstd::encode_all(&body[..], 3).expect("packed");
    let head = format!(
        "POST /v1/ble/events HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {access_token}\r\n\
         content-type: application/json\r\ncontent-encoding: zstd\r\ncontent-length: {}\r\n\r\n",
        packed.len()
    );
    [head.into_bytes(), packed].concat()
}

type Statuses = std::collections::BTreeMap<u16, usize>;

/// Sends bombs over many connections at once, again and again, and measures what others notice.
async fn attack(
    url: &str,
    bomb: Vec<u8>,
    neighbour: UploadRequest,
) -> (Vec<Duration>, Vec<Duration>, Statuses) {
    let is_over = Arc::new(AtomicBool::new(false));
    let mut attackers = JoinSet::new();
    for _ in 0..BOMBS {
        let (url, bomb, is_over) = (url.to_owned(), bomb.clone(), is_over.clone());
        attackers.spawn(async move {
            let mut connection = Connection::open(&url).await.expect("a connection");
            let mut statuses = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                statuses.push(connection.send(&bomb).await.unwrap_or(0));
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            statuses
        });
    }
    let health = b"GET /healthz HTTP/1.1\r\nhost: bench\r\n\r\n".to_vec();
    let health = probe(url, is_over.clone(), move || health.clone());
    let mut neighbour = neighbour;
    let uploads = probe(url, is_over.clone(), move || neighbour.fresh().to_vec());
    let end = async {
        tokio::time::sleep(ATTACK_TIME).await;
        is_over.store(true, Ordering::Relaxed);
    };
    let (health, uploads, ()) = tokio::join!(health, uploads, end);
    let mut statuses = Statuses::new();
    for status in attackers.join_all().await.into_iter().flatten() {
        *statuses.entry(status).or_default() += 1;
    }
    (health, uploads, statuses)
}

/// Sends requests one after the other; returns how long each took.
async fn probe(
    url: &str,
    is_over: Arc<AtomicBool>,
    mut request: impl FnMut() -> Vec<u8>,
) -> Vec<Duration> {
    let mut connection = Connection::open(url).await.expect("a connection");
    let mut times = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let request = request();
        let sent_at = Instant::now();
        let status = connection.send(&request).await.expect("an answer");
        assert!(status < 300, "{status}");
        times.push(sent_at.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    times
}

async fn failed_logins(url: &str) {
    let mut logins = JoinSet::new();
    for number in 0..LOGINS {
        let url = url.to_owned();
        logins.spawn(async move {
            let body = format!("{{\"email\":\"nobody{number}@example.com\",\"password\":\"a wrong password\"}}");
            let request = format!(
                "POST /auth/login HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            Connection::open(&url).await.expect("a connection").send(request.as_bytes()).await.expect("an answer")
        });
    }
    logins.join_all().await;
}
