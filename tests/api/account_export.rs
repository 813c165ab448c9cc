//! `GET /app/export`: everything of the caller, nothing of anybody else, in bounded memory.

use std::time::{Duration, Instant};

use hub_ingest::{ProcessingStatus, Record};
use hub_tests::devices::{make_device, make_model, put_state};
use hub_tests::events;
use hub_tests::{
    Backend, Call, Client, Person, Reply, SimulatedHub, Tenant, TestApp, on_each_database,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::supplier_links::Linking;

async fn exported(client: &Client) -> Vec<Value> {
    lines_of(&client.get("/app/export").call().await.expect(200))
}

fn lines_of(reply: &Reply) -> Vec<Value> {
    assert_eq!(reply.header("content-type"), "application/x-ndjson");
    reply
        .body
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect()
}

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines
        .iter()
        .filter(|line| line["type"] == kind)
        .map(|line| &line["data"])
        .collect()
}

async fn hub_of(app: &TestApp, tenant: &Tenant, person: &Person) -> SimulatedHub {
    let body = json!({"ownerUserUuid": person.login.user_uuid});
    let code: Value = tenant
        .client
        .post("/tenant/hubs/claim-codes")
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    SimulatedHub::claim_with(
        &app.client(),
        code["claimCode"].as_str().expect("a code"),
        &Uuid::new_v4().to_string(),
    )
    .await
}

/// Events of a device with a value each, from an id on.
async fn put_events(
    app: &TestApp,
    tenant: &Tenant,
    hub: &SimulatedHub,
    device: i64,
    first: i64,
    count: i64,
) {
    let record = |_| {
        let event = json!({"observedAt": "2026-11-23T10:00:00.000000Z", "address": "C4:11:7D:DA:71:13", "rssi": -60});
        let reading = json!({"values": {"temperature": 21.5}});
        Record {
            device_instance_id: Some(device),
            processing_status: ProcessingStatus::Decoded,
            reading: Some(reading.to_string().into()),
            ..Record::new(event.to_string().into())
        }
    };
    let records: Vec<Record> = (0..count).map(record).collect();
    let of = (tenant.tenant_uuid, hub.hub_uuid);
    events::put(&app.app.db, of, first, &records).await;
}

on_each_database!(an_export_has_all_of_the_caller_and_nothing_of_others);
async fn an_export_has_all_of_the_caller_and_nothing_of_others(backend: Backend) {
    let linking = Linking::new(backend).await;
    let (app, tenant, person) = (&linking.app, &linking.tenant, &linking.person);
    linking.link().await;
    let asked = json!({"version": "1", "text": "We read your sensors.", "enforce": false,
        "purposes": [{"key": "monitoring", "title": "Show you values", "required": true, "defaultRetentionDays": 30}]});
    tenant
        .client
        .post("/tenant/consent-settings")
        .json(&asked)
        .call()
        .await
        .expect(200);
    let grant =
        json!({"supplierUuid": tenant.tenant_uuid, "version": "1", "purposes": ["monitoring"]});
    person
        .client
        .post("/app/consent")
        .json(&grant)
        .call()
        .await
        .expect(200);
    person
        .client
        .put("/app/profile")
        .json(&json!({"nickname": "Ada"}))
        .call()
        .await
        .expect(200);
    let own = hub_of(app, tenant, person).await;
    let other = Person::register(&app.client()).await;
    let foreign = hub_of(app, tenant, &other).await;
    let model = make_model(tenant, "Thermometer").await;
    let mut devices = Vec::new();
    for (hub, address) in [(&own, "C4:11:7D:DA:71:13"), (&foreign, "C4:11:7D:DA:71:14")] {
        let made = make_device(tenant, model, json!({"address": address, "name": address})).await;
        let id = made["deviceInstanceId"].as_i64().expect("an id");
        put_state(
            app,
            tenant,
            id,
            hub.hub_uuid,
            app.app.clock.now(),
            &json!({}),
        )
        .await;
        devices.push(id);
    }
    let since = app.app.clock.now().as_micros();
    // Before the hub was theirs, and more than one page after that.
    put_events(app, tenant, &own, devices[0], since - 100, 50).await;
    put_events(app, tenant, &own, devices[0], since + 1, 1203).await;
    put_events(app, tenant, &foreign, devices[1], since + 5000, 7).await;

    let lines = exported(&person.client).await;
    assert_eq!(of_type(&lines, "profile")[0]["nickname"], "Ada");
    assert_eq!(of_type(&lines, "profile")[0]["email"], json!(person.email));
    assert_eq!(of_type(&lines, "hub").len(), 1);
    assert_eq!(of_type(&lines, "hub")[0]["hubUuid"], json!(own.hub_uuid));
    assert_eq!(
        of_type(&lines, "device")[0]["deviceInstanceId"],
        json!(devices[0])
    );
    let consents = of_type(&lines, "consent");
    assert_eq!(
        (consents.len(), &consents[0]["retentionDays"]),
        (1, &json!(30))
    );
    assert!(
        consents[0]["receipt"]
            .as_str()
            .is_some_and(|receipt| receipt.split('.').count() == 3)
    );
    assert_eq!(of_type(&lines, "supplierLink").len(), 1);
    let values = of_type(&lines, "sensorData");
    assert_eq!(values.len(), 1203);
    let ids: Vec<i64> = values
        .iter()
        .filter_map(|value| value["bleEventId"].as_i64())
        .collect();
    assert!(
        ids.is_sorted() && ids.first().is_some_and(|id| *id > since),
        "since the hub is theirs, oldest first"
    );
    assert_eq!(values[0]["values"]["temperature"], json!(21.5));
    assert_eq!(values[0]["deviceInstanceId"], json!(devices[0]));
    let end = lines.last().expect("a line");
    assert_eq!(
        (&end["type"], &end["data"]["lines"]),
        (&json!("end"), &json!(lines.len() - 1))
    );
    let text = lines.iter().map(Value::to_string).collect::<String>();
    for hidden in [
        "the-access-token",
        "the-refresh-token",
        &foreign.hub_uuid.to_string(),
        &other.email,
        "71:14",
    ] {
        assert!(!text.contains(hidden), "{hidden} is nobody's business");
    }
    let theirs = exported(&other.client).await;
    assert_eq!(of_type(&theirs, "sensorData").len(), 7);
    assert!(of_type(&theirs, "consent").is_empty());
    app.client().get("/app/export").call().await.expect(401);
}

on_each_database!(exports_that_nobody_reads_hold_no_connection);
async fn exports_that_nobody_reads_hold_no_connection(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let person = Person::register(&app.client()).await;
    let own = hub_of(&app, &tenant, &person).await;
    let model = make_model(&tenant, "Thermometer").await;
    let made = make_device(&tenant, model, json!({"address": "C4:11:7D:DA:71:13"})).await;
    let id = made["deviceInstanceId"].as_i64().expect("an id");
    let now = app.app.clock.now();
    put_state(&app, &tenant, id, own.hub_uuid, now, &json!({})).await;
    put_events(&app, &tenant, &own, id, now.as_micros() + 1, 20_000).await;
    let mut open = Vec::new();
    for _ in 0..40 {
        let reply = person
            .client
            .get("/app/export")
            .send()
            .await
            .expect("an answer");
        assert!(
            reply.status() == 200 || reply.status() == 503,
            "{}",
            reply.status()
        );
        open.push(reply);
    }
    let refused = open.iter().filter(|reply| reply.status() == 503).count();
    for _ in 0..20 {
        person.client.get("/app/profile").call().await.expect(200);
    }
    println!("{refused} of 40 exports at a time were refused");
    drop(open);
    // The service learns of it when it next sends to one of them.
    let dropped_at = Instant::now();
    let reply = loop {
        let reply = person.client.get("/app/export").call().await;
        if reply.status != 503 {
            break reply.expect(200);
        }
        assert!(
            dropped_at.elapsed() < Duration::from_secs(60),
            "exports that nobody reads are still held"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let lines = lines_of(&reply);
    assert_eq!(of_type(&lines, "sensorData").len(), 20_000);
}
