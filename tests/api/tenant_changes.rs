//! A tenant gets another name, and a tenant goes.

use hub_base::db::sql;
use hub_identity::authz::permission::Role;
use hub_tests::{
    Backend, Call, Client, Options, Person, SimulatedHub, Tenant, TestApp, on_each_database,
};
use reqwest::header::HeaderName;
use serde_json::{Value, json};

fn path(tenant: &Tenant) -> String {
    format!("/tenant/tenants/{}", tenant.tenant_uuid)
}

/// The replica that did not make the change: a second one where two can share a database.
async fn replica(app: &TestApp) -> Option<TestApp> {
    match app.backend {
        Backend::Postgres => Some(TestApp::replica_of(app, Options::default()).await),
        Backend::Sqlite => None,
    }
}

on_each_database!(tenant_is_renamed_by_permitted_members);
async fn tenant_is_renamed_by_permitted_members(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let admin = tenant.member(Role::Admin).await;
    let renamed = admin
        .patch(&path(&tenant))
        .json(&json!({"name": "  Beta 🐝 'OR' 1=1 "}))
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&renamed["data"]["name"], &renamed["data"]["role"]),
        (&json!("Beta 🐝 'OR' 1=1"), &json!("ADMIN"))
    );
    let listed: Vec<Value> = tenant
        .owner
        .client
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(listed[0]["name"], "Beta 🐝 'OR' 1=1");
    for unchanged in [
        json!({}),
        json!({"name": null}),
        json!({"name": "Beta 🐝 'OR' 1=1"}),
        json!({"Name": "x"}),
    ] {
        let reply = admin
            .patch(&path(&tenant))
            .json(&unchanged)
            .call()
            .await
            .expect(200)
            .json();
        assert_eq!(reply["data"]["name"], "Beta 🐝 'OR' 1=1", "{unchanged}");
    }
    for wrong in [
        json!({"name": ""}),
        json!({"name": " \t"}),
        json!({"name": 1}),
        json!({"name": "a\u{7}b"}),
        json!({"name": "x".repeat(201)}),
    ] {
        let problem = admin
            .patch(&path(&tenant))
            .json(&wrong)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, "name", "{wrong}");
    }
    for role in [Role::Viewer, Role::Editor, Role::Operator] {
        let member = tenant.member(role).await;
        member
            .patch(&path(&tenant))
            .json(&json!({"name": "x"}))
            .call()
            .await
            .expect(403);
        member.delete(&path(&tenant)).call().await.expect(403);
    }
    admin.delete(&path(&tenant)).call().await.expect(403);
    let entries = audit(&app, "tenant.update").await;
    assert_eq!(entries.len(), 1, "only what changed is a change");
    assert_eq!(entries[0].1, json!({"name": "Beta 🐝 'OR' 1=1"}));
}

/// Before and after of every entry of this kind.
async fn audit(app: &TestApp, action: &str) -> Vec<(Value, Value)> {
    let mut conn = app.app.db.read().await.expect("a connection");
    let query = sql(
        "SELECT before_state, after_state FROM audit_logs WHERE action = $1 \
                     ORDER BY audit_log_id",
    );
    let rows: Vec<(Option<Value>, Option<Value>)> =
        query.bind(action).all(&mut conn).await.expect("the log");
    rows.into_iter()
        .map(|(before, after)| (before.unwrap_or_default(), after.unwrap_or_default()))
        .collect()
}

on_each_database!(deleted_tenant_is_404_for_everyone);
async fn deleted_tenant_is_404_for_everyone(backend: Backend) {
    let app = TestApp::new(backend).await;
    let replica = replica(&app).await;
    let url = replica.as_ref().unwrap_or(&app).url.clone();
    let tenant = Tenant::create(&app.client()).await;
    let other = Tenant::create(&app.client()).await;
    let viewer = tenant.member(Role::Viewer).await.at(&url);
    let owner = tenant.client.at(&url);
    let key = app.client().at(&url).header(
        HeaderName::from_static("x-api-key"),
        &tenant.stored_api_key(&app, "*").await,
    );
    let key = key.tenant(tenant.tenant_uuid);
    let hub = SimulatedHub::claim(&tenant).await;
    let hub_client = hub.client.at(&url);
    hub.upload_events(1).await;
    let code = tenant.claim_code().await;
    let request_uuid = tenant
        .offer(&json!({"targetPersonaUuid": other.owner.login.persona_uuid}))
        .await;
    invite(&app, &tenant).await;
    for client in [&viewer, &owner, &key] {
        client.get("/tenant/hubs").call().await.expect(200);
    }
    hub_client.get("/v1/test").call().await.expect(200);
    let mut stream = owner
        .get("/tenant/stream/ble/events")
        .send()
        .await
        .expect("an answer");
    assert_eq!(stream.status(), 200);

    assert_eq!(
        tenant
            .owner
            .client
            .delete(&path(&tenant))
            .call()
            .await
            .expect(200)
            .body,
        ""
    );
    for client in [&viewer, &owner] {
        assert_eq!(
            client
                .get("/tenant/hubs")
                .call()
                .await
                .expect(403)
                .problem()
                .code,
            "TENANT_NOT_ACCESSIBLE"
        );
    }
    assert_eq!(
        key.get("/tenant/hubs")
            .call()
            .await
            .expect(401)
            .problem()
            .code,
        "INVALID_API_KEY"
    );
    hub_client.get("/v1/test").call().await.expect(401);
    for upload in ["/v1/ble/events", "/v1/ble/events/windowed"] {
        hub_client
            .post(upload)
            .json(&hub_tests::hub::events(1))
            .call()
            .await
            .expect(401);
    }
    let body = json!({"refreshToken": hub.credentials.refresh_token});
    let refused = hub_client
        .post("/v1/hubs/refresh")
        .json(&body)
        .call()
        .await
        .expect(403);
    assert_eq!(refused.problem().code, "TOKEN_REVOKED");
    let claim = json!({"claimCode": code, "deviceInstanceId": "another hub"});
    let refused = app
        .client()
        .at(&url)
        .post("/v1/hubs/claim")
        .json(&claim)
        .call()
        .await
        .expect(400);
    assert_eq!(refused.problem().code, "CLAIM_CODE_UNKNOWN");

    let person = tenant.owner.client.at(&url);
    let owned: Vec<Value> = person
        .get("/tenant/tenants")
        .call()
        .await
        .expect(200)
        .data();
    assert!(owned.is_empty(), "{owned:?}");
    person
        .get(&format!("{}/members", path(&tenant)))
        .call()
        .await
        .expect(404);
    person
        .patch(&path(&tenant))
        .json(&json!({"name": "x"}))
        .call()
        .await
        .expect(404);
    person.delete(&path(&tenant)).call().await.expect(404);
    for list in ["incoming", "outgoing"] {
        for client in [&person, &other.owner.client] {
            let reply = client
                .get(&format!("/tenant/transfer-requests/{list}"))
                .call()
                .await
                .expect(200);
            assert!(!reply.body.contains(&request_uuid), "{}", reply.body);
        }
    }
    for (client, step) in [
        (&other.owner.client, "accept"),
        (&other.owner.client, "reject"),
        (&person, "cancel"),
    ] {
        client
            .post(&format!("/tenant/transfer-requests/{request_uuid}/{step}"))
            .call()
            .await
            .expect(404);
    }
    // Whatever it says until then is not an event.
    let ends = async { while stream.chunk().await.is_ok_and(|chunk| chunk.is_some()) {} };
    tokio::time::timeout(std::time::Duration::from_secs(15), ends)
        .await
        .expect("the stream ends");

    let entries = audit(&app, "tenant.delete").await;
    assert_eq!(entries.len(), 1);
    assert_eq!(
        entries[0].0,
        json!({"name": format!("Tenant of {}", tenant.owner.email)})
    );
    let mut conn = app.app.db.read().await.expect("a connection");
    for open in [
        "SELECT COUNT(*) FROM invitations WHERE revoked_at IS NULL",
        "SELECT COUNT(*) FROM claim_codes WHERE revoked_at IS NULL",
        "SELECT COUNT(*) FROM transfer_requests WHERE status = 'PENDING'",
        "SELECT COUNT(*) FROM hubs WHERE access_token_id IS NOT NULL \
         OR refresh_token_hash IS NOT NULL",
    ] {
        let (count,): (i64,) = sql(open).one(&mut conn).await.expect("a count");
        assert_eq!(count, 0, "{open}");
    }
    other.client.get("/tenant/hubs").call().await.expect(200);
}

/// An open invitation, as they lie in the database.
async fn invite(app: &TestApp, tenant: &Tenant) {
    let now = app.app.clock.now();
    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql(
        "INSERT INTO invitations (tenant_uuid, email, role, token_hash, mail_uuid, \
         invited_by_user_uuid, created_at, sent_at, expires_at) \
         VALUES ($1, $2, $3, $4, $8, $5, $6, $6, $7)",
    )
    .bind((
        tenant.tenant_uuid,
        "ada@example.com",
        "VIEWER",
        vec![1_u8; 32],
        tenant.owner.login.user_uuid,
        now,
        now.plus_secs(3600),
        uuid::Uuid::new_v4(),
    ))
    .execute(&mut tx)
    .await
    .expect("an invitation");
    tx.commit_unaudited("a test's own set-up")
        .await
        .expect("a commit");
}

on_each_database!(no_hub_is_claimed_into_a_tenant_being_deleted);
/// Hubs that claim in the moment their tenant goes, anew or again, are left without a token that
/// works.
async fn no_hub_is_claimed_into_a_tenant_being_deleted(backend: Backend) {
    let app = TestApp::new(backend).await;
    let replica = replica(&app).await;
    let url = replica.as_ref().unwrap_or(&app).url.clone();
    let person = Person::register(&app.client()).await;
    for round in 0..6_u64 {
        let tenant = Tenant::create_by(&person).await;
        let body = json!({"maxUses": 100, "allowReclaim": true});
        let made = tenant
            .client
            .post("/tenant/hubs/claim-codes")
            .json(&body)
            .call()
            .await
            .expect(200)
            .json();
        let code = made["data"]["claimCode"]
            .as_str()
            .expect("a code")
            .to_owned();
        let known = SimulatedHub::claim(&tenant).await;
        let claims = (0..6).map(|index| {
            // The known hub among them.
            let device = if index == 3 {
                known.device_instance_id.clone()
            } else {
                format!("{}-{index}", tenant.tenant_uuid)
            };
            let body = json!({"claimCode": code, "deviceInstanceId": device});
            let client = if index % 2 == 0 {
                app.client()
            } else {
                app.client().at(&url)
            };
            let request = client
                .post("/v1/hubs/claim")
                .header("idempotency-key", format!("key-of-{device}"))
                .json(&body);
            async move {
                tokio::time::sleep(std::time::Duration::from_millis(index * round)).await;
                request.call().await
            }
        });
        let (deleted, claimed) = tokio::join!(
            person.client.delete(&path(&tenant)).call(),
            futures_util::future::join_all(claims)
        );
        deleted.expect(200);
        for reply in claimed {
            match reply.status.as_u16() {
                201 => {
                    let token = reply.json()["data"]["accessToken"]
                        .as_str()
                        .expect("a token")
                        .to_owned();
                    Client::new(&url)
                        .bearer(&token)
                        .get("/v1/test")
                        .call()
                        .await
                        .expect(401);
                }
                400 | 503 => {}
                _ => panic!("{}: {} {}", reply.asked, reply.status, reply.body),
            }
        }
    }
}
