//! `/tenant/hubs/{hubUuid}/setup-delegations`: whom a hub is lent to.

use std::sync::atomic::Ordering;

use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::{Backend, Call, Options, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

fn path(hub: &SimulatedHub) -> String {
    format!("/tenant/hubs/{}/setup-delegations", hub.hub_uuid)
}

async fn list(tenant: &Tenant, hub: &SimulatedHub) -> Vec<Value> {
    tenant
        .client
        .get(&path(hub))
        .call()
        .await
        .expect(200)
        .data()
}

on_each_database!(hub_is_delegated_and_the_delegation_revoked);
async fn hub_is_delegated_and_the_delegation_revoked(backend: Backend) {
    let (clock, micros) = set_clock(Timestamp::from_micros(1_800_014_400_000_000));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let lend = async |body: Value| tenant.client.post(&path(&hub)).json(&body).call().await;
    let now = app.app.clock.now();
    let user_uuid = Uuid::new_v4();
    let to_user: Value = lend(json!({"userUuid": user_uuid}))
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&to_user["userUuid"], &to_user["expiresAt"]),
        (&json!(user_uuid), &Value::Null)
    );
    let ends = now.plus_secs(60);
    let by_mail: Value = lend(json!({"email": " Ada@Example.com", "expiresAt": ends}))
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&by_mail["email"], &by_mail["expiresAt"]),
        (&json!("ada@example.com"), &json!(ends))
    );
    assert_eq!(
        list(&tenant, &hub).await,
        [by_mail.clone(), to_user.clone()],
        "newest first"
    );

    // Naming somebody again moves the end.
    let later = now.plus_secs(120);
    let again: Value = lend(json!({"email": "ada@example.com", "expiresAt": later}))
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&again["id"], &again["expiresAt"]),
        (&by_mail["id"], &json!(later))
    );
    micros.fetch_add(120 * 1_000_000, Ordering::Relaxed);
    assert_eq!(
        list(&tenant, &hub).await,
        std::slice::from_ref(&to_user),
        "what has ended is not shown"
    );
    let anew: Value = lend(json!({"email": "ada@example.com"}))
        .await
        .expect(200)
        .data();
    assert_ne!(anew["id"], again["id"]);

    let one = format!("{}/{}", path(&hub), to_user["id"]);
    let neighbour = SimulatedHub::claim(&tenant).await;
    tenant
        .client
        .delete(&format!("{}/{}", path(&neighbour), to_user["id"]))
        .call()
        .await
        .expect(404);
    assert_eq!(
        tenant.client.delete(&one).call().await.expect(200).json(),
        json!({"data": null})
    );
    tenant.client.delete(&one).call().await.expect(404);
    assert_eq!(list(&tenant, &hub).await, [anew]);

    for (body, field) in [
        (json!({}), "userUuid"),
        (
            json!({"userUuid": user_uuid, "email": "ada@example.com"}),
            "email",
        ),
        (json!({"email": "ada"}), "email"),
        (json!({"userUuid": "ada"}), "userUuid"),
        (
            json!({"userUuid": user_uuid, "expiresAt": app.app.clock.now()}),
            "expiresAt",
        ),
    ] {
        assert_eq!(
            lend(body.clone()).await.expect(400).problem().errors[0].field,
            field,
            "{body}"
        );
    }
    let stranger = Tenant::create(&app.client()).await;
    stranger.client.get(&path(&hub)).call().await.expect(404);
    stranger
        .client
        .post(&path(&hub))
        .json(&json!({"userUuid": user_uuid}))
        .call()
        .await
        .expect(404);
}

on_each_database!(setup_delegations_are_unique_per_person_and_limited_to_100);
async fn setup_delegations_are_unique_per_person_and_limited_to_100(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let mut lending = JoinSet::new();
    for _ in 0..10 {
        let request = tenant
            .client
            .post(&path(&hub))
            .json(&json!({"email": "ada@example.com"}));
        lending
            .spawn(async move { request.call().await.expect(200).data::<Value>()["id"].clone() });
    }
    let ids = lending.join_all().await;
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    for _ in 1..100 {
        tenant
            .client
            .post(&path(&hub))
            .json(&json!({"userUuid": Uuid::new_v4()}))
            .call()
            .await
            .expect(200);
    }
    let refused = tenant
        .client
        .post(&path(&hub))
        .json(&json!({"userUuid": Uuid::new_v4()}))
        .call()
        .await
        .expect(409);
    assert_eq!(refused.problem().code, "TOO_MANY_DELEGATIONS");
    assert_eq!(list(&tenant, &hub).await.len(), 100);
}
