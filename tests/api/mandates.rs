//! Mandates: what recipients read and get, and from when on they do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hub_base::clock::Clock;
use hub_composed::mandates;
use hub_core::config::Settings;
use hub_outgoing::signing::is_standard_webhook;
use hub_protocol::Timestamp;
use hub_tests::receiver::{Answer, Receiver};
use hub_tests::{Backend, Call, Client, Options, Person, TestApp, on_each_database};
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::{Value, json};

use super::device_commands;
use super::person_stream::{World, address, hear, value, values};
use super::streams::Reader;

const MANDATES: &str = "/app/mandates";
const DEVICES: &str = "/mandate/v1/devices";
const STREAM: &str = "/mandate/v1/stream";

fn soon() -> Timestamp {
    Clock::System.now().plus_secs(24 * 3600)
}

fn body(change: Value) -> Value {
    let mut body = json!({"recipient": {"name": "Adviser"}, "until": soon(), "form": "PULL"});
    for (name, value) in change.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

async fn grant(person: &Person, change: Value) -> Value {
    let request = person.client.post(MANDATES).json(&body(change));
    request.call().await.expect(201).data()
}

/// The client of the recipient of a mandate.
fn recipient(app: &TestApp, granted: &Value) -> Client {
    let credential = granted["credential"].as_str().expect("a credential");
    app.client().bearer(credential)
}

async fn end(person: &Person, granted: &Value) {
    let id = granted["mandateUuid"].as_str().expect("a uuid");
    let path = format!("{MANDATES}/{id}");
    person.client.delete(&path).call().await.expect(200);
}

async fn listed(person: &Person) -> Vec<Value> {
    let list = person.client.get(MANDATES).call().await;
    list.expect(200).data()
}

fn sensor_data(device: i64) -> String {
    format!("/mandate/v1/sensor-data?deviceInstanceId={device}")
}

async fn temperatures(recipient: &Client, device: i64) -> Vec<f64> {
    let items: Vec<Value> = recipient
        .get(&sensor_data(device))
        .call()
        .await
        .expect(200)
        .data();
    let temperature = |item: &Value| item["values"]["temperature"].as_f64();
    items.iter().filter_map(temperature).collect()
}

on_each_database!(a_recipient_reads_what_was_granted_and_nothing_else);
async fn a_recipient_reads_what_was_granted_and_nothing_else(backend: Backend) {
    let world = World::new(backend).await;
    let device = world.device(1).await;
    hear(&world.hub, 1, 2100).await;
    // Another person's hub of the same supplier, with a device of the same model.
    let neighbour = Person::register(&world.app.client()).await;
    let next_door = device_commands::hub_of(&world.app, &world.tenant, &neighbour).await;
    let model = serde_json::from_value(world.model["deviceUuid"].clone()).expect("a uuid");
    let made =
        hub_tests::devices::make_device(&world.tenant, model, json!({"address": address(2)})).await;
    let foreign = made["deviceInstanceId"].as_i64().expect("an id");
    hear(&next_door, 2, 1700).await;

    let granted = grant(&world.person, json!({"hubUuid": world.hub.hub_uuid})).await;
    let recipient = recipient(&world.app, &granted);
    let devices: Vec<Value> = recipient.get(DEVICES).call().await.expect(200).data();
    assert_eq!(devices.len(), 1);
    assert_eq!(devices[0]["deviceInstanceId"], json!(device));
    // What was measured before the mandate is not part of it.
    assert_eq!(devices[0]["state"], json!({}));
    assert_eq!(temperatures(&recipient, device).await, [0.0; 0]);
    hear(&world.hub, 1, 2200).await;
    assert_eq!(temperatures(&recipient, device).await, [22.0]);
    let past = json!({"hubUuid": world.hub.hub_uuid, "from": "2026-01-01T00:00:00Z"});
    let all = grant(&world.person, past).await;
    let of_all = self::recipient(&world.app, &all);
    assert_eq!(temperatures(&of_all, device).await, [22.0, 21.0, 0.0]);

    recipient
        .get(&sensor_data(foreign))
        .call()
        .await
        .expect(404);
    for path in [
        "/app/devices",
        "/app/export",
        "/app/mandates",
        "/auth/sessions",
    ] {
        recipient.get(path).call().await.expect(401);
    }
    let tenant = recipient.tenant(world.tenant.tenant_uuid);
    tenant.get("/tenant/devices").call().await.expect(401);
    // No token of anybody else is a credential.
    for client in [
        &world.person.client,
        &world.hub.client,
        &world.tenant.client,
    ] {
        client.get(DEVICES).call().await.expect(401);
    }
    // The credential is in no later answer, and in no row.
    let credential = granted["credential"].as_str().expect("a credential");
    let shown = json!(listed(&world.person).await).to_string();
    assert!(
        !shown.contains(credential) && !shown.contains("credential"),
        "{shown}"
    );

    let row = &listed(&world.person).await[1];
    assert_eq!(row["status"], json!("IN_FORCE"));
    assert!(row["lastUsedAt"].is_string() && row["lastUsedAddress"] == json!("127.0.0.1"));
    let of_supplier: Vec<Value> = world
        .tenant
        .client
        .get("/tenant/mandates")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(of_supplier[1]["recipient"]["name"], json!("Adviser"));
    assert_eq!(of_supplier[1].get("receipt"), None);
    let others: Vec<Value> = neighbour
        .client
        .get(MANDATES)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(others, Vec::<Value>::new());
}

on_each_database!(quantities_and_devices_limit_a_mandate);
async fn quantities_and_devices_limit_a_mandate(backend: Backend) {
    let world = World::new(backend).await;
    let (one, other) = (world.device(1).await, world.device(2).await);
    let change = json!({
        "deviceInstanceIds": [one], "quantities": ["humidity"], "from": "2026-01-01T00:00:00Z",
    });
    let granted = grant(&world.person, change).await;
    let recipient = recipient(&world.app, &granted);
    let devices: Vec<Value> = recipient.get(DEVICES).call().await.expect(200).data();
    assert_eq!(devices.len(), 1);
    assert_eq!(devices[0]["state"], json!({}));
    // Of one device it need not be named.
    let items = recipient.get("/mandate/v1/sensor-data").call().await;
    assert_eq!(items.expect(200).data::<Vec<Value>>(), Vec::<Value>::new());
    recipient.get(&sensor_data(other)).call().await.expect(404);

    // The supplier calls the temperature a trade secret.
    let of_both = grant(&world.person, json!({"from": "2026-01-01T00:00:00Z"})).await;
    let reader = self::recipient(&world.app, &of_both);
    let unnamed = reader.get("/mandate/v1/sensor-data").call().await;
    let problem = unnamed.expect(400).problem();
    assert_eq!(problem.errors[0].field, "deviceInstanceId");
    assert_eq!(temperatures(&reader, one).await, [0.0]);
    let secret = json!({"quantity": "temperature", "reason": "It shows how we calibrate."});
    let path = "/tenant/trade-secrets";
    let put = |list: Value| {
        world
            .tenant
            .client
            .put(path)
            .json(&json!({"tradeSecrets": list}))
    };
    put(json!([secret])).call().await.expect(200);
    assert_eq!(temperatures(&reader, one).await, [0.0; 0]);
    let devices: Vec<Value> = reader.get(DEVICES).call().await.expect(200).data();
    assert!(
        devices.iter().all(|device| device["state"] == json!({})),
        "{devices:?}"
    );
    // The person reads it as before, and sees why the recipient does not.
    let own = format!("/app/devices/{one}/sensor-data");
    let own: Value = world
        .person
        .client
        .get(&own)
        .call()
        .await
        .expect(200)
        .data();
    let temperature = own["items"][0]["values"]["temperature"].as_f64();
    assert_eq!(temperature, Some(0.0));
    let row = &listed(&world.person).await[0];
    assert_eq!(row["withheld"][0]["reason"], secret["reason"]);
    assert_eq!(
        listed(&world.person).await[1]["withheld"],
        json!([]),
        "it was not granted"
    );
    put(json!([])).call().await.expect(200);
    assert_eq!(temperatures(&reader, one).await, [0.0]);

    for (list, field) in [
        (json!([secret, secret]), "tradeSecrets[1].quantity"),
        (
            json!([{"quantity": "", "reason": "x"}]),
            "tradeSecrets[0].quantity",
        ),
        (
            json!([{"quantity": "x", "reason": " "}]),
            "tradeSecrets[0].reason",
        ),
    ] {
        let problem = put(list).call().await.expect(400).problem();
        assert_eq!(problem.errors[0].field, field);
    }
}

/// What a hub hears after the answer that ends the mandate.
const AFTER_THE_END: i16 = 9999;

on_each_database!(nothing_is_read_after_the_answer_that_ends_a_mandate);
async fn nothing_is_read_after_the_answer_that_ends_a_mandate(backend: Backend) {
    let settings = Settings {
        upload_limit_per_minute: Some(1_000_000),
        ..Settings::default()
    };
    let options = Options {
        settings,
        ..Options::default()
    };
    let world = World::in_app(TestApp::with(backend, options).await).await;
    let device = world.device(1).await;
    let granted = grant(&world.person, json!({})).await;
    let client = recipient(&world.app, &granted);
    // A stranger's program reads on while the hub uploads.
    let has_ended = Arc::new(AtomicBool::new(false));
    let polls = async |client: Client, has_ended: Arc<AtomicBool>| {
        let mut answered = 0;
        loop {
            let was_over = has_ended.load(Ordering::SeqCst);
            let response = client
                .get(&sensor_data(device))
                .send()
                .await
                .expect("an answer");
            match response.status().as_u16() {
                200 => {
                    assert!(!was_over, "read after the end");
                    answered += 1;
                }
                401 => return answered,
                // On a slow machine the end comes after more than the requests of a minute.
                429 => tokio::time::sleep(Duration::from_millis(200)).await,
                status => panic!("answered {status}"),
            }
        }
    };
    let streams = async |client: Client| {
        let mut reader = Reader::open(&client, STREAM, None).await;
        let mut seen = 0;
        while let Some(event) = reader.next().await {
            // What was sent before the end's answer may be read after it.
            let heard = value(&event).map(|(_, value)| value);
            assert_ne!(heard, Some(i64::from(AFTER_THE_END)), "{:?}", event.data);
            seen += i32::from(heard.is_some());
        }
        seen
    };
    let uploads = async |has_ended: Arc<AtomicBool>| {
        let mut temperature = 0;
        while !has_ended.load(Ordering::SeqCst) {
            temperature += 1;
            hear(&world.hub, 1, temperature).await;
        }
        // Those after the end are for nobody but the person.
        for _ in 0..20 {
            hear(&world.hub, 1, AFTER_THE_END).await;
        }
    };
    let ends = async |has_ended: Arc<AtomicBool>| {
        tokio::time::sleep(Duration::from_secs(3)).await;
        end(&world.person, &granted).await;
        has_ended.store(true, Ordering::SeqCst);
    };
    let (answered, seen, ..) = tokio::join!(
        polls(client.clone(), has_ended.clone()),
        streams(client.clone()),
        uploads(has_ended.clone()),
        ends(has_ended.clone()),
    );
    assert!(
        answered > 0 && seen > 0,
        "{answered} answers, {seen} events"
    );
    client.get(STREAM).call().await.expect(401);
    // Ending it again changes nothing.
    end(&world.person, &granted).await;
    let row = &listed(&world.person).await[0];
    assert_eq!(
        (&row["status"], &row["endReason"]),
        (&json!("ENDED"), &json!("PERSON"))
    );
}

on_each_database!(a_mandate_ends_with_consent_time_and_ownership);
async fn a_mandate_ends_with_consent_time_and_ownership(backend: Backend) {
    let world = World::new(backend).await;
    let device = world.device(1).await;
    let asked = json!({
        "version": "1", "text": "We read your sensors.", "enforce": false,
        "purposes": [{"key": "use", "title": "Use", "required": true}],
    });
    let settings = world.tenant.client.post("/tenant/consent-settings");
    settings.json(&asked).call().await.expect(200);
    let consent = json!({
        "supplierUuid": world.tenant.tenant_uuid, "version": "1", "purposes": ["use"],
    });
    let request = world.person.client.post("/app/consent").json(&consent);
    let consent: Value = request.call().await.expect(200).data();
    let granted = grant(&world.person, json!({})).await;
    let client = recipient(&world.app, &granted);
    let mut stream = Reader::open(&client, STREAM, None).await;
    stream.take(1).await;
    let path = format!("/app/consent/{}", consent["consentId"]);
    world.person.client.delete(&path).call().await.expect(200);
    client.get(DEVICES).call().await.expect(401);
    hear(&world.hub, 1, 500).await;
    let begun = Instant::now();
    assert!(stream.next().await.is_none(), "the stream has ended");
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(
        listed(&world.person).await[0]["endReason"],
        json!("CONSENT_WITHDRAWN")
    );

    // One that is granted since is in force, until its time is over.
    let until = Clock::System.now().plus_secs(2);
    let short = grant(&world.person, json!({"until": until})).await;
    let client = recipient(&world.app, &short);
    client.get(DEVICES).call().await.expect(200);
    let begun = Instant::now();
    while client.get(DEVICES).call().await.status == 200 {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "its time is over"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(
        listed(&world.person).await[0]["endReason"],
        json!("EXPIRED")
    );

    // The hub is sold: nothing that it hears since is handed out, to nobody.
    let by_hub = grant(&world.person, json!({})).await;
    let by_device = grant(&world.person, json!({"deviceInstanceIds": [device]})).await;
    let path = format!("/tenant/hubs/{}", world.hub.hub_uuid);
    world.tenant.client.delete(&path).call().await.expect(204);
    for granted in [&by_hub, &by_device] {
        let client = recipient(&world.app, granted);
        let devices = client.get(DEVICES).call().await.expect(200);
        assert_eq!(devices.data::<Vec<Value>>(), Vec::<Value>::new());
        client.get(&sensor_data(device)).call().await.expect(404);
    }
    let ended = mandates::upkeep::settle(&world.app.app)
        .await
        .expect("ends");
    assert_eq!(ended, 4, "those above are noted too");
    for (granted, row) in [&by_device, &by_hub]
        .iter()
        .zip(listed(&world.person).await)
    {
        recipient(&world.app, granted)
            .get(DEVICES)
            .call()
            .await
            .expect(401);
        assert_eq!(row["endReason"], json!("OWNERSHIP_ENDED"));
    }
    assert_eq!(
        mandates::upkeep::settle(&world.app.app)
            .await
            .expect("none"),
        0
    );
    let log = world
        .tenant
        .client
        .get("/tenant/audit-logs?size=100")
        .call()
        .await
        .expect(200);
    let entries = log.json()["data"].to_string();
    assert_eq!(entries.matches("mandate.grant").count(), 4, "{entries}");
    assert_eq!(entries.matches("mandate.end").count(), 4, "{entries}");
}

on_each_database!(a_mandate_is_refused_for_what_is_not_the_persons);
async fn a_mandate_is_refused_for_what_is_not_the_persons(backend: Backend) {
    let world = World::new(backend).await;
    let device = world.device(1).await;
    let stranger = Person::register(&world.app.client()).await;
    let hub = world.hub.hub_uuid;
    let refused = async |person: &Person, change: Value, status: u16| {
        let request = person.client.post(MANDATES).json(&body(change));
        request.call().await.expect(status).problem()
    };
    refused(&stranger, json!({"hubUuid": hub}), 404).await;
    let problem = refused(&stranger, json!({}), 400).await;
    assert_eq!(problem.errors[0].field, "hubUuid");
    let problem = refused(&stranger, json!({"deviceInstanceIds": [device]}), 400).await;
    assert_eq!(problem.errors[0].field, "deviceInstanceIds[0]");
    // A fitter has the hub for a while, and none of the owner's data to give away.
    let lent = json!({"userUuid": stranger.login.user_uuid});
    let path = format!("/tenant/hubs/{hub}/setup-delegations");
    world
        .tenant
        .client
        .post(&path)
        .json(&lent)
        .call()
        .await
        .expect(200);
    stranger
        .client
        .get(&format!("/app/hubs/{hub}"))
        .call()
        .await
        .expect(200);
    refused(&stranger, json!({"hubUuid": hub}), 404).await;
    refused(&stranger, json!({"deviceInstanceIds": [device]}), 400).await;

    let past = Clock::System.now().plus_secs(-1);
    let far = Clock::System.now().plus_secs(6 * 366 * 24 * 3600);
    let push = |url: &str| json!({"form": "PUSH", "destination": {"url": url}});
    for (change, field) in [
        (json!({"recipient": {"name": " "}}), "recipient.name"),
        (json!({"recipient": {"name": "A\u{7}"}}), "recipient.name"),
        (
            json!({"recipient": {"name": "A", "email": "no"}}),
            "recipient.email",
        ),
        (
            json!({"recipient": {"name": "A", "url": "javascript:1"}}),
            "recipient.url",
        ),
        (json!({"until": past}), "until"),
        (json!({"until": far}), "until"),
        (json!({"from": far}), "until"),
        (json!({"deviceInstanceIds": []}), "deviceInstanceIds"),
        (
            json!({"deviceInstanceIds": vec![device; 501]}),
            "deviceInstanceIds",
        ),
        (json!({"quantities": []}), "quantities"),
        (json!({"quantities": [""]}), "quantities[0]"),
        (json!({"form": "PUSH"}), "destination"),
        (
            json!({"destination": {"url": "https://example.com"}}),
            "destination",
        ),
        (push("http://127.0.0.1/x"), "destination.url"),
        (push("https://10.0.0.1/x"), "destination.url"),
        (push("https://[::1]/x"), "destination.url"),
        (push("https://localhost/x"), "destination.url"),
        (push("https://169.254.169.254/latest"), "destination.url"),
    ] {
        let problem = refused(&world.person, change.clone(), 400).await;
        assert_eq!(problem.errors[0].field, field, "{change}");
    }
    assert_eq!(listed(&world.person).await, Vec::<Value>::new());

    // Several hubs: one has to be named.
    let second = device_commands::hub_of(&world.app, &world.tenant, &world.person).await;
    let problem = refused(&world.person, json!({}), 400).await;
    assert_eq!(problem.errors[0].field, "hubUuid");
    grant(&world.person, json!({"hubUuid": second.hub_uuid})).await;
    let mut made = 1;
    let problem = loop {
        let request = world.person.client.post(MANDATES);
        let answer = request.json(&body(json!({"hubUuid": hub}))).call().await;
        if answer.status == 409 {
            break answer.problem();
        }
        made += 1;
        assert!(made <= 100, "more than a hundred");
    };
    assert_eq!((made, problem.code.as_str()), (100, "TOO_MANY_MANDATES"));
    // A mandate of somebody else is none.
    let id = listed(&world.person).await[0]["mandateUuid"].clone();
    let path = format!("{MANDATES}/{}", id.as_str().expect("a uuid"));
    stranger.client.delete(&path).call().await.expect(404);
}

on_each_database!(a_recipient_reads_so_often_and_no_more);
async fn a_recipient_reads_so_often_and_no_more(backend: Backend) {
    let world = World::new(backend).await;
    world.device(1).await;
    let granted = grant(&world.person, json!({})).await;
    let client = recipient(&world.app, &granted);
    let mut open = Vec::new();
    for _ in 0..2 {
        open.push(Reader::open(&client, STREAM, None).await);
    }
    client.get(STREAM).call().await.expect(429);
    drop(open);
    for path in [DEVICES, "/mandate/v1/sensor-data"] {
        let mut tries = 0;
        let refused = loop {
            let answer = client.get(path).call().await;
            if answer.status == 429 {
                break answer;
            }
            tries += 1;
            assert!(tries < 1300, "two whole minutes");
        };
        let secs: i64 = refused.header("retry-after").parse().expect("seconds");
        assert!((1..=60).contains(&secs), "{secs}");
    }
    // Others are not concerned.
    let second = grant(&world.person, json!({})).await;
    let other = recipient(&world.app, &second);
    other.get(DEVICES).call().await.expect(200);
}

on_each_database!(messages_come_signed_until_the_mandate_ends);
async fn messages_come_signed_until_the_mandate_ends(backend: Backend) {
    let settings = Settings {
        allow_private_targets: Some(true.into()),
        ..Settings::default()
    };
    let options = Options {
        settings,
        ..Options::default()
    };
    let world = World::in_app(TestApp::with(backend, options).await).await;
    let device = world.device(1).await;
    let receiver = Receiver::start().await;
    receiver.answer_in_turn([(503, Vec::new()), (200, Vec::new())]);
    let url = format!("{}/in", receiver.url);
    let change = json!({"form": "PUSH", "destination": {"url": url}});
    let granted = grant(&world.person, change).await;
    assert_eq!(granted["credential"], Value::Null);
    let secret = granted["signingSecret"].as_str().expect("a secret");
    let secret = secret.to_owned().into();
    for temperature in [2000, 2050] {
        hear(&world.hub, 1, temperature).await;
    }
    let app = world.app.app.clone();
    let sends = async || {
        mandates::push::perform(&app).await.expect("a run");
    };
    sends().await;
    assert_eq!(receiver.received().len(), 1);
    let row = &listed(&world.person).await[0];
    assert_eq!(row["lastError"], json!("the receiver answered 503"));
    // It is tried again, and what came meanwhile comes with it.
    hear(&world.hub, 1, 2100).await;
    let until = async |count: usize| {
        let begun = Instant::now();
        while receiver.received().len() < count {
            assert!(
                begun.elapsed() < Duration::from_secs(40),
                "{count} messages"
            );
            sends().await;
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    };
    until(2).await;
    hear(&world.hub, 1, 2150).await;
    until(3).await;
    let messages = receiver.take();
    let mut seen = Vec::new();
    for message in &messages[1..] {
        let id = message.header("webhook-id");
        let at: i64 = message
            .header("webhook-timestamp")
            .parse()
            .expect("seconds");
        let signature = message.header("webhook-signature");
        assert!(is_standard_webhook(
            &secret,
            id,
            at,
            &message.body,
            signature
        ));
        let body = message.json();
        assert_eq!(body["mandateUuid"], granted["mandateUuid"]);
        for item in body["values"].as_array().expect("values") {
            assert_eq!(item["deviceInstanceId"], json!(device));
            seen.push(item["values"]["temperature"].as_f64().expect("a number"));
        }
    }
    assert_eq!(seen, [20.0, 20.5, 21.0, 21.5], "each once, in order");
    let row = &listed(&world.person).await[0];
    assert!(row["lastUsedAt"].is_string() && row["lastError"] == Value::Null);

    end(&world.person, &granted).await;
    hear(&world.hub, 1, 2200).await;
    receiver.answer(|_| Answer::now(200));
    for _ in 0..30 {
        sends().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert_eq!(receiver.received().len(), 0);
}

on_each_database!(a_mandate_has_a_receipt_and_goes_with_the_account);
async fn a_mandate_has_a_receipt_and_goes_with_the_account(backend: Backend) {
    let world = World::new(backend).await;
    world.device(1).await;
    let granted = grant(&world.person, json!({"quantities": ["temperature"]})).await;
    let receipt = granted["receipt"].as_str().expect("a receipt");
    let keys = world
        .app
        .client()
        .get("/.well-known/jwks.json")
        .call()
        .await;
    let keys: JwkSet = serde_json::from_value(keys.expect(200).json()).expect("keys");
    let kid = jsonwebtoken::decode_header(receipt).expect("a head").kid;
    let key = keys.find(&kid.expect("a key id")).expect("the key");
    let key = DecodingKey::from_jwk(key).expect("a key");
    let mut validation = Validation::new(Algorithm::ES256);
    validation.set_audience(&["hub-cloud/mandate-receipts"]);
    validation.set_issuer(&["hub-cloud"]);
    // A receipt does not expire.
    validation.required_spec_claims.remove("exp");
    validation.validate_exp = false;
    let claims = jsonwebtoken::decode::<Value>(receipt, &key, &validation).expect("signed");
    for (name, expected) in [
        ("mandateUuid", &granted["mandateUuid"]),
        ("hubUuid", &json!(world.hub.hub_uuid)),
        ("until", &granted["until"]),
        ("quantities", &json!(["temperature"])),
    ] {
        assert_eq!(&claims.claims[name], expected, "{name}");
    }
    let export = world.person.client.get("/app/export").call().await;
    let export = export.expect(200).body;
    let line = export
        .lines()
        .find(|line| line.contains("\"type\":\"mandate\""));
    let line = line.expect("the mandate");
    let id = granted["mandateUuid"].as_str().expect("a uuid");
    assert!(line.contains(id) && !line.contains("hmd_"), "{line}");

    let client = recipient(&world.app, &granted);
    let mut stream = Reader::open(&client, STREAM, None).await;
    stream.take(1).await;
    let leave = json!({"currentPassword": hub_tests::people::PASSWORD});
    let request = world.person.client.delete("/app/profile").json(&leave);
    let status = request.call().await.status;
    assert!(status.is_success(), "{status}");
    client.get(DEVICES).call().await.expect(401);
    let of_supplier = world.tenant.client.get("/tenant/mandates").call().await;
    assert_eq!(
        of_supplier.expect(200).data::<Vec<Value>>(),
        Vec::<Value>::new()
    );
}

on_each_database!(a_recipient_follows_what_is_live_and_resumes);
async fn a_recipient_follows_what_is_live_and_resumes(backend: Backend) {
    let world = World::new(backend).await;
    let device = world.device(1).await;
    let other = world.device(2).await;
    let change = json!({"deviceInstanceIds": [device]});
    let granted = grant(&world.person, change).await;
    let client = recipient(&world.app, &granted);
    let mut reader = Reader::open(&client, STREAM, None).await;
    let first = reader.take(1).await.remove(0);
    let devices: Vec<Value> = client.get(DEVICES).call().await.expect(200).data();
    assert_eq!((first.name.as_str(), &first.data), ("device", &devices[0]));
    for temperature in [100, 200, 300] {
        hear(&world.hub, 2, temperature + 1).await;
        hear(&world.hub, 1, temperature).await;
    }
    let seen = values(&mut reader, 3).await;
    let expected = [(device, 100), (device, 200), (device, 300)];
    assert_eq!(seen.iter().filter_map(value).collect::<Vec<_>>(), expected);
    assert_ne!(device, other);
    drop(reader);
    hear(&world.hub, 1, 400).await;
    let mut reader = Reader::open(&client, STREAM, Some(&seen[1].id)).await;
    let rest = values(&mut reader, 2).await;
    let expected = [(device, 300), (device, 400)];
    assert_eq!(rest.iter().filter_map(value).collect::<Vec<_>>(), expected);
}
