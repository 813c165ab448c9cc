//! *group commit*: uploads of one event each, 200 in flight, compared with the same service that
//! gives each upload its own transaction. Also shows what one connection commits in transactions of
//! one row, without HTTP and without checks.

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
    let events = recorded_events();
    let grouping = Service::start(backend).await;
    let single = Service::start_with(backend, &["--uploads-per-commit", "1"]).await;
    let fleet = Fleet::claim(&grouping, TENANTS, HUBS).await;
    let other_fleet = Fleet::claim(&single, TENANTS, HUBS).await;
    let rows: Vec<Row<'_>> = pairs(&fleet, &events)
        .map(|(hub, event)| Row {
            tenant_uuid: hub.tenant_uuid.0,
            hub_uuid: hub.hub_uuid.0,
            event,
        })
        .collect();
    let (requests, other_requests) = (uploads(&fleet, &events), uploads(&other_fleet, &events));

    let mut raw_id = 4_000_000_000_000_000;
    let mut ratios = Vec::new();
    for round in 1..=ROUNDS {
        let before = load(&single.url, &other_requests, IN_FLIGHT, ROUND_TIME).await;
        let grouped = load(&grouping.url, &requests, IN_FLIGHT, ROUND_TIME).await;
        let after = load(&single.url, &other_requests, IN_FLIGHT, ROUND_TIME).await;
        let bare = raw::write(&grouping, &rows, 1, &mut raw_id, RAW_TIME).await;
        let one_each = (before.uploads_per_sec + after.uploads_per_sec) / 2.0;
        let ratio = grouped.uploads_per_sec / one_each;
        ratios.push(ratio);
        println!(
            "group-commit {backend:?} {round}/{ROUNDS}: {:.0} uploads/s, p50 {:.1} ms, p99 {:.1} ms; a transaction each: {one_each:.0}/s, ratio {ratio:.2}; \
             bare transactions of one row: {bare:.0}/s, ratio {:.2}",
            grouped.uploads_per_sec,
            grouped.percentile_ms(50),
            grouped.percentile_ms(99),
            grouped.uploads_per_sec / bare,
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "group-commit {backend:?}: ratio {:.2} (median of {ROUNDS}; wanted: 5.00)",
        ratios[ROUNDS / 2]
    );
}

fn pairs<'a>(
    fleet: &'a Fleet,
    events: &'a [String],
) -> impl Iterator<Item = (&'a crate::fleet::Hub, &'a String)> {
    fleet.hubs.iter().zip(events.iter().cycle())
}

fn uploads(fleet: &Fleet, events: &[String]) -> Vec<UploadRequest> {
    pairs(fleet, events)
        .map(|(hub, event)| UploadRequest::new(&hub.access_token, &format!("[{event}]")))
        .collect()
}
