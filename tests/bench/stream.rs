//! *stream*: the time from the first byte of an upload to the arrival of its event at a subscriber,
//! while the fleet uploads at a steady rate; and the memory of an idle subscriber.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use hub_tests::Backend;
use hub_tests::client::Client;

use crate::fleet::{Fleet, recorded_events};
use crate::service::Service;
use crate::wire::{Connection, UploadRequest};

const TENANTS: usize = 10;
const HUBS: usize = 100;
const SUBSCRIBERS_PER_TENANT: usize = 10;
/// Of 50 events each: 10,000 events a second.
const UPLOADS_PER_SEC: u32 = 200;
const EVENTS_PER_UPLOAD: usize = 50;
const LOAD_TIME: Duration = Duration::from_secs(15);
const IDLE_SUBSCRIBERS: usize = 5000;

pub async fn run(backend: Backend) {
    latency(backend).await;
    memory(backend).await;
}

/// When the upload with this number was sent. Its number travels as the name of its first event.
type SentAt = Arc<Mutex<HashMap<String, Instant>>>;

async fn latency(backend: Backend) {
    let service = Service::start(backend).await;
    let fleet = Fleet::claim(&service, TENANTS, HUBS).await;
    let sent_at: SentAt = Arc::default();
    let arrivals: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let mut subscribers = Vec::new();
    for tenant in &fleet.tenants {
        for _ in 0..SUBSCRIBERS_PER_TENANT {
            let bytes = subscribe(tenant).await;
            subscribers.push(tokio::spawn(watch(
                bytes,
                sent_at.clone(),
                arrivals.clone(),
            )));
        }
    }
    let events = recorded_events();
    let filler = events[..EVENTS_PER_UPLOAD - 1].join(",");
    let mut pace = tokio::time::interval(Duration::from_secs(1) / UPLOADS_PER_SEC);
    let mut uploads = tokio::task::JoinSet::new();
    let idle: Arc<Mutex<Vec<Connection>>> = Arc::default();
    let started_at = Instant::now();
    let mut number = 0_usize;
    while started_at.elapsed() < LOAD_TIME {
        pace.tick().await;
        let hub = &fleet.hubs[number % fleet.hubs.len()];
        let name = format!("mark-{number}");
        let mark = format!(
            r#"{{"observedAt":"2026-11-21T08:00:00Z","address":"AA:BB:CC:DD:EE:FF","rssi":-50,"name":"{name}"}}"#
        );
        let mut request = UploadRequest::new(&hub.access_token, &format!("[{mark},{filler}]"));
        let (idle, url, sent_at) = (idle.clone(), service.url.clone(), sent_at.clone());
        uploads.spawn(async move {
            let kept = idle.lock().expect("connections").pop();
            let mut connection = match kept {
                Some(connection) => connection,
                None => Connection::open(&url).await.expect("a connection"),
            };
            sent_at.lock().expect("times").insert(name, Instant::now());
            assert_eq!(
                connection.send(request.fresh()).await.expect("an answer"),
                201
            );
            idle.lock().expect("connections").push(connection);
        });
        number += 1;
    }
    uploads.join_all().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    subscribers.iter().for_each(tokio::task::JoinHandle::abort);
    let mut arrivals = arrivals.lock().expect("arrivals").clone();
    arrivals.sort();
    let expected = number * SUBSCRIBERS_PER_TENANT;
    assert_eq!(
        arrivals.len(),
        expected,
        "every subscriber of a tenant gets every event once"
    );
    let percentile =
        |percent: usize| arrivals[(arrivals.len() * percent / 100).min(arrivals.len() - 1)];
    println!(
        "stream {backend:?}: upload to subscriber p50 {:.1} ms, p99 {:.1} ms (wanted: 50), at {} events/s to {} subscribers",
        percentile(50).as_secs_f64() * 1000.0,
        percentile(99).as_secs_f64() * 1000.0,
        UPLOADS_PER_SEC as usize * EVENTS_PER_UPLOAD,
        TENANTS * SUBSCRIBERS_PER_TENANT,
    );
}

async fn subscribe(tenant: &Client) -> reqwest::Response {
    let response = tenant
        .get("/tenant/stream/ble/events")
        .send()
        .await
        .expect("an answer");
    assert_eq!(response.status(), 200);
    response
}

async fn watch(response: reqwest::Response, sent_at: SentAt, arrivals: Arc<Mutex<Vec<Duration>>>) {
    const MARK: &str = "\"name\":\"mark-";
    let mut bytes = response.bytes_stream();
    let mut buffer = String::new();
    while let Some(Ok(chunk)) = bytes.next().await {
        let now = Instant::now();
        buffer.push_str(&String::from_utf8_lossy(&chunk));
        let Some(end) = buffer.rfind("\n\n") else {
            continue;
        };
        for (at, _) in buffer[..end].match_indices(MARK) {
            let name = &buffer[at + MARK.len() - "mark-".len()..];
            let name = name.split('"').next().expect("the rest of the name");
            let sent = sent_at.lock().expect("times")[name];
            arrivals.lock().expect("arrivals").push(now - sent);
        }
        buffer.drain(..end + 2);
    }
}

async fn memory(backend: Backend) {
    let service = Service::start_with(backend, &["--streams-per-tenant", "20000"]).await;
    let fleet = Fleet::claim(&service, 1, 1).await;
    let tenant = &fleet.tenants[0];
    // A first few, so that what is made once is not counted.
    let mut open = Vec::new();
    for _ in 0..100 {
        open.push(idle_subscriber(tenant).await);
    }
    let before = service.resident_bytes();
    for _ in 0..IDLE_SUBSCRIBERS {
        open.push(idle_subscriber(tenant).await);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let each = service.resident_bytes().saturating_sub(before) / IDLE_SUBSCRIBERS as u64;
    println!(
        "stream {backend:?}: {:.1} KiB for each of {IDLE_SUBSCRIBERS} idle subscribers (wanted: 24)",
        each as f64 / 1024.0
    );
    drop(open);
}

/// A connection of its own with an open stream, as a browser or a back-end would hold it.
async fn idle_subscriber(tenant: &Client) -> tokio::net::TcpStream {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(tenant.url.trim_start_matches("http://"))
        .await
        .expect("a connection");
    let header = |name: &str| {
        tenant.headers[name]
            .to_str()
            .expect("a header in ASCII")
            .to_owned()
    };
    let request = format!(
        "GET /tenant/stream/ble/events HTTP/1.1\r\nhost: bench\r\nauthorization: {}\r\nx-tenant-uuid: {}\r\n\r\n",
        header("authorization"),
        header("x-tenant-uuid")
    );
    stream
        .write_all(request.as_bytes())
        .await
        .expect("a request sent");
    let mut answer = [0; 512];
    let length = stream.read(&mut answer).await.expect("an answer");
    assert!(
        answer[..length].starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&answer[..length])
    );
    stream
}
