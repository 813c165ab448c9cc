//! `/v1/hubs/scan-config`: what hubs get to recognise devices, and how soon they hear of changes.

use std::time::{Duration, Instant};

use hub_adverts::catalog::Catalog;
use hub_adverts::library;
use hub_base::db::sql;
use hub_protocol::scan_config::ScanConfig;
use hub_tests::devices::{make_device, make_model};
use hub_tests::{Backend, Call, Options, Reply, SimulatedHub, Tenant, TestApp, on_each_database};
use reqwest::header::{ACCEPT_ENCODING, IF_NONE_MATCH};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::ble_routes::put;
use super::device_catalog::{patch, post, text};

const CONFIG: &str = "/v1/hubs/scan-config";

async fn config(hub: &SimulatedHub) -> Reply {
    hub.client.get(CONFIG).call().await.expect(200)
}

fn instances(config: &Value) -> Vec<i64> {
    let devices = config["devices"].as_array().expect("devices");
    devices
        .iter()
        .filter_map(|device| device["deviceInstanceId"].as_i64())
        .collect()
}

pub async fn is_near(app: &TestApp, tenant: &Tenant, device: &Value, hub: &SimulatedHub) {
    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql(
        "INSERT INTO device_states (device_instance_id, tenant_uuid, nearest_hub_uuid, state) \
         VALUES ($1, $2, $3, '{}')",
    )
    .bind((
        device["deviceInstanceId"].as_i64().expect("an id"),
        tenant.tenant_uuid,
        hub.hub_uuid,
    ))
    .run(&mut tx)
    .await
    .expect("a state");
    tx.commit_unaudited("a test").await.expect("a commit");
}

on_each_database!(hub_gets_what_it_needs_and_no_more);
async fn hub_gets_what_it_needs_and_no_more(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let (hub, far) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    let empty = config(&hub).await;
    let nothing = json!({"revision": 0, "devices": [], "identifiers": [], "protocols": [], "routes": [], "otherwise": "FORWARD", "keys": []});
    assert_eq!(empty.json()["data"], nothing);

    let model = post(
        &tenant.client,
        "/tenant/device-catalog",
        &json!({"template": "ruuvi/ruuvitag"}),
    )
    .await;
    let model_uuid = text(&model["deviceUuid"]).parse().expect("a uuid");
    let calibration = json!({"temperature": {"offset": -0.5}});
    let key = "00112233445566778899aabbccddeeff";
    let plain = json!({"name": "freezer", "address": "F4:1F:0C:28:CB:D6", "calibration": calibration, "bindKey": key});
    let device = make_device(&tenant, model_uuid, plain).await;
    let id = device["deviceInstanceId"].as_i64().expect("an id");
    is_near(&app, &tenant, &device, &hub).await;
    let retired = make_device(&tenant, model_uuid, json!({"address": "F4:1F:0C:28:CB:D7"})).await;
    let path = format!("/tenant/devices/{}/retire", retired["deviceInstanceId"]);
    tenant.client.post(&path).call().await.expect(200);

    let found = config(&hub).await;
    let data = &found.json()["data"];
    assert_eq!(
        data["devices"].as_array().map(Vec::len),
        Some(1),
        "without rules, hubs know models only"
    );
    assert_eq!(data["devices"][0]["deviceUuid"], model["deviceUuid"]);
    assert_eq!(data["devices"][0]["expectedIntervalSeconds"], 10);
    assert_eq!(data["identifiers"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        data["protocols"][0]["definition"],
        json!({"decoder": "ruuvi"})
    );
    assert_eq!(
        data["devices"][0]["deviceProtocolId"],
        data["protocols"][0]["deviceProtocolId"]
    );
    assert_eq!(data["keys"], json!([]));
    let read: ScanConfig = found.data();
    let catalog = Catalog::from_scan_config(&read).expect("a catalog");
    let test = &library::model("ruuvi/ruuvitag").expect("a model").tests[0];
    let read = test
        .frame
        .with(|frame| catalog.read(frame, &mut Vec::new()).status);
    assert_eq!(read, hub_adverts::catalog::Status::Decoded);

    let company = json!({"layer": "HUB", "match": {"companyId": "004c"}, "action": "DROP"});
    let cloud = json!({"layer": "CLOUD", "match": {"known": true}, "action": "FORWARD"});
    put(
        &tenant,
        &json!({"rules": [company, cloud], "otherwise": "DROP"}),
    )
    .await;
    let data = config(&hub).await.json()["data"].clone();
    assert_eq!(instances(&data), [id], "live devices alone");
    assert_eq!(data["routes"], json!([company]));
    assert_eq!(
        (&data["otherwise"], &data["keys"]),
        (&json!("FORWARD"), &json!([]))
    );

    let reading = json!({"layer": "HUB", "match": {"known": true}, "action": "ON_CHANGE", "quantities": {"temperature": 0.1}});
    put(&tenant, &json!({"rules": [reading], "otherwise": "DROP"})).await;
    let (near, other) = (config(&hub).await, config(&far).await);
    let data = near.json()["data"].clone();
    assert_eq!(data["otherwise"], "DROP");
    assert_eq!(
        data["keys"],
        json!([{"deviceInstanceId": id, "bindKey": key}]),
        "keys of the devices near by"
    );
    let instance = &data["devices"][1];
    assert_eq!(
        (&instance["address"], &instance["name"]),
        (&json!("F4:1F:0C:28:CB:D6"), &json!("freezer"))
    );
    assert_eq!(
        instance["calibration"],
        json!({"temperature": {"offset": -0.5, "scale": 1.0}})
    );
    assert_eq!(near.header("cache-control"), "no-store");
    assert_eq!(other.json()["data"]["keys"], json!([]));
    assert_ne!(near.header("etag"), other.header("etag"));
    for (hub, reply) in [(&hub, &near), (&far, &other)] {
        let known = hub
            .client
            .get(CONFIG)
            .header(IF_NONE_MATCH, reply.header("etag"));
        assert_eq!(
            known.call().await.expect(304).header("etag"),
            reply.header("etag")
        );
    }
    patch(
        &tenant.client,
        &format!("/tenant/devices/{id}"),
        &json!({"bindKey": "ff".repeat(16)}),
    )
    .await;
    let changed = hub
        .client
        .get(CONFIG)
        .header(IF_NONE_MATCH, near.header("etag"))
        .call()
        .await
        .expect(200);
    assert_eq!(
        changed.json()["data"]["keys"][0]["bindKey"],
        "ff".repeat(16)
    );

    let stranger = SimulatedHub::claim(&Tenant::create(&app.client()).await).await;
    assert_eq!(config(&stranger).await.json()["data"], nothing);
}

on_each_database!(a_changed_catalog_reaches_waiting_hubs);
async fn a_changed_catalog_reaches_waiting_hubs(backend: Backend) {
    const HUBS: usize = 30;
    let app = TestApp::new(backend).await;
    let replica = TestApp::replica_of(&app, Options::default()).await;
    let tenant = Tenant::create(&app.client()).await;
    let other = SimulatedHub::claim(&Tenant::create(&app.client()).await).await;
    let code = tenant.claim_code_for(HUBS as u32).await;
    let mut waiting = JoinSet::new();
    for index in 0..HUBS {
        let hub = SimulatedHub::claim_with(&app.client(), &code, &index.to_string()).await;
        waiting.spawn(until_configured(hub));
    }
    let bystander = tokio::spawn(until_configured(other));
    while app.app.metrics.hub_waits.get() <= HUBS as i64 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // By the other replica, as by any.
    let client = tenant.client.at(&replica.url);
    post(
        &client,
        "/tenant/device-catalog",
        &json!({"name": "Thermometer"}),
    )
    .await;
    let changed = Instant::now();
    while let Some(hub) = waiting.join_next().await {
        let hub = hub.expect("a hub that has heard of it");
        assert_eq!(config(&hub).await.json()["data"]["revision"], 1);
    }
    assert!(
        changed.elapsed() < Duration::from_secs(10),
        "{:?}",
        changed.elapsed()
    );
    assert!(
        !bystander.is_finished(),
        "the catalog of one tenant concerns no other"
    );
    bystander.abort();
}

/// Waits for changes as an agent does, until there is something in the scan configuration.
async fn until_configured(hub: SimulatedHub) -> SimulatedHub {
    let path = format!("/v1/hubs/{}/desired-state", hub.hub_uuid);
    let mut state = hub.client.get(&path).call().await.expect(200);
    while state.json()["data"]["scanConfigRevision"] == 0 {
        let etag = state.header("etag").to_owned();
        let changed = hub
            .client
            .get(&format!("{path}?wait=50"))
            .header(IF_NONE_MATCH, etag)
            .call()
            .await;
        state = changed.expect(200);
    }
    hub
}

on_each_database!(document_is_shared_compressed);
async fn document_is_shared_compressed(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    make_model(&tenant, &"Thermometer ".repeat(16)).await;
    let packed = hub
        .client
        .get(CONFIG)
        .header(ACCEPT_ENCODING, "zstd")
        .send()
        .await
        .expect("an answer");
    assert_eq!(packed.headers()["content-encoding"], "zstd");
    let etag = packed.headers()["etag"].to_str().expect("text").to_owned();
    assert!(etag.ends_with("-zstd\""), "{etag}");
    let bytes = packed.bytes().await.expect("bytes");
    let unpacked = zstd::stream::decode_all(&bytes[..]).expect("zstd");
    let plain = hub
        .client
        .get(CONFIG)
        .header(ACCEPT_ENCODING, "identity")
        .call()
        .await
        .expect(200);
    assert_eq!(unpacked, plain.body.as_bytes());
    hub.client
        .get(CONFIG)
        .header(IF_NONE_MATCH, etag)
        .call()
        .await
        .expect(304);
}
