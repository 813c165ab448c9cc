//! Background work: done once it was committed, again after a failure or a death, by one replica at
//! a time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hub_base::db::sql;
use hub_base::error::{Error, Result};
use hub_cloud::app::App;
use hub_cloud::upkeep;
use hub_core::tasks::runner::{self, GONE_AFTER};
use hub_core::tasks::{self, Done, Lane, NewTask, Task};
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::{Backend, Options, Person, TestApp, on_each_database};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

const NOON: i64 = 1_800_014_400_000_000;
const LANE: Lane = Lane {
    name: "test",
    runners: 4,
};
const SECOND: i64 = 1_000_000;
/// Far longer than the interval in which the runner polls for work.
const PATIENCE: Duration = Duration::from_secs(30);

/// A service on a clock of the test's own.
async fn service(backend: hub_tests::Backend) -> (TestApp, Options, Arc<AtomicI64>) {
    let (clock, micros) = set_clock(Timestamp::from_micros(NOON));
    let options = Options {
        clock: Some(clock),
        ..Options::default()
    };
    (
        TestApp::with(backend, options.clone()).await,
        options,
        micros,
    )
}

async fn enqueue(app: &App, name: &str, dedup_key: Option<&str>) {
    let now = app.clock.now();
    let task = NewTask {
        lane: LANE.name,
        kind: "test",
        payload: json!({"name": name}),
        due_at: now,
        dedup_key: dedup_key.map(str::to_owned),
    };
    let mut tx = app.db.begin().await.expect("a transaction");
    tasks::enqueue(app, &mut tx, task, now)
        .await
        .expect("a row");
    tx.commit_unaudited("a test's own").await.expect("a commit");
}

/// Name and attempt of what was begun.
type Begun = (String, i64);

fn begun(task: &Task) -> Begun {
    (
        task.payload["name"].as_str().expect("a name").to_owned(),
        task.attempts,
    )
}

async fn next(receiver: &mut UnboundedReceiver<Begun>) -> Begun {
    tokio::time::timeout(PATIENCE, receiver.recv())
        .await
        .expect("work in time")
        .expect("a runner")
}

/// A runner that reports each task it starts and then runs `outcome`.
fn runner<F>(
    app: &App,
    sender: &UnboundedSender<Begun>,
    outcome: impl Fn(Task) -> F + Clone + Send + Sync + 'static,
) -> JoinHandle<()>
where
    F: Future<Output = Result<Done>> + Send + 'static,
{
    let sender = sender.clone();
    tokio::spawn(runner::run(
        (**app).clone(),
        &[LANE],
        Vec::new(),
        move |task| {
            let _ = sender.send(begun(&task));
            outcome(task)
        },
    ))
}

async fn finished(_: Task) -> Result<Done> {
    Ok(Done::Finished)
}

/// Ends the runner the way the service ends it.
async fn stop(app: &App, runner: JoinHandle<()>) {
    app.shutdown.cancel();
    runner.await.expect("the runner ends");
}

async fn rows(app: &App) -> Vec<(String, i64, Option<String>)> {
    let mut conn = app.db.read().await.expect("a connection");
    sql("SELECT kind, attempts, last_error FROM tasks ORDER BY kind")
        .all(&mut conn)
        .await
        .expect("rows")
}

on_each_database!(committed_task_runs_once);
async fn committed_task_runs_once(backend: Backend) {
    let (app, options, _) = service(backend).await;
    let replica = TestApp::replica_of(&app, options).await;
    let now = app.app.clock.now();
    let task = |name: String| NewTask {
        lane: LANE.name,
        kind: "test",
        payload: json!({"name": name}),
        due_at: now,
        dedup_key: None,
    };
    // Work of a transaction that is given up is no work.
    let mut dropped = app.app.db.begin().await.expect("a transaction");
    tasks::enqueue(&app.app, &mut dropped, task("dropped".into()), now)
        .await
        .expect("a row");
    drop(dropped);
    let mut tx = app.app.db.begin().await.expect("a transaction");
    for number in 0..100 {
        tasks::enqueue(&app.app, &mut tx, task(number.to_string()), now)
            .await
            .expect("a row");
    }
    tx.commit_unaudited("a test's own").await.expect("a commit");
    let (sender, mut receiver) = unbounded_channel();
    // A service that begins on SQLite is the only one, and frees what another one leased.
    let here = runner(&app.app, &sender, finished);
    let there = (backend == Backend::Postgres).then(|| runner(&replica.app, &sender, finished));
    let mut done = BTreeSet::new();
    for _ in 0..100 {
        let (name, attempts) = next(&mut receiver).await;
        assert_eq!(attempts, 1);
        assert!(done.insert(name.clone()), "{name} was done twice");
    }
    stop(&app.app, here).await;
    if let Some(there) = there {
        stop(&replica.app, there).await;
    }
    assert!(receiver.try_recv().is_err(), "nothing else was done");
    assert!(rows(&app.app).await.is_empty());
}

/// What was begun is also written down: the clock may move on.
async fn only_failed_work_is_left(app: &App) {
    let settled = async {
        while rows(app).await.iter().any(|(_, _, error)| error.is_none()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, settled)
        .await
        .expect("work is written down in time");
}

on_each_database!(failed_task_is_retried_with_backoff);
async fn failed_task_is_retried_with_backoff(backend: Backend) {
    let (app, _, micros) = service(backend).await;
    let (sender, mut receiver) = unbounded_channel();
    let runner = runner(&app.app, &sender, |task| async move {
        match (begun(&task).0.as_str(), task.attempts) {
            ("good", _) | (_, 3) => Ok(Done::Finished),
            (_, 1) => Err(Error::internal("the disk is on fire")),
            _ => panic!("the disk is ashes"),
        }
    });
    enqueue(&app.app, "bad", None).await;
    assert_eq!(next(&mut receiver).await, ("bad".into(), 1));
    // Not before its time, however often somebody looks.
    enqueue(&app.app, "good", None).await;
    assert_eq!(next(&mut receiver).await, ("good".into(), 1));
    only_failed_work_is_left(&app.app).await;
    micros.fetch_add(5 * SECOND, Ordering::Relaxed);
    app.app.task_wake.notify_one();
    assert_eq!(next(&mut receiver).await, ("bad".into(), 2));
    // A panic ends the work, not the runner; it is a failure like others.
    enqueue(&app.app, "good", None).await;
    assert_eq!(next(&mut receiver).await, ("good".into(), 1));
    only_failed_work_is_left(&app.app).await;
    // Until then, the row has the error of the first attempt.
    let panicked = async {
        let is_noted = |(kind, attempts, error): &(String, i64, Option<String>)| {
            let error = error.as_deref().unwrap_or_default();
            (kind.as_str(), *attempts) == ("test", 2) && error.contains("panicked")
        };
        while !rows(&app.app).await.iter().any(is_noted) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, panicked)
        .await
        .expect("the panic is written down in time");
    micros.fetch_add(10 * SECOND, Ordering::Relaxed);
    app.app.task_wake.notify_one();
    assert_eq!(next(&mut receiver).await, ("bad".into(), 3));
    stop(&app.app, runner).await;
    assert!(rows(&app.app).await.is_empty());
}

on_each_database!(task_of_a_killed_replica_runs_on_another_that_sees_no_beat);
async fn task_of_a_killed_replica_runs_on_another_that_sees_no_beat(backend: Backend) {
    let (app, options, micros) = service(backend).await;
    let (clock, _) = set_clock(Timestamp::from_micros(NOON + 3600 * SECOND));
    // The clock of the other is wrong by an hour, which proves nothing.
    let options = Options {
        clock: Some(clock),
        ..options
    };
    let (sender, mut receiver) = unbounded_channel();
    let doomed = runner(&app.app, &sender, |_| std::future::pending());
    enqueue(&app.app, "work", None).await;
    assert_eq!(next(&mut receiver).await, ("work".into(), 1));
    let replica = TestApp::replica_of(&app, options).await;
    let beats = async || -> i64 {
        let mut conn = app.app.db.read().await.expect("a connection");
        sql("SELECT CAST(COALESCE(SUM(beats), 0) AS BIGINT) FROM task_runners")
            .scalar(&mut conn)
            .await
            .expect("a sum")
    };
    // On SQLite whoever starts is alone.
    if backend == Backend::Postgres {
        let survivor = runner(&replica.app, &sender, finished);
        let before = beats().await;
        enqueue(&replica.app, "other", None).await;
        assert_eq!(next(&mut receiver).await, ("other".into(), 1));
        tokio::time::sleep(GONE_AFTER + Duration::from_secs(3)).await;
        assert!(
            beats().await > before && receiver.try_recv().is_err(),
            "it is there"
        );
        doomed.abort();
        let killed_at = std::time::Instant::now();
        assert_eq!(
            next(&mut receiver).await,
            ("work".into(), 1),
            "a kill is no attempt"
        );
        assert!(killed_at.elapsed() < GONE_AFTER + Duration::from_secs(6));
        stop(&replica.app, survivor).await;
    } else {
        doomed.abort();
        let begun_at = std::time::Instant::now();
        let survivor = runner(&replica.app, &sender, finished);
        assert_eq!(
            next(&mut receiver).await,
            ("work".into(), 1),
            "a kill is no attempt"
        );
        assert!(begun_at.elapsed() < Duration::from_secs(5), "at once");
        stop(&replica.app, survivor).await;
    }
    let _ = micros;
    assert!(rows(&app.app).await.is_empty());
}

on_each_database!(task_key_is_queued_once);
async fn task_key_is_queued_once(backend: Backend) {
    let (app, _, _) = service(backend).await;
    enqueue(&app.app, "first", Some("key")).await;
    enqueue(&app.app, "second", Some("key")).await;
    let (sender, mut receiver) = unbounded_channel();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let runner = runner(&app.app, &sender, {
        let gate = gate.clone();
        move |_| {
            let gate = gate.clone();
            async move {
                gate.acquire().await.expect("open").forget();
                Ok(Done::Finished)
            }
        }
    });
    assert_eq!(
        next(&mut receiver).await,
        ("second".into(), 1),
        "the newest is what counts"
    );
    // A task queued again while it runs is run again.
    enqueue(&app.app, "third", Some("key")).await;
    assert_eq!(next(&mut receiver).await, ("third".into(), 2));
    gate.add_permits(2);
    stop(&app.app, runner).await;
    assert!(receiver.try_recv().is_err());
    assert!(rows(&app.app).await.is_empty());
}

on_each_database!(shutdown_waits_for_running_tasks_and_starts_none);
async fn shutdown_waits_for_running_tasks_and_starts_none(backend: Backend) {
    let (app, _, _) = service(backend).await;
    let (sender, mut receiver) = unbounded_channel();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let runner = runner(&app.app, &sender, {
        let gate = gate.clone();
        move |_| {
            let gate = gate.clone();
            async move {
                gate.acquire().await.expect("open").forget();
                Ok(Done::Finished)
            }
        }
    });
    for number in 0..6 {
        enqueue(&app.app, &number.to_string(), None).await;
    }
    for _ in 0..4 {
        next(&mut receiver).await;
    }
    app.app.shutdown.cancel();
    gate.add_permits(6);
    stop(&app.app, runner).await;
    assert!(
        receiver.try_recv().is_err(),
        "four at once, and none after the end"
    );
    assert_eq!(rows(&app.app).await.len(), 2);
}

on_each_database!(upkeep_is_scheduled_once_for_all_replicas_and_reschedules_itself);
/// Upkeep is there from the start, once for all replicas, and puts itself back.
async fn upkeep_is_scheduled_once_for_all_replicas_and_reschedules_itself(backend: Backend) {
    let expected = [
        "exposure.match",
        "history",
        "retention.activations",
        "retention.audit",
        "retention.ble_events",
        "retention.consents",
        "retention.job_events",
        "retention.logs",
        "retention.pipelines",
        "retention.registration_events",
        "retention.software",
        "retention.telemetry",
        "upkeep.ble_minutes",
        "upkeep.certificates",
        "upkeep.deleted_subjects",
        "upkeep.device_commands",
        "upkeep.hub_clones",
        "upkeep.hub_jobs",
        "upkeep.hub_refreshes",
        "upkeep.login_failures",
        "upkeep.logins",
        "upkeep.mandate_pushes",
        "upkeep.mandates",
        "upkeep.notices",
        "upkeep.old_ble_minutes",
        "upkeep.old_notices",
        "upkeep.old_rollups",
        "upkeep.pairing_codes",
        "upkeep.partitions",
        "upkeep.password_resets",
        "upkeep.releases",
        "upkeep.sensor_rollups",
        "upkeep.signing_keys",
        "upkeep.supplier_links",
        "upkeep.unknown_advertisers",
        "upkeep.update_policies",
        "upkeep.upload_keys",
        "upkeep.upload_paces",
    ];
    let (app, options, _) = service(backend).await;
    let replica = TestApp::replica_of(&app, options).await;
    let workers = [
        tokio::spawn(upkeep::run(app.app.clone())),
        tokio::spawn(upkeep::run(replica.app.clone())),
    ];
    let done = async {
        loop {
            let mut conn = app.app.db.read().await.expect("a connection");
            let put_back: Vec<(String,)> =
                sql("SELECT kind FROM tasks WHERE next_attempt_at > $1 \
                     AND runner_uuid IS NULL ORDER BY kind")
                .bind(app.app.clock.now())
                .all(&mut conn)
                .await
                .expect("rows");
            if put_back.len() == expected.len() {
                return put_back;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let kinds = tokio::time::timeout(PATIENCE, done)
        .await
        .expect("upkeep in time");
    let kinds: Vec<&str> = kinds.iter().map(|(kind,)| kind.as_str()).collect();
    assert_eq!(kinds, expected);
    let [here, there] = workers;
    stop(&app.app, here).await;
    stop(&replica.app, there).await;
    assert!(
        rows(&app.app)
            .await
            .iter()
            .all(|(_, attempts, error)| *attempts == 0 && error.is_none())
    );
}

async fn count(app: &App, table: &'static str) -> i64 {
    let mut conn = app.db.read().await.expect("a connection");
    sql("SELECT COUNT(*) FROM ")
        .push(table)
        .scalar(&mut conn)
        .await
        .expect("a count")
}

async fn upkeep(app: &App, kind: &str) -> Done {
    let task = Task {
        task_uuid: uuid::Uuid::new_v4(),
        kind: kind.to_owned(),
        payload: Value::Null,
        attempts: 1,
    };
    upkeep::perform(app.clone(), task).await.expect("upkeep")
}

on_each_database!(upkeep_deletes_only_expired_rows);
async fn upkeep_deletes_only_expired_rows(backend: Backend) {
    let (app, _, micros) = service(backend).await;
    let now = app.app.clock.now();
    let person = Person::register(&app.client()).await;
    let (tenant_uuid, hub_uuid) = (uuid::Uuid::new_v4(), uuid::Uuid::new_v4());
    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql("INSERT INTO tenants (tenant_uuid, name, created_at) VALUES ($1, 'Old keys', $2)")
        .bind((tenant_uuid, now))
        .execute(&mut tx)
        .await
        .expect("a row");
    for number in 0..1500 {
        let age_secs = if number < 1400 {
            7 * 86_400 + 1
        } else {
            7 * 86_400
        };
        sql("INSERT INTO upload_keys \
             (tenant_uuid, hub_uuid, kind, idempotency_key, answer, first_id) \
             VALUES ($1, $2, 'LOGS', $3, '{}', $4)")
        .bind((
            tenant_uuid,
            hub_uuid,
            number.to_string(),
            now.plus_secs(-age_secs).as_micros(),
        ))
        .execute(&mut tx)
        .await
        .expect("a row");
    }
    for (subject, age_secs) in [("old", 3601), ("recent", 3600)] {
        sql("INSERT INTO login_failures (subject, failures, last_failed_at) VALUES ($1, 1, $2)")
            .bind((subject, now.plus_secs(-age_secs)))
            .execute(&mut tx)
            .await
            .expect("a row");
    }
    for (token, age_secs) in [("old", 0), ("recent", -1)] {
        sql(
            "INSERT INTO password_resets (token_hash, user_uuid, created_at, expires_at) \
             VALUES ($1, $2, $3, $4)",
        )
        .bind((
            token.as_bytes(),
            person.login.user_uuid,
            now,
            now.plus_secs(-age_secs),
        ))
        .execute(&mut tx)
        .await
        .expect("a row");
    }
    tx.commit_unaudited("a test's own").await.expect("a commit");
    let in_an_hour = Done::RunAt(now.plus_secs(3600));
    assert_eq!(
        upkeep(&app.app, "upkeep.upload_keys").await,
        Done::RunAt(now),
        "there is more"
    );
    assert_eq!(count(&app.app, "upload_keys").await, 500);
    assert_eq!(upkeep(&app.app, "upkeep.upload_keys").await, in_an_hour);
    assert_eq!(count(&app.app, "upload_keys").await, 100);
    assert_eq!(upkeep(&app.app, "upkeep.login_failures").await, in_an_hour);
    assert_eq!(
        count(&app.app, "login_failures").await,
        2,
        "the recent one, and the registration"
    );
    assert_eq!(upkeep(&app.app, "upkeep.password_resets").await, in_an_hour);
    assert_eq!(count(&app.app, "password_resets").await, 1);
    assert_eq!(upkeep(&app.app, "upkeep.partitions").await, in_an_hour);
    upkeep(&app.app, "upkeep.logins").await;
    assert_eq!(
        (
            count(&app.app, "logins").await,
            count(&app.app, "refresh_tokens").await
        ),
        (1, 1)
    );
    micros.fetch_add(30 * 86_400 * SECOND, Ordering::Relaxed);
    upkeep(&app.app, "upkeep.logins").await;
    assert_eq!(
        (
            count(&app.app, "logins").await,
            count(&app.app, "refresh_tokens").await
        ),
        (0, 0)
    );
    assert_eq!(count(&app.app, "users").await, 1, "{} stays", person.email);
}

on_each_database!(a_lane_full_of_stuck_work_delays_no_other_lane);
async fn a_lane_full_of_stuck_work_delays_no_other_lane(backend: Backend) {
    const OTHER: Lane = Lane {
        name: "other",
        runners: 1,
    };
    let (app, _, _) = service(backend).await;
    for number in 0..LANE.runners * 2 {
        enqueue(&app.app, &format!("stuck {number}"), None).await;
    }
    let (sender, mut receiver) = unbounded_channel();
    let runner = tokio::spawn(runner::run(
        (*app.app).clone(),
        &[LANE, OTHER],
        Vec::new(),
        move |task| {
            let _ = sender.send(begun(&task));
            let is_stuck = task.payload["name"]
                .as_str()
                .is_some_and(|name| name.starts_with("stuck"));
            async move {
                if is_stuck {
                    std::future::pending().await
                } else {
                    Ok(Done::Finished)
                }
            }
        },
    ));
    for _ in 0..LANE.runners {
        assert!(next(&mut receiver).await.0.starts_with("stuck"));
    }
    let now = app.app.clock.now();
    let mut tx = app.app.db.begin().await.expect("a transaction");
    let task = NewTask {
        lane: OTHER.name,
        kind: "test",
        payload: json!({"name": "free"}),
        due_at: now,
        dedup_key: None,
    };
    tasks::enqueue(&app.app, &mut tx, task, now)
        .await
        .expect("a row");
    tx.commit_unaudited("a test's own").await.expect("a commit");
    assert_eq!(next(&mut receiver).await, ("free".into(), 1));
    runner.abort();
}
