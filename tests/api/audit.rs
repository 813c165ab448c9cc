//! The audit log: who changed what, for tenants and for the platform.

use hub_base::db::sql;
use hub_identity::authz::permission::Role;
use hub_tests::{Backend, Call, Client, Person, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};

async fn page(client: &Client, query: &str) -> Value {
    client
        .get(&format!("/tenant/audit-logs?{query}"))
        .call()
        .await
        .expect(200)
        .json()["data"]
        .clone()
}

/// The actions of a page, latest first.
async fn actions(client: &Client, query: &str) -> Vec<String> {
    let page = page(client, query).await;
    let content = page["content"].as_array().expect("a list");
    assert_eq!(page["totalElements"], json!(content.len()), "{query}");
    content
        .iter()
        .map(|entry| entry["action"].as_str().expect("an action").to_owned())
        .collect()
}

on_each_database!(audit_entry_records_actor_action_and_object);
async fn audit_entry_records_actor_action_and_object(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let path = format!("/tenant/hubs/{}", hub.hub_uuid);
    tenant
        .client
        .patch(&path)
        .json(&json!({"hubIdentifier": "hall 1"}))
        .call()
        .await
        .expect(200);
    let named = tenant
        .client
        .patch(&path)
        .header("x-request-id", "my-request")
        .json(&json!({"hubIdentifier": "hall 2"}));
    named.call().await.expect(200);
    let entry = page(&tenant.client, "size=1").await["content"][0].clone();
    assert_eq!(entry["action"], "hub.update");
    assert_eq!(
        (&entry["objectType"], &entry["objectId"]),
        (&json!("hub"), &json!(hub.hub_uuid))
    );
    assert_eq!(entry["tenantUuid"], json!(tenant.tenant_uuid));
    assert_eq!(
        (
            &entry["before"]["hubIdentifier"],
            &entry["after"]["hubIdentifier"]
        ),
        (&json!("hall 1"), &json!("hall 2"))
    );
    assert_eq!(
        (&entry["requestId"], &entry["address"]),
        (&json!("my-request"), &json!("127.0.0.1"))
    );
    let actor = &entry["actor"];
    assert_eq!(
        (&actor["type"], &actor["userUuid"]),
        (&json!("USER"), &json!(tenant.owner.login.user_uuid))
    );
    assert!(
        actor["personaUuid"].is_string()
            && actor["hubUuid"].is_null()
            && actor["apiKeyId"].is_null()
    );

    // A hub, an administrator, a worker.
    let claim = page(&tenant.client, "action=hub.claim").await["content"][0].clone();
    assert_eq!(
        (&claim["actor"]["type"], &claim["actor"]["hubUuid"]),
        (&json!("HUB"), &json!(hub.hub_uuid))
    );
    let admin = Person::register(&app.client())
        .await
        .as_platform_admin(&app);
    admin
        .post(&format!("/platform/hubs/{}/block", hub.hub_uuid))
        .call()
        .await
        .expect(200);
    let block = page(&tenant.client, "action=hub.block").await["content"][0].clone();
    assert!(
        block["before"]["blockedAt"].is_null() && block["after"]["blockedAt"].is_string(),
        "{block}"
    );
    let system = admin
        .get("/platform/audit-logs?actorType=SYSTEM")
        .call()
        .await
        .expect(200)
        .json();
    let key = &system["data"]["content"][0];
    assert_eq!(
        (&key["action"], &key["actor"]["name"]),
        (&json!("signing_key.create"), &json!("SIGNING_KEYS"))
    );
    assert_eq!(key["tenantUuid"], Value::Null);

    // Codes are shown by their beginning alone.
    let code = tenant.claim_code().await;
    tenant
        .client
        .delete(&format!("/tenant/hubs/claim-codes/{code}"))
        .call()
        .await
        .expect(204);
    let deleted = page(&tenant.client, "objectType=claim_code").await;
    let (deleted, created) = (&deleted["content"][0], &deleted["content"][1]);
    assert_eq!(
        (&deleted["action"], &deleted["after"]),
        (&json!("claim_code.delete"), &Value::Null)
    );
    assert_eq!(
        (&created["before"], &created["after"]["maxUses"]),
        (&Value::Null, &json!(1))
    );
    assert!(!deleted.to_string().contains(&code[5..]) && !created.to_string().contains(&code[5..]));
}

on_each_database!(filters_narrow_the_audit_list_alone_and_combined);
async fn filters_narrow_the_audit_list_alone_and_combined(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let key = tenant.api_key(json!({"scopes": ["hubs:write"]})).await;
    let path = format!("/tenant/hubs/{}", hub.hub_uuid);
    key.client
        .patch(&path)
        .json(&json!({"hubIdentifier": "x"}))
        .call()
        .await
        .expect(200);
    tenant
        .client
        .patch(&path)
        .json(&json!({"hubIdentifier": "y"}))
        .call()
        .await
        .expect(200);
    let (owner, hub_uuid, key_id) = (tenant.owner.login.user_uuid, hub.hub_uuid, key.api_key_id);
    let all = [
        "hub.update",
        "hub.update",
        "api_key.create",
        "hub.claim",
        "claim_code.create",
        "tenant.create",
    ];
    for (query, expected) in [
        (String::new(), &all[..]),
        ("actorType=HUB".to_owned(), &["hub.claim"]),
        ("actorType=SYSTEM".to_owned(), &[]),
        ("actorType=API_KEY".to_owned(), &["hub.update"]),
        (format!("apiKeyId={key_id}"), &["hub.update"]),
        (
            format!("apiKeyId={key_id}&actorType=API_KEY&objectType=hub"),
            &["hub.update"],
        ),
        (format!("apiKeyId={key_id}&actorType=USER"), &[]),
        (format!("actorUuid={hub_uuid}"), &["hub.claim"]),
        (format!("actorUuid={hub_uuid}&actorType=USER"), &[]),
        (
            format!("actorUuid={owner}"),
            &[
                "hub.update",
                "api_key.create",
                "claim_code.create",
                "tenant.create",
            ],
        ),
        (
            format!("actorUuid={owner}&actorType=USER&action=tenant.create"),
            &["tenant.create"],
        ),
        (format!("actorUuid={owner}&apiKeyId={key_id}"), &[]),
        (
            "action=hub.update".to_owned(),
            &["hub.update", "hub.update"],
        ),
        (
            "action=hub.update&actorType=USER&objectType=hub".to_owned(),
            &["hub.update"],
        ),
        ("action=hub.update&objectType=tenant".to_owned(), &[]),
        (
            "objectType=hub".to_owned(),
            &["hub.update", "hub.update", "hub.claim"],
        ),
        ("objectType=hub&actorType=HUB".to_owned(), &["hub.claim"]),
        (
            format!("objectId={hub_uuid}"),
            &["hub.update", "hub.update", "hub.claim"],
        ),
        (
            format!("objectId={hub_uuid}&objectType=hub&action=hub.claim"),
            &["hub.claim"],
        ),
        (
            format!("objectId={hub_uuid}&actorUuid={owner}"),
            &["hub.update"],
        ),
        (
            format!("objectId={hub_uuid}&apiKeyId={key_id}"),
            &["hub.update"],
        ),
        ("objectId=nothing%27%20OR%201%3D1".to_owned(), &[]),
        (
            "from=2001-01-01T00:00:00Z&to=2002-01-01T00:00:00Z".to_owned(),
            &[],
        ),
        (
            "from=2001-01-01T00:00:00Z&to=2100-01-01T00:00:00Z&objectType=tenant".to_owned(),
            &["tenant.create"],
        ),
        ("action=&objectType=tenant".to_owned(), &["tenant.create"]),
    ] {
        assert_eq!(actions(&tenant.client, &query).await, expected, "{query}");
    }
    // Order and pages, the ends of a stretch of time included.
    let everything = page(&tenant.client, "sort=createdAt,asc").await;
    let listed = everything["content"].as_array().expect("a list");
    assert_eq!(listed[0]["action"], "tenant.create");
    let second = page(&tenant.client, "sort=createdAt,asc&size=2&page=1").await;
    assert_eq!(
        second["content"].as_array().expect("a list")[..],
        listed[2..4]
    );
    assert_eq!(
        (
            &second["totalElements"],
            &second["totalPages"],
            &second["page"],
            &second["last"]
        ),
        (&json!(6), &json!(3), &json!(1), &json!(false))
    );
    let beyond = page(&tenant.client, "size=2&page=9").await;
    assert_eq!(
        (&beyond["content"], &beyond["totalElements"]),
        (&json!([]), &json!(6))
    );
    let time = |entry: &Value| entry["createdAt"].as_str().expect("a time").to_owned();
    let stretch = format!("from={}&to={}", time(&listed[1]), time(&listed[4]));
    assert_eq!(
        actions(&tenant.client, &stretch).await.len(),
        3,
        "from is in it, to is not"
    );

    // Another tenant's are its own; the platform sees all, or one tenant's.
    let other = Tenant::create(&app.client()).await;
    assert_eq!(actions(&other.client, "").await, ["tenant.create"]);
    let objects_of_others = format!("objectId={hub_uuid}");
    assert!(actions(&other.client, &objects_of_others).await.is_empty());
    assert!(
        actions(&other.client, &format!("apiKeyId={key_id}"))
            .await
            .is_empty()
    );
    let admin = Person::register(&app.client())
        .await
        .as_platform_admin(&app);
    for (query, expected) in [
        (format!("tenantUuid={}", tenant.tenant_uuid), 6),
        (format!("tenantUuid={}", other.tenant_uuid), 1),
        ("action=tenant.create".to_owned(), 2),
        (format!("objectId={hub_uuid}"), 3),
        (format!("apiKeyId={key_id}&objectType=hub"), 1),
        ("objectType=claim_code&actorType=USER".to_owned(), 1),
    ] {
        let found = admin
            .get(&format!("/platform/audit-logs?{query}"))
            .call()
            .await
            .expect(200)
            .json();
        assert_eq!(found["data"]["totalElements"], json!(expected), "{query}");
    }
    let reader = tenant.api_key(json!({"scopes": ["audit:read"]})).await;
    assert_eq!(
        page(&reader.client, "objectType=api_key").await["totalElements"],
        2
    );
    tenant
        .member(Role::Operator)
        .await
        .get("/tenant/audit-logs")
        .call()
        .await
        .expect(403);
}

on_each_database!(invalid_audit_filter_is_refused_by_name);
async fn invalid_audit_filter_is_refused_by_name(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let long = "x".repeat(201);
    for (field, value) in [
        ("from", "yesterday"),
        ("to", "2026-13-01T00:00:00Z"),
        ("actorType", "ROBOT"),
        ("actorType", "user"),
        ("actorUuid", "x"),
        ("apiKeyId", "hmk_1"),
        ("action", "a%00b"),
        ("objectType", long.as_str()),
        ("objectId", "%0A"),
        ("page", "-1"),
        ("page", "501"),
        ("size", "0"),
        ("sort", "actor,asc"),
    ] {
        let problem = tenant
            .client
            .get(&format!("/tenant/audit-logs?{field}={value}"))
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{value}");
    }
    let admin = Person::register(&app.client())
        .await
        .as_platform_admin(&app);
    let problem = admin
        .get("/platform/audit-logs?tenantUuid=x")
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(problem.errors[0].field, "tenantUuid");
}

on_each_database!(audit_entries_cannot_be_changed);
async fn audit_entries_cannot_be_changed(backend: Backend) {
    let app = TestApp::new(backend).await;
    Tenant::create(&app.client()).await;
    let count = async || {
        let mut conn = app.app.db.read().await.expect("a connection");
        sql("SELECT COUNT(*), MIN(action) FROM audit_logs WHERE action <> 'x'")
            .one::<(i64, String)>(&mut conn)
            .await
            .expect("a count")
    };
    let before = count().await;
    assert!(before.0 > 0);
    for statement in [
        "UPDATE audit_logs SET action = 'x'",
        "UPDATE audit_logs SET detail = detail WHERE audit_log_id = 1",
        "DELETE FROM audit_logs",
        "DELETE FROM audit_logs WHERE audit_log_id = 1",
        "TRUNCATE audit_logs",
        "INSERT OR REPLACE INTO audit_logs (audit_log_id, actor, action, target, detail, \
         created_at) VALUES (1, 'USER', 'x', '', '{}', '')",
        "INSERT INTO audit_logs (audit_log_id, actor, action, target, detail, created_at) \
         SELECT audit_log_id, actor, 'x', target, detail, created_at \
         FROM audit_logs WHERE true ON CONFLICT (audit_log_id) DO UPDATE SET action = 'x'",
    ] {
        let mut tx = app.app.db.begin().await.expect("a transaction");
        let refused = sql(statement).execute(&mut tx).await;
        assert!(refused.is_err(), "{statement}");
        drop(tx);
    }
    assert_eq!(count().await, before);
}

on_each_database!(the_platform_sees_people_by_their_emails);
async fn the_platform_sees_people_by_their_emails(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let person = Person::register(&app.client()).await;
    let members = format!("/tenant/tenants/{}/members", tenant.tenant_uuid);
    let body = json!({"personaUuid": person.login.persona_uuid, "role": "VIEWER"});
    let granted = tenant.client.post(&members).json(&body).call().await;
    granted.expect(200);
    let admin = Person::register(&app.client())
        .await
        .as_platform_admin(&app);
    let entry = async |query: &str| -> Value {
        let list = admin.get(&format!("/platform/audit-logs?{query}"));
        list.call().await.expect(200).json()["data"]["content"][0].clone()
    };
    let owner = tenant.owner.email.as_str();
    let grant = entry(&format!(
        "action=member.grant&tenantUuid={}",
        tenant.tenant_uuid
    ))
    .await;
    assert_eq!(
        (&grant["actor"]["email"], &grant["objectEmail"]),
        (&json!(owner), &json!(person.email)),
        "{grant}"
    );
    let registered = entry(&format!("objectId={}", person.login.user_uuid)).await;
    assert_eq!(registered["objectEmail"], json!(person.email));
    let system = entry("actorType=SYSTEM").await;
    assert_eq!(
        (&system["actor"]["email"], &system["objectEmail"]),
        (&Value::Null, &Value::Null)
    );
    // A tenant knows its members by their list.
    let own = page(&tenant.client, "action=member.grant").await["content"][0].clone();
    assert_eq!(
        (&own["actor"]["email"], &own["objectEmail"]),
        (&Value::Null, &Value::Null)
    );
}
