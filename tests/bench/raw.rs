//! The raw limit: a row an event, with its key and one index, written into the service's own
//! database by one connection, without HTTP and without checks.

use std::time::{Duration, Instant};

use hub_base::db::{Db, sql};
use hub_ingest::Record;
use hub_ingest::batches::Batches;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use hub_tests::Backend;
use sqlx::{ConnectOptions, Connection};
use sqlx_postgres::{PgConnectOptions, PgConnection};
use uuid::Uuid;

use crate::service::Service;

const EVENTS_OF_A_BATCH: usize = 100;

/// One row of a table of the bench's own.
pub struct Row<'a> {
    pub tenant_uuid: Uuid,
    pub hub_uuid: Uuid,
    pub event: &'a str,
}

/// Writes rows for a while, `per_transaction` at a time; returns rows per second. `first_id` must
/// be above all ids in the table.
pub async fn write(
    service: &Service,
    rows: &[Row<'_>],
    per_transaction: usize,
    first_id: &mut i64,
    time: Duration,
) -> f64 {
    match service.backend {
        Backend::Sqlite => tokio::task::block_in_place(|| {
            write_sqlite(service, rows, per_transaction, first_id, time)
        }),
        Backend::Postgres => write_postgres(service, rows, per_transaction, first_id, time).await,
    }
}

/// Stores so many events in batches, the given ones again and again, with ids from `first_id` on.
pub async fn fill(
    service: &Service,
    rows: &[Row<'_>],
    per_transaction: usize,
    mut first_id: i64,
    count: usize,
) {
    let db = open(service);
    let mut events = rows.iter().cycle().take(count).peekable();
    while events.peek().is_some() {
        let mut batches = Batches::default();
        let transaction: Vec<&Row<'_>> = events.by_ref().take(per_transaction).collect();
        for batch in transaction.chunk_by(|one, next| one.hub_uuid == next.hub_uuid) {
            for batch in batch.chunks(EVENTS_OF_A_BATCH) {
                let records: Vec<Record> = batch
                    .iter()
                    .map(|row| Record::new(row.event.into()))
                    .collect();
                let of = (TenantUuid(batch[0].tenant_uuid), HubUuid(batch[0].hub_uuid));
                batches
                    .push(of, first_id, &records, &vec![None; records.len()])
                    .expect("a batch");
                first_id += i64::try_from(records.len()).expect("a small number");
            }
        }
        let mut tx = db.begin().await.expect("a transaction");
        batches.insert(&mut tx).await.expect("rows");
        tx.commit_unaudited("a bench").await.expect("a commit");
    }
    db.close().await;
}

/// Makes background work due, whenever it was done last.
pub async fn make_due(service: &Service, kind: &str) {
    let db = open(service);
    let mut tx = db.begin().await.expect("a transaction");
    sql("UPDATE tasks SET next_attempt_at = $1 WHERE kind = $2")
        .bind((Timestamp::from_micros(0), kind))
        .run(&mut tx)
        .await
        .expect("a task");
    tx.commit_unaudited("a bench").await.expect("a commit");
    db.close().await;
}

fn open(service: &Service) -> Db {
    let url = match service.backend {
        Backend::Sqlite => format!("sqlite:{}", service.sqlite_file().display()),
        Backend::Postgres => service.database.as_ref().expect("a database").url.clone(),
    };
    Db::open(&url).expect("the service's database")
}

fn write_sqlite(
    service: &Service,
    rows: &[Row<'_>],
    per_transaction: usize,
    first_id: &mut i64,
    time: Duration,
) -> f64 {
    let mut db = rusqlite::Connection::open(service.sqlite_file()).expect("the service's database");
    db.pragma_update(None, "synchronous", "FULL")
        .expect("the service's own durability");
    db.pragma_update(None, "cache_size", -32768)
        .expect("the service's own cache");
    db.pragma_update(None, "wal_autocheckpoint", 8192)
        .expect("the service's own pace");
    db.busy_timeout(Duration::from_secs(5)).expect("a timeout");
    db.execute_batch(
        "CREATE TABLE IF NOT EXISTS raw_events (tenant_uuid BLOB NOT NULL, \
         ble_event_id INTEGER NOT NULL, hub_uuid BLOB NOT NULL, event TEXT NOT NULL, \
         PRIMARY KEY (tenant_uuid, ble_event_id)); \
         CREATE INDEX IF NOT EXISTS raw_events_hub \
         ON raw_events (tenant_uuid, hub_uuid, ble_event_id)",
    )
    .expect("a table");
    let started_at = Instant::now();
    let mut written = 0_usize;
    for transaction in rows.chunks_exact(per_transaction).cycle() {
        if started_at.elapsed() >= time {
            break;
        }
        let tx = db
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .expect("a transaction");
        {
            let mut insert = tx
                .prepare_cached(
                    "INSERT INTO raw_events (tenant_uuid, hub_uuid, ble_event_id, event) \
                     VALUES (?, ?, ?, ?)",
                )
                .expect("a statement");
            for row in transaction {
                let values = (
                    row.tenant_uuid.as_bytes(),
                    row.hub_uuid.as_bytes(),
                    *first_id,
                    row.event,
                );
                insert.execute(values).expect("a row");
                *first_id += 1;
            }
        }
        tx.commit().expect("a commit");
        written += transaction.len();
    }
    written as f64 / started_at.elapsed().as_secs_f64()
}

async fn write_postgres(
    service: &Service,
    rows: &[Row<'_>],
    per_transaction: usize,
    first_id: &mut i64,
    time: Duration,
) -> f64 {
    let url = &service.database.as_ref().expect("a database").url;
    let options: PgConnectOptions = url.parse().expect("a database URL");
    let mut db: PgConnection = options.connect().await.expect("a connection");
    // The limit is to be the database's, not that of an acknowledgement delayed.
    hub_base::db::nodelay::set();
    for statement in [
        "CREATE TABLE IF NOT EXISTS raw_events (tenant_uuid UUID NOT NULL, \
         ble_event_id BIGINT NOT NULL, hub_uuid UUID NOT NULL, event TEXT NOT NULL, \
         PRIMARY KEY (tenant_uuid, ble_event_id))",
        "CREATE INDEX IF NOT EXISTS raw_events_hub \
         ON raw_events (tenant_uuid, hub_uuid, ble_event_id)",
    ] {
        sqlx::query(statement)
            .execute(&mut db)
            .await
            .expect("a table");
    }
    let started_at = Instant::now();
    let mut written = 0_usize;
    for transaction in rows.chunks_exact(per_transaction).cycle() {
        if started_at.elapsed() >= time {
            break;
        }
        let mut tx = db.begin().await.expect("a transaction");
        let ids: Vec<i64> = (*first_id..).take(transaction.len()).collect();
        sqlx::query(
            "INSERT INTO raw_events (tenant_uuid, hub_uuid, ble_event_id, event) \
             SELECT * FROM UNNEST($1::uuid[], $2::uuid[], $3::bigint[], $4::text[])",
        )
        .bind(
            transaction
                .iter()
                .map(|row| row.tenant_uuid)
                .collect::<Vec<_>>(),
        )
        .bind(
            transaction
                .iter()
                .map(|row| row.hub_uuid)
                .collect::<Vec<_>>(),
        )
        .bind(ids)
        .bind(transaction.iter().map(|row| row.event).collect::<Vec<_>>())
        .execute(&mut *tx)
        .await
        .expect("rows");
        tx.commit().await.expect("a commit");
        *first_id += i64::try_from(transaction.len()).expect("a small number");
        written += transaction.len();
    }
    let rows_per_sec = written as f64 / started_at.elapsed().as_secs_f64();
    let _ = db.close().await;
    rows_per_sec
}
