//! `/app/hubs`, `/app/devices` and `/app/action-definitions`: what is a person's, and nobody
//! else's.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hub_base::db::sql;
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::devices::{make_device, make_model, put_readings, put_state};
use hub_tests::events;
use hub_tests::{Backend, Call, Options, Person, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

const START_SECS: i64 = 1_800_057_600;

struct World {
    app: TestApp,
    micros: Arc<AtomicI64>,
    tenant: Tenant,
    /// The person whose the hub is, and somebody else.
    one: Person,
    other: Person,
    hub: SimulatedHub,
    model: Uuid,
    device: i64,
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_micros((START_SECS + secs) * 1_000_000)
}

async fn hub_of(app: &TestApp, tenant: &Tenant, person: &Person) -> SimulatedHub {
    let body = json!({"ownerUserUuid": person.login.user_uuid});
    let code: Value = tenant
        .client
        .post("/tenant/hubs/claim-codes")
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    let code = code["claimCode"].as_str().expect("a code");
    SimulatedHub::claim_with(&app.client(), code, &Uuid::new_v4().to_string()).await
}

impl World {
    async fn new(backend: Backend) -> Self {
        let (clock, micros) = set_clock(at(0));
        let app = TestApp::with(
            backend,
            Options {
                clock: Some(clock),
                ..Options::default()
            },
        )
        .await;
        let tenant = Tenant::create(&app.client()).await;
        let (one, other) = (
            Person::register(&app.client()).await,
            Person::register(&app.client()).await,
        );
        let hub = hub_of(&app, &tenant, &one).await;
        let model = make_model(&tenant, "Thermometer").await;
        let body = json!({"address": "C4:11:7D:DA:71:13", "name": "Hall", "labels": {"room": "7"}});
        let device = make_device(&tenant, model, body).await["deviceInstanceId"]
            .as_i64()
            .expect("an id");
        Self {
            app,
            micros,
            tenant,
            one,
            other,
            hub,
            model,
            device,
        }
    }

    /// The hub hears the device best, and what it says.
    async fn hear(&self, hub: &SimulatedHub, secs: i64) {
        let state = json!({"temperature": {"value": 21.5, "unit": "Cel", "at": at(secs)}});
        put_state(
            &self.app,
            &self.tenant,
            self.device,
            hub.hub_uuid,
            at(secs),
            &state,
        )
        .await;
    }

    /// Uploads a value of the device.
    async fn upload(&self, secs: i64, value: f64) {
        let last = events::last_id(&self.app.app.db, self.tenant.tenant_uuid).await;
        let event = json!({"observedAt": at(secs), "address": "C4:11:7D:DA:71:13", "rssi": -60});
        let body = json!({"batchUuid": Uuid::new_v4(), "events": [event]});
        self.hub
            .client
            .post("/v1/ble/events")
            .json(&body)
            .call()
            .await
            .expect(201);
        let values = [json!({"temperature": value})];
        put_readings(
            &self.app,
            &self.tenant,
            last,
            self.device,
            self.model,
            &values,
        )
        .await;
    }

    fn device_path(&self) -> String {
        format!("/app/devices/{}", self.device)
    }

    fn hub_path(&self) -> String {
        format!("/app/hubs/{}", self.hub.hub_uuid)
    }
}

async fn list(person: &Person, path: &str) -> Vec<Value> {
    person.client.get(path).call().await.expect(200).data()
}

on_each_database!(hubs_and_devices_are_their_owners_alone);
async fn hubs_and_devices_are_their_owners_alone(backend: Backend) {
    let world = World::new(backend).await;
    world.hear(&world.hub, 10).await;
    let hubs = list(&world.one, "/app/hubs").await;
    assert_eq!(hubs.len(), 1, "{hubs:?}");
    assert_eq!(hubs[0]["hubUuid"], json!(world.hub.hub_uuid));
    assert_eq!(hubs[0]["supplierUuid"], json!(world.tenant.tenant_uuid));
    assert_eq!(
        (&hubs[0]["deviceCount"], &hubs[0]["online"]),
        (&json!(1), &json!(false))
    );
    let hub: Value = world
        .one
        .client
        .get(&world.hub_path())
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&hub["delegated"], &hub["adapters"]),
        (&json!(false), &json!([]))
    );
    assert_eq!(hub["devices"][0]["deviceInstanceId"], json!(world.device));
    let devices = list(&world.one, "/app/devices").await;
    assert_eq!(devices.len(), 1);
    assert_eq!(devices[0]["state"]["temperature"]["value"], json!(21.5));
    assert_eq!(
        (&devices[0]["name"], &devices[0]["deviceName"]),
        (&json!("Hall"), &json!("Thermometer"))
    );
    for hidden in [
        "labels",
        "calibration",
        "bindKeyStatus",
        "identityResolvingKeySet",
    ] {
        assert!(
            devices[0].get(hidden).is_none(),
            "{hidden} is the operator's"
        );
    }
    let detail: Value = world
        .one
        .client
        .get(&world.device_path())
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(detail["hubUuid"], json!(world.hub.hub_uuid));

    for path in ["/app/hubs", "/app/devices"] {
        assert!(list(&world.other, path).await.is_empty(), "{path}");
        assert!(
            list(&world.tenant.owner, path).await.is_empty(),
            "a member of the supplier is no owner"
        );
    }
    let sensor_data = format!("{}/sensor-data", world.device_path());
    for path in [world.hub_path(), world.device_path(), sensor_data] {
        world.one.client.get(&path).call().await.expect(200);
        world.other.client.get(&path).call().await.expect(404);
    }
    // The hub of somebody else hears it better now.
    let neighbour = hub_of(&world.app, &world.tenant, &world.other).await;
    world.hear(&neighbour, 20).await;
    assert!(list(&world.one, "/app/devices").await.is_empty());
    world
        .one
        .client
        .get(&world.device_path())
        .call()
        .await
        .expect(404);
    let of_hub = format!("/app/devices?hubUuid={}", neighbour.hub_uuid);
    assert_eq!(
        (
            list(&world.other, &of_hub).await.len(),
            list(&world.one, &of_hub).await.len()
        ),
        (1, 0)
    );
}

on_each_database!(delegation_that_ends_ends_the_access_at_once);
async fn delegation_that_ends_ends_the_access_at_once(backend: Backend) {
    let world = World::new(backend).await;
    let path = format!("/tenant/hubs/{}/setup-delegations", world.hub.hub_uuid);
    let lend = async |body: Value| -> Value {
        world
            .tenant
            .client
            .post(&path)
            .json(&body)
            .call()
            .await
            .expect(200)
            .data()
    };
    let body = json!({"userUuid": world.other.login.user_uuid, "expiresAt": at(100)});
    let lent = lend(body.clone()).await;
    world.hear(&world.hub, 10).await;
    let hub: Value = world
        .other
        .client
        .get(&world.hub_path())
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&hub["delegated"], &hub["deviceCount"]),
        (&json!(true), &json!(1))
    );
    world
        .other
        .client
        .get(&world.device_path())
        .call()
        .await
        .expect(200);
    world
        .tenant
        .client
        .delete(&format!("{path}/{}", lent["id"]))
        .call()
        .await
        .expect(200);
    for gone in [world.hub_path(), world.device_path()] {
        world.other.client.get(&gone).call().await.expect(404);
    }
    lend(body).await;
    assert_eq!(list(&world.other, "/app/hubs").await.len(), 1);
    world.micros.store(at(100).as_micros(), Ordering::Relaxed);
    assert!(
        list(&world.other, "/app/hubs").await.is_empty(),
        "it has expired"
    );
    let own: Value = world
        .one
        .client
        .get(&world.hub_path())
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(own["delegated"], json!(false), "the owner is not concerned");
}

on_each_database!(delegation_to_an_email_needs_proof_of_the_email);
async fn delegation_to_an_email_needs_proof_of_the_email(backend: Backend) {
    let world = World::new(backend).await;
    let path = format!("/tenant/hubs/{}/setup-delegations", world.hub.hub_uuid);
    world
        .tenant
        .client
        .post(&path)
        .json(&json!({"email": world.other.email}))
        .call()
        .await
        .expect(200);
    // Anybody may register with the e-mail of somebody else.
    assert!(list(&world.other, "/app/hubs").await.is_empty());
    let mut tx = world.app.app.db.begin().await.expect("a transaction");
    sql("UPDATE users SET email_verified_at = $2 WHERE user_uuid = $1")
        .bind((world.other.login.user_uuid, at(0)))
        .run(&mut tx)
        .await
        .expect("an update");
    tx.commit_unaudited("a test").await.expect("a commit");
    assert_eq!(list(&world.other, "/app/hubs").await.len(), 1);
}

on_each_database!(nobody_sees_what_was_heard_before_the_hub_was_theirs);
async fn nobody_sees_what_was_heard_before_the_hub_was_theirs(backend: Backend) {
    let world = World::new(backend).await;
    let sensor_data = |person: &Person, query: &str| {
        let (client, path) = (
            person.client.clone(),
            format!("{}/sensor-data{query}", world.device_path()),
        );
        async move {
            let data: Value = client.get(&path).call().await.expect(200).data();
            data["items"].as_array().expect("items").clone()
        }
    };
    world.upload(50, 18.0).await;
    world.hear(&world.hub, 50).await;
    assert_eq!(sensor_data(&world.one, "").await.len(), 1);
    // The hub is lent later.
    world.micros.store(at(100).as_micros(), Ordering::Relaxed);
    let path = format!("/tenant/hubs/{}/setup-delegations", world.hub.hub_uuid);
    let body = json!({"userUuid": world.other.login.user_uuid});
    world
        .tenant
        .client
        .post(&path)
        .json(&body)
        .call()
        .await
        .expect(200);
    assert!(
        list(&world.other, "/app/devices").await.is_empty(),
        "it was not heard since"
    );
    world.upload(150, 19.0).await;
    world.hear(&world.hub, 150).await;
    world.micros.store(at(200).as_micros(), Ordering::Relaxed);
    assert_eq!(list(&world.other, "/app/devices").await.len(), 1);
    let items = sensor_data(&world.other, "").await;
    assert_eq!(items.len(), 1, "{items:?}");
    assert_eq!(items[0]["values"]["temperature"], json!(19.0));
    let from = format!("?from={}", at(0));
    assert_eq!(sensor_data(&world.other, &from).await.len(), 1);
    assert_eq!(sensor_data(&world.one, &from).await.len(), 2);
    let buckets = sensor_data(&world.other, "?every=1h").await;
    assert_eq!(
        (buckets.len(), &buckets[0]["count"]),
        (1, &json!(1)),
        "{buckets:?}"
    );
}

on_each_database!(owner_of_a_hub_that_is_claimed_for_somebody_else_loses_it);
async fn owner_of_a_hub_that_is_claimed_for_somebody_else_loses_it(backend: Backend) {
    let world = World::new(backend).await;
    world.hear(&world.hub, 10).await;
    world.micros.store(at(100).as_micros(), Ordering::Relaxed);
    let body = json!({"ownerUserUuid": world.other.login.user_uuid, "allowReclaim": true});
    let code: Value = world
        .tenant
        .client
        .post("/tenant/hubs/claim-codes")
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    let code = code["claimCode"].as_str().expect("a code");
    SimulatedHub::claim_with(&world.app.client(), code, &world.hub.device_instance_id).await;
    world
        .one
        .client
        .get(&world.hub_path())
        .call()
        .await
        .expect(404);
    let hub: Value = world
        .other
        .client
        .get(&world.hub_path())
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&hub["deviceCount"], &hub["devices"]),
        (&json!(0), &json!([])),
        "the devices of the one before"
    );
    world.hear(&world.hub, 110).await;
    let hub: Value = world
        .other
        .client
        .get(&world.hub_path())
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(hub["deviceCount"], json!(1));
    // A released hub is nobody's.
    world
        .tenant
        .client
        .delete(&format!("/tenant/hubs/{}", world.hub.hub_uuid))
        .call()
        .await
        .expect(204);
    world
        .other
        .client
        .get(&world.hub_path())
        .call()
        .await
        .expect(404);
}

on_each_database!(actions_are_those_of_suppliers_of_ones_hubs);
async fn actions_are_those_of_suppliers_of_ones_hubs(backend: Backend) {
    let world = World::new(backend).await;
    let second = Tenant::create(&world.app.client()).await;
    for tenant in [&world.tenant, &second] {
        let endpoint =
            json!({"name": "x", "baseUrl": "https://example.com/", "verify_method": "DNS_TXT"});
        let endpoint: Value = tenant
            .client
            .post("/tenant/external-endpoints")
            .json(&endpoint)
            .call()
            .await
            .expect(200)
            .data();
        let transport = json!({"kind": "HTTP", "externalEndpointId": endpoint["id"], "path": "/on", "method": "POST"});
        let body = json!({"actionId": "lamp.on", "name": "On", "transport": transport});
        tenant
            .client
            .post("/tenant/action-definitions")
            .json(&body)
            .call()
            .await
            .expect(201);
    }
    let of = |tenant: &Tenant| {
        format!(
            "/app/action-definitions?supplierUuid={}",
            tenant.tenant_uuid
        )
    };
    assert_eq!(list(&world.one, &of(&world.tenant)).await.len(), 1);
    world.one.client.get(&of(&second)).call().await.expect(404);
    world
        .other
        .client
        .get(&of(&world.tenant))
        .call()
        .await
        .expect(404);
    let one = "/app/action-definitions/lamp.on";
    let found: Value = world.one.client.get(one).call().await.expect(200).data();
    assert_eq!(found["supplierUuid"], json!(world.tenant.tenant_uuid));
    world.other.client.get(one).call().await.expect(404);
    let missing = world
        .one
        .client
        .get("/app/action-definitions")
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(missing.errors[0].field, "supplierUuid");
    hub_of(&world.app, &second, &world.one).await;
    let problem = world.one.client.get(one).call().await.expect(409).problem();
    assert_eq!(problem.code, "ACTION_AMBIGUOUS");
    let named = format!("{one}?supplierUuid={}", second.tenant_uuid);
    let found: Value = world.one.client.get(&named).call().await.expect(200).data();
    assert_eq!(found["supplierUuid"], json!(second.tenant_uuid));
    let detail = world.one.client.get(&world.device_path()).call().await;
    assert_eq!(detail.status, 404, "no hub has heard it");
    world.hear(&world.hub, 10).await;
    let detail: Value = world
        .one
        .client
        .get(&world.device_path())
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(detail["actions"][0]["actionId"], json!("lamp.on"));
}
