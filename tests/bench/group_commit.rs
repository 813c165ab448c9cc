//! *group commit*: uploads of one event each, 200 in flight, beside the same service's statements with a transaction for each upload.

use std::time::Duration;

use hub_tests::Backend;

use crate::fleet::{Fleet, recorded_events};
use crate::ingest::load;
use crate::raw::{self, Row};
use crate::service::Service;
use crate::wire::UploadRequest;

const HUBS: usize = 200;
const TENANTS: usize = 20;
const IN_FLIGHT: usize = 200;
const ROUNDS: usize = 3;
const ROUND_TIME: Duration = Duration::from_secs(5);
const RAW_TIME: Duration = Duration::from_secs(3);

pub async fn run(backend: Backend) {
    let service = Service::start(backend).await;
    let fleet = Fleet::claim(&service, TENANTS, HUBS).await;
    let events = recorded_events();
    let pairs = || fleet.hubs.iter().zip(events.iter().cycle());
    let requests: Vec<UploadRequest> =
        pairs().map(|(hub, event)| UploadRequest::new(&hub.access_token, &format!("[{event}]"))).collect();
    let rows: Vec<Row<'_>> =
        pairs().map(|(hub, event)| Row { tenant_uuid: hub.tenant_uuid.0, hub_uuid: hub.hub_uuid.0, event }).collect();

    let mut raw_id = 4_000_000_000_000_000;
    let mut ratios = Vec::new();
    for round in 1..=ROUNDS {
        let before = raw::write(&service, &rows, 1, &mut raw_id, RAW_TIME).await;
        let load = load(&service.url, &requests, IN_FLIGHT, ROUND_TIME).await;
        let after = raw::write(&service, &rows, 1, &mut raw_id, RAW_TIME).await;
        let raw = (before + after) / 2.0;
        ratios.push(load.uploads_per_sec / raw);
        println!(
            "group-commit {backend:?} {round}/{ROUNDS}: {:.0} uploads/s, p50 {:.1} ms, p99 {:.1} ms; one transaction for each: {raw:.0}/s; ratio {:.2}",
            load.uploads_per_sec,
            load.percentile_ms(50),
            load.percentile_ms(99),
            load.uploads_per_sec / raw,
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!("group-commit {backend:?}: ratio {:.2} (median of {ROUNDS}; wanted: 5.00)", ratios[ROUNDS / 2]);
}
