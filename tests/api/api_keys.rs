//! API keys: made, listed, changed and ended by people, used by back-ends.

use hub_base::db::sql;
use hub_identity::authz::permission::Role;
use hub_tests::{
    ApiKey, Backend, Call, Client, Options, SimulatedHub, Tenant, TestApp, app, on_each_database,
};
use reqwest::header::HeaderName;
use serde_json::{Value, json};

const KEYS: &str = "/tenant/api-keys";

fn path_of(key: &ApiKey) -> String {
    format!("{KEYS}/{}", key.api_key_id)
}

async fn create(tenant: &Tenant, body: Value) -> Value {
    tenant
        .client
        .post(KEYS)
        .json(&body)
        .call()
        .await
        .expect(201)
        .json()["data"]
        .clone()
}

async fn list(tenant: &Tenant) -> Vec<Value> {
    tenant.client.get(KEYS).call().await.expect(200).data()
}

on_each_database!(key_is_shown_once_and_its_secret_is_not_stored);
async fn key_is_shown_once_and_its_secret_is_not_stored(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    assert!(list(&tenant).await.is_empty());
    let first = create(
        &tenant,
        json!({"name": " ERP \u{1f511} ", "scopes": ["hubs:read", "catalog:*", "hubs:read"]}),
    )
    .await;
    assert_eq!(first["name"], "ERP \u{1f511}");
    assert_eq!(
        first["scopes"],
        json!(["hubs:read", "catalog:*"]),
        "each once"
    );
    assert_eq!(
        (&first["rateLimitPerMinute"], &first["active"]),
        (&json!(600), &json!(true))
    );
    assert_eq!(
        (&first["expiresAt"], &first["lastUsedAt"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(first["createdBy"], json!(tenant.owner.login.user_uuid));
    let raw = first["apiKey"].as_str().expect("a key");
    let parts: Vec<&str> = raw.split('_').collect();
    assert_eq!(
        (parts.len(), parts[0], parts[1].len(), parts[2].len()),
        (3, "hmk", 8, 32)
    );
    assert_eq!(first["keyPrefix"], json!(format!("hmk_{}", parts[1])));

    let body =
        json!({"name": "2", "scopes": ["*"], "rateLimitPerMinute": 100_000, "validForSeconds": 60});
    let second = create(&tenant, body).await;
    assert!(second["expiresAt"].is_string());
    let listed = list(&tenant).await;
    let names: Vec<&Value> = listed.iter().map(|key| &key["name"]).collect();
    assert_eq!(names, ["2", "ERP \u{1f511}"], "newest first");
    let text = serde_json::to_string(&listed).expect("JSON");
    assert!(
        !text.contains("apiKey\"")
            && !text.contains(parts[2])
            && !text.to_lowercase().contains("hash"),
        "{text}"
    );

    // Neither the database nor the audit log holds it.
    let mut conn = app.app.db.read().await.expect("a connection");
    for query in [
        "SELECT key_prefix || name || scopes FROM api_keys",
        "SELECT COALESCE(CAST(before_state AS TEXT), '') \
         || COALESCE(CAST(after_state AS TEXT), '') || CAST(detail AS TEXT) FROM audit_logs",
    ] {
        let rows: Vec<(String,)> = sql(query).all(&mut conn).await.expect("rows");
        assert!(
            !rows.is_empty() && rows.iter().all(|(row,)| !row.contains(parts[2])),
            "{rows:?}"
        );
    }
    let (hash,): (Vec<u8>,) = sql("SELECT secret_hash FROM api_keys ORDER BY api_key_id LIMIT 1")
        .one(&mut conn)
        .await
        .expect("a row");
    assert_eq!(hash.len(), 32);
}

on_each_database!(invalid_field_is_refused_by_name);
async fn invalid_field_is_refused_by_name(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let key = tenant.api_key(json!({"scopes": ["*"]})).await;
    let good = json!({"name": "x", "scopes": ["hubs:read"]});
    let long = "x".repeat(101);
    for (field, value) in [
        ("name", json!(null)),
        ("name", json!("")),
        ("name", json!("  ")),
        ("name", json!(7)),
        ("name", json!(long)),
        ("name", json!("a\u{0}b")),
        ("name", json!("a\nb")),
        ("scopes", json!(null)),
        ("scopes", json!([])),
        ("scopes", json!(["hubs:fly"])),
        ("scopes", json!(["hubs:read", "people:read"])),
        ("scopes", json!(["hubs:read hubs:write"])),
        ("scopes", json!(["'; DROP TABLE api_keys; --"])),
        ("scopes", json!("hubs:read")),
        ("scopes[1]", json!(["hubs:read", 7])),
        ("rateLimitPerMinute", json!(0)),
        ("rateLimitPerMinute", json!(-1)),
        ("rateLimitPerMinute", json!(100_001)),
        ("rateLimitPerMinute", json!(1.5)),
        ("rateLimitPerMinute", json!("600")),
        ("expiresAt", json!("2020-01-01T00:00:00Z")),
        ("expiresAt", json!("9999-01-01T00:00:00Z")),
        ("expiresAt", json!("tomorrow")),
        ("validForSeconds", json!(0)),
        ("validForSeconds", json!(i64::MAX)),
        ("validForSeconds", json!(-5)),
    ] {
        let member = field.split('[').next().expect("a name");
        let mut body = good.clone();
        body[member] = value.clone();
        let problem = tenant
            .client
            .post(KEYS)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{body}");
        if ["name", "scopes", "rateLimitPerMinute"].contains(&member) && !value.is_null() {
            let problem = tenant
                .client
                .put(&path_of(&key))
                .json(&json!({member: value}))
                .call()
                .await
                .expect(400)
                .problem();
            assert_eq!(problem.errors[0].field, field, "PUT {body}");
        }
    }
    let both = json!({"name": "x", "scopes": ["*"], "validForSeconds": 5, "expiresAt": "2099-01-01T00:00:00Z"});
    let problem = tenant
        .client
        .post(KEYS)
        .json(&both)
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(problem.errors[0].field, "validForSeconds");
    let all_wrong = json!({"name": "", "scopes": ["x"], "rateLimitPerMinute": 0});
    let problem = tenant
        .client
        .post(KEYS)
        .json(&all_wrong)
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(
        problem
            .errors
            .iter()
            .map(|error| error.field.as_str())
            .collect::<Vec<_>>(),
        ["name", "scopes", "rateLimitPerMinute"]
    );
    for id in ["x", "1.5", "99999999999999999999"] {
        let problem = tenant
            .client
            .delete(&format!("{KEYS}/{id}"))
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, "apiKeyId");
    }
    for id in ["0", "-1", "9223372036854775807"] {
        tenant
            .client
            .delete(&format!("{KEYS}/{id}"))
            .call()
            .await
            .expect(404);
        tenant
            .client
            .put(&format!("{KEYS}/{id}"))
            .json(&json!({"name": "x"}))
            .call()
            .await
            .expect(404);
    }
    assert_eq!(list(&tenant).await.len(), 1, "nothing was made");
}

on_each_database!(invalid_keys_all_get_the_same_refusal);
async fn invalid_keys_all_get_the_same_refusal(backend: Backend) {
    let (clock, micros) = app::set_clock(hub_base::clock::Clock::System.now());
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let other = Tenant::create(&app.client()).await;
    let key = tenant
        .api_key(json!({"scopes": ["*"], "validForSeconds": 30}))
        .await;
    key.client.get("/tenant/hubs").call().await.expect(200);
    let header = HeaderName::from_static("x-api-key");
    let id_of_other = other.api_key(json!({"scopes": ["*"]})).await.raw[4..12].to_owned();
    let secret = &key.raw[13..];
    let flipped = if secret.starts_with('a') { 'b' } else { 'a' };
    for wrong in [
        "".to_owned(),
        "x".to_owned(),
        key.raw.to_uppercase(),
        format!("{}x", key.raw),
        key.raw[..key.raw.len() - 1].to_owned(),
        format!("hmk_{id_of_other}_{secret}"),
        format!("{}{flipped}{}", &key.raw[..13], &secret[1..]),
        format!("Bearer {}", key.raw),
        "hmk_' OR 1=1_00000000000000000000000000000000".to_owned(),
        "hmk_".to_owned() + &"é".repeat(30),
    ] {
        // A good token beside it does not help.
        let Ok(value) = reqwest::header::HeaderValue::from_bytes(wrong.as_bytes()) else {
            continue;
        };
        let mut client = tenant.client.clone();
        client.headers.insert(header.clone(), value);
        let problem = client
            .get("/tenant/hubs")
            .call()
            .await
            .expect(401)
            .problem();
        assert_eq!(problem.code, "INVALID_API_KEY", "{wrong}");
    }
    // Two keys are none, whichever comes first.
    for pair in [[key.raw.as_str(), "x"], ["x", key.raw.as_str()]] {
        let mut client = app.client().tenant(tenant.tenant_uuid);
        for value in pair {
            client
                .headers
                .append(header.clone(), value.parse().expect("a header value"));
        }
        client.get("/tenant/hubs").call().await.expect(401);
    }
    // No tenant, another tenant, two tenants.
    let bare = app.client().header(header.clone(), &key.raw);
    assert_eq!(
        bare.get("/tenant/hubs")
            .call()
            .await
            .expect(403)
            .problem()
            .code,
        "TENANT_REQUIRED"
    );
    let foreign = bare
        .tenant(other.tenant_uuid)
        .get("/tenant/hubs")
        .call()
        .await
        .expect(403)
        .problem();
    assert_eq!(foreign.code, "TENANT_NOT_ACCESSIBLE");
    let contradicting = format!("/tenant/hubs?tenantUuid={}", other.tenant_uuid);
    key.client.get(&contradicting).call().await.expect(403);
    // Keys make no keys, also those that may do all.
    assert_eq!(
        key.client.get(KEYS).call().await.expect(403).problem().code,
        "PERSON_REQUIRED"
    );
    key.client
        .post(KEYS)
        .json(&json!({"name": "x", "scopes": ["*"]}))
        .call()
        .await
        .expect(403);
    // Its time is over.
    micros.fetch_add(30_000_000, std::sync::atomic::Ordering::Relaxed);
    key.client.get("/tenant/hubs").call().await.expect(401);
    assert!(list(&tenant).await.is_empty(), "it is not active any more");
    let problem = tenant
        .client
        .put(&path_of(&key))
        .json(&json!({"name": "x"}))
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(problem.code, "API_KEY_INACTIVE");
}

on_each_database!(key_change_applies_to_the_next_request_on_every_replica);
async fn key_change_applies_to_the_next_request_on_every_replica(backend: Backend) {
    let app = TestApp::new(backend).await;
    let replica = TestApp::replica_of(&app, Options::default()).await;
    let tenant = Tenant::create(&app.client()).await;
    for _ in 0..5 {
        let key = tenant.api_key(json!({"scopes": ["hubs:read"]})).await;
        let elsewhere = key.client.at(&replica.url);
        for client in [&key.client, &elsewhere] {
            client.get("/tenant/hubs").call().await.expect(200);
            client.get("/tenant/ble/events").call().await.expect(403);
        }
        let body = json!({"scopes": ["ble:read"], "name": null});
        let changed = tenant
            .client
            .put(&path_of(&key))
            .json(&body)
            .call()
            .await
            .expect(200)
            .json();
        assert_eq!(
            (&changed["data"]["name"], &changed["data"]["scopes"]),
            (&json!("a back-end"), &json!(["ble:read"]))
        );
        for client in [&elsewhere, &key.client] {
            client.get("/tenant/hubs").call().await.expect(403);
            client.get("/tenant/ble/events").call().await.expect(200);
        }
        for _ in 0..2 {
            let reply = tenant
                .client
                .delete(&path_of(&key))
                .call()
                .await
                .expect(200);
            assert_eq!(reply.json(), json!({"data": null}), "also the second time");
            for client in [&elsewhere, &key.client] {
                client.get("/tenant/ble/events").call().await.expect(401);
            }
        }
        tenant
            .client
            .put(&path_of(&key))
            .json(&json!({"name": "x"}))
            .call()
            .await
            .expect(409);
    }
    // Nothing to change is fine, and leaves no entry.
    let key = tenant.api_key(json!({"scopes": ["hubs:read"]})).await;
    tenant
        .client
        .put(&path_of(&key))
        .json(&json!({}))
        .call()
        .await
        .expect(200);
    let entries = tenant
        .client
        .get("/tenant/audit-logs?action=api_key.update&size=100")
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(entries["data"]["totalElements"], 5);
    // A tenant takes its keys with it.
    key.client.get("/tenant/hubs").call().await.expect(200);
    let mut tx = app.app.db.begin().await.expect("a transaction");
    let now = app.app.clock.now();
    sql("UPDATE tenants SET deleted_at = $1 WHERE tenant_uuid = $2")
        .bind((now, tenant.tenant_uuid))
        .execute(&mut tx)
        .await
        .expect("deleted");
    tx.commit_unaudited("a test").await.expect("a commit");
    app.app.parts().authn.permissions.wait_out_lease().await;
    key.client.get("/tenant/hubs").call().await.expect(401);
    key.client
        .at(&replica.url)
        .get("/tenant/hubs")
        .call()
        .await
        .expect(401);
}

on_each_database!(number_of_keys_is_limited_under_concurrent_creation);
async fn number_of_keys_is_limited_under_concurrent_creation(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let body = json!({"name": "x", "scopes": ["hubs:read"]});
    for _ in 0..196 {
        create(&tenant, body.clone()).await;
    }
    let racing = (0..12).map(|_| tenant.client.post(KEYS).json(&body).call());
    let statuses: Vec<u16> = futures_util::future::join_all(racing)
        .await
        .iter()
        .map(|reply| reply.status.as_u16())
        .collect();
    let made = statuses.iter().filter(|status| **status == 201).count();
    assert_eq!(
        (
            made,
            statuses.iter().filter(|status| **status == 409).count()
        ),
        (4, 8),
        "{statuses:?}"
    );
    let listed = list(&tenant).await;
    assert_eq!(listed.len(), 200);
    let id = &listed[100]["apiKeyId"];
    tenant
        .client
        .delete(&format!("{KEYS}/{id}"))
        .call()
        .await
        .expect(200);
    create(&tenant, body).await;
}

on_each_database!(key_is_the_actor_of_its_writes_and_reads_streams);
async fn key_is_the_actor_of_its_writes_and_reads_streams(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let writer = tenant.api_key(json!({"scopes": ["hubs:write"]})).await;
    let path = format!("/tenant/hubs/{}", hub.hub_uuid);
    writer.client.get(&path).call().await.expect(403);
    writer
        .client
        .patch(&path)
        .json(&json!({"hubIdentifier": "by key"}))
        .call()
        .await
        .expect(200);
    let entries = tenant
        .client
        .get("/tenant/audit-logs?action=hub.update")
        .call()
        .await
        .expect(200)
        .json();
    let entry = &entries["data"]["content"][0];
    assert_eq!(entry["actor"]["type"], "API_KEY");
    assert_eq!(entry["actor"]["apiKeyId"], json!(writer.api_key_id));

    let streams = [
        ("/tenant/stream/ble/events".to_owned(), "ble:read"),
        (
            format!("/tenant/stream/hubs/{}/logs", hub.hub_uuid),
            "hubs:read",
        ),
    ];
    for (stream, scope) in &streams {
        let reader = tenant.api_key(json!({"scopes": [scope]})).await;
        let response = reader.client.get(stream).send().await.expect("an answer");
        assert_eq!(
            (
                response.status().as_u16(),
                &response.headers()["content-type"]
            ),
            (200, &"text/event-stream".parse().expect("a value"))
        );
        for (other, _) in streams.iter().filter(|(other, _)| other != stream) {
            reader.client.get(other).call().await.expect(403);
        }
    }
    let reader = tenant.api_key(json!({"scopes": ["ble:read"]})).await;
    let follower = hub_tests::Follower::start(&reader.client, "/tenant/stream/ble/events", 50, 1);
    hub.upload_events(5).await;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while follower.seen().len() < 5 {
        assert!(std::time::Instant::now() < deadline, "the events come");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

on_each_database!(only_managers_of_a_tenant_see_its_keys);
async fn only_managers_of_a_tenant_see_its_keys(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let key = tenant.api_key(json!({"scopes": ["*"]})).await;
    for (role, status) in [
        (Role::Viewer, 403),
        (Role::Operator, 403),
        (Role::Admin, 200),
    ] {
        let member: Client = tenant.member(role).await;
        member.get(KEYS).call().await.expect(status);
        member
            .put(&path_of(&key))
            .json(&json!({"name": role.name()}))
            .call()
            .await
            .expect(status);
    }
    let stranger = Tenant::create(&app.client()).await;
    stranger
        .client
        .put(&path_of(&key))
        .json(&json!({"name": "x"}))
        .call()
        .await
        .expect(404);
    stranger
        .client
        .delete(&path_of(&key))
        .call()
        .await
        .expect(404);
    key.client.get("/tenant/hubs").call().await.expect(200);
}

on_each_database!(stream_ends_when_its_key_loses_the_scope);
async fn stream_ends_when_its_key_loses_the_scope(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let key = tenant
        .api_key(json!({"scopes": ["ble:read", "hubs:read"]}))
        .await;
    let open = |path: String| {
        let request = key.client.get(&path).send();
        async move {
            request
                .await
                .expect("an answer")
                .error_for_status()
                .expect("a stream")
        }
    };
    let mut events = open("/tenant/stream/ble/events".to_owned()).await;
    let mut logs = open(format!("/tenant/stream/hubs/{}/logs", hub.hub_uuid)).await;
    // Longer than a stream goes without asking, and shorter than its heartbeat.
    let recheck = std::time::Duration::from_secs(15);

    tenant
        .client
        .put(&path_of(&key))
        .json(&json!({"scopes": ["hubs:read"]}))
        .call()
        .await
        .expect(200);
    let ended = async { while events.chunk().await.expect("an orderly end").is_some() {} };
    tokio::time::timeout(recheck, ended)
        .await
        .expect("a scope taken away ends its stream");
    let ended = async { while logs.chunk().await.expect("an orderly end").is_some() {} };
    let goes_on = tokio::time::timeout(std::time::Duration::from_secs(1), ended)
        .await
        .is_err();
    assert!(goes_on, "the other scope's stream goes on");

    tenant
        .client
        .delete(&path_of(&key))
        .call()
        .await
        .expect(200);
    let ended = async { while logs.chunk().await.expect("an orderly end").is_some() {} };
    tokio::time::timeout(recheck, ended)
        .await
        .expect("a deactivated key's streams end");
}
