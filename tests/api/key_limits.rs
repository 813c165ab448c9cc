//! How often API keys may be used, on one replica and on several.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hub_protocol::Timestamp;
use hub_tests::{
    ApiKey, Backend, Call, Client, Options, Reply, Tenant, TestApp, app, on_each_database,
    on_postgres,
};
use serde_json::{Value, json};

/// Ten seconds into a minute that lasts until the test moves on.
const START: &str = "2026-03-01T10:00:10Z";

async fn service(backend: Backend) -> (TestApp, std::sync::Arc<AtomicI64>) {
    let (clock, micros) = app::set_clock(START.parse().expect("a time"));
    (
        TestApp::with(
            backend,
            Options {
                clock: Some(clock),
                ..Options::default()
            },
        )
        .await,
        micros,
    )
}

/// A second replica, whose clock is the test's too.
async fn replica_of(app: &TestApp, ahead_secs: i64) -> (TestApp, std::sync::Arc<AtomicI64>) {
    let time: Timestamp = START.parse().expect("a time");
    let (clock, micros) = app::set_clock(time.plus_secs(ahead_secs));
    (
        TestApp::replica_of(
            app,
            Options {
                clock: Some(clock),
                ..Options::default()
            },
        )
        .await,
        micros,
    )
}

async fn limited(tenant: &Tenant, limit: usize) -> ApiKey {
    tenant
        .api_key(json!({"scopes": ["hubs:read"], "rateLimitPerMinute": limit}))
        .await
}

async fn use_key(client: &Client) -> Reply {
    client.get("/tenant/hubs?size=1").call().await
}

/// Uses the key as often as that, all of which must work.
async fn must_pass(client: &Client, times: usize) {
    for time in 0..times {
        let reply = use_key(client).await;
        assert_eq!(
            reply.status.as_u16(),
            200,
            "request {time} of {times}: {}",
            reply.body
        );
    }
}

fn assert_refused(reply: Reply, limit: usize) {
    let reply = reply.expect(429);
    assert_eq!(reply.problem().code, "RATE_LIMITED");
    assert_eq!(reply.header("retry-after"), "50");
    assert_eq!(
        (
            reply.header("ratelimit-limit"),
            reply.header("ratelimit-remaining")
        ),
        (limit.to_string().as_str(), "0")
    );
    assert_eq!(reply.header("ratelimit-reset"), "50");
}

on_each_database!(rate_limit_is_exact_on_one_replica_and_resets_each_minute);
async fn rate_limit_is_exact_on_one_replica_and_resets_each_minute(backend: Backend) {
    let (app, micros) = service(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    for limit in [1, 7, 600] {
        let key = limited(&tenant, limit).await;
        must_pass(&key.client, limit).await;
        for _ in 0..3 {
            assert_refused(use_key(&key.client).await, limit);
        }
    }
    let key = limited(&tenant, 3).await;
    must_pass(&key.client, 3).await;
    micros.fetch_add(60_000_000, Ordering::Relaxed);
    must_pass(&key.client, 3).await;
    assert_refused(use_key(&key.client).await, 3);
    // A new limit counts from the next request on: what was used this minute stays used.
    let path = format!("/tenant/api-keys/{}", key.api_key_id);
    tenant
        .client
        .put(&path)
        .json(&json!({"rateLimitPerMinute": 5}))
        .call()
        .await
        .expect(200);
    must_pass(&key.client, 2).await;
    assert_refused(use_key(&key.client).await, 5);
    tenant
        .client
        .put(&path)
        .json(&json!({"rateLimitPerMinute": 600}))
        .call()
        .await
        .expect(200);
    must_pass(&key.client, 100).await;
    tenant
        .client
        .put(&path)
        .json(&json!({"rateLimitPerMinute": 20}))
        .call()
        .await
        .expect(200);
    assert_refused(use_key(&key.client).await, 20);
    // Somebody else's requests are another count.
    must_pass(&limited(&tenant, 3).await.client, 3).await;
}

on_each_database!(rate_limit_is_exact_under_concurrent_requests);
async fn rate_limit_is_exact_under_concurrent_requests(backend: Backend) {
    let (app, _) = service(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let key = limited(&tenant, 50).await;
    let racing = (0..80).map(|_| use_key(&key.client));
    let passed = futures_util::future::join_all(racing)
        .await
        .iter()
        .filter(|reply| reply.status == 200)
        .count();
    assert_eq!(passed, 50);
}

on_postgres!(replicas_share_a_rate_limit);
async fn replicas_share_a_rate_limit(backend: Backend) {
    let (app, _) = service(backend).await;
    // A clock that is behind counts in the minute that has begun elsewhere.
    let (replica, _) = replica_of(&app, -15).await;
    let tenant = Tenant::create(&app.client()).await;
    for limit in [1, 2, 7, 600] {
        let key = limited(&tenant, limit).await;
        let elsewhere = key.client.at(&replica.url);
        let clients = [&key.client, &elsewhere];
        for request in 0..limit {
            let reply = use_key(clients[request % 2]).await;
            assert_eq!(
                reply.status.as_u16(),
                200,
                "request {request} of {limit}: {}",
                reply.body
            );
        }
        assert_refused(use_key(&key.client).await, limit);
        use_key(&elsewhere).await.expect(429);

        let key = limited(&tenant, limit).await;
        must_pass(&key.client, limit).await;
        assert_refused(use_key(&key.client).await, limit);
        use_key(&key.client.at(&replica.url)).await.expect(429);
    }
    // What one replica took and does not use, another one gets within a second.
    let key = limited(&tenant, 600).await;
    must_pass(&key.client, 100).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let elsewhere = key.client.at(&replica.url);
    must_pass(&elsewhere, 500).await;
    use_key(&elsewhere).await.expect(429);
    assert_refused(use_key(&key.client).await, 600);
}

on_each_database!(last_use_is_accurate_to_a_minute);
async fn last_use_is_accurate_to_a_minute(backend: Backend) {
    let (app, micros) = service(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let key = limited(&tenant, 600).await;
    let last_use = async || {
        let keys: Vec<Value> = tenant
            .client
            .get("/tenant/api-keys")
            .call()
            .await
            .expect(200)
            .data();
        keys[0]["lastUsedAt"]
            .as_str()
            .map(|time| time.parse::<Timestamp>().expect("a time"))
    };
    assert_eq!(last_use().await, None);
    for _ in 0..5 {
        micros.fetch_add(47_000_000, Ordering::Relaxed);
        use_key(&key.client).await.expect(200);
        use_key(&key.client).await.expect(200);
        let off = app.app.clock.now().as_micros() - last_use().await.expect("a time").as_micros();
        assert!((0..60_000_000).contains(&off), "off by {off} microseconds");
    }
}
