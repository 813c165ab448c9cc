//! Hubs that come back: after a long absence, with a state that went back in time, and two machines
//! with one hub's credentials.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hub_base::db::sql;
use hub_core::config::Settings;
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::{
    Backend, Call, Client, Options, Reply, SimulatedHub, Tenant, TestApp, on_each_database,
};
use serde_json::{Value, json};

const DAY_SECS: i64 = 24 * 3600;

struct World {
    app: TestApp,
    options: Options,
    micros: Arc<AtomicI64>,
    tenant: Tenant,
    /// A key, which does not expire.
    client: Client,
}

impl World {
    async fn new(backend: Backend) -> Self {
        let (clock, micros) = set_clock("2026-03-01T12:00:00Z".parse().expect("a time"));
        let options = Options {
            clock: Some(clock),
            ..Options::default()
        };
        let app = TestApp::with(backend, options.clone()).await;
        let tenant = Tenant::create(&app.client()).await;
        let key = tenant.api_key(json!({"scopes": ["*"]})).await;
        Self {
            app,
            options,
            micros,
            tenant,
            client: key.client,
        }
    }

    fn pass(&self, secs: i64) {
        self.micros.fetch_add(secs * 1_000_000, Ordering::Relaxed);
    }

    fn now(&self) -> Timestamp {
        self.app.app.clock.now()
    }

    async fn readmit(&self, hub: &SimulatedHub, body: &Value) -> Reply {
        self.client
            .post(&format!("/tenant/hubs/{}/readmit", hub.hub_uuid))
            .json(body)
            .call()
            .await
    }

    async fn shown(&self, hub: &SimulatedHub) -> Value {
        self.client
            .get(&format!("/tenant/hubs/{}", hub.hub_uuid))
            .call()
            .await
            .expect(200)
            .data()
    }

    async fn run(&self, kind: &str) {
        hub_tests::app::perform(&self.app.app, kind, Value::Null).await;
    }

    /// The audit entries of an action, the newest first.
    async fn audited(&self, action: &str) -> Vec<Value> {
        let path = format!("/tenant/audit-logs?action={action}");
        let page: Value = self.client.get(&path).call().await.expect(200).data();
        page["content"].as_array().expect("entries").clone()
    }
}

/// A hub's machine, which keeps the credentials as its state.
#[derive(Clone)]
struct Machine {
    hub: SimulatedHub,
    boot_id: &'static str,
}

impl Machine {
    fn of(hub: &SimulatedHub, boot_id: &'static str) -> Self {
        Self {
            hub: hub.clone(),
            boot_id,
        }
    }

    async fn refresh(&mut self) {
        self.hub.refresh_in(Some(self.boot_id)).await;
    }
}

async fn refresh(hub: &SimulatedHub) -> Reply {
    let body = json!({"refreshToken": hub.credentials.refresh_token});
    hub.client.post("/v1/hubs/refresh").json(&body).call().await
}

on_each_database!(a_hub_that_was_away_for_years_is_readmitted);
async fn a_hub_that_was_away_for_years_is_readmitted(backend: Backend) {
    let world = World::new(backend).await;
    let mut hub = SimulatedHub::claim(&world.tenant).await;
    let lasts_until = world.now().plus_secs(30 * DAY_SECS);
    assert_eq!(
        world.shown(&hub).await["refreshExpiresAt"],
        json!(lasts_until)
    );
    // Its signing key is replaced several times meanwhile.
    for _ in 0..10 {
        world.pass(91 * DAY_SECS);
        world.run("upkeep.signing_keys").await;
        world.pass(3600);
    }
    let refused = refresh(&hub).await.expect(401).problem();
    assert_eq!(refused.code, "INVALID_REFRESH_TOKEN");
    assert!(refused.message.contains("readmit"), "{}", refused.message);

    let shown: Value = world
        .readmit(&hub, &json!({"validForSeconds": 3600}))
        .await
        .expect(200)
        .data();
    let until = world.now().plus_secs(3600);
    assert_eq!(shown["refreshExpiresAt"], json!(until));
    assert_eq!(world.audited("hub.readmit").await.len(), 1);
    world.pass(3600);
    refresh(&hub).await.expect(401);
    // Without a body it may take a week.
    let path = format!("/tenant/hubs/{}/readmit", hub.hub_uuid);
    world.client.post(&path).call().await.expect(200);
    world.pass(7 * DAY_SECS - 1);
    hub.refresh().await;
    hub.upload_events(1).await;
    assert_eq!(
        world.shown(&hub).await["refreshExpiresAt"],
        json!(world.now().plus_secs(30 * DAY_SECS))
    );
}

on_each_database!(readmission_lets_nobody_in_who_was_put_out);
async fn readmission_lets_nobody_in_who_was_put_out(backend: Backend) {
    let world = World::new(backend).await;
    let hub = SimulatedHub::claim(&world.tenant).await;
    for (body, field) in [
        (json!({"validForSeconds": 59}), "validForSeconds"),
        (
            json!({"validForSeconds": 90 * DAY_SECS + 1}),
            "validForSeconds",
        ),
        (json!({"validForSeconds": "x"}), "validForSeconds"),
    ] {
        let problem = world.readmit(&hub, &body).await.expect(400).problem();
        assert_eq!(problem.errors[0].field, field, "{body}");
    }
    let path = format!("/tenant/hubs/{}/readmit", hub.hub_uuid);
    let other = Tenant::create(&world.app.client()).await;
    other.client.post(&path).call().await.expect(404);
    hub.client.post(&path).call().await.expect(401);
    world.app.client().post(&path).call().await.expect(401);
    let reader = world.tenant.api_key(json!({"scopes": ["hubs:read"]})).await;
    reader.client.post(&path).call().await.expect(403);

    // The loser of a replacement.
    let code = world.tenant.claim_code().await;
    let winner =
        SimulatedHub::claim_with(&world.app.client(), &code, &hub.device_instance_id).await;
    world.readmit(&winner, &json!({})).await.expect(200);
    refresh(&hub).await.expect(401);
    refresh(&winner).await.expect(200);

    let admin = world.tenant.owner.as_platform_admin(&world.app);
    let block = format!("/platform/hubs/{}/block", hub.hub_uuid);
    admin.post(&block).call().await.expect(200);
    let problem = world.readmit(&hub, &json!({})).await.expect(409).problem();
    assert_eq!(problem.code, "HUB_BLOCKED");
    let unblock = format!("/platform/hubs/{}/unblock", hub.hub_uuid);
    admin.post(&unblock).call().await.expect(200);
    let problem = world.readmit(&hub, &json!({})).await.expect(409).problem();
    assert_eq!(problem.code, "HUB_WITHOUT_CREDENTIALS");
    assert_eq!(world.shown(&hub).await["refreshExpiresAt"], Value::Null);
    refresh(&winner).await.expect(403);
    let release = format!("/tenant/hubs/{}", hub.hub_uuid);
    world.client.delete(&release).call().await.expect(204);
    world.readmit(&hub, &json!({})).await.expect(404);
}

on_each_database!(the_lifetime_in_force_counts_from_the_last_use);
async fn the_lifetime_in_force_counts_from_the_last_use(backend: Backend) {
    let world = World::new(backend).await;
    let mut hub = SimulatedHub::claim(&world.tenant).await;
    let replica = |lifetime: &str| {
        let settings = Settings {
            hub_refresh_lifetime: Some(lifetime.to_owned()),
            ..world.options.settings.clone()
        };
        let options = Options {
            settings,
            ..world.options.clone()
        };
        TestApp::replica_of(&world.app, options)
    };
    world.pass(40 * DAY_SECS);
    refresh(&hub).await.expect(401);
    let lenient = replica("60d").await;
    hub.client = hub.client.at(&lenient.url);
    hub.refresh().await;
    let strict = replica("2d").await;
    world.pass(2 * DAY_SECS);
    hub.client = hub.client.at(&strict.url);
    refresh(&hub).await.expect(401);
    hub.client = hub.client.at(&world.app.url);
    hub.refresh().await;
}

on_each_database!(a_state_that_went_back_comes_back);
async fn a_state_that_went_back_comes_back(backend: Backend) {
    let world = World::new(backend).await;
    let hub = SimulatedHub::claim(&world.tenant).await;
    let image = Machine::of(&hub, "boot-1");
    let mut machine = image.clone();
    for _ in 0..5 {
        machine.refresh().await;
        world.pass(3600);
    }
    // The image is restored, twice, each time with a boot of its own.
    for boot_id in ["boot-2", "boot-3"] {
        let mut restored = Machine {
            boot_id,
            ..image.clone()
        };
        for _ in 0..3 {
            restored.refresh().await;
            world.pass(3600);
        }
        let upload = hub_tests::hub::events(1);
        restored.hub.upload(&upload).await.expect(201);
        machine.hub.upload(&upload).await.expect(401);
    }
    world.run("upkeep.hub_clones").await;
    assert_eq!(world.shown(&hub).await["suspectedClone"], json!(false));
    assert!(world.audited("hub.clone_suspected").await.is_empty());
}

on_each_database!(two_machines_that_refresh_in_turn_are_noticed_once);
async fn two_machines_that_refresh_in_turn_are_noticed_once(backend: Backend) {
    let world = World::new(backend).await;
    let hub = SimulatedHub::claim(&world.tenant).await;
    let mut original = Machine::of(&hub, "boot-a");
    original.refresh().await;
    world.pass(60);
    let mut copy = Machine {
        boot_id: "boot-b",
        ..original.clone()
    };
    let path = format!("/tenant/hubs?q={}", hub.device_instance_id);
    for round in 0..4 {
        copy.refresh().await;
        world.pass(60);
        original.refresh().await;
        world.pass(60);
        world.run("upkeep.hub_clones").await;
        let shown = world.shown(&hub).await;
        assert_eq!(shown["suspectedClone"], json!(round >= 2), "{round}");
    }
    let listed: Vec<Value> = world.client.get(&path).call().await.expect(200).data();
    assert_eq!(listed[0]["suspectedClone"], json!(true));
    let shown = world.shown(&hub).await;
    let clones: Vec<(&Value, &Value)> = shown["clones"]
        .as_array()
        .expect("appearances")
        .iter()
        .map(|seen| (&seen["bootId"], &seen["address"]))
        .collect();
    let address = json!("127.0.0.1");
    assert_eq!(
        clones,
        [(&json!("boot-a"), &address), (&json!("boot-b"), &address)]
    );
    assert!(shown["clones"][0]["firstAt"].as_str() < shown["clones"][1]["firstAt"].as_str());
    let entries = world.audited("hub.clone_suspected").await;
    assert_eq!(entries.len(), 1, "{entries:?}");

    // Once the copy has gone, it is over after a day.
    world.pass(DAY_SECS);
    original.refresh().await;
    let shown = world.shown(&hub).await;
    assert_eq!(
        (&shown["suspectedClone"], &shown["clones"]),
        (&json!(false), &json!([]))
    );
    // A new copy is noted anew.
    let mut copy = Machine {
        boot_id: "boot-c",
        ..original.clone()
    };
    for _ in 0..4 {
        copy.refresh().await;
        original.refresh().await;
    }
    world.run("upkeep.hub_clones").await;
    assert_eq!(world.audited("hub.clone_suspected").await.len(), 2);
}

on_each_database!(boots_that_take_turns_in_telemetry_are_noticed);
async fn boots_that_take_turns_in_telemetry_are_noticed(backend: Backend) {
    let world = World::new(backend).await;
    let mut hub = SimulatedHub::claim(&world.tenant).await;
    let report = async |hub: &SimulatedHub, boot_id: &str| {
        world.pass(60);
        hub.client
            .post(&format!("/v1/hubs/{}/telemetry", hub.hub_uuid))
            .json(&json!({"agentVersion": "1.0.0", "bootId": boot_id, "cpu": 1}))
            .call()
            .await
            .expect(204);
    };
    // A machine that boots often returns to no boot.
    for boot in 0..20 {
        report(&hub, &format!("boot-{boot}")).await;
        report(&hub, &format!("boot-{boot}")).await;
    }
    assert_eq!(world.shown(&hub).await["suspectedClone"], json!(false));
    for boot_id in ["boot-a", "boot-b", "boot-a", "boot-b", "boot-a"] {
        report(&hub, boot_id).await;
    }
    assert_eq!(world.shown(&hub).await["suspectedClone"], json!(true));
    world.run("upkeep.hub_clones").await;
    world.run("upkeep.hub_clones").await;
    assert_eq!(world.audited("hub.clone_suspected").await.len(), 1);
    let shown = world.shown(&hub).await;
    let mut boots: Vec<&str> = shown["clones"]
        .as_array()
        .expect("appearances")
        .iter()
        .map(|seen| seen["bootId"].as_str().expect("a boot"))
        .collect();
    boots.sort_unstable();
    assert_eq!(boots, ["boot-a", "boot-b"]);
    // The copy has gone: what is over is not noted again.
    world.pass(DAY_SECS);
    hub.refresh().await;
    for _ in 0..3 {
        report(&hub, "boot-a").await;
        world.run("upkeep.hub_clones").await;
    }
    assert_eq!(world.shown(&hub).await["suspectedClone"], json!(false));
    assert_eq!(world.audited("hub.clone_suspected").await.len(), 1);
}

on_each_database!(the_appearances_of_a_hub_are_bounded);
async fn the_appearances_of_a_hub_are_bounded(backend: Backend) {
    let world = World::new(backend).await;
    let mut hub = SimulatedHub::claim(&world.tenant).await;
    for boot in 0..40 {
        hub.refresh_in(Some(&format!("boot-{boot}"))).await;
        world.pass(3600);
    }
    let mut conn = world.app.app.db.read().await.expect("a connection");
    let kept: i64 = sql("SELECT COUNT(*) FROM hub_appearances WHERE hub_uuid = $1")
        .bind(hub.hub_uuid)
        .scalar(&mut conn)
        .await
        .expect("a count");
    assert_eq!(kept, 16);
    for boot_id in [json!("x".repeat(65)), json!("a\nb"), json!(1)] {
        let body = json!({"refreshToken": hub.credentials.refresh_token, "bootId": boot_id});
        let reply = hub.client.post("/v1/hubs/refresh").json(&body).call().await;
        assert_eq!(reply.expect(400).problem().errors[0].field, "bootId");
    }
}
