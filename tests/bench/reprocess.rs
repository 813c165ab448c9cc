//! *reprocess*: how fast stored events are read again, as they change and as they do not; and what
//! a fleet uploads a second meanwhile, beside the same without.

use std::time::{Duration, Instant};

use hub_protocol::Timestamp;
use hub_tests::client::Client;
use hub_tests::{Backend, Call};
use serde_json::{Value, json};

use crate::fleet::{Fleet, recorded_events};
use crate::ingest::load;
use crate::raw::{self, Row};
use crate::service::Service;
use crate::wire::UploadRequest;

const HUBS: usize = 200;
const EVENTS_PER_UPLOAD: usize = 50;
const IN_FLIGHT: usize = 128;
const ROUNDS: usize = 3;
const ROUND_TIME: Duration = Duration::from_secs(8);
const ROWS_PER_TRANSACTION: usize = 5000;
const STORED: usize = 500_000;
const WANTED_PER_SEC: f64 = 50_000.0;
const WANTED_RATIO: f64 = 0.9;
const PATH: &str = "/tenant/ble/reprocess";
const TEMPLATES: [&str; 3] = ["ruuvi/ruuvitag", "bthome/v2", "govee/h5075"];

/// Models of the tenant, which come and go, so that stored events change.
#[derive(Default)]
struct Models(Vec<String>);

impl Models {
    async fn delete(&mut self, tenant: &Client) {
        for uuid in std::mem::take(&mut self.0) {
            tenant
                .delete(&format!("/tenant/device-catalog/{uuid}"))
                .call()
                .await
                .expect(200);
        }
    }

    async fn make(&mut self, tenant: &Client) {
        for template in TEMPLATES {
            let body = json!({"template": template});
            let made: Value = tenant
                .post("/tenant/device-catalog")
                .json(&body)
                .call()
                .await
                .expect(200)
                .data();
            self.0
                .push(made["deviceUuid"].as_str().expect("a uuid").to_owned());
        }
    }
}

async fn begin(tenant: &Client, first_id: i64) -> String {
    let (from, to) = (
        Timestamp::from_micros(first_id),
        Timestamp::from_micros(first_id + STORED as i64 * 2),
    );
    let body = json!({"from": from, "to": to, "dryRun": false});
    let task: Value = tenant
        .post(PATH)
        .json(&body)
        .call()
        .await
        .expect(202)
        .data();
    task["taskId"].as_str().expect("a task").to_owned()
}

async fn task(tenant: &Client, id: &str) -> Value {
    tenant
        .get(&format!("{PATH}/{id}"))
        .call()
        .await
        .expect(200)
        .data()
}

/// Waits until all events are read. Returns how many a second were, and how many changed.
async fn events_per_sec(tenant: &Client, id: &str) -> (f64, i64) {
    let mut began_at = Instant::now();
    loop {
        let task = task(tenant, id).await;
        if task["startedAt"].is_null() {
            began_at = Instant::now();
        }
        if task["readTo"] == task["to"] {
            let events = task["events"].as_i64().unwrap_or(0) as f64;
            return (
                events / began_at.elapsed().as_secs_f64(),
                task["changed"].as_i64().unwrap_or(0),
            );
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn until_finished(tenant: &Client, id: &str) {
    while task(tenant, id).await["finishedAt"].is_null() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub async fn run(backend: Backend) {
    let quotas = [
        "--stored-bytes-per-tenant",
        "1000000000000",
        "--bytes-per-day-per-tenant",
        "1000000000000",
    ];
    let service = Service::start_with(backend, &quotas).await;
    let fleet = Fleet::claim(&service, 1, HUBS).await;
    let tenant = &fleet.tenants[0];
    let events = recorded_events();
    let batches: Vec<&[String]> = events.chunks_exact(EVENTS_PER_UPLOAD).collect();
    let batch_of = |index: usize| batches[index % batches.len()];
    let mut rows = Vec::new();
    let mut requests = Vec::new();
    for (index, hub) in fleet.hubs.iter().enumerate() {
        let row = |event| Row {
            tenant_uuid: hub.tenant_uuid.0,
            hub_uuid: hub.hub_uuid.0,
            event,
        };
        rows.extend(batch_of(index).iter().map(|event| row(event.as_str())));
        requests.push(UploadRequest::new(
            &hub.access_token,
            &format!("[{}]", batch_of(index).join(",")),
        ));
    }
    let first_id = hub_base::clock::Clock::System
        .now()
        .plus_secs(-86_400)
        .as_micros();
    raw::fill(&service, &rows, ROWS_PER_TRANSACTION, first_id, STORED).await;
    let mut models = Models::default();
    models.make(tenant).await;
    for what in ["changing", "unchanged"] {
        let id = begin(tenant, first_id).await;
        let (per_sec, changed) = events_per_sec(tenant, &id).await;
        println!(
            "reprocess {backend:?}: {per_sec:.0} {what} events/s, of which {changed} changed, while nobody uploads \
             (wanted: {WANTED_PER_SEC:.0})"
        );
        until_finished(tenant, &id).await;
    }
    let mut ratios = Vec::new();
    for round in 1..=ROUNDS {
        let alone = load(&service.url, &requests, IN_FLIGHT, ROUND_TIME).await;
        match models.0.is_empty() {
            true => models.make(tenant).await,
            false => models.delete(tenant).await,
        }
        let id = begin(tenant, first_id).await;
        let beside = load(&service.url, &requests, IN_FLIGHT, ROUND_TIME).await;
        let read = task(tenant, &id).await;
        until_finished(tenant, &id).await;
        let ratio = beside.uploads_per_sec / alone.uploads_per_sec;
        ratios.push(ratio);
        println!(
            "reprocess {backend:?} {round}/{ROUNDS}: {:.0} events/s uploaded alone (p99 {:.1} ms), {:.0} beside reprocessing \
             (p99 {:.1} ms), which read {} and changed {}; ratio {ratio:.2}",
            alone.uploads_per_sec * EVENTS_PER_UPLOAD as f64,
            alone.percentile_ms(99),
            beside.uploads_per_sec * EVENTS_PER_UPLOAD as f64,
            beside.percentile_ms(99),
            read["events"],
            read["changed"],
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "reprocess {backend:?}: ratio {:.2} (median of {ROUNDS}; wanted: {WANTED_RATIO})",
        ratios[ROUNDS / 2]
    );
}
