//! `/tenant/stream/**`: every record once, in order, whatever is cut in between.

use std::time::Duration;

use futures_util::StreamExt;
use hub_core::config::Settings;
use hub_identity::authz::permission::Role;
use hub_tests::hub::events;
use hub_tests::{
    Backend, Call, Client, Options, SimulatedHub, Tenant, TestApp, on_each_database, on_postgres,
};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(20);

/// A reader of server-sent events.
pub(super) struct Reader {
    bytes:
        std::pin::Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    buffer: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) data: Value,
}

impl Reader {
    pub(super) async fn open(client: &Client, path: &str, last_event_id: Option<&str>) -> Self {
        let mut request = client.get(path);
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            bytes: Box::pin(response.bytes_stream()),
            buffer: String::new(),
        }
    }

    /// The next event; nothing when the stream ended.
    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.buffer.find("\n\n") {
                let block: String = self.buffer.drain(..end + 2).collect();
                let field = |name: &str| {
                    block
                        .lines()
                        .find_map(|line| line.strip_prefix(name))
                        .map(str::to_owned)
                };
                let (Some(id), Some(name), Some(data)) =
                    (field("id: "), field("event: "), field("data: "))
                else {
                    continue;
                };
                return Some(Event {
                    id,
                    name,
                    data: serde_json::from_str(&data).expect("data is JSON"),
                });
            }
            self.read().await?;
        }
    }

    /// Reads more; nothing when the stream ended.
    async fn read(&mut self) -> Option<()> {
        let chunk = tokio::time::timeout(PATIENCE, self.bytes.next())
            .await
            .expect("something arrives in time")?;
        self.buffer
            .push_str(std::str::from_utf8(&chunk.ok()?).expect("UTF-8"));
        Some(())
    }

    /// Reads until this text has come, as it is on the wire.
    pub(super) async fn until(&mut self, text: &str) {
        while !self.buffer.contains(text) {
            self.read().await.expect("the stream goes on");
        }
    }

    pub(super) async fn take(&mut self, count: usize) -> Vec<Event> {
        let mut events = Vec::new();
        while events.len() < count {
            events.push(self.next().await.expect("the stream goes on"));
        }
        events
    }
}

pub(super) const BLE: &str = "/tenant/stream/ble/events";

on_each_database!(streamed_events_equal_listed_events);
async fn streamed_events_equal_listed_events(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    hub.upload_events(3).await;
    let mut reader = Reader::open(&tenant.client, BLE, None).await;
    hub.upload_events(5).await;
    let seen = reader.take(5).await;
    let listed: Vec<Value> = tenant
        .client
        .get("/tenant/ble/events?size=5")
        .call()
        .await
        .expect(200)
        .data();
    for (event, item) in seen.iter().zip(listed.iter().rev()) {
        assert_eq!((event.name.as_str(), &event.data), ("ble_event", item));
        assert_eq!(item["receivedAt"], json!(event.id));
    }
}

on_each_database!(streams_tell_which_events_pipelines_take);
async fn streams_tell_which_events_pipelines_take(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hubs = [
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    ];
    hubs[0].upload_events(1).await;
    super::pipelines::made(&tenant.client, &super::pipelines::http()).await;
    let (named, other) = (
        super::pipelines::made(&tenant.client, &super::pipelines::http()).await,
        json!({"source": {"hubUuids": [hubs[1].hub_uuid]}}),
    );
    // Only the second pipeline sees what the first hub receives, and it takes events of the other.
    let path = format!(
        "/tenant/data-pipelines/{}",
        named["pipelineUuid"].as_str().expect("a uuid")
    );
    let mut body = super::pipelines::http();
    body["source"] = other["source"].clone();
    tenant
        .client
        .put(&path)
        .json(&body)
        .call()
        .await
        .expect(200);
    let rules = json!({"rules": [{"layer": "CLOUD", "match": {"hubUuid": hubs[0].hub_uuid}, "action": "FORWARD",
                                  "pipelineUuids": [named["pipelineUuid"]]}]});
    tenant
        .client
        .put(super::ble_routes::ROUTE)
        .json(&rules)
        .call()
        .await
        .expect(200);
    let mut reader = Reader::open(&tenant.client, BLE, None).await;
    for hub in &hubs {
        hub.upload_events(1).await;
    }
    let seen = reader.take(2).await;
    let shown = |events: &[Event]| -> Vec<Value> {
        events
            .iter()
            .map(|event| event.data["deliveryStatus"].clone())
            .collect()
    };
    assert_eq!(shown(&seen), [json!("NONE"), json!("PENDING")]);
    let listed: Vec<Value> = tenant
        .client
        .get("/tenant/ble/events?size=2")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        listed,
        seen.iter()
            .rev()
            .map(|event| event.data.clone())
            .collect::<Vec<_>>()
    );
    // As it is now, not as it was.
    let mut tx = app.app.db.begin().await.expect("a transaction");
    hub_base::db::sql("UPDATE pipeline_lanes SET cursor = $1")
        .bind(listed[0]["bleEventId"].as_i64())
        .run(&mut tx)
        .await
        .expect("positions");
    tx.commit_unaudited("a test's own").await.expect("a commit");
    let mut resumed = Reader::open(&tenant.client, BLE, Some(&seen[0].id)).await;
    assert_eq!(shown(&resumed.take(1).await), [json!("DELIVERED")]);
}

on_each_database!(resumed_stream_shows_each_event_once_and_in_order);
/// Uploads go on while a reader is cut off again and again, in the middle of batches too.
async fn resumed_stream_shows_each_event_once_and_in_order(backend: Backend) {
    const UPLOADS: usize = 40;
    const EVENTS: usize = 25;
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hubs = [
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    ];
    let mut reader = Reader::open(&tenant.client, BLE, None).await;
    let uploading = tokio::spawn(async move {
        for index in 0..UPLOADS {
            hubs[index % 2].upload_events(EVENTS).await;
        }
    });
    let mut seen: Vec<Event> = Vec::new();
    // Lengths that fall inside batches.
    for length in [7, 40, 1, 93, 26, 150, 3].into_iter().cycle() {
        let left = UPLOADS * EVENTS - seen.len();
        if left == 0 {
            break;
        }
        seen.extend(reader.take(length.min(left)).await);
        let last = seen.last().expect("an event").id.clone();
        reader = Reader::open(&tenant.client, BLE, Some(&last)).await;
    }
    uploading.await.expect("all uploads are taken in");
    let mut all: Vec<Value> = Vec::new();
    for page in 0..UPLOADS * EVENTS / 100 {
        let path = format!("/tenant/ble-query/events?size=100&sort=receivedAt,asc&page={page}");
        let page = tenant.client.get(&path).call().await.expect(200).json();
        all.extend(page["data"]["content"].as_array().expect("a page").clone());
    }
    let seen: Vec<Value> = seen.into_iter().map(|event| event.data).collect();
    assert_eq!(seen, all, "on {backend}");
}

on_each_database!(log_stream_of_a_hub_contains_no_other_hub);
async fn log_stream_of_a_hub_contains_no_other_hub(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let (one, two) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    let log = |hub: &SimulatedHub, entries: Value| {
        hub.client
            .post(&format!("/v1/hubs/{}/logs", hub.hub_uuid))
            .json(&entries)
            .call()
    };
    let path = format!("/tenant/stream/hubs/{}/logs", one.hub_uuid);
    log(&one, json!([{"n": 0}])).await.expect(204);
    let mut reader = Reader::open(&tenant.client, &path, None).await;
    log(&two, json!([{"n": 100}])).await.expect(204);
    log(&one, json!([{"n": 1}, {"n": 2}])).await.expect(204);
    log(&one, json!({"n": 3})).await.expect(204);
    let seen = reader.take(3).await;
    let numbers: Vec<&Value> = seen.iter().map(|event| &event.data["data"]["n"]).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert!(seen.iter().all(|event| event.name == "hub_log"));
    let mut again = Reader::open(&tenant.client, &path, Some(&seen[0].id)).await;
    assert_eq!(
        again
            .take(2)
            .await
            .iter()
            .map(|event| &event.id)
            .collect::<Vec<_>>(),
        [&seen[1].id, &seen[2].id]
    );
    let stranger = Tenant::create(&app.client()).await;
    stranger.client.get(&path).call().await.expect(404);
    stranger
        .client
        .get(BLE)
        .header("last-event-id", "soon")
        .call()
        .await
        .expect(400);
}

on_postgres!(subscribers_of_another_replica_see_all_events);
async fn subscribers_of_another_replica_see_all_events(backend: Backend) {
    events_reach_another_replica(backend, None).await;
}

on_postgres!(subscribers_of_another_replica_see_all_events_over_nats);
async fn subscribers_of_another_replica_see_all_events_over_nats(backend: Backend) {
    if let Some(bus) = hub_tests::nats_url() {
        events_reach_another_replica(backend, Some(bus)).await;
    }
}

/// What one replica stores reaches the subscribers of another: over NATS, and without a bus by
/// polling the database.
async fn events_reach_another_replica(backend: Backend, bus: Option<String>) {
    let settings = Settings {
        bus: bus.clone(),
        ..Settings::default()
    };
    let options = || Options {
        settings: settings.clone(),
        ..Options::default()
    };
    let app = TestApp::with(backend, options()).await;
    let replica = TestApp::replica_of(&app, options()).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let mut there = hub.clone();
    there.client = hub.client.at(&replica.url);
    let mut reader = Reader::open(&tenant.client.at(&replica.url), BLE, None).await;
    let mut sent = Vec::new();
    for hub in [&hub, &there, &hub, &hub, &there, &hub] {
        sent.extend(hub.upload_events(10).await.events);
    }
    let seen = reader.take(sent.len()).await;
    for (seen, sent) in seen.iter().zip(&sent) {
        assert_eq!(
            seen.data["eventUuid"],
            json!(sent.event_uuid),
            "with bus {bus:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_reader_is_disconnected_and_can_resume() {
    let settings = Settings {
        upload_limit_per_minute: Some(100_000),
        ..Settings::default()
    };
    // However long the uploads take, the reader is cut off for what waits for it, not for the time.
    let app = TestApp::configured(
        Backend::Sqlite,
        Options {
            settings,
            ..Options::default()
        },
        |config| {
            config.stream_times.stall = Duration::from_secs(3600);
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let mut sleeper = Reader::open(&tenant.client, BLE, None).await;
    // However it is cut off later, there is an event to resume after.
    hub.upload(&events(1)).await.expect(201);
    let mut last = sleeper.take(1).await.remove(0).id;
    // More than all buffers between the two hold.
    let mut sent = 0;
    let slow_readers = || app.app.metrics.stream_slow_readers.get();
    while sent < 200_000 && slow_readers() == 0 {
        let mut upload = events(2000);
        for event in &mut upload.events {
            event.payload.name = Some("x".repeat(200));
        }
        // A service that is busy says so, and hubs come again.
        let mut reply = hub.upload(&upload).await;
        while reply.status == 503 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            reply = hub.upload(&upload).await;
        }
        reply.expect(201);
        sent += 2000;
    }
    let mut seen = 0;
    while let Some(event) = sleeper.next().await {
        seen += 1;
        last = event.id;
    }
    assert!(
        seen < sent,
        "the stream ended before all {sent} events: {seen}"
    );
    assert_eq!(
        slow_readers(),
        1,
        "readers cut off after {seen} of {sent} events"
    );
    // What waited for the reader is let go of once its connection is gone; until then the tenant
    // may have no memory for another.
    let resumed = async {
        loop {
            let mut resumed = Reader::open(&tenant.client, BLE, Some(&last)).await;
            if let Some(event) = resumed.next().await {
                return event;
            }
        }
    };
    let resumed = tokio::time::timeout(PATIENCE, resumed)
        .await
        .expect("the stream goes on");
    assert_ne!(resumed.id, last);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_are_for_members_only() {
    let app = TestApp::new(Backend::Sqlite).await;
    let tenant = Tenant::create(&app.client()).await;
    let viewer = tenant.member(Role::Viewer).await;
    drop(Reader::open(&viewer, BLE, None).await);
    let stranger = Tenant::create(&app.client())
        .await
        .owner
        .client
        .tenant(tenant.tenant_uuid);
    stranger.get(BLE).call().await.expect(403);
    app.client().get(BLE).call().await.expect(401);
}
