//! Days that are closed are in Parquet files, and the API says of them what it said before.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hub_base::db::{Db, sql};
use hub_core::config::Settings;
use hub_core::tasks::Done;
use hub_ingest::{ProcessingStatus, Record, StoredEvent};
use hub_protocol::{HubUuid, Timestamp};
use hub_tests::app::set_clock;
use hub_tests::devices::{make_device, make_model};
use hub_tests::process::{Cloud, program};
use hub_tests::s3::{BUCKET, S3Server};
use hub_tests::{
    Backend, Call, Client, Options, SimulatedHub, Tenant, TestApp, duckdb, events, on_each_database,
};
use rand::RngExt;
use serde_json::{Value, json};
use tokio::process::Command;

const HOUR_MICROS: i64 = 3_600_000_000;
const DAY_MICROS: i64 = 24 * HOUR_MICROS;

struct World {
    app: TestApp,
    micros: Arc<AtomicI64>,
    tenant: Tenant,
    hubs: Vec<HubUuid>,
    device: i64,
    model: uuid::Uuid,
}

impl World {
    /// A service that moves days to files a day after their end, in files of 200 events, with the
    /// events of three days.
    async fn new(backend: Backend) -> Self {
        let (clock, micros) = set_clock("2026-03-15T01:00:00Z".parse().expect("a time"));
        let options = Options {
            clock: Some(clock),
            settings: Settings {
                history_after: Some("1d".into()),
                hub_token_lifetime: Some("365d".into()),
                ..Settings::default()
            },
        };
        let app =
            TestApp::configured(backend, options, |config| config.history_group_events = 100).await;
        let mut tenant = Tenant::create(&app.client()).await;
        // A key does not expire.
        tenant.client = tenant
            .api_key(json!({"scopes": ["*"], "rateLimitPerMinute": 100_000}))
            .await
            .client;
        let model = make_model(&tenant, "Thermometer").await;
        let device = make_device(&tenant, model, json!({"address": "C4:11:7D:DA:71:13"})).await;
        let mut hubs = Vec::new();
        for _ in 0..3 {
            hubs.push(SimulatedHub::claim(&tenant).await.hub_uuid);
        }
        let world = Self {
            app,
            micros,
            tenant,
            hubs,
            device: device["deviceInstanceId"].as_i64().expect("an id"),
            model,
        };
        for hour in 0..60 {
            world.store(hour).await;
        }
        world
    }

    /// The events of an hour before the first day's end but two.
    async fn store(&self, hour: i64) {
        let first_id = self.now() - 3 * DAY_MICROS + hour * HOUR_MICROS;
        let values = |number: i64| json!({"temperature": number, "humidity": 40});
        let record = |number: i64| {
            let observed_at = Timestamp::from_micros(first_id + number);
            let reading =
                json!({"deviceUuid": self.model, "protocolRevision": 3, "values": values(number)});
            let event = json!({
                "observedAt": observed_at, "address": "C4:11:7D:DA:71:13",
                "addressType": "random", "rssi": -40 - number,
            });
            Record {
                device_instance_id: (number % 3 == 0).then_some(self.device),
                processing_status: ProcessingStatus::Decoded,
                reading: Some(reading.to_string().into()),
                ..Record::new(event.to_string().into())
            }
        };
        let records: Vec<Record> = (0..20).map(record).collect();
        let hub_uuid = self.hubs[usize::try_from(hour).expect("an hour") % self.hubs.len()];
        let of = (self.tenant.tenant_uuid, hub_uuid);
        events::put(&self.app.app.db, of, first_id, &records).await;
    }

    fn now(&self) -> i64 {
        self.app.app.clock.now().as_micros()
    }

    async fn stored(&self) -> Vec<StoredEvent> {
        events::of_log(&self.app.app.event_log, self.tenant.tenant_uuid).await
    }

    /// Does what the background task does, until nothing is left to do.
    async fn close(&self) {
        let app = &self.app.app;
        let perform = || hub_tests::app::perform(app, "history", Value::Null);
        while perform().await == Done::RunAt(app.clock.now()) {}
    }

    /// The same, also with what waits for readers.
    async fn close_and_clear(&self) {
        self.close().await;
        self.micros.fetch_add(200_000_000, Ordering::Relaxed);
        self.close().await;
    }

    async fn rows(&self) -> i64 {
        events::count(&self.app.app.db, self.tenant.tenant_uuid).await
    }

    async fn get(&self, path: &str) -> Value {
        self.tenant.client.get(path).call().await.expect(200).json()
    }

    /// What the command line says, as JSON.
    async fn hub(&self, arguments: &[&str]) -> Value {
        let key = self.tenant.client.headers["x-api-key"].to_str();
        let output = Command::new(program("hub"))
            .args(arguments)
            .args(["--json", "--service-url", &self.app.url])
            .env("HUB_API_KEY", key.expect("a key"))
            .env("HUB_TENANT", self.tenant.tenant_uuid.to_string())
            .output()
            .await
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        parquet_files(&self.app.app.config.data_dir.join("files"), &mut files);
        files.sort();
        files
    }
}

fn parquet_files(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => parquet_files(&path, files),
            false => files.push(path),
        }
    }
}

on_each_database!(the_api_says_the_same_of_closed_days);
async fn the_api_says_the_same_of_closed_days(backend: Backend) {
    let world = World::new(backend).await;
    let from = world.stored().await[0].ble_event_id;
    let at = |micros: i64| Timestamp::from_micros(from + micros);
    let device = world.device;
    let hub_uuid = world.hubs[1];
    let paths = [
        "/tenant/ble/events?size=500&page=2".to_owned(),
        format!("/tenant/ble/events?hubUuid={hub_uuid}&size=50&page=3"),
        format!("/tenant/ble/events?deviceInstanceId={device}&size=50"),
        format!("/tenant/ble/events?from={}&to={}", at(0), at(DAY_MICROS)),
        "/tenant/ble-query/events?size=30&page=7&sort=receivedAt,asc".to_owned(),
        "/tenant/ble-query/events?processingStatus=DECODED&view=observations&size=100".to_owned(),
        format!("/tenant/ble-query/events/{from}"),
        format!("/tenant/devices/{device}/sensor-data?size=200"),
        format!(
            "/tenant/devices/{device}/sensor-data?from={}&to={}&every=1h",
            at(0),
            at(2 * DAY_MICROS)
        ),
        format!(
            "/tenant/devices/{device}/sensor-data?from={}&to={}&every=5m",
            at(0),
            at(DAY_MICROS)
        ),
        format!("/tenant/devices/{device}/receptions?from={}", at(0)),
        format!("/tenant/devices/{device}/timeline?from={}", at(0)),
    ];
    let mut before = Vec::new();
    for path in &paths {
        before.push(world.get(path).await);
    }
    assert_eq!(
        world.get("/tenant/history").await["data"]["closedTo"],
        Value::Null
    );
    let stored = world.stored().await;

    world.close().await;
    assert_eq!(
        world.rows().await,
        stored.len() as i64,
        "readers may be at them"
    );
    for (path, before) in paths.iter().zip(&before) {
        assert_eq!(world.get(path).await, *before, "{path}");
    }
    world.micros.fetch_add(200_000_000, Ordering::Relaxed);
    world.close().await;
    let left = world.rows().await;
    let closed = stored.len() as i64 - left;
    assert!(left > 0 && closed > 600, "{left} left, {closed} closed");
    for (path, before) in paths.iter().zip(&before) {
        // A timeline ends now.
        if !path.contains("timeline") {
            assert_eq!(world.get(path).await, *before, "{path}");
        }
    }
    assert_eq!(world.stored().await, stored);

    let history = world.get("/tenant/history").await["data"].clone();
    assert_eq!(history["events"], closed);
    assert_eq!(history["afterSecs"], 86_400);
    let listed = world.get("/tenant/history/files?size=100").await["data"].clone();
    let listed = listed.as_array().expect("files");
    assert_eq!(history["files"], listed.len());
    let mut paths: Vec<PathBuf> = listed
        .iter()
        .map(|file| {
            let path = file["path"].as_str().expect("a path");
            assert!(
                path.starts_with(history["location"].as_str().expect("a path")),
                "{path}"
            );
            world.app.app.config.data_dir.join("files").join(path)
        })
        .collect();
    paths.sort();
    assert_eq!(paths, world.files());
    assert_eq!(world.hub(&["history", "show"]).await, history);
    assert_eq!(world.hub(&["history", "files"]).await, json!(listed));
    let day = at(DAY_MICROS).to_string();
    let later = world.hub(&["history", "files", "--from", &day]).await;
    let later = later.as_array().expect("files").len();
    assert!((1..listed.len()).contains(&later), "{later}");
    let days: std::collections::BTreeSet<&str> = listed
        .iter()
        .map(|file| &file["from"].as_str().expect("a time")[..10])
        .collect();
    assert!(days.len() > 1, "{days:?}");

    if let Some(rows) = duckdb::rows(&world.app.app.config.data_dir.join("files")).await {
        let row = |event| duckdb::row_of(world.tenant.tenant_uuid, event);
        let closed = usize::try_from(closed).expect("a number");
        let expected: Vec<Value> = stored[..closed].iter().map(row).collect();
        assert_eq!(rows, expected);
    }

    // Retention drops files whose last event is old, and nothing else.
    let first_day = stored
        .iter()
        .filter(|event| event.ble_event_id / DAY_MICROS == from / DAY_MICROS);
    let first_day = first_day.count();
    world
        .micros
        .store(from + 31 * DAY_MICROS, Ordering::Relaxed);
    let perform = || hub_tests::app::perform(&world.app.app, "retention.ble_events", Value::Null);
    while perform().await == Done::RunAt(world.app.app.clock.now()) {}
    assert_eq!(world.stored().await, stored[first_day..]);
    let total: i64 =
        sql("SELECT CAST(SUM(bytes) AS BIGINT) FROM stored_bytes WHERE tenant_uuid = $1")
            .bind(world.tenant.tenant_uuid)
            .scalar(&mut world.app.app.db.read().await.expect("a connection"))
            .await
            .unwrap_or(0);
    assert!(
        total <= 0,
        "events that were put past the service are not counted: {total}"
    );
}

on_each_database!(a_stop_at_any_moment_loses_and_doubles_nothing);
async fn a_stop_at_any_moment_loses_and_doubles_nothing(backend: Backend) {
    let world = World::new(backend).await;
    let stored = world.stored().await;
    for round in 0..100 {
        let app = world.app.app.clone();
        let work = tokio::spawn(async move {
            hub_tests::app::perform(&app, "history", Value::Null).await;
        });
        tokio::time::sleep(Duration::from_micros(rand::rng().random_range(0..20_000))).await;
        work.abort();
        let _ = work.await;
        if round % 10 == 0 {
            world.micros.fetch_add(200_000_000, Ordering::Relaxed);
            assert_eq!(world.stored().await, stored);
        }
    }
    // Drafts of those that were stopped go after an hour.
    world.close_and_clear().await;
    world.micros.fetch_add(2 * HOUR_MICROS, Ordering::Relaxed);
    world.close_and_clear().await;
    assert_eq!(world.stored().await, stored);
    let files = world.get("/tenant/history").await["data"]["files"].clone();
    assert_eq!(files, world.files().len());
    if let Some(rows) = duckdb::rows(&world.app.app.config.data_dir.join("files")).await {
        let row = |event| duckdb::row_of(world.tenant.tenant_uuid, event);
        let expected: Vec<Value> = stored.iter().map(row).collect();
        assert_eq!(rows, expected[..rows.len()]);
        assert!(rows.len() > 600);
    }
}

on_each_database!(two_replicas_close_the_same_days);
async fn two_replicas_close_the_same_days(backend: Backend) {
    let world = World::new(backend).await;
    let stored = world.stored().await;
    let perform = || hub_tests::app::perform(&world.app.app, "history", Value::Null);
    tokio::join!(perform(), perform(), perform());
    world.close_and_clear().await;
    world.micros.fetch_add(2 * HOUR_MICROS, Ordering::Relaxed);
    world.close_and_clear().await;
    assert_eq!(world.stored().await, stored);
    let files = world.get("/tenant/history").await["data"]["files"].clone();
    assert_eq!(files, world.files().len());
}

on_each_database!(what_cannot_be_moved_holds_up_its_tenant_alone);
async fn what_cannot_be_moved_holds_up_its_tenant_alone(backend: Backend) {
    let world = World::new(backend).await;
    let hub_uuid = world.hubs[0];
    let other = Tenant::create(&world.app.client()).await;
    let day = world.now() - 3 * DAY_MICROS;
    let records = [Record::new(
        r#"{"address":"C4:11:7D:DA:71:13"}"#.to_owned().into(),
    )];
    events::put(
        &world.app.app.db,
        (other.tenant_uuid, hub_uuid),
        day,
        &records,
    )
    .await;
    let damage = |texts: Vec<u8>| async {
        let mut tx = world.app.app.db.begin().await.expect("a transaction");
        sql("UPDATE ble_batches SET texts = $2 WHERE tenant_uuid = $1")
            .bind((other.tenant_uuid, texts))
            .run(&mut tx)
            .await
            .expect("a change");
        tx.commit_unaudited("a test").await.expect("a commit");
    };
    let whole: Vec<u8> = sql("SELECT texts FROM ble_batches WHERE tenant_uuid = $1")
        .bind(other.tenant_uuid)
        .scalar(&mut world.app.app.db.read().await.expect("a connection"))
        .await
        .expect("a batch");
    damage(vec![7; 9]).await;
    world.close_and_clear().await;
    assert!(world.rows().await < 1200, "the others are moved");
    assert_eq!(events::count(&world.app.app.db, other.tenant_uuid).await, 1);
    assert_eq!(world.app.app.metrics.history_behind.get(), 1);
    damage(whole).await;
    world.close_and_clear().await;
    assert_eq!(events::count(&world.app.app.db, other.tenant_uuid).await, 0);
    assert_eq!(world.app.app.metrics.history_behind.get(), 0);
}

on_each_database!(a_damaged_file_is_named_and_not_read);
async fn a_damaged_file_is_named_and_not_read(backend: Backend) {
    let world = World::new(backend).await;
    let stored = world.stored().await;
    world.close_and_clear().await;
    let file = world.files()[0].clone();
    let whole = std::fs::read(&file).expect("a file");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let oldest = format!("/tenant/ble-query/events/{}", stored[0].ble_event_id);
    let newest = format!(
        "/tenant/ble-query/events/{}",
        stored[stored.len() - 1].ble_event_id
    );
    let failures = world.app.app.metrics.history_read_failures.get();
    for bytes in [&whole[..whole.len() - 1], &flipped, &[]] {
        std::fs::write(&file, bytes).expect("a file");
        let reply = world.tenant.client.get(&oldest).call().await.expect(503);
        assert_eq!(reply.problem().code, "HISTORY_DAMAGED");
        world.get(&newest).await;
    }
    std::fs::remove_file(&file).expect("a file");
    let reply = world.tenant.client.get(&oldest).call().await.expect(503);
    assert_eq!(reply.problem().code, "HISTORY_DAMAGED");
    assert!(world.app.app.metrics.history_read_failures.get() > failures);
    // A copy of it is as good.
    std::fs::write(&file, &whole).expect("a file");
    world.get(&oldest).await;
    assert_eq!(world.stored().await, stored);
}

on_each_database!(files_in_a_bucket_are_read_by_their_urls);
async fn files_in_a_bucket_are_read_by_their_urls(backend: Backend) {
    let server = S3Server::start().await;
    let files = format!("s3://{BUCKET}/hubs/eu");
    let settings = ["--files", &files, "--history-after", "1s"];
    let mut cloud = Cloud::start_in(backend, &settings, &server.environment()).await;
    let tenant = Tenant::create(&Client::new(&cloud.url)).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let yesterday = hub_base::clock::Clock::System.now().as_micros() - DAY_MICROS;
    let record = |number: i64| {
        let event = json!({
            "observedAt": Timestamp::from_micros(yesterday + number), "rssi": -number % 90,
            "address": "C4:11:7D:DA:71:13", "addressType": "random",
        });
        Record::new(event.to_string().into())
    };
    let records: Vec<Record> = (0..500).map(record).collect();
    let of = (tenant.tenant_uuid, hub.hub_uuid);
    assert_eq!(cloud.stop().await, Some(0));
    let db = Db::open(&cloud.database_url()).expect("the database opens");
    events::put(&db, of, yesterday, &records).await;
    let mut tx = db.begin().await.expect("a transaction");
    sql("UPDATE tasks SET next_attempt_at = $1 WHERE kind = 'history'")
        .bind(Timestamp::from_micros(yesterday))
        .run(&mut tx)
        .await
        .expect("a task");
    tx.commit_unaudited("a test").await.expect("a commit");
    db.close().await;
    cloud.start_again().await;
    let client = tenant.client.at(&cloud.url);
    let listed = loop {
        let listed = client
            .get("/tenant/history/files")
            .call()
            .await
            .expect(200)
            .json();
        match listed["data"]
            .as_array()
            .is_some_and(|files| !files.is_empty())
        {
            true => break listed["data"][0].clone(),
            false => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    };
    let history = client
        .get("/tenant/history")
        .call()
        .await
        .expect(200)
        .json();
    let location = format!(
        "s3://{BUCKET}/hubs/eu/history/tenant_uuid={}",
        tenant.tenant_uuid
    );
    assert_eq!(history["data"]["location"], location);
    let url = listed["url"].as_str().expect("a URL");
    let read = reqwest::get(url).await.expect("a response");
    assert_eq!(read.status(), 200);
    let bytes = read.bytes().await.expect("a file");
    assert_eq!(listed["fileBytes"], bytes.len());
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    let page = client
        .get("/tenant/ble/events?size=1")
        .call()
        .await
        .expect(200);
    assert_eq!(page.header("x-total-count"), "500");

    // Without the store the days in it wait, and all else goes on.
    drop(server);
    let path = format!("/tenant/ble-query/events/{}", yesterday + 7);
    let reply = client.get(&path).call().await.expect(503);
    assert_eq!(reply.problem().code, "HISTORY_UNAVAILABLE");
    let hub = SimulatedHub {
        client: hub.client.at(&cloud.url),
        ..hub
    };
    hub.upload_events(3).await;
}
