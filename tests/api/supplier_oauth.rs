//! `/tenant/supplier-oauth-config` and the platform's approval of changes.

use hub_core::config::Settings;
use hub_identity::authz::permission::Role;
use hub_tests::{Backend, Call, Options, Person, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};

const PATH: &str = "/tenant/supplier-oauth-config";

fn body() -> Value {
    json!({
        "authorize_url": "https://login.example.com/authorize", "token_url": "https://login.example.com/token",
        "client_id": "hubs", "client_secret": "the first client secret", "scope": "openid",
        "registration_url": "https://api.example.com/registered", "return_urls": ["https://app.example.com/linked"],
    })
}

on_each_database!(a_tenant_configures_its_authorization_server);
async fn a_tenant_configures_its_authorization_server(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    assert_eq!(
        tenant
            .client
            .get(PATH)
            .call()
            .await
            .expect(404)
            .problem()
            .code,
        "NOT_FOUND"
    );
    tenant.client.delete(PATH).call().await.expect(200);
    let put: Value = tenant
        .client
        .put(PATH)
        .json(&body())
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(put["supplier_uuid"], json!(tenant.tenant_uuid));
    assert_eq!(
        (&put["clientSecretSet"], &put["registrationSharedSecretSet"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(
        (&put["approvalStatus"], &put["revoke_url"]),
        (&json!("APPROVED"), &Value::Null)
    );
    assert!(
        put.get("client_secret").is_none() && put["updatedAt"].is_string(),
        "{put}"
    );
    let got: Value = tenant.client.get(PATH).call().await.expect(200).data();
    assert_eq!(got, put);

    // What is absent is removed, but for a secret.
    let mut second = body();
    second
        .as_object_mut()
        .expect("an object")
        .remove("client_secret");
    second
        .as_object_mut()
        .expect("an object")
        .remove("registration_url");
    second["registration_shared_secret"] = json!("the first shared secret");
    let put: Value = tenant
        .client
        .put(PATH)
        .json(&second)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&put["clientSecretSet"], &put["registrationSharedSecretSet"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(put["registration_url"], Value::Null);

    let other = Tenant::create(&app.client()).await;
    other.client.get(PATH).call().await.expect(404);
    let mut foreign = body();
    foreign["supplier_uuid"] = json!(other.tenant_uuid);
    assert_eq!(
        tenant
            .client
            .put(PATH)
            .json(&foreign)
            .call()
            .await
            .expect(403)
            .problem()
            .code,
        "OTHER_TENANT"
    );
    tenant
        .member(Role::Operator)
        .await
        .put(PATH)
        .json(&body())
        .call()
        .await
        .expect(403);
    let key = tenant.api_key(json!({"scopes": ["*"]})).await;
    assert_eq!(
        key.client
            .put(PATH)
            .json(&body())
            .call()
            .await
            .expect(403)
            .problem()
            .code,
        "PERSON_REQUIRED"
    );

    let deleted = tenant.client.delete(PATH).call().await.expect(200).json();
    assert_eq!(deleted, json!({"data": {"status": "deleted"}}));
    tenant.client.get(PATH).call().await.expect(404);
}

on_each_database!(wrong_members_of_a_configuration_are_named);
async fn wrong_members_of_a_configuration_are_named(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    for (field, value) in [
        ("authorize_url", json!("http://login.example.com/authorize")),
        ("authorize_url", json!("ftp://login.example.com")),
        ("token_url", json!("https://127.0.0.1/token")),
        (
            "token_url",
            json!("https://169.254.169.254/latest/meta-data"),
        ),
        (
            "token_url",
            json!("https://user:password@login.example.com/token"),
        ),
        ("registration_url", json!("https://localhost/registered")),
        ("registration_url", json!("https://[::1]/registered")),
        ("userinfo_url", json!("login.example.com")),
        ("client_id", json!(" ")),
        ("client_id", json!(7)),
        ("scope", Value::Null),
        ("client_secret", json!("")),
        ("consent_text", json!("\u{0}")),
        ("return_urls[0]", json!(["javascript:alert(1)"])),
        (
            "return_urls[1]",
            json!(["com.example.app:/linked", "http://app.example.com"]),
        ),
        ("return_urls", json!(vec!["https://app.example.com"; 21])),
    ] {
        let mut wrong = body();
        let member = field.split('[').next().expect("a name");
        wrong[member] = value.clone();
        let reply = tenant
            .client
            .put(PATH)
            .json(&wrong)
            .call()
            .await
            .expect(400);
        assert_eq!(
            reply.problem().errors[0].field,
            field,
            "{value}: {}",
            reply.body
        );
    }
    let admin = Person::register(&app.client())
        .await
        .as_platform_admin(&app);
    let reply = admin
        .put("/platform/supplier-oauth-configs")
        .json(&body())
        .call()
        .await
        .expect(400);
    assert_eq!(reply.problem().errors[0].field, "supplier_uuid");
    let mut unknown = body();
    unknown["supplier_uuid"] = json!(uuid::Uuid::new_v4());
    admin
        .put("/platform/supplier-oauth-configs")
        .json(&unknown)
        .call()
        .await
        .expect(404);
}

on_each_database!(the_platform_approves_changes_where_it_wants_to);
async fn the_platform_approves_changes_where_it_wants_to(backend: Backend) {
    const APPROVALS: &str = "/platform/supplier-oauth-configs/approvals";
    let settings = Settings {
        require_approval: Some(true),
        ..Settings::default()
    };
    let app = TestApp::with(
        backend,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let admin = Person::register(&app.client())
        .await
        .as_platform_admin(&app);
    let waiting = async || -> Vec<Value> { admin.get(APPROVALS).call().await.expect(200).data() };
    let decide =
        async |id: &Value, what: &str| admin.post(&format!("{APPROVALS}/{id}/{what}")).call().await;

    let put: Value = tenant
        .client
        .put(PATH)
        .json(&body())
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&put["approvalStatus"], &put["clientSecretSet"]),
        (&json!("PENDING"), &json!(true))
    );
    tenant.client.get(PATH).call().await.expect(404);
    let first = waiting().await;
    assert_eq!((first.len(), &first[0]["live"]), (1, &Value::Null));

    // Another change takes its place; a secret that it does not name stays asked for.
    let mut second = body();
    second
        .as_object_mut()
        .expect("an object")
        .remove("client_secret");
    second["scope"] = json!("openid devices");
    tenant
        .client
        .put(PATH)
        .json(&second)
        .call()
        .await
        .expect(200);
    let changes = waiting().await;
    assert_eq!(
        (changes.len(), &changes[0]["scope"]),
        (1, &json!("openid devices"))
    );
    assert_ne!(changes[0]["id"], first[0]["id"]);
    assert_eq!(
        decide(&first[0]["id"], "approve")
            .await
            .expect(409)
            .problem()
            .code,
        "ALREADY_DECIDED"
    );
    let approved: Value = decide(&changes[0]["id"], "approve")
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&approved["approvalStatus"], &approved["clientSecretSet"]),
        (&json!("APPROVED"), &json!(true))
    );
    assert_eq!(
        decide(&changes[0]["id"], "reject")
            .await
            .expect(409)
            .problem()
            .code,
        "ALREADY_DECIDED"
    );
    let live: Value = tenant.client.get(PATH).call().await.expect(200).data();
    assert_eq!(live["scope"], "openid devices");

    // What is in force stays in force until the platform has decided, and when it refuses.
    let mut third = body();
    third["token_url"] = json!("https://elsewhere.example.com/token");
    tenant
        .client
        .put(PATH)
        .json(&third)
        .call()
        .await
        .expect(200);
    let live: Value = tenant.client.get(PATH).call().await.expect(200).data();
    assert_eq!(
        (&live["token_url"], &live["approvalStatus"]),
        (&body()["token_url"], &json!("PENDING"))
    );
    let change = waiting().await.remove(0);
    assert_eq!(change["live"]["token_url"], body()["token_url"]);
    assert_eq!(change["clientSecretChanged"], true);
    let rejected: Value = decide(&change["id"], "reject").await.expect(200).data();
    assert_eq!(rejected["approvalStatus"], "REJECTED");
    let live: Value = tenant.client.get(PATH).call().await.expect(200).data();
    assert_eq!(
        (&live["token_url"], &live["approvalStatus"]),
        (&body()["token_url"], &json!("REJECTED"))
    );
    assert!(waiting().await.is_empty());
    decide(&json!(4_242_424_242_i64), "approve")
        .await
        .expect(404);

    // The platform's own change needs nobody's approval.
    let mut own = body();
    own["supplier_uuid"] = json!(tenant.tenant_uuid);
    own["scope"] = json!("of the platform");
    admin
        .put("/platform/supplier-oauth-configs")
        .json(&own)
        .call()
        .await
        .expect(200);
    let live: Value = tenant.client.get(PATH).call().await.expect(200).data();
    assert_eq!(live["scope"], "of the platform");
}
