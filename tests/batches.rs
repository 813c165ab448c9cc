//! The stored events are found by time, hub, device and status, whole and in pages, as a plain list
//! of the same events would have them, also after some were reprocessed and others deleted: while
//! all are in the database, while some are in files too, and when those are in files alone.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use hub_base::db::{Db, Direction, Slice, sql};
use hub_cloud::app::App;
use hub_core::EventLog;
use hub_core::pace::Pace;
use hub_ingest::batches::{self, Batches, FirstReception, Rewritten, Wanted, status_bits};
use hub_ingest::{self as ingest, BLE_EVENTS, Kind, ProcessingStatus, Record, StoredEvent};
use hub_ingest::{history, log};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use hub_tests::app::set_clock;
use hub_tests::{Backend, Options, Tenant, TestApp, duckdb, events, on_each_database};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use uuid::Uuid;

const UPLOADS: usize = 300;
const HUBS: u128 = 4;
const DEVICES: i64 = 20;
const BEGIN: i64 = 1_780_000_000_000_000;
const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;
const QUERIES: usize = 80;

/// Stores uploads of one event up to some thousand; returns their events, oldest first.
async fn fill(db: &Db, random: &mut SmallRng, tenant_uuid: TenantUuid) -> Vec<StoredEvent> {
    let mut stored: Vec<StoredEvent> = Vec::new();
    let mut first_id = BEGIN;
    let mut batch_of = Vec::new();
    for upload in 0..UPLOADS {
        let hub_uuid = HubUuid(Uuid::from_u128(random.random_range(1..=HUBS)));
        let count = match upload {
            7 => 2_500,
            _ => random.random_range(1..40),
        };
        let records: Vec<Record> = (0..count).map(|number| record(random, number)).collect();
        let mut rows = Batches::default();
        let mut batch_id = first_id;
        for range in batches::split(&records) {
            let records = &records[range];
            let firsts: Vec<Option<FirstReception>> = records
                .iter()
                .map(|_| {
                    let is_repeat = !stored.is_empty() && random.random_range(0..3) == 0;
                    is_repeat.then(|| {
                        let place = random.random_range(0..stored.len());
                        FirstReception {
                            id: stored[place].ble_event_id,
                            batch_id: batch_of[place],
                        }
                    })
                })
                .collect();
            rows.push((tenant_uuid, hub_uuid), batch_id, records, &firsts)
                .expect("a batch");
            for ((record, first), id) in records.iter().zip(firsts).zip(batch_id..) {
                stored.push(StoredEvent {
                    ble_event_id: id,
                    hub_uuid,
                    device_instance_id: record.device_instance_id,
                    processing_status: record.processing_status,
                    window: record.window,
                    observation_id: first.map(|first| first.id),
                    reprocessed_at: None,
                    event: record.text.to_string(),
                    reading: record.reading.as_deref().map(str::to_owned),
                });
                batch_of.push(batch_id);
            }
            batch_id += i64::try_from(records.len()).expect("a small number");
        }
        let mut tx = db.begin().await.expect("a transaction");
        let count = rows.insert(&mut tx).await.expect("rows");
        tx.commit_unaudited("a test").await.expect("a commit");
        assert_eq!(count, records.len() as u64);
        first_id = batch_id + random.random_range(0..3_000);
        // Some batches end in the hour after the one in which they begin.
        if random.random_range(0..20) == 0 {
            first_id = ((batch_id + 40) / HOUR + 1) * HOUR - random.random_range(0..40);
        }
    }
    stored
}

fn record(random: &mut SmallRng, number: i64) -> Record {
    let processing_status = ProcessingStatus::ALL[random.random_range(0..5)];
    let at = |micros| Timestamp::from_micros(BEGIN + micros);
    Record {
        device_instance_id: (random.random_range(0..3) > 0)
            .then(|| random.random_range(1..=DEVICES)),
        window: (random.random_range(0..4) == 0).then(|| (at(-number), at(number))),
        processing_status,
        reading: (processing_status == ProcessingStatus::Decoded)
            .then(|| format!("{{\"values\":{{\"temperature\":{number}.5}}}}").into()),
        ..Record::new(format!("{{\"rssi\":-{number},\"name\":\"n\\\"{number}\"}}").into())
    }
}

/// A query at random, and what a plain list has for it.
fn query<'a>(
    random: &mut SmallRng,
    tenant_uuid: TenantUuid,
    stored: &'a [StoredEvent],
) -> (Wanted, Vec<&'a StoredEvent>) {
    let mut wanted = Wanted::all_of(tenant_uuid);
    let mut some = |share: u32| random.random_range(0..share) == 0;
    let (with_ids, with_hub, with_device, with_status) = (!some(3), some(3), some(2), some(3));
    wanted.only_first = some(3);
    if with_ids {
        let mut id = || {
            let place = random.random_range(0..stored.len());
            stored[place].ble_event_id + random.random_range(-2..=2)
        };
        let (one, other) = (id(), id());
        (wanted.first_id, wanted.last_id) = (one.min(other), one.max(other));
    }
    if with_hub {
        wanted.hub_uuid = Some(HubUuid(Uuid::from_u128(random.random_range(1..=HUBS))));
    }
    if with_device {
        wanted.device_instance_id = Some(random.random_range(1..=DEVICES));
    }
    if with_status {
        wanted.statuses = status_bits([ProcessingStatus::ALL[random.random_range(0..5)]]);
    }
    let is_wanted = |event: &&StoredEvent| {
        (wanted.first_id..=wanted.last_id).contains(&event.ble_event_id)
            && wanted.hub_uuid.is_none_or(|hub| event.hub_uuid == hub)
            && (wanted.device_instance_id.is_none()
                || event.device_instance_id == wanted.device_instance_id)
            && wanted.statuses & status_bits([event.processing_status]) != 0
            && !(wanted.only_first && event.observation_id.is_some())
    };
    (wanted, stored.iter().filter(is_wanted).collect())
}

fn shown(events: &[StoredEvent]) -> Vec<String> {
    events.iter().map(|event| format!("{event:?}")).collect()
}

/// Asks at random, and compares with the plain list.
async fn compare(
    log: &EventLog,
    random: &mut SmallRng,
    tenant_uuid: TenantUuid,
    stored: &[StoredEvent],
) {
    for _ in 0..QUERIES {
        let (wanted, expected) = query(random, tenant_uuid, stored);
        let (direction, expected) = match random.random_range(0..2) {
            0 => (Direction::Ascending, expected),
            _ => (
                Direction::Descending,
                expected.into_iter().rev().collect::<Vec<_>>(),
            ),
        };
        let slice = Slice {
            size: random.random_range(1..60),
            offset: random.random_range(0..100),
        };
        let (page, total) = log::page(log, &wanted, direction, slice)
            .await
            .expect("a page");
        assert_eq!(total, expected.len() as i64, "{wanted:?}");
        let on_page: Vec<StoredEvent> = expected
            .iter()
            .skip(slice.offset as usize)
            .take(slice.size as usize)
            .map(|event| (*event).clone())
            .collect();
        assert_eq!(shown(&page), shown(&on_page), "{wanted:?} {slice:?}");
        let some = log::some(log, &wanted, direction, 7).await.expect("events");
        let ids = |events: &[StoredEvent]| -> Vec<i64> {
            events.iter().map(|event| event.ble_event_id).collect()
        };
        let first: Vec<i64> = expected
            .iter()
            .take(7)
            .map(|event| event.ble_event_id)
            .collect();
        assert_eq!(ids(&some), first, "{wanted:?}");
        let mut walked = 0;
        log::walk(log, &wanted, direction, |found| {
            walked += i64::from(found.event_bytes > 0);
            ControlFlow::Continue(())
        })
        .await
        .expect("events");
        assert_eq!(walked, total);

        // By ids alone.
        let by_ids = Wanted {
            first_id: wanted.first_id,
            last_id: wanted.last_id,
            ..Wanted::all_of(tenant_uuid)
        };
        let in_range: Vec<i64> = stored
            .iter()
            .map(|event| event.ble_event_id)
            .filter(|id| (wanted.first_id..=wanted.last_id).contains(id))
            .collect();
        let counted = log::count(log, &by_ids, i64::MAX).await.expect("a count");
        assert_eq!(
            counted,
            (in_range.first().copied(), in_range.len() as i64),
            "{wanted:?}"
        );

        // Single events, and what repeats them.
        let mut asked: Vec<i64> = (0..random.random_range(1..30))
            .map(|_| stored[random.random_range(0..stored.len())].ble_event_id)
            .collect();
        asked.push(BEGIN - 1);
        let found = log::events_at(log, tenant_uuid, &asked)
            .await
            .expect("events");
        let expected: Vec<StoredEvent> = stored
            .iter()
            .filter(|event| asked.contains(&event.ble_event_id))
            .cloned()
            .collect();
        assert_eq!(shown(&found), shown(&expected));
        let repeats = log::repeats(log, tenant_uuid, &asked, 10_000)
            .await
            .expect("events");
        let repeats: Vec<i64> = repeats
            .into_iter()
            .map(|repeat| repeat.event.ble_event_id)
            .collect();
        let expected: Vec<i64> = stored
            .iter()
            .filter(|event| event.observation_id.is_some_and(|id| asked.contains(&id)))
            .map(|event| event.ble_event_id)
            .collect();
        assert_eq!(repeats, expected);
    }
}

/// Deletes rows whose events are in files, and files that are no part of the history.
async fn clear(app: &App) {
    let duration = app.metrics.history_batch_duration.clone();
    let mut pace = Pace::new(app, 0.0, duration);
    let is_done = history::clear(app, &mut pace, || false).await;
    assert!(is_done.expect("rows"));
    let is_done = history::remove_files(app, || false).await;
    assert!(is_done.expect("files"));
}

/// The files of all tenants in the store.
fn files_in(app: &App) -> usize {
    let mut folders = vec![app.config.data_dir.join("files/history")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => files += 1,
            }
        }
    }
    files
}

/// Compares what DuckDB reads from the files with these events.
async fn compare_files(app: &App, tenant_uuid: TenantUuid, stored: &[StoredEvent]) {
    if let Some(rows) = duckdb::rows(&app.config.data_dir.join("files")).await {
        let row = |event| duckdb::row_of(tenant_uuid, event);
        assert_eq!(rows, stored.iter().map(row).collect::<Vec<_>>());
    }
}

async fn rows(db: &Db, query: &'static str, tenant_uuid: TenantUuid) -> i64 {
    sql(query)
        .bind(tenant_uuid)
        .scalar(&mut db.read().await.expect("a connection"))
        .await
        .expect("a count")
}

const BATCHES: &str = "SELECT COUNT(*) FROM ble_batches WHERE tenant_uuid = $1";
const FILES: &str = "SELECT COUNT(*) FROM ble_history_files WHERE tenant_uuid = $1";

on_each_database!(events_are_found_as_in_a_plain_list);
async fn events_are_found_as_in_a_plain_list(backend: Backend) {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let (clock, micros) = set_clock("2026-06-10T12:00:00Z".parse().expect("a time"));
    let options = Options {
        clock: Some(clock),
        ..Options::default()
    };
    // Files of 400 events.
    let app = TestApp::configured(backend, options, |config| config.history_group_events = 200);
    let app = app.await;
    let tenant = Tenant::create(&app.client()).await;
    let other = Tenant::create(&app.client()).await;
    let (tenant_uuid, log) = (tenant.tenant_uuid, &app.app.event_log);
    let db = &app.app.db;
    let mut stored = fill(db, &mut random, tenant_uuid).await;
    let of_other = fill(db, &mut random, other.tenant_uuid).await;
    compare(log, &mut random, tenant_uuid, &stored).await;
    reprocess(&app, &mut random, tenant_uuid, &mut stored).await;
    compare(log, &mut random, tenant_uuid, &stored).await;

    // The first day moves to files.
    let day_end = (BEGIN / DAY + 1) * DAY;
    for before in [day_end - 1, day_end + 1] {
        let before = Timestamp::from_micros(before);
        let mut pace = history::pace(&app.app);
        let is_done = history::close(&app.app, tenant_uuid, before, &mut pace, || false).await;
        assert!(is_done.expect("files"));
    }
    // A batch that begins in the day belongs to it.
    let mut conn = db.read().await.expect("a connection");
    let open = history::first_open(&mut conn, tenant_uuid).await;
    let open_id = open.expect("a time").as_micros();
    drop(conn);
    let of_day = stored.partition_point(|event| event.ble_event_id < open_id);
    assert!((day_end..day_end + 1024).contains(&open_id) || stored[of_day].ble_event_id >= day_end);
    let files = rows(db, FILES, tenant_uuid).await;
    assert!(files > 3, "{files} files");
    assert_eq!(files_in(&app.app), files as usize);
    let batches_before = rows(db, BATCHES, tenant_uuid).await;
    compare(log, &mut random, tenant_uuid, &stored).await;
    // Its rows stay for those who are reading them, and go then.
    clear(&app.app).await;
    assert_eq!(rows(db, BATCHES, tenant_uuid).await, batches_before);
    micros.fetch_add(200_000_000, Ordering::Relaxed);
    clear(&app.app).await;
    let left = rows(db, BATCHES, tenant_uuid).await;
    assert!(left < batches_before && left > 0, "{left} batches");
    compare(log, &mut random, tenant_uuid, &stored).await;

    compare_files(&app.app, tenant_uuid, &stored[..of_day]).await;
    reprocess(&app, &mut random, tenant_uuid, &mut stored).await;
    compare(log, &mut random, tenant_uuid, &stored).await;
    compare_files(&app.app, tenant_uuid, &stored[..of_day]).await;
    assert_eq!(files_in(&app.app), files as usize, "old files are gone");

    // One that is gone cannot be rewritten, and nothing else is then.
    for ble_event_id in [BEGIN - 10, stored[stored.len() - 1].ble_event_id + 1] {
        let gone = Rewritten {
            ble_event_id,
            device_instance_id: None,
            processing_status: ProcessingStatus::Received,
            reading: None,
            more_bytes: 0,
        };
        let rewrite = log::rewrite(&app.app, tenant_uuid, vec![gone], app.app.clock.now()).await;
        let mut tx = db.begin().await.expect("a transaction");
        let are_there = rewrite.expect("a change").apply(&mut tx).await;
        assert!(!are_there.expect("an answer"));
    }
    let others = events::of_tenant(db, other.tenant_uuid).await;
    assert_eq!(shown(&others), shown(&of_other), "another tenant's");

    delete(&app, &mut random, tenant_uuid, stored).await;
}

/// Some events are reprocessed: longer, shorter, of another device.
async fn reprocess(
    app: &TestApp,
    random: &mut SmallRng,
    tenant_uuid: TenantUuid,
    stored: &mut [StoredEvent],
) {
    let now = app.app.clock.now();
    let mut rewritten = Vec::new();
    for event in stored {
        if random.random_range(0..10) == 0 {
            event.device_instance_id = Some(random.random_range(1..=DEVICES));
            event.processing_status = ProcessingStatus::ALL[random.random_range(0..5)];
            event.reading = (random.random_range(0..2) == 0).then(|| "{\"n\":\"ew\"}".to_owned());
            event.reprocessed_at = Some(now);
            rewritten.push(Rewritten {
                ble_event_id: event.ble_event_id,
                device_instance_id: event.device_instance_id,
                processing_status: event.processing_status,
                reading: event.reading.as_deref().map(Into::into),
                more_bytes: 0,
            });
        }
    }
    for part in rewritten.chunks(100) {
        let rewrite = log::rewrite(&app.app, tenant_uuid, part.to_vec(), now).await;
        let rewrite = rewrite.expect("changes");
        let mut tx = app.app.db.begin().await.expect("a transaction");
        assert!(rewrite.apply(&mut tx).await.expect("rows"));
        tx.commit_unaudited("a test").await.expect("a commit");
    }
    let is_done = history::remove_files(&app.app, || false).await;
    assert!(is_done.expect("files"));
}

/// The events of one hub go, and those of the others stay; then all go.
async fn delete(
    app: &TestApp,
    random: &mut SmallRng,
    tenant_uuid: TenantUuid,
    mut stored: Vec<StoredEvent>,
) {
    let (db, log) = (&app.app.db, &app.app.event_log);
    let now = app.app.clock.now();
    let hub_uuid = HubUuid(Uuid::from_u128(2));
    let (mut records, mut bytes) = (0, 0);
    let mut files = 0;
    let mut conn = db.read().await.expect("a connection");
    let from = history::first_open(&mut conn, tenant_uuid)
        .await
        .expect("a time");
    drop(conn);
    let in_files =
        |event: &&StoredEvent| event.hub_uuid == hub_uuid && event.ble_event_id < from.as_micros();
    let in_files: Vec<i64> = stored
        .iter()
        .filter(in_files)
        .map(|event| event.ble_event_id)
        .collect();
    let middle = Timestamp::from_micros(in_files[in_files.len() / 2]);
    for (between, so_far) in [
        ((middle, now), in_files.len().div_ceil(2)),
        ((Timestamp::from_micros(0), middle), in_files.len()),
    ] {
        while let Some(file) = history::without_hub(&app.app, tenant_uuid, hub_uuid, between)
            .await
            .expect("a file")
        {
            records += file.removed_events();
            bytes += file.removed_bytes();
            files += 1;
            let mut tx = db.begin().await.expect("a transaction");
            assert!(file.apply(&mut tx, now).await.expect("a file"));
            tx.commit_unaudited("a test").await.expect("a commit");
        }
        assert_eq!(records, so_far as i64, "those of the period");
    }
    assert!(files > 1);
    let mut conn = db.read().await.expect("a connection");
    let batch = ingest::oldest_of_hub(
        &mut conn,
        BLE_EVENTS,
        tenant_uuid,
        hub_uuid,
        (from, now),
        10_000,
    )
    .await
    .expect("what there is");
    drop(conn);
    records += batch.records;
    bytes += batch.bytes;
    let of_hub = stored.extract_if(.., |event| event.hub_uuid == hub_uuid);
    let (mut count, mut counted) = (0, 0);
    for event in of_hub {
        count += 1;
        counted += event.event.len() + event.reading.map_or(0, |text| text.len()) + 128;
    }
    assert_eq!((records, bytes), (count, counted as i64));
    let mut tx = db.begin().await.expect("a transaction");
    let is_done = ingest::delete_of_hub(&mut tx, BLE_EVENTS, tenant_uuid, hub_uuid, batch).await;
    assert!(is_done.expect("rows"));
    tx.commit_unaudited("a test").await.expect("a commit");
    compare(log, random, tenant_uuid, &stored).await;
    let of_day = stored
        .iter()
        .filter(|event| event.ble_event_id < from.as_micros());
    let of_day: Vec<StoredEvent> = of_day.cloned().collect();
    clear(&app.app).await;
    compare_files(&app.app, tenant_uuid, &of_day).await;

    // All go, with every entry of theirs.
    loop {
        let mut conn = db.read().await.expect("a connection");
        let oldest = history::oldest_before(&mut conn, tenant_uuid, now).await;
        drop(conn);
        let Some(oldest) = oldest.expect("a file") else {
            break;
        };
        let mut tx = db.begin().await.expect("a transaction");
        assert!(oldest.apply(&mut tx, now).await.expect("a file"));
        tx.commit_unaudited("a test").await.expect("a commit");
    }
    let mut conn = db.read().await.expect("a connection");
    let batch = BLE_EVENTS
        .measure(&mut conn, tenant_uuid, (0, i64::MAX), now, 10_000)
        .await
        .expect("what there is");
    drop(conn);
    let mut tx = db.begin().await.expect("a transaction");
    let kind = Kind::BleEvents;
    let is_done = ingest::delete(&mut tx, kind, BLE_EVENTS, tenant_uuid, batch, now).await;
    assert!(is_done.expect("rows"));
    tx.commit_unaudited("a test").await.expect("a commit");
    clear(&app.app).await;
    assert_eq!(files_in(&app.app), 0);
    for query in [
        BATCHES,
        FILES,
        "SELECT COUNT(*) FROM ble_device_hours WHERE tenant_uuid = $1",
        "SELECT COUNT(*) FROM ble_batch_repeats WHERE tenant_uuid = $1",
        "SELECT COUNT(*) FROM ble_history_hubs WHERE tenant_uuid = $1",
        "SELECT COUNT(*) FROM ble_history_removals WHERE tenant_uuid = $1",
    ] {
        assert_eq!(rows(db, query, tenant_uuid).await, 0, "{query}");
    }
}
