//! The schema's history, built into the program: the same versions for both databases, applied in order, each in a transaction and
//! under a lock, so that replicas may start together. Released files are never edited. Also keeps PostgreSQL's time partitions ahead of the clock.

use std::borrow::Cow;

use chrono::{Datelike, Months, NaiveDate};
use hub_protocol::Timestamp;
use sqlx::AssertSqlSafe;
use sqlx::SqlSafeStr;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};

use super::{Db, sql};
use crate::error::Result;

struct Version {
    number: i64,
    name: &'static str,
    postgres: &'static str,
    sqlite: &'static str,
}

const VERSIONS: &[Version] = &[Version {
    number: 1,
    name: "foundation",
    postgres: include_str!("../../../migrations/postgres/0001_foundation.sql"),
    sqlite: include_str!("../../../migrations/sqlite/0001_foundation.sql"),
}];

fn migrator(text: impl Fn(&Version) -> &'static str) -> Migrator {
    let migrations = VERSIONS
        .iter()
        .map(|version| {
            let sql = AssertSqlSafe(text(version)).into_sql_str();
            Migration::new(version.number, Cow::Borrowed(version.name), MigrationType::Simple, sql, false)
        })
        .collect();
    Migrator::with_migrations(migrations)
}

/// Brings the schema up to this program's version. Running it again does nothing.
pub async fn run(db: &Db, now: Timestamp) -> std::result::Result<(), MigrateError> {
    match db {
        Db::Postgres(pool) => migrator(|version| version.postgres).run(pool).await?,
        Db::Sqlite { writer, .. } => migrator(|version| version.sqlite).run(writer).await?,
    }
    ensure_partitions(db, now).await.map_err(|error| MigrateError::Source(Box::new(error)))
}

/// Tables partitioned by their record id, which is a time in microseconds.
const PARTITIONED: &[&str] = &["ble_events", "hub_logs", "hub_telemetry"];

/// Makes the partitions of this month and the next two on PostgreSQL. A row outside of them lands in the default partition, so being
/// late costs speed and loses nothing.
pub async fn ensure_partitions(db: &Db, now: Timestamp) -> Result<()> {
    let Db::Postgres(_) = db else { return Ok(()) };
    let today = now.to_datetime().date_naive();
    let mut month = NaiveDate::from_ymd_opt(today.year(), today.month(), 1).unwrap_or(today);
    for _ in 0..3 {
        let next = month.checked_add_months(Months::new(1)).unwrap_or(NaiveDate::MAX);
        for table in PARTITIONED {
            create_partition(db, table, month, next).await?;
        }
        month = next;
    }
    Ok(())
}

async fn create_partition(db: &Db, table: &str, from: NaiveDate, to: NaiveDate) -> Result<()> {
    let micros = |day: NaiveDate| day.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_micros();
    let name = format!("{table}_{:04}_{:02}", from.year(), from.month());
    let mut tx = db.begin().await?;
    // Two replicas that make the same partition at once would both find it missing.
    sql("SELECT pg_advisory_xact_lock(7310465)").execute(&mut tx).await?;
    let found: Vec<(i64,)> =
        sql("SELECT CAST(1 AS BIGINT) FROM pg_class WHERE relname = $1").bind(name.as_str()).all(&mut tx).await?;
    if found.is_empty() {
        let in_default: Vec<(i64,)> = sql(&format!(
            "SELECT CAST(1 AS BIGINT) FROM {table}_default WHERE {} LIMIT 1",
            range(table, micros(from), micros(to))
        ))
        .all(&mut tx)
        .await?;
        // Rows that already lie in the default partition stay there; the month then has no partition of its own.
        if in_default.is_empty() {
            let (from, to) = (micros(from), micros(to));
            sql(&format!("CREATE TABLE {name} PARTITION OF {table} FOR VALUES FROM ({from}) TO ({to})"))
                .execute(&mut tx)
                .await?;
        }
    }
    tx.commit_unaudited("schema upkeep").await
}

fn range(table: &str, from: i64, to: i64) -> String {
    let key = match table {
        "ble_events" => "ble_event_id",
        "hub_logs" => "hub_log_id",
        _ => "hub_telemetry_id",
    };
    format!("{key} >= {from} AND {key} < {to}")
}
