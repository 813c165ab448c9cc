//! *bytes*: what an event takes in the database, by table and index, after a vacuum: a thousand
//! RuuviTags heard by eight hubs, the recorded trace, and windows of devices. Beside it, the same
//! uploads as text, and the same events in files of the history.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hub_base::db::Db;
use hub_history::{GROUP_EVENTS, History, Place};
use hub_protocol::TenantUuid;
use hub_tests::{Backend, Call};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use sqlx::Connection as _;
use uuid::Uuid;

use crate::fleet::{Fleet, recorded_events};
use crate::service::Service;
use crate::wire::Connection;

const HUBS: usize = 8;
const TAGS: usize = 1_000;
const EVENTS_OF_AN_UPLOAD: usize = 100;
const EVENTS: usize = 200_000;
const EVENTS_IN_FULL: usize = 1_000_000;
const WANTED: f64 = 200.0;
const WANTED_IN_FILES: f64 = 25.0;
const TEMPLATES: [&str; 3] = ["ruuvi/ruuvitag", "bthome/v2", "govee/h5075"];
const BEGIN_MICROS: i64 = 1_780_000_000_000_000;

pub async fn run(backend: Backend, is_full: bool) {
    let events = if is_full { EVENTS_IN_FULL } else { EVENTS };
    for load in [Load::RuuviTags, Load::Trace, Load::Windows] {
        measure(backend, load, events).await;
    }
}

#[derive(Clone, Copy, Debug)]
enum Load {
    RuuviTags,
    Trace,
    Windows,
}

async fn measure(backend: Backend, load: Load, wanted: usize) {
    let service = Service::start(backend).await;
    let fleet = Fleet::claim(&service, 1, HUBS).await;
    for template in TEMPLATES {
        let body = json!({"template": template, "autoRegister": true});
        let catalog = fleet.tenants[0].post("/tenant/device-catalog");
        catalog.json(&body).call().await.expect(200);
    }
    let mut connections = Vec::new();
    for _ in &fleet.hubs {
        connections.push(Connection::open(&service.url).await.expect("a connection"));
    }
    let mut world = World::new();
    let (mut events, mut sent_bytes) = (0, 0);
    while events < wanted {
        // All hubs receive the same frames.
        let frames = world.frames(load);
        for (hub, connection) in fleet.hubs.iter().zip(&mut connections) {
            let records: Vec<Value> = frames
                .iter()
                .map(|frame| world.record(load, frame))
                .collect();
            events += records.len();
            sent_bytes += records
                .iter()
                .map(|record| record.to_string().len())
                .sum::<usize>();
            let request = request(load, &hub.access_token, records);
            let status = connection.send(&request).await.expect("an answer");
            assert_eq!(status, 201);
        }
    }
    let sizes = match backend {
        Backend::Sqlite => tokio::task::block_in_place(|| sqlite_sizes(&service)),
        Backend::Postgres => postgres_sizes(&service).await,
    };
    let per_event = |bytes: i64| bytes as f64 / events as f64;
    for (name, bytes) in &sizes {
        println!(
            "bytes {backend:?} {load:?}:   {:7.1} {name}",
            per_event(*bytes)
        );
    }
    println!(
        "bytes {backend:?} {load:?}: {:.1} an event, of {events} (wanted: {WANTED} at most); {:.0} as the hubs sent them",
        per_event(sizes.values().sum()),
        sent_bytes as f64 / events as f64,
    );
    println!(
        "bytes {backend:?} {load:?}: {:.1} in files of the history (wanted: {WANTED_IN_FILES} at most)",
        per_event(in_files(&service).await),
    );
}

/// The bytes of all events in files of the history.
async fn in_files(service: &Service) -> i64 {
    let url = match &service.database {
        Some(database) => database.url.clone(),
        None => format!("sqlite:{}", service.sqlite_file().display()),
    };
    let db = Db::open(&url).expect("the service's database");
    let events = hub_tests::events::all(&db).await;
    let dir = tempfile::tempdir().expect("a directory");
    let history = History::new(Place::Directory(dir.path().to_owned()), GROUP_EVENTS);
    let mut bytes = 0;
    for events in events.chunks(history.file_events()) {
        let ids = (
            events[0].ble_event_id,
            events[events.len() - 1].ble_event_id,
        );
        let file = history.write(TenantUuid::new(), Uuid::new_v4(), ids, events.to_vec());
        bytes += file.await.expect("a file").file_bytes;
    }
    bytes
}

fn request(load: Load, access_token: &str, records: Vec<Value>) -> Vec<u8> {
    let batch_uuid = uuid::Uuid::now_v7();
    let (path, body) = match load {
        Load::RuuviTags | Load::Trace => (
            "/v1/ble/events",
            json!({"batchUuid": batch_uuid, "events": records}),
        ),
        Load::Windows => (
            "/v1/ble/events/windowed",
            json!({
                "batchUuid": batch_uuid, "windowStart": "2026-11-21T08:00:00Z",
                "windowEnd": "2026-11-21T08:01:00Z", "devices": records,
            }),
        ),
    };
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {access_token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

/// A RuuviTag, and how its values wander.
struct Tag {
    address: [u8; 6],
    temperature: f64,
    humidity: f64,
    pressure_pa: f64,
    sequence: u16,
}

struct World {
    random: SmallRng,
    tags: Vec<Tag>,
    next_tag: usize,
    trace: Vec<Value>,
    next_report: usize,
    at_micros: i64,
}

impl World {
    fn new() -> Self {
        let mut random = SmallRng::seed_from_u64(1);
        let tags = (0..TAGS)
            .map(|_| {
                let mut address: [u8; 6] = random.random();
                address[0] |= 0xc0;
                Tag {
                    address,
                    temperature: random.random_range(-20.0..30.0),
                    humidity: random.random_range(20.0..90.0),
                    pressure_pa: random.random_range(98_000.0..103_000.0),
                    sequence: random.random(),
                }
            })
            .collect();
        let trace = recorded_events();
        let parsed = |text: &String| serde_json::from_str(text).expect("JSON");
        Self {
            random,
            tags,
            next_tag: 0,
            trace: trace.iter().map(parsed).collect(),
            next_report: 0,
            at_micros: BEGIN_MICROS,
        }
    }

    /// What is on the air during an upload's time.
    fn frames(&mut self, load: Load) -> Vec<Value> {
        (0..EVENTS_OF_AN_UPLOAD)
            .map(|_| match load {
                Load::Trace => {
                    self.next_report = (self.next_report + 1) % self.trace.len();
                    self.trace[self.next_report].clone()
                }
                Load::RuuviTags | Load::Windows => {
                    self.next_tag = (self.next_tag + 1) % TAGS;
                    let (tag, random) = (&mut self.tags[self.next_tag], &mut self.random);
                    ruuvi(tag, random)
                }
            })
            .collect()
    }

    /// A frame as one hub received it.
    fn record(&mut self, load: Load, frame: &Value) -> Value {
        self.at_micros += self.random.random_range(100..3_000);
        let time = |micros: i64| hub_protocol::Timestamp::from_micros(micros).to_string();
        let rssi: i64 = self.random.random_range(-95..-45);
        let mut record = frame.clone();
        record["rssi"] = json!(rssi);
        match load {
            Load::RuuviTags | Load::Trace => record["observedAt"] = json!(time(self.at_micros)),
            Load::Windows => {
                record["count"] = json!(self.random.random_range(1..60));
                record["rssiMin"] = json!(rssi - 5);
                record["rssiMax"] = json!(rssi + 5);
                record["rssiMean"] = json!(rssi as f64 + 0.25);
                record["firstSeenAt"] = json!(time(self.at_micros));
                record["lastSeenAt"] = json!(time(self.at_micros + 50_000_000));
            }
        }
        record
    }
}

/// Format 5 of Ruuvi Innovations: the next frame of a tag.
fn ruuvi(tag: &mut Tag, random: &mut SmallRng) -> Value {
    tag.temperature += random.random_range(-0.05..0.05);
    tag.humidity = (tag.humidity + random.random_range(-0.2..0.2)).clamp(1.0, 99.0);
    tag.pressure_pa += random.random_range(-5.0..5.0);
    tag.sequence = tag.sequence.wrapping_add(1) % 65_535;
    let mut frame = vec![5];
    frame.extend(((tag.temperature / 0.005) as i16).to_be_bytes());
    frame.extend(((tag.humidity / 0.0025) as u16).to_be_bytes());
    frame.extend(((tag.pressure_pa - 50_000.0) as u16).to_be_bytes());
    for rest in [12, -8, 1_020] {
        frame.extend((rest + random.random_range(-6_i16..6)).to_be_bytes());
    }
    let millivolts: u16 = random.random_range(2_970..2_980);
    frame.extend((((millivolts - 1_600) << 5) | 22).to_be_bytes());
    frame.push(66);
    frame.extend(tag.sequence.to_be_bytes());
    frame.extend(tag.address);
    let address = tag.address.map(|byte| format!("{byte:02X}")).join(":");
    json!({
        "adapterAddress": "00:11:22:33:44:55", "address": address, "addressType": "random",
        "manufacturerData": {"0499": STANDARD.encode(frame)},
    })
}

/// Whether a table grows with every event.
fn is_of_events(name: &str) -> bool {
    ["ble_batch", "ble_device_hours", "ble_event"]
        .iter()
        .any(|table| name.starts_with(table))
}

/// The bytes of tables and indexes of the log of events.
fn sqlite_sizes(service: &Service) -> BTreeMap<String, i64> {
    let db = rusqlite::Connection::open(service.sqlite_file()).expect("the service's database");
    db.busy_timeout(std::time::Duration::from_secs(60))
        .expect("a timeout");
    db.execute_batch("VACUUM").expect("a vacuum");
    let mut sizes = db
        .prepare(
            "SELECT COALESCE(s.tbl_name, d.name), d.name, SUM(d.pgsize) FROM dbstat d \
             LEFT JOIN sqlite_schema s ON s.name = d.name GROUP BY d.name",
        )
        .expect("a query");
    let rows = sizes.query_map([], |row| {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, String>(1)?,
            row.get(2)?,
        ))
    });
    rows.expect("rows")
        .map(|row| row.expect("a row"))
        .filter(|(table, _, _)| is_of_events(table))
        .map(|(_, name, bytes)| (name, bytes))
        .collect()
}

async fn postgres_sizes(service: &Service) -> BTreeMap<String, i64> {
    let url = &service.database.as_ref().expect("a database").url;
    let mut db = sqlx_postgres::PgConnection::connect(url)
        .await
        .expect("the service's database");
    sqlx::query("VACUUM")
        .execute(&mut db)
        .await
        .expect("a vacuum");
    // With what is stored out of line.
    let rows: Vec<(String, String, i64)> = sqlx::query_as(
        "SELECT COALESCE(t.relname, c.relname)::text, c.relname::text, \
         CASE c.relkind WHEN 'i' THEN pg_relation_size(c.oid) ELSE pg_table_size(c.oid) END \
         FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid \
         LEFT JOIN pg_class t ON t.oid = i.indrelid \
         WHERE c.relkind IN ('r', 'i') AND c.relnamespace = 'public'::regnamespace",
    )
    .fetch_all(&mut db)
    .await
    .expect("sizes");
    rows.into_iter()
        .filter(|(table, _, bytes)| is_of_events(table) && *bytes > 0)
        .map(|(_, name, bytes)| (name, bytes))
        .collect()
}
