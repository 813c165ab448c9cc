//! *export*: everything of a person whose devices have a million events. The raw limit reads the
//! same rows in pages of the same size, and throws them away.

use std::time::Instant;

use hub_base::db::Direction;
use hub_base::db::sql;
use hub_ingest::batches::Wanted;
use hub_ingest::log;
use hub_protocol::Timestamp;
use hub_tests::devices::{make_device, make_model, put_state};
use hub_tests::{Backend, Person, SimulatedHub, Tenant, TestApp};
use reqwest::header::AUTHORIZATION;
use serde_json::json;

use crate::history::{self, EVENTS_OF_A_DEVICE, MINUTE_MICROS};

const DEVICES: i64 = 100;
const PAGE: usize = 500;
/// What the service may need for it, whatever the number of events.
const WANTED_MIB: f64 = 16.0;

pub async fn run(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let person = Person::register(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await.hub_uuid.0;
    let model = make_model(&tenant, "Thermometer").await;
    let now = app.app.clock.now();
    let first_id = now.as_micros() - EVENTS_OF_A_DEVICE * MINUTE_MICROS;
    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql("UPDATE hubs SET owner_user_uuid = $2, owner_since = $3 WHERE hub_uuid = $1")
        .bind((
            hub,
            person.login.user_uuid,
            Timestamp::from_micros(first_id - MINUTE_MICROS),
        ))
        .run(&mut tx)
        .await
        .expect("an owner");
    tx.commit_unaudited("a bench").await.expect("a commit");
    let mut devices = Vec::new();
    for _ in 0..DEVICES {
        let id = make_device(&tenant, model, json!({})).await["deviceInstanceId"]
            .as_i64()
            .expect("an id");
        put_state(&app, &tenant, id, hub.into(), now, &json!({})).await;
        devices.push(id);
    }
    history::fill(
        &app,
        tenant.tenant_uuid,
        hub,
        model,
        (devices[0], DEVICES),
        first_id,
    )
    .await;
    let events = DEVICES * EVENTS_OF_A_DEVICE;

    let began_at = Instant::now();
    let mut read = 0;
    for device in &devices {
        read += read_all(&app, &tenant, *device).await;
    }
    let raw_secs = began_at.elapsed().as_secs_f64();
    assert_eq!(read, events);

    let before = peak_mib();
    let authorization = person.client.headers[AUTHORIZATION].clone();
    let request = reqwest::Client::new()
        .get(format!("{}/app/export", app.url))
        .header(AUTHORIZATION, authorization);
    let began_at = Instant::now();
    let mut reply = request
        .send()
        .await
        .expect("an answer")
        .error_for_status()
        .expect("an export");
    let (mut bytes, mut lines, mut end) = (0, 0, Vec::new());
    while let Some(chunk) = reply.chunk().await.expect("a chunk") {
        bytes += chunk.len();
        lines += chunk.iter().filter(|byte| **byte == b'\n').count();
        end = chunk.to_vec();
    }
    let secs = began_at.elapsed().as_secs_f64();
    let grown = peak_mib() - before;
    assert!(lines as i64 > events, "{lines} lines of {events} events");
    assert!(
        String::from_utf8_lossy(&end).contains("\"type\":\"end\""),
        "the export was cut off"
    );
    println!(
        "export {backend:?}: {events} events, {:.0} MB in {secs:.1} s, {:.0} events/s; reading alone {:.0}/s; ratio {:.2}; \
         {grown:.1} MiB more than before, client included (wanted: {WANTED_MIB})",
        bytes as f64 / 1e6,
        events as f64 / secs,
        events as f64 / raw_secs,
        raw_secs / secs,
    );
}

/// How many events of a device there are.
async fn read_all(app: &TestApp, tenant: &Tenant, device: i64) -> i64 {
    let (mut after, mut read) = (0, 0);
    loop {
        let wanted = Wanted {
            first_id: after + 1,
            device_instance_id: Some(device),
            ..Wanted::all_of(tenant.tenant_uuid)
        };
        let rows = log::some(&app.app.event_log, &wanted, Direction::Ascending, PAGE)
            .await
            .expect("events");
        let Some(last) = rows.last() else { return read };
        after = last.ble_event_id;
        read += rows.len() as i64;
    }
}

/// The most memory this process has had resident since the last call.
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the process's state");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("the peak");
    let kib: f64 = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    std::fs::write("/proc/self/clear_refs", "5").expect("a new peak");
    kib / 1024.0
}
