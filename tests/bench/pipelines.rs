//! *pipelines*: uploads of one tenant beside none, ten and a hundred of its pipelines. Each sends
//! what one hub of two hundred hears to the same receiver, in batches.

use std::time::Duration;

use hub_tests::Backend;
use hub_tests::client::Call;
use serde_json::json;

use crate::deliver::{FLAGS, pipeline};
use crate::fleet::{Fleet, recorded_events};
use crate::ingest;
use crate::receiver::Receiver;
use crate::service::Service;
use crate::wire::UploadRequest;

const HUBS: usize = 200;
const EVENTS_PER_UPLOAD: usize = 50;
const IN_FLIGHT: usize = 64;
const ROUND_TIME: Duration = Duration::from_secs(6);

pub async fn run(backend: Backend) {
    let service = Service::start_with(backend, &FLAGS).await;
    let fleet = Fleet::claim(&service, 1, HUBS).await;
    let tenant = &fleet.tenants[0];
    let recorded = recorded_events();
    let batch = format!("[{}]", recorded[..EVENTS_PER_UPLOAD].join(","));
    let requests: Vec<UploadRequest> = fleet
        .hubs
        .iter()
        .map(|hub| UploadRequest::new(&hub.access_token, &batch))
        .collect();
    let receiver = Receiver::start().await;
    let mut made = Vec::new();
    let mut rounds = Vec::new();
    // Uploads become slower as the database grows, with pipelines or without: each round is
    // compared with those before and after it.
    for pipelines in [0, 10, 0, 100, 0] {
        while made.len() < pipelines {
            let source = json!({"hubUuids": [fleet.hubs[made.len()].hub_uuid]});
            made.push(
                pipeline(
                    tenant,
                    &receiver.url,
                    source,
                    json!({"batchEvents": 100, "batchMillis": 500}),
                )
                .await,
            );
        }
        while made.len() > pipelines {
            let uuid = made.pop().unwrap_or_default();
            tenant
                .delete(&format!("/tenant/data-pipelines/{uuid}"))
                .call()
                .await
                .expect(204);
        }
        let before = receiver.events();
        let load = ingest::load(&service.url, &requests, IN_FLIGHT, ROUND_TIME).await;
        let delivered = (receiver.events() - before) as f64 / ROUND_TIME.as_secs_f64();
        rounds.push((
            pipelines,
            load.uploads_per_sec * EVENTS_PER_UPLOAD as f64,
            delivered,
        ));
    }
    for at in [1, 3] {
        let (pipelines, stored, delivered) = rounds[at];
        let alone = (rounds[at - 1].1 + rounds[at + 1].1) / 2.0;
        println!(
            "pipelines {backend:?}, uploads beside {pipelines}: {stored:.0} events/s stored, {delivered:.0} delivered; without {alone:.0}; ratio {:.2} (wanted: 0.9)",
            stored / alone
        );
    }
}
