//! The stored events of a service, read and written past its API.

use hub_base::db::{Db, Direction, sql};
use hub_core::EventLog;
use hub_history::{GROUP_EVENTS, History, Place};
use hub_ingest::batches::{self, Batches, FirstReception, Wanted};
use hub_ingest::{Record, StoredEvent, log};
use hub_protocol::{HubUuid, TenantUuid};
use prometheus_client::metrics::counter::Counter;

/// The most events that a test has.
const ALL: usize = 1_000_000;

/// All events of a tenant that are in the database, oldest first.
pub async fn of_tenant(db: &Db, tenant_uuid: TenantUuid) -> Vec<StoredEvent> {
    let no_files = Place::Directory("no files".into());
    let log = EventLog {
        db: db.clone(),
        history: History::new(no_files, GROUP_EVENTS),
        read_failures: Counter::default(),
    };
    of_log(&log, tenant_uuid).await
}

/// All events of a tenant, oldest first.
pub async fn of_log(log: &EventLog, tenant_uuid: TenantUuid) -> Vec<StoredEvent> {
    let wanted = Wanted::all_of(tenant_uuid);
    log::some(log, &wanted, Direction::Ascending, ALL)
        .await
        .expect("events")
}

/// All events, oldest first.
pub async fn all(db: &Db) -> Vec<StoredEvent> {
    let tenants: Vec<TenantUuid> = sql("SELECT DISTINCT tenant_uuid FROM ble_batches")
        .scalars(&mut db.read().await.expect("a connection"))
        .await
        .expect("tenants");
    let mut events = Vec::new();
    for tenant_uuid in tenants {
        events.append(&mut of_tenant(db, tenant_uuid).await);
    }
    events.sort_by_key(|event| event.ble_event_id);
    events
}

/// How many events a tenant has.
pub async fn count(db: &Db, tenant_uuid: TenantUuid) -> i64 {
    sql(
        "SELECT CAST(COALESCE(SUM(last_id - first_id + 1), 0) AS BIGINT) FROM ble_batches \
         WHERE tenant_uuid = $1",
    )
    .bind(tenant_uuid)
    .scalar(&mut db.read().await.expect("a connection"))
    .await
    .expect("a number")
}

/// The id of a tenant's last event; 0 of none.
pub async fn last_id(db: &Db, tenant_uuid: TenantUuid) -> i64 {
    sql("SELECT COALESCE(MAX(last_id), 0) FROM ble_batches WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .scalar(&mut db.read().await.expect("a connection"))
        .await
        .expect("an id")
}

/// What a tenant's events count as stored.
pub async fn counted_bytes(db: &Db, tenant_uuid: TenantUuid) -> i64 {
    let events = of_tenant(db, tenant_uuid).await;
    let bytes = |event: &StoredEvent| {
        let texts = event.event.len() + event.reading.as_ref().map_or(0, String::len);
        i64::try_from(texts + 128).expect("a small number")
    };
    events.iter().map(bytes).sum()
}

/// Stores events with ids from `first_id` on, without a gap.
pub async fn put(
    db: &Db,
    (tenant_uuid, hub_uuid): (TenantUuid, HubUuid),
    first_id: i64,
    records: &[Record],
) {
    let mut rows = Batches::default();
    let mut batch_id = first_id;
    for range in batches::split(records) {
        let records = &records[range];
        rows.push(
            (tenant_uuid, hub_uuid),
            batch_id,
            records,
            &vec![None; records.len()],
        )
        .expect("a batch");
        batch_id += i64::try_from(records.len()).expect("a small number");
    }
    let mut tx = db.begin().await.expect("a transaction");
    rows.insert(&mut tx).await.expect("rows");
    tx.commit_unaudited("a test").await.expect("a commit");
}

/// Notes of an event that it is a further reception of a frame.
pub async fn note_repeat(db: &Db, tenant_uuid: TenantUuid, ble_event_id: i64, first_id: i64) {
    let events = of_tenant(db, tenant_uuid).await;
    let mut tx = db.begin().await.expect("a transaction");
    let batches: Vec<i64> =
        sql("SELECT first_id FROM ble_batches WHERE tenant_uuid = $1 ORDER BY first_id")
            .bind(tenant_uuid)
            .scalars(&mut tx)
            .await
            .expect("batches");
    let batch_of = |id: i64| batches[batches.partition_point(|first_id| *first_id <= id) - 1];
    let (batch_id, observed_in) = (batch_of(ble_event_id), batch_of(first_id));
    let last_id: i64 =
        sql("SELECT last_id FROM ble_batches WHERE tenant_uuid = $1 AND first_id = $2")
            .bind((tenant_uuid, batch_id))
            .scalar(&mut tx)
            .await
            .expect("a batch");
    let of_batch = || {
        let is_in = |event: &&StoredEvent| (batch_id..=last_id).contains(&event.ble_event_id);
        events.iter().filter(is_in)
    };
    let records: Vec<Record> = of_batch().map(record).collect();
    let firsts: Vec<Option<FirstReception>> = of_batch()
        .map(|event| match event.ble_event_id == ble_event_id {
            true => Some(FirstReception {
                id: first_id,
                batch_id: observed_in,
            }),
            false => event.observation_id.map(|id| FirstReception {
                id,
                batch_id: batch_of(id),
            }),
        })
        .collect();
    for statement in [
        "DELETE FROM ble_batches WHERE tenant_uuid = $1 AND first_id = $2",
        "DELETE FROM ble_batch_repeats WHERE tenant_uuid = $1 AND first_id = $2",
    ] {
        sql(statement)
            .bind((tenant_uuid, batch_id))
            .run(&mut tx)
            .await
            .expect("rows");
    }
    // They are counted again below.
    for event in of_batch().filter(|event| event.device_instance_id.is_some()) {
        sql(
            "UPDATE ble_device_hours SET events = events - 1 WHERE tenant_uuid = $1 \
             AND device_instance_id = $2 AND hub_uuid = $3 AND hour_id <= $4 AND hour_id > $5",
        )
        .bind((
            tenant_uuid,
            event.device_instance_id,
            event.hub_uuid,
            batch_id,
            batch_id - 3_600_000_000,
        ))
        .run(&mut tx)
        .await
        .expect("rows");
    }
    let mut rows = Batches::default();
    let hub_uuid = of_batch().next().expect("an event").hub_uuid;
    rows.push((tenant_uuid, hub_uuid), batch_id, &records, &firsts)
        .expect("a batch");
    rows.insert(&mut tx).await.expect("rows");
    tx.commit_unaudited("a test").await.expect("a commit");
}

fn record(event: &StoredEvent) -> Record {
    Record {
        device_instance_id: event.device_instance_id,
        window: event.window,
        processing_status: event.processing_status,
        reading: event.reading.as_deref().map(Into::into),
        ..Record::new(event.event.as_str().into())
    }
}
