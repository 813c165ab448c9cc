//! *desired*: a fleet that waits for its desired state. Measures the memory of one waiting hub, the
//! CPU of all of them while nothing happens, and the time until one of them has a job: from the
//! first byte of the request that creates the job to the last byte of the hub's response.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hub_protocol::HubUuid;
use hub_tests::Backend;
use hub_tests::client::{Call, Client};
use serde_json::Value;

use crate::fleet::Fleet;
use crate::service::Service;
use crate::waiter::Waiter;

const HUBS: usize = 5000;
/// So that what is made once is not counted.
const FIRST_HUBS: usize = 100;
const QUIET_TIME: Duration = Duration::from_secs(20);
const JOBS: usize = 400;
const JOBS_PER_SEC: u32 = 20;
/// Hubs that connect at the same moment.
const CONNECTING: usize = 50;

/// When the request was sent that makes a job for this hub.
type SentAt = Arc<Mutex<HashMap<HubUuid, Instant>>>;

pub async fn run(backend: Backend) {
    let service = Service::start(backend).await;
    let fleet = Fleet::claim(&service, 1, HUBS).await;
    let tenant = &fleet.tenants[0];
    let app = tenant
        .post("/tenant/apps")
        .json(&serde_json::json!({"name": "bench"}))
        .call()
        .await
        .expect(201);
    let app_uuid = app.data::<Value>()["appUuid"]
        .as_str()
        .expect("an app")
        .to_owned();
    ask_all(&service, &fleet).await;
    let sent_at: SentAt = Arc::default();
    let arrivals: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let mut waiting = tokio::task::JoinSet::new();
    let mut before = 0;
    for (index, hubs) in fleet.hubs.chunks(CONNECTING).enumerate() {
        let connected: Vec<_> =
            futures_util::future::join_all(hubs.iter().map(|hub| Waiter::open(&service.url, hub)))
                .await;
        for waiter in connected {
            waiting.spawn(wait(waiter, sent_at.clone(), arrivals.clone()));
        }
        if (index + 1) * CONNECTING == FIRST_HUBS {
            tokio::time::sleep(Duration::from_secs(1)).await;
            before = service.resident_bytes();
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let each = service.resident_bytes().saturating_sub(before) / (HUBS - FIRST_HUBS) as u64;
    println!(
        "desired {backend:?}: {:.1} KiB for each of {HUBS} waiting hubs (wanted: 24)",
        each as f64 / 1024.0
    );
    let (cpu, began) = (service.cpu_time(), Instant::now());
    tokio::time::sleep(QUIET_TIME).await;
    let share = (service.cpu_time() - cpu).as_secs_f64() / began.elapsed().as_secs_f64();
    println!(
        "desired {backend:?}: {:.1} % of a core while {HUBS} hubs wait and nothing changes",
        share * 100.0
    );
    let mut pace = tokio::time::interval(Duration::from_secs(1) / JOBS_PER_SEC);
    let mut making = tokio::task::JoinSet::new();
    for hub in fleet.hubs.iter().step_by(HUBS / JOBS).take(JOBS) {
        pace.tick().await;
        making.spawn(make_job(
            tenant.clone(),
            hub.hub_uuid,
            app_uuid.clone(),
            sent_at.clone(),
        ));
    }
    making.join_all().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut arrivals = arrivals.lock().expect("arrivals").clone();
    arrivals.sort();
    assert_eq!(arrivals.len(), JOBS, "every job is given to its hub");
    let percentile = |percent: usize| {
        arrivals[(arrivals.len() * percent / 100).min(arrivals.len() - 1)].as_secs_f64()
    };
    println!(
        "desired {backend:?}: a job is with its waiting hub after p50 {:.1} ms, p99 {:.1} ms (wanted: 100), {JOBS_PER_SEC} a second",
        percentile(50) * 1000.0,
        percentile(99) * 1000.0,
    );
    waiting.shutdown().await;
}

/// Every hub sends a few requests without waiting, so that caches of the service and of the
/// database are filled and do not count as the cost of waiting.
async fn ask_all(service: &Service, fleet: &Fleet) {
    for _ in 0..3 {
        for hubs in fleet.hubs.chunks(CONNECTING) {
            futures_util::future::join_all(hubs.iter().map(|hub| Waiter::open(&service.url, hub)))
                .await;
        }
    }
}

async fn make_job(tenant: Client, hub_uuid: HubUuid, app_uuid: String, sent_at: SentAt) {
    sent_at
        .lock()
        .expect("times")
        .insert(hub_uuid, Instant::now());
    let path = format!("/tenant/hubs/{hub_uuid}/jobs/app-remove?appUuid={app_uuid}");
    tenant.post(&path).call().await.expect(201);
}

/// Waits for news for ever, and notes when a job comes.
async fn wait(mut waiter: Waiter, sent_at: SentAt, arrivals: Arc<Mutex<Vec<Duration>>>) {
    loop {
        let answer = waiter.desired_state(55).await;
        let now = Instant::now();
        assert!(matches!(answer.status, 200 | 304), "{}", answer.status);
        if answer.status == 200 && memchr::memmem::find(&answer.body, b"hubJobUuid").is_some() {
            let sent = sent_at.lock().expect("times")[&waiter.hub_uuid];
            arrivals.lock().expect("arrivals").push(now - sent);
        }
    }
}
