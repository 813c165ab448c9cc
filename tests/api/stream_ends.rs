//! A stream ends when it has to, also while it catches up from an old id and its reader reads
//! slowly or not at all; and one caller cannot use up the streams of all.

use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use hub_base::db::sql;
use hub_core::config::{Settings, StreamTimes};
use hub_identity::authz::permission::Role;
use hub_tests::{
    Backend, Call, Client, Options, Person, SimulatedHub, Tenant, TestApp, on_each_database,
};
use reqwest::header::HeaderName;
use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};
use serde_json::json;

const BLE: &str = "/tenant/stream/ble/events";
const PATIENCE: Duration = Duration::from_secs(20);
/// Log entries that are stored before a reader comes, and the bytes of each: far more than the
/// buffers between it and the service hold.
const ENTRIES: usize = 80;
const ENTRY_BYTES: usize = 100_000;
const STORED_BYTES: usize = ENTRIES * ENTRY_BYTES;

const LONG: Duration = Duration::from_secs(3_600);
/// Everything takes for ever; each test shortens what it is about.
const ENDLESS: StreamTimes = StreamTimes {
    heartbeat: LONG,
    recheck: Duration::from_millis(100),
    lifetime: LONG,
    stall: LONG,
    farewell: Duration::from_millis(200),
};

/// A service with stored log entries of a hub.
struct Past {
    app: TestApp,
    tenant: Tenant,
    stream: String,
}

impl Past {
    async fn new(backend: Backend, times: StreamTimes) -> Self {
        let app = TestApp::configured(backend, Options::default(), |config| {
            config.stream_times = times
        })
        .await;
        let tenant = Tenant::create(&app.client()).await;
        let hub = SimulatedHub::claim(&tenant).await;
        let entries = vec![json!({"text": "-".repeat(ENTRY_BYTES)}); ENTRIES / 4];
        for _ in 0..4 {
            hub.client
                .post(&format!("/v1/hubs/{}/logs", hub.hub_uuid))
                .json(&entries)
                .call()
                .await
                .expect(204);
        }
        let stream = format!("/tenant/stream/hubs/{}/logs", hub.hub_uuid);
        Self {
            app,
            tenant,
            stream,
        }
    }

    fn open_streams(&self) -> i64 {
        self.app.app.metrics.stream_subscribers.get()
    }

    /// Reads from the beginning, over a connection with small buffers. Returns once the service has
    /// begun to send.
    fn reader(&self, client: &Client) -> SlowReader {
        let reader = SlowReader::open(client, &self.stream);
        assert_eq!(self.open_streams(), 1);
        reader
    }

    async fn until_no_stream_is_open(&self, what: &str) {
        let began = Instant::now();
        while self.open_streams() > 0 {
            assert!(began.elapsed() < PATIENCE, "a stream goes on: {what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A client that decides itself when it reads.
struct SlowReader {
    socket: TcpStream,
    text: String,
}

impl SlowReader {
    fn open(client: &Client, path: &str) -> Self {
        let address: std::net::SocketAddr = client
            .url
            .trim_start_matches("http://")
            .parse()
            .expect("an address");
        let fd = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        // Set before connecting, so that the window is small from the start.
        sockopt::set_socket_recv_buffer_size(&fd, 16_384).expect("a small buffer");
        connect(&fd, &address).expect("a connection");
        let mut socket = TcpStream::from(fd);
        let mut head =
            format!("GET {path} HTTP/1.1\r\nhost: test\r\nlast-event-id: 2000-01-01T00:00:00Z\r\n");
        for (name, value) in &client.headers {
            head += &format!("{name}: {}\r\n", value.to_str().expect("ASCII"));
        }
        std::io::Write::write_all(&mut socket, format!("{head}\r\n").as_bytes())
            .expect("a request");
        let mut reader = Self {
            socket,
            text: String::new(),
        };
        assert!(reader.read(), "an answer");
        assert!(reader.text.starts_with("HTTP/1.1 200"), "{}", reader.text);
        reader
    }

    /// Reads a little. False at the end of the stream, or if the connection was reset.
    fn read(&mut self) -> bool {
        let mut block = [0; 4_096];
        match self.socket.read(&mut block) {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.text
                    .push_str(&String::from_utf8_lossy(&block[..count]));
                true
            }
        }
    }

    /// Reads a little again and again, too slowly to get everything soon, until the stream ends.
    async fn dawdle(mut self) -> String {
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < PATIENCE, "the stream goes on");
            let read = tokio::task::spawn_blocking(move || (self.read(), self)).await;
            let goes_on;
            (goes_on, self) = read.expect("no panic");
            if !goes_on {
                return self.text;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

on_each_database!(catching_up_stream_ends_when_its_reader_may_read_no_longer);
async fn catching_up_stream_ends_when_its_reader_may_read_no_longer(backend: Backend) {
    let past = Past::new(backend, ENDLESS).await;
    let member = Person::register(&past.app.client()).await;
    let persona = past.tenant.let_in(&member, Role::Viewer).await;
    let key = past
        .tenant
        .api_key(json!({"scopes": ["ble:read", "hubs:read"]}))
        .await;
    let keys = format!("/tenant/api-keys/{}", key.api_key_id);
    let other = past.tenant.api_key(json!({"scopes": ["hubs:read"]})).await;
    let owner = &past.tenant.client;

    let reading = tokio::spawn(
        past.reader(&member.client.tenant(past.tenant.tenant_uuid))
            .dawdle(),
    );
    let path = format!(
        "/tenant/tenants/{}/members/{persona}",
        past.tenant.tenant_uuid
    );
    assert!(owner.delete(&path).call().await.status.is_success());
    past.until_no_stream_is_open("its reader is no member")
        .await;
    let text = reading.await.expect("an end");
    assert!(text.len() < STORED_BYTES, "everything was sent");

    let reading = tokio::spawn(past.reader(&key.client).dawdle());
    owner
        .put(&keys)
        .json(&json!({"scopes": ["ble:read"]}))
        .call()
        .await
        .expect(200);
    past.until_no_stream_is_open("its key has lost the scope")
        .await;
    assert!(
        reading.await.expect("an end").len() < STORED_BYTES,
        "everything was sent"
    );

    let reading = tokio::spawn(past.reader(&other.client).dawdle());
    owner
        .delete(&format!("/tenant/api-keys/{}", other.api_key_id))
        .call()
        .await
        .expect(200);
    past.until_no_stream_is_open("its key is no longer active")
        .await;
    assert!(
        reading.await.expect("an end").len() < STORED_BYTES,
        "everything was sent"
    );
}

on_each_database!(catching_up_stream_has_heartbeats_and_an_end);
async fn catching_up_stream_has_heartbeats_and_an_end(backend: Backend) {
    let times = StreamTimes {
        heartbeat: Duration::from_millis(1),
        lifetime: Duration::from_secs(1),
        ..ENDLESS
    };
    let past = Past::new(backend, times).await;
    let text = past.reader(&past.tenant.client).dawdle().await;
    past.until_no_stream_is_open("its time is over").await;
    assert!(text.len() < STORED_BYTES, "everything was sent");
    assert!(
        text.contains(": ping\n\n"),
        "no heartbeat in {} bytes",
        text.len()
    );
    assert!(text.contains("event: hub_log\n"), "no entry");
}

on_each_database!(stream_ends_although_its_reader_does_not_read);
/// Of a reader that has stopped reading, the service notices nothing by itself.
async fn stream_ends_although_its_reader_does_not_read(backend: Backend) {
    let second = Duration::from_secs(1);
    for (times, what) in [
        (
            StreamTimes {
                stall: second,
                ..ENDLESS
            },
            "its reader has stalled",
        ),
        (
            StreamTimes {
                lifetime: second,
                ..ENDLESS
            },
            "its time is over",
        ),
    ] {
        let past = Past::new(backend, times).await;
        let mut reader = past.reader(&past.tenant.client);
        past.until_no_stream_is_open(what).await;
        let slow_readers = past.app.app.metrics.stream_slow_readers.get();
        assert_eq!(slow_readers, u64::from(times.stall == second));
        while reader.read() {}
        assert!(reader.text.len() < STORED_BYTES, "everything was sent");
    }
    let past = Past::new(backend, ENDLESS).await;
    let _reader = past.reader(&past.tenant.client);
    past.app.app.shutdown.cancel();
    past.until_no_stream_is_open("the service shuts down").await;
}

on_each_database!(a_stream_without_news_is_no_stalled_one);
async fn a_stream_without_news_is_no_stalled_one(backend: Backend) {
    let times = StreamTimes {
        stall: Duration::from_millis(300),
        heartbeat: Duration::from_millis(100),
        ..ENDLESS
    };
    let app = TestApp::configured(backend, Options::default(), |config| {
        config.stream_times = times
    })
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let mut reader = SlowReader::open(&tenant.client, BLE);
    while reader.text.matches(": ping").count() < 10 {
        assert!(reader.read(), "the stream goes on");
    }
    assert_eq!(app.app.metrics.stream_slow_readers.get(), 0);
}

on_each_database!(one_caller_cannot_use_up_the_streams_of_all);
async fn one_caller_cannot_use_up_the_streams_of_all(backend: Backend) {
    let settings = Settings {
        streams_per_tenant: Some(20),
        ..Settings::default()
    };
    let app = TestApp::with(
        backend,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let logs = format!("/tenant/stream/hubs/{}/logs", hub.hub_uuid);
    let viewer = tenant.member(Role::Viewer).await;
    let key = tenant.stored_api_key(&app, "ble:read hubs:read").await;
    let key = app
        .client()
        .tenant(tenant.tenant_uuid)
        .header(HeaderName::from_static("x-api-key"), &key);
    let mut open = Vec::new();
    for (client, paths) in [(&viewer, [BLE, &logs]), (&key, [BLE, &logs])] {
        for index in 0..10 {
            let response = client
                .get(paths[index % 2])
                .send()
                .await
                .expect("an answer");
            assert_eq!(response.status(), 200, "stream {index}");
            open.push(response);
        }
        let refused = client.get(BLE).call().await.expect(429);
        assert!(!refused.header("retry-after").is_empty());
        assert!(
            refused.problem().message.contains("streams-per-tenant"),
            "{}",
            refused.body
        );
        if open.len() == 10 {
            assert!(
                refused.problem().message.contains("one caller"),
                "{}",
                refused.body
            );
        }
    }
    // The tenant has all it may have; another tenant has its own.
    tenant.client.get(BLE).call().await.expect(429);
    let stranger = Tenant::create(&app.client()).await;
    stranger.client.get(BLE).call().await.expect(200);
    // A closed stream makes room.
    open.truncate(10);
    let began = Instant::now();
    while tenant.client.get(BLE).call().await.status != 200 {
        assert!(began.elapsed() < PATIENCE, "no room");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The tenant's own limit goes before the setting's.
    drop(open);
    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql("UPDATE tenants SET stream_limit = 1 WHERE tenant_uuid = $1")
        .bind(tenant.tenant_uuid)
        .execute(&mut tx)
        .await
        .expect("a limit");
    tx.commit_unaudited("a test's own set-up")
        .await
        .expect("a commit");
    while app.app.metrics.stream_subscribers.get() > 0 {
        assert!(began.elapsed() < PATIENCE, "streams stay open");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let held = tenant.client.get(BLE).send().await.expect("an answer");
    assert_eq!(held.status(), 200);
    tenant.client.get(BLE).call().await.expect(429);
    viewer.get(BLE).call().await.expect(429);
}

on_each_database!(large_records_are_read_few_at_a_time);
/// A log entry may have 256 KiB: a read of them is bounded in bytes too.
async fn large_records_are_read_few_at_a_time(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let path = format!("/v1/hubs/{}/logs", hub.hub_uuid);
    let large = "x".repeat(100_000);
    let small: Vec<_> = (0..600).map(|n| json!({"n": n})).collect();
    hub.client
        .post(&path)
        .json(&vec![json!({"x": large}); 10])
        .call()
        .await
        .expect(204);
    hub.client.post(&path).json(&small).call().await.expect(204);
    hub.client
        .post(&path)
        .json(&json!({"x": "x".repeat(250_000)}))
        .call()
        .await
        .expect(204);
    let mut counts = Vec::new();
    let mut after = 0;
    loop {
        let range = hub_base::db::LogRange {
            after,
            last: i64::MAX,
            max_rows: 500,
            max_bytes: 200_016,
        };
        let mut conn = app.app.db.read().await.expect("a connection");
        let records = hub_fleet::telemetry::logs_after(
            &mut conn,
            tenant.tenant_uuid,
            Some(hub.hub_uuid),
            range,
        )
        .await
        .expect("records");
        let Some(last) = records.last() else { break };
        assert!(records.is_sorted_by_key(|record| record.id) && records[0].id > after);
        after = last.id;
        counts.push(records.len());
    }
    assert_eq!(counts, [2, 2, 2, 2, 2, 500, 100, 1], "on {backend}");
}
