//! `/tenant/setup`: a page learns from it what it need not ask for.

use hub_core::config::Settings;
use hub_identity::authz::permission::Role;
use hub_tests::{Backend, Call, Options, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};

const PATH: &str = "/tenant/setup";

on_each_database!(a_tenant_sees_which_parts_are_set_up);
async fn a_tenant_sees_which_parts_are_set_up(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let other = Tenant::create(&app.client()).await;
    let viewer = tenant.member(Role::Viewer).await;
    let nothing = json!({"billing": false, "consent": false, "supplierOauth": false});
    let setup = async || -> Value { viewer.get(PATH).call().await.expect(200).data() };
    assert_eq!(setup().await, nothing);

    let consent = json!({
        "version": "1", "text": "We read your sensors.", "enforce": false,
        "purposes": [{"key": "monitoring", "title": "Show you values", "required": true}]
    });
    let put = tenant
        .client
        .post("/tenant/consent-settings")
        .json(&consent);
    put.call().await.expect(200);
    let oauth = json!({
        "authorize_url": "https://login.example.com/authorize", "token_url": "https://login.example.com/token",
        "client_id": "hubs", "scope": "openid", "return_urls": ["https://app.example.com/linked"],
    });
    let put = tenant
        .client
        .put("/tenant/supplier-oauth-config")
        .json(&oauth);
    put.call().await.expect(200);
    assert_eq!(
        setup().await,
        json!({"billing": false, "consent": true, "supplierOauth": true})
    );
    let others: Value = other.client.get(PATH).call().await.expect(200).data();
    assert_eq!(others, nothing, "each tenant for itself");

    let delete = tenant.client.delete("/tenant/supplier-oauth-config");
    delete.call().await.expect(200);
    assert_eq!(setup().await["supplierOauth"], json!(false));

    let billed = TestApp::replica_of(
        &app,
        Options {
            settings: Settings {
                billing_url: Some("http://127.0.0.1:9/".to_owned()),
                billing_token: Some("a token".to_owned()),
                ..Settings::default()
            },
            ..Options::default()
        },
    )
    .await;
    let setup: Value = viewer
        .at(&billed.url)
        .get(PATH)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(setup["billing"], json!(true));
}
