//! *retention beside ingest*: what a fleet uploads a second while old events are being deleted,
//! beside the same without. Also shows how fast they go, and how long a batch holds the writer.

use std::time::{Duration, Instant};

use hub_tests::client::Client;
use hub_tests::{Backend, Call};

use crate::fleet::{Fleet, recorded_events};
use crate::ingest::load;
use crate::raw::{self, Row};
use crate::service::Service;
use crate::wire::UploadRequest;

const TENANTS: usize = 100;
const HUBS: usize = 1000;
const EVENTS_PER_UPLOAD: usize = 50;
const IN_FLIGHT: usize = 128;
const ROUNDS: usize = 3;
const ROUND_TIME: Duration = Duration::from_secs(8);
const ROWS_PER_TRANSACTION: usize = 5000;
const OLD_EVENTS: usize = 1_000_000;
const OLD_EVENTS_IN_FULL: usize = 10_000_000;
const DAY_MICROS: i64 = 24 * 3600 * 1_000_000;
/// Nothing is old, and what is older than a month is.
const KEEPING: [&str; 2] = ["--ble-retention", "10000d"];
const DELETING: [&str; 2] = ["--ble-retention", "30d"];

pub async fn run(backend: Backend, is_full: bool) {
    let quotas = [
        "--stored-bytes-per-tenant",
        "1000000000000",
        "--bytes-per-day-per-tenant",
        "1000000000000",
    ];
    let flags = |retention: [&'static str; 2]| [&quotas[..], &retention[..]].concat();
    let mut service = Service::start_with(backend, &flags(KEEPING)).await;
    let fleet = Fleet::claim(&service, TENANTS, HUBS).await;
    let events = recorded_events();
    let batches: Vec<&[String]> = events.chunks_exact(EVENTS_PER_UPLOAD).collect();
    let batch_of = |index: usize| batches[index % batches.len()];
    let requests: Vec<UploadRequest> = fleet
        .hubs
        .iter()
        .enumerate()
        .map(|(index, hub)| {
            UploadRequest::new(
                &hub.access_token,
                &format!("[{}]", batch_of(index).join(",")),
            )
        })
        .collect();
    let mut rows = Vec::new();
    for (index, hub) in fleet.hubs.iter().enumerate() {
        let row = |event| Row {
            tenant_uuid: hub.tenant_uuid.0,
            hub_uuid: hub.hub_uuid.0,
            event,
        };
        rows.extend(batch_of(index).iter().map(|event| row(event.as_str())));
    }
    let stored = if is_full {
        OLD_EVENTS_IN_FULL
    } else {
        OLD_EVENTS
    };
    let mut first_id = hub_base::clock::Clock::System.now().as_micros() - 40 * DAY_MICROS;
    let mut ratios = Vec::new();
    for round in 1..=ROUNDS {
        // So many are not deleted in a round; ten million last for all of them.
        if round == 1 || !is_full {
            let filled_at = Instant::now();
            raw::fill(&service, &rows, ROWS_PER_TRANSACTION, first_id, stored).await;
            println!(
                "retention {backend:?}: {stored} old events are stored, after {:.0?}",
                filled_at.elapsed()
            );
            first_id += stored as i64;
        }
        service.restart(&flags(KEEPING)).await;
        let alone = load(&service.url, &requests, IN_FLIGHT, ROUND_TIME).await;
        service.restart(&flags(DELETING)).await;
        let client = Client::new(&service.url);
        until_deleting(&client).await;
        let before = deleted(&client).await;
        let beside = load(&service.url, &requests, IN_FLIGHT, ROUND_TIME).await;
        let gone = deleted(&client).await - before;
        let ratio = beside.uploads_per_sec / alone.uploads_per_sec;
        ratios.push(ratio);
        println!(
            "retention {backend:?} {round}/{ROUNDS}: {:.0} events/s alone (p99 {:.1} ms), {:.0} beside retention (p99 {:.1} ms), \
             which deletes {:.0} a second; ratio {ratio:.2}",
            alone.uploads_per_sec * EVENTS_PER_UPLOAD as f64,
            alone.percentile_ms(99),
            beside.uploads_per_sec * EVENTS_PER_UPLOAD as f64,
            beside.percentile_ms(99),
            gone / ROUND_TIME.as_secs_f64(),
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "retention {backend:?}: ratio {:.2} (median of {ROUNDS}; wanted: 0.90)",
        ratios[ROUNDS / 2]
    );

    let client = Client::new(&service.url);
    let before = deleted(&client).await;
    tokio::time::sleep(ROUND_TIME).await;
    let gone = deleted(&client).await - before;
    let (held, all) = batches_held(&client, "0.05").await;
    println!(
        "retention {backend:?}: {:.0} events a second while nobody uploads; {:.2} % of {all} batches held the writer for 50 ms at most",
        gone / ROUND_TIME.as_secs_f64(),
        held / all * 100.0,
    );
}

async fn metrics(client: &Client) -> String {
    client.get("/metrics").call().await.expect(200).body
}

fn number(text: &str, name: &str) -> f64 {
    let value = |line: &str| line.strip_prefix(name)?.rsplit(' ').next()?.parse().ok();
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .find_map(value)
        .unwrap_or(0.0)
}

async fn deleted(client: &Client) -> f64 {
    number(
        &metrics(client).await,
        "hub_cloud_retention_deleted_records_total{kind=\"ble_events\"}",
    )
}

/// The batches that held the writer for so long at most, and all of them.
async fn batches_held(client: &Client, at_most_secs: &str) -> (f64, f64) {
    let text = metrics(client).await;
    let name = "hub_cloud_retention_batch_duration_seconds";
    (
        number(&text, &format!("{name}_bucket{{le=\"{at_most_secs}\"}}")),
        number(&text, &format!("{name}_count")),
    )
}

/// Waits until retention has begun.
async fn until_deleting(client: &Client) {
    let began_at = Instant::now();
    while deleted(client).await == 0.0 {
        assert!(
            began_at.elapsed() < Duration::from_secs(60),
            "nothing is deleted"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
