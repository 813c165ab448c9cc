//! The raw limit: rows written into the service's own database by one connection, without HTTP and
//! without checks.

use std::time::{Duration, Instant};

use hub_tests::Backend;
use sqlx::{ConnectOptions, Connection};
use sqlx_postgres::{PgConnectOptions, PgConnection};
use uuid::Uuid;

use crate::service::Service;

/// One row of `ble_events`.
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

/// Writes so many rows, the given ones again and again, with ids from `first_id` on.
pub async fn fill(
    service: &Service,
    rows: &[Row<'_>],
    per_transaction: usize,
    mut first_id: i64,
    count: usize,
) {
    let end_id = first_id + i64::try_from(count).expect("a small number");
    while first_id < end_id {
        write(
            service,
            rows,
            per_transaction,
            &mut first_id,
            Duration::from_millis(200),
        )
        .await;
    }
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
                    "INSERT INTO ble_events (tenant_uuid, hub_uuid, ble_event_id, event) \
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
    let started_at = Instant::now();
    let mut written = 0_usize;
    for transaction in rows.chunks_exact(per_transaction).cycle() {
        if started_at.elapsed() >= time {
            break;
        }
        let mut tx = db.begin().await.expect("a transaction");
        let ids: Vec<i64> = (*first_id..).take(transaction.len()).collect();
        sqlx::query(
            "INSERT INTO ble_events (tenant_uuid, hub_uuid, ble_event_id, event) \
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
