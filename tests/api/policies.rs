//! Update policies: whose holds for a hub, what it is given, and how a release that fails is kept
//! from the fleet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::stream::{self, StreamExt};
use hub_base::db::sql;
use hub_core::config::Settings;
use hub_fleet::update_policies;
use hub_identity::authn::hub;
use hub_identity::authz::permission::Role;
use hub_protocol::claim::HubCredentials;
use hub_protocol::{HubUuid, Timestamp};
use hub_tests::app::set_clock;
use hub_tests::{
    Backend, Call, Client, Maker, Options, Person, Recipe, SimulatedHub, Tenant, TestApp,
    on_each_database, release,
};
use serde_json::{Value, json};
use uuid::Uuid;

pub struct Fleet {
    pub app: TestApp,
    pub options: Options,
    clock_micros: Arc<AtomicI64>,
    pub admin: Client,
    pub maker: Maker,
    pub tenant: Tenant,
}

impl Fleet {
    pub async fn new(backend: Backend) -> Self {
        let maker = Maker::new();
        let (clock, clock_micros) = set_clock(Timestamp::from_micros(1_800_000_000_000_000));
        let settings = Settings {
            release_keys: Some(maker.keys()),
            hub_token_lifetime: Some("1000d".to_owned()),
            ..Settings::default()
        };
        let options = Options {
            clock: Some(clock),
            settings,
        };
        let app = TestApp::with(backend, options.clone()).await;
        let tenant = Tenant::create(&app.client()).await;
        let admin = Person::register(&app.client())
            .await
            .as_platform_admin(&app);
        Self {
            app,
            options,
            clock_micros,
            admin,
            maker,
            tenant,
        }
    }

    /// A release of the agent that is READY; answers its uuid.
    pub async fn release(&self, version: &str, counter: u64) -> String {
        self.release_of(Recipe::agent(version, counter)).await
    }

    pub async fn release_of(&self, recipe: Recipe) -> String {
        // Tokens of people do not last as long as rollouts.
        let admin = Person::register(&self.app.client())
            .await
            .as_platform_admin(&self.app);
        let made = release::make_agent(&admin, &self.maker, &recipe, json!({})).await;
        made["releaseUuid"].as_str().expect("a uuid").to_owned()
    }

    /// So many hubs of the tenant, which run this version.
    pub async fn hubs(&self, tenant: &Tenant, count: usize, version: &str) -> Vec<SimulatedHub> {
        let now = self.app.app.clock.now();
        let mut hubs = Vec::new();
        let mut tx = self.app.app.db.begin().await.expect("a transaction");
        for _ in 0..count {
            let (hub_uuid, token_id) = (HubUuid(Uuid::new_v4()), Uuid::now_v7());
            sql(
                "INSERT INTO hubs (hub_uuid, tenant_uuid, device_instance_id, agent_version, os, \
                 claimed_at, created_at, access_token_id, desired_revision) \
                 VALUES ($1, $2, $3, $4, $5, $6, $6, $7, 1)",
            )
            .bind((
                hub_uuid,
                tenant.tenant_uuid,
                hub_uuid.to_string(),
                version,
                json!({"name": "debian", "arch": "x86_64"}),
                now,
                token_id,
            ))
            .execute(&mut tx)
            .await
            .expect("a hub");
            let (access_token, expires_at) = hub::issue(
                &self.app.app.parts().authn,
                hub_uuid,
                tenant.tenant_uuid,
                token_id,
                now,
            )
            .expect("a token");
            let client = self.app.client().bearer(&access_token);
            let tenant_uuid = tenant.tenant_uuid;
            let refresh_token = String::new();
            let credentials = HubCredentials {
                hub_uuid,
                tenant_uuid,
                access_token,
                refresh_token,
                expires_at,
            };
            hubs.push(SimulatedHub {
                hub_uuid,
                device_instance_id: hub_uuid.to_string(),
                credentials,
                client,
            });
        }
        tx.commit_unaudited("a test's own set-up")
            .await
            .expect("a commit");
        hubs
    }

    pub fn pass(&self, secs: i64) {
        self.clock_micros
            .fetch_add(secs * 1_000_000, Ordering::Relaxed);
    }

    /// Lets the worker do all there is to do now.
    pub async fn work(&self) {
        self.pass(5);
        while update_policies::advance(&self.app.app.parts().policies)
            .await
            .expect("the worker works")
        {}
    }

    /// A platform administrator whose token is fresh.
    pub async fn platform(&self) -> Client {
        Person::register(&self.app.client())
            .await
            .as_platform_admin(&self.app)
    }

    pub async fn put(&self, body: &Value) -> Value {
        let admin = self.platform().await;
        admin
            .put("/platform/agent-update-policies")
            .json(body)
            .call()
            .await
            .expect(200)
            .data()
    }

    /// The one rollout of the one policy.
    pub async fn rollout(&self) -> Value {
        let admin = self.platform().await;
        let policies: Value = admin
            .get("/platform/agent-update-policies")
            .call()
            .await
            .expect(200)
            .data();
        policies[0]["rollouts"][0].clone()
    }

    pub async fn act(&self, policy: &Value, action: &str, status: u16) -> Value {
        let path = format!(
            "/platform/agent-update-policies/{}/rollout/{action}",
            text(policy, "policyUuid")
        );
        self.platform()
            .await
            .post(&path)
            .call()
            .await
            .expect(status)
            .json()
    }

    /// Jobs by status.
    pub async fn jobs(&self) -> BTreeMap<String, i64> {
        let mut conn = self.app.app.db.read().await.expect("a connection");
        let rows: Vec<(String, i64)> = sql("SELECT status, COUNT(*) FROM hub_jobs GROUP BY status")
            .all(&mut conn)
            .await
            .expect("counts");
        rows.into_iter().collect()
    }

    /// Whose jobs wait to be fetched.
    pub async fn waiting(&self) -> BTreeSet<HubUuid> {
        let mut conn = self.app.app.db.read().await.expect("a connection");
        let rows: Vec<(HubUuid,)> = sql("SELECT hub_uuid FROM hub_jobs WHERE status = 'PENDING'")
            .all(&mut conn)
            .await
            .expect("hubs");
        rows.into_iter().map(|(hub_uuid,)| hub_uuid).collect()
    }

    /// The versions hubs run, and how many run each.
    pub async fn versions(&self) -> BTreeMap<String, i64> {
        let mut conn = self.app.app.db.read().await.expect("a connection");
        let rows: Vec<(String, i64)> = sql("SELECT agent_version, COUNT(*) FROM hubs \
                                            GROUP BY agent_version")
        .all(&mut conn)
        .await
        .expect("counts");
        rows.into_iter().collect()
    }
}

pub fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name]
        .as_str()
        .unwrap_or_else(|| panic!("no {name} in {value}"))
}

/// These hubs fetch their job, begin it, and end it; `fails` says which of them badly.
pub async fn update(hubs: &[SimulatedHub], fails: impl Fn(HubUuid) -> bool) {
    let outcomes = hubs.iter().map(|hub| (hub, fails(hub.hub_uuid)));
    stream::iter(outcomes)
        .for_each_concurrent(16, async |(hub, fails)| {
            let jobs = hub.desired_jobs().await;
            assert_eq!(jobs.len(), 1, "{jobs:?}");
            let job = jobs[0].hub_job_uuid;
            hub.tell(job, "ACCEPTED", json!({})).await.expect(204);
            match fails {
                true => hub
                    .tell(job, "FAILED", json!({"detail": {"reason": "NO_CONTACT"}}))
                    .await
                    .expect(204),
                false => hub.tell(job, "SUCCEEDED", json!({})).await.expect(204),
            };
        })
        .await;
}

on_each_database!(rollout_of_a_bad_release_halts_in_its_first_step_and_a_good_one_reaches_all);
async fn rollout_of_a_bad_release_halts_in_its_first_step_and_a_good_one_reaches_all(
    backend: Backend,
) {
    let fleet = Fleet::new(backend).await;
    let hubs = fleet.hubs(&fleet.tenant, 1000, "1.0.0").await;
    let by_uuid: BTreeMap<HubUuid, &SimulatedHub> =
        hubs.iter().map(|hub| (hub.hub_uuid, hub)).collect();
    fleet.release("1.0.0", 1).await;
    fleet.release("2.0.0", 2).await;
    let policy = fleet
        .put(&json!({"scope": "GLOBAL", "rollout": {"percent": 20, "stepPercent": 40, "stepIntervalSeconds": 3600,
            "silentAfterSeconds": 1800, "minFinished": 10}}))
        .await;
    // Two replicas' workers at once make the jobs of one.
    let replica = TestApp::replica_of(&fleet.app, fleet.options.clone()).await;
    let other = async {
        while update_policies::advance(&replica.app.parts().policies)
            .await
            .expect("the other worker works")
        {}
    };
    tokio::join!(fleet.work(), other);
    fleet.work().await;
    let first: Vec<HubUuid> = fleet.waiting().await.into_iter().collect();
    assert!(
        (150..=250).contains(&first.len()),
        "{} of 1000 hubs",
        first.len()
    );
    let made: i64 = fleet.jobs().await.values().sum();
    assert_eq!(
        made,
        i64::try_from(first.len()).expect("a count"),
        "one job a hub"
    );
    fleet.pass(120);
    fleet.work().await;
    assert_eq!(fleet.waiting().await.len(), first.len());

    // The new version fails on one in ten.
    let bad: BTreeSet<HubUuid> = first.iter().copied().step_by(10).collect();
    let mut done = 0;
    for some in first.chunks(20) {
        let some: Vec<SimulatedHub> = some
            .iter()
            .map(|hub_uuid| by_uuid[hub_uuid].clone())
            .collect();
        update(&some, |hub_uuid| bad.contains(&hub_uuid)).await;
        done += some.len();
        fleet.work().await;
        if text(&fleet.rollout().await, "state") == "HALTED" {
            break;
        }
    }
    let rollout = fleet.rollout().await;
    assert_eq!(
        (text(&rollout, "state"), &rollout["percent"]),
        ("HALTED", &json!(20)),
        "{rollout}"
    );
    assert!(
        text(&rollout, "reason").contains("failed") && done < first.len(),
        "{rollout} after {done}"
    );
    let failed = rollout["failed"].as_i64().expect("a count");
    assert!((1..=5).contains(&failed), "{rollout}");
    // Those that were given nothing yet are spared, and time alone changes nothing.
    assert!(fleet.waiting().await.is_empty());
    fleet.pass(4 * 3600);
    fleet.work().await;
    assert!(fleet.waiting().await.is_empty());
    assert_eq!(text(&fleet.rollout().await, "state"), "HALTED");
    assert_eq!(
        fleet.act(&policy, "halt", 409).await["code"],
        "ROLLOUT_STATE"
    );

    // An operator lets it go on: now it does well, and takes its steps. Hubs with which it failed
    // are left alone.
    let resumed = fleet.act(&policy, "resume", 200).await;
    assert_eq!(
        (
            &resumed["data"]["rollouts"][0]["state"],
            &resumed["data"]["rollouts"][0]["failed"]
        ),
        (&json!("RUNNING"), &json!(0))
    );
    let mut percents = BTreeSet::new();
    for _ in 0..8 {
        fleet.work().await;
        let waiting: Vec<SimulatedHub> = fleet
            .waiting()
            .await
            .iter()
            .map(|hub_uuid| by_uuid[hub_uuid].clone())
            .collect();
        update(&waiting, |_| false).await;
        fleet.work().await;
        let rollout = fleet.rollout().await;
        percents.insert(rollout["percent"].as_i64().expect("a number"));
        if text(&rollout, "state") == "COMPLETED" {
            break;
        }
        fleet.pass(3600);
    }
    let rollout = fleet.rollout().await;
    assert_eq!(text(&rollout, "state"), "COMPLETED", "{rollout}");
    assert_eq!(percents, BTreeSet::from([20, 60, 100]));
    let expected = BTreeMap::from([
        ("1.0.0".to_owned(), failed),
        ("2.0.0".to_owned(), 1000 - failed),
    ]);
    assert_eq!(fleet.versions().await, expected);
    // A hub that comes later is given it too.
    let late = fleet.hubs(&fleet.tenant, 1, "1.0.0").await;
    fleet.pass(60);
    fleet.work().await;
    assert_eq!(fleet.waiting().await, BTreeSet::from([late[0].hub_uuid]));
    let platform = fleet.platform().await;
    let log = platform
        .get("/platform/audit-logs?objectType=update_rollout&size=100")
        .call()
        .await
        .expect(200)
        .body;
    for action in ["begin", "halt", "resume", "step", "complete"] {
        assert!(
            log.contains(&format!("update_rollout.{action}")),
            "no {action} in {log}"
        );
    }
}

on_each_database!(an_update_that_failed_for_a_passing_cause_is_given_again);
async fn an_update_that_failed_for_a_passing_cause_is_given_again(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let hubs = fleet.hubs(&fleet.tenant, 10, "1.0.0").await;
    let fail = async |hubs: &[SimulatedHub], reason: &str| {
        for hub in hubs {
            let job = hub.desired_jobs().await[0].hub_job_uuid;
            hub.tell(job, "FAILED", json!({"detail": {"reason": reason}}))
                .await
                .expect(204);
        }
    };
    let uuids = |hubs: &[SimulatedHub]| -> BTreeSet<HubUuid> {
        hubs.iter().map(|hub| hub.hub_uuid).collect()
    };
    fleet.release("2.0.0", 1).await;
    let policy = fleet
        .put(&json!({"scope": "GLOBAL", "rollout": {"minFinished": 1, "maxFailurePercent": 50}}))
        .await;
    fleet.work().await;
    let reasons = [
        "DOWNLOAD_FAILED",
        "EXPIRED",
        "HELPER_UNAVAILABLE",
        "NO_SPACE",
    ];
    for (hubs, reason) in hubs.chunks(2).zip(reasons) {
        fail(hubs, reason).await;
    }
    fail(&hubs[8..], "DIGEST_MISMATCH").await;
    fleet.work().await;
    let rollout = fleet.rollout().await;
    assert_ne!(
        text(&rollout, "state"),
        "HALTED",
        "no evidence about the release: {rollout}"
    );
    assert_eq!(rollout["failed"], json!(10));
    fleet.pass(120);
    fleet.work().await;
    assert!(fleet.waiting().await.is_empty(), "not again at once");
    fleet.pass(3600);
    fleet.work().await;
    assert_eq!(fleet.waiting().await, uuids(&hubs[..8]));

    // An operator does not have to wait. A verdict on the release stays one.
    fail(&hubs[..8], "DOWNLOAD_FAILED").await;
    fleet.act(&policy, "halt", 200).await;
    fleet.pass(1);
    fleet.act(&policy, "resume", 200).await;
    fleet.work().await;
    assert_eq!(fleet.waiting().await, uuids(&hubs[..8]));
}

on_each_database!(operators_halt_resume_and_abort_a_rollout);
async fn operators_halt_resume_and_abort_a_rollout(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let hubs = fleet.hubs(&fleet.tenant, 30, "1.0.0").await;
    fleet.release("2.0.0", 1).await;
    let policy = fleet.put(&json!({"scope": "GLOBAL"})).await;
    assert_eq!(policy["rollouts"], json!([]));
    assert_eq!(
        fleet.act(&policy, "halt", 409).await["code"],
        "ROLLOUT_STATE",
        "nothing runs yet"
    );
    fleet.work().await;
    assert_eq!(fleet.waiting().await.len(), 30);
    // Also what hubs were given and only prepare for is taken back: it may be that they wait for
    // their window.
    let begun = hubs[0].desired_jobs().await;
    hubs[0]
        .tell(begun[0].hub_job_uuid, "ACCEPTED", json!({}))
        .await
        .expect(204);
    let revision = hubs[1].desired().await.revision;
    fleet.act(&policy, "halt", 200).await;
    assert_eq!(
        fleet.jobs().await,
        BTreeMap::from([("CANCELLED".to_owned(), 30)])
    );
    for hub in &hubs[..3] {
        let state = hub.desired().await;
        assert!(
            state.jobs.is_empty() && state.revision > revision,
            "{state:?}"
        );
    }
    fleet.act(&policy, "resume", 200).await;
    fleet.work().await;
    assert_eq!(fleet.waiting().await.len(), 30);
    assert_eq!(
        fleet.act(&policy, "resume", 409).await["code"],
        "ROLLOUT_STATE"
    );
    fleet.act(&policy, "abort", 200).await;
    fleet.pass(3600);
    fleet.work().await;
    assert!(fleet.waiting().await.is_empty());
    for action in ["resume", "halt", "abort"] {
        fleet.act(&policy, action, 409).await;
    }
    // A newer release is another rollout.
    fleet.release("3.0.0", 2).await;
    fleet.pass(60);
    fleet.work().await;
    assert_eq!(
        (
            fleet.waiting().await.len(),
            text(&fleet.rollout().await, "version")
        ),
        (30, "3.0.0")
    );
    fleet
        .act(
            &json!({"policyUuid": Uuid::new_v4().to_string()}),
            "halt",
            404,
        )
        .await;
}

on_each_database!(silent_hubs_count_as_failed);
async fn silent_hubs_count_as_failed(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let hubs = fleet.hubs(&fleet.tenant, 20, "1.0.0").await;
    fleet.release("2.0.0", 1).await;
    let rollout = json!({"silentAfterSeconds": 1800, "maxFailurePercent": 20, "minFinished": 5});
    fleet
        .put(&json!({"scope": "GLOBAL", "rollout": rollout}))
        .await;
    fleet.work().await;
    update(&hubs[..5], |_| false).await;
    for hub in &hubs[5..10] {
        hub.desired_jobs().await;
    }
    // The other ten are away: that says nothing about the release.
    fleet.pass(1700);
    fleet.work().await;
    let rollout = fleet.rollout().await;
    assert_eq!(
        (
            text(&rollout, "state"),
            &rollout["started"],
            &rollout["silent"]
        ),
        ("RUNNING", &json!(10), &json!(0))
    );
    fleet.pass(100);
    fleet.work().await;
    let rollout = fleet.rollout().await;
    assert_eq!(
        (
            text(&rollout, "state"),
            &rollout["silent"],
            &rollout["failed"]
        ),
        ("HALTED", &json!(5), &json!(0))
    );
}

on_each_database!(most_specific_policy_applies);
async fn most_specific_policy_applies(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let other = Tenant::create(&fleet.app.client()).await;
    let hubs = fleet.hubs(&fleet.tenant, 3, "2.0.0").await;
    let foreign = fleet.hubs(&other, 1, "2.0.0").await;
    let (own, pinned, newest) = (&hubs[0], &hubs[1], &hubs[2]);
    fleet.release("1.0.0", 1).await;
    let beta = Recipe::agent("4.0.0-rc.1", 2);
    let body = json!({"channel": "beta"});
    release::make_agent(&fleet.admin, &fleet.maker, &beta, body).await;
    fleet.release("2.5.0", 3).await;
    fleet.release("3.0.0", 4).await;
    fleet
        .put(&json!({"scope": "GLOBAL", "channel": "beta"}))
        .await;
    let put = async |body: Value| -> Value {
        fleet
            .tenant
            .client
            .put("/tenant/agent-update-policies")
            .json(&body)
            .call()
            .await
            .expect(200)
            .data()
    };
    let window = json!({"start": "22:00", "end": "04:00"});
    let unit = put(json!({"scope": "UNIT", "window": window})).await;
    assert_eq!(
        (text(&unit, "channel"), &unit["tenantUuid"]),
        ("stable", &json!(fleet.tenant.tenant_uuid))
    );
    put(json!({"scope": "HUB", "hubUuid": pinned.hub_uuid, "version": "2.5.0"})).await;
    let kept = put(json!({"scope": "HUB", "hubUuid": own.hub_uuid, "autoUpdate": false})).await;
    fleet.work().await;
    let version = async |hub: &SimulatedHub| {
        let mut conn = fleet.app.app.db.read().await.expect("a connection");
        let version: Option<(Option<String>,)> =
            sql("SELECT version FROM hub_jobs WHERE hub_uuid = $1 AND finished_at IS NULL")
                .bind(hub.hub_uuid)
                .optional(&mut conn)
                .await
                .expect("a job");
        version.and_then(|(version,)| version)
    };
    assert_eq!(version(own).await, None);
    assert_eq!(version(pinned).await.as_deref(), Some("2.5.0"));
    assert_eq!(version(newest).await.as_deref(), Some("3.0.0"));
    assert_eq!(version(&foreign[0]).await.as_deref(), Some("4.0.0-rc.1"));
    let desired = newest.desired().await;
    let window = desired.jobs[0].window.clone().expect("a window");
    assert_eq!(
        (window.start.as_str(), window.end.as_str()),
        ("22:00", "04:00")
    );
    assert_eq!(
        (desired.agent.channel.as_deref(), desired.agent.window),
        (Some("stable"), Some(window))
    );
    assert_eq!(
        pinned.desired().await.agent.version.as_deref(),
        Some("2.5.0")
    );
    // What the hub should run is what it is offered, too.
    let latest = async |hub: &SimulatedHub, query: &str| -> Value {
        hub.client
            .get(&format!("/v1/agent/releases/latest{query}"))
            .call()
            .await
            .expect(200)
            .data()
    };
    assert_eq!(text(&latest(pinned, "").await, "version"), "2.5.0");
    assert_eq!(text(&latest(newest, "").await, "version"), "3.0.0");
    assert_eq!(
        text(&latest(newest, "?channel=beta").await, "version"),
        "4.0.0-rc.1"
    );
    assert_eq!(
        text(&latest(&foreign[0], "").await, "version"),
        "4.0.0-rc.1"
    );
    assert_eq!(foreign[0].desired_jobs().await.len(), 1);

    // One that becomes more specific takes back what no hub was given yet.
    let pending = fleet.hubs(&other, 1, "2.0.0").await;
    fleet.pass(60);
    fleet.work().await;
    assert_eq!(version(&pending[0]).await.as_deref(), Some("4.0.0-rc.1"));
    let body = json!({"scope": "UNIT", "autoUpdate": false});
    other
        .client
        .put("/tenant/agent-update-policies")
        .json(&body)
        .call()
        .await
        .expect(200);
    assert_eq!(version(&pending[0]).await, None);
    assert_eq!(
        version(&foreign[0]).await.as_deref(),
        Some("4.0.0-rc.1"),
        "it was given it, and goes on"
    );

    // Without its own policy the hub is one of its tenant's.
    let path = format!(
        "/tenant/agent-update-policies/{}",
        text(&kept, "policyUuid")
    );
    fleet.tenant.client.get(&path).call().await.expect(200);
    fleet.tenant.client.delete(&path).call().await.expect(204);
    fleet.tenant.client.get(&path).call().await.expect(404);
    fleet.pass(60);
    fleet.work().await;
    assert_eq!(version(own).await.as_deref(), Some("3.0.0"));
}

on_each_database!(hubs_downgrade_only_to_a_release_that_allows_it);
async fn hubs_downgrade_only_to_a_release_that_allows_it(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    fleet.hubs(&fleet.tenant, 2, "2.0.0").await;
    fleet.release("1.0.0", 1).await;
    fleet.release("2.0.0", 2).await;
    fleet.put(&json!({"scope": "GLOBAL"})).await;
    fleet.work().await;
    fleet
        .put(&json!({"scope": "GLOBAL", "version": "1.0.0"}))
        .await;
    fleet.work().await;
    assert!(fleet.jobs().await.is_empty());
    fleet
        .release_of(Recipe {
            downgrade: true,
            ..Recipe::agent("1.0.1", 3)
        })
        .await;
    fleet
        .put(&json!({"scope": "GLOBAL", "version": "1.0.1"}))
        .await;
    fleet.work().await;
    assert_eq!(fleet.waiting().await.len(), 2);
}

on_each_database!(policies_are_created_by_permitted_callers_only);
async fn policies_are_created_by_permitted_callers_only(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let other = Tenant::create(&fleet.app.client()).await;
    let (hub, foreign) = (
        fleet.hubs(&fleet.tenant, 1, "1.0.0").await,
        fleet.hubs(&other, 1, "1.0.0").await,
    );
    let (hub, foreign) = (hub[0].hub_uuid, foreign[0].hub_uuid);
    let put = async |body: &Value| {
        fleet
            .tenant
            .client
            .put("/tenant/agent-update-policies")
            .json(body)
            .call()
            .await
    };
    for (body, status, code) in [
        (json!({"scope": "GLOBAL"}), 403, "GLOBAL_POLICY"),
        (
            json!({"scope": "UNIT", "tenantUuid": other.tenant_uuid}),
            403,
            "OTHER_TENANT",
        ),
        (
            json!({"scope": "HUB", "hubUuid": foreign}),
            404,
            "NOT_FOUND",
        ),
        (
            json!({"scope": "HUB", "hubUuid": Uuid::new_v4()}),
            404,
            "NOT_FOUND",
        ),
    ] {
        assert_eq!(
            put(&body).await.expect(status).problem().code,
            code,
            "{body}"
        );
    }
    for (body, field) in [
        (json!({}), "scope"),
        (json!({"scope": "ALL"}), "scope"),
        (json!({"scope": "HUB"}), "hubUuid"),
        (json!({"scope": "UNIT", "hubUuid": hub}), "hubUuid"),
        (json!({"scope": "UNIT", "channel": "Stable"}), "channel"),
        (json!({"scope": "UNIT", "channel": ""}), "channel"),
        (json!({"scope": "UNIT", "version": "1.0"}), "version"),
        (
            json!({"scope": "UNIT", "window": {"start": "25:00", "end": "04:00"}}),
            "window.start",
        ),
        (
            json!({"scope": "UNIT", "window": {"start": "01:00"}}),
            "window.end",
        ),
        (
            json!({"scope": "UNIT", "window": {"start": "01:00", "end": "01:00"}}),
            "window.end",
        ),
        (
            json!({"scope": "UNIT", "rollout": {"percent": 0}}),
            "rollout.percent",
        ),
        (
            json!({"scope": "UNIT", "rollout": {"percent": 101}}),
            "rollout.percent",
        ),
        (
            json!({"scope": "UNIT", "rollout": {"percent": 1.5}}),
            "rollout.percent",
        ),
        (
            json!({"scope": "UNIT", "rollout": {"stepPercent": -1}}),
            "rollout.stepPercent",
        ),
        (
            json!({"scope": "UNIT", "rollout": {"stepIntervalSeconds": 1}}),
            "rollout.stepIntervalSeconds",
        ),
        (
            json!({"scope": "UNIT", "rollout": {"maxFailurePercent": 101}}),
            "rollout.maxFailurePercent",
        ),
        (
            json!({"scope": "UNIT", "rollout": {"silentAfterSeconds": 0}}),
            "rollout.silentAfterSeconds",
        ),
        (
            json!({"scope": "UNIT", "rollout": {"minFinished": 0}}),
            "rollout.minFinished",
        ),
    ] {
        let problem = put(&body).await.expect(400).problem();
        assert_eq!(
            problem.errors.first().expect("a field").field,
            field,
            "{body}"
        );
    }
    // Replaced whole, and the same.
    let made: Value = put(&json!({"scope": "HUB", "hubUuid": hub, "version": "1.0.0"}))
        .await
        .expect(200)
        .data();
    let again: Value = put(&json!({"scope": "HUB", "hubUuid": hub, "channel": "beta"}))
        .await
        .expect(200)
        .data();
    assert_eq!(
        (
            &again["policyUuid"],
            &again["version"],
            text(&again, "channel")
        ),
        (&made["policyUuid"], &Value::Null, "beta")
    );
    put(&json!({"scope": "UNIT", "tenantUuid": fleet.tenant.tenant_uuid}))
        .await
        .expect(200);
    let log = fleet
        .tenant
        .client
        .get("/tenant/audit-logs?action=update_policy.put")
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(log["data"]["totalElements"], 3, "{log}");

    let platform = |body: &Value| {
        fleet
            .admin
            .put("/platform/agent-update-policies")
            .json(body)
            .call()
    };
    for (body, status) in [
        (json!({"scope": "UNIT"}), 400),
        (json!({"scope": "GLOBAL", "hubUuid": hub}), 400),
        (json!({"scope": "UNIT", "tenantUuid": Uuid::new_v4()}), 404),
        (json!({"scope": "HUB", "hubUuid": Uuid::new_v4()}), 404),
        (json!({"scope": "GLOBAL"}), 200),
        (
            json!({"scope": "UNIT", "tenantUuid": other.tenant_uuid}),
            200,
        ),
        (json!({"scope": "HUB", "hubUuid": foreign}), 200),
    ] {
        platform(&body).await.expect(status);
    }
    let count = async |query: &str| {
        let path = format!("/platform/agent-update-policies{query}");
        let reply = fleet.admin.get(&path).call().await.expect(200);
        reply.json()["data"].as_array().expect("a list").len()
    };
    // What was answered may be sent again.
    let listed: Value = fleet
        .admin
        .get("/platform/agent-update-policies")
        .call()
        .await
        .expect(200)
        .data();
    for policy in listed.as_array().expect("a list") {
        platform(policy).await.expect(200);
    }
    platform(&json!({"scope": "HUB", "hubUuid": foreign, "tenantUuid": fleet.tenant.tenant_uuid}))
        .await
        .expect(404);
    platform(&json!({"scope": "GLOBAL", "tenantUuid": other.tenant_uuid}))
        .await
        .expect(400);
    assert_eq!((count("").await, count("?scope=GLOBAL").await), (5, 1));
    assert_eq!(
        (count("?scope=UNIT").await, count("?scope=HUB&size=1").await),
        (2, 1)
    );
    let problem = fleet
        .admin
        .get("/platform/agent-update-policies?scope=NONE")
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(problem.errors[0].field, "scope");
    // A tenant sees its own, and acts on no other.
    let listed = fleet
        .tenant
        .client
        .get("/tenant/agent-update-policies")
        .call()
        .await
        .expect(200);
    assert_eq!(listed.json()["data"].as_array().expect("a list").len(), 2);
    for action in ["resume", "halt", "abort"] {
        let path = format!(
            "/tenant/agent-update-policies/{}/rollout/{action}",
            text(&made, "policyUuid")
        );
        other.client.post(&path).call().await.expect(404);
        assert_eq!(
            fleet
                .tenant
                .client
                .post(&path)
                .call()
                .await
                .expect(409)
                .problem()
                .code,
            "ROLLOUT_STATE"
        );
        fleet
            .tenant
            .member(Role::Editor)
            .await
            .post(&path)
            .call()
            .await
            .expect(403);
    }
}

on_each_database!(tenant_reads_the_global_policy_that_governs_its_hubs);
async fn tenant_reads_the_global_policy_that_governs_its_hubs(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let client = &fleet.tenant.client;
    let list = async || {
        let listed: Vec<Value> = client
            .get("/tenant/agent-update-policies")
            .call()
            .await
            .expect(200)
            .data();
        listed
    };
    assert!(list().await.is_empty());
    let global = fleet
        .put(&json!({"scope": "GLOBAL", "rollout": {"percent": 100}}))
        .await;
    assert_eq!(list().await, std::slice::from_ref(&global));
    let path = format!(
        "/tenant/agent-update-policies/{}",
        text(&global, "policyUuid")
    );
    let key = fleet
        .tenant
        .api_key(json!({"scopes": ["releases:read"]}))
        .await
        .client;
    for reader in [client, &fleet.tenant.member(Role::Viewer).await, &key] {
        assert_eq!(
            reader.get(&path).call().await.expect(200).data::<Value>(),
            global
        );
    }
    // To be read, and no more.
    for refused in [
        client.delete(&path),
        client.post(&format!("{path}/rollout/halt")),
        client.post(&format!("{path}/rollout/resume")),
        client.post(&format!("{path}/rollout/abort")),
        client
            .put("/tenant/agent-update-policies")
            .json(&json!({"scope": "GLOBAL"})),
    ] {
        assert_eq!(
            refused.call().await.expect(403).problem().code,
            "GLOBAL_POLICY"
        );
    }
    // Its rollouts count the hubs of all tenants.
    let hubs = fleet.hubs(&fleet.tenant, 1, "1.0.0").await;
    fleet.release("2.0.0", 2).await;
    fleet.work().await;
    let platform: Value = fleet
        .admin
        .get("/platform/agent-update-policies")
        .call()
        .await
        .expect(200)
        .data();
    assert!(
        !platform[0]["rollouts"]
            .as_array()
            .expect("a list")
            .is_empty()
    );
    assert_eq!(list().await[0]["rollouts"], json!([]));
    // A hub's own policy leaves the others as they are; one for the unit governs them instead.
    client
        .put("/tenant/agent-update-policies")
        .json(&json!({"scope": "HUB", "hubUuid": hubs[0].hub_uuid}))
        .call()
        .await
        .expect(200);
    assert_eq!(list().await.len(), 2);
    let unit = client
        .put("/tenant/agent-update-policies")
        .json(&json!({"scope": "UNIT"}))
        .call()
        .await
        .expect(200)
        .json();
    assert_eq!(
        list()
            .await
            .iter()
            .map(|policy| text(policy, "scope"))
            .collect::<Vec<_>>(),
        ["UNIT", "HUB"]
    );
    client.get(&path).call().await.expect(404);
    client.delete(&path).call().await.expect(404);
    let path = format!(
        "/tenant/agent-update-policies/{}",
        text(&unit["data"], "policyUuid")
    );
    client.delete(&path).call().await.expect(204);
    assert_eq!(list().await.len(), 2);
}
