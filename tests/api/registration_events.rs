//! `/platform/registration-events`: the events that suppliers receive, tried against a system that
//! answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hub_cloud::upkeep;
use hub_core::config::Settings;
use hub_core::outbox;
use hub_core::tasks::{Done, Task};
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::devices::{make_device, make_model};
use hub_tests::{
    Backend, Call, Client, Options, Person, Receiver, SimulatedHub, Tenant, TestApp,
    on_each_database,
};
use serde_json::{Value, json};
use uuid::Uuid;

const NOON: i64 = 1_800_014_400_000_000;
const SECRET: &str = "a secret of both sides";

struct World {
    app: TestApp,
    micros: Arc<AtomicI64>,
    tenant: Tenant,
    person: Person,
    receiver: Receiver,
}

impl World {
    async fn new(backend: Backend) -> Self {
        let (clock, micros) = set_clock(Timestamp::from_micros(NOON));
        let settings = Settings {
            allow_private_targets: Some(true.into()),
            ..Settings::default()
        };
        let app = TestApp::with(
            backend,
            Options {
                clock: Some(clock),
                settings,
            },
        )
        .await;
        let tenant = Tenant::create(&app.client()).await;
        let person = Person::register(&app.client()).await;
        Self {
            app,
            micros,
            tenant,
            person,
            receiver: Receiver::start().await,
        }
    }

    /// With a token that has not expired.
    fn admin(&self) -> Client {
        self.person.as_platform_admin(&self.app)
    }

    async fn configure(&self) {
        let body = json!({
            "authorize_url": "https://login.example.com/authorize", "token_url": "https://login.example.com/token",
            "client_id": "hubs", "scope": "openid", "registration_url": format!("{}/registered", self.receiver.url),
            "registration_shared_secret": SECRET,
        });
        self.tenant
            .client
            .put("/tenant/supplier-oauth-config")
            .json(&body)
            .call()
            .await
            .expect(200);
    }

    async fn push(&self) -> Done {
        let payload = json!({"tenantUuid": self.tenant.tenant_uuid});
        hub_tests::app::perform(&self.app.app, outbox::PUSH, payload).await
    }

    async fn events(&self, query: &str) -> Vec<Value> {
        self.admin()
            .get(&format!("/platform/registration-events?{query}"))
            .call()
            .await
            .expect(200)
            .data()
    }

    fn pass(&self, secs: i64) {
        self.micros.fetch_add(secs * 1_000_000, Ordering::Relaxed);
    }
}

fn signed(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message)
        .as_ref()
        .to_vec()
}

on_each_database!(a_supplier_gets_events_of_hubs_and_devices);
async fn a_supplier_gets_events_of_hubs_and_devices(backend: Backend) {
    let world = World::new(backend).await;
    world.configure().await;
    let hub = SimulatedHub::claim(&world.tenant).await;
    let model = make_model(&world.tenant, "sensor").await;
    let device = make_device(&world.tenant, model, json!({"name": "in the hall"})).await;
    let path = format!("/tenant/devices/{}", device["deviceInstanceId"]);
    for step in ["activate", "suspend", "retire"] {
        world
            .tenant
            .client
            .post(&format!("{path}/{step}"))
            .call()
            .await
            .expect(200);
    }
    let tenant = format!("tenantUuid={}", world.tenant.tenant_uuid);
    let pending = world.events(&format!("{tenant}&status=PENDING")).await;
    let types: Vec<&Value> = pending.iter().map(|event| &event["eventType"]).collect();
    assert_eq!(
        types,
        [
            "device.retired",
            "device.activated",
            "device.registered",
            "hub.claimed"
        ],
        "newest first"
    );
    assert_eq!(
        world
            .events(&format!("{tenant}&eventType=device.activated"))
            .await,
        pending[1..2]
    );
    assert_eq!(pending[3]["payload"]["hubUuid"], json!(hub.hub_uuid));

    assert_eq!(world.push().await, Done::Finished);
    let mut received = world.receiver.take();
    received.sort_by_key(|call| call.json()["eventType"].to_string());
    assert_eq!(received.len(), 4);
    let claimed = &received[3];
    assert_eq!(claimed.path, "/registered");
    assert_eq!(claimed.header("content-type"), "application/json");
    assert_eq!(claimed.header("x-service-event-type"), "hub.claimed");
    assert_eq!(
        claimed.header("x-service-timestamp"),
        Timestamp::from_micros(NOON).to_string()
    );
    let expected = json!({
        "eventType": "hub.claimed", "occurredAt": Timestamp::from_micros(NOON), "tenantUuid": world.tenant.tenant_uuid,
        "hubUuid": hub.hub_uuid, "again": false,
    });
    assert_eq!(claimed.json(), expected);
    let signature = format!(
        "sha256={}",
        hex::encode(signed(SECRET.as_bytes(), &claimed.body))
    );
    assert_eq!(claimed.header("x-service-signature"), signature);
    let id = claimed.header("webhook-id");
    assert_eq!(id, claimed.header("x-service-idempotency-key"));
    let message = [
        format!("{id}.{}.", claimed.header("webhook-timestamp")).as_bytes(),
        &claimed.body,
    ]
    .concat();
    let signature = format!(
        "v1,{}",
        STANDARD.encode(signed(SECRET.as_bytes(), &message))
    );
    assert_eq!(claimed.header("webhook-signature"), signature);
    let registered = received[1].json();
    assert_eq!(registered["deviceInstanceId"], device["deviceInstanceId"]);
    assert_eq!(registered["deviceUuid"], json!(model));

    let delivered = world.events(&format!("{tenant}&status=DELIVERED")).await;
    assert_eq!(delivered.len(), 4);
    assert!(
        delivered
            .iter()
            .all(|event| event["deliveredAt"] == json!(Timestamp::from_micros(NOON)))
    );
    assert!(
        delivered
            .iter()
            .all(|event| event["attempts"] == 1 && event["nextAttemptAt"].is_null())
    );
    assert!(
        !world
            .app
            .client()
            .get("/metrics")
            .call()
            .await
            .expect(200)
            .body
            .contains(SECRET)
    );
}

on_each_database!(an_event_is_tried_ten_times_and_again_on_request);
async fn an_event_is_tried_ten_times_and_again_on_request(backend: Backend) {
    let world = World::new(backend).await;
    world.configure().await;
    SimulatedHub::claim(&world.tenant).await;
    world
        .receiver
        .answer_in_turn((0..10).map(|attempt| match attempt {
            0 => (429, vec![("retry-after", "3600".to_owned())]),
            1 => (
                302,
                vec![("location", format!("{}/elsewhere", world.receiver.url))],
            ),
            _ => (500, Vec::new()),
        }));
    let mut ids = Vec::new();
    for attempt in 1..=10 {
        let done = world.push().await;
        let calls = world.receiver.take();
        assert_eq!(calls.len(), 1, "one call in try {attempt}");
        assert_eq!(calls[0].path, "/registered", "no redirect is followed");
        ids.push(calls[0].header("webhook-id").to_owned());
        let event = world.events("").await.remove(0);
        assert_eq!(event["attempts"], attempt);
        if attempt == 10 {
            assert_eq!(
                (&event["status"], &event["nextAttemptAt"]),
                (&json!("FAILED"), &Value::Null)
            );
            assert_eq!(done, Done::Finished);
            continue;
        }
        assert_eq!(event["status"], "PENDING");
        let next: Timestamp =
            serde_json::from_value(event["nextAttemptAt"].clone()).expect("a time");
        let delay = next.as_secs() - world.app.app.clock.now().as_secs();
        match attempt {
            1 => assert_eq!(
                (delay, &event["lastError"]),
                (3600, &json!("the receiver answered 429"))
            ),
            _ => assert!((5..=6 * 3600).contains(&delay), "{delay}"),
        }
        assert!(matches!(done, Done::RunAt(_)), "{done:?}");
        assert_eq!(world.push().await, Done::RunAt(next), "nothing is due");
        assert!(world.receiver.take().is_empty());
        world.pass(delay + 1);
    }
    assert!(
        ids.iter().all(|id| *id == ids[0]),
        "the same id in every try: {ids:?}"
    );

    let failed = world.events("status=FAILED").await.remove(0);
    let path = format!("/platform/registration-events/{}/retry", failed["id"]);
    let retried: Value = world.admin().post(&path).call().await.expect(200).data();
    assert_eq!(
        (&retried["status"], &retried["attempts"]),
        (&json!("PENDING"), &json!(0))
    );
    assert_eq!(retried["nextAttemptAt"], json!(world.app.app.clock.now()));
    world.push().await;
    assert_eq!(world.receiver.take()[0].header("webhook-id"), ids[0]);
    assert_eq!(world.events("status=DELIVERED").await.len(), 1);
    // A delivered one is sent again too.
    world.admin().post(&path).call().await.expect(200);
    world.push().await;
    assert_eq!(world.receiver.take().len(), 1);
    world
        .admin()
        .post("/platform/registration-events/4242424242/retry")
        .call()
        .await
        .expect(404);
    world.person.client.post(&path).call().await.expect(401);
}

on_each_database!(events_without_a_system_to_tell_are_given_up);
async fn events_without_a_system_to_tell_are_given_up(backend: Backend) {
    let world = World::new(backend).await;
    SimulatedHub::claim(&world.tenant).await;
    assert_eq!(world.push().await, Done::Finished);
    let failed = world.events("status=FAILED").await;
    assert_eq!(failed.len(), 1);
    assert_eq!(
        (&failed[0]["lastError"], &failed[0]["attempts"]),
        (&json!("no registration_url is configured"), &json!(0))
    );
    assert_eq!(world.events("status=FAILED&attempted=true").await.len(), 0);
    assert_eq!(world.events("attempted=false").await.len(), 1);
    world.configure().await;
    let path = format!("/platform/registration-events/{}/retry", failed[0]["id"]);
    world.admin().post(&path).call().await.expect(200);
    world.push().await;
    assert_eq!(world.receiver.take().len(), 1);
    assert_eq!(world.events("attempted=true").await.len(), 1);

    // Rows that ended are kept for a week; those of a deleted tenant that did not are deleted.
    world.pass(7 * 24 * 3600 - 1);
    let retention = Task {
        task_uuid: Uuid::new_v4(),
        kind: "retention.registration_events".to_owned(),
        payload: json!({}),
        attempts: 1,
    };
    upkeep::perform(world.app.app.clone(), retention.clone())
        .await
        .expect("done");
    assert_eq!(world.events("").await.len(), 1);
    world.pass(2);
    upkeep::perform(world.app.app.clone(), retention)
        .await
        .expect("done");
    assert_eq!(world.events("").await.len(), 0);
}

on_each_database!(a_deleted_tenant_has_no_events);
async fn a_deleted_tenant_has_no_events(backend: Backend) {
    let world = World::new(backend).await;
    world.configure().await;
    SimulatedHub::claim(&world.tenant).await;
    let path = format!("/tenant/tenants/{}", world.tenant.tenant_uuid);
    world.tenant.client.delete(&path).call().await.expect(200);
    assert_eq!(world.events("status=PENDING").await.len(), 1);
    assert_eq!(world.push().await, Done::Finished);
    assert!(world.events("").await.is_empty() && world.receiver.take().is_empty());
}

on_each_database!(devices_that_uploads_register_have_events_at_once);
async fn devices_that_uploads_register_have_events_at_once(backend: Backend) {
    let world = World::new(backend).await;
    let body = json!({"template": "bthome/v2", "autoRegister": true});
    world
        .tenant
        .client
        .post("/tenant/device-catalog")
        .json(&body)
        .call()
        .await
        .expect(200);
    let hub = SimulatedHub::claim(&world.tenant).await;
    let events: Vec<Value> = (0..20)
        .map(|number| {
            json!({
                "observedAt": world.app.app.clock.now(), "address": format!("C4:11:00:00:00:{number:02X}"),
                "addressType": "random", "rssi": -60,
                "serviceData": {"fcd2": "QALKCQ=="},
            })
        })
        .collect();
    let body = json!({"batchUuid": Uuid::new_v4(), "events": events});
    hub.client
        .post("/v1/ble/events")
        .json(&body)
        .call()
        .await
        .expect(201);
    for event_type in ["device.registered", "device.activated"] {
        let events = world
            .events(&format!("eventType={event_type}&size=100"))
            .await;
        assert_eq!(events.len(), 20, "{event_type}");
        assert!(
            events
                .iter()
                .all(|event| event["payload"]["hubUuid"] == json!(hub.hub_uuid)),
            "{events:?}"
        );
    }
}
