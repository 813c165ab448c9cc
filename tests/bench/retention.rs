//! *retention* and *closing*: what a fleet uploads a second while old events are deleted, or moved
//! to files, beside the same without. Also shows how fast they go, and how long a batch holds the
//! writer.

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

/// Work on old events: the settings without it and with it, and its metrics.
pub struct Work {
    name: &'static str,
    off: [&'static str; 4],
    on: [&'static str; 4],
    kind: &'static str,
    done: &'static str,
    held: &'static str,
}

/// What is older than a month is deleted.
pub const RETENTION: Work = Work {
    name: "retention",
    off: ["--ble-retention", "10000d", "--history-after", "off"],
    on: ["--ble-retention", "30d", "--history-after", "off"],
    kind: "retention.ble_events",
    done: "hub_cloud_retention_deleted_records_total{kind=\"ble_events\"}",
    held: "hub_cloud_retention_batch_duration_seconds",
};

/// What is older than a month moves to files.
pub const CLOSING: Work = Work {
    name: "closing",
    off: ["--ble-retention", "10000d", "--history-after", "off"],
    on: ["--ble-retention", "10000d", "--history-after", "30d"],
    kind: "history",
    done: "hub_cloud_history_closed_events_total",
    held: "hub_cloud_history_batch_duration_seconds",
};

pub async fn run(backend: Backend, is_full: bool, work: Work) {
    let name = work.name;
    let quotas = [
        "--stored-bytes-per-tenant",
        "1000000000000",
        "--bytes-per-day-per-tenant",
        "1000000000000",
    ];
    let flags = |of_work: [&'static str; 4]| [&quotas[..], &of_work[..]].concat();
    let mut service = Service::start_with(backend, &flags(work.off)).await;
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
                "{name} {backend:?}: {stored} old events are stored, after {:.0?}",
                filled_at.elapsed()
            );
            first_id += stored as i64;
        }
        service.restart(&flags(work.off)).await;
        let alone = load(&service.url, &requests, IN_FLIGHT, ROUND_TIME).await;
        service.restart(&flags(work.on)).await;
        raw::make_due(&service, work.kind).await;
        let client = Client::new(&service.url);
        until_begun(&client, &work).await;
        let before = done(&client, &work).await;
        let beside = load(&service.url, &requests, IN_FLIGHT, ROUND_TIME).await;
        let gone = done(&client, &work).await - before;
        let ratio = beside.uploads_per_sec / alone.uploads_per_sec;
        ratios.push(ratio);
        println!(
            "{name} {backend:?} {round}/{ROUNDS}: {:.0} events/s alone (p99 {:.1} ms), {:.0} beside it (p99 {:.1} ms), \
             which does {:.0} a second; ratio {ratio:.2}",
            alone.uploads_per_sec * EVENTS_PER_UPLOAD as f64,
            alone.percentile_ms(99),
            beside.uploads_per_sec * EVENTS_PER_UPLOAD as f64,
            beside.percentile_ms(99),
            gone / ROUND_TIME.as_secs_f64(),
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "{name} {backend:?}: ratio {:.2} (median of {ROUNDS}; wanted: 0.90)",
        ratios[ROUNDS / 2]
    );

    let client = Client::new(&service.url);
    let before = done(&client, &work).await;
    tokio::time::sleep(ROUND_TIME).await;
    let gone = done(&client, &work).await - before;
    println!(
        "{name} {backend:?}: {:.0} events a second while nobody uploads",
        gone / ROUND_TIME.as_secs_f64(),
    );
    // Rows that are in files go two minutes later, for those who read them.
    let (held, all) = batches_held(&client, &work, "0.05").await;
    if all > 0.0 {
        let share = held / all * 100.0;
        println!(
            "{name} {backend:?}: {share:.2} % of {all} batches held the writer for 50 ms at most"
        );
    }
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

async fn done(client: &Client, work: &Work) -> f64 {
    number(&metrics(client).await, work.done)
}

/// The batches that held the writer for so long at most, and all of them.
async fn batches_held(client: &Client, work: &Work, at_most_secs: &str) -> (f64, f64) {
    let text = metrics(client).await;
    let name = work.held;
    (
        number(&text, &format!("{name}_bucket{{le=\"{at_most_secs}\"}}")),
        number(&text, &format!("{name}_count")),
    )
}

/// Waits until the work has begun.
async fn until_begun(client: &Client, work: &Work) {
    let began_at = Instant::now();
    while done(client, work).await == 0.0 {
        assert!(
            began_at.elapsed() < Duration::from_secs(60),
            "nothing is done"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
