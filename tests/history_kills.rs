//! The service is killed while days move to files, while these are written again, and while the
//! events of a person's hub go: nothing is lost, doubled or left behind.

use std::path::PathBuf;
use std::time::Duration;

use hub_base::db::{Db, Sql, sql};
use hub_core::EventLog;
use hub_history::{GROUP_EVENTS, History, Place};
use hub_ingest::{ProcessingStatus, Record, StoredEvent};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use hub_tests::devices::make_device;
use hub_tests::people::PASSWORD;
use hub_tests::process::Cloud;
use hub_tests::{
    Backend, Call, Client, Person, SimulatedHub, Tenant, duckdb, events, on_each_database,
};
use prometheus_client::metrics::counter::Counter;
use rand::RngExt;
use serde_json::{Value, json};
use uuid::Uuid;

const DAY_MICROS: i64 = 86_400_000_000;
const DAYS: i64 = 40;
/// Of each of two hubs.
const EVENTS_OF_A_DAY: i64 = 30;
/// Kills of each kind of work: a hundred and more in all, on two databases.
const KILLS: usize = 18;
/// The time after the start at which the process is killed, at most.
const MOST_MILLIS: u64 = 250;
const ADDRESS: &str = "C4:11:22:33:44:55";

struct World {
    cloud: Cloud,
    client: Client,
    tenant_uuid: TenantUuid,
    owner: Person,
    /// The hub of the tenant, and that of the owner.
    hubs: [HubUuid; 2],
}

impl World {
    /// A service that is stopped, with events of days that are to be moved.
    async fn new(backend: Backend) -> Self {
        let settings = ["--history-after", "1s", "--ble-retention", "1000d"];
        let mut cloud = Cloud::start(backend, &settings).await;
        let anyone = Client::new(&cloud.url);
        let tenant = Tenant::create(&anyone).await;
        let key = json!({"scopes": ["*"], "rateLimitPerMinute": 100_000});
        let client = tenant.api_key(key).await.client;
        let template = json!({"template": "bthome/v2"});
        let model = client.post("/tenant/device-catalog").json(&template);
        let model: Value = model.call().await.expect(200).data();
        let model: Uuid = model["deviceUuid"]
            .as_str()
            .and_then(|uuid| uuid.parse().ok())
            .expect("a uuid");
        make_device(&tenant, model, json!({"address": ADDRESS})).await;
        let owner = Person::register(&anyone).await;
        let body = json!({"ownerUserUuid": owner.login.user_uuid});
        let code = client.post("/tenant/hubs/claim-codes").json(&body);
        let code: Value = code.call().await.expect(200).data();
        let code = code["claimCode"].as_str().expect("a code");
        let of_owner = SimulatedHub::claim_with(&anyone, code, &Uuid::new_v4().to_string()).await;
        let hubs = [
            SimulatedHub::claim(&tenant).await.hub_uuid,
            of_owner.hub_uuid,
        ];
        assert_eq!(cloud.stop().await, Some(0));
        let world = Self {
            cloud,
            client,
            tenant_uuid: tenant.tenant_uuid,
            owner,
            hubs,
        };
        let today = hub_base::clock::Clock::System.now().as_micros();
        let db = world.database();
        for day in 0..DAYS {
            let noon = today - today % DAY_MICROS - (DAYS - day) * DAY_MICROS + DAY_MICROS / 2;
            for (hub_uuid, first_id) in hubs.into_iter().zip([noon, noon + DAY_MICROS / 4]) {
                let records: Vec<Record> = (0..EVENTS_OF_A_DAY)
                    .map(|number| record(first_id + number))
                    .collect();
                events::put(&db, (world.tenant_uuid, hub_uuid), first_id, &records).await;
            }
        }
        db.close().await;
        // What a hub heard before it was theirs stays.
        let owned = sql("UPDATE hubs SET owner_since = $1 WHERE hub_uuid = $2");
        let owned = owned.bind((Timestamp::from_micros(0), of_owner.hub_uuid));
        world.change(owned).await;
        world
    }

    fn database(&self) -> Db {
        Db::open(&self.cloud.database_url()).expect("the database opens")
    }

    /// Changes rows while the service is stopped.
    async fn change(&self, statement: Sql) {
        let db = self.database();
        let mut tx = db.begin().await.expect("a transaction");
        statement.run(&mut tx).await.expect("a change");
        tx.commit_unaudited("a test").await.expect("a commit");
        db.close().await;
    }

    /// All background work is due at the next start, also what the killed process was at.
    async fn make_due(&self) {
        let due = sql("UPDATE tasks SET next_attempt_at = $1, runner_uuid = NULL");
        self.change(due.bind(Timestamp::from_micros(0))).await;
    }

    /// Kills the service soon after each start.
    async fn kill_often(&mut self) {
        for _ in 0..KILLS {
            self.make_due().await;
            self.cloud.start_again().await;
            let millis = rand::rng().random_range(0..MOST_MILLIS);
            tokio::time::sleep(Duration::from_millis(millis)).await;
            self.cloud.kill().await;
        }
        self.make_due().await;
        self.cloud.start_again().await;
    }

    async fn get(&self, path: &str) -> Value {
        self.client.get(path).call().await.expect(200).json()["data"].clone()
    }

    async fn until(&self, what: &str, path: &str, is_done: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..600 {
            let value = self.get(path).await;
            if is_done(&value) {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let value = self.get(path).await;
        panic!("{what}: {value}\n{}", self.cloud.last_lines());
    }

    /// Waits until so many events are in files, stops the service, and compares files and log.
    async fn expect(&mut self, what: &str, events: usize) -> Vec<StoredEvent> {
        let is_done = |history: &Value| history["events"] == events;
        self.until(what, "/tenant/history", is_done).await;
        let files = self.get("/tenant/history/files?size=100").await;
        let path = |file: &Value| {
            let path = file["path"].as_str().expect("a path");
            self.cloud.data_dir().join("files").join(path)
        };
        let listed: Vec<PathBuf> = files.as_array().expect("files").iter().map(path).collect();
        assert_eq!(self.cloud.stop().await, Some(0));
        let db = self.database();
        let log = EventLog {
            db: db.clone(),
            history: History::new(
                Place::Directory(self.cloud.data_dir().join("files")),
                GROUP_EVENTS,
            ),
            read_failures: Counter::default(),
        };
        let stored = events::of_log(&log, self.tenant_uuid).await;
        db.close().await;
        assert_eq!(stored.len(), events, "{what}");
        if let Some(rows) = duckdb::rows_of(&listed).await {
            let row = |event| duckdb::row_of(self.tenant_uuid, event);
            let expected: Vec<Value> = stored.iter().map(row).collect();
            assert_eq!(rows, expected, "{what}");
        }
        stored
    }
}

/// BTHome v2, not encrypted: 25.06 °C.
fn record(id: i64) -> Record {
    let event = json!({
        "observedAt": Timestamp::from_micros(id), "address": ADDRESS, "addressType": "random",
        "rssi": -40 - id % 40, "serviceData": {"fcd2": "QALKCQ=="},
    });
    Record::new(event.to_string().into())
}

on_each_database!(kills_lose_and_double_nothing);
async fn kills_lose_and_double_nothing(backend: Backend) {
    let mut world = World::new(backend).await;
    let all = usize::try_from(2 * DAYS * EVENTS_OF_A_DAY).expect("a small number");
    world.kill_often().await;
    let closed = world.expect("days move to files", all).await;
    let texts: Vec<&str> = closed.iter().map(|event| event.event.as_str()).collect();

    world.cloud.start_again().await;
    let period = json!({
        "from": Timestamp::from_micros(closed[0].ble_event_id),
        "to": hub_base::clock::Clock::System.now(), "dryRun": false,
    });
    let begun = world.client.post("/tenant/ble/reprocess").json(&period);
    let begun: Value = begun.call().await.expect(202).data();
    world.cloud.kill().await;
    world.kill_often().await;
    let run = format!(
        "/tenant/ble/reprocess/{}",
        begun["taskId"].as_str().expect("a task")
    );
    let is_over = |run: &Value| run["state"] == "SUCCEEDED";
    let run = world.until("files are written again", &run, is_over).await;
    assert_eq!(run["newlyDecoded"], all);
    let reprocessed = world.expect("files are written again", all).await;
    let is_read = |event: &StoredEvent| {
        event.processing_status == ProcessingStatus::Decoded
            && event.device_instance_id.is_some()
            && event
                .reading
                .as_deref()
                .is_some_and(|text| text.contains("25.06"))
    };
    assert!(reprocessed.iter().all(is_read), "{:?}", reprocessed[0]);
    let same: Vec<&str> = reprocessed
        .iter()
        .map(|event| event.event.as_str())
        .collect();
    assert_eq!(same, texts);

    // Another hub has heard the device too, of which files alone know once the rows are gone.
    let nearest = sql("UPDATE device_states SET nearest_hub_uuid = $1");
    world.change(nearest.bind(world.hubs[1])).await;
    world.change(sql("DELETE FROM ble_device_hours")).await;
    world.cloud.start_again().await;
    let confirmed = json!({"currentPassword": PASSWORD});
    let deleted = world.owner.client.delete("/app/profile").json(&confirmed);
    assert!(deleted.call().await.status.is_success());
    world.cloud.kill().await;
    world.kill_often().await;
    // Devices go after events.
    let hubs = || sql("SELECT COUNT(*) FROM account_deletion_hubs");
    let db = world.database();
    let mut hubs_left: i64 = 1;
    for _ in 0..600 {
        let mut conn = db.read().await.expect("a connection");
        hubs_left = hubs().scalar(&mut conn).await.expect("a number");
        if hubs_left == 0 {
            break;
        }
        drop(conn);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    db.close().await;
    assert_eq!(hubs_left, 0, "{}", world.cloud.last_lines());
    let left = world.expect("events of a person go", all / 2).await;
    world.cloud.start_again().await;
    let devices = world.get("/tenant/devices").await;
    assert_eq!(devices.as_array().map(Vec::len), Some(1), "{devices}");
    let of_tenant = |event: &&StoredEvent| event.hub_uuid == world.hubs[0];
    let expected: Vec<StoredEvent> = reprocessed.iter().filter(of_tenant).cloned().collect();
    assert_eq!(left, expected);
}
