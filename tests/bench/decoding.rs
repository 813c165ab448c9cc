//! *decoding*: the uploads of *ingest* to tenants that know the devices, beside the same uploads to
//! tenants that know none.

use std::time::Duration;

use hub_tests::{Backend, Call};
use serde_json::json;

use crate::fleet::{Fleet, recorded_events};
use crate::ingest::load;
use crate::service::Service;
use crate::wire::UploadRequest;

const TENANTS: usize = 20;
const HUBS: usize = 200;
const EVENTS_PER_UPLOAD: usize = 50;
const IN_FLIGHT: usize = 128;
const ROUNDS: usize = 5;
const ROUND_TIME: Duration = Duration::from_secs(5);
/// Models whose devices are registered when they are heard.
const TEMPLATES: [&str; 6] = [
    "ruuvi/ruuvitag",
    "bthome/v2",
    "xiaomi/lywsdcgq",
    "govee/h5075",
    "inkbird/ibs-th",
    "switchbot/meter",
];
const WANTED: f64 = 0.85;

/// A service with a fleet, and its uploads.
struct Side {
    service: Service,
    requests: Vec<UploadRequest>,
}

impl Side {
    async fn start(backend: Backend, templates: &[&str]) -> Self {
        let service = Service::start(backend).await;
        let fleet = Fleet::claim(&service, TENANTS, HUBS).await;
        for tenant in &fleet.tenants {
            for template in templates {
                let body = json!({"template": template, "autoRegister": true});
                tenant
                    .post("/tenant/device-catalog")
                    .json(&body)
                    .call()
                    .await
                    .expect(200);
            }
        }
        let events = recorded_events();
        let batches: Vec<&[String]> = events.chunks_exact(EVENTS_PER_UPLOAD).collect();
        let request = |(index, hub): (usize, &crate::fleet::Hub)| {
            let batch = batches[index % batches.len()];
            UploadRequest::new(&hub.access_token, &format!("[{}]", batch.join(",")))
        };
        let requests = fleet.hubs.iter().enumerate().map(request).collect();
        Self { service, requests }
    }

    async fn events_per_sec(&self) -> f64 {
        let load = load(&self.service.url, &self.requests, IN_FLIGHT, ROUND_TIME).await;
        load.uploads_per_sec * EVENTS_PER_UPLOAD as f64
    }
}

pub async fn run(backend: Backend) {
    let plain = Side::start(backend, &[]).await;
    let known = Side::start(backend, &TEMPLATES).await;
    // Registers the devices.
    known.events_per_sec().await;
    let mut ratios = Vec::new();
    for round in 1..=ROUNDS {
        let before = plain.events_per_sec().await;
        let with = known.events_per_sec().await;
        let without = (before + plain.events_per_sec().await) / 2.0;
        ratios.push(with / without);
        println!(
            "decoding {backend:?} {round}/{ROUNDS}: {with:.0} events/s recognised and read, {without:.0} stored as they came; \
             ratio {:.2}",
            with / without
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "decoding {backend:?}: ratio {:.2} (median of {ROUNDS}; wanted: {WANTED})",
        ratios[ROUNDS / 2]
    );
}
