//! Keys of devices: sealed, never returned, sealed again with a new master key, and gone with their
//! tenant. What is kept of devices is bounded.

use std::sync::atomic::Ordering;

use hub_base::db::sql;
use hub_base::sealing::Sealer;
use hub_base::sealing::stored::{self, DEVICE_BIND_KEY, DEVICE_IDENTITY_RESOLVING_KEY};
use hub_core::config::Settings;
use hub_core::tasks::Done;
use hub_protocol::Timestamp;
use hub_tests::app::{MASTER_KEY, set_clock};
use hub_tests::devices::{make_device, make_model};
use hub_tests::{Backend, Call, Options, Person, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};

const DEVICES: &str = "/tenant/devices";
const BIND_KEY: &str = "3c5f8a1b90d2e47766a1b2c3d4e5f607";
const RESOLVING_KEY: &str = "91e0d7c2b3a45566778899aabbccdd01";
const OLD_KEY: &str = "f1e2d3c4b5a69788796a5b4c";

/// The sealed keys of a device.
type Sealed = (Option<Vec<u8>>, Option<Vec<u8>>);

async fn sealed(app: &TestApp, device: &Value) -> Sealed {
    let mut conn = app.app.db.read().await.expect("a connection");
    sql(
        "SELECT sealed_bind_key, sealed_identity_resolving_key FROM device_instances \
         WHERE device_instance_id = $1",
    )
    .bind(device["deviceInstanceId"].as_i64().expect("an id"))
    .one(&mut conn)
    .await
    .expect("a row")
}

fn opened(sealer: &Sealer, device: &Value, (bind_key, resolving_key): Sealed) -> (String, String) {
    let row = device["deviceInstanceId"].to_string();
    let open = |purpose, sealed: Option<Vec<u8>>| {
        hex::encode(
            sealer
                .open(purpose, &row, &sealed.expect("a sealed key"))
                .expect("it opens"),
        )
    };
    (
        open(DEVICE_BIND_KEY, bind_key),
        open(DEVICE_IDENTITY_RESOLVING_KEY, resolving_key),
    )
}

on_each_database!(keys_are_sealed_and_never_returned);
async fn keys_are_sealed_and_never_returned(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let device_uuid = make_model(&tenant, "Thermometer").await;
    let keys = json!({"bindKey": BIND_KEY.to_uppercase(), "identityResolvingKey": RESOLVING_KEY});
    let device = make_device(&tenant, device_uuid, keys.clone()).await;
    let one = format!("{DEVICES}/{}", device["deviceInstanceId"]);
    let first = sealed(&app, &device).await;
    assert_eq!(
        opened(&app.app.sealer, &device, first.clone()),
        (BIND_KEY.to_owned(), RESOLVING_KEY.to_owned())
    );

    let mut answers = vec![device.to_string()];
    let patch = async |body: Value| {
        tenant
            .client
            .patch(&one)
            .json(&body)
            .call()
            .await
            .expect(200)
    };
    let verify = "UPDATE device_instances SET bind_key_status = 'VERIFIED'";
    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql(verify).run(&mut tx).await.expect("a row");
    tx.commit_unaudited("a test's own").await.expect("a commit");
    // Another key is not known to fit.
    for (body, status, is_set) in [
        (json!({"name": "x"}), "VERIFIED", true),
        (json!({"bindKey": OLD_KEY}), "SET", true),
        (json!({"identityResolvingKey": RESOLVING_KEY}), "SET", true),
        (json!({"bindKey": null}), "SET", true),
        (json!({"clear": ["bindKey"]}), "NONE", true),
        (
            json!({"clear": ["bindKey", "identityResolvingKey"]}),
            "NONE",
            false,
        ),
        (
            json!({"bindKey": BIND_KEY, "identityResolvingKey": RESOLVING_KEY}),
            "SET",
            true,
        ),
    ] {
        let reply = patch(body.clone()).await;
        let shown: Value = reply.data();
        assert_eq!(
            (&shown["bindKeyStatus"], &shown["identityResolvingKeySet"]),
            (&json!(status), &json!(is_set)),
            "{body}"
        );
        answers.push(reply.body);
    }
    let again = sealed(&app, &device).await;
    assert_ne!(again, first, "a nonce of its own");

    // What is refused is not repeated either.
    for body in [
        json!({"bindKey": format!("{BIND_KEY}00")}),
        json!({"identityResolvingKey": format!("{RESOLVING_KEY}00")}),
        json!({"bindKey": [BIND_KEY]}),
        json!({"identityResolvingKey": {"key": RESOLVING_KEY}}),
    ] {
        answers.push(
            tenant
                .client
                .patch(&one)
                .json(&body)
                .call()
                .await
                .expect(400)
                .body,
        );
    }
    let mut body = keys.clone();
    body["deviceUuid"] = json!(device_uuid);
    answers.push(
        tenant
            .client
            .post(DEVICES)
            .json(&body)
            .call()
            .await
            .expect(409)
            .body,
    );
    for path in [one.as_str(), DEVICES, "/tenant/audit-logs?size=100"] {
        answers.push(tenant.client.get(path).call().await.expect(200).body);
    }
    let audit = answers.last().expect("the audit log").clone();
    assert!(
        audit.contains("\"bindKeyChanged\":true")
            && audit.contains("\"identityResolvingKeyChanged\":true")
    );
    let hashes: Vec<Vec<u8>> = {
        let mut conn = app.app.db.read().await.expect("a connection");
        let hashes = "SELECT identity_resolving_key_hash FROM device_instances";
        sql(hashes).scalars(&mut conn).await.expect("hashes")
    };
    for text in answers {
        let text = text.to_lowercase();
        for secret in [BIND_KEY, RESOLVING_KEY, OLD_KEY, &hex::encode(&hashes[0])] {
            assert!(!text.contains(secret), "{text}");
        }
    }
    for bytes in [again.0, again.1].into_iter().flatten().chain(hashes) {
        for secret in [BIND_KEY, RESOLVING_KEY, OLD_KEY] {
            let secret = hex::decode(secret).expect("digits");
            assert!(
                !bytes.windows(secret.len()).any(|window| window == secret),
                "a key in the clear"
            );
        }
    }
}

on_each_database!(a_new_master_key_seals_the_keys_of_devices_again);
async fn a_new_master_key_seals_the_keys_of_devices_again(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let device_uuid = make_model(&tenant, "Thermometer").await;
    let keys = json!({"bindKey": BIND_KEY, "identityResolvingKey": RESOLVING_KEY});
    let device = make_device(&tenant, device_uuid, keys).await;
    make_device(&tenant, device_uuid, json!({})).await;
    let new = "42".repeat(32);
    let dir = tempfile::tempdir().expect("a directory");
    let sealer = |keys: String| Sealer::load(Some(&keys.into()), dir.path(), true).expect("keys");
    let resealed =
        stored::reseal(&app.app.db, &sealer(format!("{new},{MASTER_KEY}")), |_| ()).await;
    // Signing keys are among them.
    assert!(resealed.expect("they are sealed again") >= 2);
    let both = opened(&sealer(new), &device, sealed(&app, &device).await);
    assert_eq!(both, (BIND_KEY.to_owned(), RESOLVING_KEY.to_owned()));
}

on_each_database!(keys_are_deleted_with_the_tenant);
async fn keys_are_deleted_with_the_tenant(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let other = Tenant::create(&app.client()).await;
    let mut devices = Vec::new();
    for tenant in [&tenant, &other] {
        let device_uuid = make_model(tenant, "Thermometer").await;
        let keys = json!({"bindKey": BIND_KEY, "identityResolvingKey": RESOLVING_KEY});
        devices.push(make_device(tenant, device_uuid, keys).await);
    }
    tenant
        .owner
        .client
        .delete(&format!("/tenant/tenants/{}", tenant.tenant_uuid))
        .call()
        .await
        .expect(200);
    assert_eq!(sealed(&app, &devices[0]).await, (None, None));
    let kept = sealed(&app, &devices[1]).await;
    assert!(kept.0.is_some() && kept.1.is_some());
    let admin = Person::register(&app.client())
        .await
        .as_platform_admin(&app);
    let deleted = admin
        .get("/platform/audit-logs?action=tenant.delete")
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(
        deleted["data"]["content"][0]["detail"]["deviceKeys"],
        json!(1)
    );
}

on_each_database!(devices_of_a_tenant_are_bounded);
async fn devices_of_a_tenant_are_bounded(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let device_uuid = make_model(&tenant, "Thermometer").await;
    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql("WITH RECURSIVE numbers (n) AS \
         (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 99999) \
         INSERT INTO device_instances (tenant_uuid, device_uuid, labels, calibration, \
         activation_status, bind_key_status, search_text, created_at) \
         SELECT $1, $2, '{}', '{}', 'REGISTERED', 'NONE', '', $3 FROM numbers")
    .bind((tenant.tenant_uuid, device_uuid, app.app.clock.now()))
    .run(&mut tx)
    .await
    .expect("rows");
    tx.commit_unaudited("a test's own set-up")
        .await
        .expect("a commit");
    make_device(&tenant, device_uuid, json!({"name": "the last"})).await;
    let body = json!({"deviceUuid": device_uuid});
    let refused = tenant
        .client
        .post(DEVICES)
        .json(&body)
        .call()
        .await
        .expect(409);
    assert_eq!(refused.problem().code, "TOO_MANY_DEVICES");
    let list: Vec<Value> = tenant
        .client
        .get("/tenant/devices?q=last")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(list.len(), 1);
    tenant
        .client
        .delete(&format!("{DEVICES}/{}", list[0]["deviceInstanceId"]))
        .call()
        .await
        .expect(200);
    make_device(&tenant, device_uuid, json!({})).await;
}

on_each_database!(activations_are_kept_as_long_as_audit_entries);
async fn activations_are_kept_as_long_as_audit_entries(backend: Backend) {
    let (clock, micros) = set_clock(Timestamp::from_micros(1_800_014_400_000_000));
    let settings = Settings {
        audit_retention: Some("10d".to_owned()),
        ..Settings::default()
    };
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            settings,
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let device_uuid = make_model(&tenant, "Thermometer").await;
    let device = make_device(&tenant, device_uuid, json!({})).await;
    let activate = format!("{DEVICES}/{}/activate", device["deviceInstanceId"]);
    tenant.client.post(&activate).call().await.expect(200);
    let left = async || -> i64 {
        let done = hub_tests::app::perform(&app.app, "retention.activations", Value::Null).await;
        assert!(matches!(done, Done::RunAt(_)));
        let mut conn = app.app.db.read().await.expect("a connection");
        sql("SELECT COUNT(*) FROM activation_events")
            .scalar(&mut conn)
            .await
            .expect("a count")
    };
    assert_eq!(left().await, 1);
    micros.fetch_add(9 * 24 * 3_600_000_000, Ordering::Relaxed);
    assert_eq!(left().await, 1);
    micros.fetch_add(24 * 3_600_000_000 + 1_000_000, Ordering::Relaxed);
    assert_eq!(left().await, 0);
}
