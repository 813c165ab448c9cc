//! Migrations: of a new database, of one that an earlier version created or began to create, and of
//! one that no release created.

use std::path::Path;

use hub_base::clock::Clock;
use hub_base::db::migrate::{self, Schema};
use hub_base::db::{Db, sql};
use hub_tests::postgres::Database;
use hub_tests::{Backend, on_each_database};
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{Connection, Executor, SqlSafeStr};
use sqlx_postgres::PgConnection;
use tempfile::TempDir;

/// A database without tables, and what is deleted after the test.
struct Empty {
    db: Db,
    _dir: TempDir,
    _database: Option<Database>,
}

impl Empty {
    async fn new(backend: Backend) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let (url, database) = match backend {
            Backend::Sqlite => {
                let file = dir.path().join("hub-cloud.sqlite");
                (format!("sqlite:{}", file.display()), None)
            }
            Backend::Postgres => {
                let database = Database::create().await;
                let mut conn = PgConnection::connect(&database.url)
                    .await
                    .expect("a connection");
                conn.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
                    .await
                    .expect("an empty database");
                (database.url.clone(), Some(database))
            }
        };
        Self {
            db: Db::open(&url).expect("a database"),
            _dir: dir,
            _database: database,
        }
    }
}

/// The migrations in the folder of a database.
async fn files(backend: Backend) -> Vec<Migration> {
    let folder = match backend {
        Backend::Sqlite => "sqlite",
        Backend::Postgres => "postgres",
    };
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations")).join(folder);
    let found = Migrator::new(folder.as_path()).await.expect("the files");
    found.iter().cloned().collect()
}

async fn apply(db: &Db, migrations: &[Migration]) {
    let migrator = Migrator::with_migrations(migrations.to_vec());
    let applied = match db {
        Db::Postgres { pool, .. } => migrator.run(pool).await,
        Db::Sqlite { writer, .. } => migrator.run(writer).await,
    };
    applied.expect("the migrations apply");
}

async fn schema(db: &Db) -> Schema {
    migrate::schema(db).await.expect("the state of the schema")
}

on_each_database!(a_database_gets_the_migrations_that_it_lacks);
/// A process that is killed leaves whole migrations too: each is one transaction.
async fn a_database_gets_the_migrations_that_it_lacks(backend: Backend) {
    let all = files(backend).await;
    for count in [0, 1, all.len() - 1, all.len()] {
        let Empty { db, .. } = &Empty::new(backend).await;
        apply(db, &all[..count]).await;
        let expected = match all.len() - count {
            _ if count == 0 => Schema::None,
            // The program has the texts of the files, under their numbers.
            0 => Schema::Current,
            missing => Schema::Older(missing),
        };
        assert_eq!(schema(db).await, expected, "{count}");
        for _ in 0..2 {
            migrate::run(db, Clock::System.now())
                .await
                .unwrap_or_else(|error| panic!("{count}: {error}"));
            assert_eq!(schema(db).await, Schema::Current, "{count}");
        }
        db.close().await;
    }
}

on_each_database!(a_database_from_before_the_first_release_is_left_alone);
/// Its versions have the numbers of today's or later ones, and other texts.
async fn a_database_from_before_the_first_release_is_left_alone(backend: Backend) {
    let old = [
        (1, "CREATE TABLE users (user_uuid TEXT)"),
        (39, "CREATE TABLE floor_plans (floor_plan_uuid TEXT)"),
    ]
    .map(|(number, text)| {
        let text = text.into_sql_str();
        Migration::new(number, "old".into(), MigrationType::Simple, text, false)
    });
    for count in 1..=old.len() {
        let Empty { db, .. } = &Empty::new(backend).await;
        apply(db, &old[..count]).await;
        assert_eq!(schema(db).await, Schema::Unreleased(1));
        let refused = migrate::run(db, Clock::System.now()).await;
        assert!(
            matches!(refused, Err(MigrateError::VersionMismatch(1))),
            "{refused:?}"
        );
        let mut conn = db.read().await.expect("a connection");
        let versions: Vec<i64> = sql("SELECT version FROM _sqlx_migrations ORDER BY version")
            .scalars(&mut conn)
            .await
            .expect("the versions");
        assert_eq!(versions.len(), count, "{versions:?}");
        let tenants = sql("SELECT 1 FROM tenants").exists(&mut conn).await;
        assert!(tenants.is_err(), "no table was created");
        drop(conn);
        db.close().await;
    }
}
