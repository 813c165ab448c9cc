//! PostgreSQL goes away under load and comes back: 503 meanwhile, nothing acknowledged is lost,
//! nobody restarts the service.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hub_protocol::ble::BleEventUpload;
use hub_tests::cluster::{Cluster, Stop};
use hub_tests::hub::events;
use hub_tests::{Call, Client, Options, SimulatedHub, Tenant, TestApp};
use serde_json::Value;

use super::{identity, stored_events};

const HUBS: usize = 4;
const EVENTS_PER_UPLOAD: usize = 20;
const BACK_WITHIN: Duration = Duration::from_secs(20);

/// What the hubs see while they upload.
#[derive(Default)]
struct Load {
    stop: AtomicBool,
    acknowledged: AtomicUsize,
    refused: AtomicUsize,
}

/// Uploads as an agent does: a batch is sent until it is acknowledged. Answers the batches that
/// were.
async fn upload_until_stopped(hub: SimulatedHub, load: Arc<Load>) -> Vec<BleEventUpload> {
    let mut acknowledged = Vec::new();
    while !load.stop.load(Ordering::Relaxed) {
        let batch = named_events();
        loop {
            let reply = hub.upload(&batch).await;
            match reply.status.as_u16() {
                201 => break,
                503 => {
                    reply.problem();
                    assert!(
                        !reply.header("retry-after").is_empty(),
                        "503 without Retry-After"
                    );
                    load.refused.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                status => panic!("an upload was answered {status}: {}", reply.body),
            }
        }
        load.acknowledged.fetch_add(1, Ordering::Relaxed);
        acknowledged.push(batch);
    }
    acknowledged
}

fn named_events() -> BleEventUpload {
    let mut batch = events(EVENTS_PER_UPLOAD);
    for event in &mut batch.events {
        event.payload.name = event.event_uuid.map(|uuid| uuid.to_string());
    }
    batch
}

/// Waits until `GET path` is answered with the status.
async fn until_answered(client: &Client, path: &str, status: u16) {
    let began = Instant::now();
    loop {
        let reply = client.get(path).call().await;
        if reply.status.as_u16() == status {
            return;
        }
        assert!(
            began.elapsed() < BACK_WITHIN,
            "{path} is still {}: {}",
            reply.status,
            reply.body
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn until_more(count: &AtomicUsize, more: usize) {
    let (before, began) = (count.load(Ordering::Relaxed), Instant::now());
    while count.load(Ordering::Relaxed) < before + more {
        assert!(
            began.elapsed() < BACK_WITHIN,
            "no more than {}",
            count.load(Ordering::Relaxed)
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_outages_lose_and_duplicate_nothing() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let cluster = Arc::new(cluster);
    let mut options = Options::default();
    options.settings.upload_limit_per_minute = Some(1_000_000);
    let app = TestApp::on_postgres(&cluster.url(), options, |_| ()).await;
    let tenant = Tenant::create(&app.client()).await;
    let load = Arc::new(Load::default());
    let mut hubs = Vec::new();
    for _ in 0..HUBS {
        let hub = SimulatedHub::claim(&tenant).await;
        hubs.push(tokio::spawn(upload_until_stopped(hub, load.clone())));
    }
    for how in [Stop::Immediate, Stop::Fast, Stop::Immediate] {
        until_more(&load.acknowledged, 20).await;
        let stopping = cluster.clone();
        tokio::task::spawn_blocking(move || stopping.stop(how))
            .await
            .expect("PostgreSQL stops");
        until_answered(&app.client(), "/readyz", 503).await;
        app.client().get("/healthz").call().await.expect(200);
        let refused = tenant.client.get("/tenant/hubs").call().await.expect(503);
        assert_eq!(refused.problem().code, "DATABASE_UNAVAILABLE");
        until_more(&load.refused, HUBS).await;
        let starting = cluster.clone();
        tokio::task::spawn_blocking(move || starting.go_on())
            .await
            .expect("PostgreSQL starts");
        until_answered(&app.client(), "/readyz", 200).await;
    }
    until_more(&load.acknowledged, 20).await;
    load.stop.store(true, Ordering::Relaxed);
    let mut acknowledged = BTreeSet::new();
    for hub in hubs {
        for batch in hub.await.expect("a hub goes on to the end") {
            let events = batch
                .events
                .iter()
                .map(|event| serde_json::to_value(event).unwrap_or(Value::Null));
            acknowledged.extend(events.map(|event| identity(&event)));
        }
    }
    let stored: Vec<_> = stored_events(&tenant.client)
        .await
        .iter()
        .map(identity)
        .collect();
    let distinct: BTreeSet<_> = stored.iter().cloned().collect();
    assert_eq!(distinct.len(), stored.len(), "something is stored twice");
    assert_eq!(
        distinct, acknowledged,
        "what was acknowledged is what is stored"
    );
    println!(
        "{} events; {} uploads were refused",
        stored.len(),
        load.refused.load(Ordering::Relaxed)
    );
}
