//! `/tenant/ble/unknown`, and models made from it.

use std::sync::atomic::Ordering;

use hub_base::clock::Clock;
use hub_base::db::sql;
use hub_devices::unknown_advertisers::{self, MAX_ADVERTISERS, Seen};
use hub_protocol::{HubUuid, Timestamp};
use hub_tests::app::set_clock;
use hub_tests::{Backend, Call, Options, Reply, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

const PATH: &str = "/tenant/ble/unknown";
const NOW: Timestamp = Timestamp::from_micros(1_800_014_400_000_000);

/// An advertiser with this number in its address, heard once by the hub at a time.
fn seen(number: usize, hub_uuid: HubUuid, secs: i64, advertisement: Value) -> Seen {
    let address = format!("C4:11:7D:DA:{:02X}:{:02X}", number / 256, number % 256);
    let mut sample = advertisement;
    sample["address"] = json!(address);
    Seen {
        key: address.clone(),
        address,
        address_type: Some("random".to_owned()),
        name: sample["name"].as_str().map(str::to_owned),
        company_id: sample["manufacturerData"]["0499"].as_str().map(|_| 0x0499),
        service_uuids: Vec::new(),
        count: 1,
        hub_uuids: vec![hub_uuid],
        rssi_max: Some(-60),
        first_seen_at: NOW.plus_secs(secs),
        last_seen_at: NOW.plus_secs(secs),
        sample: sample.to_string(),
        device_uuid: None,
        unread_reason: None,
    }
}

async fn record(app: &TestApp, tenant: &Tenant, seen: Vec<Seen>) {
    let mut tx = app.app.db.begin().await.expect("a transaction");
    unknown_advertisers::record(&mut tx, tenant.tenant_uuid, seen)
        .await
        .expect("recorded");
    tx.commit_unaudited("a test").await.expect("a commit");
}

async fn list(tenant: &Tenant, query: &str) -> Vec<Value> {
    tenant
        .client
        .get(&format!("{PATH}?{query}"))
        .call()
        .await
        .expect(200)
        .data()
}

async fn start(
    backend: Backend,
) -> (
    TestApp,
    Tenant,
    std::sync::Arc<std::sync::atomic::AtomicI64>,
) {
    let (clock, micros) = set_clock(NOW);
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let mut tenant = Tenant::create(&app.client()).await;
    // A key does not expire.
    tenant.client = tenant.api_key(json!({"scopes": ["*"]})).await.client;
    (app, tenant, micros)
}

/// Ruuvi's format 5, in base64.
const RUUVI: &str = "BRL8U5TDfAAE//wEDKw2QgDNy7gzTIhP";

on_each_database!(unknown_advertisers_are_counted_together_and_listed);
async fn unknown_advertisers_are_counted_together_and_listed(backend: Backend) {
    let (app, tenant, micros) = start(backend).await;
    let (one, two) = (HubUuid(Uuid::from_u128(1)), HubUuid(Uuid::from_u128(2)));
    let ruuvi = json!({"manufacturerData": {"0499": RUUVI}, "rssi": -60});
    record(
        &app,
        &tenant,
        vec![
            seen(1, one, -100, json!({"name": "Ünknown %"})),
            seen(2, one, -90, ruuvi.clone()),
        ],
    )
    .await;
    let mut again = seen(1, two, -50, json!({}));
    again.rssi_max = Some(-40);
    record(&app, &tenant, vec![again, seen(1, one, -200, json!({}))]).await;

    let listed = list(&tenant, "").await;
    let mut sample = ruuvi;
    sample["address"] = json!("C4:11:7D:DA:00:02");
    let ruuvi = json!({
        "address": "C4:11:7D:DA:00:02", "addressType": "random", "name": null, "companyId": "0499", "companyName": "Ruuvi",
        "serviceUuids": [], "count": 1, "hubUuids": [one], "rssiMax": -60, "firstSeenAt": NOW.plus_secs(-90),
        "lastSeenAt": NOW.plus_secs(-90), "sample": sample, "deviceUuid": null, "unreadReason": null, "suggestions": ["ruuvi/ruuvitag"],
    });
    assert_eq!(listed[1], ruuvi);
    let other = &listed[0];
    assert_eq!(
        (&other["name"], &other["count"], &other["rssiMax"]),
        (&json!("Ünknown %"), &json!(3), &json!(-40))
    );
    assert_eq!(
        (&other["firstSeenAt"], &other["lastSeenAt"]),
        (&json!(NOW.plus_secs(-200)), &json!(NOW.plus_secs(-50)))
    );
    let mut hubs: Vec<HubUuid> = serde_json::from_value(other["hubUuids"].clone()).expect("uuids");
    hubs.sort_unstable();
    assert_eq!((hubs, &other["suggestions"]), (vec![one, two], &json!([])));

    for (query, found) in [
        ("q=NKNOWN", 1),
        ("q=%25", 1),
        ("q=da:00:02", 1),
        ("q=_", 0),
        ("q=da:00", 2),
    ] {
        assert_eq!(list(&tenant, query).await.len(), found, "{query}");
    }
    assert_eq!(list(&tenant, &format!("hubUuid={two}")).await.len(), 1);
    assert!(
        list(&Tenant::create(&app.client()).await, "")
            .await
            .is_empty()
    );

    micros.fetch_add((24 * 3600 - 70) * 1_000_000, Ordering::Relaxed);
    assert_eq!(
        list(&tenant, "").await.len(),
        1,
        "one was heard more than a day ago"
    );
    let kind = "upkeep.unknown_advertisers";
    hub_tests::app::perform(&app.app, kind, Value::Null).await;
    micros.fetch_sub(24 * 3600 * 1_000_000, Ordering::Relaxed);
    assert_eq!(list(&tenant, "").await.len(), 1, "and is gone");
}

on_each_database!(the_inbox_is_bounded);
async fn the_inbox_is_bounded(backend: Backend) {
    let (app, tenant, _) = start(backend).await;
    let hub = HubUuid(Uuid::from_u128(1));
    let many = |from: usize, to: usize| {
        (from..to)
            .map(|at| seen(at, hub, at as i64 - 5000, json!({})))
            .collect()
    };
    record(&app, &tenant, many(0, 700)).await;
    record(&app, &tenant, many(600, 600 + MAX_ADVERTISERS + 200)).await;
    let reply = tenant
        .client
        .get(&format!("{PATH}?size=1"))
        .call()
        .await
        .expect(200);
    assert_eq!(reply.header("x-total-count"), MAX_ADVERTISERS.to_string());
    assert_eq!(
        reply.data::<Vec<Value>>()[0]["address"],
        "C4:11:7D:DA:07:07",
        "the latest"
    );
    record(&app, &tenant, Vec::new()).await;
}

on_each_database!(an_unknown_advertiser_becomes_a_model);
async fn an_unknown_advertiser_becomes_a_model(backend: Backend) {
    let (app, tenant, _) = start(backend).await;
    let hub = HubUuid(Uuid::from_u128(1));
    let samples = [
        json!({"name": "Desk ", "manufacturerData": {"ffff": "AQID"}}),
        json!({"serviceData": {"fcd9": "QA=="}}),
        json!({"name": "Only a name"}),
        json!({"serviceUuids": ["180d"]}),
        json!({}),
        json!({"manufacturerData": {"0499": RUUVI}}),
    ];
    let seen = samples
        .into_iter()
        .enumerate()
        .map(|(number, sample)| seen(number, hub, -100, sample))
        .collect();
    record(&app, &tenant, seen).await;
    let create = |number: usize, mut body: Value| {
        body["fromUnknown"] = json!(format!("c4:11:7d:da:00:{number:02x}"));
        tenant
            .client
            .post("/tenant/device-catalog")
            .json(&body)
            .call()
    };
    let one = |kind: &str, value: &str| json!({"kind": kind, "value": value});
    for (number, name, conditions) in [
        (
            0,
            "Desk",
            json!([
                one("MANUFACTURER_ID", "ffff"),
                one("PAYLOAD_LENGTH", "ffff:3")
            ]),
        ),
        (
            1,
            "Device C4:11:7D:DA:00:01",
            json!([one("SERVICE_DATA_UUID", "fcd9")]),
        ),
        (2, "Only a name", json!([one("NAME", "Only a name")])),
        (
            3,
            "Device C4:11:7D:DA:00:03",
            json!([one("SERVICE_UUID", "180d")]),
        ),
    ] {
        let model: Value = create(number, json!({})).await.expect(200).data();
        assert_eq!(
            (&model["name"], &model["identifierCount"]),
            (&json!(name), &json!(1))
        );
        let path = format!(
            "/tenant/device-catalog/{}/identifiers",
            model["deviceUuid"].as_str().expect("a uuid")
        );
        let identifiers: Vec<Value> = tenant.client.get(&path).call().await.expect(200).data();
        assert_eq!(identifiers[0]["conditions"], conditions);
    }
    assert_eq!(
        create(0, json!({})).await.expect(409).problem().code,
        "IDENTIFIER_TIE"
    );
    assert_eq!(
        create(4, json!({})).await.expect(400).problem().errors[0].field,
        "fromUnknown"
    );
    assert_eq!(
        create(4, json!({"fromUnknown": 1, "template": "ruuvi/ruuvitag"}))
            .await
            .expect(400)
            .problem()
            .errors[0]
            .field,
        "template"
    );
    create(9, json!({})).await.expect(404);
    let model: Value = create(5, json!({"template": "ruuvi/ruuvitag", "name": "Mine"}))
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&model["name"], &model["template"]),
        (&json!("Mine"), &json!("ruuvi/ruuvitag"))
    );
}

on_each_database!(companies_and_services_have_names);
async fn companies_and_services_have_names(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let list = tenant.client.get("/tenant/ble/names").call().await;
    let names: Value = list.expect(200).data();
    let [companies, services] = [&names["companies"], &names["services"]];
    assert_eq!(
        (&companies["004c"], &companies["0077"]),
        (&json!("Apple"), &json!("Laird Connectivity LLC"))
    );
    assert_eq!(
        (&services["180f"], &services["fcd2"]),
        (&json!("Battery"), &json!("BTHome"))
    );
    app.client()
        .get("/tenant/ble/names")
        .call()
        .await
        .expect(401);
}

/// Uploads one event of each name, from addresses that end in 00, 01, ...
async fn hear(hub: &SimulatedHub, names: &[&str]) -> Reply {
    let event = |(number, name): (usize, &&str)| {
        json!({
            "observedAt": Clock::System.now(), "address": format!("C4:11:7D:DA:00:{number:02X}"),
            "addressType": "random", "name": name,
        })
    };
    let events: Vec<Value> = names.iter().enumerate().map(event).collect();
    let upload = json!({"batchUuid": Uuid::new_v4(), "events": events});
    hub.client.post("/v1/ble/events").json(&upload).call().await
}

// Hubs pass names on as devices send them, also with the character NUL, which PostgreSQL refuses.
on_each_database!(names_with_what_a_database_refuses_keep_no_upload_from_being_stored);
async fn names_with_what_a_database_refuses_keep_no_upload_from_being_stored(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let other = SimulatedHub::claim(&Tenant::create(&app.client()).await).await;
    hear(&hub, &["padded\0\0", "a\0b", "\0"]).await.expect(201);
    // It is written with the uploads of others.
    hear(&other, &["other"]).await.expect(201);
    hear(&hub, &[]).await.expect(201);
    let mut listed = list(&tenant, "").await;
    listed.sort_by_key(|one| one["address"].as_str().map(str::to_owned));
    let names: Vec<&Value> = listed.iter().map(|one| &one["name"]).collect();
    assert_eq!(json!(names), json!(["padded", "a\u{fffd}b", null]));
}

// What is derived from uploads cannot be stored, for whatever reason: they are.
on_each_database!(uploads_are_stored_without_what_cannot_be_derived_from_them);
async fn uploads_are_stored_without_what_cannot_be_derived_from_them(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let db = &app.app.db;
    let rename = |statement: &'static str| async move {
        let mut tx = db.begin().await.expect("a transaction");
        sql(statement).run(&mut tx).await.expect("renamed");
        tx.commit_unaudited("a test").await.expect("a commit");
    };
    rename("ALTER TABLE unknown_advertisers RENAME TO unknown_elsewhere").await;
    hear(&hub, &["lost"]).await.expect(201);
    for _ in 0..3 {
        hear(&hub, &[]).await.expect(201);
    }
    rename("ALTER TABLE unknown_elsewhere RENAME TO unknown_advertisers").await;
    let events = tenant
        .client
        .get("/tenant/ble/events")
        .call()
        .await
        .expect(200);
    assert_eq!(events.data::<Vec<Value>>().len(), 1);
    assert!(list(&tenant, "").await.is_empty());
}
