//! What is old goes, what a tenant may store is limited, and refreshes are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hub_base::db::sql;
use hub_cloud::app::App;
use hub_core::config::Settings;
use hub_core::tasks::Done;
use hub_ingest::Record;
use hub_protocol::TenantUuid;
use hub_tests::app::set_clock;
use hub_tests::events as events_of_tenant;
use hub_tests::hub::events;
use hub_tests::{
    Backend, Call, Options, SimulatedHub, Tenant, TestApp, on_each_database, on_postgres,
};
use serde_json::{Value, json};
use uuid::Uuid;

const DAY_SECS: i64 = 24 * 3600;

/// A service at noon of a day in March, with tokens that outlive the test.
async fn service(backend: Backend, settings: Settings) -> (TestApp, Options, Arc<AtomicI64>) {
    let (clock, micros) = set_clock("2026-03-15T12:00:00Z".parse().expect("a time"));
    let settings = Settings {
        hub_token_lifetime: Some("365d".into()),
        ..settings
    };
    let options = Options {
        clock: Some(clock),
        settings,
    };
    (
        TestApp::with(backend, options.clone()).await,
        options,
        micros,
    )
}

fn pass_days(micros: &AtomicI64, days: i64) {
    micros.fetch_add(days * DAY_SECS * 1_000_000, Ordering::Relaxed);
}

async fn perform(app: &App, kind: &str) -> Done {
    hub_tests::app::perform(app, kind, Value::Null).await
}

/// Runs all of retention until nothing is left to do.
async fn perform_all(app: &App) {
    for kind in [
        "activations",
        "audit",
        "ble_events",
        "job_events",
        "logs",
        "telemetry",
    ] {
        while perform(app, &format!("retention.{kind}")).await == Done::RunAt(app.clock.now()) {}
    }
}

async fn count(app: &App, table: &'static str, tenant_uuid: TenantUuid) -> i64 {
    if table == "ble_events" {
        return events_of_tenant::count(&app.db, tenant_uuid).await;
    }
    let mut conn = app.db.read().await.expect("a connection");
    sql("SELECT COUNT(*) FROM ")
        .push(table)
        .push(" WHERE tenant_uuid = ")
        .push_bind(tenant_uuid)
        .scalar(&mut conn)
        .await
        .expect("a count")
}

async fn stored_bytes(app: &App, tenant_uuid: TenantUuid) -> i64 {
    let mut conn = app.db.read().await.expect("a connection");
    sql("SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM stored_bytes WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .scalar(&mut conn)
        .await
        .expect("a sum")
}

async fn change(app: &App, statement: &'static str, tenant_uuid: TenantUuid, value: i64) {
    let mut tx = app.db.begin().await.expect("a transaction");
    sql(statement)
        .bind((tenant_uuid, value))
        .run(&mut tx)
        .await
        .expect("a row");
    tx.commit_unaudited("a test's own").await.expect("a commit");
}

async fn send_json(hub: &SimulatedHub, what: &str) {
    let path = format!("/v1/hubs/{}/{what}", hub.hub_uuid);
    hub.client
        .post(&path)
        .json(&json!([{"n": 1}, {"n": 2}]))
        .call()
        .await
        .expect(204);
}

/// Events straight in the table, a microsecond apart.
async fn insert_events(app: &App, hub: &SimulatedHub, first_id: i64, number: usize) {
    // Texts that hardly become shorter.
    let text = |_| -> String {
        (0..24)
            .map(|_| format!("{:032x}", rand::random::<u128>()))
            .collect()
    };
    let records: Vec<Record> = (0..number)
        .map(|place| Record::new(text(place).into()))
        .collect();
    let of = (hub.credentials.tenant_uuid, hub.hub_uuid);
    events_of_tenant::put(&app.db, of, first_id, &records).await;
}

on_each_database!(records_go_when_their_retention_has_passed);
async fn records_go_when_their_retention_has_passed(backend: Backend) {
    let settings = Settings {
        ble_retention: Some("4d".into()),
        telemetry_retention: Some("7d".into()),
        log_retention: Some("2d".into()),
        ..Settings::default()
    };
    let (app, options, micros) = service(backend, settings).await;
    let replica = TestApp::replica_of(&app, options).await;
    let (tenant, short) = (
        Tenant::create(&app.client()).await,
        Tenant::create(&app.client()).await,
    );
    change(
        &app.app,
        "UPDATE tenants SET ble_retention_days = $2 WHERE tenant_uuid = $1",
        short.tenant_uuid,
        1,
    )
    .await;
    // Longer than the service's, so of no effect.
    change(
        &app.app,
        "UPDATE tenants SET ble_retention_days = $2 WHERE tenant_uuid = $1",
        tenant.tenant_uuid,
        99,
    )
    .await;
    let (hub, other) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&short).await,
    );
    // On every third day, the second of them.
    for _ in 0..3 {
        for hub in [&hub, &other] {
            hub.upload_events(20).await;
            send_json(hub, "logs").await;
            send_json(hub, "telemetry").await;
        }
        pass_days(&micros, 3);
    }
    let before = stored_bytes(&app.app, tenant.tenant_uuid).await;
    assert_eq!(count(&app.app, "ble_events", tenant.tenant_uuid).await, 60);

    // Any replica does it, and two do it no worse than one.
    tokio::join!(perform_all(&app.app), perform_all(&replica.app));
    let left = async |tenant: &Tenant| {
        [
            count(&app.app, "ble_events", tenant.tenant_uuid).await,
            count(&app.app, "hub_telemetry", tenant.tenant_uuid).await,
            count(&app.app, "hub_logs", tenant.tenant_uuid).await,
        ]
    };
    // They were received nine, six and three days ago.
    assert_eq!(left(&tenant).await, [20, 4, 0]);
    assert_eq!(left(&short).await, [0, 4, 0]);
    let after = stored_bytes(&app.app, tenant.tenant_uuid).await;
    assert!(0 < after && after < before / 2, "{after} of {before} bytes");
    pass_days(&micros, 10);
    perform_all(&app.app).await;
    for tenant in [&tenant, &short] {
        assert_eq!(left(tenant).await, [0, 0, 0]);
        assert_eq!(stored_bytes(&app.app, tenant.tenant_uuid).await, 0);
    }
    let numbers = app.client().get("/metrics").call().await.expect(200).body;
    assert!(
        numbers.contains("hub_cloud_retention_behind{kind=\"ble_events\"} 0"),
        "{numbers}"
    );
    assert!(
        numbers.contains("hub_cloud_retention_deleted_records_total{kind=\"logs\"}"),
        "{numbers}"
    );
}

on_each_database!(events_of_a_job_stay_until_the_job_is_over_for_long);
async fn events_of_a_job_stay_until_the_job_is_over_for_long(backend: Backend) {
    let settings = Settings {
        job_event_retention: Some("5d".into()),
        ..Settings::default()
    };
    let (app, _, micros) = service(backend, settings).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let now = app.app.clock.now();
    let mut tx = app.app.db.begin().await.expect("a transaction");
    for (revision, finished_at) in [(1_i64, Some(now)), (2, None)] {
        let job_uuid = Uuid::new_v4();
        sql(
            "INSERT INTO hub_jobs (hub_job_uuid, hub_uuid, tenant_uuid, revision, job_type, \
             status, force, deadline_at, attempts, event_count, created_at, updated_at, \
             finished_at) \
             VALUES ($1, $2, $3, $4, 'APP_INSTALL', 'RUNNING', $5, $6, 1, 3, $6, $6, $7)",
        )
        .bind((
            job_uuid,
            hub.hub_uuid,
            tenant.tenant_uuid,
            revision,
            false,
            now,
            finished_at,
        ))
        .run(&mut tx)
        .await
        .expect("a job");
        for number in 0..3 {
            sql(
                "INSERT INTO hub_job_events (tenant_uuid, hub_uuid, hub_job_event_id, \
                 hub_job_uuid, event_uuid, body) VALUES ($1, $2, $3, $4, $5, '{}')",
            )
            .bind((
                tenant.tenant_uuid,
                hub.hub_uuid,
                now.as_micros() - 10 * revision - number,
                job_uuid,
                Uuid::new_v4(),
            ))
            .run(&mut tx)
            .await
            .expect("an event");
        }
    }
    tx.commit_unaudited("a test's own").await.expect("a commit");
    for (days, left) in [(5, 6), (1, 3), (100, 3)] {
        pass_days(&micros, days);
        perform_all(&app.app).await;
        assert_eq!(
            count(&app.app, "hub_job_events", tenant.tenant_uuid).await,
            left,
            "after {days} more days"
        );
    }
}

on_postgres!(months_that_nobody_keeps_are_dropped_whole);
async fn months_that_nobody_keeps_are_dropped_whole(backend: Backend) {
    let (app, _, micros) = service(backend, Settings::default()).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    hub.upload_events(5).await;
    pass_days(&micros, 30);
    hub.upload_events(7).await;
    pass_days(&micros, 20);
    // On the fourth of May all of March is older than thirty days.
    let partitions = async || -> i64 {
        let mut conn = app.app.db.read().await.expect("a connection");
        sql("SELECT COUNT(*) FROM pg_class \
             WHERE relname IN ('ble_batches_2026_03', 'ble_batches_2026_04')")
        .scalar(&mut conn)
        .await
        .expect("a count")
    };
    assert_eq!(partitions().await, 2);
    perform_all(&app.app).await;
    assert_eq!(partitions().await, 1);
    assert_eq!(count(&app.app, "ble_events", tenant.tenant_uuid).await, 7);
    let mut conn = app.app.db.read().await.expect("a connection");
    let months: Vec<i64> = sql("SELECT month FROM stored_bytes \
         WHERE tenant_uuid = $1 AND kind = 'BLE_EVENTS'")
    .bind(tenant.tenant_uuid)
    .scalars(&mut conn)
    .await
    .expect("months");
    assert_eq!(months, [202_604]);
    let numbers = app.client().get("/metrics").call().await.expect(200).body;
    assert!(
        numbers.contains("hub_cloud_retention_dropped_months_total{kind=\"ble_events\"} 1"),
        "{numbers}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_sqlite_file_shrinks_when_its_records_are_gone() {
    let (app, _, micros) = service(Backend::Sqlite, Settings::default()).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let now = app.app.clock.now();
    insert_events(&app.app, &hub, now.as_micros(), 60_000).await;
    let file = app.sqlite_file().expect("a file");
    let size = || std::fs::metadata(&file).expect("the file").len();
    hub_base::db::space::checkpoint(&app.app.db)
        .await
        .expect("a checkpoint");
    let full = size();
    assert!(full > 15 << 20, "{full} bytes");
    pass_days(&micros, 31);
    perform_all(&app.app).await;
    assert_eq!(count(&app.app, "ble_events", tenant.tenant_uuid).await, 0);
    assert!(size() < full / 4, "{} of {full} bytes are left", size());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_sqlite_file_gives_space_back_once_it_was_rewritten() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("old.sqlite");
    // As every SQLite file is, unless somebody decides otherwise before its first table.
    let old = rusqlite::Connection::open(&path).expect("a file");
    old.execute_batch("CREATE TABLE old (text TEXT); INSERT INTO old VALUES ('kept')")
        .expect("a table");
    drop(old);
    let db = hub_base::db::Db::open(&format!("sqlite:{}", path.display())).expect("a database");
    let can_shrink = async || {
        hub_base::db::space::pages(&db)
            .await
            .expect("pages")
            .expect("a file")
            .can_be_given_back
    };
    assert!(!can_shrink().await);
    hub_base::db::space::rewrite(&db).await.expect("a new file");
    assert!(can_shrink().await);
    let kept: String = sql("SELECT text FROM old")
        .scalar(&mut db.read().await.expect("a connection"))
        .await
        .expect("a row");
    assert_eq!(kept, "kept");
}

on_each_database!(a_full_quota_is_named_and_retention_lowers_it);
async fn a_full_quota_is_named_and_retention_lowers_it(backend: Backend) {
    let settings = Settings {
        stored_bytes_per_tenant: Some(10_000),
        bytes_per_day_per_tenant: Some(1_000_000),
        ble_retention: Some("1d".into()),
        ..Settings::default()
    };
    let (app, _, micros) = service(backend, settings).await;
    let (tenant, other) = (
        Tenant::create(&app.client()).await,
        Tenant::create(&app.client()).await,
    );
    let hub = SimulatedHub::claim(&tenant).await;
    let stored = hub.upload_events(20).await;
    let refused = hub.upload(&events(20)).await.expect(507);
    let problem = refused.problem();
    assert_eq!(problem.code, "STORED_BYTES_EXCEEDED");
    assert!(
        problem.message.contains("storedBytes") && problem.message.contains("10000"),
        "{}",
        problem.message
    );
    assert!(
        refused
            .header("retry-after")
            .parse::<u64>()
            .is_ok_and(|secs| secs > 0)
    );
    assert_eq!(count(&app.app, "ble_events", tenant.tenant_uuid).await, 20);
    // What was stored is still answered, logs count as well, and others have quotas of their own.
    let again: Value = hub.upload(&stored).await.expect(201).data();
    assert_eq!(again["duplicate"], json!(true));
    let logs = format!("/v1/hubs/{}/logs", hub.hub_uuid);
    hub.client
        .post(&logs)
        .json(&json!(["x".repeat(9_000)]))
        .call()
        .await
        .expect(507);
    SimulatedHub::claim(&other).await.upload_events(20).await;
    // A hub over its quota is there all the same.
    let telemetry = format!("/v1/hubs/{}/telemetry", hub.hub_uuid);
    hub.client
        .post(&telemetry)
        .json(&json!(["x".repeat(9_000)]))
        .call()
        .await
        .expect(507);
    let hubs: Value = tenant
        .client
        .get("/tenant/hubs")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(hubs[0]["status"], json!("ONLINE"), "{hubs}");
    // A limit of the tenant's own applies at once.
    let own = "UPDATE tenants SET stored_bytes_limit = $2 WHERE tenant_uuid = $1";
    change(&app.app, own, tenant.tenant_uuid, 20_000).await;
    hub.upload_events(20).await;
    hub.upload(&events(20)).await.expect(507);
    pass_days(&micros, 2);
    perform_all(&app.app).await;
    // What retention did is noticed within a second.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    hub.upload_events(20).await;
}

on_each_database!(a_day_has_a_quota_of_bytes);
async fn a_day_has_a_quota_of_bytes(backend: Backend) {
    let settings = Settings {
        bytes_per_day_per_tenant: Some(10_000),
        ..Settings::default()
    };
    let (app, _, micros) = service(backend, settings).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    hub.upload_events(20).await;
    let refused = hub.upload(&events(20)).await.expect(429);
    let problem = refused.problem();
    assert_eq!(problem.code, "BYTES_PER_DAY_EXCEEDED");
    assert!(
        problem.message.contains("bytesPerDay"),
        "{}",
        problem.message
    );
    assert_eq!(refused.header("retry-after"), "43200", "it is noon");
    let own = "UPDATE tenants SET bytes_per_day_limit = $2 WHERE tenant_uuid = $1";
    change(&app.app, own, tenant.tenant_uuid, 20_000).await;
    hub.upload_events(20).await;
    hub.upload(&events(20)).await.expect(429);
    micros.fetch_add(43_200_000_000, Ordering::Relaxed);
    hub.upload_events(20).await;
    let numbers = app.client().get("/metrics").call().await.expect(200).body;
    assert!(
        numbers.contains("hub_cloud_quota_refusals_total{quota=\"bytesPerDay\"} 2"),
        "{numbers}"
    );
}

on_each_database!(audit_entries_go_by_age_and_nothing_else_deletes_them);
async fn audit_entries_go_by_age_and_nothing_else_deletes_them(backend: Backend) {
    let settings = Settings {
        audit_retention: Some("30d".into()),
        ..Settings::default()
    };
    let (app, _, micros) = service(backend, settings).await;
    let (tenant, short) = (
        Tenant::create(&app.client()).await,
        Tenant::create(&app.client()).await,
    );
    change(
        &app.app,
        "UPDATE tenants SET audit_retention_days = $2 WHERE tenant_uuid = $1",
        short.tenant_uuid,
        7,
    )
    .await;
    SimulatedHub::claim(&tenant).await;
    SimulatedHub::claim(&short).await;
    let before = count(&app.app, "audit_logs", tenant.tenant_uuid).await;
    assert!(before > 0);
    pass_days(&micros, 10);
    // Something of today.
    let latest = Tenant::create(&app.client()).await;
    perform_all(&app.app).await;
    assert_eq!(
        count(&app.app, "audit_logs", tenant.tenant_uuid).await,
        before
    );
    assert_eq!(count(&app.app, "audit_logs", short.tenant_uuid).await, 0);
    pass_days(&micros, 21);
    perform_all(&app.app).await;
    assert_eq!(count(&app.app, "audit_logs", tenant.tenant_uuid).await, 0);
    let kept = count(&app.app, "audit_logs", latest.tenant_uuid).await;
    assert!(kept > 0, "it is twenty-one days old");
    for statement in [
        "DELETE FROM audit_logs",
        "UPDATE audit_logs SET action = 'x'",
    ] {
        let mut tx = app.app.db.begin().await.expect("a transaction");
        let error = sql(statement)
            .run(&mut tx)
            .await
            .expect_err("a refusal")
            .to_string();
        assert!(error.contains("append-only"), "{error}");
    }
    assert_eq!(
        count(&app.app, "audit_logs", latest.tenant_uuid).await,
        kept
    );
}

async fn refresh_entries(app: &App, hub: &SimulatedHub) -> Vec<Value> {
    let mut conn = app.db.read().await.expect("a connection");
    let details: Vec<sqlx::types::Json<Value>> = sql(
        "SELECT detail FROM audit_logs WHERE action = 'hub.refresh' AND target = $1 \
             ORDER BY audit_log_id",
    )
    .bind(hub.hub_uuid.to_string())
    .scalars(&mut conn)
    .await
    .expect("entries");
    details.into_iter().map(|detail| detail.0).collect()
}

on_each_database!(refreshes_of_a_hub_are_limited_and_leave_few_entries);
async fn refreshes_of_a_hub_are_limited_and_leave_few_entries(backend: Backend) {
    let (app, options, micros) = service(backend, Settings::default()).await;
    let replica = TestApp::replica_of(&app, options).await;
    let tenant = Tenant::create(&app.client()).await;
    let (mut hub, mut other) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    let started_at = app.app.clock.now();
    for _ in 0..60 {
        hub.refresh().await;
    }
    let body = json!({"refreshToken": hub.credentials.refresh_token});
    for url in [&app.url, &replica.url] {
        let refused = hub
            .client
            .at(url)
            .post("/v1/hubs/refresh")
            .json(&body)
            .call()
            .await
            .expect(429);
        assert_eq!(
            (
                refused.problem().code.as_str(),
                refused.header("retry-after")
            ),
            ("RATE_LIMITED", "60")
        );
    }
    // What was used comes back evenly.
    micros.fetch_add(60 * 1_000_000, Ordering::Relaxed);
    hub.refresh().await;
    let another = hub.client.post("/v1/hubs/refresh").json(&body);
    another.call().await.expect(429);
    hub.upload_events(1).await;
    other.refresh().await;
    assert_eq!(
        refresh_entries(&app.app, &hub).await,
        [json!({})],
        "the first, with its address"
    );
    micros.fetch_add(3540 * 1_000_000, Ordering::Relaxed);
    hub.refresh().await;
    perform(&app.app, "upkeep.hub_refreshes").await;
    assert_eq!(
        refresh_entries(&app.app, &hub).await.len(),
        1,
        "the day is not over"
    );
    pass_days(&micros, 1);
    perform(&app.app, "upkeep.hub_refreshes").await;
    perform(&replica.app, "upkeep.hub_refreshes").await;
    let rest =
        json!({"refreshes": 62, "firstAt": started_at, "lastAt": started_at.plus_secs(3600)});
    assert_eq!(refresh_entries(&app.app, &hub).await, [json!({}), rest]);
    assert_eq!(
        refresh_entries(&app.app, &other).await.len(),
        1,
        "there was but one"
    );
    hub.refresh().await;
    assert_eq!(refresh_entries(&app.app, &hub).await.len(), 3);
}

on_each_database!(refreshes_of_a_login_are_limited);
async fn refreshes_of_a_login_are_limited(backend: Backend) {
    let (app, _, micros) = service(backend, Settings::default()).await;
    let tenant = Tenant::create(&app.client()).await;
    let mut token = tenant.owner.login.refresh_token.clone();
    let refresh = async |token: &str| {
        app.client()
            .post("/auth/refresh")
            .json(&json!({"refreshToken": token}))
            .call()
            .await
    };
    for _ in 0..60 {
        let session: Value = refresh(&token).await.expect(200).data();
        token = session["refreshToken"]
            .as_str()
            .expect("a token")
            .to_owned();
    }
    let refused = refresh(&token).await.expect(429);
    assert_eq!(
        (
            refused.problem().code.as_str(),
            refused.header("retry-after")
        ),
        ("RATE_LIMITED", "3600")
    );
    assert_eq!(
        refresh("nobody's").await.expect(401).problem().code,
        "INVALID_REFRESH_TOKEN"
    );
    micros.fetch_add(3600 * 1_000_000, Ordering::Relaxed);
    refresh(&token).await.expect(200);
}
