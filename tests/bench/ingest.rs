//! *ingest*: 1,000 hubs of 100 tenants upload batches of 50 events as fast as they are answered.

use std::time::{Duration, Instant};

use hub_tests::Backend;

use crate::fleet::{Fleet, recorded_events};
use crate::raw::{self, Row};
use crate::service::Service;
use crate::wire::{Connection, UploadRequest};

const TENANTS: usize = 100;
const HUBS: usize = 1000;
const EVENTS_PER_UPLOAD: usize = 50;
const IN_FLIGHT: usize = 128;
const ROUNDS: usize = 3;
const WANTED: f64 = 0.8;
const ROUND_TIME: Duration = Duration::from_secs(6);
const RAW_TIME: Duration = Duration::from_secs(3);
const RAW_ROWS_PER_TRANSACTION: usize = 1000;

pub async fn run(backend: Backend) {
    let service = Service::start(backend).await;
    let fleet = Fleet::claim(&service, TENANTS, HUBS).await;
    let events = recorded_events();
    let batches: Vec<&[String]> = events.chunks_exact(EVENTS_PER_UPLOAD).collect();
    let batch_of = |index: usize| batches[index % batches.len()];

    let mut rows = Vec::new();
    for (index, hub) in fleet.hubs.iter().enumerate() {
        let row = |event| Row {
            tenant_uuid: hub.tenant_uuid.0,
            hub_uuid: hub.hub_uuid.0,
            event,
        };
        rows.extend(batch_of(index).iter().map(|event| row(event.as_str())));
    }
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

    // Beyond every id that a clock will give out.
    let mut raw_id = 4_000_000_000_000_000;
    let mut ratios = Vec::new();
    for round in 1..=ROUNDS {
        let before = raw::write(
            &service,
            &rows,
            RAW_ROWS_PER_TRANSACTION,
            &mut raw_id,
            RAW_TIME,
        )
        .await;
        let load = load(&service.url, &requests, IN_FLIGHT, ROUND_TIME).await;
        let after = raw::write(
            &service,
            &rows,
            RAW_ROWS_PER_TRANSACTION,
            &mut raw_id,
            RAW_TIME,
        )
        .await;
        let raw = (before + after) / 2.0;
        let events_per_sec = load.uploads_per_sec * EVENTS_PER_UPLOAD as f64;
        ratios.push(events_per_sec / raw);
        println!(
            "ingest {backend:?} {round}/{ROUNDS}: {events_per_sec:.0} events/s durable in uploads of {EVENTS_PER_UPLOAD}, p50 {:.1} ms, p99 {:.1} ms; \
             raw {raw:.0} rows/s; ratio {:.2}",
            load.percentile_ms(50),
            load.percentile_ms(99),
            events_per_sec / raw,
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "ingest {backend:?}: ratio {:.2} (median of {ROUNDS}; wanted: {WANTED})",
        ratios[ROUNDS / 2]
    );
}

pub struct Load {
    pub uploads_per_sec: f64,
    latencies: Vec<Duration>,
}

impl Load {
    pub fn percentile_ms(&self, percent: usize) -> f64 {
        let index = (self.latencies.len() * percent / 100).min(self.latencies.len() - 1);
        self.latencies[index].as_secs_f64() * 1000.0
    }
}

/// Sends the requests in turn, again and again, over `in_flight` connections.
pub async fn load(url: &str, requests: &[UploadRequest], in_flight: usize, time: Duration) -> Load {
    let started_at = Instant::now();
    let mut connections = tokio::task::JoinSet::new();
    for connection in 0..in_flight {
        // Each connection speaks for its share of the hubs.
        let mut requests: Vec<UploadRequest> = requests
            .iter()
            .skip(connection)
            .step_by(in_flight)
            .cloned()
            .collect();
        let url = url.to_owned();
        connections.spawn(async move {
            let mut connection = Connection::open(&url).await.expect("a connection");
            let mut latencies = Vec::new();
            for index in (0..requests.len()).cycle() {
                if started_at.elapsed() >= time {
                    break;
                }
                let sent_at = Instant::now();
                let status = connection
                    .send(requests[index].fresh())
                    .await
                    .expect("an answer");
                assert_eq!(status, 201, "every upload is taken in");
                latencies.push(sent_at.elapsed());
            }
            latencies
        });
    }
    let mut latencies = connections.join_all().await.concat();
    latencies.sort();
    Load {
        uploads_per_sec: latencies.len() as f64 / started_at.elapsed().as_secs_f64(),
        latencies,
    }
}
