//! Notices of other causes than silence: jobs, rollouts, certificates, events that pipelines lost.
//! Each incident has one notice on every channel, and a new one only after it was over.

use std::sync::atomic::Ordering;

use hub_base::db::sql;
use hub_composed::notices;
use hub_core::config::Settings;
use hub_core::tasks::Done;
use hub_exposure::dependency_track;
use hub_fleet::update_policies;
use hub_protocol::ReleaseUuid;
use hub_tests::mail::waiting;
use hub_tests::people::PASSWORD;
use hub_tests::receiver::Answer;
use hub_tests::release::{make_agent, make_app, make_app_release};
use hub_tests::{
    Backend, Call, Client, Maker, Person, Receiver, Recipe, SimulatedHub, on_each_database,
};
use serde_json::{Value, json};

use super::notices::World;
use super::vulnerabilities::{image, package, runs};

const DAY_MICROS: i64 = 24 * 3600 * 1_000_000;
const POLICIES: &str = "/tenant/agent-update-policies";

/// A tenant that gets notices of one type on every channel.
struct Subscriber {
    world: World,
    maker: Maker,
    receiver: Receiver,
    notice_type: &'static str,
}

impl Subscriber {
    async fn of(backend: Backend, notice_type: &'static str) -> Self {
        let maker = Maker::new();
        let settings = Settings {
            release_keys: Some(maker.keys()),
            hub_token_lifetime: Some("1000d".to_owned()),
            ..Settings::default()
        };
        let mut world = World::with(backend, settings).await;
        world.tenant.client = world.client.clone();
        let receiver = Receiver::start().await;
        for (channel, target) in [
            ("IN_APP", Value::Null),
            ("EMAIL", json!("ops@example.com")),
            ("WEBHOOK", json!(format!("{}/notices", receiver.url))),
        ] {
            world.set(json!({"type": notice_type, "channel": channel, "enabled": true, "target": target})).await;
        }
        world.scan().await;
        Self {
            world,
            maker,
            receiver,
            notice_type,
        }
    }

    /// Tells what waits for webhooks, and returns what came.
    async fn called(&self) -> Vec<Value> {
        let payload = json!({"tenantUuid": self.world.tenant.tenant_uuid});
        perform(&self.world, notices::WEBHOOKS, payload).await;
        self.receiver
            .take()
            .iter()
            .map(hub_tests::receiver::Received::json)
            .collect()
    }

    /// That so many notices were raised on each channel so far; returns the last one.
    async fn assert_raised(&self, count: usize, title: &str) -> Value {
        let notices = self.world.notices().await;
        assert_eq!(notices.len(), count, "{notices:?}");
        assert_eq!(waiting(&self.world.app).await.len(), count, "mails");
        let calls = self.called().await;
        assert_eq!(calls.len(), 1, "{calls:?}");
        for notice in [&notices[0], &calls[0]] {
            assert_eq!(
                (&notice["type"], &notice["title"]),
                (&json!(self.notice_type), &json!(title)),
                "{notice}"
            );
        }
        assert!(
            waiting(&self.world.app)
                .await
                .iter()
                .all(|mail| mail.to == "ops@example.com")
        );
        notices[0].clone()
    }

    async fn assert_silent(&self, count: usize) {
        assert_eq!(
            self.world.notices().await.len(),
            count,
            "{:?}",
            self.world.titles().await
        );
        assert_eq!(waiting(&self.world.app).await.len(), count, "mails");
        assert!(self.called().await.is_empty());
    }

    /// How many incidents are open, of all channels.
    async fn open(&self) -> i64 {
        let mut conn = self.world.app.app.db.read().await.expect("a connection");
        let open = sql("SELECT COUNT(*) FROM notice_incidents WHERE closed_at IS NULL");
        open.scalar(&mut conn).await.expect("a count")
    }

    /// A platform administrator whose token is fresh.
    async fn platform(&self) -> hub_tests::Client {
        Person::register(&self.world.app.client())
            .await
            .as_platform_admin(&self.world.app)
    }
}

async fn perform(world: &World, kind: &str, payload: Value) -> Done {
    hub_tests::app::perform(&world.app.app, kind, payload).await
}

on_each_database!(a_failed_job_has_one_notice);
async fn a_failed_job_has_one_notice(backend: Backend) {
    let subscriber = Subscriber::of(backend, "JOB_FAILED").await;
    let tenant = &subscriber.world.tenant;
    let hub = SimulatedHub::claim(tenant).await;
    let app_uuid = make_app(tenant, "logger").await;
    let release = make_app_release(
        tenant,
        app_uuid,
        &subscriber.maker,
        &Recipe::app("logger", "1.0.0", 1),
    )
    .await;
    let release_uuid: ReleaseUuid = release["releaseUuid"]
        .as_str()
        .and_then(|one| one.parse().ok())
        .expect("a uuid");
    let fail = async |kind: &str| {
        let job = tenant.install(&hub, release_uuid).await;
        hub.desired_jobs().await;
        hub.tell(job, "ACCEPTED", json!({})).await.expect(204);
        hub.tell(job, kind, json!({"message": "no room"}))
            .await
            .expect(204);
    };
    fail("SUCCEEDED").await;
    subscriber.world.pass(1, &[]).await;
    subscriber.assert_silent(0).await;
    fail("FAILED").await;
    subscriber.world.pass(1, &[]).await;
    let notice = subscriber
        .assert_raised(1, &format!("A job of hub {} failed", hub.hub_uuid))
        .await;
    assert_eq!(
        (&notice["hubUuid"], &notice["severity"]),
        (&json!(hub.hub_uuid), &json!("WARNING"))
    );
    assert!(
        notice["body"]
            .as_str()
            .is_some_and(|body| body.contains("no room")),
        "{notice}"
    );
    assert_eq!(subscriber.open().await, 0, "it is over at once");
    subscriber.world.pass(12, &[]).await;
    subscriber.assert_silent(1).await;
    fail("FAILED").await;
    subscriber.world.pass(1, &[]).await;
    subscriber
        .assert_raised(2, &format!("A job of hub {} failed", hub.hub_uuid))
        .await;
}

on_each_database!(a_halted_rollout_is_an_incident_until_it_resumes);
async fn a_halted_rollout_is_an_incident_until_it_resumes(backend: Backend) {
    let subscriber = Subscriber::of(backend, "ROLLOUT_HALTED").await;
    let (world, client) = (&subscriber.world, &subscriber.world.client);
    let hub = SimulatedHub::claim(&world.tenant).await;
    let mut tx = world.app.app.db.begin().await.expect("a transaction");
    sql("UPDATE hubs SET agent_version = '1.0.0', os = $2 WHERE hub_uuid = $1")
        .bind((hub.hub_uuid, json!({"name": "debian", "arch": "x86_64"})))
        .run(&mut tx)
        .await
        .expect("a row");
    tx.commit_unaudited("a test's own set-up")
        .await
        .expect("a commit");
    make_agent(
        &subscriber.platform().await,
        &subscriber.maker,
        &Recipe::agent("2.0.0", 1),
        json!({}),
    )
    .await;
    let policy: Value = client
        .put(POLICIES)
        .json(&json!({"scope": "UNIT"}))
        .call()
        .await
        .expect(200)
        .data();
    world.micros.fetch_add(5_000_000, Ordering::Relaxed);
    while update_policies::advance(&world.app.app.parts().policies)
        .await
        .expect("the worker works")
    {}
    world.pass(1, &[]).await;
    subscriber.assert_silent(0).await;
    let act = async |action: &str| {
        let path = format!(
            "{POLICIES}/{}/rollout/{action}",
            policy["policyUuid"].as_str().expect("a uuid")
        );
        client.post(&path).call().await.expect(200);
    };
    act("halt").await;
    world.pass(1, &[]).await;
    let notice = subscriber
        .assert_raised(1, "The rollout of 2.0.0 was halted")
        .await;
    assert_eq!(
        (&notice["severity"], &notice["body"]),
        (&json!("CRITICAL"), &json!("decided by an operator"))
    );
    world.pass(5, &[]).await;
    subscriber.assert_silent(1).await;
    assert_eq!(subscriber.open().await, 3, "one on each channel");
    act("resume").await;
    world.pass(15, &[]).await;
    subscriber.assert_silent(1).await;
    assert_eq!(subscriber.open().await, 0);
    act("halt").await;
    world.pass(1, &[]).await;
    subscriber
        .assert_raised(2, "The rollout of 2.0.0 was halted")
        .await;
}

on_each_database!(an_expiring_certificate_is_an_incident_until_it_is_renewed);
async fn an_expiring_certificate_is_an_incident_until_it_is_renewed(backend: Backend) {
    let subscriber = Subscriber::of(backend, "CERTIFICATE_EXPIRING").await;
    let hub = SimulatedHub::claim(&subscriber.world.tenant).await;
    hub.certificate().await;
    subscriber
        .world
        .micros
        .fetch_add(75 * DAY_MICROS, Ordering::Relaxed);
    subscriber.world.pass(11, &[]).await;
    subscriber.assert_silent(0).await;
    // Two weeks of the ninety days are left.
    subscriber
        .world
        .micros
        .fetch_add(DAY_MICROS, Ordering::Relaxed);
    subscriber.world.pass(11, &[]).await;
    let title = format!("The certificate of hub {} expires soon", hub.hub_uuid);
    let notice = subscriber.assert_raised(1, &title).await;
    assert_eq!(
        (&notice["hubUuid"], &notice["severity"]),
        (&json!(hub.hub_uuid), &json!("WARNING"))
    );
    subscriber.world.pass(21, &[]).await;
    subscriber.assert_silent(1).await;
    assert_eq!(subscriber.open().await, 3, "one on each channel");
    hub.certificate().await;
    subscriber.world.pass(25, &[]).await;
    subscriber.assert_silent(1).await;
    assert_eq!(subscriber.open().await, 0);
    subscriber
        .world
        .micros
        .fetch_add(77 * DAY_MICROS, Ordering::Relaxed);
    subscriber.world.pass(11, &[]).await;
    subscriber.assert_raised(2, &title).await;
}

on_each_database!(an_expiring_api_key_is_an_incident_until_it_has_expired);
async fn an_expiring_api_key_is_an_incident_until_it_has_expired(backend: Backend) {
    let subscriber = Subscriber::of(backend, "API_KEY_EXPIRING").await;
    let world = &subscriber.world;
    let in_days = |days: i64| {
        let now = world.micros.load(Ordering::Relaxed);
        hub_protocol::Timestamp::from_micros(now + days * DAY_MICROS)
    };
    // Keys are of people, whose access tokens last for less than a day.
    let owner = async || {
        let body = json!({"email": world.tenant.owner.email, "password": PASSWORD});
        let client = world.app.client();
        let login = client.post("/auth/login").json(&body).call().await;
        let login: Value = login.expect(200).data();
        let token = login["accessToken"].as_str().expect("a token");
        client.bearer(token).tenant(world.tenant.tenant_uuid)
    };
    let create = async |name: &str, days: i64| {
        let body = json!({"name": name, "scopes": ["hubs:read"], "expiresAt": in_days(days)});
        let key = owner().await.post("/tenant/api-keys").json(&body).call();
        key.await.expect(201);
    };
    let attention = async |client: &Client| {
        let summary = client.get("/tenant/dashboard/summary").call().await;
        let summary: Value = summary.expect(200).data();
        summary["attention"].to_string()
    };
    create("ERP", 30).await;
    world.micros.fetch_add(15 * DAY_MICROS, Ordering::Relaxed);
    world.pass(11, &[]).await;
    subscriber.assert_silent(0).await;
    world.micros.fetch_add(DAY_MICROS, Ordering::Relaxed);
    world.pass(11, &[]).await;
    let title = "The API key ERP expires soon";
    let notice = subscriber.assert_raised(1, title).await;
    assert_eq!(notice["severity"], "WARNING");
    let (shown, hidden) = (
        attention(&owner().await).await,
        attention(&world.client).await,
    );
    assert!(shown.contains("API_KEY_EXPIRING"), "{shown}");
    assert!(!hidden.contains("API_KEY_EXPIRING"), "keys manage no keys");
    // Whoever makes one for a few days knows.
    create("a migration", 10).await;
    world.pass(21, &[]).await;
    subscriber.assert_silent(1).await;
    assert_eq!(subscriber.open().await, 3, "one on each channel");
    world.micros.fetch_add(15 * DAY_MICROS, Ordering::Relaxed);
    world.pass(25, &[]).await;
    subscriber.assert_silent(1).await;
    assert_eq!(subscriber.open().await, 0);
}

on_each_database!(lost_events_are_an_incident_until_the_pipeline_resumes);
async fn lost_events_are_an_incident_until_the_pipeline_resumes(backend: Backend) {
    let subscriber = Subscriber::of(backend, "PIPELINE_FAILING").await;
    let (world, client) = (&subscriber.world, &subscriber.world.client);
    let hub = SimulatedHub::claim(&world.tenant).await;
    let body = json!({
        "name": "to the ERP", "enabled": false, "source": {}, "steps": [],
        "destination": {"kind": "HTTP", "url": "https://example.com/in"},
    });
    let made: Value = client
        .post("/tenant/data-pipelines")
        .json(&body)
        .call()
        .await
        .expect(201)
        .data();
    let path = format!(
        "/tenant/data-pipelines/{}",
        made["pipelineUuid"].as_str().expect("a uuid")
    );
    hub.upload_events(3).await;
    let scan = async |minutes: i64| {
        for _ in 0..minutes {
            world.micros.fetch_add(60_000_000, Ordering::Relaxed);
            perform(world, "upkeep.notices", Value::Null).await;
        }
    };
    let retain = async || {
        let now = world.app.app.clock.now();
        while perform(world, "retention.ble_events", Value::Null).await == Done::RunAt(now) {}
    };
    retain().await;
    scan(1).await;
    subscriber.assert_silent(0).await;
    // PostgreSQL drops the whole month.
    world.micros.fetch_add(80 * DAY_MICROS, Ordering::Relaxed);
    retain().await;
    let lost = client.get(&path).call().await.expect(200).json()["data"]["lost"].take();
    assert!(lost["from"].is_string(), "{lost}");
    scan(1).await;
    let notice = subscriber
        .assert_raised(1, "Pipeline to the ERP has lost events")
        .await;
    assert_eq!(notice["severity"], "CRITICAL");
    scan(70).await;
    subscriber.assert_silent(1).await;
    assert_eq!(subscriber.open().await, 3, "one on each channel");
    client
        .post(&format!("{path}/resume"))
        .json(&json!({"from": "NOW"}))
        .call()
        .await
        .expect(200);
    scan(5).await;
    subscriber.assert_silent(1).await;
    assert_eq!(subscriber.open().await, 0);
}

on_each_database!(a_hub_that_is_away_is_told_of_a_week_before_it_cannot_come_back);
async fn a_hub_that_is_away_is_told_of_a_week_before_it_cannot_come_back(backend: Backend) {
    let subscriber = Subscriber::of(backend, "HUB_CREDENTIALS_EXPIRING").await;
    let world = &subscriber.world;
    let mut hub = SimulatedHub::claim(&world.tenant).await;
    let pass_days = |days: i64| world.micros.fetch_add(days * DAY_MICROS, Ordering::Relaxed);
    pass_days(22);
    world.pass(11, &[]).await;
    subscriber.assert_silent(0).await;
    pass_days(1);
    world.pass(11, &[]).await;
    let title = format!("The credentials of hub {} are expiring", hub.hub_uuid);
    let notice = subscriber.assert_raised(1, &title).await;
    assert_eq!(
        (&notice["hubUuid"], &notice["severity"]),
        (&json!(hub.hub_uuid), &json!("WARNING"))
    );
    // It stays one incident when they have expired, until the hub is back.
    pass_days(40);
    world.pass(21, &[]).await;
    subscriber.assert_silent(1).await;
    assert_eq!(subscriber.open().await, 3, "one on each channel");
    let path = format!("/tenant/hubs/{}/readmit", hub.hub_uuid);
    world.client.post(&path).call().await.expect(200);
    hub.refresh().await;
    world.pass(25, &[]).await;
    subscriber.assert_silent(1).await;
    assert_eq!(subscriber.open().await, 0);
}

on_each_database!(two_machines_that_are_one_hub_are_told_of_once);
async fn two_machines_that_are_one_hub_are_told_of_once(backend: Backend) {
    let subscriber = Subscriber::of(backend, "HUB_CLONED").await;
    let world = &subscriber.world;
    let mut original = SimulatedHub::claim(&world.tenant).await;
    let mut copy = original.clone();
    for _ in 0..4 {
        original.refresh().await;
        copy.refresh().await;
        world.pass(1, &[]).await;
    }
    let title = format!("Hub {} may be cloned", original.hub_uuid);
    let notice = subscriber.assert_raised(1, &title).await;
    assert_eq!(
        (&notice["hubUuid"], &notice["severity"]),
        (&json!(original.hub_uuid), &json!("CRITICAL"))
    );
    for _ in 0..4 {
        original.refresh().await;
        copy.refresh().await;
        world.pass(10, &[]).await;
    }
    subscriber.assert_silent(1).await;
    world.micros.fetch_add(DAY_MICROS, Ordering::Relaxed);
    world.pass(5, &[]).await;
    assert_eq!(subscriber.open().await, 0, "the copy has gone");
}

on_each_database!(a_hub_that_floods_is_told_of_once);
async fn a_hub_that_floods_is_told_of_once(backend: Backend) {
    let subscriber = Subscriber::of(backend, "HUB_FLOODING").await;
    let world = &subscriber.world;
    let hub = SimulatedHub::claim(&world.tenant).await;
    let path = format!("/tenant/hubs/{}", hub.hub_uuid);
    for minute in 0..4 {
        for _ in 0..220 {
            hub.upload(&hub_tests::hub::events(1)).await;
        }
        // The flood is noted beside the uploads.
        for _ in 0..500 {
            let shown: Value = world.client.get(&path).call().await.expect(200).data();
            if minute == 0 || shown["flooding"] == json!(true) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        world.pass(1, &[]).await;
    }
    let title = format!("Hub {} exceeds its upload limit", hub.hub_uuid);
    let notice = subscriber.assert_raised(1, &title).await;
    assert_eq!(
        (&notice["hubUuid"], &notice["severity"]),
        (&json!(hub.hub_uuid), &json!("WARNING"))
    );
    world.pass(10, &[]).await;
    subscriber.assert_silent(1).await;
    assert_eq!(subscriber.open().await, 0);
}

on_each_database!(an_outage_of_dependency_track_has_one_notice);
async fn an_outage_of_dependency_track_has_one_notice(backend: Backend) {
    let subscriber = Subscriber::of(backend, "DEPENDENCY_TRACK_FAILING").await;
    let world = &subscriber.world;
    let hub = SimulatedHub::claim(&world.tenant).await;
    runs(&hub, &image(vec![package("bash", "5.2.15-2")])).await;
    let server = Receiver::start().await;
    let body = json!({"url": server.url, "project": "Roof", "apiKey": "odt_a1b2c3"});
    let set = world.client.put("/tenant/dependency-track").json(&body);
    set.call().await.expect(200);
    let payload = json!({"tenantUuid": world.tenant.tenant_uuid});
    let send = async || {
        perform(world, dependency_track::SEND, payload.clone()).await;
    };
    server.answer(|_| Answer::now(503));
    send().await;
    world.pass(59, &[]).await;
    subscriber.assert_silent(0).await;
    send().await;
    world.pass(2, &[]).await;
    let notice = subscriber
        .assert_raised(1, "Dependency-Track fails for project Roof")
        .await;
    assert_eq!(notice["severity"], "WARNING");
    assert!(notice["body"].to_string().contains("503"), "why: {notice}");
    // It stays one incident, however often the server is tried.
    world.pass(30, &[]).await;
    send().await;
    subscriber.assert_silent(1).await;
    assert_eq!(subscriber.open().await, 3, "one on each channel");
    world.pass(30, &[]).await;
    server.answer(|_| Answer::now(200));
    send().await;
    world.pass(5, &[]).await;
    subscriber.assert_silent(1).await;
    assert_eq!(subscriber.open().await, 0);

    // What it refuses, it does not get later either.
    runs(&hub, &image(vec![package("bash", "5.2.15-3")])).await;
    server.answer(|_| Answer::now(413));
    send().await;
    world.pass(1, &[]).await;
    subscriber
        .assert_raised(2, "Dependency-Track refuses documents of project Roof")
        .await;
}
