//! What update policies do while things change: hubs wait for their window, policies and hubs are
//! changed, people step in.

use std::time::Duration;

use hub_base::db::sql;
use hub_fleet::update_policies;
use hub_protocol::HubUuid;
use hub_tests::{
    Backend, Call, Recipe, Reply, SimulatedHub, TestApp, on_each_database, on_postgres,
};
use reqwest::header::IF_NONE_MATCH;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::policies::{Fleet, text, update};

impl Fleet {
    async fn put_own(&self, body: &Value) -> Value {
        self.tenant
            .client
            .put("/tenant/agent-update-policies")
            .json(body)
            .call()
            .await
            .expect(200)
            .data()
    }

    /// Status, version, detail and the window's start of the hub's jobs, oldest first.
    async fn jobs_of(&self, hub: HubUuid) -> Vec<(String, String, Option<String>, Option<String>)> {
        let mut conn = self.app.app.db.read().await.expect("a connection");
        sql(
            "SELECT status, version, detail, window_start FROM hub_jobs \
             WHERE hub_uuid = $1 ORDER BY revision",
        )
        .bind(hub)
        .all(&mut conn)
        .await
        .expect("jobs")
    }

    /// What the hub is to become by the job it has.
    async fn target_of(&self, hub: HubUuid) -> Option<String> {
        let open = |status: &str| matches!(status, "PENDING" | "DISPATCHED" | "RUNNING");
        self.jobs_of(hub)
            .await
            .into_iter()
            .find(|(status, ..)| open(status))
            .map(|(_, version, ..)| version)
    }

    /// Changes the database past the service.
    async fn meddle(&self, statement: &'static str) {
        let mut tx = self.app.app.db.begin().await.expect("a transaction");
        sql(statement).execute(&mut tx).await.expect("a change");
        tx.commit_unaudited("a test's own set-up")
            .await
            .expect("a commit");
    }

    /// A hub that says so much of itself at its claim.
    async fn claimed(&self, os: Value) -> HubUuid {
        let code = self.tenant.claim_code().await;
        let mut claim = json!({"claimCode": code, "deviceInstanceId": uuid::Uuid::new_v4()});
        claim["os"] = os;
        let made: Value = self
            .app
            .client()
            .post("/v1/hubs/claim")
            .json(&claim)
            .call()
            .await
            .expect(201)
            .data();
        text(&made, "hubUuid").parse().expect("a uuid")
    }

    async fn minute(&self) {
        self.pass(60);
        self.work().await;
    }
}

on_each_database!(rollout_step_waits_until_its_hubs_have_tried);
async fn rollout_step_waits_until_its_hubs_have_tried(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let hubs = fleet.hubs(&fleet.tenant, 60, "1.0.0").await;
    fleet.release("2.0.0", 1).await;
    let window = json!({"start": "22:00", "end": "04:00"});
    let rollout = json!({"percent": 40, "stepPercent": 30, "stepIntervalSeconds": 3600, "silentAfterSeconds": 604_800});
    fleet
        .put(&json!({"scope": "GLOBAL", "window": window, "rollout": rollout}))
        .await;
    fleet.work().await;
    let percent = async || fleet.rollout().await["percent"].as_i64().expect("a number");
    let waiting = async || -> Vec<SimulatedHub> {
        let waiting = fleet.waiting().await;
        hubs.iter()
            .filter(|hub| waiting.contains(&hub.hub_uuid))
            .cloned()
            .collect()
    };
    for expected in [40, 70] {
        let step = waiting().await;
        assert!(step.len() >= 6, "{}", step.len());
        // They fetch it, and wait for their window.
        for hub in &step {
            hub.desired_jobs().await;
        }
        for _ in 0..5 {
            fleet.pass(3600);
            fleet.work().await;
        }
        assert_eq!(percent().await, expected);
        update(&step[..4], |_| false).await;
        fleet.work().await;
        assert_eq!(percent().await, expected, "too few");
        update(&step[4..], |_| false).await;
        fleet.work().await;
        assert!(percent().await > expected);
    }
    assert_eq!(percent().await, 100);
}

on_each_database!(small_rollout_step_is_judged_before_the_next);
async fn small_rollout_step_is_judged_before_the_next(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    fleet.release("2.0.0", 1).await;
    let hubs = fleet.hubs(&fleet.tenant, 100, "1.0.0").await;
    fleet.put(&json!({"scope": "GLOBAL", "rollout": {"percent": 10, "stepPercent": 10, "minFinished": 1000}})).await;
    fleet.work().await;
    let first = fleet.waiting().await;
    let first: Vec<SimulatedHub> = hubs
        .into_iter()
        .filter(|hub| first.contains(&hub.hub_uuid))
        .collect();
    assert!(!first.is_empty());
    update(&first, |_| true).await;
    fleet.work().await;
    assert_eq!(
        text(&fleet.rollout().await, "state"),
        "RUNNING",
        "too few have finished"
    );
    fleet.pass(3600);
    fleet.work().await;
    let rollout = fleet.rollout().await;
    assert_eq!(
        (text(&rollout, "state"), &rollout["percent"]),
        ("HALTED", &json!(10)),
        "{rollout}"
    );
}

on_each_database!(hubs_get_the_release_for_their_architecture);
async fn hubs_get_the_release_for_their_architecture(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let nothing = fleet.claimed(Value::Null).await;
    let unnamed = fleet.claimed(json!({"name": "debian"})).await;
    let family = fleet.claimed(json!({"arch": "arm"})).await;
    let seven = fleet.claimed(json!({"arch": "armv7l"})).await;
    let six = fleet.claimed(json!({"arch": "armv6l"})).await;
    let wide = fleet.claimed(json!({"arch": "aarch64"})).await;
    let release = async |version: &str, counter, architecture: &str| {
        let recipe = Recipe {
            architecture: architecture.to_owned(),
            ..Recipe::agent(version, counter)
        };
        fleet.release_of(recipe).await
    };
    release("1.0.0", 1, "any").await;
    release("2.0.0", 2, "armv6l").await;
    release("2.0.0", 3, "armv7l").await;
    fleet.put(&json!({"scope": "GLOBAL"})).await;
    for _ in 0..3 {
        fleet.minute().await;
        for (hub, version) in [
            (nothing, "1.0.0"),
            (unnamed, "1.0.0"),
            (family, "2.0.0"),
            (seven, "2.0.0"),
            (six, "2.0.0"),
            (wide, "1.0.0"),
        ] {
            assert_eq!(fleet.target_of(hub).await.as_deref(), Some(version));
        }
    }
    assert_eq!(fleet.waiting().await.len(), 6);
    assert_eq!(fleet.jobs().await.len(), 1, "each was made once");
}

on_each_database!(changed_window_applies_to_waiting_jobs);
async fn changed_window_applies_to_waiting_jobs(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let hubs = fleet.hubs(&fleet.tenant, 2, "1.0.0").await;
    fleet.release("2.0.0", 1).await;
    let put = async |window: Value| {
        fleet
            .put(&json!({"scope": "GLOBAL", "window": window}))
            .await
    };
    put(Value::Null).await;
    fleet.work().await;
    hubs[0].desired_jobs().await;
    put(json!({"start": "22:00", "end": "04:00"})).await;
    fleet.work().await;
    let started_with = |start: Option<&str>| start.map(str::to_owned);
    let windows = async |hub: HubUuid| -> Vec<(String, Option<String>)> {
        fleet
            .jobs_of(hub)
            .await
            .into_iter()
            .map(|(status, _, _, start)| (status, start))
            .collect()
    };
    assert_eq!(
        windows(hubs[0].hub_uuid).await,
        [("DISPATCHED".to_owned(), None)],
        "it was given it"
    );
    let expected = [
        ("CANCELLED".to_owned(), None),
        ("PENDING".to_owned(), started_with(Some("22:00"))),
    ];
    assert_eq!(windows(hubs[1].hub_uuid).await, expected);
    fleet.minute().await;
    assert_eq!(windows(hubs[1].hub_uuid).await, expected);
    put(Value::Null).await;
    fleet.work().await;
    assert_eq!(
        windows(hubs[1].hub_uuid).await.last(),
        Some(&("PENDING".to_owned(), None))
    );
}

on_each_database!(policy_change_wakes_its_hubs);
async fn policy_change_wakes_its_hubs(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let hubs = fleet.hubs(&fleet.tenant, 2, "1.0.0").await;
    let path = |hub: &SimulatedHub| format!("/v1/hubs/{}/desired-state", hub.hub_uuid);
    let since = async |hub: &SimulatedHub, known: &Reply| {
        hub.client
            .get(&path(hub))
            .header(IF_NONE_MATCH, known.header("etag"))
            .call()
            .await
    };
    let agent = |reply: &Reply| reply.json()["data"]["agent"].clone();
    let own = &hubs[0];
    let first = own.desired_reply().await;
    let policy = fleet
        .put_own(&json!({"scope": "HUB", "hubUuid": own.hub_uuid, "channel": "beta"}))
        .await;
    let second = since(own, &first).await.expect(200);
    assert_eq!(agent(&second), json!({"channel": "beta"}));
    // Members outside of the desired state wake no hub.
    let same =
        json!({"scope": "HUB", "hubUuid": own.hub_uuid, "channel": "beta", "autoUpdate": false});
    fleet.put_own(&same).await;
    since(own, &second).await.expect(304);
    let held = own
        .client
        .get(&format!("{}?wait=30", path(own)))
        .header(IF_NONE_MATCH, second.header("etag"));
    let held = tokio::spawn(async move { held.call().await });
    while fleet.app.app.metrics.hub_waits.get() == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let path_of_policy = format!(
        "/tenant/agent-update-policies/{}",
        text(&policy, "policyUuid")
    );
    fleet
        .tenant
        .client
        .delete(&path_of_policy)
        .call()
        .await
        .expect(204);
    let third = tokio::time::timeout(Duration::from_secs(10), held)
        .await
        .expect("woken")
        .expect("a reply")
        .expect(200);
    assert_eq!(agent(&third), json!({}));

    let known = [third, hubs[1].desired_reply().await];
    let window = json!({"start": "22:00", "end": "04:00"});
    fleet
        .put_own(&json!({"scope": "UNIT", "window": window}))
        .await;
    let mut after = Vec::new();
    for (hub, known) in hubs.iter().zip(&known) {
        let reply = since(hub, known).await.expect(200);
        assert_eq!(
            agent(&reply),
            json!({"channel": "stable", "window": window})
        );
        after.push(reply);
    }
    // All hubs there are: the worker tells them. Those that another policy holds for hear nothing
    // new.
    let other = hub_tests::Tenant::create(&fleet.app.client()).await;
    let foreign = fleet.hubs(&other, 1, "1.0.0").await;
    let before = foreign[0].desired_reply().await;
    fleet
        .put(&json!({"scope": "GLOBAL", "version": "1.0.0"}))
        .await;
    fleet.work().await;
    let reply = since(&foreign[0], &before).await.expect(200);
    assert_eq!(
        agent(&reply),
        json!({"channel": "stable", "version": "1.0.0"})
    );
    since(own, &after[0]).await.expect(304);
    fleet.minute().await;
    since(&foreign[0], &reply).await.expect(304);
}

on_each_database!(concurrent_policy_change_leaves_no_job_of_the_less_specific_policy);
async fn concurrent_policy_change_leaves_no_job_of_the_less_specific_policy(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let hubs = fleet.hubs(&fleet.tenant, 2, "1.0.0").await;
    fleet.release("2.0.0", 1).await;
    fleet
        .put(&json!({"scope": "GLOBAL", "autoUpdate": true}))
        .await;
    fleet
        .put_own(&json!({"scope": "HUB", "hubUuid": hubs[0].hub_uuid}))
        .await;
    fleet.put_own(&json!({"scope": "UNIT"})).await;
    fleet.work().await;
    // As if the worker had made them in the moment in which the others were put.
    fleet
        .meddle(
            "UPDATE hub_jobs SET policy_uuid = (SELECT policy_uuid FROM update_policies \
                 WHERE scope = 'GLOBAL')",
        )
        .await;
    fleet.minute().await;
    for hub in &hubs {
        let jobs = fleet.jobs_of(hub.hub_uuid).await;
        assert_eq!(jobs[0].0, "CANCELLED", "{jobs:?}");
        assert_eq!(
            jobs[0].2.as_deref(),
            Some("another update policy applies to this hub now")
        );
    }
    fleet.minute().await;
    assert_eq!(
        fleet.waiting().await.len(),
        2,
        "the policy that holds makes its own"
    );
}

on_each_database!(only_operator_cancellation_excludes_a_hub_from_a_release);
async fn only_operator_cancellation_excludes_a_hub_from_a_release(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let hubs = fleet.hubs(&fleet.tenant, 2, "1.0.0").await;
    let (forced, cancelled) = (&hubs[0], &hubs[1]);
    let other = fleet.release("1.5.0", 1).await;
    fleet.release("2.0.0", 2).await;
    fleet.put(&json!({"scope": "GLOBAL"})).await;
    fleet.work().await;
    forced.desired_jobs().await;
    let path = format!("/platform/hubs/{}/jobs/self-update", forced.hub_uuid);
    fleet
        .platform()
        .await
        .post(&path)
        .json(&json!({"releaseUuid": other}))
        .call()
        .await
        .expect(201);
    fleet.work().await;
    assert_eq!(fleet.rollout().await["started"], 0, "it was superseded");
    update(&hubs[..1], |_| true).await;
    fleet.minute().await;
    assert_eq!(
        fleet.target_of(forced.hub_uuid).await.as_deref(),
        Some("2.0.0")
    );

    // Whether the hub was given it yet or not.
    let jobs = cancelled.desired_jobs().await;
    fleet
        .tenant
        .cancel(cancelled, jobs[0].hub_job_uuid)
        .await
        .expect(200);
    for _ in 0..3 {
        fleet.minute().await;
        assert_eq!(fleet.target_of(cancelled.hub_uuid).await, None);
    }
    fleet.release("3.0.0", 3).await;
    fleet.minute().await;
    fleet.minute().await;
    assert_eq!(
        fleet.target_of(cancelled.hub_uuid).await.as_deref(),
        Some("3.0.0")
    );
}

on_each_database!(newest_telemetry_updates_the_hubs_agent_version);
async fn newest_telemetry_updates_the_hubs_agent_version(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let hubs = fleet.hubs(&fleet.tenant, 2, "1.0.0").await;
    fleet.release("2.0.0", 1).await;
    let path = format!("/v1/hubs/{}/telemetry", hubs[0].hub_uuid);
    hubs[0]
        .client
        .post(&path)
        .json(&json!({"agentVersion": "3.0.0", "load": 1}))
        .call()
        .await
        .expect(204);
    let path = format!("/v1/hubs/{}/telemetry", hubs[1].hub_uuid);
    let old = json!({"agentVersion": "3.0.0", "observedAt": "2020-01-31T08:00:00Z"});
    hubs[1]
        .client
        .post(&path)
        .json(&old)
        .call()
        .await
        .expect(204);
    let shown: Value = fleet
        .tenant
        .client
        .get("/tenant/hubs")
        .call()
        .await
        .expect(200)
        .data();
    let version = |hub: &SimulatedHub| {
        let hubs = shown.as_array().expect("a list").iter();
        let mut found = hubs.filter(|shown| shown["hubUuid"] == json!(hub.hub_uuid));
        found.next().map(|hub| text(hub, "agentVersion").to_owned())
    };
    assert_eq!(
        (version(&hubs[0]).as_deref(), version(&hubs[1]).as_deref()),
        (Some("3.0.0"), Some("1.0.0"))
    );
    fleet.put(&json!({"scope": "GLOBAL"})).await;
    fleet.work().await;
    assert_eq!(fleet.target_of(hubs[0].hub_uuid).await, None);
    assert_eq!(
        fleet.target_of(hubs[1].hub_uuid).await.as_deref(),
        Some("2.0.0")
    );
}

on_each_database!(policy_that_fails_does_not_delay_others);
async fn policy_that_fails_does_not_delay_others(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let hubs = fleet.hubs(&fleet.tenant, 1, "1.0.0").await;
    fleet.release("2.0.0", 1).await;
    fleet.put(&json!({"scope": "GLOBAL"})).await;
    fleet
        .hubs(
            &hub_tests::Tenant::create(&fleet.app.client()).await,
            1,
            "1.0.0",
        )
        .await;
    fleet.work().await;
    fleet
        .meddle("UPDATE update_rollouts SET state = 'NONE'")
        .await;
    // Also: of one hub no part can be taken.
    fleet
        .put_own(&json!({"scope": "HUB", "hubUuid": hubs[0].hub_uuid, "rollout": {"percent": 1}}))
        .await;
    fleet.minute().await;
    assert_eq!(
        fleet.target_of(hubs[0].hub_uuid).await.as_deref(),
        Some("2.0.0")
    );
    assert!(
        !update_policies::advance(&fleet.app.app.parts().policies)
            .await
            .expect("the worker works")
    );
}

on_postgres!(policy_changes_do_not_deadlock_with_the_worker);
/// On SQLite one writes at a time; here whoever gives way to another is to try again.
async fn policy_changes_do_not_deadlock_with_the_worker(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let hubs = fleet.hubs(&fleet.tenant, 150, "1.0.0").await;
    fleet.release("2.0.0", 1).await;
    let policy = fleet.put(&json!({"scope": "GLOBAL"})).await;
    let replica = TestApp::replica_of(&fleet.app, fleet.options.clone()).await;
    let admin = fleet.platform().await;
    let mut working = JoinSet::new();
    for app in [fleet.app.app.clone(), replica.app.clone()] {
        working.spawn(async move {
            for _ in 0..60 {
                update_policies::advance(&app.parts().policies)
                    .await
                    .expect("the worker works");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }
    for number in 0..3 {
        let (client, hubs) = (fleet.tenant.client.clone(), hubs.clone());
        working.spawn(async move {
            for round in 0..12 {
                let window = json!({"start": format!("0{number}:0{}", round % 10), "end": "12:00"});
                let body = match number {
                    0 => json!({"scope": "UNIT", "window": window}),
                    _ => json!({"scope": "HUB", "hubUuid": hubs[round * 3 + number].hub_uuid, "window": window}),
                };
                let put: Value =
                    client.put("/tenant/agent-update-policies").json(&body).call().await.expect(200).data();
                let path = format!("/tenant/agent-update-policies/{}", text(&put, "policyUuid"));
                client.delete(&path).call().await.expect(204);
            }
        });
    }
    let path = format!(
        "/platform/agent-update-policies/{}/rollout",
        text(&policy, "policyUuid")
    );
    working.spawn(async move {
        for _ in 0..12 {
            for action in ["halt", "resume"] {
                let status = admin
                    .post(&format!("{path}/{action}"))
                    .call()
                    .await
                    .status
                    .as_u16();
                assert!(matches!(status, 200 | 409), "{action}: {status}");
            }
        }
    });
    working.join_all().await;
    for _ in 0..3 {
        fleet.minute().await;
    }
    assert_eq!(fleet.waiting().await.len(), 150, "{:?}", fleet.jobs().await);
}
