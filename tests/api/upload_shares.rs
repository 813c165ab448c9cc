//! One hub that floods its tenant's limit takes nothing from the others for longer than a minute.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use hub_tests::hub::events;
use hub_tests::{Backend, Call, Options, Reply, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};

const LIMIT: usize = 100;

struct World {
    app: TestApp,
    /// On PostgreSQL, where several services share a database.
    replica: Option<TestApp>,
    micros: Arc<AtomicI64>,
    tenant: Tenant,
    flooding: SimulatedHub,
    quiet: Vec<SimulatedHub>,
}

impl World {
    async fn new(backend: Backend) -> Self {
        let start = "2026-03-01T12:00:20Z".parse().expect("a time");
        let (clock, micros) = hub_tests::app::set_clock(start);
        let options = || Options {
            clock: Some(clock.clone()),
            ..Options::default()
        };
        let app = TestApp::with(backend, options()).await;
        let replica = match backend {
            Backend::Sqlite => None,
            Backend::Postgres => Some(TestApp::replica_of(&app, options()).await),
        };
        let tenant = Tenant::create(&app.client()).await;
        let flooding = SimulatedHub::claim(&tenant).await;
        let mut quiet = Vec::new();
        for _ in 0..3 {
            let mut hub = SimulatedHub::claim(&tenant).await;
            if let Some(replica) = &replica {
                hub.client = hub.client.at(&replica.url);
            }
            quiet.push(hub);
        }
        Self {
            app,
            replica,
            micros,
            tenant,
            flooding,
            quiet,
        }
    }

    fn pass(&self, secs: i64) {
        self.micros.fetch_add(secs * 1_000_000, Ordering::Relaxed);
    }

    /// So many uploads of the hub at once.
    async fn upload(&self, hub: &SimulatedHub, uploads: usize) -> Vec<Reply> {
        join_all((0..uploads).map(|_| async { hub.upload(&events(1)).await })).await
    }

    async fn shown(&self, hub: &SimulatedHub) -> Value {
        self.tenant
            .client
            .get(&format!("/tenant/hubs/{}", hub.hub_uuid))
            .call()
            .await
            .expect(200)
            .data()
    }
}

fn accepted(replies: &[Reply]) -> usize {
    replies.iter().filter(|reply| reply.status == 201).count()
}

on_each_database!(each_hub_has_its_share_after_a_minute_of_flood);
async fn each_hub_has_its_share_after_a_minute_of_flood(backend: Backend) {
    let world = World::new(backend).await;
    assert_eq!(
        accepted(&world.upload(&world.flooding, LIMIT + 30).await),
        LIMIT
    );
    for hub in &world.quiet {
        let refused = hub.upload(&events(1)).await.expect(429).problem();
        assert_eq!(
            refused.code, "RATE_LIMITED",
            "the first minute is anybody's"
        );
    }
    for minute in 0..3 {
        world.pass(60);
        let flood = world.upload(&world.flooding, LIMIT + 30).await;
        assert_eq!(accepted(&flood), LIMIT / 4, "minute {minute} on {backend}");
        let refused = flood
            .into_iter()
            .find(|reply| reply.status == 429)
            .expect("a refusal");
        assert_eq!(
            (
                refused.header("retry-after"),
                refused.header("ratelimit-limit"),
                refused.header("ratelimit-remaining")
            ),
            ("40", "100", "0")
        );
        let problem = refused.problem();
        assert_eq!(problem.code, "HUB_SHARE_EXCEEDED");
        let named = world.flooding.hub_uuid.to_string();
        assert!(problem.message.contains(&named), "{}", problem.message);
        for hub in &world.quiet {
            assert_eq!(accepted(&world.upload(hub, LIMIT / 4).await), LIMIT / 4);
            let refused = hub.upload(&events(1)).await.expect(429).problem();
            assert_eq!(refused.code, "HUB_SHARE_EXCEEDED");
        }
    }
    // The other kinds of uploads have limits of their own.
    let path = format!("/v1/hubs/{}/telemetry", world.flooding.hub_uuid);
    let report = world.flooding.client.post(&path).json(&json!({"cpu": 1}));
    report.call().await.expect(204);
    // Without a flood, the limit is anybody's again.
    world.pass(120);
    assert_eq!(accepted(&world.upload(&world.flooding, LIMIT).await), LIMIT);
}

on_each_database!(shares_count_live_hubs_alone);
async fn shares_count_live_hubs_alone(backend: Backend) {
    let world = World::new(backend).await;
    world.pass(11 * 60);
    // Only one of the quiet hubs is still live.
    world.quiet[0].upload_events(1).await;
    world.upload(&world.flooding, LIMIT + 1).await;
    world.pass(60);
    assert_eq!(
        accepted(&world.upload(&world.flooding, LIMIT).await),
        LIMIT / 2
    );
    // A hub that comes back need not wait for the next minute, in which it counts.
    world.quiet[1].upload_events(1).await;
    world.pass(60);
    assert_eq!(
        accepted(&world.upload(&world.flooding, LIMIT).await),
        LIMIT / 3 + 1,
        "its share, and the one beyond the shares"
    );
    for hub in &world.quiet[..2] {
        assert_eq!(accepted(&world.upload(hub, LIMIT).await), LIMIT / 3);
    }
}

on_each_database!(a_flooding_hub_is_named);
async fn a_flooding_hub_is_named(backend: Backend) {
    let world = World::new(backend).await;
    world.upload(&world.flooding, LIMIT + 1).await;
    world.pass(60);
    world.upload(&world.flooding, LIMIT).await;
    for hub in &world.quiet {
        hub.upload_events(1).await;
    }
    // It is noted beside the uploads.
    let is_flooding = async || world.shown(&world.flooding).await["flooding"] == json!(true);
    tokio::time::timeout(Duration::from_secs(20), async {
        while !is_flooding().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("the flood is noted");
    for hub in &world.quiet {
        assert_eq!(world.shown(hub).await["flooding"], json!(false));
    }
    let observed = world.replica.as_ref().unwrap_or(&world.app);
    hub_cloud::observe::once(&observed.app)
        .await
        .expect("figures");
    let metrics = async || {
        let reply = observed.client().get("/metrics").call().await;
        reply.expect(200).body
    };
    let sample = format!(
        "hub_cloud_hubs_flooding{{hub_uuid=\"{}\"}} 1",
        world.flooding.hub_uuid
    );
    let body = metrics().await;
    assert!(body.contains(&sample), "{body}");
    assert_eq!(body.matches("hub_cloud_hubs_flooding{").count(), 1);

    world.pass(180);
    assert!(!is_flooding().await, "it is over");
    hub_cloud::observe::once(&observed.app)
        .await
        .expect("figures");
    assert!(!metrics().await.contains("hub_cloud_hubs_flooding{"));
}

on_each_database!(one_hub_does_not_use_up_the_day_of_its_tenant);
async fn one_hub_does_not_use_up_the_day_of_its_tenant(backend: Backend) {
    let world = World::new(backend).await;
    for hub in &world.quiet {
        assert_eq!(hub.upload(&events(1)).await.status, 201, "it is live");
    }
    let mut tx = world.app.app.db.begin().await.expect("a transaction");
    hub_base::db::sql("UPDATE tenants SET bytes_per_day_limit = 200000 WHERE tenant_uuid = $1")
        .bind(world.tenant.tenant_uuid)
        .run(&mut tx)
        .await
        .expect("a limit");
    tx.commit_unaudited("a test").await.expect("a commit");
    let mut refused = None;
    for _ in 0..400 {
        // Below the limit of a minute, and while the others are live.
        world.pass(3);
        let reply = world.flooding.upload(&events(10)).await;
        if reply.status != 201 {
            refused = Some(reply);
            break;
        }
    }
    let refused = refused.expect("the day ends for it");
    let problem = refused.problem();
    assert_eq!(
        (refused.status, problem.code.as_str()),
        (reqwest::StatusCode::TOO_MANY_REQUESTS, "HUB_SHARE_EXCEEDED")
    );
    assert!(
        problem
            .message
            .contains(&world.flooding.hub_uuid.to_string())
    );
    assert!(
        problem.message.contains("bytesPerDay"),
        "{}",
        problem.message
    );
    assert!(
        refused
            .header("retry-after")
            .parse::<u64>()
            .expect("seconds")
            > 3_600
    );
    for hub in &world.quiet {
        for _ in 0..5 {
            assert_eq!(hub.upload(&events(1)).await.status, 201);
        }
    }
    assert_eq!(world.flooding.upload(&events(10)).await.status, 429);
    // The next day is everybody's again.
    world.pass(12 * 3_600);
    assert_eq!(world.flooding.upload(&events(10)).await.status, 201);
}
