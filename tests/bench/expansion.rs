//! *expansion*: claims with a bundle of 20 apps, 50 device models and 10 pipelines, beside claims
//! with an empty bundle and claims without any. The releases are rows alone: nothing is installed.

use std::time::{Duration, Instant};

use hub_base::db::sql;
use hub_tests::devices::make_model;
use hub_tests::{Backend, Call, Tenant, TestApp, release};
use serde_json::{Value, json};
use uuid::Uuid;

const APPS: usize = 20;
const DEVICES: usize = 50;
const PIPELINES: usize = 10;
const CLAIMS: usize = 200;
const WANTED: Duration = Duration::from_millis(50);
const BUNDLES: &str = "/tenant/supplier-bundles";

pub async fn run(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let full = full(&app, &tenant).await;
    let empty = publish(&tenant, &draft(&tenant).await).await;
    println!(
        "expansion {backend:?}: {APPS} apps, {DEVICES} device models, {PIPELINES} pipelines; {CLAIMS} claims each"
    );
    let codes = [
        json!({}),
        json!({"bundleUuid": empty}),
        json!({"bundleUuid": full}),
    ];
    let mut times: [Vec<Duration>; 3] = Default::default();
    let mut made = Vec::new();
    for mut body in codes {
        body["maxUses"] = json!(CLAIMS);
        let code: Value = tenant
            .client
            .post("/tenant/hubs/claim-codes")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        made.push(code["claimCode"].clone());
    }
    // By turns, so that all meet the same conditions.
    let client = app.client();
    for round in 0..CLAIMS {
        for (kind, code) in made.iter().enumerate() {
            let body = json!({"claimCode": code, "deviceInstanceId": format!("{kind} {round}")});
            let begun = Instant::now();
            client
                .post("/v1/hubs/claim")
                .json(&body)
                .call()
                .await
                .expect(201);
            times[kind].push(begun.elapsed());
        }
    }
    let [without, _, _] = times.each_ref().map(|times| percentile(times, 50));
    for (name, times) in ["without", "with an empty bundle", "with the bundle"]
        .into_iter()
        .zip(&times)
    {
        let (p50, p90) = (percentile(times, 50), percentile(times, 90));
        let ratio = p50.as_secs_f64() / without.as_secs_f64();
        let mark = if p90 > WANTED { "  TOO SLOW" } else { "" };
        println!(
            "    {p50:>9.2?} {p90:>9.2?}  {name}: {ratio:.2} times (wanted: {WANTED:?}){mark}"
        );
    }
}

fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

async fn draft(tenant: &Tenant) -> String {
    let made: Value = tenant
        .client
        .post(BUNDLES)
        .json(&json!({"name": "Hall"}))
        .call()
        .await
        .expect(200)
        .data();
    made["bundleUuid"].as_str().expect("a uuid").to_owned()
}

async fn publish(tenant: &Tenant, bundle: &str) -> String {
    tenant
        .client
        .post(&format!("{BUNDLES}/{bundle}/publish"))
        .call()
        .await
        .expect(200);
    bundle.to_owned()
}

async fn full(app: &TestApp, tenant: &Tenant) -> String {
    let bundle = draft(tenant).await;
    let (mut apps, mut devices, mut pipelines) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..APPS {
        let app_uuid = release::make_app(tenant, &format!("app-{number}")).await;
        for version in 1..=5 {
            ready_release(app, tenant, app_uuid.0, version).await;
        }
        apps.push(json!({"appUuid": app_uuid}));
    }
    for number in 0..DEVICES {
        devices.push(json!({"deviceUuid": make_model(tenant, &format!("Model {number}")).await}));
    }
    for number in 0..PIPELINES {
        let body = json!({
            "name": format!("Pipeline {number}"), "enabled": false, "source": {"boundHubs": true},
            "destination": {"kind": "HTTP", "url": "https://example.com/in"},
        });
        let made: Value = tenant
            .client
            .post("/tenant/data-pipelines")
            .json(&body)
            .call()
            .await
            .expect(201)
            .data();
        pipelines.push(made["pipelineUuid"].clone());
    }
    for (part, items) in [
        ("apps", apps),
        ("devices", devices),
        ("pipelines", pipelines),
    ] {
        tenant
            .client
            .put(&format!("{BUNDLES}/{bundle}/{part}"))
            .json(&items)
            .call()
            .await
            .expect(200);
    }
    publish(tenant, &bundle).await
}

async fn ready_release(app: &TestApp, tenant: &Tenant, app_uuid: Uuid, counter: i64) {
    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql(
        "INSERT INTO app_releases (release_uuid, tenant_uuid, app_uuid, version, architecture, \
         counter, size_bytes, sha256, downgrade, manifest, signature, status, created_at, \
         ready_at) \
         VALUES ($1, $2, $3, $4, 'any', $5, 1, '', FALSE, '', '', 'READY', $6, $6)",
    )
    .bind((
        Uuid::new_v4(),
        tenant.tenant_uuid,
        app_uuid,
        format!("1.{counter}.0"),
        counter,
        app.app.clock.now(),
    ))
    .execute(&mut tx)
    .await
    .expect("a row");
    tx.commit_unaudited("a bench's own set-up")
        .await
        .expect("a commit");
}
