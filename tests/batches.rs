//! The stored events are found by time, hub, device and status, whole and in pages, as a plain list
//! of the same events would have them, also after some were reprocessed and others deleted.

use std::ops::ControlFlow;

use hub_base::db::{Db, Direction, Slice, sql};
use hub_ingest::batches::{
    self, Batches, FirstReception, Rewritten, StoredEvent, Wanted, status_bits,
};
use hub_ingest::{self as ingest, BLE_EVENTS, Kind, ProcessingStatus, Record};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use hub_tests::{Backend, Tenant, TestApp, events, on_each_database};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use uuid::Uuid;

const UPLOADS: usize = 300;
const HUBS: u128 = 4;
const DEVICES: i64 = 20;
const BEGIN: i64 = 1_780_000_000_000_000;
const HOUR: i64 = 3_600_000_000;
const QUERIES: usize = 200;

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
async fn compare(db: &Db, random: &mut SmallRng, tenant_uuid: TenantUuid, stored: &[StoredEvent]) {
    let mut conn = db.read().await.expect("a connection");
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
        let (page, total) = batches::page(&mut conn, &wanted, direction, slice)
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
        let some = batches::some(&mut conn, &wanted, direction, 7)
            .await
            .expect("events");
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
        batches::walk(&mut conn, &wanted, direction, |found| {
            walked += i64::from(found.head.event_bytes > 0);
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
        let counted = batches::count(&mut conn, &by_ids, i64::MAX)
            .await
            .expect("a count");
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
        let found = batches::events_at(&mut conn, tenant_uuid, &asked)
            .await
            .expect("events");
        let expected: Vec<StoredEvent> = stored
            .iter()
            .filter(|event| asked.contains(&event.ble_event_id))
            .cloned()
            .collect();
        assert_eq!(shown(&found), shown(&expected));
        let repeats = batches::repeats(&mut conn, tenant_uuid, &asked, 10_000)
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

on_each_database!(events_are_found_as_in_a_plain_list);
async fn events_are_found_as_in_a_plain_list(backend: Backend) {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let other = Tenant::create(&app.client()).await;
    let db = &app.app.db;
    let mut stored = fill(db, &mut random, tenant.tenant_uuid).await;
    let of_other = fill(db, &mut random, other.tenant_uuid).await;
    compare(db, &mut random, tenant.tenant_uuid, &stored).await;

    // Some events are reprocessed: longer, shorter, of another device.
    let now = app.app.clock.now();
    let mut rewritten = Vec::new();
    for event in &mut stored {
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
        let mut tx = db.begin().await.expect("a transaction");
        let are_there = batches::rewrite(&mut tx, tenant.tenant_uuid, part, now).await;
        assert!(are_there.expect("rows"));
        tx.commit_unaudited("a test").await.expect("a commit");
    }
    compare(db, &mut random, tenant.tenant_uuid, &stored).await;

    // One that is gone cannot be rewritten, and nothing else is then.
    let mut tx = db.begin().await.expect("a transaction");
    let gone = Rewritten {
        ble_event_id: BEGIN - 10,
        ..rewritten[0].clone()
    };
    let are_there = batches::rewrite(&mut tx, tenant.tenant_uuid, &[gone], now).await;
    assert!(!are_there.expect("an answer"));
    drop(tx);
    let others = events::of_tenant(db, other.tenant_uuid).await;
    assert_eq!(shown(&others), shown(&of_other), "another tenant's");

    // The events of one hub go, and those of the others stay.
    let (tenant_uuid, hub_uuid) = (tenant.tenant_uuid, HubUuid(Uuid::from_u128(2)));
    let mut conn = db.read().await.expect("a connection");
    let all = (Timestamp::from_micros(0), now);
    let batch = ingest::oldest_of_hub(&mut conn, BLE_EVENTS, tenant_uuid, hub_uuid, all, 10_000)
        .await
        .expect("what there is");
    drop(conn);
    let of_hub = stored.extract_if(.., |event| event.hub_uuid == hub_uuid);
    let (mut count, mut bytes) = (0, 0);
    for event in of_hub {
        count += 1;
        bytes += event.event.len() + event.reading.map_or(0, |text| text.len()) + 128;
    }
    assert_eq!((batch.records, batch.bytes), (count, bytes as i64));
    let mut tx = db.begin().await.expect("a transaction");
    let is_done = ingest::delete_of_hub(&mut tx, BLE_EVENTS, tenant_uuid, hub_uuid, batch).await;
    assert!(is_done.expect("rows"));
    tx.commit_unaudited("a test").await.expect("a commit");
    compare(db, &mut random, tenant_uuid, &stored).await;

    // All go, with every entry of theirs.
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
    for query in [
        "SELECT COUNT(*) FROM ble_batches WHERE tenant_uuid = $1",
        "SELECT COUNT(*) FROM ble_device_hours WHERE tenant_uuid = $1",
        "SELECT COUNT(*) FROM ble_batch_repeats WHERE tenant_uuid = $1",
    ] {
        let mut conn = db.read().await.expect("a connection");
        let left: i64 = sql(query)
            .bind(tenant_uuid)
            .scalar(&mut conn)
            .await
            .expect("a number");
        assert_eq!(left, 0, "{query}");
    }
    compare(db, &mut random, other.tenant_uuid, &of_other).await;
}
