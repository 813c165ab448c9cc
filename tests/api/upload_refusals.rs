//! Uploads that are odd, wrong, or not the sender's to make: what becomes of them, and that nobody
//! else is touched by it.

use std::io::Write;
use std::time::{Duration, Instant};

use hub_base::clock::Clock;
use hub_core::config::Settings;
use hub_protocol::HubUuid;
use hub_tests::{
    Backend, Call, Options, SimulatedHub, Tenant, TestApp, app, on_each_database, on_postgres,
};
use serde_json::{Value, json};

const PLAIN: &str = r#"{"observedAt":"2026-01-31T08:00:00Z","address":"AA:BB:CC:DD:EE:FF"}"#;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn batch(events: &[String]) -> String {
    format!(
        r#"{{"batchUuid":"{}","events":[{}]}}"#,
        uuid::Uuid::now_v7(),
        events.join(",")
    )
}

on_each_database!(unknown_fields_are_stored_and_read_back);
async fn unknown_fields_are_stored_and_read_back(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let odd: Vec<String> = [r#""\ud800""#, "1e999", deep.as_str(), "\n 1"]
        .iter()
        .map(|value| PLAIN.replace('}', &format!(r#","x":{value}}}"#)))
        .collect();
    let array = r#"[null,"2026-01-31T08:00:00Z",null,"AA:BB:CC:DD:EE:FF",null,null,null,null,null,null,null,null]"#;
    let body = batch(&[odd.as_slice(), &[array.to_owned()]].concat());
    let reply = hub
        .client
        .post("/v1/ble/events")
        .header("content-type", "application/json")
        .body(body);
    let result = reply.call().await.expect(201).json();
    assert_eq!(
        (
            &result["data"]["accepted"],
            &result["data"]["rejected"][0]["index"]
        ),
        (&json!(4), &json!(4))
    );
    let listed: Vec<Value> = tenant
        .client
        .get("/tenant/ble/events")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(listed.len(), 4);
    for (found, sent) in listed.iter().rev().zip(&odd) {
        let path = format!(
            "/tenant/ble-query/events/{}?includeRaw=true",
            found["bleEventId"]
        );
        let raw = tenant.client.get(&path).call().await.expect(200).json();
        let raw = base64::Engine::decode(
            &base64::engine::general_purpose::STANDARD,
            raw["data"]["raw"].as_str().expect("raw"),
        );
        assert_eq!(
            String::from_utf8(raw.expect("base64")).expect("text"),
            *sent,
            "exactly as it was sent"
        );
    }
    // Free-form records are shown as they are, so all of one has to be readable.
    let logs = format!("/v1/hubs/{}/logs", hub.hub_uuid);
    for record in [
        r#"{"m":"bad \ud83d"}"#,
        r#"{"a":[1e999]}"#,
        r#"{"\udc00":1}"#,
    ] {
        let body = format!(r#"[{{"m":"good"}},{record}]"#);
        hub.client
            .post(&logs)
            .header("content-type", "application/json")
            .body(body)
            .call()
            .await
            .expect(400);
    }
}

on_each_database!(refused_upload_counts_against_the_limit_and_an_invalid_token_wins);
async fn refused_upload_counts_against_the_limit_and_an_invalid_token_wins(backend: Backend) {
    // The limit is counted by the minute, which must not end meanwhile.
    let (clock, _) = app::set_clock(Clock::System.now());
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let mut hub = SimulatedHub::claim(&tenant).await;
    let path = format!("/v1/hubs/{}/telemetry", hub.hub_uuid);
    let old = hub.client.clone();
    let send = |client: &hub_tests::Client, body: Vec<u8>, encoding: &str| {
        client
            .post(&path)
            .header("content-type", "application/json")
            .header("content-encoding", encoding)
            .body(body)
    };
    send(&old, b"{".to_vec(), "identity")
        .call()
        .await
        .expect(400);
    let reply = send(&old, b"{}".to_vec(), "identity")
        .call()
        .await
        .expect(204);
    assert_eq!(
        reply.header("ratelimit-remaining"),
        "98",
        "the malformed one was counted"
    );
    send(
        &old,
        format!("\"{}\"", "x".repeat(300 << 10)).into_bytes(),
        "identity",
    )
    .call()
    .await
    .expect(400);
    send(&old, vec![b' '; (4 << 20) + 1], "identity")
        .call()
        .await
        .expect(413);
    hub.refresh().await;
    let bomb = gzip(format!("[{}1]", "1,".repeat(15_000_000)).as_bytes());
    let started_at = Instant::now();
    send(&old, bomb.clone(), "gzip").call().await.expect(401);
    assert!(
        started_at.elapsed() < Duration::from_secs(1),
        "it was not even unpacked"
    );
    send(&hub.client, bomb, "gzip").call().await.expect(400);
    for body in [b"{".to_vec(), vec![b' '; (4 << 20) + 1], b"{}".to_vec()] {
        send(&old, body, "identity").call().await.expect(401);
    }
    for _ in 0..100 {
        send(&hub.client, b"{}".to_vec(), "identity").call().await;
    }
    send(&hub.client, b"{}".to_vec(), "identity")
        .call()
        .await
        .expect(429);
    send(&hub.client, b"{".to_vec(), "identity")
        .call()
        .await
        .expect(429);
    send(&old, b"{}".to_vec(), "identity")
        .call()
        .await
        .expect(401);
}

on_each_database!(repeated_snapshot_does_not_revert_the_state);
async fn repeated_snapshot_does_not_revert_the_state(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let send = |key: &str, address: &str| {
        let adapter = json!({"address": address, "name": "hci0", "powered": true});
        let request = hub
            .client
            .post("/v1/hubs/adapters")
            .header("idempotency-key", key);
        request.json(&json!({"adapters": [adapter]}))
    };
    let first = send("a", "00:00:00:00:00:01").call().await.expect(200).body;
    send("b", "00:00:00:00:00:02").call().await.expect(200);
    assert_eq!(
        send("a", "00:00:00:00:00:01").call().await.expect(200).body,
        first
    );
    send("a b", "00:00:00:00:00:01").call().await.expect(400);
    let path = format!("/tenant/hubs/{}/adapters", hub.hub_uuid);
    let adapters: Vec<Value> = tenant.client.get(&path).call().await.expect(200).data();
    let powered: Vec<_> = adapters
        .iter()
        .filter(|adapter| adapter["powered"] == json!(true))
        .collect();
    assert_eq!(powered.len(), 1);
    assert_eq!(powered[0]["address"], json!("00:00:00:00:00:02"));
}

on_each_database!(query_may_repeat_the_tenant_but_name_no_other);
async fn query_may_repeat_the_tenant_but_name_no_other(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    for name in ["tenantUuid", "supplierUuid"] {
        for (value, status) in [
            (tenant.tenant_uuid.to_string(), 200),
            (uuid::Uuid::new_v4().to_string(), 403),
            ("x".to_owned(), 400),
        ] {
            tenant
                .client
                .get(&format!("/tenant/ble/events?{name}={value}"))
                .call()
                .await
                .expect(status);
        }
    }
}

on_postgres!(hub_waiting_on_another_replica_is_woken_at_once_over_nats);
/// Over the bus: while it is connected, a waiting request looks for itself every 15 s.
async fn hub_waiting_on_another_replica_is_woken_at_once_over_nats(backend: Backend) {
    let Some(nats) = hub_tests::nats_url() else {
        return;
    };
    let settings = Settings {
        bus: Some(nats),
        ..Settings::default()
    };
    let options = || Options {
        settings: settings.clone(),
        ..Options::default()
    };
    let app = TestApp::with(backend, options()).await;
    let replica = TestApp::replica_of(&app, options()).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let adapter = json!({"address": "00:00:00:00:00:01", "name": "hci0", "powered": true});
    hub.client
        .post("/v1/hubs/adapters")
        .json(&json!({"adapters": [adapter]}))
        .call()
        .await
        .expect(200);
    let wait = |hub_uuid: HubUuid| format!("/v1/hubs/{hub_uuid}/desired-state?wait=20");
    let waiting = hub.client.at(&replica.url).get(&wait(hub.hub_uuid)).call();
    let change = async {
        // Until the request waits over there.
        while replica.app.metrics.hub_waits.get() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let path = format!("/tenant/hubs/{}/adapters/00:00:00:00:00:01", hub.hub_uuid);
        tenant
            .client
            .patch(&path)
            .json(&json!({"role": "DISABLED"}))
            .call()
            .await
            .expect(200);
        Instant::now()
    };
    let (reply, changed_at) = tokio::join!(
        async { (waiting.await.expect(200), Instant::now()) },
        change
    );
    assert!(
        reply.1.duration_since(changed_at) < Duration::from_secs(1),
        "{:?}",
        reply.1.duration_since(changed_at)
    );
}
