//! `/webhook/supplier-permission/{supplierUuid}`: signed messages of suppliers.

use hub_outgoing::signing::{service_signature, standard_webhook};
use hub_tests::{Backend, Call, Reply, on_each_database};
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use uuid::Uuid;

use super::supplier_links::Linking;

const SECRET: &[u8] = b"a secret of both sides";

async fn tell(linking: &Linking, supplier: &str, body: &str, signature: Option<&str>) -> Reply {
    let request = linking
        .app
        .client()
        .post(&format!("/webhook/supplier-permission/{supplier}"));
    let request = request
        .header(CONTENT_TYPE, "application/json")
        .body(body.to_owned());
    match signature {
        Some(signature) => {
            request
                .header("x-service-signature", signature)
                .call()
                .await
        }
        None => request.call().await,
    }
}

on_each_database!(a_supplier_tells_of_changed_permissions);
async fn a_supplier_tells_of_changed_permissions(backend: Backend) {
    let linking = Linking::new(backend).await;
    linking.link().await;
    let supplier = linking.tenant.tenant_uuid.to_string();
    let signed = async |body: &str| {
        let signature = service_signature(SECRET, body.as_bytes());
        tell(&linking, &supplier, body, Some(&signature)).await
    };
    for (sub, links) in [("ada", 1), ("nobody", 0)] {
        let body = json!({"user_sub": sub, "more": {"later": true}}).to_string();
        let answer: Value = signed(&body).await.expect(200).data();
        assert_eq!(answer, json!({"user_sub": sub, "links": links}));
    }
    let entries = "SELECT COUNT(*) FROM audit_logs \
                   WHERE action = 'supplier_link.permission_changed'";
    assert_eq!(linking.scalar(entries).await, 2);

    // Nothing is looked at before the signature.
    let good = json!({"user_sub": "ada"}).to_string();
    let signature = service_signature(SECRET, good.as_bytes());
    for (body, signature) in [
        (good.as_str(), None),
        (good.as_str(), Some("")),
        (good.as_str(), Some("sha256=00")),
        (
            good.as_str(),
            Some(service_signature(b"another secret", good.as_bytes()).as_str()),
        ),
        (good.as_str(), Some(signature.trim_start_matches("sha256="))),
        (r#"{"user_sub":"ada" }"#, Some(signature.as_str())),
        ("not JSON", None),
        ("{}", None),
    ] {
        let reply = tell(&linking, &supplier, body, signature).await.expect(401);
        assert_eq!(
            reply.problem().code,
            "INVALID_SIGNATURE",
            "{body} {signature:?}"
        );
    }
    for body in [
        "{}",
        r#"{"user_sub": null}"#,
        r#"{"user_sub": ""}"#,
        r#"{"user_sub": 7}"#,
    ] {
        let reply = signed(body).await.expect(400);
        assert_eq!(reply.problem().errors[0].field, "user_sub", "{body}");
    }
    assert_eq!(
        signed("not JSON").await.expect(400).problem().code,
        "MALFORMED_JSON"
    );
    assert_eq!(
        linking.scalar(entries).await,
        2,
        "what is refused changes nothing"
    );

    // Without a secret, and without a configuration: whatever the signature.
    for signature in [None, Some(signature.as_str())] {
        tell(&linking, &Uuid::new_v4().to_string(), &good, signature)
            .await
            .expect(404);
    }
    tell(&linking, "nobody", &good, None).await.expect(400);
    let owner = &linking.tenant.client;
    owner
        .delete("/tenant/supplier-oauth-config")
        .call()
        .await
        .expect(200);
    tell(&linking, &supplier, &good, Some(&signature))
        .await
        .expect(404);
    let mut config = linking.supplier.config();
    config
        .as_object_mut()
        .expect("an object")
        .remove("registration_shared_secret");
    linking.configure(config).await;
    for signature in [None, Some(signature.as_str())] {
        let reply = tell(&linking, &supplier, &good, signature)
            .await
            .expect(412);
        assert_eq!(reply.problem().code, "SHARED_SECRET_NOT_SET");
    }
}

on_each_database!(overheard_messages_count_once_and_old_ones_not_at_all);
async fn overheard_messages_count_once_and_old_ones_not_at_all(backend: Backend) {
    let linking = Linking::new(backend).await;
    let path = format!(
        "/webhook/supplier-permission/{}",
        linking.tenant.tenant_uuid
    );
    let entries = async || {
        let count = "SELECT COUNT(*) FROM audit_logs \
                     WHERE action = 'supplier_link.permission_changed'";
        linking.scalar(count).await
    };
    let send = async |body: &str, headers: &[(&str, String)]| {
        let client = linking.app.client();
        let mut request = client.post(&path).body(body.to_owned());
        request = request.header(CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        request.call().await
    };
    let signature = |body: &str| {
        let signature = service_signature(SECRET, body.as_bytes());
        ("x-service-signature", signature)
    };
    let now = linking.app.app.clock.now();
    let body = json!({"user_sub": "ada"}).to_string();
    for (time, status) in [
        (now.to_string(), 200),
        (now.as_secs().to_string(), 200),
        (now.plus_secs(-299).to_string(), 200),
        (now.plus_secs(-301).to_string(), 401),
        ((now.as_secs() + 301).to_string(), 401),
        ("noon".to_owned(), 401),
        (i64::MAX.to_string(), 401),
        (String::new(), 401),
    ] {
        let headers = [signature(&body), ("x-service-timestamp", time)];
        let reply = send(&body, &headers).await.expect(status);
        if status == 401 {
            assert_eq!(reply.problem().code, "INVALID_SIGNATURE", "{headers:?}");
        }
    }
    assert_eq!(entries().await, 1, "one body, once");
    let twice = [now.to_string(), now.to_string()].map(|time| ("x-service-timestamp", time));
    send(&body, &[&twice[..], &[signature(&body)]].concat())
        .await
        .expect(401);

    // As Standard Webhooks have it.
    let secret = secrecy::SecretString::from(String::from_utf8_lossy(SECRET).into_owned());
    let standard = |body: &str, id: &str, secs: i64| {
        let signature = standard_webhook(&secret, id, secs, body.as_bytes());
        [
            ("webhook-id", id.to_owned()),
            ("webhook-timestamp", secs.to_string()),
            ("webhook-signature", format!("v1,AAAA {signature}")),
        ]
    };
    let other = json!({"user_sub": "ben"}).to_string();
    for (headers, status) in [
        (standard(&other, "msg_1", now.as_secs() - 301), 401),
        (standard(&body, "msg_1", now.as_secs()), 401),
        (standard(&other, "msg_1", now.as_secs()), 200),
    ] {
        send(&other, &headers).await.expect(status);
    }
    let mut renamed = standard(&other, "msg_1", now.as_secs());
    renamed[0].1 = "msg_2".to_owned();
    send(&other, &renamed).await.expect(401);
    assert_eq!(entries().await, 2);

    // An hour later it counts again, and is forgotten when nobody needs it.
    linking.pass(3601);
    for _ in 0..2 {
        send(&body, &[signature(&body)]).await.expect(200);
    }
    assert_eq!(entries().await, 3);
    let (db, now) = (&linking.app.app.db, linking.app.app.clock.now());
    hub_people::supplier_links::upkeep(db, now, 100)
        .await
        .expect("upkeep");
    let left = linking
        .scalar("SELECT COUNT(*) FROM supplier_messages")
        .await;
    assert_eq!(left, 1);
}

on_each_database!(messages_that_are_sent_again_and_again_are_slowed);
async fn messages_that_are_sent_again_and_again_are_slowed(backend: Backend) {
    let linking = Linking::new(backend).await;
    let supplier = linking.tenant.tenant_uuid;
    let body = json!({"user_sub": "ada"}).to_string();
    let signature = service_signature(SECRET, body.as_bytes());
    let now = linking.app.app.clock.now();
    // Strangers use up nothing of it.
    tell(&linking, &supplier.to_string(), &body, None)
        .await
        .expect(401);
    for _ in 0..600 {
        linking
            .app
            .app
            .turns
            .webhooks
            .count(supplier.0, now)
            .expect("within the limit");
    }
    tell(&linking, &supplier.to_string(), &body, None)
        .await
        .expect(401);
    let refused = tell(&linking, &supplier.to_string(), &body, Some(&signature))
        .await
        .expect(429);
    assert!(!refused.header("retry-after").is_empty());
    linking.pass(1);
    tell(&linking, &supplier.to_string(), &body, Some(&signature))
        .await
        .expect(200);
}
