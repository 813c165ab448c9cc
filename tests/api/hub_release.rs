//! Releasing hubs: what ends, what stays, and who may claim the hardware.

use std::time::Duration;

use hub_base::db::sql;
use hub_protocol::claim::HubCredentials;
use hub_tests::release;
use hub_tests::{
    Backend, Call, Client, Options, Reply, SimulatedHub, Tenant, TestApp, certificates,
    on_each_database,
};
use serde_json::{Value, json};

use super::policies::{Fleet, text, update};

fn path(hub: &SimulatedHub) -> String {
    format!("/tenant/hubs/{}", hub.hub_uuid)
}

async fn claim(client: &Client, code: &str, hub: &SimulatedHub) -> Reply {
    let body = json!({"claimCode": code, "deviceInstanceId": hub.device_instance_id});
    client.post("/v1/hubs/claim").json(&body).call().await
}

async fn count(client: &Client, path: &str) -> String {
    client
        .get(path)
        .call()
        .await
        .expect(200)
        .header("x-total-count")
        .to_owned()
}

/// A replica that shares nothing with the first but the database, where there can be one.
async fn far_url(app: &TestApp) -> (Option<TestApp>, String) {
    let replica = match app.backend {
        Backend::Postgres => Some(TestApp::replica_of(app, Options::default()).await),
        Backend::Sqlite => None,
    };
    let url = replica.as_ref().unwrap_or(app).url.clone();
    (replica, url)
}

on_each_database!(released_hub_ends_at_once_and_its_records_stay);
async fn released_hub_ends_at_once_and_its_records_stay(backend: Backend) {
    let app = TestApp::new(backend).await;
    let (_replica, far) = far_url(&app).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let neighbour = SimulatedHub::claim(&tenant).await;
    hub.upload_events(2).await;
    for kind in ["telemetry", "logs"] {
        hub.client
            .post(&format!("/v1/hubs/{}/{kind}", hub.hub_uuid))
            .json(&json!({"x": 1}))
            .call()
            .await
            .expect(204);
    }
    let adapters =
        json!({"adapters": [{"address": "00:1A:7D:DA:71:13", "name": "hci0", "powered": true}]});
    hub.client
        .post("/v1/hubs/adapters")
        .json(&adapters)
        .call()
        .await
        .expect(200);
    hub.certificate().await;
    let app_uuid = release::make_app(&tenant, "logger").await;
    let job = tenant.remove(&hub, app_uuid).await;
    let delegations = format!("{}/setup-delegations", path(&hub));
    tenant
        .client
        .post(&delegations)
        .json(&json!({"email": "ada@example.com"}))
        .call()
        .await
        .expect(200);
    let policy = json!({"scope": "HUB", "hubUuid": hub.hub_uuid});
    tenant
        .client
        .put("/tenant/agent-update-policies")
        .json(&policy)
        .call()
        .await
        .expect(200);

    let state = hub
        .client
        .get(&format!("/v1/hubs/{}/desired-state", hub.hub_uuid))
        .call()
        .await
        .expect(200);
    let waiting = app.app.metrics.hub_waits.get();
    let held = hub
        .client
        .get(&format!("/v1/hubs/{}/desired-state?wait=50", hub.hub_uuid));
    let held = tokio::spawn(held.header("if-none-match", state.header("etag")).call());
    while app.app.metrics.hub_waits.get() <= waiting {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }

    tenant
        .client
        .at(&far)
        .delete(&path(&hub))
        .call()
        .await
        .expect(204);
    for url in [&app.url, &far] {
        let client = hub.client.at(url);
        client.get("/v1/test").call().await.expect(401);
        client
            .post("/v1/ble/events")
            .json(&hub_tests::hub::events(1))
            .call()
            .await
            .expect(401);
        let refresh = json!({"refreshToken": hub.credentials.refresh_token});
        let refused = client
            .post("/v1/hubs/refresh")
            .json(&refresh)
            .call()
            .await
            .expect(403);
        assert_eq!(refused.problem().code, "TOKEN_REVOKED");
        hub.ask_for_certificate(&certificates::request().1)
            .await
            .expect(401);
    }
    held.await.expect("an answer").expect(401);
    neighbour.client.get("/v1/test").call().await.expect(200);

    // The hub is gone.
    let paths = [
        "",
        "/adapters",
        "/apps",
        "/installed-apps",
        "/setup-delegations",
    ];
    for gone in paths.map(|end| path(&hub) + end) {
        tenant.client.get(&gone).call().await.expect(404);
    }
    tenant
        .client
        .patch(&path(&hub))
        .json(&json!({"description": "x"}))
        .call()
        .await
        .expect(404);
    tenant.client.delete(&path(&hub)).call().await.expect(404);
    tenant
        .client
        .post(&format!(
            "{}/jobs/app-remove?appUuid={app_uuid}",
            path(&hub)
        ))
        .call()
        .await
        .expect(404);
    tenant
        .client
        .put("/tenant/agent-update-policies")
        .json(&policy)
        .call()
        .await
        .expect(404);
    assert_eq!(count(&tenant.client, "/tenant/hubs").await, "1");
    assert_eq!(
        count(&tenant.client, "/tenant/agent-update-policies").await,
        "0"
    );

    // Its records are not.
    assert_eq!(
        count(
            &tenant.client,
            &format!("/tenant/ble/events?hubUuid={}", hub.hub_uuid)
        )
        .await,
        "2"
    );
    for records in ["telemetry", "logs", "jobs"] {
        assert_eq!(
            count(&tenant.client, &format!("{}/{records}", path(&hub))).await,
            "1",
            "{records}"
        );
    }
    let ended = tenant.job(&hub, job).await;
    assert_eq!(
        (&ended["status"], &ended["detail"]),
        (&json!("CANCELLED"), &json!("the hub was released"))
    );

    let log = tenant
        .client
        .get("/tenant/audit-logs?action=hub.release")
        .call()
        .await
        .expect(200)
        .json();
    let entry = &log["data"]["content"][0];
    let expected = json!({"bundles": 0, "certificates": 1, "floorPlans": 0, "jobs": 1, "setupDelegations": 1, "updatePolicies": 1});
    assert_eq!(
        (&entry["before"]["deviceInstanceId"], &entry["after"]),
        (&json!(hub.device_instance_id), &Value::Null)
    );
    assert_eq!(entry["detail"], expected, "{log}");
}

on_each_database!(hardware_of_a_released_hub_becomes_another_hub);
async fn hardware_of_a_released_hub_becomes_another_hub(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let stranger = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    hub.upload_events(3).await;
    let foreign = stranger.claim_code().await;
    let refused = claim(&app.client(), &foreign, &hub)
        .await
        .expect(409)
        .problem();
    assert_eq!(refused.code, "HUB_OF_OTHER_TENANT");

    tenant.client.delete(&path(&hub)).call().await.expect(204);
    let next: HubCredentials = claim(&app.client(), &foreign, &hub)
        .await
        .expect(201)
        .data();
    assert_ne!(next.hub_uuid, hub.hub_uuid);
    assert_eq!(next.tenant_uuid, stranger.tenant_uuid);
    app.client()
        .bearer(&next.access_token)
        .get("/v1/test")
        .call()
        .await
        .expect(200);
    hub.client.get("/v1/test").call().await.expect(401);
    // The records stay whose they were.
    assert_eq!(count(&stranger.client, "/tenant/ble/events").await, "0");
    stranger
        .client
        .get(&format!("{}/telemetry", path(&hub)))
        .call()
        .await
        .expect(404);
    assert_eq!(count(&tenant.client, "/tenant/ble/events").await, "3");
    tenant
        .client
        .get(&format!("/tenant/hubs/{}", next.hub_uuid))
        .call()
        .await
        .expect(404);
    // It is the new tenant's hub as any other.
    let own = tenant.claim_code().await;
    claim(&app.client(), &own, &hub).await.expect(409);
    stranger
        .client
        .delete(&format!("/tenant/hubs/{}", next.hub_uuid))
        .call()
        .await
        .expect(204);
    let back: HubCredentials = claim(&app.client(), &own, &hub).await.expect(201).data();
    assert!(back.hub_uuid != hub.hub_uuid && back.hub_uuid != next.hub_uuid);
}

on_each_database!(platform_releases_squatted_hardware);
async fn platform_releases_squatted_hardware(backend: Backend) {
    let app = TestApp::new(backend).await;
    let squatter = Tenant::create(&app.client()).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&squatter).await;
    let code = tenant.claim_code().await;
    claim(&app.client(), &code, &hub).await.expect(409);

    let release = format!("/platform/hubs/{}/release", hub.hub_uuid);
    let admin = tenant.owner.as_platform_admin(&app);
    squatter.client.post(&release).call().await.expect(403);
    let released: Value = admin.post(&release).call().await.expect(200).data();
    assert_eq!(released["hubUuid"], json!(hub.hub_uuid));
    let again: Value = admin.post(&release).call().await.expect(200).data();
    assert_eq!(again, released, "repeating it changes nothing");
    admin
        .post(&format!("/platform/hubs/{}/release", uuid::Uuid::new_v4()))
        .call()
        .await
        .expect(404);
    let problem = admin
        .post("/platform/hubs/x/release")
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(problem.errors[0].field, "hubUuid");

    hub.client.get("/v1/test").call().await.expect(401);
    assert_eq!(count(&squatter.client, "/tenant/hubs").await, "0");
    let log = squatter
        .client
        .get("/tenant/audit-logs?action=hub.release")
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(
        log["data"]["totalElements"],
        json!(1),
        "its tenant sees who did it: {log}"
    );
    claim(&app.client(), &code, &hub).await.expect(201);
    let of_device = format!("/platform/hubs?q={}", hub.device_instance_id);
    let listed: Vec<Value> = admin.get(&of_device).call().await.expect(200).data();
    let found: Vec<_> = listed
        .iter()
        .map(|hub| (&hub["tenantUuid"], &hub["releasedAt"]))
        .collect();
    assert_eq!(
        found,
        [
            (&json!(tenant.tenant_uuid), &Value::Null),
            (&json!(squatter.tenant_uuid), &released["releasedAt"])
        ]
    );
}

on_each_database!(blocked_hardware_stays_blocked_when_its_hub_is_released);
async fn blocked_hardware_stays_blocked_when_its_hub_is_released(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let other = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let admin = other.owner.as_platform_admin(&app);
    let set = |what: &str| {
        admin
            .post(&format!("/platform/hubs/{}/{what}", hub.hub_uuid))
            .call()
    };
    set("block").await.expect(200);
    tenant.client.delete(&path(&hub)).call().await.expect(204);

    let codes = [tenant.claim_code().await, other.claim_code().await];
    for code in &codes {
        assert_eq!(
            claim(&app.client(), code, &hub)
                .await
                .expect(423)
                .problem()
                .code,
            "HUB_BLOCKED"
        );
    }
    // Nor does the platform lift its block by releasing, or a tenant by ending.
    set("release").await.expect(200);
    set("block").await.expect(200);
    claim(&app.client(), &codes[1], &hub).await.expect(423);
    let path = format!("/tenant/tenants/{}", tenant.tenant_uuid);
    tenant.owner.client.delete(&path).call().await.expect(200);
    claim(&app.client(), &codes[1], &hub).await.expect(423);

    set("unblock").await.expect(200);
    let next: HubCredentials = claim(&app.client(), &codes[1], &hub)
        .await
        .expect(201)
        .data();
    let refused = set("block").await.expect(409).problem();
    assert_eq!(refused.code, "HUB_RELEASED");
    app.client()
        .bearer(&next.access_token)
        .get("/v1/test")
        .call()
        .await
        .expect(200);
}

on_each_database!(deleted_tenant_releases_its_hubs);
async fn deleted_tenant_releases_its_hubs(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let other = Tenant::create(&app.client()).await;
    let hubs = [
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    ];
    let app_uuid = release::make_app(&tenant, "logger").await;
    tenant.remove(&hubs[0], app_uuid).await;
    let delegation = json!({"email": "ada@example.com"});
    let delegations = format!("{}/setup-delegations", path(&hubs[1]));
    tenant
        .client
        .post(&delegations)
        .json(&delegation)
        .call()
        .await
        .expect(200);
    let code = other.claim_code_for(2).await;
    claim(&app.client(), &code, &hubs[0]).await.expect(409);

    let path = format!("/tenant/tenants/{}", tenant.tenant_uuid);
    tenant.owner.client.delete(&path).call().await.expect(200);
    for hub in &hubs {
        let next: HubCredentials = claim(&app.client(), &code, hub).await.expect(201).data();
        assert_ne!(next.hub_uuid, hub.hub_uuid);
        hub.client.get("/v1/test").call().await.expect(401);
    }
    let mut conn = app.app.db.read().await.expect("a connection");
    for (left, expected) in [
        ("SELECT COUNT(*) FROM hub_jobs WHERE finished_at IS NULL", 0),
        ("SELECT COUNT(*) FROM setup_delegations", 0),
        ("SELECT COUNT(*) FROM hubs WHERE released_at IS NOT NULL", 2),
    ] {
        let (count,): (i64,) = sql(left).one(&mut conn).await.expect("a count");
        assert_eq!(count, expected, "{left}");
    }
}

on_each_database!(claims_and_releases_at_once_leave_one_hub);
/// Whoever wins, the hardware is one hub, and a hub that is not released has the tokens of the last
/// claim.
async fn claims_and_releases_at_once_leave_one_hub(backend: Backend) {
    let app = TestApp::new(backend).await;
    let (_replica, far) = far_url(&app).await;
    let tenant = Tenant::create(&app.client()).await;
    let body = json!({"maxUses": 1000, "allowReclaim": true});
    let made = tenant
        .client
        .post("/tenant/hubs/claim-codes")
        .json(&body)
        .call()
        .await
        .expect(200)
        .json();
    let code = made["data"]["claimCode"].as_str().expect("a code");
    for _ in 0..10 {
        let hub = SimulatedHub::claim(&tenant).await;
        let (near, far) = (app.client(), app.client().at(&far));
        let (released, again, once_more) = tokio::join!(
            tenant.client.delete(&path(&hub)).call(),
            claim(&near, code, &hub),
            claim(&far, code, &hub)
        );
        released.expect(204);
        let claims: Vec<HubCredentials> = [again, once_more]
            .into_iter()
            .filter(|reply| reply.status == 201)
            .map(|reply| reply.data())
            .collect();
        let listed: Vec<Value> = tenant
            .client
            .get("/tenant/hubs?size=100")
            .call()
            .await
            .expect(200)
            .data();
        let of_device = listed
            .iter()
            .filter(|listed| listed["deviceInstanceId"] == hub.device_instance_id.as_str());
        let live: Vec<&Value> = of_device.collect();
        assert!(live.len() <= 1, "{live:?}");
        let mut let_in = 0;
        for claimed in &claims {
            let status = app
                .client()
                .bearer(&claimed.access_token)
                .get("/v1/test")
                .call()
                .await
                .status;
            let_in += usize::from(status == 200);
        }
        assert_eq!(let_in, live.len(), "{claims:?}");
    }
}

on_each_database!(released_hub_counts_in_no_rollout);
/// It fetched its update and would soon count as silent.
async fn released_hub_counts_in_no_rollout(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let hubs = fleet.hubs(&fleet.tenant, 3, "1.0.0").await;
    fleet.release("2.0.0", 1).await;
    fleet
        .put(&json!({"scope": "GLOBAL", "rollout": {"silentAfterSeconds": 1800, "minFinished": 1}}))
        .await;
    fleet.work().await;
    update(&hubs[..2], |_| false).await;
    assert_eq!(hubs[2].desired_jobs().await.len(), 1);
    fleet.work().await;
    let rollout = fleet.rollout().await;
    assert_eq!(
        (text(&rollout, "state"), &rollout["started"]),
        ("RUNNING", &json!(3))
    );

    let release = format!("/platform/hubs/{}/release", hubs[2].hub_uuid);
    fleet
        .platform()
        .await
        .post(&release)
        .call()
        .await
        .expect(200);
    fleet.pass(1800);
    fleet.work().await;
    fleet.pass(60);
    fleet.work().await;
    let rollout = fleet.rollout().await;
    assert_eq!(
        (
            text(&rollout, "state"),
            &rollout["started"],
            &rollout["silent"]
        ),
        ("COMPLETED", &json!(2), &json!(0)),
        "{rollout}"
    );
    assert!(fleet.waiting().await.is_empty(), "it gets no other job");
}
