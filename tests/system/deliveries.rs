//! Replicas that deliver are killed again and again, and so are the processes that run scripts,
//! while hubs upload and the receiver fails now and then. Everything that is stored reaches the
//! receiver; what comes twice was under way and has the same id; an ordered pipeline keeps its
//! order; and each event is settled once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use hub_tests::hub::events;
use hub_tests::receiver::Received;
use hub_tests::{
    Answer, Backend, Call, Client, Cloud, Receiver, SimulatedHub, Tenant, on_each_database,
};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::stored_events;

/// As many as `HUB_TESTS_KILLS` says.
const KILLS: usize = 12;
/// Of so many kills, one comes after the lanes of whoever was killed before have gone to another.
const LONG_PAUSE_EVERY: usize = 5;
const LONG_PAUSE: std::ops::Range<u64> = 6_500..9_000;
/// Longer than a replica may work without a beat.
const PAUSED: Duration = Duration::from_secs(8);
/// Of so many requests, one fails.
const FAILS_EVERY: usize = 97;
/// Deliveries are stuck when none comes for so long.
const STUCK: Duration = Duration::from_secs(60);
const EVENTS_PER_UPLOAD: usize = 5;

/// The pipelines of the test, by the path that they send to.
fn pipelines() -> [(&'static str, Value, Value); 4] {
    [
        ("/ordered", json!([]), json!({"timeoutSeconds": 5})),
        (
            "/batched",
            json!([]),
            json!({"batchEvents": 40, "batchMillis": 100, "timeoutSeconds": 5}),
        ),
        (
            "/parallel",
            json!([]),
            json!({"concurrency": 8, "timeoutSeconds": 5}),
        ),
        (
            "/scripted",
            json!([{"op": "script", "source": "function process(event) { event.seen = true; return event; }"}]),
            json!({"timeoutSeconds": 5}),
        ),
    ]
}

/// Uploads until `stop`, to whichever replica answers; a batch is sent until it is accepted.
pub async fn upload(hubs: Vec<SimulatedHub>, urls: Vec<String>, stop: Arc<AtomicBool>) {
    let mut turn = 0;
    while !stop.load(Ordering::Relaxed) {
        turn += 1;
        let hub = &hubs[turn % hubs.len()];
        let batch = events(EVENTS_PER_UPLOAD);
        for attempt in turn.. {
            let client = hub.client.at(&urls[attempt % urls.len()]);
            match client.post("/v1/ble/events").json(&batch).try_call().await {
                Ok(reply) if reply.status == 201 => break,
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// Kills the processes that run scripts for a service.
fn kill_scripts(service: u32) {
    let tasks = std::fs::read_dir(format!("/proc/{service}/task"))
        .into_iter()
        .flatten()
        .flatten();
    for task in tasks {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|id| id.parse().ok()) {
            if let Some(id) = rustix::process::Pid::from_raw(child) {
                let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
            }
        }
    }
}

fn kills() -> usize {
    std::env::var("HUB_TESTS_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok())
        .unwrap_or(KILLS)
}

on_each_database!(kills_neither_lose_nor_settle_twice_nor_reorder);
async fn kills_neither_lose_nor_settle_twice_nor_reorder(backend: Backend) {
    let seed = std::env::var("HUB_TESTS_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(rand::random);
    println!("on {backend}: HUB_TESTS_SEED={seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let settings = [
        "--upload-limit-per-minute",
        "1000000",
        "--allow-private-targets",
    ];
    let master_key = "01".repeat(32);
    let first = Cloud::start_in(backend, &settings, &[("HUB_CLOUD_MASTER_KEY", &master_key)]).await;
    let tenant = Tenant::create(&Client::new(&first.url)).await;
    let mut replicas = vec![first];
    if matches!(backend, Backend::Postgres) {
        replicas.push(Cloud::replica_of(&replicas[0]).await);
    }

    let receiver = Receiver::start().await;
    let turn = AtomicUsize::new(0);
    receiver.answer(
        move |_| match turn.fetch_add(1, Ordering::Relaxed) % FAILS_EVERY {
            7 => Answer::now(503),
            11 => Answer {
                status: 200,
                after: Duration::from_millis(30),
            },
            _ => Answer::now(204),
        },
    );
    let mut uuids = BTreeMap::new();
    for (path, steps, delivery) in pipelines() {
        let url = format!("{}{path}", receiver.url);
        let body = json!({"name": path, "source": {}, "steps": steps, "delivery": delivery,
            "destination": {"kind": "HTTP", "url": url}});
        let created = tenant
            .client
            .post("/tenant/data-pipelines")
            .json(&body)
            .call()
            .await
            .expect(201)
            .json();
        uuids.insert(
            path,
            created["data"]["pipelineUuid"]
                .as_str()
                .expect("an id")
                .to_owned(),
        );
    }

    let mut hubs = Vec::new();
    for _ in 0..3 {
        hubs.push(SimulatedHub::claim(&tenant).await);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let urls = replicas.iter().map(|replica| replica.url.clone()).collect();
    let uploading = tokio::spawn(upload(hubs, urls, stop.clone()));
    for kill in 1..=kills() {
        let pause = if kill % LONG_PAUSE_EVERY == 0 {
            LONG_PAUSE
        } else {
            50..900
        };
        tokio::time::sleep(Duration::from_millis(random.random_range(pause))).await;
        let one = random.random_range(0..replicas.len());
        match random.random_range(0..8) {
            0 | 1 => kill_scripts(replicas[one].id()),
            2 if kill % LONG_PAUSE_EVERY == 0 => replicas[one].pause(PAUSED).await,
            _ => replicas[one].crash().await,
        }
    }
    stop.store(true, Ordering::Relaxed);
    uploading.await.expect("hubs upload");

    let stored: BTreeSet<i64> = stored_events(&tenant.client)
        .await
        .iter()
        .filter_map(|one| one["bleEventId"].as_i64())
        .collect();
    assert!(
        stored.len() > EVENTS_PER_UPLOAD * kills(),
        "too little was uploaded to show anything: {}",
        stored.len()
    );
    everything_arrives(&receiver, &pipelines().map(|(path, ..)| path), &stored).await;
    for uuid in uuids.values() {
        let dead: Vec<Value> = tenant
            .client
            .get(&format!("/tenant/data-pipelines/{uuid}/dlq"))
            .call()
            .await
            .expect(200)
            .data();
        assert!(dead.is_empty(), "{dead:?}");
    }
    for (path, ..) in pipelines() {
        let received = receiver.at(path);
        let events = repeats_are_the_same(path, &received, path != "/parallel");
        settled_once(&tenant.client, path, &uuids[path], &stored).await;
        println!("{path}: {events} events in {} requests", received.len());
    }
}

/// What comes twice has the same id, and in an ordered pipeline events come in order at first.
/// Returns how many there are.
pub fn repeats_are_the_same(path: &str, received: &[Received], is_ordered: bool) -> usize {
    let mut message_of: BTreeMap<i64, String> = BTreeMap::new();
    let mut first_seen = Vec::new();
    for one in received {
        for id in one.event_ids() {
            let message = one.header("webhook-id").to_owned();
            match message_of.get(&id) {
                None => {
                    message_of.insert(id, message);
                    first_seen.push(id);
                }
                Some(before) => assert_eq!(
                    *before, message,
                    "{path}: event {id} came in another message"
                ),
            }
        }
    }
    assert!(
        !is_ordered || first_seen.is_sorted(),
        "{path}: not in order"
    );
    message_of.len()
}

/// Waits until all events were accepted at each path, as long as some come.
pub async fn everything_arrives(receiver: &Receiver, paths: &[&str], stored: &BTreeSet<i64>) {
    let mut read = 0;
    let mut last_news = tokio::time::Instant::now();
    let mut accepted: BTreeMap<&str, BTreeSet<i64>> =
        paths.iter().map(|path| (*path, BTreeSet::new())).collect();
    loop {
        let received = receiver.received_from(read);
        read += received.len();
        for one in received.iter().filter(|one| one.status.is_success()) {
            if let Some(accepted) = accepted.get_mut(one.path.as_str()) {
                accepted.extend(one.event_ids());
                last_news = tokio::time::Instant::now();
            }
        }
        if accepted
            .values()
            .all(|accepted| accepted.is_superset(stored))
        {
            return;
        }
        let missing = || {
            accepted
                .iter()
                .map(|(path, one)| (*path, stored.difference(one).count()))
                .collect::<Vec<_>>()
        };
        assert!(
            last_news.elapsed() < STUCK,
            "nothing came for {STUCK:?}; missing: {:?}",
            missing()
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Every event is in exactly one delivery that succeeded.
pub async fn settled_once(
    client: &Client,
    path: &str,
    pipeline_uuid: &str,
    stored: &BTreeSet<i64>,
) {
    let deadline = tokio::time::Instant::now() + STUCK;
    loop {
        let mut times: BTreeMap<i64, usize> = BTreeMap::new();
        // New ones move others to the next page while this reads.
        let mut read = BTreeSet::new();
        for page in 1.. {
            let url = format!(
                "/tenant/data-pipelines/{pipeline_uuid}/deliveries?status=DELIVERED&limit=100&page={page}"
            );
            let deliveries: Vec<Value> = client.get(&url).call().await.expect(200).data();
            if deliveries.is_empty() {
                break;
            }
            let new = deliveries
                .iter()
                .filter(|one| read.insert(one["deliveryId"].as_i64()));
            let ids = new.flat_map(|one| one["eventIds"].as_array().into_iter().flatten());
            for id in ids.filter_map(Value::as_i64) {
                *times.entry(id).or_default() += 1;
            }
        }
        let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
        assert!(
            twice.is_empty(),
            "{path}: {} events were settled more than once: {:?}",
            twice.len(),
            twice.first()
        );
        if times.len() == stored.len() {
            return;
        }
        let settled = times.len();
        assert!(
            tokio::time::Instant::now() < deadline,
            "{path}: {settled} of {} events are settled",
            stored.len()
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
