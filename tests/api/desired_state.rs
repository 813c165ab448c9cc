//! What the service wants of a hub, and how soon the hub hears of it.

use std::time::{Duration, Instant};

use hub_tests::{
    Backend, Call, Client, Options, Reply, SimulatedHub, Tenant, TestApp, assert_at_once,
    on_each_database,
};
use reqwest::header::IF_NONE_MATCH;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

fn path(hub: &SimulatedHub) -> String {
    format!("/v1/hubs/{}/desired-state", hub.hub_uuid)
}

async fn state(hub: &SimulatedHub) -> Reply {
    hub.client.get(&path(hub)).call().await.expect(200)
}

/// A request that is held until something changes or the time is over.
fn ask(hub: &SimulatedHub, etag: &str, secs: u64) -> JoinHandle<Reply> {
    let request = hub.client.get(&format!("{}?wait={secs}", path(hub)));
    let request = if etag.is_empty() {
        request
    } else {
        request.header(IF_NONE_MATCH, etag)
    };
    tokio::spawn(async move { request.call().await })
}

/// A request that is held, seen to be waiting before this returns. No other wait may end meanwhile.
async fn wait(app: &TestApp, hub: &SimulatedHub, etag: &str, secs: u64) -> JoinHandle<Reply> {
    let waiting = app.app.metrics.hub_waits.get();
    let held = ask(hub, etag, secs);
    while app.app.metrics.hub_waits.get() <= waiting {
        assert!(!held.is_finished(), "it is not held: {:?}", held.await);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    held
}

async fn label(tenant: &Tenant, hub: &SimulatedHub, label: &str) {
    let body = json!({"hubIdentifier": label});
    tenant
        .client
        .patch(&format!("/tenant/hubs/{}", hub.hub_uuid))
        .json(&body)
        .call()
        .await
        .expect(200);
}

fn revision(reply: &Reply) -> i64 {
    reply.json()["data"]["revision"]
        .as_i64()
        .expect("a revision")
}

on_each_database!(every_change_creates_a_new_revision_and_etag);
async fn every_change_creates_a_new_revision_and_etag(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let first = state(&hub).await;
    let data = &first.json()["data"];
    assert_eq!(
        (&data["agent"], &data["apps"], &data["jobs"]),
        (&json!({}), &json!([]), &json!([]))
    );
    assert_eq!(data["settings"]["adapterRoles"], json!({}));
    assert_eq!(data["settings"]["hubIdentifier"], Value::Null);
    let etag = first.header("etag").to_owned();
    assert!(
        etag.starts_with('"') && etag.len() > 2,
        "a strong tag: {etag}"
    );
    assert_eq!(state(&hub).await.header("etag"), etag, "nothing changed");

    let with = async |value: &str| {
        hub.client
            .get(&path(&hub))
            .header(IF_NONE_MATCH, value)
            .call()
            .await
    };
    for value in [
        etag.as_str(),
        "*",
        &format!("\"x\", {etag}"),
        &format!("W/{etag}"),
    ] {
        let reply = with(value).await.expect(304);
        assert_eq!(
            (reply.header("etag"), reply.body.as_str()),
            (etag.as_str(), ""),
            "{value}"
        );
    }
    for value in ["\"x\"", "x", "", &etag[1..etag.len() - 1]] {
        with(value).await.expect(200);
    }

    label(&tenant, &hub, "Gate 7").await;
    let second = with(&etag).await.expect(200);
    assert!(revision(&second) > revision(&first));
    assert_eq!(second.json()["data"]["settings"]["hubIdentifier"], "Gate 7");

    let adapters =
        json!({"adapters": [{"address": "00:1a:7d:da:71:13", "name": "hci0", "powered": true}]});
    hub.client
        .post("/v1/hubs/adapters")
        .json(&adapters)
        .call()
        .await
        .expect(200);
    assert_eq!(
        state(&hub).await.header("etag"),
        second.header("etag"),
        "a report is no wish"
    );
    let adapter = format!("/tenant/hubs/{}/adapters/00:1A:7D:DA:71:13", hub.hub_uuid);
    tenant
        .client
        .patch(&adapter)
        .json(&json!({"role": "DISABLED"}))
        .call()
        .await
        .expect(200);
    let third = with(second.header("etag")).await.expect(200);
    assert!(revision(&third) > revision(&second));
    let roles = &third.json()["data"]["settings"]["adapterRoles"];
    assert_eq!(roles, &json!({"00:1A:7D:DA:71:13": "DISABLED"}));
}

on_each_database!(waiting_hub_receives_a_change_at_once);
async fn waiting_hub_receives_a_change_at_once(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let other = SimulatedHub::claim(&tenant).await;
    let mut etag = state(&hub).await.header("etag").to_owned();
    let bystander = wait(&app, &other, state(&other).await.header("etag"), 50).await;
    let mut times = Vec::new();
    for round in 0..12 {
        let known = [etag.as_str(), "", "*"][round % 3];
        let mut held = wait(&app, &hub, known, 50).await;
        let mut changes = 0;
        let (reply, wanted) = loop {
            changes += 1;
            let wanted = format!("Gate {round}.{changes}");
            label(&tenant, &hub, &wanted).await;
            let changed = Instant::now();
            // A request that names no version waits for what comes after its first look at the
            // state, and this change may have come before.
            match tokio::time::timeout(Duration::from_secs(5), &mut held).await {
                Err(_) if changes < 3 && round % 3 != 0 => {}
                reply => {
                    times.push(changed.elapsed());
                    break (reply.expect("in time").expect("an answer"), wanted);
                }
            }
        };
        let reply = reply.expect(200);
        assert_eq!(reply.json()["data"]["settings"]["hubIdentifier"], wanted);
        etag = reply.header("etag").to_owned();
    }
    assert_at_once(times);
    assert!(
        !bystander.is_finished(),
        "what concerns one hub wakes no other"
    );
    bystander.abort();
}

on_each_database!(waiting_hub_receives_a_change_of_another_replica);
async fn waiting_hub_receives_a_change_of_another_replica(backend: Backend) {
    let app = TestApp::new(backend).await;
    let replica = TestApp::replica_of(&app, Options::default()).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let held = wait(&app, &hub, state(&hub).await.header("etag"), 50).await;
    let body = json!({"hubIdentifier": "Gate 7"});
    let client: Client = tenant.client.at(&replica.url);
    client
        .patch(&format!("/tenant/hubs/{}", hub.hub_uuid))
        .json(&body)
        .call()
        .await
        .expect(200);
    let changed = Instant::now();
    held.await.expect("an answer").expect(200);
    assert!(
        changed.elapsed() < Duration::from_secs(10),
        "{:?}",
        changed.elapsed()
    );
}

on_each_database!(wait_ends_on_timeout_block_and_shutdown);
async fn wait_ends_on_timeout_block_and_shutdown(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let etag = state(&hub).await.header("etag").to_owned();
    let began = Instant::now();
    wait(&app, &hub, &etag, 1)
        .await
        .await
        .expect("an answer")
        .expect(304);
    assert!(
        began.elapsed() >= Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    let unnamed = wait(&app, &hub, "", 1)
        .await
        .await
        .expect("an answer")
        .expect(200);
    assert_eq!(unnamed.header("etag"), etag);

    let held = wait(&app, &hub, &etag, 50).await;
    let admin = tenant.owner.as_platform_admin(&app);
    admin
        .post(&format!("/platform/hubs/{}/block", hub.hub_uuid))
        .call()
        .await
        .expect(200);
    held.await.expect("an answer").expect(401);

    let other = SimulatedHub::claim(&tenant).await;
    let held = wait(&app, &other, state(&other).await.header("etag"), 50).await;
    app.app.shutdown.cancel();
    held.await.expect("an answer").expect(304);
}

on_each_database!(waiting_hubs_hold_no_database_connection);
async fn waiting_hubs_hold_no_database_connection(backend: Backend) {
    const HUBS: usize = 200;
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let code = tenant.claim_code_for(HUBS as u32).await;
    let mut waits = Vec::new();
    for index in 0..HUBS {
        let hub = SimulatedHub::claim_with(&app.client(), &code, &index.to_string()).await;
        let held = ask(&hub, state(&hub).await.header("etag"), 50);
        waits.push((hub, held));
    }
    // The pauses of hubs change with their number, which ends waits.
    let deadline = Instant::now() + Duration::from_secs(40);
    while app.app.metrics.hub_waits.get() != HUBS as i64 {
        for (hub, held) in &mut waits {
            if held.is_finished() {
                *held = ask(hub, state(hub).await.header("etag"), 50);
            }
        }
        assert!(Instant::now() < deadline, "not all hubs are held");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for (hub, _) in waits.iter().step_by(20) {
        label(&tenant, hub, "news").await;
    }
    for (index, (_, held)) in waits.into_iter().enumerate() {
        match index % 20 {
            0 => drop(held.await.expect("an answer").expect(200)),
            _ => held.abort(),
        }
    }
}

on_each_database!(hub_reads_only_its_own_desired_state_within_the_longest_wait);
async fn hub_reads_only_its_own_desired_state_within_the_longest_wait(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let other = SimulatedHub::claim(&tenant).await;
    hub.client.get(&path(&other)).call().await.expect(403);
    app.client().get(&path(&hub)).call().await.expect(401);
    tenant.client.get(&path(&hub)).call().await.expect(401);
    let problem = hub
        .client
        .get("/v1/hubs/x/desired-state")
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(problem.errors[0].field, "hubUuid");
    for value in ["56", "-1", "1.5", "x", "99999999999999999999"] {
        let problem = hub
            .client
            .get(&format!("{}?wait={value}", path(&hub)))
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, "wait", "{value}");
    }
}

on_each_database!(a_reconnected_hub_waits_in_place_of_its_earlier_request);
/// A hub that has lost its connection asks again while the service still holds its earlier request.
async fn a_reconnected_hub_waits_in_place_of_its_earlier_request(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let etag = state(&hub).await.header("etag").to_owned();
    let ask = |etag: &str| {
        let request = hub
            .client
            .get(&format!("{}?wait=50", path(&hub)))
            .header(IF_NONE_MATCH, etag);
        tokio::spawn(async move { request.call().await })
    };
    let mut held = wait(&app, &hub, &etag, 50).await;
    for _ in 0..20 {
        let next = ask(&etag);
        held.await.expect("an answer").expect(304);
        held = next;
    }
    assert_eq!(
        app.app.metrics.hub_waits.get(),
        1,
        "a hub has one request that is held"
    );
    label(&tenant, &hub, "Gate 7").await;
    assert_eq!(
        held.await.expect("an answer").expect(200).json()["data"]["settings"]["hubIdentifier"],
        "Gate 7"
    );
}

on_each_database!(scan_configuration_and_connection_test_answer_hubs);
async fn scan_configuration_and_connection_test_answer_hubs(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let config = hub
        .client
        .get("/v1/hubs/scan-config")
        .call()
        .await
        .expect(200);
    let data: Value = config.data();
    for list in ["devices", "identifiers", "protocols", "routes"] {
        assert_eq!(data[list], json!([]));
    }
    assert_eq!(
        data["revision"],
        state(&hub).await.json()["data"]["scanConfigRevision"]
    );
    let again = hub
        .client
        .get("/v1/hubs/scan-config")
        .header(IF_NONE_MATCH, config.header("etag"));
    again.call().await.expect(304);
    let test: Value = hub.client.get("/v1/test").call().await.expect(200).data();
    assert_eq!(
        (&test["hubUuid"], &test["tenantUuid"]),
        (&json!(hub.hub_uuid), &json!(tenant.tenant_uuid))
    );
    for path in ["/v1/hubs/scan-config", "/v1/test"] {
        app.client().get(path).call().await.expect(401);
        tenant.client.get(path).call().await.expect(401);
    }
}
