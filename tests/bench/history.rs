//! *history*: the values of one device out of many events: a day of it raw and in buckets, a year
//! of it in buckets from rollups, and lists by time, hub and device; from the database, and when
//! all days are in files. The raw limit is the look-up of one event by its primary key.

use std::time::{Duration, Instant};

use hub_base::db::sql;
use hub_devices::device_history;
use hub_ingest::batches::Batches;
use hub_ingest::{ProcessingStatus, Record, history, log};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use hub_tests::devices::{make_device, make_model};
use hub_tests::{Backend, Tenant, TestApp};
use reqwest::header::AUTHORIZATION;
use serde_json::json;
use uuid::Uuid;

use crate::wire::Connection;

/// Events of each device, one a minute: a week.
pub const EVENTS_OF_A_DEVICE: i64 = 10_000;
pub const MINUTE_MICROS: i64 = 60_000_000;
const HOUR_SECS: i64 = 3600;
/// Events of a batch.
const ROWS: i64 = 100;
const ROWS_OF_A_TRANSACTION: i64 = 100_000;
const ROUNDS: usize = 30;
const WANTED: Duration = Duration::from_millis(50);
const WANTED_FROM_FILES: Duration = Duration::from_millis(300);

pub async fn run(backend: Backend, is_full: bool) {
    let events: i64 = if is_full { 10_000_000 } else { 1_000_000 };
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let model = make_model(&tenant, "Thermometer").await;
    let made = make_device(&tenant, model, json!({})).await;
    let device = made["deviceInstanceId"].as_i64().expect("an id");
    let now = app.app.clock.now().as_micros();
    let devices = events / EVENTS_OF_A_DEVICE;
    let first_id = now - EVENTS_OF_A_DEVICE * MINUTE_MICROS;
    let filled_in = Instant::now();
    let hub_uuid = Uuid::new_v4();
    fill(
        &app,
        tenant.tenant_uuid,
        hub_uuid,
        model,
        (device, devices),
        first_id,
    )
    .await;
    println!(
        "history {backend:?}: {events} events in {:.0} s",
        filled_in.elapsed().as_secs_f64()
    );
    let rolled_in = Instant::now();
    while device_history::roll_up(&app.app).await.expect("rollups") {}
    let per_sec = events as f64 / rolled_in.elapsed().as_secs_f64();
    println!("  rolled up at {per_sec:.0} events/s, rests included");
    add_hours(&app, tenant.tenant_uuid, device, first_id).await;

    let at = |micros: i64| Timestamp::from_micros(micros);
    let day = 24 * HOUR_SECS * 1_000_000;
    let (from, to) = (at(now - 2 * day), at(now - day));
    let token = tenant.client.headers[AUTHORIZATION]
        .to_str()
        .expect("a token")
        .to_owned();
    let of_device = format!("/tenant/devices/{device}");
    let paths = [
        "/tenant/ble-query/events".to_owned(),
        "/tenant/ble-query/events?page=5000".to_owned(),
        format!("/tenant/ble-query/events?hubUuid={hub_uuid}&from={from}"),
        format!("/tenant/ble-query/events?hubUuid={hub_uuid}&page=5000"),
        format!("/tenant/ble-query/events?deviceInstanceId={device}&from={from}&to={to}"),
        format!("/tenant/ble-query/events?deviceInstanceId={device}&page=500"),
        "/tenant/ble-query/events?processingStatus=DECODED".to_owned(),
        format!("{of_device}/sensor-data?size=100"),
        format!("{of_device}/sensor-data?from={from}&to={to}&size=100"),
        format!("{of_device}/sensor-data?from={from}&to={to}&every=5m&quantity=temperature"),
        format!("{of_device}/sensor-data?from={from}&to={to}&every=1h"),
        format!(
            "{of_device}/sensor-data?from={}&every=18h",
            at(now - 365 * day)
        ),
        format!(
            "{of_device}/sensor-data?from={}&every=18h&quantity=temperature",
            at(now - 365 * day)
        ),
        format!("{of_device}/receptions?from={from}&to={to}"),
        format!("{of_device}/timeline?from={}", at(now - 30 * day)),
    ];
    measure_all(&app, &tenant, &token, &paths, WANTED).await;
    println!(
        "  a look-up by primary key: p50 {:.2?}",
        look_up(&app, tenant.tenant_uuid, first_id).await
    );
    let closed_in = Instant::now();
    let end = at(now + 2 * day);
    let mut pace = history::pace(&app.app);
    let is_done = history::close(&app.app, tenant.tenant_uuid, end, &mut pace, || false).await;
    assert!(is_done.expect("files"));
    let mut conn = app.app.db.read().await.expect("a connection");
    let size = history::size(&mut conn, tenant.tenant_uuid)
        .await
        .expect("a size");
    drop(conn);
    println!(
        "  in {} files at {:.0} events/s, {:.1} bytes an event",
        size.files,
        size.events as f64 / closed_in.elapsed().as_secs_f64(),
        size.file_bytes as f64 / size.events as f64,
    );
    measure_all(&app, &tenant, &token, &paths, WANTED_FROM_FILES).await;
}

/// Events of devices, with ids from the first one's on, which take turns. They may be registered or
/// be numbers.
pub async fn fill(
    app: &TestApp,
    tenant_uuid: TenantUuid,
    hub_uuid: Uuid,
    model: Uuid,
    (device, devices): (i64, i64),
    first_id: i64,
) {
    let events = devices * EVENTS_OF_A_DEVICE;
    let record = |row: i64, id: i64| {
        let event = json!({
            "observedAt": Timestamp::from_micros(id), "address": "C4:11:7D:DA:71:13", "addressType": "random",
            "rssi": -60 - row % 20, "manufacturerData": {"0499": "BRL8U5TDfAAE//wEDKw2QgDNy7gzTIhP"},
        });
        Record {
            device_instance_id: Some(device + row % devices),
            processing_status: ProcessingStatus::Decoded,
            reading: Some(reading(model, row).to_string().into()),
            ..Record::new(event.to_string().into())
        }
    };
    for start in (0..events).step_by(ROWS_OF_A_TRANSACTION as usize) {
        let mut rows = Batches::default();
        for start in (start..(start + ROWS_OF_A_TRANSACTION).min(events)).step_by(ROWS as usize) {
            let batch_id = first_id + start * MINUTE_MICROS / devices;
            let records: Vec<Record> = (start..(start + ROWS).min(events))
                .zip(batch_id..)
                .map(|(row, id)| record(row, id))
                .collect();
            let none = vec![None; records.len()];
            rows.push((tenant_uuid, HubUuid(hub_uuid)), batch_id, &records, &none)
                .expect("a batch");
        }
        let mut tx = app.app.db.begin().await.expect("a transaction");
        rows.insert(&mut tx).await.expect("rows");
        tx.commit_unaudited("a bench").await.expect("a commit");
    }
    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql(
        "INSERT INTO upload_clocks (tenant_uuid, kind, minute, requests, last_id, previous_id) \
         VALUES ($1, $2, 0, 0, $3, 0)",
    )
    .bind((
        tenant_uuid,
        hub_ingest::Kind::BleEvents.name(),
        first_id + EVENTS_OF_A_DEVICE * MINUTE_MICROS,
    ))
    .run(&mut tx)
    .await
    .expect("a clock");
    tx.commit_unaudited("a bench").await.expect("a commit");
}

/// What a RuuviTag says.
fn reading(model: Uuid, row: i64) -> serde_json::Value {
    let values = json!({
        "temperature": 20.5 + (row % 700) as f64 / 100.0, "humidity": 53.49, "pressure": 100_044, "acceleration_x": 0.039,
        "acceleration_y": -0.039, "acceleration_z": 10.16, "voltage": 2.977, "tx_power": 4, "movement_counter": 66,
        "measurement_sequence": row % 65_535,
    });
    json!({"deviceUuid": model, "identifierId": 1, "specificity": 24, "deviceProtocolId": 1, "protocolRevision": 1, "values": values})
}

/// The hours of the year before the events, as the rollups have them.
async fn add_hours(app: &TestApp, tenant_uuid: TenantUuid, device: i64, first_id: i64) {
    let mut tx = app.app.db.begin().await.expect("a transaction");
    let (quantities, hubs): (String, String) = sql("SELECT quantities, hubs FROM sensor_rollups \
         WHERE device_instance_id = $1 ORDER BY hour DESC LIMIT 1")
    .bind(device)
    .one(&mut tx)
    .await
    .expect("an hour");
    let last = first_id / 1_000_000 / HOUR_SECS;
    for hour in last - 365 * 24..last {
        sql(
            "INSERT INTO sensor_rollups (device_instance_id, hour, tenant_uuid, first_id, last_id, \
             minutes, quantities, hubs) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind((
            device,
            hour * HOUR_SECS,
            tenant_uuid,
            hour * HOUR_SECS * 1_000_000,
            (hour + 1) * HOUR_SECS * 1_000_000 - 1,
            (1_i64 << 60) - 1,
            quantities.as_str(),
            hubs.as_str(),
        ))
        .run(&mut tx)
        .await
        .expect("an hour");
    }
    tx.commit_unaudited("a bench").await.expect("a commit");
}

async fn measure(url: &str, request: &[u8]) -> (Duration, Duration) {
    let mut connection = Connection::open(url).await.expect("a connection");
    let mut times = Vec::new();
    for round in 0..ROUNDS + 3 {
        let sent_at = Instant::now();
        assert_eq!(
            connection.send(request).await.expect("an answer"),
            200,
            "{}",
            String::from_utf8_lossy(request)
        );
        // The first few find nothing in memory.
        if round >= 3 {
            times.push(sent_at.elapsed());
        }
    }
    times.sort();
    (times[times.len() / 2], times[times.len() * 9 / 10])
}

async fn measure_all(
    app: &TestApp,
    tenant: &Tenant,
    token: &str,
    paths: &[String],
    wanted: Duration,
) {
    for path in paths {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: {token}\r\n\
             x-tenant-uuid: {}\r\n\r\n",
            tenant.tenant_uuid
        );
        let (p50, p90) = measure(&app.url, request.as_bytes()).await;
        let mark = if p90 > wanted { "  TOO SLOW" } else { "" };
        println!("    {p50:>9.2?} {p90:>9.2?}  {path} (wanted: {wanted:?}){mark}");
    }
}

async fn look_up(app: &TestApp, tenant_uuid: TenantUuid, first_id: i64) -> Duration {
    let mut times = Vec::new();
    for round in 0..1000_i64 {
        let asked_at = Instant::now();
        let id = first_id + round * MINUTE_MICROS;
        log::events_at(&app.app.event_log, tenant_uuid, &[id])
            .await
            .expect("an answer");
        times.push(asked_at.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}
