//! *app-user*: the devices of a person who has a thousand, among a million of the same supplier.
//! The raw limit is the look-up of one device by its primary key.

use std::time::{Duration, Instant};

use hub_base::db::sql;
use hub_tests::devices::make_model;
use hub_tests::{Backend, Person, SimulatedHub, Tenant, TestApp};
use reqwest::header::AUTHORIZATION;
use uuid::Uuid;

use crate::audit::{measure, percentiles};

const DEVICES: i64 = 1_000_000;
/// Of the person: every so manieth, heard by these hubs.
const EVERY: i64 = 1000;
const HUBS: i64 = 10;
const CHUNK: i64 = 50_000;
const WANTED: Duration = Duration::from_millis(20);

pub async fn run(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let person = Person::register(&app.client()).await;
    let model = make_model(&tenant, "sensor").await;
    let mut hubs = Vec::new();
    for _ in 0..HUBS * 2 {
        hubs.push(SimulatedHub::claim(&tenant).await.hub_uuid.0);
    }
    fill(&app, &tenant, model, &person, &hubs).await;
    let authorization = person.client.headers[AUTHORIZATION]
        .to_str()
        .expect("a token")
        .to_owned();
    println!(
        "app-user {backend:?}: {} devices of a person among {DEVICES}",
        DEVICES / EVERY
    );
    for target in [
        "/app/devices".to_owned(),
        "/app/devices?size=100".to_owned(),
        "/app/devices?size=100&page=9".to_owned(),
        format!("/app/devices/{EVERY}"),
        "/app/hubs".to_owned(),
    ] {
        let request = format!(
            "GET {target} HTTP/1.1\r\nhost: bench\r\nauthorization: {authorization}\r\n\r\n"
        );
        let (p50, p90) = measure(&app.url, request.as_bytes()).await;
        let mark = if p90 > WANTED { "  TOO SLOW" } else { "" };
        println!("    {p50:>9.2?} {p90:>9.2?}  {target} (wanted: {WANTED:?}){mark}");
    }
    let mut times = Vec::new();
    for round in 0..1000_i64 {
        let asked_at = Instant::now();
        let mut conn = app.app.db.read().await.expect("a connection");
        let query = sql("SELECT name FROM device_instances WHERE device_instance_id = $1")
            .bind(round * 997 + 1);
        query
            .optional::<(String,)>(&mut conn)
            .await
            .expect("an answer");
        times.push(asked_at.elapsed());
    }
    let (p50, p90) = percentiles(times);
    println!("    {p50:>9.2?} {p90:>9.2?}  a look-up by primary key");
}

/// Devices, with ids from 1 since they are the first. The first half of the hubs are the person's,
/// and hear theirs.
async fn fill(app: &TestApp, tenant: &Tenant, model: Uuid, person: &Person, hubs: &[Uuid]) {
    let (filled_in, now) = (Instant::now(), app.app.clock.now());
    let mut tx = app.app.db.begin().await.expect("a transaction");
    for hub in &hubs[..hubs.len() / 2] {
        sql("UPDATE hubs SET owner_user_uuid = $2, owner_since = claimed_at WHERE hub_uuid = $1")
            .bind((*hub, person.login.user_uuid))
            .run(&mut tx)
            .await
            .expect("an owner");
    }
    tx.commit_unaudited("a bench").await.expect("a commit");
    for first in (1..=DEVICES).step_by(usize::try_from(CHUNK).expect("a small number")) {
        let mut tx = app.app.db.begin().await.expect("a transaction");
        sql(
            "WITH RECURSIVE n (i) AS (SELECT CAST($1 AS BIGINT) UNION ALL \
             SELECT i + 1 FROM n WHERE i < $2) \
             INSERT INTO device_instances (tenant_uuid, device_uuid, name, labels, calibration, \
             activation_status, bind_key_status, search_text, created_at) \
             SELECT $3, $4, 'sensor', '{}', '{}', 'ACTIVE', 'NONE', 'sensor', $5 FROM n",
        )
        .bind((first, first + CHUNK - 1, tenant.tenant_uuid, model, now))
        .run(&mut tx)
        .await
        .expect("devices");
        for (place, hub) in hubs.iter().enumerate() {
            let place = i64::try_from(place).expect("a small number");
            let is_own = place < HUBS;
            sql(
                "INSERT INTO device_states (device_instance_id, tenant_uuid, last_seen_at, \
                 nearest_hub_uuid, nearest_rssi_dbm, nearest_since, online_until, state) \
                 SELECT device_instance_id, tenant_uuid, $3, $4, -60, $3, $3, '{}' \
                 FROM device_instances WHERE device_instance_id >= $1 \
                 AND device_instance_id <= $2 \
                 AND (device_instance_id % $5 = 0) = $6 \
                 AND (device_instance_id / $5) % $7 = $8",
            )
            .bind((
                first,
                first + CHUNK - 1,
                now,
                *hub,
                EVERY,
                is_own,
                HUBS,
                place % HUBS,
            ))
            .run(&mut tx)
            .await
            .expect("states");
        }
        tx.commit_unaudited("a bench").await.expect("a commit");
    }
    if matches!(app.backend, Backend::Postgres) {
        let mut tx = app.app.db.begin().await.expect("a transaction");
        // As the server itself does some time after so many inserts.
        for analyze in [
            "ANALYZE device_instances",
            "ANALYZE device_states",
            "ANALYZE hubs",
        ] {
            sql(analyze).run(&mut tx).await.expect("statistics");
        }
        tx.commit_unaudited("a bench").await.expect("a commit");
    }
    println!(
        "app-user {:?}: filled in {:.0} s",
        app.backend,
        filled_in.elapsed().as_secs_f64()
    );
}
