//! *deliver*: what leaves through pipelines to a receiver on the same machine: single events and
//! batches that wait, beside the same bodies sent by an HTTP client that does nothing else; the
//! time from commit to receipt; and the same beside a receiver that is dead.

use std::time::{Duration, Instant};

use hub_tests::Backend;
use hub_tests::client::{Call, Client};
use serde_json::{Value, json};

use crate::fleet::{Fleet, recorded_events};
use crate::receiver::Receiver;
use crate::service::Service;
use crate::wire::{Connection, UploadRequest};

pub const FLAGS: [&str; 1] = ["--allow-private-targets"];
const EVENTS_PER_UPLOAD: usize = 500;
const SINGLE: usize = 30_000;
const BATCHED: usize = 300_000;
const RAW_TIME: Duration = Duration::from_secs(3);
const RAW_IN_FLIGHT: usize = 32;
const WITHIN: Duration = Duration::from_secs(180);
/// Of the neighbours of a dead receiver.
const NEIGHBOURS: usize = 49;
const WAITING: usize = 100_000;
const UPLOADS_PER_SEC: u32 = 50;
const LOAD_TIME: Duration = Duration::from_secs(15);

pub async fn run(backend: Backend) {
    throughput(backend).await;
    latency(backend).await;
}

/// Stores events as fast as they are answered; returns nothing but when they are stored.
async fn fill(service: &Service, token: &str, events: usize) {
    let recorded = recorded_events();
    let batch = recorded[..EVENTS_PER_UPLOAD].join(",");
    let mut connection = Connection::open(&service.url).await.expect("a connection");
    let mut request = UploadRequest::new(token, &format!("[{batch}]"));
    for _ in 0..events.div_ceil(EVENTS_PER_UPLOAD) {
        assert_eq!(
            connection.send(request.fresh()).await.expect("an answer"),
            201
        );
    }
}

pub async fn pipeline(tenant: &Client, url: &str, source: Value, delivery: Value) -> String {
    let body = json!({"name": "bench", "source": source, "steps": [], "delivery": delivery,
        "destination": {"kind": "HTTP", "url": url}});
    let created = tenant
        .post("/tenant/data-pipelines")
        .json(&body)
        .call()
        .await
        .expect(201)
        .json();
    created["data"]["pipelineUuid"]
        .as_str()
        .expect("an id")
        .to_owned()
}

async fn throughput(backend: Backend) {
    let service = Service::start_with(backend, &FLAGS).await;
    let fleet = Fleet::claim(&service, 1, 1).await;
    let (tenant, token) = (&fleet.tenants[0], &fleet.hubs[0].access_token);
    let from_start = json!({"startAt": "2020-01-01T00:00:00Z"});
    fill(&service, token, SINGLE).await;
    for (name, events, delivery, wanted) in [
        ("single", SINGLE, json!({"concurrency": 32}), 3000.0),
        ("single, ordered", SINGLE, json!({}), 0.0),
        (
            "batched",
            BATCHED,
            json!({"batchEvents": 1000, "batchMillis": 100}),
            30_000.0,
        ),
    ] {
        if name == "batched" {
            fill(&service, token, BATCHED - SINGLE).await;
        }
        let receiver = Receiver::start().await;
        let bytes_before = service.stored_bytes().await;
        let cpu_before = service.cpu_time();
        let started_at = Instant::now();
        let uuid = pipeline(tenant, &receiver.url, from_start.clone(), delivery).await;
        receiver.until(events, WITHIN).await;
        let took = started_at.elapsed();
        let cpu = service.cpu_time() - cpu_before;
        let requests = receiver.requests();
        let path = format!("/tenant/data-pipelines/{uuid}");
        tenant.delete(&path).call().await.expect(204);
        let bytes = service.stored_bytes().await.saturating_sub(bytes_before);
        let rate = events as f64 / took.as_secs_f64();
        let raw = raw_posts(&receiver.url, if requests < events { 1000 } else { 1 }).await;
        let per_request = |value: f64| value / requests as f64;
        println!(
            "deliver {backend:?}, {name}: {rate:.0} events/s in {requests} messages (wanted: {wanted:.0}); CPU {:.0} us and {:.0} bytes \
             of the database a message; an HTTP client alone sends {raw:.0} events/s; ratio {:.2}",
            per_request(cpu.as_secs_f64() * 1e6),
            per_request(bytes as f64),
            rate / raw,
        );
    }
}

/// Events a second that a client sends which does nothing else.
async fn raw_posts(url: &str, events_per_message: usize) -> f64 {
    let event = json!({"bleEventId": 1, "receivedAt": "2026-11-21T08:00:00.123456Z", "address": "C0:00:00:00:00:01",
        "hubUuid": uuid::Uuid::nil(), "rssi": -60, "manufacturerData": {"0499": "BRJ4WEcDAf/4AAgEGKxWAM3K7m0bFg=="},
        "measurements": [], "processingStatus": "RECEIVED", "deliveryStatus": "PENDING", "addressType": "random"});
    let body = match events_per_message {
        1 => event.to_string(),
        count => Value::Array(vec![event; count]).to_string(),
    };
    let client = reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("a client");
    let started_at = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..RAW_IN_FLIGHT {
        let (client, url, body) = (client.clone(), url.to_owned(), body.clone());
        tasks.spawn(async move {
            let mut sent = 0;
            while started_at.elapsed() < RAW_TIME {
                let request = client
                    .post(&url)
                    .header("content-type", "application/json")
                    .body(body.clone());
                assert!(
                    request
                        .send()
                        .await
                        .expect("an answer")
                        .status()
                        .is_success()
                );
                sent += events_per_message;
            }
            sent
        });
    }
    let sent: usize = tasks.join_all().await.into_iter().sum();
    sent as f64 / started_at.elapsed().as_secs_f64()
}

/// From the answer of an upload to the receipt of its first event, in milliseconds.
struct Times(Vec<f64>);

impl Times {
    fn percentile(&self, percent: usize) -> f64 {
        self.0[(self.0.len() * percent / 100).min(self.0.len() - 1)]
    }
}

async fn latency(backend: Backend) {
    let service = Service::start_with(backend, &FLAGS).await;
    let fleet = Fleet::claim(&service, 10, 50).await;
    let mut receivers = Vec::new();
    for (number, hub) in fleet.hubs.iter().enumerate().take(NEIGHBOURS) {
        let receiver = Receiver::start().await;
        let tenant = tenant_of(&fleet, number);
        pipeline(
            tenant,
            &receiver.url,
            json!({"hubUuids": [hub.hub_uuid]}),
            json!({}),
        )
        .await;
        receivers.push(receiver);
    }
    let mut numbers = 0..;
    let alone = steady(&service, &fleet, &receivers, &mut numbers).await;
    println!(
        "deliver {backend:?}, {NEIGHBOURS} receivers: commit to receipt p50 {:.0} ms, p99 {:.0} ms (wanted: 200)",
        alone.percentile(50),
        alone.percentile(99)
    );
    // Nobody listens there.
    let last = fleet.hubs.len() - 1;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|free| free.local_addr())
        .expect("a port");
    pipeline(
        tenant_of(&fleet, last),
        &format!("http://{nobody}/"),
        json!({"hubUuids": [fleet.hubs[last].hub_uuid]}),
        json!({}),
    )
    .await;
    fill(&service, &fleet.hubs[last].access_token, WAITING).await;
    let beside = steady(&service, &fleet, &receivers, &mut numbers).await;
    println!(
        "deliver {backend:?}, beside a dead receiver with {WAITING} waiting: p50 {:.0} ms, p99 {:.0} ms; ratio of p99 {:.2} (wanted: 1.1)",
        beside.percentile(50),
        beside.percentile(99),
        beside.percentile(99) / alone.percentile(99)
    );
}

/// Hubs are spread over the tenants in runs.
fn tenant_of(fleet: &Fleet, hub: usize) -> &Client {
    &fleet.tenants[hub / fleet.hubs.len().div_ceil(fleet.tenants.len())]
}

async fn steady(
    service: &Service,
    fleet: &Fleet,
    receivers: &[Receiver],
    numbers: &mut impl Iterator<Item = usize>,
) -> Times {
    let mut pace = tokio::time::interval(Duration::from_secs(1) / UPLOADS_PER_SEC);
    let mut connection = Connection::open(&service.url).await.expect("a connection");
    let started_at = Instant::now();
    let mut answered = Vec::new();
    while started_at.elapsed() < LOAD_TIME {
        pace.tick().await;
        let number = numbers.next().expect("a number");
        let hub = &fleet.hubs[number % NEIGHBOURS];
        let event = |name: String| {
            format!(
                r#"{{"observedAt":"2026-11-21T08:00:00Z","address":"AA:BB:CC:DD:EE:FF","rssi":-50,"name":"{name}"}}"#
            )
        };
        let events: Vec<String> = (0..10)
            .map(|place| {
                event(if place == 0 {
                    format!("mark-{number}")
                } else {
                    "other".to_owned()
                })
            })
            .collect();
        let mut request = UploadRequest::new(&hub.access_token, &format!("[{}]", events.join(",")));
        assert_eq!(
            connection.send(request.fresh()).await.expect("an answer"),
            201
        );
        answered.push((number, Instant::now()));
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let marks: std::collections::HashMap<usize, Instant> =
        receivers.iter().flat_map(Receiver::take_marks).collect();
    let time = |(number, at): (usize, Instant)| {
        let came = marks
            .get(&number)
            .unwrap_or_else(|| panic!("mark {number} did not come"));
        came.saturating_duration_since(at).as_secs_f64() * 1000.0
    };
    let mut times: Vec<f64> = answered.into_iter().map(time).collect();
    times.sort_by(f64::total_cmp);
    Times(times)
}
