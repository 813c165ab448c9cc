//! Migrations, built into the program. Both databases have the same versions. They are applied in
//! order, each in a transaction and under a lock, so that replicas may start together. Released
//! files are never edited. Also creates PostgreSQL's time partitions in advance.

use std::borrow::Cow;

use chrono::{Datelike, Months, NaiveDate};
use hub_protocol::Timestamp;
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

const VERSIONS: &[Version] = &[
    Version {
        number: 1,
        name: "foundation",
        postgres: include_str!("../../../migrations/postgres/0001_foundation.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0001_foundation.sql"),
    },
    Version {
        number: 2,
        name: "people",
        postgres: include_str!("../../../migrations/postgres/0002_people.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0002_people.sql"),
    },
    Version {
        number: 3,
        name: "releases",
        postgres: include_str!("../../../migrations/postgres/0003_releases.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0003_releases.sql"),
    },
    Version {
        number: 4,
        name: "jobs",
        postgres: include_str!("../../../migrations/postgres/0004_jobs.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0004_jobs.sql"),
    },
    Version {
        number: 5,
        name: "update_policies",
        postgres: include_str!("../../../migrations/postgres/0005_update_policies.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0005_update_policies.sql"),
    },
    Version {
        number: 6,
        name: "certificates",
        postgres: include_str!("../../../migrations/postgres/0006_certificates.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0006_certificates.sql"),
    },
    Version {
        number: 7,
        name: "setup_delegations",
        postgres: include_str!("../../../migrations/postgres/0007_setup_delegations.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0007_setup_delegations.sql"),
    },
    Version {
        number: 8,
        name: "policies",
        postgres: include_str!("../../../migrations/postgres/0008_policies.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0008_policies.sql"),
    },
    Version {
        number: 9,
        name: "job_event_age",
        postgres: include_str!("../../../migrations/postgres/0009_job_event_age.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0009_job_event_age.sql"),
    },
    Version {
        number: 10,
        name: "task_lanes",
        postgres: include_str!("../../../migrations/postgres/0010_task_lanes.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0010_task_lanes.sql"),
    },
    Version {
        number: 11,
        name: "tenant_limits",
        postgres: include_str!("../../../migrations/postgres/0011_tenant_limits.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0011_tenant_limits.sql"),
    },
    Version {
        number: 12,
        name: "hub_release",
        postgres: include_str!("../../../migrations/postgres/0012_hub_release.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0012_hub_release.sql"),
    },
    Version {
        number: 14,
        name: "login_bounds",
        postgres: include_str!("../../../migrations/postgres/0014_login_bounds.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0014_login_bounds.sql"),
    },
    Version {
        number: 15,
        name: "upload_paces",
        postgres: include_str!("../../../migrations/postgres/0015_upload_paces.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0015_upload_paces.sql"),
    },
    Version {
        number: 17,
        name: "platform_lists",
        postgres: include_str!("../../../migrations/postgres/0017_platform_lists.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0017_platform_lists.sql"),
    },
];

fn migrator(text: impl Fn(&Version) -> &'static str) -> Migrator {
    let migrations = VERSIONS
        .iter()
        .map(|version| {
            let sql = text(version).into_sql_str();
            Migration::new(version.number, Cow::Borrowed(version.name), MigrationType::Simple, sql, false)
        })
        .collect();
    Migrator::with_migrations(migrations)
}

/// Brings the schema up to this program's version. Running it again does nothing.
pub async fn run(db: &Db, now: Timestamp) -> std::result::Result<(), MigrateError> {
    match db {
        Db::Postgres(pool) => {
            let mut conn = pool.acquire().await.map_err(MigrateError::Execute)?;
            // Creating an index on a large table may take long, and so may waiting for the replica
            // that creates it.
            sqlx::query("SET statement_timeout = 0").execute(&mut *conn).await?;
            migrator(|version| version.postgres).run(&mut *conn).await?;
            sqlx::query("RESET statement_timeout").execute(&mut *conn).await?;
        }
        Db::Sqlite { writer, .. } => migrator(|version| version.sqlite).run(writer).await?,
    }
    ensure_partitions(db, now).await.map_err(|error| MigrateError::Source(Box::new(error)))
}

/// The database's schema compared with this program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// The database is empty.
    None,
    Current,
    /// The number of missing versions.
    Older(usize),
    /// The version of the later program that created it.
    Newer(i64),
}

/// Reads the state of the schema and changes nothing.
pub async fn schema(db: &Db) -> Result<Schema> {
    let mut conn = db.read().await?;
    let table = match db {
        Db::Postgres(_) => {
            "SELECT 1 FROM pg_tables \
             WHERE schemaname = current_schema() AND tablename = '_sqlx_migrations'"
        }
        Db::Sqlite { .. } => {
            "SELECT 1 FROM sqlite_schema \
             WHERE type = 'table' AND name = '_sqlx_migrations'"
        }
    };
    if !sql(table).exists(&mut conn).await? {
        return Ok(Schema::None);
    }
    let applied: Vec<i64> = sql("SELECT version FROM _sqlx_migrations ORDER BY version").scalars(&mut conn).await?;
    let ours = |version: i64| VERSIONS.iter().any(|ours| ours.number == version);
    let missing = VERSIONS.iter().filter(|ours| !applied.contains(&ours.number)).count();
    Ok(match applied.iter().rev().find(|version| !ours(**version)) {
        Some(version) => Schema::Newer(*version),
        None if applied.is_empty() => Schema::None,
        None if missing > 0 => Schema::Older(missing),
        None => Schema::Current,
    })
}

/// Tables partitioned by a record id, which is a time in microseconds.
const PARTITIONED: [(&str, &str); 3] =
    [("ble_events", "ble_event_id"), ("hub_logs", "hub_log_id"), ("hub_telemetry", "hub_telemetry_id")];

/// One month of one table.
struct Partition {
    table: &'static str,
    key: &'static str,
    first_day: NaiveDate,
    end_day: NaiveDate,
}

impl Partition {
    fn name(&self) -> String {
        format!("{}_{:04}_{:02}", self.table, self.first_day.year(), self.first_day.month())
    }
}

/// Creates the partitions of this month and the next two on PostgreSQL. A row outside of them is
/// stored in the default partition, so a late partition costs speed and loses nothing.
pub async fn ensure_partitions(db: &Db, now: Timestamp) -> Result<()> {
    let Db::Postgres(_) = db else { return Ok(()) };
    let required = partitions(now);
    let existing: Vec<String> = sql("SELECT CAST(relname AS TEXT) FROM pg_class WHERE relname IN ")
        .push_list(required.iter().map(Partition::name))
        .scalars(&mut db.read().await?)
        .await?;
    for partition in required {
        if !existing.contains(&partition.name()) {
            create(db, &partition).await?;
        }
    }
    Ok(())
}

fn partitions(now: Timestamp) -> Vec<Partition> {
    let today = now.to_datetime().date_naive();
    let first = NaiveDate::from_ymd_opt(today.year(), today.month(), 1).unwrap_or(today);
    let month = |months: u32| first.checked_add_months(Months::new(months)).unwrap_or(NaiveDate::MAX);
    let mut partitions = Vec::new();
    for (first_day, end_day) in [(month(0), month(1)), (month(1), month(2)), (month(2), month(3))] {
        for (table, key) in PARTITIONED {
            partitions.push(Partition { table, key, first_day, end_day });
        }
    }
    partitions
}

async fn create(db: &Db, partition: &Partition) -> Result<()> {
    let Partition { table, key, first_day, end_day } = *partition;
    let micros = |day: NaiveDate| day.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_micros();
    let (from_micros, to_micros) = (micros(first_day), micros(end_day));
    let mut tx = db.begin().await?;
    // Replicas that find the same partition missing create it one after the other.
    sql("SELECT pg_advisory_xact_lock(7310465)").run(&mut tx).await?;
    let has_strays = sql("SELECT 1 FROM ")
        .push(table)
        .push("_default WHERE ")
        .push(key)
        .push(" >= $1 AND ")
        .push(key)
        .push(" < $2 LIMIT 1")
        .bind(from_micros)
        .bind(to_micros)
        .exists(&mut tx)
        .await?;
    // Rows that are in the default partition already stay there, and the month gets no partition.
    if !has_strays {
        let zero = if first_day.month() < 10 { "_0" } else { "_" };
        sql("CREATE TABLE IF NOT EXISTS ")
            .push(table)
            .push("_")
            .push_number(first_day.year().into())
            .push(zero)
            .push_number(first_day.month().into())
            .push(" PARTITION OF ")
            .push(table)
            .push(" FOR VALUES FROM (")
            .push_number(from_micros)
            .push(") TO (")
            .push_number(to_micros)
            .push(")")
            .run(&mut tx)
            .await?;
    }
    tx.commit_unaudited("schema upkeep").await
}
