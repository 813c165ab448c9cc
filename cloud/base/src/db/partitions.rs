//! PostgreSQL's partitions: one for each month of the tables that grow by the record. They are
//! created in advance, and dropped whole when nobody keeps their records any longer.

use hub_protocol::Timestamp;

use super::months::Month;
use super::{Db, Sql, Tx, sql};
use crate::error::Result;

/// Tables partitioned by a record id, which is a time in microseconds.
pub(super) const PARTITIONED: [(&str, &str); 5] = [
    ("ble_batches", "first_id"),
    ("ble_device_hours", "hour_id"),
    ("ble_batch_repeats", "observed_in"),
    ("hub_logs", "hub_log_id"),
    ("hub_telemetry", "hub_telemetry_id"),
];

const MAX_MONTHS: u32 = 122;

/// A partition: one month of one table.
#[derive(Clone, Copy)]
struct Partition {
    table: &'static str,
    key: &'static str,
    month: Month,
}

impl Partition {
    fn name(&self) -> String {
        format!(
            "{}_{:04}_{:02}",
            self.table,
            self.month.year(),
            self.month.month()
        )
    }
}

/// Appends the name of a table's partition.
fn push_name(statement: Sql, table: &'static str, month: Month) -> Sql {
    let zero = if month.month() < 10 { "_0" } else { "_" };
    statement
        .push(table)
        .push("_")
        .push_number(month.year().into())
        .push(zero)
        .push_number(month.month().into())
}

/// Creates the partitions of this month and the next two on PostgreSQL. A row outside of them is
/// stored in the default partition, so a late partition costs speed and loses nothing.
pub async fn ensure(db: &Db, now: Timestamp) -> Result<()> {
    ensure_from(db, now, now).await
}

/// The same, and those of all months from `first` on; at most those of the last ten years.
pub(super) async fn ensure_from(db: &Db, first: Timestamp, now: Timestamp) -> Result<()> {
    let Db::Postgres { .. } = db else {
        return Ok(());
    };
    let last = Month::of(now).plus(2);
    let mut months: Vec<Month> = (0..=MAX_MONTHS)
        .map(|months_ago| last.minus(months_ago))
        .take_while(|month| *month >= Month::of(first.min(now)))
        .collect();
    months.reverse();
    let required: Vec<Partition> = months
        .into_iter()
        .flat_map(|month| PARTITIONED.map(|(table, key)| Partition { table, key, month }))
        .collect();
    let existing: Vec<String> = sql("SELECT CAST(relname AS TEXT) FROM pg_class WHERE relname IN ")
        .push_list(required.iter().map(Partition::name))
        .scalars(&mut db.read().await?)
        .await?;
    for partition in required {
        if !existing.contains(&partition.name()) {
            create(db, partition).await?;
        }
    }
    Ok(())
}

async fn create(db: &Db, partition: Partition) -> Result<()> {
    let Partition { table, key, month } = partition;
    let mut tx = db.begin().await?;
    // Replicas that find the same partition missing create it one after the other.
    sql("SELECT pg_advisory_xact_lock(7310465)")
        .run(&mut tx)
        .await?;
    let has_strays = sql("SELECT 1 FROM ")
        .push(table)
        .push("_default WHERE ")
        .push(key)
        .push(" >= $1 AND ")
        .push(key)
        .push(" < $2 LIMIT 1")
        .bind(month.start_micros())
        .bind(month.end_micros())
        .exists(&mut tx)
        .await?;
    // Rows that are in the default partition already stay there, and the month gets no partition.
    if !has_strays {
        push_name(sql("CREATE TABLE IF NOT EXISTS "), table, month)
            .push(" PARTITION OF ")
            .push(table)
            .push(" FOR VALUES FROM (")
            .push_number(month.start_micros())
            .push(") TO (")
            .push_number(month.end_micros())
            .push(")")
            .run(&mut tx)
            .await?;
    }
    tx.commit_unaudited("schema upkeep").await
}

/// The months of the table that have a partition and ended at `before` or earlier, the oldest
/// first. None on SQLite.
pub async fn ended(db: &Db, table: &'static str, before: Timestamp) -> Result<Vec<Month>> {
    let Db::Postgres { .. } = db else {
        return Ok(Vec::new());
    };
    let names: Vec<String> = sql("SELECT CAST(pg_class.relname AS TEXT) FROM pg_inherits \
         JOIN pg_class ON pg_class.oid = pg_inherits.inhrelid \
         WHERE pg_inherits.inhparent = to_regclass($1)")
    .bind(table)
    .scalars(&mut db.read().await?)
    .await?;
    let mut months: Vec<Month> = names
        .iter()
        .filter_map(|name| month_of(name, table))
        .collect();
    months.retain(|month| month.end_micros() <= before.as_micros());
    months.sort_unstable();
    Ok(months)
}

/// The month of a partition by its name; none of the default partition.
fn month_of(name: &str, table: &str) -> Option<Month> {
    let (year, month) = name
        .strip_prefix(table)?
        .strip_prefix('_')?
        .split_once('_')?;
    Month::first_of(year.parse().ok()?, month.parse().ok()?)
}

/// Drops a partition with all its records. The statement needs an exclusive lock on the table; it
/// gives up rather than let others wait behind it.
pub async fn drop_month(tx: &mut Tx, table: &'static str, month: Month) -> Result<()> {
    sql("SET LOCAL lock_timeout = '200ms'").run(tx).await?;
    push_name(sql("DROP TABLE IF EXISTS "), table, month)
        .run(tx)
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_told_by_their_names() {
        let month = Month::first_of(2026, 3).expect("a month");
        let name = Partition {
            table: "hub_logs",
            key: "hub_log_id",
            month,
        }
        .name();
        assert_eq!(name, "hub_logs_2026_03");
        assert_eq!(month_of(&name, "hub_logs"), Some(month));
        for name in [
            "hub_logs_default",
            "hub_logs_2026_13",
            "hub_logs_2026",
            "ble_batches_2026_03",
        ] {
            assert_eq!(month_of(name, "hub_logs"), None, "{name}");
        }
    }
}
