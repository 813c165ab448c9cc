//! Two replicas behind a load balancer are restarted one after the other, as a rolling upgrade does
//! it: the balancer forgets a replica, it is asked to stop, and it is used again once it is ready.
//! Hubs upload and wait for changes, a stream is read, a pipeline delivers, and people read and
//! write meanwhile.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hub_tests::{
    Backend, Call, Client, Cloud, Follower, Receiver, SimulatedHub, Tenant, on_postgres,
};
use reqwest::header::IF_NONE_MATCH;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use super::deliveries::{everything_arrives, repeats_are_the_same, settled_once, upload};
use super::interruptions::nats;
use super::stored_events;

/// Each replica is restarted so often.
const ROUNDS: usize = 3;
/// Between the last new connection to a replica and its SIGTERM: the chart's `preStopSeconds`.
const FORGOTTEN_FOR: Duration = Duration::from_secs(1);
/// Kubernetes kills who takes longer.
const GRACE: Duration = Duration::from_secs(25);

/// A load balancer for TCP: new connections go to one of the replicas that are ready, in turn.
/// Connections that are open stay where they are.
#[derive(Clone)]
struct Balancer {
    url: String,
    ready: Arc<Mutex<Vec<SocketAddr>>>,
}

impl Balancer {
    async fn start(replicas: &[Cloud]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let ready = replicas.iter().map(address).collect();
        let balancer = Self {
            url,
            ready: Arc::new(Mutex::new(ready)),
        };
        let of_task = balancer.clone();
        tokio::spawn(async move {
            for turn in 0.. {
                let (mut client, _) = listener.accept().await.expect("a connection");
                let target = {
                    let ready = of_task.ready.lock().expect("the replicas");
                    ready[turn % ready.len()]
                };
                tokio::spawn(async move {
                    if let Ok(mut replica) = TcpStream::connect(target).await {
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut replica).await;
                    }
                });
            }
        });
        balancer
    }

    fn forget(&self, replica: &Cloud) {
        let address = address(replica);
        let mut ready = self.ready.lock().expect("the replicas");
        ready.retain(|one| *one != address);
    }

    fn use_again(&self, replica: &Cloud) {
        self.ready
            .lock()
            .expect("the replicas")
            .push(address(replica));
    }
}

fn address(replica: &Cloud) -> SocketAddr {
    let address = replica.url.trim_start_matches("http://");
    address.parse().expect("an address")
}

/// What clients saw. A request fails when no answer came, or one that is no success.
#[derive(Default)]
struct Seen {
    polls: AtomicUsize,
    reads: AtomicUsize,
    writes: AtomicUsize,
    failures: Mutex<Vec<String>>,
}

impl Seen {
    fn note(&self, counter: &AtomicUsize, what: &str, outcome: reqwest::Result<u16>) {
        match outcome {
            Ok(200..=299 | 304) => {
                counter.fetch_add(1, Ordering::Relaxed);
            }
            outcome => self
                .failures
                .lock()
                .expect("the failures")
                .push(format!("{what}: {outcome:?}")),
        }
    }
}

/// A hub that waits for changes.
async fn wait_for_changes(hub: SimulatedHub, url: String, seen: Arc<Seen>, stop: Arc<AtomicBool>) {
    let client = hub.client.at(&url);
    let path = format!("/v1/hubs/{}/desired-state?wait=2", hub.hub_uuid);
    let mut etag = String::from("\"none\"");
    while !stop.load(Ordering::Relaxed) {
        let request = client.get(&path).header(IF_NONE_MATCH, &etag);
        let outcome = request.try_call().await.map(|reply| {
            if reply.status == 200 {
                etag = reply.header("etag").to_owned();
            }
            reply.status.as_u16()
        });
        seen.note(&seen.polls, "a long poll", outcome);
    }
}

/// A console that is open: it reads, and now and then somebody writes what must not be sent twice.
async fn use_console(tenant: Client, url: String, seen: Arc<Seen>, stop: Arc<AtomicBool>) {
    let client = tenant.at(&url);
    while !stop.load(Ordering::Relaxed) {
        for path in ["/tenant/hubs", "/tenant/ble-query/events", "/console"] {
            let outcome = client.get(path).try_call().await;
            seen.note(
                &seen.reads,
                path,
                outcome.map(|reply| reply.status.as_u16()),
            );
        }
        let body = json!({"name": "for a moment", "tiles": []});
        let request = client.post("/tenant/dashboards").json(&body);
        let outcome = request.try_call().await;
        if let Ok(reply) = &outcome
            && reply.status == 201
        {
            let dashboard = reply.json()["data"]["dashboardUuid"].clone();
            let path = format!(
                "/tenant/dashboards/{}",
                dashboard.as_str().unwrap_or_default()
            );
            let outcome = client.delete(&path).try_call().await;
            seen.note(
                &seen.writes,
                "a deletion",
                outcome.map(|reply| reply.status.as_u16()),
            );
        }
        seen.note(
            &seen.writes,
            "a write",
            outcome.map(|reply| reply.status.as_u16()),
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

on_postgres!(a_rolling_restart_fails_no_request);
async fn a_rolling_restart_fails_no_request(backend: Backend) {
    let dir = tempfile::tempdir().expect("a directory");
    let port = hub_tests::ports::lasting();
    let Some(_broker) = nats(dir.path(), port) else {
        return;
    };
    let bus = format!("nats://127.0.0.1:{port}");
    let settings = [
        "--upload-limit-per-minute",
        "1000000",
        "--allow-private-targets",
        "--bus",
        &bus,
    ];
    let master_key = "01".repeat(32);
    let environment = [("HUB_CLOUD_MASTER_KEY", master_key.as_str())];
    let first = Cloud::start_in(backend, &settings, &environment).await;
    let second = Cloud::replica_of(&first).await;
    let mut replicas = [first, second];
    let balancer = Balancer::start(&replicas).await;

    let tenant = Tenant::create(&Client::new(&balancer.url)).await;
    let receiver = Receiver::start().await;
    let body = json!({"name": "ordered", "source": {}, "steps": [],
        "destination": {"kind": "HTTP", "url": format!("{}/ordered", receiver.url)}});
    let created = tenant.client.post("/tenant/data-pipelines").json(&body);
    let created = created.call().await.expect(201).json();
    let pipeline_uuid = created["data"]["pipelineUuid"].as_str().expect("an id");
    let mut hubs = Vec::new();
    for _ in 0..3 {
        hubs.push(SimulatedHub::claim(&tenant).await);
    }
    let path = "/tenant/stream/ble/events";
    let follower = Follower::start(&tenant.client, path, usize::MAX, 1);

    let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Seen::default()));
    let url = || balancer.url.clone();
    let mut clients = vec![tokio::spawn(upload(
        hubs.clone(),
        vec![url()],
        stop.clone(),
    ))];
    for hub in &hubs {
        let client = wait_for_changes(hub.clone(), url(), seen.clone(), stop.clone());
        clients.push(tokio::spawn(client));
    }
    for _ in 0..2 {
        let client = use_console(tenant.client.clone(), url(), seen.clone(), stop.clone());
        clients.push(tokio::spawn(client));
    }

    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..ROUNDS {
        for replica in &mut replicas {
            balancer.forget(replica);
            tokio::time::sleep(FORGOTTEN_FOR).await;
            let began = Instant::now();
            assert_eq!(replica.stop().await, Some(0), "{}", replica.last_lines());
            assert!(began.elapsed() < GRACE, "it took {:?}", began.elapsed());
            replica.start_again().await;
            balancer.use_again(replica);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.expect("a client");
    }

    let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    let (polls, reads, writes) = (count(&seen.polls), count(&seen.reads), count(&seen.writes));
    println!("{polls} long polls, {reads} reads, {writes} writes");
    let failures = std::mem::take(&mut *seen.failures.lock().expect("the failures"));
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(polls > 0 && reads > 0 && writes > 0);

    let events = stored_events(&tenant.client).await;
    let ids = events.iter().filter_map(|one| one["bleEventId"].as_i64());
    let stored: BTreeSet<i64> = ids.collect();
    assert_eq!(stored.len(), events.len());
    follower.until(stored.len()).await;
    let streamed = follower.seen();
    let streamed: Vec<_> = streamed
        .iter()
        .filter_map(|event| event.data["bleEventId"].as_i64())
        .collect();
    assert!(
        streamed.iter().eq(stored.iter()),
        "{} events were streamed, {} stored",
        streamed.len(),
        stored.len()
    );
    everything_arrives(&receiver, &["/ordered"], &stored).await;
    let delivered = repeats_are_the_same("/ordered", &receiver.at("/ordered"), true);
    assert_eq!(delivered, stored.len());
    settled_once(&tenant.client, "/ordered", pipeline_uuid, &stored).await;
}
