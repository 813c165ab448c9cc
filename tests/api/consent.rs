//! Consent: what suppliers ask for, what people grant and withdraw, and what hubs and storage make
//! of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use hub_base::db::sql;
use hub_composed::notices;
use hub_core::tasks::Done;
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::devices::{make_device, make_model, put_state};
use hub_tests::events;
use hub_tests::{Backend, Call, Options, Person, SimulatedHub, Tenant, TestApp, on_each_database};
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use reqwest::header::IF_NONE_MATCH;
use serde_json::{Value, json};
use uuid::Uuid;

const NOON: i64 = 1_800_014_400_000_000;
const SETTINGS: &str = "/tenant/consent-settings";
const CONSENT: &str = "/app/consent";

struct World {
    app: TestApp,
    micros: Arc<AtomicI64>,
    tenant: Tenant,
    one: Person,
    other: Person,
    hub: SimulatedHub,
}

fn asked(version: &str) -> Value {
    json!({
        "version": version, "text": "We read your sensors.", "url": "https://example.com/privacy",
        "purposes": [
            {"key": "monitoring", "title": "Show you values", "required": true},
            {"key": "research", "title": "Better batteries", "required": false, "defaultRetentionDays": 30}
        ],
        "enforce": true
    })
}

impl World {
    async fn new(backend: Backend) -> Self {
        let (clock, micros) = set_clock(Timestamp::from_micros(NOON));
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
        let body = json!({"ownerUserUuid": one.login.user_uuid});
        let code: Value = tenant
            .client
            .post("/tenant/hubs/claim-codes")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        let code = code["claimCode"].as_str().expect("a code").to_owned();
        let hub = SimulatedHub::claim_with(&app.client(), &code, &Uuid::new_v4().to_string()).await;
        Self {
            app,
            micros,
            tenant,
            one,
            other,
            hub,
        }
    }

    async fn ask(&self, body: &Value) -> Value {
        self.tenant
            .client
            .post(SETTINGS)
            .json(body)
            .call()
            .await
            .expect(200)
            .data()
    }

    fn grant_body(&self, version: &str) -> Value {
        json!({"supplierUuid": self.tenant.tenant_uuid, "version": version, "purposes": ["monitoring"]})
    }

    async fn grant(&self, version: &str) -> Value {
        self.one
            .client
            .post(CONSENT)
            .json(&self.grant_body(version))
            .call()
            .await
            .expect(200)
            .data()
    }

    async fn withdraw(&self, consent: &Value) {
        self.one
            .client
            .delete(&format!("{CONSENT}/{}", consent["consentId"]))
            .call()
            .await
            .expect(200);
    }

    /// How many of three uploaded events were accepted and rejected.
    async fn upload(&self) -> (i64, usize) {
        let reply: Value = self
            .hub
            .upload(&hub_tests::hub::events(3))
            .await
            .expect(201)
            .data();
        (
            reply["accepted"].as_i64().expect("a number"),
            reply["rejected"].as_array().expect("a list").len(),
        )
    }

    async fn stored(&self) -> i64 {
        events::count(&self.app.app.db, self.tenant.tenant_uuid).await
    }

    fn state_path(&self) -> String {
        format!("/v1/hubs/{}/desired-state", self.hub.hub_uuid)
    }

    async fn is_withheld(&self) -> bool {
        let state: Value = self
            .hub
            .client
            .get(&self.state_path())
            .call()
            .await
            .expect(200)
            .data();
        state["settings"]["withholdEvents"]
            .as_bool()
            .expect("a boolean")
    }

    /// The claims of a receipt, if a key of the service has signed it.
    async fn checked(&self, receipt: &str) -> Result<Value, jsonwebtoken::errors::Error> {
        let keys: JwkSet = serde_json::from_value(
            self.app
                .client()
                .get("/.well-known/jwks.json")
                .call()
                .await
                .expect(200)
                .json(),
        )
        .expect("a key set");
        let kid = jsonwebtoken::decode_header(receipt)?.kid.expect("a key id");
        let key = DecodingKey::from_jwk(keys.find(&kid).expect("the key is served"))?;
        let mut validation = Validation::new(Algorithm::ES256);
        validation.set_audience(&["hub-cloud/consent-receipts"]);
        validation.set_issuer(&["hub-cloud"]);
        // A receipt does not expire.
        validation.required_spec_claims.remove("exp");
        validation.validate_exp = false;
        jsonwebtoken::decode(receipt, &key, &validation).map(|data| data.claims)
    }
}

on_each_database!(receipts_can_be_checked_by_anybody_and_are_no_tokens);
async fn receipts_can_be_checked_by_anybody_and_are_no_tokens(backend: Backend) {
    let world = World::new(backend).await;
    world.ask(&asked("1")).await;
    let granted = world.grant("1").await;
    assert_eq!(
        (&granted["status"], &granted["purposes"]),
        (&json!("GRANTED"), &json!(["monitoring"]))
    );
    let receipt = granted["receipt"].as_str().expect("a receipt").to_owned();
    let claims = world.checked(&receipt).await.expect("a good signature");
    for name in [
        "consentId",
        "supplierUuid",
        "userUuid",
        "version",
        "purposes",
        "hubUuid",
        "grantedAt",
    ] {
        assert_eq!(claims[name], granted[name], "{name}");
    }
    let mut parts: Vec<String> = receipt.split('.').map(str::to_owned).collect();
    let flipped = if parts[1].starts_with('e') { "f" } else { "e" };
    parts[1].replace_range(0..1, flipped);
    world
        .checked(&parts.join("."))
        .await
        .expect_err("it was changed");
    // A receipt is no secret, as what tests send as a token is.
    for path in ["/app/profile".to_owned(), world.state_path()] {
        let url = format!("{}{path}", world.app.client().url);
        let reply = reqwest::Client::new()
            .get(url)
            .bearer_auth(&receipt)
            .send()
            .await
            .expect("an answer");
        assert_eq!(reply.status(), 401, "{path}");
    }
    // The key of a receipt outlives those of tokens.
    for _ in 0..3 {
        world
            .micros
            .fetch_add(100 * 24 * 3600 * 1_000_000, Ordering::Relaxed);
        hub_tests::app::perform(&world.app.app, "upkeep.signing_keys", Value::Null).await;
    }
    world
        .checked(&receipt)
        .await
        .expect("a key that is still served");
}

on_each_database!(withdrawal_stops_the_hub_within_a_held_request);
async fn withdrawal_stops_the_hub_within_a_held_request(backend: Backend) {
    let world = World::new(backend).await;
    assert_eq!(world.upload().await, (3, 0), "nothing is asked for");
    let before = world.stored().await;
    world.ask(&asked("1")).await;
    assert!(world.is_withheld().await);
    assert_eq!(
        (world.upload().await, world.stored().await),
        ((0, 3), before)
    );
    let consent = world.grant("1").await;
    assert!(!world.is_withheld().await);
    assert_eq!(
        (world.upload().await, world.stored().await),
        ((3, 0), before + 3)
    );

    let state = world
        .hub
        .client
        .get(&world.state_path())
        .call()
        .await
        .expect(200);
    let waiting = world.app.app.metrics.hub_waits.get();
    let request = world
        .hub
        .client
        .get(&format!("{}?wait=50", world.state_path()));
    let request = request.header(IF_NONE_MATCH, state.header("etag"));
    let held = tokio::spawn(async move { request.call().await });
    while world.app.app.metrics.hub_waits.get() <= waiting {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let began = Instant::now();
    world.withdraw(&consent).await;
    let state: Value = held.await.expect("an answer").expect(200).data();
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(state["settings"]["withholdEvents"], json!(true));
    assert_eq!(
        (world.upload().await, world.stored().await),
        ((0, 3), before + 3)
    );
    // It still reports of itself.
    world
        .hub
        .client
        .post(&format!("/v1/hubs/{}/telemetry", world.hub.hub_uuid))
        .json(&json!({"cpu": 1}))
        .call()
        .await
        .expect(204);
    world.withdraw(&consent).await;
    let shown: Vec<Value> = world
        .one
        .client
        .get(CONSENT)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&shown[0]["status"], shown[0]["withdrawnAt"].is_string()),
        (&json!("WITHDRAWN"), true)
    );
    let audit: Value = world
        .tenant
        .client
        .get("/tenant/audit-logs?size=100")
        .call()
        .await
        .expect(200)
        .json();
    let audit = audit.to_string();
    assert!(
        audit.contains("consent.withdraw") && audit.contains("consent.grant"),
        "{audit}"
    );
}

on_each_database!(another_version_asks_again);
async fn another_version_asks_again(backend: Backend) {
    let world = World::new(backend).await;
    world.ask(&asked("1")).await;
    let consent = world.grant("1").await;
    assert_eq!(world.grant("1").await, consent, "nothing changed");
    let mut reworded = asked("1");
    reworded["text"] = json!("We sell your data.");
    let problem = world
        .tenant
        .client
        .post(SETTINGS)
        .json(&reworded)
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(problem.code, "CONSENT_VERSION_GRANTED");
    reworded["version"] = json!("2");
    world.ask(&reworded).await;
    assert!(world.is_withheld().await);
    let shown: Vec<Value> = world
        .one
        .client
        .get(CONSENT)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(shown[0]["status"], json!("OUTDATED"));
    let stale = world
        .one
        .client
        .post(CONSENT)
        .json(&world.grant_body("1"))
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(stale.code, "CONSENT_OUTDATED");
    let first = &consent["consentId"];
    world.grant("2").await;
    assert!(!world.is_withheld().await);
    let days = json!({"retentionDays": 9});
    let path = format!("{CONSENT}/{first}/retention");
    let replaced = world
        .one
        .client
        .put(&path)
        .json(&days)
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(replaced.code, "CONSENT_OUTDATED");
    let shown: Vec<Value> = world
        .tenant
        .client
        .get("/tenant/consent-records")
        .call()
        .await
        .expect(200)
        .data();
    let statuses: Vec<&Value> = shown.iter().map(|record| &record["status"]).collect();
    assert_eq!(
        statuses,
        [&json!("GRANTED"), &json!("OUTDATED")],
        "newest first"
    );
    let of = async |version: &str| {
        world
            .tenant
            .client
            .get(&format!("{SETTINGS}{version}"))
            .call()
            .await
    };
    let current: Value = of("").await.expect(200).data();
    let first: Value = of("?version=1").await.expect(200).data();
    assert_eq!(
        (&current["version"], &first["text"]),
        (&json!("2"), &asked("1")["text"])
    );
    of("?version=3").await.expect(404);
    let of_nobody = format!("/app/consent-settings/{}", Uuid::new_v4());
    world.one.client.get(&of_nobody).call().await.expect(404);
    let seen = format!("/app/consent-settings/{}", world.tenant.tenant_uuid);
    let seen: Value = world
        .other
        .client
        .get(&seen)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(seen, current);
    // Without enforcement the hub is free.
    reworded["enforce"] = json!(false);
    world.ask(&reworded).await;
    world.withdraw(&world.grant("2").await).await;
    assert!(!world.is_withheld().await);
}

on_each_database!(consents_are_for_ones_own_hubs_and_of_oneself);
async fn consents_are_for_ones_own_hubs_and_of_oneself(backend: Backend) {
    let world = World::new(backend).await;
    let body = world.grant_body("1");
    world
        .one
        .client
        .post(CONSENT)
        .json(&body)
        .call()
        .await
        .expect(404);
    world.ask(&asked("1")).await;
    let with = |name: &str, value: Value| {
        let mut body = body.clone();
        body[name] = value;
        body
    };
    let of_hub = with("hubUuid", json!(world.hub.hub_uuid));
    world
        .other
        .client
        .post(CONSENT)
        .json(&of_hub)
        .call()
        .await
        .expect(404);
    // What somebody else grants is no consent of the owner.
    world
        .other
        .client
        .post(CONSENT)
        .json(&body)
        .call()
        .await
        .expect(200);
    assert!(world.is_withheld().await);
    for (bad, field) in [
        (with("purposes", json!([])), "purposes"),
        (with("purposes", json!(["research"])), "purposes"),
        (
            with("purposes", json!(["monitoring", "sale"])),
            "purposes[1]",
        ),
        (with("supplierUuid", json!("x")), "supplierUuid"),
    ] {
        let problem = world
            .one
            .client
            .post(CONSENT)
            .json(&bad)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{bad}");
    }
    let consent: Value = world
        .one
        .client
        .post(CONSENT)
        .json(&of_hub)
        .call()
        .await
        .expect(200)
        .data();
    assert!(!world.is_withheld().await);
    let path = format!("{CONSENT}/{}", consent["consentId"]);
    world.other.client.delete(&path).call().await.expect(404);
    world
        .other
        .client
        .get(&format!("{path}/retention"))
        .call()
        .await
        .expect(404);
    let days = json!({"retentionDays": 1});
    world
        .other
        .client
        .put(&format!("{path}/retention"))
        .json(&days)
        .call()
        .await
        .expect(404);
    assert!(!world.is_withheld().await);
    for (name, value, field) in [
        ("version", json!(" "), "version"),
        ("text", json!(""), "text"),
        ("url", json!("ftp://x"), "url"),
        ("purposes", json!([]), "purposes"),
        (
            "purposes",
            json!([{"key": "a b", "title": "A", "required": true}]),
            "purposes[0].key",
        ),
        (
            "purposes",
            json!([{"key": "a", "title": "A", "required": false}]),
            "enforce",
        ),
    ] {
        let mut bad = asked("9");
        bad[name] = value;
        let problem = world
            .tenant
            .client
            .post(SETTINGS)
            .json(&bad)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{bad}");
    }
}

on_each_database!(records_take_a_key_for_the_audit_log);
async fn records_take_a_key_for_the_audit_log(backend: Backend) {
    let world = World::new(backend).await;
    world.ask(&asked("1")).await;
    world.grant("1").await;
    let read = async |scopes: &[&str]| {
        let key = world.tenant.api_key(json!({"scopes": scopes})).await;
        key.client.get("/tenant/consent-records").call().await
    };
    read(&["hubs:read", "hubs:write"]).await.expect(403);
    let records: Vec<Value> = read(&["audit:read"]).await.expect(200).data();
    assert_eq!(records.len(), 1);
}

on_each_database!(retention_ends_with_the_withdrawal);
async fn retention_ends_with_the_withdrawal(backend: Backend) {
    let world = World::new(backend).await;
    world.ask(&asked("1")).await;
    let set = async |consent: &Value, days: i64| {
        let path = format!("{CONSENT}/{}/retention", consent["consentId"]);
        let body = json!({"retentionDays": days});
        world.one.client.put(&path).json(&body).call().await
    };
    let run = async || {
        hub_tests::app::perform(&world.app.app, "retention.consents", Value::Null).await;
    };
    let first = world.grant("1").await;
    set(&first, 1).await.expect(200);
    let withdrawal = format!("{CONSENT}/{}", first["consentId"]);
    world
        .one
        .client
        .delete(&withdrawal)
        .call()
        .await
        .expect(200);
    let refused = set(&first, 1).await.expect(409).problem();
    assert_eq!(refused.code, "CONSENT_WITHDRAWN");

    let second = world.grant("1").await;
    set(&second, 365).await.expect(200);
    world.upload().await;
    let stored = world.stored().await;
    assert!(stored > 0);
    world
        .micros
        .fetch_add(3 * 24 * 3600 * 1_000_000, Ordering::Relaxed);
    run().await;
    assert_eq!(world.stored().await, stored, "the first grant is over");
    world
        .micros
        .fetch_add(363 * 24 * 3600 * 1_000_000, Ordering::Relaxed);
    run().await;
    assert_eq!(world.stored().await, 0);
}

on_each_database!(retention_of_a_user_deletes_events_of_their_hubs_alone);
async fn retention_of_a_user_deletes_events_of_their_hubs_alone(backend: Backend) {
    let world = World::new(backend).await;
    let neighbour = SimulatedHub::claim(&world.tenant).await;
    world.ask(&asked("1")).await;
    let consent = world.grant("1").await;
    neighbour.upload_events(2).await;
    world.upload().await;
    let path = format!("{CONSENT}/{}/retention", consent["consentId"]);
    let first: Value = world.one.client.get(&path).call().await.expect(200).data();
    assert!(first["retentionDays"].is_null(), "{first}");
    for bad in [0, 3651] {
        let body = json!({"retentionDays": bad});
        let problem = world
            .one
            .client
            .put(&path)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, "retentionDays");
    }
    let set: Value = world
        .one
        .client
        .put(&path)
        .json(&json!({"retentionDays": 2}))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&set["retentionDays"], set["effectiveFrom"].is_string()),
        (&json!(2), true)
    );
    let model = make_model(&world.tenant, "Thermometer").await;
    let mut hours = Vec::new();
    for (hub, address) in [
        (&world.hub, "C4:11:7D:DA:71:13"),
        (&neighbour, "C4:11:7D:DA:71:14"),
    ] {
        let made = make_device(&world.tenant, model, json!({"address": address})).await;
        let id = made["deviceInstanceId"].as_i64().expect("an id");
        put_state(
            &world.app,
            &world.tenant,
            id,
            hub.hub_uuid,
            world.app.app.clock.now(),
            &json!({}),
        )
        .await;
        let mut tx = world.app.app.db.begin().await.expect("a transaction");
        sql(
            "INSERT INTO sensor_rollups (device_instance_id, hour, tenant_uuid, first_id, last_id, \
             minutes, quantities, hubs) VALUES ($1, $2, $3, 1, 1, 1, '{}', '{}')",
        )
        .bind((id, NOON / 1_000_000 - 3600, world.tenant.tenant_uuid))
        .run(&mut tx)
        .await
        .expect("a row");
        tx.commit_unaudited("a test").await.expect("a commit");
        hours.push(id);
    }
    let run = async || {
        let kind = "retention.consents";
        let done = hub_tests::app::perform(&world.app.app, kind, Value::Null).await;
        assert_ne!(done, Done::RunAt(world.app.app.clock.now()), "all of it");
    };
    run().await;
    assert_eq!(world.stored().await, 5, "nothing is old yet");
    world
        .micros
        .fetch_add((2 * 24 * 3600 + 1) * 1_000_000, Ordering::Relaxed);
    run().await;
    assert_eq!(world.stored().await, 2, "those of the neighbour");
    let bytes = |app: &TestApp| {
        let (db, tenant_uuid) = (app.app.db.clone(), world.tenant.tenant_uuid);
        async move {
            let mut conn = db.read().await.expect("a connection");
            let bytes: i64 = sql("SELECT CAST(SUM(bytes) AS BIGINT) FROM stored_bytes \
                 WHERE tenant_uuid = $1 AND kind = 'BLE_EVENTS'")
            .bind(tenant_uuid)
            .scalar(&mut conn)
            .await
            .expect("a sum");
            drop(conn);
            (bytes, events::counted_bytes(&db, tenant_uuid).await)
        }
    };
    let (counted, are) = bytes(&world.app).await;
    assert_eq!(counted, are, "the quota is lowered");
    let mut conn = world.app.app.db.read().await.expect("a connection");
    let left: Vec<i64> = sql("SELECT device_instance_id FROM sensor_rollups")
        .scalars(&mut conn)
        .await
        .expect("hours");
    drop(conn);
    assert_eq!(left, hours[1..], "those of the neighbour's device");
    let seen = world
        .one
        .as_platform_admin(&world.app)
        .get(&path)
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(seen["data"]["deletedEvents"], json!(3));
}

on_each_database!(a_withdrawal_has_one_notice);
async fn a_withdrawal_has_one_notice(backend: Backend) {
    let world = World::new(backend).await;
    let body = json!({"type": "CONSENT_WITHDRAWN", "channel": "IN_APP", "enabled": true});
    world
        .tenant
        .client
        .put("/tenant/notification-settings")
        .json(&body)
        .call()
        .await
        .expect(200);
    world.ask(&asked("1")).await;
    let consent = world.grant("1").await;
    let titles = async || {
        let mut conn = world.app.app.db.read().await.expect("a connection");
        let titles: Vec<String> = sql("SELECT title FROM notices \
             WHERE tenant_uuid = $1 AND type = 'CONSENT_WITHDRAWN'")
        .bind(world.tenant.tenant_uuid)
        .scalars(&mut conn)
        .await
        .expect("titles");
        titles
    };
    let scan = async |minutes: i64| {
        for _ in 0..minutes {
            world.micros.fetch_add(60_000_000, Ordering::Relaxed);
            notices::scan(&world.app.app, &[]).await.expect("a scan");
        }
    };
    // A start causes no notice of silence. Access tokens live for 15 minutes.
    scan(10).await;
    assert_eq!(titles().await, Vec::<String>::new());
    world.withdraw(&consent).await;
    scan(20).await;
    let titles = titles().await;
    assert_eq!(titles.len(), 1, "{titles:?}");
    assert!(titles[0].ends_with("withdrew their consent"), "{titles:?}");
}
