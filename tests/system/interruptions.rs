//! Pipelines while something they need goes away: their owner dies or is paused, PostgreSQL
//! restarts, a broker is killed, a receiver comes back to a long queue.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use hub_base::db::sql;
use hub_tests::cluster::{Cluster, Stop};
use hub_tests::process::Process;
use hub_tests::{
    Answer, Backend, Call, Client, Cloud, Options, Receiver, SimulatedHub, Tenant, TestApp,
    on_each_database, on_postgres,
};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::deliveries::{everything_arrives, repeats_are_the_same, settled_once, upload};
use super::stored_events;

/// A lane goes to another replica within this time after its owner has died.
const MOVES_WITHIN: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_secs(60);
/// Events that wait for a receiver; `HUB_TESTS_WAITING` says how many others, up to the 100,000
/// that a list shows.
const WAITING: usize = 10_000;

async fn pipeline(client: &Client, destination: Value, delivery: Value) -> String {
    let body = json!({"name": "a pipeline", "source": {}, "steps": [], "destination": destination,
        "delivery": delivery});
    let created = client
        .post("/tenant/data-pipelines")
        .json(&body)
        .call()
        .await
        .expect(201)
        .json();
    created["data"]["pipelineUuid"]
        .as_str()
        .expect("an id")
        .to_owned()
}

fn http(receiver: &Receiver, path: &str) -> Value {
    json!({"kind": "HTTP", "url": format!("{}{path}", receiver.url)})
}

async fn stored_ids(client: &Client) -> BTreeSet<i64> {
    stored_events(client)
        .await
        .iter()
        .filter_map(|one| one["bleEventId"].as_i64())
        .collect()
}

fn delivering() -> (Options, impl FnOnce(&mut hub_core::config::Config)) {
    let mut options = Options::default();
    options.settings.upload_limit_per_minute = Some(1_000_000);
    let change = |config: &mut hub_core::config::Config| {
        config.outgoing.allow_private_targets = true.into();
        config.delivers = true;
    };
    (options, change)
}

/// All that was uploaded arrives at `/in` in order, and is settled once.
async fn all_is_there(client: &Client, receiver: &Receiver, pipeline_uuid: &str) {
    let stored = stored_ids(client).await;
    everything_arrives(receiver, &["/in"], &stored).await;
    repeats_are_the_same("/in", &receiver.at("/in"), true);
    settled_once(client, "/in", pipeline_uuid, &stored).await;
    println!("{} events", stored.len());
}

on_each_database!(a_batch_that_others_events_followed_is_the_same_after_a_kill);
async fn a_batch_that_others_events_followed_is_the_same_after_a_kill(backend: Backend) {
    let settings = ["--allow-private-targets"];
    let master_key = "01".repeat(32);
    let mut cloud =
        Cloud::start_in(backend, &settings, &[("HUB_CLOUD_MASTER_KEY", &master_key)]).await;
    let tenant = Tenant::create(&Client::new(&cloud.url)).await;
    let (hub, other) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    let receiver = Receiver::start().await;
    receiver.answer(|_| Answer::now(503));
    let body = json!({"name": "a pipeline", "source": {"hubUuids": [hub.hub_uuid]}, "steps": [],
        "destination": http(&receiver, "/in"),
        "delivery": {"batchEvents": 100, "batchMillis": 2000}});
    let created = tenant
        .client
        .post("/tenant/data-pipelines")
        .json(&body)
        .call();
    created.await.expect(201);

    hub.upload_events(3).await;
    other.upload_events(2).await;
    receiver.until(SOON, |received| !received.is_empty()).await;
    cloud.crash().await;
    hub.upload_events(2).await;
    receiver.answer(|_| Answer::now(204));
    let of_hub: BTreeSet<i64> = stored_events(&tenant.client)
        .await
        .iter()
        .filter(|one| one["hubUuid"] == json!(hub.hub_uuid))
        .filter_map(|one| one["bleEventId"].as_i64())
        .collect();
    assert_eq!(of_hub.len(), 5);
    everything_arrives(&receiver, &["/in"], &of_hub).await;
    let received = receiver.at("/in");
    assert_eq!(repeats_are_the_same("/in", &received, true), 5);
    assert_eq!(received[0].event_ids().len(), 3, "the first batch");
}

on_each_database!(batches_stay_as_they_were_whatever_was_settled_before_a_kill);
/// Messages are answered, refused and held at random, and the service is killed in between: a
/// message that was sent comes again with the same events, under the same id. Repeatable with
/// `HUB_TESTS_SEED`.
async fn batches_stay_as_they_were_whatever_was_settled_before_a_kill(backend: Backend) {
    let seed: u64 = std::env::var("HUB_TESTS_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(rand::random);
    println!("on {backend}: HUB_TESTS_SEED={seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let settings = [
        "--allow-private-targets",
        "--upload-limit-per-minute=100000",
    ];
    let master_key = "01".repeat(32);
    let mut cloud =
        Cloud::start_in(backend, &settings, &[("HUB_CLOUD_MASTER_KEY", &master_key)]).await;
    let tenant = Tenant::create(&Client::new(&cloud.url)).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let receiver = Receiver::start().await;
    for (path, delivery) in [
        (
            "/many",
            json!({"batchEvents": 10, "batchMillis": 100, "concurrency": 8}),
        ),
        ("/few", json!({"batchEvents": 3, "concurrency": 16})),
    ] {
        pipeline(&tenant.client, http(&receiver, path), delivery).await;
    }
    for _ in 0..5 {
        let fates: Vec<(u16, u64)> = (0..64)
            .map(|_| match random.random_range(0..10) {
                0..4 => (204, random.random_range(0..40)),
                4..6 => (503, 0),
                _ => (204, 600_000),
            })
            .collect();
        let salt: u64 = random.random();
        receiver.answer(move |one| {
            let mut hasher = DefaultHasher::new();
            (salt, one.header("webhook-id")).hash(&mut hasher);
            let place = usize::try_from(hasher.finish() % 64).expect("a place");
            let (status, after_ms) = fates[place];
            Answer {
                status,
                after: Duration::from_millis(after_ms),
            }
        });
        for _ in 0..random.random_range(1..6) {
            hub.upload_events(random.random_range(1..40)).await;
        }
        tokio::time::sleep(Duration::from_millis(random.random_range(0..1_500))).await;
        cloud.crash().await;
    }
    receiver.answer(|_| Answer::now(204));
    let stored = stored_ids(&tenant.client).await;
    everything_arrives(&receiver, &["/many", "/few"], &stored).await;
    for path in ["/many", "/few"] {
        let received = receiver.at(path);
        assert_eq!(repeats_are_the_same(path, &received, false), stored.len());
    }
}

on_postgres!(a_lane_moves_when_its_owner_dies_or_is_paused);
async fn a_lane_moves_when_its_owner_dies_or_is_paused(backend: Backend) {
    let settings = [
        "--upload-limit-per-minute",
        "1000000",
        "--allow-private-targets",
    ];
    let master_key = "01".repeat(32);
    let first = Cloud::start_in(backend, &settings, &[("HUB_CLOUD_MASTER_KEY", &master_key)]).await;
    let mut replicas = [Cloud::replica_of(&first).await, first];
    let tenant = Tenant::create(&Client::new(&replicas[1].url)).await;
    let receiver = Receiver::start().await;
    let pipeline_uuid = pipeline(&tenant.client, http(&receiver, "/in"), json!({})).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let stop = Arc::new(AtomicBool::new(false));
    // A paused replica keeps its caller waiting, so each has its own.
    let other = SimulatedHub::claim(&tenant).await;
    let uploads = [(hub, &replicas[0]), (other, &replicas[1])].map(|(hub, replica)| {
        tokio::spawn(upload(vec![hub], vec![replica.url.clone()], stop.clone()))
    });
    receiver.until(SOON, |received| !received.is_empty()).await;
    let began = Instant::now();
    let mut faults = Vec::new();
    // One of them owns the lane.
    for (index, replica) in replicas.iter().enumerate() {
        faults.push(format!("{index} paused at {:?}", began.elapsed()));
        replica.pause(MOVES_WITHIN + Duration::from_secs(2)).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    for (index, replica) in replicas.iter_mut().enumerate() {
        faults.push(format!("{index} killed at {:?}", began.elapsed()));
        replica.crash().await;
        tokio::time::sleep(MOVES_WITHIN).await;
    }
    let times: Vec<Duration> = receiver
        .at("/in")
        .iter()
        .filter_map(|one| one.at.checked_duration_since(began))
        .collect();
    let gaps = times.windows(2).map(|pair| (pair[1] - pair[0], pair[0]));
    let (longest, at) = gaps.max().expect("deliveries");
    stop.store(true, Ordering::Relaxed);
    for uploading in uploads {
        uploading.await.expect("the hub uploads");
    }
    assert!(
        longest < MOVES_WITHIN,
        "nothing was delivered for {longest:?} from {at:?} on; replicas: {faults:?}\n{}",
        replicas.each_ref().map(Cloud::last_lines).join("\n")
    );
    println!("the longest gap: {longest:?} from {at:?} on; replicas: {faults:?}");
    all_is_there(&tenant.client, &receiver, &pipeline_uuid).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_outages_delay_deliveries() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let cluster = Arc::new(cluster);
    let (options, change) = delivering();
    let app = TestApp::on_postgres(&cluster.url(), options, change).await;
    let tenant = Tenant::create(&app.client()).await;
    let receiver = Receiver::start().await;
    let pipeline_uuid = pipeline(&tenant.client, http(&receiver, "/in"), json!({})).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let stop = Arc::new(AtomicBool::new(false));
    let uploading = tokio::spawn(upload(vec![hub], vec![app.url.clone()], stop.clone()));
    for how in [Stop::Immediate, Stop::Fast, Stop::Immediate] {
        let before = receiver.received().len();
        receiver
            .until(SOON, |received| received.len() > before + 50)
            .await;
        let stopping = cluster.clone();
        tokio::task::spawn_blocking(move || stopping.stop(how))
            .await
            .expect("PostgreSQL stops");
        tokio::time::sleep(Duration::from_secs(6)).await;
        let starting = cluster.clone();
        tokio::task::spawn_blocking(move || starting.go_on())
            .await
            .expect("PostgreSQL starts");
    }
    stop.store(true, Ordering::Relaxed);
    uploading.await.expect("the hub uploads");
    all_is_there(&tenant.client, &receiver, &pipeline_uuid).await;
}

/// A NATS server of the test's own, which keeps its streams in a directory.
pub(super) fn nats(dir: &Path, port: u16) -> Option<Process> {
    let has_server = std::process::Command::new("nats-server")
        .arg("--version")
        .output()
        .is_ok();
    if !has_server {
        hub_tests::skip("a broker that is killed", "the program nats-server");
        return None;
    }
    let mut command = tokio::process::Command::new("nats-server");
    command
        .args([
            "--addr",
            "127.0.0.1",
            "--port",
            &port.to_string(),
            "--jetstream",
            "--store_dir",
        ])
        .arg(dir);
    Some(Process::spawn("nats-server", command))
}

async fn connect(url: &str) -> async_nats::Client {
    let deadline = Instant::now() + SOON;
    loop {
        match async_nats::connect(url).await {
            Ok(client) => return client,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Asks JetStream's own interface, whose subjects and JSON are in the NATS documentation
/// ("JetStream wire API").
async fn jetstream(client: &async_nats::Client, subject: String, body: Value) -> Value {
    let answer = client
        .request(format!("$JS.API.{subject}"), body.to_string().into())
        .await
        .expect("an answer");
    let answer: Value = serde_json::from_slice(&answer.payload).expect("JSON");
    assert!(answer.get("error").is_none(), "{answer}");
    answer
}

on_each_database!(a_broker_that_is_killed_misses_nothing);
async fn a_broker_that_is_killed_misses_nothing(backend: Backend) {
    let dir = tempfile::tempdir().expect("a directory");
    let port = hub_tests::ports::lasting();
    let url = format!("nats://127.0.0.1:{port}");
    let Some(mut broker) = nats(dir.path(), port) else {
        return;
    };
    let stream = json!({"name": "EVENTS", "subjects": ["events"], "storage": "file", "duplicate_window": 120_000_000_000_i64});
    jetstream(
        &connect(&url).await,
        "STREAM.CREATE.EVENTS".to_owned(),
        stream,
    )
    .await;
    let (options, change) = delivering();
    let app = TestApp::configured(backend, options, change).await;
    let tenant = Tenant::create(&app.client()).await;
    let destination = json!({"kind": "NATS", "url": url, "subject": "events"});
    let pipeline_uuid = pipeline(&tenant.client, destination, json!({"timeoutSeconds": 5})).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let stop = Arc::new(AtomicBool::new(false));
    let uploading = tokio::spawn(upload(vec![hub], vec![app.url.clone()], stop.clone()));
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        broker.kill().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        broker = nats(dir.path(), port).expect("it is there");
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.store(true, Ordering::Relaxed);
    uploading.await.expect("the hub uploads");
    let stored = stored_ids(&tenant.client).await;
    settled_once(&tenant.client, "events", &pipeline_uuid, &stored).await;
    let client = connect(&url).await;
    let stream = jetstream(&client, "STREAM.INFO.EVENTS".to_owned(), json!({})).await;
    let mut kept = Vec::new();
    for sequence in 1..=stream["state"]["last_seq"].as_u64().expect("a number") {
        let message = jetstream(
            &client,
            "STREAM.MSG.GET.EVENTS".to_owned(),
            json!({"seq": sequence}),
        )
        .await;
        let payload = BASE64
            .decode(message["message"]["data"].as_str().expect("a text"))
            .expect("Base64");
        let event: Value = serde_json::from_slice(&payload).expect("JSON");
        kept.push(event["bleEventId"].as_i64().expect("an id"));
    }
    assert!(kept.is_sorted(), "not in order");
    assert_eq!(
        kept,
        stored.into_iter().collect::<Vec<_>>(),
        "each event once"
    );
    println!("{} events", kept.len());
}

fn waiting() -> usize {
    std::env::var("HUB_TESTS_WAITING")
        .ok()
        .and_then(|events| events.parse().ok())
        .unwrap_or(WAITING)
}

async fn rows(app: &TestApp) -> i64 {
    let mut conn = app.app.db.read().await.expect("a connection");
    let mut rows = 0;
    for count in [
        "SELECT COUNT(*) FROM pipeline_deliveries",
        "SELECT COUNT(*) FROM pipeline_lanes",
        "SELECT COUNT(*) FROM dead_letters",
    ] {
        rows += sql(count).scalar::<i64>(&mut conn).await.expect("a count");
    }
    rows
}

on_each_database!(a_receiver_that_comes_back_gets_all_that_waits);
async fn a_receiver_that_comes_back_gets_all_that_waits(backend: Backend) {
    let (options, change) = delivering();
    let app = TestApp::configured(backend, options, change).await;
    let tenant = Tenant::create(&app.client()).await;
    let (dead, healthy) = (Receiver::start().await, Receiver::start().await);
    dead.answer(|_| Answer::now(503));
    let batches = json!({"batchEvents": 200, "batchMillis": 50});
    let pipeline_uuid = pipeline(&tenant.client, http(&dead, "/in"), batches.clone()).await;
    pipeline(&tenant.client, http(&healthy, "/in"), batches).await;
    let hub = SimulatedHub::claim(&tenant).await;
    hub.upload_events(500).await;
    dead.until(SOON, |received| !received.is_empty()).await;
    healthy.until(SOON, |received| !received.is_empty()).await;
    let before = rows(&app).await;
    for _ in 1..waiting() / 500 {
        hub.upload_events(500).await;
    }
    let stored = stored_ids(&tenant.client).await;
    everything_arrives(&healthy, &["/in"], &stored).await;
    let (messages, attempts) = (healthy.received().len(), dead.received().len());
    let added = usize::try_from(rows(&app).await - before).expect("a number");
    assert!(
        added <= messages + attempts,
        "{added} rows more for {messages} messages and {attempts} attempts"
    );
    assert!(attempts < 20, "{attempts} attempts at a dead receiver");

    dead.answer(|_| Answer::now(204));
    let resume = format!("/tenant/data-pipelines/{pipeline_uuid}/resume");
    tenant
        .client
        .post(&resume)
        .json(&json!({"from": "CURSOR"}))
        .call()
        .await
        .expect(200);
    let began = Instant::now();
    everything_arrives(&dead, &["/in"], &stored).await;
    println!(
        "{backend}: {} events in {:?}",
        stored.len(),
        began.elapsed()
    );
    repeats_are_the_same("/in", &dead.at("/in"), true);
    settled_once(&tenant.client, "/in", &pipeline_uuid, &stored).await;
}
