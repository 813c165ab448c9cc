//! *scan-config*: a fleet waits while its tenant's catalog changes. Measures the time until all
//! hubs have the new scan configuration, from the first byte of the request that changes it, and
//! the uploads of other tenants meanwhile beside those before and after.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hub_tests::client::{Call, Client};
use hub_tests::{Backend, Reply};
use serde_json::{Value, json};

use crate::fleet::{Fleet, recorded_events};
use crate::ingest::load;
use crate::service::Service;
use crate::waiter::Waiter;
use crate::wire::UploadRequest;

const HUBS: usize = 5000;
const MODELS: usize = 50;
const DEVICES: usize = 100;
/// Hubs that connect at the same moment.
const CONNECTING: usize = 50;
const UPLOADING_TENANTS: usize = 20;
const UPLOADING_HUBS: usize = 200;
const EVENTS_PER_UPLOAD: usize = 50;
const IN_FLIGHT: usize = 128;
const ROUNDS: usize = 3;
const ROUND_TIME: Duration = Duration::from_secs(12);
/// The change is made when the uploads are under way.
const BEFORE_THE_CHANGE: Duration = Duration::from_secs(1);
const WANTED_SECS: f64 = 10.0;
const WANTED_RATIO: f64 = 0.9;

/// What the hubs have. The latest revision that any has seen, and how many have it.
#[derive(Default)]
struct Reached {
    revision: AtomicI64,
    hubs: AtomicUsize,
}

pub async fn run(backend: Backend) {
    let service = Service::start(backend).await;
    let uploading = Fleet::claim(&service, UPLOADING_TENANTS, UPLOADING_HUBS).await;
    let fleet = Fleet::claim(&service, 1, HUBS).await;
    let tenant = &fleet.tenants[0];
    let mut templates = fill(tenant).await.into_iter();
    let reached: Arc<Reached> = Arc::default();
    let mut waiting = tokio::task::JoinSet::new();
    for hubs in fleet.hubs.chunks(CONNECTING) {
        let connected =
            futures_util::future::join_all(hubs.iter().map(|hub| Waiter::open(&service.url, hub)))
                .await;
        for waiter in connected {
            waiting.spawn(follow(waiter, reached.clone()));
        }
    }
    until_all_have_it(&reached).await;
    let uploads = Uploads::new(&service, &uploading);
    let (mut ratios, mut slowest) = (Vec::new(), Duration::ZERO);
    for round in 1..=ROUNDS {
        let before = uploads.events_per_sec().await;
        let change = async {
            tokio::time::sleep(BEFORE_THE_CHANGE).await;
            let before = reached.revision.load(Ordering::SeqCst);
            let sent_at = Instant::now();
            make_model(tenant, &templates.next().expect("a template")).await;
            while reached.revision.load(Ordering::SeqCst) == before {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            until_all_have_it(&reached).await;
            sent_at.elapsed()
        };
        let (with, took) = tokio::join!(uploads.events_per_sec(), change);
        let without = (before + uploads.events_per_sec().await) / 2.0;
        slowest = slowest.max(took);
        ratios.push(with / without);
        println!(
            "scan-config {backend:?} {round}/{ROUNDS}: {HUBS} waiting hubs have a changed catalog after {:.1} s; \
             {with:.0} events/s in these {} s, {without:.0} before and after; ratio {:.2}",
            took.as_secs_f64(),
            ROUND_TIME.as_secs(),
            with / without
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "scan-config {backend:?}: {:.1} s at most (wanted: {WANTED_SECS}), ratio {:.2} (median of {ROUNDS}; wanted: {WANTED_RATIO})",
        slowest.as_secs_f64(),
        ratios[ROUNDS / 2]
    );
    waiting.shutdown().await;
}

/// A catalog with devices, and a rule for which hubs need them. Returns templates that it leaves.
async fn fill(tenant: &Client) -> Vec<String> {
    let library = hub_adverts::library::library();
    let mut keys = library.iter().map(|model| model.key.clone());
    let mut model = Value::Null;
    for key in keys.by_ref().take(MODELS) {
        model = make_model(tenant, &key).await.json()["data"]["deviceUuid"].clone();
    }
    for number in 0..DEVICES {
        let address = format!("C4:00:00:00:{:02X}:{:02X}", number >> 8, number & 0xff);
        let device =
            json!({"deviceUuid": model, "name": format!("Device {number}"), "address": address});
        tenant
            .post("/tenant/devices")
            .json(&device)
            .call()
            .await
            .expect(200);
    }
    let rule = json!({"layer": "HUB", "match": {"known": true}, "action": "ON_CHANGE", "quantities": {"temperature": 0.1}});
    let route = json!({"rules": [rule], "otherwise": "DROP"});
    tenant
        .put("/tenant/ble/route")
        .json(&route)
        .call()
        .await
        .expect(200);
    keys.collect()
}

async fn make_model(tenant: &Client, template: &str) -> Reply {
    tenant
        .post("/tenant/device-catalog")
        .json(&json!({"template": template}))
        .call()
        .await
        .expect(200)
}

/// Waits for changes and fetches the configuration as an agent does, for ever.
async fn follow(mut waiter: Waiter, reached: Arc<Reached>) {
    loop {
        let (status, revision) = waiter.scan_config().await;
        assert!(matches!(status, 200 | 304), "{status}");
        if status == 200 {
            if reached.revision.fetch_max(revision, Ordering::SeqCst) < revision {
                reached.hubs.store(0, Ordering::SeqCst);
            }
            reached.hubs.fetch_add(1, Ordering::SeqCst);
        }
        while waiter.desired_state(55).await.status == 304 {}
    }
}

async fn until_all_have_it(reached: &Reached) {
    while reached.hubs.load(Ordering::SeqCst) < HUBS {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Uploads of tenants that nothing changes for.
struct Uploads {
    url: String,
    requests: Vec<UploadRequest>,
}

impl Uploads {
    fn new(service: &Service, fleet: &Fleet) -> Self {
        let events = recorded_events();
        let batches: Vec<&[String]> = events.chunks_exact(EVENTS_PER_UPLOAD).collect();
        let request = |(index, hub): (usize, &crate::fleet::Hub)| {
            let batch = batches[index % batches.len()];
            UploadRequest::new(&hub.access_token, &format!("[{}]", batch.join(",")))
        };
        Self {
            url: service.url.clone(),
            requests: fleet.hubs.iter().enumerate().map(request).collect(),
        }
    }

    async fn events_per_sec(&self) -> f64 {
        let load = load(&self.url, &self.requests, IN_FLIGHT, ROUND_TIME).await;
        load.uploads_per_sec * EVENTS_PER_UPLOAD as f64
    }
}
