//! How many hubs a tenant may have.

use futures_util::future::join_all;
use hub_protocol::claim::HubCredentials;
use hub_tests::{Backend, Call, Options, Reply, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::json;

async fn with_quota(backend: Backend, hubs_per_tenant: u32) -> (TestApp, Tenant) {
    let mut options = Options::default();
    options.settings.hubs_per_tenant = Some(hubs_per_tenant);
    let app = TestApp::with(backend, options).await;
    let tenant = Tenant::create(&app.client()).await;
    (app, tenant)
}

async fn claim(app: &TestApp, code: &str, device_instance_id: &str) -> Reply {
    let body = json!({"claimCode": code, "deviceInstanceId": device_instance_id});
    app.client().post("/v1/hubs/claim").json(&body).call().await
}

#[track_caller]
fn assert_full(reply: Reply, quota: i64) {
    let refused = reply.expect(409).problem();
    assert_eq!(refused.code, "TOO_MANY_HUBS");
    assert!(
        refused
            .message
            .contains(&format!("{quota} (`hubs-per-tenant`)")),
        "{}",
        refused.message
    );
}

async fn set_own_quota(app: &TestApp, tenant: &Tenant, hubs: Option<i64>) {
    let path = format!("/platform/tenants/{}/limits", tenant.tenant_uuid);
    let admin = tenant.owner.as_platform_admin(app);
    admin
        .put(&path)
        .json(&json!({"hubs": hubs}))
        .call()
        .await
        .expect(200);
}

on_each_database!(claim_above_the_quota_is_refused);
async fn claim_above_the_quota_is_refused(backend: Backend) {
    let (app, tenant) = with_quota(backend, 2).await;
    let neighbour = Tenant::create(&app.client()).await;
    let code = tenant.claim_code_for(100).await;
    let first: HubCredentials = claim(&app, &code, "one").await.expect(201).data();
    claim(&app, &code, "two").await.expect(201);
    assert_full(claim(&app, &code, "three").await, 2);
    let listed = tenant
        .client
        .get("/tenant/hubs/claim-codes")
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(
        listed["data"][0]["useCount"],
        json!(2),
        "a refused claim uses nothing up"
    );
    SimulatedHub::claim(&neighbour).await;

    // A hub that is there already is claimed again, and one that goes makes room.
    let again: HubCredentials = claim(&app, &tenant.claim_code().await, "one")
        .await
        .expect(201)
        .data();
    assert_eq!(again.hub_uuid, first.hub_uuid);
    tenant
        .client
        .delete(&format!("/tenant/hubs/{}", first.hub_uuid))
        .call()
        .await
        .expect(204);
    claim(&app, &code, "three").await.expect(201);
    assert_full(claim(&app, &code, "one").await, 2);

    for (quota, is_room) in [
        (Some(3), true),
        (Some(1), false),
        (Some(0), false),
        (None, false),
    ] {
        set_own_quota(&app, &tenant, quota).await;
        match is_room {
            true => drop(claim(&app, &code, "four").await.expect(201)),
            false => assert_full(claim(&app, &code, "five").await, quota.unwrap_or(2)),
        }
    }
}

on_each_database!(concurrent_claims_do_not_exceed_the_quota);
async fn concurrent_claims_do_not_exceed_the_quota(backend: Backend) {
    let (app, tenant) = with_quota(backend, 5).await;
    let codes = [
        tenant.claim_code_for(100).await,
        tenant.claim_code_for(100).await,
    ];
    let names: Vec<String> = (0..40).map(|index| format!("hub-{index}")).collect();
    let claims = names
        .iter()
        .enumerate()
        .map(|(index, name)| claim(&app, &codes[index % 2], name));
    let (won, lost): (Vec<_>, Vec<_>) = join_all(claims)
        .await
        .into_iter()
        .partition(|reply| reply.status == 201);
    assert_eq!(won.len(), 5);
    lost.into_iter().for_each(|reply| assert_full(reply, 5));
    let listed = tenant
        .client
        .get("/tenant/hubs?size=1")
        .call()
        .await
        .expect(200);
    assert_eq!(listed.header("x-total-count"), "5");
}
