//! `/webhook/supplier-permission/{supplierUuid}`: signed messages of suppliers.

use hub_outgoing::signing::service_signature;
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
