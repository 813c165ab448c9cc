//! What bodies may use of the service's memory: large uploads, slow ones, large pages.

use std::time::Duration;

use futures_util::future::join_all;
use hub_base::db::sql;
use hub_core::config::Settings;
use hub_protocol::ble::BleUploadResult;
use hub_tests::events;
use hub_tests::{
    Backend, Call, Follower, Options, SimulatedHub, Tenant, TestApp, on_each_database,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const MIB: usize = 1 << 20;
/// The largest upload, unpacked.
const LARGEST: usize = 32 * MIB;

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).expect("packed")
}

async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A small body that unpacks to the limit.
fn bomb() -> Vec<u8> {
    let mut body = format!(r#"{{"batchUuid":"{}","events":["#, uuid::Uuid::new_v4()).into_bytes();
    body.resize(LARGEST - 2, b' ');
    body.extend(b"]}");
    let packed = zstd(&body);
    assert!(packed.len() < 4096, "{} bytes", packed.len());
    packed
}

on_each_database!(parallel_bombs_get_the_share_of_one_tenant);
async fn parallel_bombs_get_the_share_of_one_tenant(backend: Backend) {
    let app = TestApp::new(backend).await;
    let (attacker, other) = (
        Tenant::create(&app.client()).await,
        Tenant::create(&app.client()).await,
    );
    let (hub, neighbour) = (
        SimulatedHub::claim(&attacker).await,
        SimulatedHub::claim(&other).await,
    );
    let bomb = bytes::Bytes::from(bomb());
    let send = || {
        let request = hub
            .client
            .post("/v1/ble/events")
            .header("content-type", "application/json");
        request
            .header("content-encoding", "zstd")
            .body(bomb.clone())
            .call()
    };
    let memory = &app.app.bodies;
    let attack = join_all((0..64).map(|_| send()));
    let watch = async {
        let mut most = 0;
        for _ in 0..40 {
            most = most.max(memory.unpacked.used_bytes());
            neighbour.upload_events(1).await;
        }
        most
    };
    let (replies, most) = tokio::join!(attack, watch);
    // The neighbour has its own, which is little.
    assert!(most <= 64 * MIB + 64 * 1024, "{most} bytes for one tenant");
    let count = |status: u16| {
        replies
            .iter()
            .filter(|reply| reply.status == status)
            .count()
    };
    assert!(count(201) > 0, "one at a time is accepted");
    assert!(
        count(429) > 32,
        "and most of those at once are not: {}",
        count(429)
    );
    assert_eq!(count(201) + count(429), 64, "nothing else happens");
    let refused = replies
        .iter()
        .find(|reply| reply.status == 429)
        .expect("a refusal");
    assert_eq!(
        (
            refused.problem().code.as_str(),
            refused.header("retry-after")
        ),
        ("RATE_LIMITED", "1")
    );
    // The writer answers before it forgets an upload.
    until(|| memory.used_bytes() == 0).await;
    send().await.expect(201);
}

/// Sends the head of an upload and a part of its body.
async fn begin_upload(hub: &SimulatedHub, length: usize, sent: usize) -> TcpStream {
    let mut stream = TcpStream::connect(hub.client.url.trim_start_matches("http://"))
        .await
        .expect("a connection");
    let head = format!(
        "POST /v1/ble/events HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n",
        hub.credentials.access_token
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    // What is refused is not read to its end.
    let _ = stream.write_all(&vec![b' '; sent]).await;
    stream
}

async fn status(stream: &mut TcpStream) -> String {
    let mut answer = [0; 12];
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_exact(&mut answer)).await;
    read.expect("an answer in time").expect("an answer");
    String::from_utf8_lossy(&answer[9..]).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_hold_no_more_than_their_share() {
    let settings = Settings {
        body_memory_mib: Some(128),
        ..Settings::default()
    };
    let app = TestApp::with(
        Backend::Sqlite,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let (attacker, other) = (
        Tenant::create(&app.client()).await,
        Tenant::create(&app.client()).await,
    );
    let (hub, neighbour) = (
        SimulatedHub::claim(&attacker).await,
        SimulatedHub::claim(&other).await,
    );
    let mut stalled = Vec::new();
    // The share of one hub is a third, of 32 MiB.
    let memory = &app.app.bodies;
    for number in 1..=3 {
        stalled.push(begin_upload(&hub, 4 * MIB, 3 * MIB).await);
        until(|| memory.arriving.used_bytes() == number * 3 * MIB).await;
    }
    let mut refused = begin_upload(&hub, 3 * MIB, 3 * MIB).await;
    assert_eq!(status(&mut refused).await, "429");
    assert_eq!(
        memory.arriving.used_bytes(),
        9 * MIB,
        "what is refused is released"
    );
    assert_eq!(
        memory.unpacked.used_bytes(),
        0,
        "what has not arrived is not unpacked"
    );
    neighbour.upload_events(3).await;
    let large = vec![b' '; 4 * MIB];
    let request = neighbour
        .client
        .post("/v1/ble/events")
        .header("content-type", "application/json");
    request.body(large).call().await.expect(400);
    drop(stalled);
    until(|| memory.arriving.used_bytes() == 0).await;
    hub.upload_events(1).await;
}

on_each_database!(limit_of_the_minute_is_asked_before_the_body_is_read);
async fn limit_of_the_minute_is_asked_before_the_body_is_read(backend: Backend) {
    let (clock, _) = hub_tests::app::set_clock("2026-03-01T12:00:20Z".parse().expect("a time"));
    let settings = Settings {
        upload_limit_per_minute: Some(1),
        ..Settings::default()
    };
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            settings,
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    hub.upload_events(1).await;
    let mut waiting = begin_upload(&hub, MIB, 0).await;
    assert_eq!(status(&mut waiting).await, "429", "without the body");
}

/// An upload of some large events, unpacked larger than a part.
fn large_upload(events: usize) -> (Vec<u8>, Value) {
    let filler = "x".repeat(15_000);
    let event = |index: usize| {
        json!({"observedAt": "2026-01-31T08:00:00Z", "address": format!("C0:00:00:00:{:02X}:{:02X}", index / 256, index % 256),
            "filler": filler})
    };
    let upload = json!({"batchUuid": uuid::Uuid::new_v4(), "events": (0..events).map(event).collect::<Vec<_>>()});
    (
        zstd(upload.to_string().as_bytes()),
        upload["batchUuid"].clone(),
    )
}

on_each_database!(upload_in_parts_is_counted_and_stored_once);
async fn upload_in_parts_is_counted_and_stored_once(backend: Backend) {
    const EVENTS: i64 = 700;
    let (clock, _) = hub_tests::app::set_clock("2026-03-01T12:00:20Z".parse().expect("a time"));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let (body, batch_uuid) = large_upload(EVENTS as usize);
    let send = async || {
        let request = hub
            .client
            .post("/v1/ble/events")
            .header("content-type", "application/json");
        let reply = request
            .header("content-encoding", "zstd")
            .body(body.clone())
            .call()
            .await
            .expect(201);
        let result: BleUploadResult = reply.data();
        assert_eq!(result.accepted, EVENTS);
        (
            result.duplicate,
            reply.header("ratelimit-remaining").to_owned(),
        )
    };
    let stored = async || events::count(&app.app.db, tenant.tenant_uuid).await;
    assert_eq!(
        send().await,
        (false, "99".to_owned()),
        "one upload of the minute"
    );
    assert_eq!(stored().await, EVENTS);
    let listed = tenant
        .client
        .get("/tenant/ble/events?size=1")
        .call()
        .await
        .expect(200);
    let listed: Vec<Value> = listed.data();
    assert_eq!(
        listed[0]["address"],
        format!(
            "C0:00:00:00:{:02X}:{:02X}",
            (EVENTS - 1) / 256,
            (EVENTS - 1) % 256
        )
    );
    assert_eq!(send().await, (true, "98".to_owned()), "again");
    assert_eq!(stored().await, EVENTS);
    // As if the service had ended before the last part: what is there already is not stored again.
    let mut tx = app.app.db.begin().await.expect("a transaction");
    let key = format!("single/{}", batch_uuid.as_str().expect("a uuid"));
    let keys = sql("DELETE FROM upload_keys WHERE idempotency_key = $1")
        .bind(key)
        .execute(&mut tx)
        .await;
    assert_eq!(keys.expect("deleted"), 1);
    tx.commit_unaudited("a test").await.expect("committed");
    assert_eq!(send().await, (false, "97".to_owned()));
    let more = stored().await - EVENTS;
    assert!(
        (1..EVENTS / 2).contains(&more),
        "{more} events are stored again: those of the last part"
    );
}

on_each_database!(pages_and_streams_of_large_logs_are_bounded_in_bytes);
async fn pages_and_streams_of_large_logs_are_bounded_in_bytes(backend: Backend) {
    const ENTRIES: usize = 40;
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let entry = |index: usize| json!({"number": index, "text": "x".repeat(255 * 1024)});
    let entries = Value::from((0..ENTRIES).map(entry).collect::<Vec<_>>()).to_string();
    let uploads = format!("/v1/hubs/{}/logs", hub.hub_uuid);
    let request = hub
        .client
        .post(&uploads)
        .header("content-type", "application/json");
    request
        .header("content-encoding", "zstd")
        .body(zstd(entries.as_bytes()))
        .call()
        .await
        .expect(204);
    for list in ["hubs", "hub-monitoring"] {
        let path = format!("/tenant/{list}/{}/logs", hub.hub_uuid);
        tenant.client.get(&path).call().await.expect(200);
        let refused = tenant
            .client
            .get(&format!("{path}?size=100"))
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(refused.errors[0].field, "size");
        assert!(refused.message.contains("8 MiB"), "{}", refused.message);
    }
    let path = format!("/tenant/stream/hubs/{}/logs", hub.hub_uuid);
    let follower = Follower::start(&tenant.client, &path, ENTRIES, 1);
    follower.until(ENTRIES).await;
    let numbers = follower
        .seen()
        .into_iter()
        .map(|event| event.data["data"]["number"].clone());
    assert_eq!(
        numbers.collect::<Vec<_>>(),
        (0..ENTRIES).map(Value::from).collect::<Vec<_>>()
    );
}
