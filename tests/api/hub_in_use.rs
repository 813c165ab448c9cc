//! Hardware that is a hub in operation is not taken over: who sees claim codes, and what a claim
//! has to show.

use std::sync::atomic::Ordering;

use hub_identity::authz::permission::Role;
use hub_protocol::claim::HubCredentials;
use hub_tests::{
    Backend, Call, Client, Options, Reply, SimulatedHub, Tenant, TestApp, app, on_each_database,
};
use reqwest::header::HeaderName;
use serde_json::{Value, json};

const CODES: &str = "/tenant/hubs/claim-codes";
/// The claim key of a hub.
const KEY: &str = "0f4c7a52-the-hubs-own";

/// A code as its maker sees it.
async fn make(client: &Client, body: Value) -> Value {
    client
        .post(CODES)
        .json(&body)
        .call()
        .await
        .expect(200)
        .data()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name]
        .as_str()
        .unwrap_or_else(|| panic!("no {name} in {value}"))
}

/// A claim of the hub's hardware, showing `shown` in the body and `key` as the claim key.
async fn claim(
    app: &TestApp,
    hub: &SimulatedHub,
    code: &Value,
    shown: Value,
    key: Option<&str>,
) -> Reply {
    let mut body =
        json!({"claimCode": code["claimCode"], "deviceInstanceId": hub.device_instance_id});
    for (name, value) in shown.as_object().expect("an object") {
        body[name] = value.clone();
    }
    let client = match key {
        Some(key) => app
            .client()
            .header(HeaderName::from_static("idempotency-key"), key),
        None => app.client(),
    };
    client.post("/v1/hubs/claim").json(&body).call().await
}

async fn is_let_in(client: &Client) -> bool {
    client.get("/v1/test").call().await.status == 200
}

on_each_database!(reader_of_claim_codes_cannot_claim_with_what_is_listed);
async fn reader_of_claim_codes_cannot_claim_with_what_is_listed(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let code = make(&tenant.client, json!({"maxUses": 5})).await;
    let (id, full) = (text(&code, "id"), text(&code, "claimCode"));
    let key = async |scopes: &[&str]| tenant.api_key(json!({"scopes": scopes})).await.client;

    let readers = [tenant.member(Role::Viewer).await, key(&["hubs:read"]).await];
    for reader in &readers {
        let reply = reader.get(CODES).call().await.expect(200);
        for spelling in [full.to_owned(), full.replace('-', ""), full.to_lowercase()] {
            assert!(!reply.body.contains(&spelling), "{}", reply.body);
        }
        let listed: Vec<Value> = reply.data();
        let found = listed
            .iter()
            .find(|listed| listed["id"] == id)
            .expect("the code");
        assert_eq!(text(found, "claimCode"), format!("{}-…", &full[..4]));
        for other in found
            .as_object()
            .expect("an object")
            .values()
            .filter(|value| value.is_string())
        {
            // Sent past the search for secrets, since it is none.
            let body = json!({"claimCode": other, "deviceInstanceId": hub.device_instance_id});
            let refused = app
                .client()
                .post("/v1/hubs/claim")
                .json(&body)
                .send()
                .await
                .expect("an answer");
            assert_eq!(refused.status(), 400, "{other}");
        }
        reader
            .delete(&format!("{CODES}/{id}"))
            .call()
            .await
            .expect(403);
    }
    let makers = [
        tenant.member(Role::Editor).await,
        key(&["hubs:read", "hubs:write"]).await,
        tenant.client.clone(),
    ];
    for maker in &makers {
        let listed: Vec<Value> = maker.get(CODES).call().await.expect(200).data();
        assert!(
            listed.iter().any(|listed| listed["claimCode"] == full),
            "{listed:?}"
        );
    }
    let log = tenant
        .client
        .get("/tenant/audit-logs?objectType=claim_code")
        .call()
        .await
        .expect(200);
    assert!(
        log.body.contains(id) && log.body.contains(&format!("{}-…", &full[..4])),
        "{}",
        log.body
    );
    assert!(!log.body.contains(full), "{}", log.body);

    let stranger = Tenant::create(&app.client()).await;
    stranger
        .client
        .delete(&format!("{CODES}/{id}"))
        .call()
        .await
        .expect(404);
    tenant
        .client
        .delete(&format!("{CODES}/{id}"))
        .call()
        .await
        .expect(204);
    tenant
        .client
        .delete(&format!("{CODES}/{full}"))
        .call()
        .await
        .expect(404);
    assert!(is_let_in(&hub.client).await);
}

on_each_database!(hub_in_use_is_claimed_with_its_proof_or_a_code_made_for_that);
async fn hub_in_use_is_claimed_with_its_proof_or_a_code_made_for_that(backend: Backend) {
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
    let code = make(
        &tenant.client,
        json!({"maxUses": 100, "validForSeconds": 100 * 24 * 3600}),
    )
    .await;
    let mut hub = SimulatedHub::claim(&tenant).await;
    // From now on it has a claim key.
    let keyed = make(&tenant.client, json!({})).await;
    let again: HubCredentials = claim(&app, &hub, &keyed, json!({}), Some(KEY))
        .await
        .expect(201)
        .data();
    hub.client = app.client().bearer(&again.access_token);
    hub.credentials = again;

    let attempts = [
        (json!({}), None),
        (json!({}), Some("another-key")),
        (json!({"refreshToken": "guessed"}), None),
        (
            json!({"refreshToken": hub.credentials.access_token[..100]}),
            None,
        ),
        (
            json!({"refreshToken": ""}),
            Some(hub.device_instance_id.as_str()),
        ),
        (json!({"refreshToken": null, "allowReclaim": true}), None),
    ];
    for (shown, key) in attempts {
        let refused = claim(&app, &hub, &code, shown, key)
            .await
            .expect(409)
            .problem();
        assert_eq!(refused.code, "HUB_IN_USE");
        for part in ["allowReclaim", "release", "refresh token"] {
            assert!(refused.message.contains(part), "{}", refused.message);
        }
    }
    assert!(is_let_in(&hub.client).await, "nothing has changed");
    let listed: Vec<Value> = tenant.client.get(CODES).call().await.expect(200).data();
    let unused = listed
        .iter()
        .find(|listed| listed["id"] == code["id"])
        .expect("the code");
    assert_eq!(unused["useCount"], json!(0));

    // The hub itself, by either proof, with any code.
    for by_key in [true, false, true] {
        let shown = match by_key {
            true => json!({}),
            false => json!({"refreshToken": hub.credentials.refresh_token}),
        };
        let reply = claim(&app, &hub, &code, shown, Some(KEY).filter(|_| by_key)).await;
        let again: HubCredentials = reply.expect(201).data();
        assert_eq!(again.hub_uuid, hub.hub_uuid);
        assert!(!is_let_in(&hub.client).await);
        hub.client = app.client().bearer(&again.access_token);
        hub.credentials = again;
        if !by_key {
            let refused = claim(&app, &hub, &code, json!({}), Some(KEY))
                .await
                .expect(409);
            assert_eq!(
                refused.problem().code,
                "HUB_IN_USE",
                "the last claim showed no key"
            );
            let keyed = make(&tenant.client, json!({})).await;
            let reply = claim(&app, &hub, &keyed, json!({}), Some(KEY)).await;
            hub.credentials = reply.expect(201).data();
            hub.client = app.client().bearer(&hub.credentials.access_token);
        }
    }

    // Hardware that was reinstalled and has lost everything.
    let reclaim = make(&tenant.client, json!({"maxUses": 2, "allowReclaim": true})).await;
    hub.credentials = claim(&app, &hub, &reclaim, json!({}), None)
        .await
        .expect(201)
        .data();
    let log = tenant
        .client
        .get("/tenant/audit-logs?action=hub.claim&size=1")
        .call()
        .await
        .expect(200)
        .json();
    let detail = &log["data"]["content"][0]["detail"];
    assert_eq!(
        (&detail["inUse"], &detail["proof"]),
        (&json!(true), &Value::Null),
        "{log}"
    );

    // A block ends the credentials, and no proof undoes it.
    let admin = tenant.owner.as_platform_admin(&app);
    admin
        .post(&format!("/platform/hubs/{}/block", hub.hub_uuid))
        .call()
        .await
        .expect(200);
    let shown = json!({"refreshToken": hub.credentials.refresh_token});
    claim(&app, &hub, &code, shown, None).await.expect(423);
    claim(&app, &hub, &reclaim, json!({}), None)
        .await
        .expect(423);
    admin
        .post(&format!("/platform/hubs/{}/unblock", hub.hub_uuid))
        .call()
        .await
        .expect(200);
    claim(&app, &hub, &code, json!({}), None).await.expect(201);

    // Credentials that nobody has used for a month have ended.
    claim(&app, &hub, &code, json!({}), None).await.expect(409);
    micros.fetch_add(30 * 24 * 3600 * 1_000_000, Ordering::Relaxed);
    claim(&app, &hub, &code, json!({}), None).await.expect(201);
}

on_each_database!(access_token_that_outlives_the_refresh_token_is_in_force);
async fn access_token_that_outlives_the_refresh_token_is_in_force(backend: Backend) {
    let (clock, micros) = app::set_clock("2026-03-01T12:00:00Z".parse().expect("a time"));
    let mut options = Options {
        clock: Some(clock),
        ..Options::default()
    };
    options.settings.hub_token_lifetime = Some("2d".to_owned());
    options.settings.hub_refresh_lifetime = Some("1d".to_owned());
    let app = TestApp::with(backend, options).await;
    let tenant = Tenant::create(&app.client()).await;
    let code = make(&tenant.client, json!({"maxUses": 9})).await;
    let hub = SimulatedHub::claim(&tenant).await;
    micros.fetch_add(36 * 3600 * 1_000_000, Ordering::Relaxed);
    assert!(is_let_in(&hub.client).await);
    assert_eq!(
        claim(&app, &hub, &code, json!({}), None)
            .await
            .expect(409)
            .problem()
            .code,
        "HUB_IN_USE"
    );
    micros.fetch_add(12 * 3600 * 1_000_000, Ordering::Relaxed);
    assert!(!is_let_in(&hub.client).await);
    claim(&app, &hub, &code, json!({}), None).await.expect(201);
}

on_each_database!(only_operators_make_codes_that_end_credentials);
async fn only_operators_make_codes_that_end_credentials(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let editor = tenant.member(Role::Editor).await;
    let operator = tenant.member(Role::Operator).await;
    let key = tenant
        .api_key(json!({"scopes": ["hubs:write"]}))
        .await
        .client;
    for (client, body, expected) in [
        (&operator, json!({}), true),
        (&operator, json!({"maxUses": 1, "allowReclaim": null}), true),
        (&operator, json!({"maxUses": 2}), false),
        (&operator, json!({"maxUses": 2, "allowReclaim": true}), true),
        (&operator, json!({"allowReclaim": false}), false),
        (&key, json!({}), true),
        (&editor, json!({}), false),
        (&editor, json!({"allowReclaim": false}), false),
    ] {
        let made = make(client, body.clone()).await;
        assert_eq!(made["allowReclaim"], json!(expected), "{body}");
    }
    let refused = editor
        .post(CODES)
        .json(&json!({"allowReclaim": true}))
        .call()
        .await
        .expect(403)
        .problem();
    assert_eq!(refused.code, "PERMISSION_DENIED");
    assert!(refused.message.contains("OPERATE"), "{}", refused.message);

    // An editor's code makes hubs, and takes none over.
    let hub = SimulatedHub::claim(&tenant).await;
    let code = make(&editor, json!({})).await;
    claim(&app, &hub, &code, json!({}), None).await.expect(409);
    SimulatedHub::claim_with(&app.client(), text(&code, "claimCode"), "new hardware").await;
}

on_each_database!(a_refused_claim_leaves_a_trace_that_says_why);
async fn a_refused_claim_leaves_a_trace_that_says_why(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let code = make(&tenant.client, json!({"maxUses": 100})).await;
    // A copy of the image on another machine, again and again.
    for _ in 0..3 {
        let reply = claim(&app, &hub, &code, json!({"hostname": "copy"}), None).await;
        assert_eq!(reply.expect(409).problem().code, "HUB_IN_USE");
    }
    // Nobody learns anything from codes that do not exist, nor writes anything.
    let unknown = json!({"claimCode": "0000-0000-0000-0000"});
    claim(&app, &hub, &unknown, json!({}), None)
        .await
        .expect(400);
    let page: Value = tenant
        .client
        .get("/tenant/audit-logs?action=hub.claim_refused")
        .call()
        .await
        .expect(200)
        .data();
    let [entry] = page["content"]
        .as_array()
        .map_or(&[] as &[Value], Vec::as_slice)
    else {
        panic!("{page}")
    };
    let detail = &entry["detail"];
    assert_eq!(detail["code"], "HUB_IN_USE");
    assert_eq!(detail["deviceInstanceId"], hub.device_instance_id);
    assert_eq!(detail["hostname"], "copy");
    assert!(
        detail["message"]
            .as_str()
            .is_some_and(|text| text.contains("allowReclaim"))
    );
}
