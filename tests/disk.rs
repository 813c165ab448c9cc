//! A full disk: what would grow is refused, everything else goes on, and writes work again when
//! there is space.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hub_base::db::sql;
use hub_cloud::upkeep;
use hub_core::config::Settings;
use hub_core::tasks::{Done, Task};
use hub_tests::app::set_clock;
use hub_tests::disk::{SmallDatabase, SmallDisk};
use hub_tests::hub::events;
use hub_tests::people::PASSWORD;
use hub_tests::{Backend, Call, Options, Reply, SimulatedHub, Tenant, TestApp, on_each_database};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, Executor};
use sqlx_postgres::PgConnection;

const PATIENCE: Duration = Duration::from_secs(30);

/// The service on a disk of its own.
struct Small {
    app: TestApp,
    disk: Disk,
}

enum Disk {
    OfFile(SmallDisk),
    OfServer(SmallDatabase),
}

impl Small {
    fn disk(&self) -> &SmallDisk {
        match &self.disk {
            Disk::OfFile(disk) => disk,
            Disk::OfServer(database) => &database.disk,
        }
    }

    /// Whether the reserve is held.
    async fn holds_reserve(&self) -> bool {
        if let Some(file) = self.app.sqlite_file() {
            return Path::new(&format!("{}-reserve", file.display())).exists();
        }
        let mut conn = self.app.app.db.read().await.expect("a connection");
        let size: Option<i64> = sql("SELECT pg_relation_size(to_regclass('storage_reserve'))")
            .scalar(&mut conn)
            .await
            .expect("a size");
        size.is_some_and(|size| size > 0)
    }
}

async fn service(backend: Backend, options: Options) -> Option<Small> {
    let (app, disk) = match backend {
        Backend::Sqlite => {
            let disk = SmallDisk::mount(48)?;
            let dir = tempfile::tempdir_in(disk.path()).expect("a directory");
            (
                TestApp::on_sqlite_in(dir, options).await,
                Disk::OfFile(disk),
            )
        }
        Backend::Postgres => {
            let database = SmallDatabase::create(96).await?;
            (
                TestApp::on_postgres(&database.url, options, |_| ()).await,
                Disk::OfServer(database),
            )
        }
    };
    Some(Small { app, disk })
}

/// Tries until it succeeds.
async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let began_at = Instant::now();
    while !is_so().await {
        assert!(began_at.elapsed() < PATIENCE, "{what} took too long");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn is_refused_as_full(reply: &Reply) -> bool {
    if reply.status != 507 {
        return false;
    }
    assert_eq!(reply.problem().code, "STORAGE_FULL");
    assert!(
        reply
            .header("retry-after")
            .parse::<u64>()
            .is_ok_and(|secs| (1..=5).contains(&secs))
    );
    true
}

on_each_database!(a_full_disk_refuses_what_grows_and_nothing_else_and_recovers);
async fn a_full_disk_refuses_what_grows_and_nothing_else_and_recovers(backend: Backend) {
    let (clock, micros) = set_clock("2026-03-15T12:00:00Z".parse().expect("a time"));
    let settings = Settings {
        storage_reserve_bytes: Some(4 << 20),
        upload_limit_per_minute: Some(1_000_000),
        hub_token_lifetime: Some("365d".into()),
        ..Settings::default()
    };
    let Some(small) = service(
        backend,
        Options {
            clock: Some(clock),
            settings,
        },
    )
    .await
    else {
        return;
    };
    let app = &small.app;
    let tenant = Tenant::create(&app.client()).await;
    let mut hub = SimulatedHub::claim(&tenant).await;
    hub.upload_events(100).await;
    app.client().get("/readyz").call().await.expect(200);
    until("the reserve", || small.holds_reserve()).await;

    small.disk().fill();
    // What the database has left may take some.
    let mut refused = None;
    for _ in 0..500 {
        let reply = hub.upload(&events(300)).await;
        if is_refused_as_full(&reply) {
            refused = Some(reply);
            break;
        }
        reply.expect(201);
    }
    refused.expect("the disk is full");
    let unready = app.client().get("/readyz").call().await.expect(503);
    assert_eq!(unready.problem().code, "STORAGE_FULL");
    app.client().get("/healthz").call().await.expect(200);
    // PostgreSQL gives the room of a table back after the table is gone.
    until("the release of the reserve", async || {
        !small.holds_reserve().await && small.disk().available_bytes() > 1 << 20
    })
    .await;
    assert!(is_refused_as_full(&hub.upload(&events(1)).await));
    assert!(is_refused_as_full(
        &tenant
            .client
            .post("/tenant/hubs/claim-codes")
            .json(&json!({}))
            .call()
            .await
    ));

    // Reads, refreshes, logins and what ends something go on.
    let events_before: Vec<Value> = tenant
        .client
        .get("/tenant/ble/events?size=100")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(events_before.len(), 100);
    for _ in 0..10 {
        hub.refresh().await;
    }
    let refresh = json!({"refreshToken": tenant.owner.login.refresh_token});
    app.client()
        .post("/auth/refresh")
        .json(&refresh)
        .call()
        .await
        .expect(200);
    let login = json!({"email": tenant.owner.email, "password": PASSWORD});
    let login: Value = app
        .client()
        .post("/auth/login")
        .json(&login)
        .call()
        .await
        .expect(200)
        .data();
    let logout = json!({"refreshToken": login["refreshToken"]});
    app.client()
        .post("/auth/logout")
        .json(&logout)
        .call()
        .await
        .expect(204);

    // So does retention.
    let old = async || -> i64 {
        let mut conn = app.app.db.read().await.expect("a connection");
        sql("SELECT COUNT(*) FROM ble_batches")
            .scalar(&mut conn)
            .await
            .expect("a count")
    };
    let before = old().await;
    micros.fetch_add(31 * 24 * 3600 * 1_000_000, Ordering::Relaxed);
    let task = Task {
        task_uuid: uuid::Uuid::new_v4(),
        kind: "retention.ble_events".into(),
        payload: Value::Null,
        attempts: 1,
    };
    while upkeep::perform(app.app.clone(), task.clone())
        .await
        .expect("retention")
        == Done::RunAt(app.app.clock.now())
    {}
    assert!(before > 0 && old().await == 0);

    // Full again, whatever retention has freed; then somebody makes room.
    small.disk().fill();
    small.disk().free();
    until("the recovery", async || {
        hub.upload(&events(10)).await.status == 201
    })
    .await;
    app.client().get("/readyz").call().await.expect(200);
    hub.upload_events(1000).await;
    until("the reserve", || small.holds_reserve()).await;
    if let Some(file) = app.sqlite_file() {
        let database = rusqlite::Connection::open(file).expect("the database");
        let found: String = database
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .expect("a check");
        assert_eq!(found, "ok");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_work_again_at_once_after_a_statement_found_the_disk_full() {
    // Without a reserve and without anybody who looks at the disk: SQLite itself runs into the end.
    let Some(disk) = SmallDisk::mount(8) else {
        return;
    };
    let file = disk.path().join("x.sqlite");
    let db = hub_base::db::Db::open(&format!("sqlite:{}", file.display())).expect("a database");
    hub_base::db::migrate::run(&db, hub_base::clock::Clock::System.now())
        .await
        .expect("the schema");
    let write = async |bytes: usize| {
        let mut tx = db.begin().await?;
        sql("INSERT INTO sealing_keys (key_id, created_at) VALUES ($1, 'x')")
            .bind(uuid::Uuid::new_v4().to_string() + &"x".repeat(bytes))
            .run(&mut tx)
            .await?;
        tx.commit_unaudited("a test's own").await
    };
    write(10).await.expect("room");
    disk.fill();
    let mut failures = 0;
    for _ in 0..40 {
        if let Err(error) = write(300_000).await {
            assert!(error.is_storage_full(), "{error}");
            failures += 1;
        }
    }
    assert!(failures > 2, "{failures}");
    disk.free();
    write(300_000)
        .await
        .expect("room again, for the next write already");
}

/// Sends this to PostgreSQL, and ends all other connections to the database.
async fn reconfigure(app: &TestApp, statement: &str) {
    let url = app.app.config.database_url.expose_secret();
    let mut admin = PgConnection::connect(url).await.expect("a connection");
    let name: String = sqlx::query_scalar("SELECT current_database()")
        .fetch_one(&mut admin)
        .await
        .expect("a name");
    let statement = format!("BEGIN READ WRITE; ALTER DATABASE \"{name}\" {statement}; COMMIT");
    admin
        .execute(AssertSqlSafe(statement))
        .await
        .expect("a setting");
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    admin.execute(end).await.expect("the end of connections");
}

on_each_database!(a_read_only_database_is_said_and_heals_without_a_restart);
async fn a_read_only_database_is_said_and_heals_without_a_restart(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let create = async || {
        let plan = json!({"name": "Hall"});
        tenant
            .client
            .post("/tenant/floor-plans")
            .json(&plan)
            .call()
            .await
    };
    create().await.expect(201);
    match backend {
        // A connection that was opened while the file system was read-only stays so.
        Backend::Sqlite => {
            let mut tx = app.app.db.begin().await.expect("a transaction");
            sql("PRAGMA query_only = ON")
                .run(&mut tx)
                .await
                .expect("a setting");
            tx.commit_unaudited("a test").await.expect("a commit");
        }
        Backend::Postgres => reconfigure(&app, "SET default_transaction_read_only = on").await,
    }
    let refused = loop {
        let reply = create().await.expect(503);
        // Connections were ended, which is another outage.
        if reply.problem().code != "DATABASE_UNAVAILABLE" {
            break reply;
        }
    };
    assert_eq!(refused.problem().code, "STORAGE_READ_ONLY");
    assert_eq!(refused.header("retry-after"), "5");
    if backend == Backend::Postgres {
        let reply = app.client().get("/readyz").call().await.expect(503);
        assert_eq!(reply.problem().code, "STORAGE_READ_ONLY");
        app.client().get("/healthz").call().await.expect(200);
        reconfigure(&app, "RESET default_transaction_read_only").await;
    }
    let begun_at = Instant::now();
    while create().await.status != 201 {
        assert!(begun_at.elapsed() < PATIENCE, "it does not heal");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    app.client().get("/readyz").call().await.expect(200);
}

/// A start on such a file system says what is wrong.
#[tokio::test]
async fn a_start_on_a_read_only_file_system_names_it() {
    let Some(disk) = SmallDisk::mount(48) else {
        return;
    };
    let remounted = std::process::Command::new("mount")
        .args(["-o", "remount,ro"])
        .arg(disk.path())
        .status();
    assert!(remounted.is_ok_and(|status| status.success()));
    let output = tokio::process::Command::new(hub_tests::process::program("hub-cloud"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(disk.path())
        .output()
        .await
        .expect("a program");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.to_lowercase().contains("read-only"),
        "{said}"
    );
}
