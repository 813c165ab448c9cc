//! Claim codes, and how a hub becomes a tenant's own with one.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use hub_identity::authz::permission::Role;
use hub_protocol::Timestamp;
use hub_protocol::claim::HubCredentials;
use hub_tests::{
    Backend, Call, Client, Options, Reply, SimulatedHub, Tenant, TestApp, app, on_each_database,
};
use reqwest::header::HeaderName;
use serde_json::{Value, json};

const CODES: &str = "/tenant/hubs/claim-codes";

async fn make(tenant: &Tenant, body: Value) -> Value {
    tenant
        .client
        .post(CODES)
        .json(&body)
        .call()
        .await
        .expect(200)
        .data()
}

async fn codes(tenant: &Tenant) -> Vec<Value> {
    tenant.client.get(CODES).call().await.expect(200).data()
}

async fn claim(client: &Client, code: &str, device_instance_id: &str) -> Reply {
    let body = json!({"claimCode": code, "deviceInstanceId": device_instance_id});
    client.post("/v1/hubs/claim").json(&body).call().await
}

/// As a hub does it: again when the service is busy. Two thousand at once are more than it lets
/// wait where the machine does other work too.
async fn claim_in_turn(client: &Client, code: &str, device_instance_id: &str) -> Reply {
    loop {
        let reply = claim(client, code, device_instance_id).await;
        if reply.status != 503 {
            return reply;
        }
        assert!(
            reply.header("retry-after").parse::<u64>().is_ok(),
            "{reply:?}"
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn uses(tenant: &Tenant, code: &str) -> Value {
    let listed = codes(tenant).await;
    let found = listed.iter().find(|listed| listed["claimCode"] == code);
    found.unwrap_or_else(|| panic!("no {code} in {listed:?}"))["useCount"].clone()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name]
        .as_str()
        .unwrap_or_else(|| panic!("no {name} in {value}"))
}

on_each_database!(concurrent_claims_succeed_as_often_as_the_code_has_uses);
/// Two thousand hubs, one code for a thousand of them.
async fn concurrent_claims_succeed_as_often_as_the_code_has_uses(backend: Backend) {
    const HUBS: usize = 2000;
    const USES: u32 = 1000;
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let code = tenant.claim_code_for(USES).await;
    let anyone = app.client();
    let names: Vec<String> = (0..HUBS).map(|hub| format!("hub-{hub}")).collect();
    let replies = join_all(names.iter().map(|name| claim_in_turn(&anyone, &code, name))).await;
    let (won, lost): (Vec<_>, Vec<_>) = replies.into_iter().partition(|reply| reply.status == 201);
    let hubs: BTreeSet<_> = won
        .iter()
        .map(|reply| reply.data::<HubCredentials>().hub_uuid)
        .collect();
    assert_eq!((won.len(), hubs.len()), (USES as usize, USES as usize));
    for reply in lost {
        assert_eq!(reply.expect(400).problem().code, "CLAIM_CODE_USED_UP");
    }
    let code = &codes(&tenant).await[0];
    assert_eq!(
        (text(code, "status"), &code["useCount"]),
        ("USED", &json!(USES))
    );
    let listed = tenant
        .client
        .get("/tenant/hubs?size=1")
        .call()
        .await
        .expect(200);
    assert_eq!(listed.header("x-total-count"), USES.to_string());
}

on_each_database!(concurrent_claims_of_one_device_create_one_hub);
async fn concurrent_claims_of_one_device_create_one_hub(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let made = make(&tenant, json!({"maxUses": 30, "allowReclaim": true})).await;
    let code = text(&made, "claimCode").to_owned();
    let anyone = app.client();
    let replies = join_all((0..30).map(|_| claim(&anyone, &code, "one"))).await;
    let credentials: Vec<HubCredentials> = replies
        .into_iter()
        .map(|reply| reply.expect(201).data())
        .collect();
    let hubs: BTreeSet<_> = credentials
        .iter()
        .map(|credentials| credentials.hub_uuid)
        .collect();
    assert_eq!(hubs.len(), 1);
    let tests = credentials
        .iter()
        .map(|held| anyone.bearer(&held.access_token).get("/v1/test").call());
    let let_in = join_all(tests)
        .await
        .into_iter()
        .filter(|reply| reply.status == 200)
        .count();
    assert_eq!(let_in, 1, "a hub has one token");
}

on_each_database!(reclaimed_hub_keeps_its_uuid_and_gets_new_credentials);
async fn reclaimed_hub_keeps_its_uuid_and_gets_new_credentials(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let first = SimulatedHub::claim(&tenant).await;
    let code = make(
        &tenant,
        json!({"maxUses": 2, "hubIdentifier": "Gate 7", "allowReclaim": true}),
    )
    .await;
    let body = json!({
        "claimCode": code["claimCode"], "deviceInstanceId": first.device_instance_id, "hubIdentifier": "its own",
        "agentVersion": "1.2.3", "hostname": "gw", "os": {"name": "debian", "arch": "aarch64"}, "unknown": [1],
    });
    let again: HubCredentials = app
        .client()
        .post("/v1/hubs/claim")
        .json(&body)
        .call()
        .await
        .expect(201)
        .data();
    assert_eq!(
        (again.hub_uuid, again.tenant_uuid),
        (first.hub_uuid, tenant.tenant_uuid)
    );
    first.client.get("/v1/test").call().await.expect(401);
    let old = json!({"refreshToken": first.credentials.refresh_token});
    app.client()
        .bearer(&again.access_token)
        .post("/v1/hubs/refresh")
        .json(&old)
        .call()
        .await
        .expect(401);
    app.client()
        .bearer(&again.access_token)
        .get("/v1/test")
        .call()
        .await
        .expect(200);

    // What a later claim leaves out stays; a label is not taken from the hub once it has one.
    let body = json!({"claimCode": code["claimCode"], "deviceInstanceId": 12, "hubIdentifier": "its own", "hostname": " "});
    let other: HubCredentials = app
        .client()
        .post("/v1/hubs/claim")
        .json(&body)
        .call()
        .await
        .expect(201)
        .data();
    let plain = tenant.claim_code().await;
    claim(&app.client(), &plain, &first.device_instance_id)
        .await
        .expect(201);
    let hub = tenant
        .client
        .get(&format!("/tenant/hubs/{}", first.hub_uuid))
        .call()
        .await
        .expect(200)
        .json();
    let hub = &hub["data"];
    assert_eq!(text(hub, "hubIdentifier"), "Gate 7");
    assert_eq!(text(hub, "agentVersion"), "1.2.3");
    assert_eq!(hub["os"], json!({"name": "debian", "arch": "aarch64"}));
    let hub = tenant
        .client
        .get(&format!("/tenant/hubs/{}", other.hub_uuid))
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(
        text(&hub["data"], "deviceInstanceId"),
        "12",
        "a number is read as its digits"
    );
    assert_eq!(hub["data"]["hostname"], Value::Null);
}

on_each_database!(refused_claim_gives_the_reason_and_leaves_the_code_unused);
async fn refused_claim_gives_the_reason_and_leaves_the_code_unused(backend: Backend) {
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
    let stranger = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let anyone = app.client();
    let refused = async |code: &str, hardware: &str, status: u16| {
        claim(&anyone, code, hardware)
            .await
            .expect(status)
            .problem()
            .code
    };

    assert_eq!(
        refused("0000-0000-0000-0000", "new", 400).await,
        "CLAIM_CODE_UNKNOWN"
    );

    let foreign = stranger.claim_code().await;
    assert_eq!(
        refused(&foreign, &hub.device_instance_id, 409).await,
        "HUB_OF_OTHER_TENANT"
    );
    assert_eq!(uses(&stranger, &foreign).await, json!(0));

    let admin = tenant.owner.as_platform_admin(&app);
    admin
        .post(&format!("/platform/hubs/{}/block", hub.hub_uuid))
        .call()
        .await
        .expect(200);
    let own = tenant.claim_code().await;
    assert_eq!(
        refused(&own, &hub.device_instance_id, 423).await,
        "HUB_BLOCKED"
    );
    assert_eq!(uses(&tenant, &own).await, json!(0));
    assert_eq!(
        refused(&foreign, &hub.device_instance_id, 409).await,
        "HUB_OF_OTHER_TENANT",
        "blocked or not"
    );

    let brief = text(
        &make(&tenant, json!({"validForSeconds": 60})).await,
        "claimCode",
    )
    .to_owned();
    micros.fetch_add(60_000_000, Ordering::Relaxed);
    let expired = claim(&anyone, &brief, "new").await.expect(400).problem();
    assert_eq!(expired.code, "CLAIM_CODE_EXPIRED");
    assert!(expired.message.contains("expired"), "{}", expired.message);

    let two = text(&make(&tenant, json!({"maxUses": 2})).await, "claimCode").to_owned();
    claim(&anyone, &two, "one of two").await.expect(201);
    tenant
        .client
        .delete(&format!("{CODES}/{two}"))
        .call()
        .await
        .expect(204);
    assert_eq!(refused(&two, "the other", 400).await, "CLAIM_CODE_REVOKED");

    let listed = tenant.client.get("/tenant/hubs").call().await.expect(200);
    assert_eq!(
        listed.header("x-total-count"),
        "2",
        "who was refused is no hub"
    );
}

on_each_database!(repeated_claim_with_its_idempotency_key_gets_the_same_answer);
async fn repeated_claim_with_its_idempotency_key_gets_the_same_answer(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let code = tenant.claim_code().await;
    let keyed = async |key: &str, code: &str, hardware: &str| {
        let client = app
            .client()
            .header(HeaderName::from_static("idempotency-key"), key);
        claim(&client, code, hardware).await
    };
    // Several on their way at once, as when a hub gives up on one and tries again.
    let replies = join_all((0..5).map(|_| keyed("k1", &code, "a"))).await;
    let hubs: BTreeSet<_> = replies
        .into_iter()
        .map(|reply| reply.expect(201).data::<HubCredentials>().hub_uuid)
        .collect();
    assert_eq!(hubs.len(), 1);
    let again: HubCredentials = keyed("k1", &code, "a").await.expect(201).data();
    app.client()
        .bearer(&again.access_token)
        .get("/v1/test")
        .call()
        .await
        .expect(200);
    assert_eq!(uses(&tenant, &code).await, json!(1));

    for (key, hardware) in [("k2", "a"), ("k1", "b")] {
        let refused = keyed(key, &code, hardware).await.expect(400).problem();
        assert_eq!(refused.code, "CLAIM_CODE_USED_UP", "{key} {hardware}");
    }
    claim(&app.client(), &code, "a").await.expect(400);
    assert_eq!(
        keyed("a b", &code, "a").await.expect(400).problem().errors[0].field,
        "Idempotency-Key"
    );

    let admin = tenant.owner.as_platform_admin(&app);
    for what in ["block", "unblock"] {
        admin
            .post(&format!("/platform/hubs/{}/{what}", again.hub_uuid))
            .call()
            .await
            .expect(200);
    }
    keyed("k1", &code, "a").await.expect(400);
    let fresh = tenant.claim_code().await;
    keyed("k1", &fresh, "a").await.expect(201);
    tenant
        .client
        .delete(&format!("{CODES}/{fresh}"))
        .call()
        .await
        .expect(204);
    assert_eq!(
        keyed("k1", &fresh, "a").await.expect(400).problem().code,
        "CLAIM_CODE_REVOKED"
    );
}

on_each_database!(claim_code_is_accepted_in_any_spelling);
async fn claim_code_is_accepted_in_any_spelling(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let code = tenant.claim_code_for(3).await;
    let groups: Vec<&str> = code.split('-').collect();
    assert!(
        groups.len() == 4 && groups.iter().all(|group| group.len() == 4),
        "{code}"
    );
    claim(&app.client(), &code.to_lowercase(), "a")
        .await
        .expect(201);
    claim(&app.client(), &code.replace('-', ""), "b")
        .await
        .expect(201);
    claim(
        &app.client(),
        &format!(" {}", code.replace('0', "O").replace('1', "l")),
        "c",
    )
    .await
    .expect(201);
    tenant
        .client
        .delete(&format!("{CODES}/{}", code.replace('-', "").to_lowercase()))
        .call()
        .await
        .expect(204);
    assert_eq!(text(&codes(&tenant).await[0], "status"), "REVOKED");
}

on_each_database!(claim_code_status_follows_its_order_of_precedence);
async fn claim_code_status_follows_its_order_of_precedence(backend: Backend) {
    let start: Timestamp = "2026-03-01T12:00:00Z".parse().expect("a time");
    let (clock, micros) = app::set_clock(start);
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let tick = || micros.fetch_add(1_000_000, Ordering::Relaxed);
    let pending = make(&tenant, json!({})).await;
    assert_eq!(pending["expiresAt"], json!(start.plus_secs(7 * 24 * 3600)));
    assert_eq!(
        (&pending["maxUses"], &pending["useCount"], &pending["note"]),
        (&json!(1), &json!(0), &Value::Null)
    );
    tick();
    let until = start.plus_secs(100);
    let made = tenant
        .client
        .post("/tenant/supplier-bundles")
        .json(&json!({"name": "Hall"}))
        .call()
        .await
        .expect(200);
    let bundle = made.data::<Value>()["bundleUuid"].clone();
    let expiring = make(
        &tenant,
        json!({"expiresAt": until, "note": " a\nb ", "bundleUuid": bundle}),
    )
    .await;
    assert_eq!(
        (&expiring["expiresAt"], &expiring["note"]),
        (&json!(until), &json!("a\nb"))
    );
    assert_eq!(expiring["bundleUuid"], json!(bundle));
    tick();
    let used = make(&tenant, json!({"validForSeconds": 10})).await;
    claim(&app.client(), text(&used, "claimCode"), "a")
        .await
        .expect(201);
    tick();
    let revoked = make(&tenant, json!({"validForSeconds": 10})).await;
    claim(&app.client(), text(&revoked, "claimCode"), "b")
        .await
        .expect(201);
    for _ in 0..2 {
        tenant
            .client
            .delete(&format!("{CODES}/{}", text(&revoked, "claimCode")))
            .call()
            .await
            .expect(204);
    }
    tick();
    let removed = make(&tenant, json!({})).await;
    tenant
        .client
        .delete(&format!("{CODES}/{}", text(&removed, "claimCode")))
        .call()
        .await
        .expect(204);
    tenant
        .client
        .delete(&format!("{CODES}/{}", text(&removed, "claimCode")))
        .call()
        .await
        .expect(404);

    micros.store(until.as_micros(), Ordering::Relaxed);
    let listed: Vec<_> = codes(&tenant)
        .await
        .iter()
        .map(|code| (code["claimCode"].clone(), text(code, "status").to_owned()))
        .collect();
    let expected = [
        (&revoked, "REVOKED"),
        (&used, "USED"),
        (&expiring, "EXPIRED"),
        (&pending, "PENDING"),
    ]
    .map(|(code, status)| (code["claimCode"].clone(), status.to_owned()));
    assert_eq!(listed, expected, "newest first");

    let page = tenant
        .client
        .get(&format!("{CODES}?page=2&size=3"))
        .call()
        .await
        .expect(200);
    assert_eq!(page.data::<Vec<Value>>().len(), 1);
    assert_eq!(page.header("x-total-count"), "4");
}

on_each_database!(claim_codes_are_visible_to_permitted_members_only);
async fn claim_codes_are_visible_to_permitted_members_only(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let stranger = Tenant::create(&app.client()).await;
    let code = tenant.claim_code().await;
    assert!(codes(&stranger).await.is_empty());
    stranger
        .client
        .delete(&format!("{CODES}/{code}"))
        .call()
        .await
        .expect(404);
    let viewer = tenant.member(Role::Viewer).await;
    viewer.get(CODES).call().await.expect(200);
    viewer.post(CODES).json(&json!({})).call().await.expect(403);
    viewer
        .delete(&format!("{CODES}/{code}"))
        .call()
        .await
        .expect(403);
    for path in ["no-code", "0000-0000-0000-0000", "%00"] {
        tenant
            .client
            .delete(&format!("{CODES}/{path}"))
            .call()
            .await
            .expect(404);
    }
    assert_eq!(text(&codes(&tenant).await[0], "status"), "PENDING");
}

on_each_database!(invalid_field_of_a_claim_code_is_refused_by_name);
async fn invalid_field_of_a_claim_code_is_refused_by_name(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    for (field, body) in [
        ("maxUses", json!({"maxUses": 0})),
        ("maxUses", json!({"maxUses": -1})),
        ("maxUses", json!({"maxUses": 100_001})),
        ("maxUses", json!({"maxUses": 1.5})),
        ("maxUses", json!({"maxUses": 1e300})),
        ("maxUses", json!({"maxUses": "1"})),
        ("validForSeconds", json!({"validForSeconds": 0})),
        ("validForSeconds", json!({"validForSeconds": i64::MAX})),
        ("validForSeconds", json!({"validForSeconds": u64::MAX})),
        (
            "validForSeconds",
            json!({"validForSeconds": 60, "expiresAt": "2099-01-01T00:00:00Z"}),
        ),
        ("expiresAt", json!({"expiresAt": "2000-01-01T00:00:00Z"})),
        ("expiresAt", json!({"expiresAt": "9999-01-01T00:00:00Z"})),
        ("expiresAt", json!({"expiresAt": "tomorrow"})),
        ("expiresAt", json!({"expiresAt": 12})),
        ("bundleUuid", json!({"bundleUuid": "x"})),
        ("bundleUuid", json!({"bundleUuid": uuid::Uuid::new_v4()})),
        ("ownerUserUuid", json!({"ownerUserUuid": 1})),
        (
            "ownerUserUuid",
            json!({"ownerUserUuid": uuid::Uuid::new_v4()}),
        ),
        ("hubIdentifier", json!({"hubIdentifier": "x".repeat(201)})),
        ("hubIdentifier", json!({"hubIdentifier": "a\nb"})),
        ("note", json!({"note": "x".repeat(1001)})),
        ("note", json!({"note": "a\u{0}b"})),
        ("allowReclaim", json!({"allowReclaim": "yes"})),
    ] {
        let problem = tenant
            .client
            .post(CODES)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{body}");
    }
    assert!(codes(&tenant).await.is_empty());
}

on_each_database!(invalid_field_of_a_claim_is_refused_by_name);
async fn invalid_field_of_a_claim_is_refused_by_name(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let code = tenant.claim_code().await;
    let long = "x".repeat(300);
    for (field, change) in [
        ("claimCode", json!({"claimCode": null})),
        ("claimCode", json!({"claimCode": 1})),
        ("claimCode", json!({"claimCode": ""})),
        ("claimCode", json!({"claimCode": "7K3M-9QXT-0V4B-HD2U"})),
        ("claimCode", json!({"claimCode": long})),
        ("deviceInstanceId", json!({"deviceInstanceId": ""})),
        ("deviceInstanceId", json!({"deviceInstanceId": " "})),
        ("deviceInstanceId", json!({"deviceInstanceId": long})),
        ("deviceInstanceId", json!({"deviceInstanceId": "a\u{0}b"})),
        ("deviceInstanceId", json!({"deviceInstanceId": 1.5})),
        ("deviceInstanceId", json!({"deviceInstanceId": 1e30})),
        ("deviceInstanceId", json!({"deviceInstanceId": ["a"]})),
        ("hubIdentifier", json!({"hubIdentifier": long})),
        ("agentVersion", json!({"agentVersion": "\u{7}"})),
        ("hostname", json!({"hostname": long})),
        ("refreshToken", json!({"refreshToken": long})),
        ("refreshToken", json!({"refreshToken": 1})),
        ("os", json!({"os": "debian"})),
        ("os.name", json!({"os": {"name": long}})),
        ("os.arch", json!({"os": {"arch": 64}})),
    ] {
        let mut body = json!({"claimCode": code, "deviceInstanceId": "a"});
        for (name, value) in change.as_object().expect("an object") {
            body[name] = value.clone();
        }
        let problem = app
            .client()
            .post("/v1/hubs/claim")
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{body}");
    }
    let missing = app
        .client()
        .post("/v1/hubs/claim")
        .json(&json!({"claimCode": code}))
        .call()
        .await;
    assert_eq!(
        missing.expect(400).problem().errors[0].field,
        "deviceInstanceId"
    );
    claim(&app.client(), &code, "a").await.expect(201);
}
