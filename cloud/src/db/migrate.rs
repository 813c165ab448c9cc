//! Migrations, built into the program. Both databases have the same versions. They are applied in
//! order, each in a transaction and under a lock, so that replicas may start together. Released
//! files are never edited.

use std::borrow::Cow;

use hub_protocol::Timestamp;
use sqlx::SqlSafeStr;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};

use super::{Db, partitions, space, sql};
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
        number: 13,
        name: "retention",
        postgres: include_str!("../../../migrations/postgres/0013_retention.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0013_retention.sql"),
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
    Version {
        number: 18,
        name: "device_catalog",
        postgres: include_str!("../../../migrations/postgres/0018_device_catalog.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0018_device_catalog.sql"),
    },
    Version {
        number: 19,
        name: "device_instances",
        postgres: include_str!("../../../migrations/postgres/0019_device_instances.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0019_device_instances.sql"),
    },
    Version {
        number: 20,
        name: "device_pages",
        postgres: include_str!("../../../migrations/postgres/0020_device_pages.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0020_device_pages.sql"),
    },
    Version {
        number: 21,
        name: "readings",
        postgres: include_str!("../../../migrations/postgres/0021_readings.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0021_readings.sql"),
    },
    Version {
        number: 22,
        name: "device_history",
        postgres: include_str!("../../../migrations/postgres/0022_device_history.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0022_device_history.sql"),
    },
    Version {
        number: 23,
        name: "ble_routes",
        postgres: include_str!("../../../migrations/postgres/0023_ble_routes.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0023_ble_routes.sql"),
    },
    Version {
        number: 26,
        name: "reprocessing",
        postgres: include_str!("../../../migrations/postgres/0026_reprocessing.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0026_reprocessing.sql"),
    },
    Version {
        number: 27,
        name: "external_endpoints",
        postgres: include_str!("../../../migrations/postgres/0027_external_endpoints.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0027_external_endpoints.sql"),
    },
    Version {
        number: 28,
        name: "registration_push",
        postgres: include_str!("../../../migrations/postgres/0028_registration_push.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0028_registration_push.sql"),
    },
    Version {
        number: 29,
        name: "notices",
        postgres: include_str!("../../../migrations/postgres/0029_notices.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0029_notices.sql"),
    },
    Version {
        number: 30,
        name: "pipelines",
        postgres: include_str!("../../../migrations/postgres/0030_pipelines.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0030_pipelines.sql"),
    },
    Version {
        number: 31,
        name: "supplier_bundles",
        postgres: include_str!("../../../migrations/postgres/0031_supplier_bundles.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0031_supplier_bundles.sql"),
    },
    Version {
        number: 32,
        name: "supplier_links",
        postgres: include_str!("../../../migrations/postgres/0032_supplier_links.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0032_supplier_links.sql"),
    },
    Version {
        number: 33,
        name: "lost_events",
        postgres: include_str!("../../../migrations/postgres/0033_lost_events.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0033_lost_events.sql"),
    },
    Version {
        number: 34,
        name: "end users",
        postgres: include_str!("../../../migrations/postgres/0034_end_users.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0034_end_users.sql"),
    },
    Version {
        number: 35,
        name: "partner projects",
        postgres: include_str!("../../../migrations/postgres/0035_partner_projects.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0035_partner_projects.sql"),
    },
    Version {
        number: 36,
        name: "account",
        postgres: include_str!("../../../migrations/postgres/0036_account.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0036_account.sql"),
    },
    Version {
        number: 37,
        name: "device commands",
        postgres: include_str!("../../../migrations/postgres/0037_device_commands.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0037_device_commands.sql"),
    },
    Version {
        number: 38,
        name: "browser sessions",
        postgres: include_str!("../../../migrations/postgres/0038_browser_sessions.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0038_browser_sessions.sql"),
    },
    Version {
        number: 39,
        name: "floor_plans",
        postgres: include_str!("../../../migrations/postgres/0039_floor_plans.sql"),
        sqlite: include_str!("../../../migrations/sqlite/0039_floor_plans.sql"),
    },
];

fn migrator(text: impl Fn(&Version) -> &'static str) -> Migrator {
    let migrations = VERSIONS
        .iter()
        .map(|version| {
            let sql = text(version).into_sql_str();
            Migration::new(
                version.number,
                Cow::Borrowed(version.name),
                MigrationType::Simple,
                sql,
                false,
            )
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
            sqlx::query("SET statement_timeout = 0")
                .execute(&mut *conn)
                .await?;
            migrator(|version| version.postgres).run(&mut *conn).await?;
            sqlx::query("RESET statement_timeout")
                .execute(&mut *conn)
                .await?;
        }
        Db::Sqlite { writer, .. } => {
            space::create(&writer.connect_options())
                .await
                .map_err(MigrateError::Execute)?;
            migrator(|version| version.sqlite).run(writer).await?;
        }
    }
    partitions::ensure(db, now)
        .await
        .map_err(|error| MigrateError::Source(Box::new(error)))
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
    let applied: Vec<i64> = sql("SELECT version FROM _sqlx_migrations ORDER BY version")
        .scalars(&mut conn)
        .await?;
    let ours = |version: i64| VERSIONS.iter().any(|ours| ours.number == version);
    let missing = VERSIONS
        .iter()
        .filter(|ours| !applied.contains(&ours.number))
        .count();
    Ok(
        match applied.iter().rev().find(|version| !ours(**version)) {
            Some(version) => Schema::Newer(*version),
            None if applied.is_empty() => Schema::None,
            None if missing > 0 => Schema::Older(missing),
            None => Schema::Current,
        },
    )
}
