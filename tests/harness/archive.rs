//! Many stored events in an SQLite database whose service is stopped, without uploading them.

use std::path::Path;

use hub_base::db::{Db, sql};
use hub_ingest::batches::Batches;
use hub_ingest::{ProcessingStatus, Record};
use hub_protocol::{HubUuid, TenantUuid};

use crate::events;

/// Batches of one transaction.
const BATCHES: i64 = 2_000;
const BATCH_MICROS: i64 = 200_000;

/// Adds batches of copies of the first stored event, five a second up to the time of that one. They
/// are of all hubs in turn, and of a thousand devices.
pub async fn add_events(file: &Path, batches: i64, events_of_a_batch: i64) {
    let db = Db::open(&format!("sqlite:{}", file.display())).expect("the database opens");
    let hubs: Vec<(TenantUuid, HubUuid)> = sql("SELECT tenant_uuid, hub_uuid FROM hubs")
        .all(&mut db.read().await.expect("a connection"))
        .await
        .expect("hubs");
    let first = events::all(&db).await.remove(0);
    let record = |number: i64| Record {
        device_instance_id: Some(number % 1000 + 1),
        processing_status: ProcessingStatus::Decoded,
        reading: Some(format!("{{\"values\":{{\"temperature\":{}}}}}", number % 100).into()),
        ..Record::new(first.event.as_str().into())
    };
    for start in (0..batches).step_by(BATCHES as usize) {
        let mut rows = Batches::default();
        for batch in start..(start + BATCHES).min(batches) {
            let numbers = batch * events_of_a_batch..(batch + 1) * events_of_a_batch;
            let records: Vec<Record> = numbers.map(record).collect();
            let of = hubs[usize::try_from(batch).expect("a number") % hubs.len()];
            let first_id = first.ble_event_id - (batches - batch) * BATCH_MICROS;
            rows.push(of, first_id, &records, &vec![None; records.len()])
                .expect("a batch");
        }
        let mut tx = db.begin().await.expect("a transaction");
        rows.insert(&mut tx).await.expect("rows");
        tx.commit_unaudited("a test").await.expect("a commit");
    }
    db.close().await;
}
