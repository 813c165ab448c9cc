//! How a hub keeps its credentials fresh, and what blocking does to them.

use std::sync::atomic::Ordering;

use hub_protocol::claim::HubAccess;
use hub_tests::{
    Backend, Call, Client, Options, Reply, SimulatedHub, Tenant, TestApp, app, on_each_database,
};
use serde_json::json;

async fn refresh(client: &Client, refresh_token: &str) -> Reply {
    client
        .post("/v1/hubs/refresh")
        .json(&json!({"refreshToken": refresh_token}))
        .call()
        .await
}

/// Whether the token is let in anywhere but at the refresh.
async fn is_let_in(client: &Client) -> bool {
    match client.get("/v1/test").call().await {
        reply if reply.status == 200 => true,
        reply => {
            assert_eq!(reply.expect(401).problem().code, "INVALID_TOKEN");
            false
        }
    }
}

on_each_database!(hub_recovers_after_ten_lost_refresh_answers);
async fn hub_recovers_after_ten_lost_refresh_answers(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let mut hub = SimulatedHub::claim(&tenant).await;
    let secret = hub.credentials.refresh_token.clone();
    for _ in 0..3 {
        for _ in 0..10 {
            refresh(&hub.client, &secret).await.expect(200);
            assert!(
                !is_let_in(&hub.client).await,
                "the token was replaced, whether or not the hub knows"
            );
        }
        hub.refresh().await;
        hub.upload_events(3).await;
    }
}

on_each_database!(hub_recovers_after_reordered_refresh_answers);
async fn hub_recovers_after_reordered_refresh_answers(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let secret = &hub.credentials.refresh_token;
    // The hub gets the first of three answers; two requests it had given up on arrive after that.
    let held: HubAccess = refresh(&hub.client, secret).await.expect(200).data();
    refresh(&hub.client, secret).await.expect(200);
    refresh(&hub.client, secret).await.expect(200);
    let client = hub.client.bearer(&held.access_token);
    assert!(!is_let_in(&client).await);
    let held: HubAccess = refresh(&client, secret).await.expect(200).data();
    assert!(is_let_in(&hub.client.bearer(&held.access_token)).await);
}

on_each_database!(superseded_token_is_refused_but_still_names_the_hub);
async fn superseded_token_is_refused_but_still_names_the_hub(backend: Backend) {
    let app = TestApp::new(backend).await;
    let replica = TestApp::replica_of(&app, Options::default()).await;
    let tenant = Tenant::create(&app.client()).await;
    let mut hub = SimulatedHub::claim(&tenant).await;
    let first = hub.client.clone();
    assert!(is_let_in(&first.at(&replica.url)).await);
    hub.refresh().await;
    assert!(!is_let_in(&first).await);
    assert!(
        !is_let_in(&first.at(&replica.url)).await,
        "every replica refuses it at once"
    );
    assert!(is_let_in(&hub.client.at(&replica.url)).await);
    // An image is restored: its state is of then.
    hub.refresh().await;
    let restored: HubAccess = refresh(&first, &hub.credentials.refresh_token)
        .await
        .expect(200)
        .data();
    assert!(is_let_in(&first.bearer(&restored.access_token)).await);
    assert!(!is_let_in(&hub.client).await, "one token is in force");
}

on_each_database!(refresh_requires_both_tokens_of_one_hub);
async fn refresh_requires_both_tokens_of_one_hub(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let other = SimulatedHub::claim(&tenant).await;
    let secret = &hub.credentials.refresh_token;
    refresh(&app.client(), secret).await.expect(401);
    refresh(&app.client().bearer("x"), secret).await.expect(401);
    refresh(&tenant.owner.client, secret).await.expect(401);
    refresh(&other.client, secret).await.expect(401);
    for wrong in ["", "x", &secret[1..], &other.credentials.refresh_token] {
        let problem = refresh(&hub.client, wrong).await.expect(401).problem();
        assert_eq!(problem.code, "INVALID_REFRESH_TOKEN");
        assert!(
            problem.message.contains("invalid refresh token"),
            "{}",
            problem.message
        );
    }
    for body in [
        json!({}),
        json!({"refreshToken": null}),
        json!({"refreshToken": 1}),
    ] {
        let problem = hub
            .client
            .post("/v1/hubs/refresh")
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, "refreshToken");
    }
    app.client()
        .post("/v1/hubs/refresh")
        .json(&json!({}))
        .call()
        .await
        .expect(401);
    assert!(is_let_in(&hub.client).await);
}

on_each_database!(hub_tokens_expire);
async fn hub_tokens_expire(backend: Backend) {
    const DAY: i64 = 24 * 3600 * 1_000_000;
    let (clock, micros) = app::set_clock("2026-03-01T12:00:00Z".parse().expect("a time"));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    // The owner's own login ends long before.
    let lasting = json!({"validForSeconds": 365 * 24 * 3600});
    let code = tenant
        .client
        .post("/tenant/hubs/claim-codes")
        .json(&lasting)
        .call()
        .await
        .expect(200)
        .json();
    let mut hub = SimulatedHub::claim(&tenant).await;
    assert_eq!(
        hub.credentials.expires_at,
        app.app.clock.now().plus_secs(24 * 3600)
    );
    for _ in 0..3 {
        // Nearly thirty days, again and again: they count from the last use.
        micros.fetch_add(30 * DAY - 1, Ordering::Relaxed);
        assert!(
            !is_let_in(&hub.client).await,
            "the access token has expired"
        );
        hub.refresh().await;
        assert!(is_let_in(&hub.client).await);
    }
    micros.fetch_add(30 * DAY, Ordering::Relaxed);
    let problem = refresh(&hub.client, &hub.credentials.refresh_token)
        .await
        .expect(401)
        .problem();
    assert_eq!(problem.code, "INVALID_REFRESH_TOKEN");
    let code = code["data"]["claimCode"].as_str().expect("a code");
    let again = SimulatedHub::claim_with(&app.client(), code, &hub.device_instance_id).await;
    assert_eq!(again.hub_uuid, hub.hub_uuid);
}

on_each_database!(blocked_hub_is_refused_until_it_claims_again);
async fn blocked_hub_is_refused_until_it_claims_again(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    hub.upload_events(2).await;
    let unused = tenant.claim_code().await;
    let admin = tenant.owner.as_platform_admin(&app);
    let set = async |what: &str| -> serde_json::Value {
        admin
            .post(&format!("/platform/hubs/{}/{what}", hub.hub_uuid))
            .call()
            .await
            .expect(200)
            .data()
    };
    let claim = async |code: &str| {
        let body = json!({"claimCode": code, "deviceInstanceId": hub.device_instance_id});
        app.client().post("/v1/hubs/claim").json(&body).call().await
    };

    let blocked = set("block").await;
    assert_eq!(
        (&blocked["blocked"], &blocked["hubUuid"]),
        (&json!(true), &json!(hub.hub_uuid))
    );
    assert_eq!(
        set("block").await,
        blocked,
        "blocking again changes nothing"
    );
    assert!(!is_let_in(&hub.client).await);
    hub.upload(&hub_tests::hub::events(1)).await.expect(401);
    let problem = refresh(&hub.client, &hub.credentials.refresh_token)
        .await
        .expect(403)
        .problem();
    assert_eq!(problem.code, "HUB_BLOCKED");
    assert!(problem.message.contains("support"), "{}", problem.message);
    assert_eq!(
        claim(&unused).await.expect(423).problem().code,
        "HUB_BLOCKED"
    );
    let shown = tenant
        .client
        .get(&format!("/tenant/hubs/{}", hub.hub_uuid))
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&shown["data"]["status"], &shown["data"]["blockedAt"]),
        (&json!("BLOCKED"), &blocked["blockedAt"])
    );

    assert_eq!(set("unblock").await["blocked"], json!(false));
    assert_eq!(set("unblock").await["blocked"], json!(false));
    assert!(
        !is_let_in(&hub.client).await,
        "tokens from before stay dead"
    );
    let problem = refresh(&hub.client, &hub.credentials.refresh_token)
        .await
        .expect(403)
        .problem();
    assert_eq!(problem.code, "TOKEN_REVOKED");
    let again: hub_protocol::claim::HubCredentials = claim(&unused).await.expect(201).data();
    assert_eq!(again.hub_uuid, hub.hub_uuid);
    assert!(is_let_in(&app.client().bearer(&again.access_token)).await);
    assert!(!is_let_in(&hub.client).await);
    refresh(&hub.client, &hub.credentials.refresh_token)
        .await
        .expect(401);
    let events = tenant
        .client
        .get("/tenant/ble/events")
        .call()
        .await
        .expect(200);
    assert_eq!(
        events.header("x-total-count"),
        "2",
        "its data is still there"
    );
}

on_each_database!(only_the_platform_blocks_hubs);
async fn only_the_platform_blocks_hubs(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let admin = tenant.owner.as_platform_admin(&app);
    for what in ["block", "unblock"] {
        let path = format!("/platform/hubs/{}/{what}", hub.hub_uuid);
        app.client().post(&path).call().await.expect(401);
        hub.client.post(&path).call().await.expect(401);
        tenant.client.post(&path).call().await.expect(403);
        admin
            .post(&format!("/platform/hubs/{}/{what}", uuid::Uuid::new_v4()))
            .call()
            .await
            .expect(404);
        let problem = admin
            .post(&format!("/platform/hubs/x/{what}"))
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, "hub_uuid");
    }
    assert!(is_let_in(&hub.client).await);
}
