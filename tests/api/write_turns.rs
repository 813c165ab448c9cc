//! What hubs and logins cause to be written besides uploads: how often, one at a time, and that it
//! does not hold up uploads. A transaction that the test holds is the only one SQLite can have, so
//! whatever answers meanwhile needs none.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use hub_tests::{
    Backend, Call, Options, Person, SimulatedHub, Tenant, TestApp, app, on_each_database,
};
use serde_json::{Value, json};

fn adapters(name: &str) -> Value {
    json!({"adapters": [{"address": "00:1A:7D:DA:71:13", "name": name, "powered": true, "discovering": true}]})
}

fn apps(state: &str) -> Value {
    let uuid = "0192b3c4-0000-7000-8000-000000000001";
    json!({"apps": [{"appUuid": uuid, "releaseUuid": uuid, "version": "1.0.0", "state": state, "since": "2026-01-31T08:00:00Z"}]})
}

on_each_database!(report_that_changes_nothing_is_not_stored);
async fn report_that_changes_nothing_is_not_stored(backend: Backend) {
    let (clock, micros) = app::set_clock("2026-03-01T12:00:00Z".parse().expect("a time"));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let report = async |name: &str, state: &str| {
        let reply = hub
            .client
            .post("/v1/hubs/adapters")
            .json(&adapters(name))
            .call()
            .await
            .expect(200);
        let path = format!("/v1/hubs/{}/installed-apps", hub.hub_uuid);
        hub.client
            .put(&path)
            .json(&apps(state))
            .call()
            .await
            .expect(204);
        reply.json()["data"].clone()
    };
    let reported_at = async || {
        let path = format!("/tenant/hubs/{}", hub.hub_uuid);
        let adapters: Vec<Value> = tenant
            .client
            .get(&format!("{path}/adapters"))
            .call()
            .await
            .expect(200)
            .data();
        let apps: Vec<Value> = tenant
            .client
            .get(&format!("{path}/installed-apps"))
            .call()
            .await
            .expect(200)
            .data();
        let time = |value: &Value| value.as_str().expect("a time").to_owned();
        (
            time(&adapters[0]["lastSeenAt"]),
            time(&apps[0]["reportedAt"]),
        )
    };
    let first = report("hci0", "RUNNING").await;
    let stored_at = reported_at().await;
    micros.fetch_add(30_000_000, Ordering::Relaxed);
    assert_eq!(report("hci0", "RUNNING").await, first, "the same answer");
    assert_eq!(reported_at().await, stored_at, "nothing is written");
    report("hci1", "STOPPED").await;
    let changed_at = reported_at().await;
    assert!(
        changed_at.0 > stored_at.0 && changed_at.1 > stored_at.1,
        "a change is"
    );
    micros.fetch_add(61_000_000, Ordering::Relaxed);
    report("hci1", "STOPPED").await;
    let again_at = reported_at().await;
    assert!(
        again_at.0 > changed_at.0 && again_at.1 > changed_at.1,
        "and that the hub still says so"
    );
    // Adapters that are gone are marked once.
    let gone = || {
        hub.client
            .post("/v1/hubs/adapters")
            .json(&json!({"adapters": []}))
            .call()
    };
    for _ in 0..2 {
        assert_eq!(
            gone().await.expect(200).json()["data"],
            json!({"upserted": 0, "poweredOff": 1})
        );
    }
}

on_each_database!(reports_of_one_hub_are_limited_by_the_minute);
async fn reports_of_one_hub_are_limited_by_the_minute(backend: Backend) {
    let (clock, micros) = app::set_clock("2026-03-01T12:00:00Z".parse().expect("a time"));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let (hub, other) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    let path = format!("/v1/hubs/{}/installed-apps", hub.hub_uuid);
    let report = || hub.client.put(&path).json(&apps("RUNNING")).call();
    for _ in 0..120 {
        report().await.expect(204);
    }
    let refused = report().await.expect(429);
    assert_eq!(
        (
            refused.problem().code.as_str(),
            refused.header("retry-after")
        ),
        ("RATE_LIMITED", "1")
    );
    hub.client
        .post("/v1/hubs/adapters")
        .json(&adapters("hci0"))
        .call()
        .await
        .expect(429);
    other
        .client
        .post("/v1/hubs/adapters")
        .json(&adapters("hci0"))
        .call()
        .await
        .expect(200);
    // Its uploads and its token are another matter.
    hub.upload_events(1).await;
    let mut refreshing = hub.clone();
    for _ in 0..60 {
        refreshing.refresh().await;
    }
    let body = json!({"refreshToken": hub.credentials.refresh_token});
    refreshing
        .client
        .post("/v1/hubs/refresh")
        .json(&body)
        .call()
        .await
        .expect(429);
    // Whoever does not hold the refresh token cannot use up its refreshes.
    let wrong = json!({"refreshToken": "x"});
    refreshing
        .client
        .post("/v1/hubs/refresh")
        .json(&wrong)
        .call()
        .await
        .expect(401);
    micros.fetch_add(3_600_000_000, Ordering::Relaxed);
    refreshing.refresh().await;
    refreshing
        .client
        .put(&path)
        .json(&apps("STOPPED"))
        .call()
        .await
        .expect(204);
}

on_each_database!(flood_of_reports_is_written_one_at_a_time);
async fn flood_of_reports_is_written_one_at_a_time(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let (hub, other) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    let flood = join_all((0..200).map(|number| {
        let hub = &hub;
        async move {
            let body = adapters(&format!("hci{number}"));
            hub.client
                .post("/v1/hubs/adapters")
                .json(&body)
                .call()
                .await
                .status
                .as_u16()
        }
    }));
    let uploads = async {
        for _ in 0..20 {
            other.upload_events(1).await;
        }
    };
    let (statuses, ()) = tokio::join!(flood, uploads);
    assert!(
        statuses.iter().all(|status| matches!(status, 200 | 429)),
        "{statuses:?}"
    );
    assert!(
        statuses.contains(&200) && statuses.contains(&429),
        "{statuses:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_will_be_refused_begins_no_transaction() {
    let app = TestApp::new(Backend::Sqlite).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let person = Person::register(&app.client()).await;
    let ended = json!({"refreshToken": person.login.refresh_token});
    app.client()
        .post("/auth/logout")
        .json(&ended)
        .call()
        .await
        .expect(204);
    hub.client
        .post("/v1/hubs/adapters")
        .json(&adapters("hci0"))
        .call()
        .await
        .expect(200);
    let keyed = || {
        hub.client
            .post("/v1/hubs/adapters")
            .header("idempotency-key", "one")
            .json(&adapters("hci0"))
    };
    keyed().call().await.expect(200);
    let installed = format!("/v1/hubs/{}/installed-apps", hub.hub_uuid);
    hub.client
        .put(&installed)
        .json(&apps("RUNNING"))
        .call()
        .await
        .expect(204);

    let held = app.app.db.begin().await.expect("the only transaction");
    let client = app.client();
    let unknown = json!({"refreshToken": "x"});
    client
        .post("/auth/refresh")
        .json(&unknown)
        .call()
        .await
        .expect(401);
    client
        .post("/auth/refresh")
        .json(&ended)
        .call()
        .await
        .expect(401);
    client
        .post("/auth/logout")
        .json(&unknown)
        .call()
        .await
        .expect(204);
    client
        .post("/auth/logout")
        .json(&ended)
        .call()
        .await
        .expect(204);
    hub.client
        .post("/v1/hubs/refresh")
        .json(&unknown)
        .call()
        .await
        .expect(401);
    hub.client
        .post("/v1/hubs/adapters")
        .json(&adapters("hci0"))
        .call()
        .await
        .expect(200);
    keyed().call().await.expect(200);
    hub.client
        .put(&installed)
        .json(&apps("RUNNING"))
        .call()
        .await
        .expect(204);
    let job = uuid::Uuid::now_v7();
    let event = json!({"eventUuid": job, "kind": "ACCEPTED", "occurredAt": "2026-01-31T08:00:00Z"});
    let events = format!("/v1/hubs/{}/jobs/{job}/events", hub.hub_uuid);
    hub.client
        .post(&events)
        .json(&event)
        .call()
        .await
        .expect(404);
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_wait_for_one_other_transaction_at_most() {
    let app = TestApp::new(Backend::Sqlite).await;
    let db = &app.app.db;
    let order = Arc::new(Mutex::new(Vec::new()));
    let held = db.begin().await.expect("a transaction");
    let mut others = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (db, order) = (db.clone(), order.clone());
        others.spawn(async move {
            let tx = db.begin().await.expect("a transaction");
            order.lock().expect("the order").push("other");
            tx.commit_unaudited("a test").await.expect("committed");
        });
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let upload = {
        let (db, order) = (db.clone(), order.clone());
        tokio::spawn(async move {
            let tx = db.begin_first().await.expect("a transaction");
            order.lock().expect("the order").push("upload");
            tx.commit_unaudited("a test").await.expect("committed");
        })
    };
    tokio::time::sleep(Duration::from_millis(200)).await;
    drop(held);
    upload.await.expect("it ends");
    others.join_all().await;
    let order = order.lock().expect("the order");
    let place = order
        .iter()
        .position(|what| *what == "upload")
        .expect("the upload");
    assert!(place <= 1, "{order:?}");
}
