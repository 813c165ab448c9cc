//! Who the service takes a caller for.

use hub_identity::authz::permission::Role;
use hub_tests::{Backend, Call, Options, Person, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};

on_each_database!(connection_test_describes_the_caller);
async fn connection_test_describes_the_caller(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let viewer = tenant.member(Role::Viewer).await;
    for (client, role, permissions, code) in [
        (
            &tenant.client,
            "OWNER",
            json!(["READ", "WRITE", "OPERATE", "MANAGE"]),
            15,
        ),
        (&viewer, "VIEWER", json!(["READ"]), 1),
    ] {
        for path in [
            "/tenant/test".to_owned(),
            format!("/tenant/units/{}/test", tenant.tenant_uuid),
        ] {
            let reply = client.get(&path).call().await.expect(200);
            let answer = reply.json()["data"].clone();
            assert_eq!(
                (&answer["credential"], &answer["role"]),
                (&json!("USER_TOKEN"), &json!(role))
            );
            assert_eq!(
                (&answer["permissions"], &answer["permissionCode"]),
                (&permissions, &json!(code))
            );
            assert_eq!(answer["tenantUuid"], json!(tenant.tenant_uuid));
            assert!(
                answer["tenantName"]
                    .as_str()
                    .expect("a name")
                    .starts_with("Tenant of")
            );
            assert_eq!(
                (&answer["apiKey"], &answer["address"]),
                (&Value::Null, &json!("127.0.0.1"))
            );
            assert_eq!(answer["requestId"], reply.header("x-request-id"));
            assert_eq!(answer["user"]["platformAdmin"], false);
        }
    }
    let owner = tenant
        .client
        .get("/tenant/test")
        .call()
        .await
        .expect(200)
        .json()["data"]["user"]
        .clone();
    assert_eq!(
        (&owner["email"], &owner["userUuid"]),
        (
            &json!(tenant.owner.email),
            &json!(tenant.owner.login.user_uuid)
        )
    );
    assert_ne!(
        owner["personaUuid"],
        json!(tenant.owner.login.persona_uuid),
        "it is the one in the tenant"
    );

    let key = tenant
        .api_key(json!({"scopes": ["catalog:*"], "rateLimitPerMinute": 60}))
        .await;
    let answer = key
        .client
        .get("/tenant/test")
        .call()
        .await
        .expect(200)
        .json()["data"]
        .clone();
    assert_eq!(
        (&answer["credential"], &answer["user"], &answer["role"]),
        (&json!("API_KEY"), &Value::Null, &Value::Null)
    );
    assert_eq!(
        (&answer["permissions"], &answer["permissionCode"]),
        (&json!(["catalog:*"]), &json!(0))
    );
    assert_eq!(
        (
            &answer["apiKey"]["apiKeyId"],
            &answer["apiKey"]["rateLimitPerMinute"]
        ),
        (&json!(key.api_key_id), &json!(60))
    );
    assert!(
        !answer.to_string().contains(&key.raw[13..]),
        "the secret is not shown"
    );

    let other = Tenant::create(&app.client()).await;
    let elsewhere = format!("/tenant/units/{}/test", other.tenant_uuid);
    assert_eq!(
        tenant
            .client
            .get(&elsewhere)
            .call()
            .await
            .expect(403)
            .problem()
            .code,
        "OTHER_TENANT"
    );
    // The header is required, whatever the path names.
    for unit in [&tenant, &other] {
        let path = format!("/tenant/units/{}/test", unit.tenant_uuid);
        let refused = tenant.owner.client.get(&path).call().await.expect(403);
        assert_eq!(refused.problem().code, "TENANT_REQUIRED");
        app.client().get(&path).call().await.expect(401);
    }
    app.client()
        .tenant(tenant.tenant_uuid)
        .get("/tenant/test")
        .call()
        .await
        .expect(401);
}

on_each_database!(administrators_read_and_clear_the_permission_cache);
async fn administrators_read_and_clear_the_permission_cache(backend: Backend) {
    let app = TestApp::new(backend).await;
    let replica = TestApp::replica_of(&app, Options::default()).await;
    let tenant = Tenant::create(&app.client()).await;
    let admin = Person::register(&app.client())
        .await
        .as_platform_admin(&app);
    for _ in 0..3 {
        tenant.client.get("/tenant/test").call().await.expect(200);
    }
    let statistics = admin
        .get("/platform/permission-cache")
        .call()
        .await
        .expect(200)
        .json()["data"]
        .clone();
    assert_eq!(statistics["leaseMillis"], 100);
    for name in ["entries", "hits", "misses"] {
        assert!(
            statistics[name].as_u64().expect("a number") > 0,
            "{name} of {statistics}"
        );
    }
    let before = admin
        .delete("/platform/permission-cache")
        .call()
        .await
        .expect(200)
        .json()["data"]
        .clone();
    let after = admin
        .get("/platform/permission-cache")
        .call()
        .await
        .expect(200)
        .json()["data"]
        .clone();
    assert_eq!(
        before["invalidations"].as_u64().map(|count| count + 1),
        after["invalidations"].as_u64()
    );
    let log = admin
        .get("/platform/audit-logs?objectType=permission_cache")
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(log["data"]["totalElements"], 1);
    tenant
        .client
        .at(&replica.url)
        .get("/tenant/test")
        .call()
        .await
        .expect(200);
    tenant
        .client
        .get("/platform/permission-cache")
        .call()
        .await
        .expect(403);
}
