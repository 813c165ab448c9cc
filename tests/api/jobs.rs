//! Jobs from their making to their end: what operators, the platform and hubs see and may do. What
//! happens at the same moment is in `job_races`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hub_core::tasks::Done;
use hub_fleet::jobs::{self, Refusal, SelfUpdate};
use hub_protocol::job::{HubJobType, MaintenanceWindow};
use hub_protocol::{AppUuid, HubJobUuid, ReleaseUuid, Timestamp};
use hub_tests::app::set_clock;
use hub_tests::release::{make_agent, make_app, make_app_release};
use hub_tests::{Backend, Call, Client, Recipe, SimulatedHub, Tenant, on_each_database};
use reqwest::header::IF_NONE_MATCH;
use serde_json::{Value, json};
use uuid::Uuid;

use super::releases::Place;

const NOON: i64 = 1_800_014_400_000_000;
const SECOND: i64 = 1_000_000;

/// A tenant with an app of one release, and a hub.
pub struct Fleet {
    pub place: Place,
    pub hub: SimulatedHub,
    pub app_uuid: AppUuid,
    pub release_uuid: ReleaseUuid,
}

fn uuid_of(release: &Value) -> ReleaseUuid {
    release["releaseUuid"]
        .as_str()
        .and_then(|uuid| uuid.parse().ok())
        .expect("a release's uuid")
}

impl Fleet {
    pub async fn new(backend: Backend) -> Self {
        Self::at(Place::new(backend).await).await
    }

    /// On a clock of the test's own.
    pub async fn with_clock(backend: Backend) -> (Self, Arc<AtomicI64>) {
        let (clock, micros) = set_clock(Timestamp::from_micros(NOON));
        let mut place = Place::with_clock(backend, Some(clock)).await;
        // A person's token would end with the first quarter of an hour.
        let key = json!({"scopes": ["*"], "rateLimitPerMinute": 100_000});
        place.tenant.client = place.tenant.api_key(key).await.client;
        (Self::at(place).await, micros)
    }

    pub async fn at(place: Place) -> Self {
        let hub = SimulatedHub::claim(&place.tenant).await;
        let app_uuid = make_app(&place.tenant, "logger").await;
        let release_uuid = release(&place, app_uuid, &Recipe::app("logger", "1.0.0", 1)).await;
        Self {
            place,
            hub,
            app_uuid,
            release_uuid,
        }
    }

    pub fn tenant(&self) -> &Tenant {
        &self.place.tenant
    }

    async fn newer_release(&self, counter: u64) -> ReleaseUuid {
        let recipe = Recipe::app("logger", &format!("1.0.{counter}"), counter);
        release(&self.place, self.app_uuid, &recipe).await
    }

    async fn upkeep(&self) -> Done {
        upkeep(&self.place.app.app).await
    }
}

async fn release(place: &Place, app_uuid: AppUuid, recipe: &Recipe) -> ReleaseUuid {
    uuid_of(&make_app_release(&place.tenant, app_uuid, &place.maker, recipe).await)
}

pub async fn upkeep(app: &hub_cloud::app::App) -> Done {
    upkeep_of(app, "upkeep.hub_jobs").await
}

async fn upkeep_of(app: &hub_cloud::app::App, kind: &str) -> Done {
    hub_tests::app::perform(app, kind, Value::Null).await
}

/// Has a hub update its agent; answers the job.
async fn self_update(admin: &Client, hub: &SimulatedHub, release_uuid: ReleaseUuid) -> Value {
    let path = format!("/platform/hubs/{}/jobs/self-update", hub.hub_uuid);
    admin
        .post(&path)
        .json(&json!({"releaseUuid": release_uuid, "force": true}))
        .call()
        .await
        .expect(201)
        .data()
}

on_each_database!(installation_job_runs_from_creation_to_success);
async fn installation_job_runs_from_creation_to_success(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let (tenant, hub) = (fleet.tenant(), &fleet.hub);
    let apps = async || -> Value {
        tenant
            .client
            .get(&format!("/tenant/hubs/{}/apps", hub.hub_uuid))
            .call()
            .await
            .expect(200)
            .data()
    };
    let before = hub.desired_reply().await;
    let job = tenant.install(hub, fleet.release_uuid).await;
    let pending = tenant.job(hub, job).await;
    assert_eq!(
        (&pending["status"], &pending["type"]),
        (&json!("PENDING"), &json!("APP_INSTALL"))
    );
    assert_eq!(
        (&pending["version"], &pending["attempts"]),
        (&json!("1.0.0"), &json!(0))
    );
    assert_eq!(
        (
            &pending["result"],
            &pending["dispatchedAt"],
            &pending["window"]
        ),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(
        (&apps().await[0]["jobStatus"], &apps().await[0]["version"]),
        (&json!("PENDING"), &json!("1.0.0"))
    );

    let offered = hub.desired_reply().await;
    assert_ne!(offered.header("etag"), before.header("etag"));
    let state = hub.desired().await;
    assert_eq!((state.jobs.len(), state.apps.len()), (1, 1));
    let desired = &state.jobs[0];
    assert_eq!(
        (desired.hub_job_uuid, desired.job_type, desired.force),
        (job, HubJobType::AppInstall, false)
    );
    assert_eq!(
        (desired.app_uuid, desired.release_uuid),
        (Some(fleet.app_uuid), Some(fleet.release_uuid))
    );
    assert_eq!(
        (state.apps[0].release_uuid, state.apps[0].version.as_str()),
        (fleet.release_uuid, "1.0.0")
    );
    let dispatched = tenant.job(hub, job).await;
    assert_eq!(
        (&dispatched["status"], &dispatched["attempts"]),
        (&json!("DISPATCHED"), &json!(1))
    );
    assert_eq!(
        dispatched["desired"],
        serde_json::to_value(desired).expect("JSON")
    );
    let again = hub
        .client
        .get(&format!("/v1/hubs/{}/desired-state", hub.hub_uuid));
    again
        .header(IF_NONE_MATCH, offered.header("etag"))
        .call()
        .await
        .expect(304);

    hub.tell(job, "LOG", json!({"message": "reading"}))
        .await
        .expect(204);
    assert_eq!(
        tenant.status(hub, job).await,
        "DISPATCHED",
        "talk is no beginning"
    );
    hub.tell(job, "ACCEPTED", json!({})).await.expect(204);
    hub.tell(
        job,
        "PROGRESS",
        json!({"progress": 40, "message": "downloading"}),
    )
    .await
    .expect(204);
    let running = tenant.job(hub, job).await;
    assert_eq!(
        (&running["status"], &running["progress"]),
        (&json!("RUNNING"), &json!(40))
    );
    assert_eq!(running["detail"], "downloading");
    assert_eq!(
        hub.desired_reply().await.header("etag"),
        offered.header("etag"),
        "what a hub tells is no wish"
    );

    let last = json!({"eventUuid": Uuid::new_v4(), "kind": "SUCCEEDED", "detail": {"odd": "\u{0}é"},
        "message": "it runs", "occurredAt": "2026-01-31T08:00:00+01:00"});
    hub.tell_event(job, &last).await.expect(204);
    let done = tenant.job(hub, job).await;
    assert_eq!(
        (&done["status"], &done["progress"]),
        (&json!("SUCCEEDED"), &json!(100))
    );
    assert_eq!(
        (&done["result"], &done["detail"]),
        (&last["detail"], &json!("it runs"))
    );
    assert!(done["finishedAt"].is_string() && done["startedAt"].is_string());
    let after = hub.desired_reply().await;
    assert_ne!(after.header("etag"), offered.header("etag"));
    assert_eq!(
        (
            hub.desired().await.jobs.len(),
            hub.desired().await.apps.len()
        ),
        (0, 1)
    );
    let app = &apps().await[0];
    assert_eq!(
        (&app["installedReleaseUuid"], &app["jobStatus"]),
        (&json!(fleet.release_uuid), &json!("SUCCEEDED"))
    );

    hub.tell_event(job, &last).await.expect(204);
    assert_eq!(
        hub.tell(job, "LOG", json!({}))
            .await
            .expect(409)
            .problem()
            .code,
        "JOB_FINISHED"
    );
    let events = format!("/tenant/hub-monitoring/{}/jobs/{job}/events", hub.hub_uuid);
    let page: Value = tenant.client.get(&events).call().await.expect(200).data();
    let listed = page["content"].as_array().expect("events").clone();
    let kinds: Vec<_> = listed
        .iter()
        .map(|event| event["kind"].as_str().expect("a kind"))
        .collect();
    assert_eq!(
        kinds,
        ["LOG", "ACCEPTED", "PROGRESS", "SUCCEEDED"],
        "each once, in time order"
    );
    assert_eq!(
        (&listed[3]["eventUuid"], &listed[3]["detail"]),
        (&last["eventUuid"], &last["detail"])
    );
    assert_eq!(listed[3]["occurredAt"], "2026-01-31T07:00:00.000000Z");
    assert_eq!(listed[3]["hubJobUuid"], json!(job));
    let latest: Value = tenant
        .client
        .get(&format!("{events}?sort=receivedAt,desc&size=1"))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&latest["content"][0], &latest["totalElements"]),
        (&listed[3], &json!(4))
    );
}

on_each_database!(newer_job_replaces_one_that_has_not_started);
async fn newer_job_replaces_one_that_has_not_started(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let (tenant, hub) = (fleet.tenant(), &fleet.hub);
    let other_app = make_app(tenant, "other").await;
    let second_release = fleet.newer_release(2).await;
    let bystander = tenant.remove(hub, other_app).await;
    let first = tenant.install(hub, fleet.release_uuid).await;
    let second = tenant.install(hub, second_release).await;
    let superseded = tenant.job(hub, first).await;
    assert_eq!(
        (&superseded["status"], &superseded["detail"]),
        (
            &json!("CANCELLED"),
            &json!(format!("superseded by job {second}"))
        )
    );
    assert_eq!(
        hub.desired_jobs()
            .await
            .iter()
            .map(|job| job.hub_job_uuid)
            .collect::<Vec<_>>(),
        [bystander, second]
    );
    assert_eq!(
        hub.tell(first, "ACCEPTED", json!({}))
            .await
            .expect(409)
            .problem()
            .code,
        "JOB_FINISHED"
    );
    // DISPATCHED by now, and still not begun.
    let third = tenant.remove(hub, fleet.app_uuid).await;
    assert_eq!(tenant.status(hub, second).await, "CANCELLED");
    assert!(hub.desired().await.apps.is_empty(), "it is to be removed");
    hub.tell(third, "ACCEPTED", json!({})).await.expect(204);
    let fourth = tenant.install(hub, fleet.release_uuid).await;
    assert_eq!(
        (
            tenant.status(hub, third).await,
            tenant.status(hub, fourth).await
        ),
        ("RUNNING".into(), "PENDING".into())
    );
    let order: Vec<_> = hub
        .desired_jobs()
        .await
        .into_iter()
        .map(|job| job.hub_job_uuid)
        .collect();
    assert_eq!(
        order,
        [bystander, third, fourth],
        "oldest first; what has begun goes on"
    );
    hub.tell(third, "SUCCEEDED", json!({})).await.expect(204);
    assert_eq!(
        hub.desired().await.apps[0].release_uuid,
        fleet.release_uuid,
        "the removal was the older wish"
    );
    let listed: Vec<Value> = tenant
        .client
        .get(&format!("/tenant/hubs/{}/jobs", hub.hub_uuid))
        .call()
        .await
        .expect(200)
        .data();
    let listed: Vec<_> = listed.iter().map(|job| job["hubJobUuid"].clone()).collect();
    assert_eq!(
        listed,
        [fourth, third, second, first, bystander].map(|job| json!(job)),
        "newest first"
    );
    let page = format!(
        "/tenant/hub-monitoring/{}/jobs?sort=createdAt,asc&size=2&page=1",
        hub.hub_uuid
    );
    let page: Value = tenant.client.get(&page).call().await.expect(200).data();
    assert_eq!(
        (&page["content"][0]["hubJobUuid"], &page["totalPages"]),
        (&json!(second), &json!(3))
    );
}

on_each_database!(desired_app_falls_back_to_the_installed_version);
async fn desired_app_falls_back_to_the_installed_version(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let (tenant, hub) = (fleet.tenant(), &fleet.hub);
    let apps = async || -> Vec<Value> {
        tenant
            .client
            .get(&format!("/tenant/hubs/{}/apps", hub.hub_uuid))
            .call()
            .await
            .expect(200)
            .data()
    };
    let cancelled = tenant.install(hub, fleet.release_uuid).await;
    tenant.cancel(hub, cancelled).await.expect(200);
    assert!(apps().await.is_empty() && hub.desired().await.apps.is_empty());
    let failed = tenant.install(hub, fleet.release_uuid).await;
    hub.tell(
        failed,
        "FAILED",
        json!({"message": "no room", "detail": {"reason": "DISK_FULL"}}),
    )
    .await
    .expect(204);
    let job = tenant.job(hub, failed).await;
    assert_eq!(
        (&job["status"], &job["result"]),
        (&json!("FAILED"), &json!({"reason": "DISK_FULL"}))
    );
    assert!(job["startedAt"].is_string(), "what ends has begun");
    let app = &apps().await[0];
    assert_eq!(
        (&app["releaseUuid"], &app["jobStatus"]),
        (&Value::Null, &json!("FAILED"))
    );
    assert!(hub.desired().await.apps.is_empty());
    let good = tenant.install(hub, fleet.release_uuid).await;
    hub.tell(good, "SUCCEEDED", json!({})).await.expect(204);
    let newer = fleet.newer_release(2).await;
    let bad = tenant.install(hub, newer).await;
    assert_eq!(hub.desired().await.apps[0].release_uuid, newer);
    hub.tell(bad, "FAILED", json!({})).await.expect(204);
    assert_eq!(
        hub.desired().await.apps[0].release_uuid,
        fleet.release_uuid,
        "the hub went back, too"
    );
    let removal = tenant.remove(hub, fleet.app_uuid).await;
    assert!(hub.desired().await.apps.is_empty());
    tenant.cancel(hub, removal).await.expect(200);
    assert_eq!(hub.desired().await.apps[0].release_uuid, fleet.release_uuid);
    let removal = tenant.remove(hub, fleet.app_uuid).await;
    hub.tell(removal, "SUCCEEDED", json!({})).await.expect(204);
    assert!(apps().await.is_empty() && hub.desired().await.apps.is_empty());
}

on_each_database!(invalid_job_is_refused);
async fn invalid_job_is_refused(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let (tenant, hub, place) = (fleet.tenant(), &fleet.hub, &fleet.place);
    let with = |member: &str, value: Value| {
        let mut body = json!({"appReleaseUuid": fleet.release_uuid});
        body[member] = value;
        body
    };
    for (body, field) in [
        (with("validForSeconds", json!(0)), "validForSeconds"),
        (
            with("validForSeconds", json!(365 * 86_400 + 1)),
            "validForSeconds",
        ),
        (
            with("deadlineAt", json!("2020-01-01T00:00:00Z")),
            "deadlineAt",
        ),
        (
            with("deadlineAt", json!("2999-01-01T00:00:00Z")),
            "deadlineAt",
        ),
        (with("force", json!("yes")), "force"),
        (json!({}), "appReleaseUuid"),
    ] {
        let problem = tenant.try_install(hub, &body).await.expect(400).problem();
        assert_eq!(problem.errors[0].field, field, "{body}");
    }
    let both = json!({"appReleaseUuid": fleet.release_uuid, "validForSeconds": 60, "deadlineAt": "2999-01-01T00:00:00Z"});
    assert_eq!(
        tenant
            .try_install(hub, &both)
            .await
            .expect(400)
            .problem()
            .errors[0]
            .field,
        "validForSeconds"
    );
    let path = format!("/tenant/hubs/{}/jobs/app-remove", hub.hub_uuid);
    assert_eq!(
        tenant
            .client
            .post(&path)
            .call()
            .await
            .expect(400)
            .problem()
            .errors[0]
            .field,
        "appUuid"
    );
    tenant
        .client
        .post(&format!("{path}?appUuid={}", Uuid::new_v4()))
        .call()
        .await
        .expect(404);
    tenant
        .try_install(hub, &json!({"appReleaseUuid": Uuid::new_v4()}))
        .await
        .expect(404);

    // What another tenant has is not there, and neither is what awaits its file.
    let stranger = Tenant::create(&place.app.client()).await;
    let foreign = make_app(&stranger, "theirs").await;
    let theirs = uuid_of(
        &make_app_release(
            &stranger,
            foreign,
            &place.maker,
            &Recipe::app("theirs", "1.0.0", 1),
        )
        .await,
    );
    tenant
        .try_install(hub, &json!({"appReleaseUuid": theirs}))
        .await
        .expect(404);
    tenant
        .client
        .post(&format!("{path}?appUuid={foreign}"))
        .call()
        .await
        .expect(404);
    stranger
        .try_install(hub, &json!({"appReleaseUuid": theirs}))
        .await
        .expect(404);
    let body = place
        .maker
        .body(&Recipe::app("logger", "2.0.0", 7), json!({}));
    let awaiting = tenant
        .client
        .post(&format!("/tenant/apps/{}/releases", fleet.app_uuid))
        .json(&body);
    let awaiting = uuid_of(&awaiting.call().await.expect(201).data());
    tenant
        .try_install(hub, &json!({"appReleaseUuid": awaiting}))
        .await
        .expect(404);

    // The architecture is the one that the hub said when it was claimed.
    let claim = json!({"claimCode": tenant.claim_code().await, "deviceInstanceId": "an arm", "os": {"arch": "aarch64"}});
    let arm: Value = place
        .app
        .client()
        .post("/v1/hubs/claim")
        .json(&claim)
        .call()
        .await
        .expect(201)
        .data();
    let mut arm_hub = hub.clone();
    arm_hub.hub_uuid = arm["hubUuid"]
        .as_str()
        .and_then(|uuid| uuid.parse().ok())
        .expect("a hub");
    let x86 = Recipe {
        architecture: "x86_64".to_owned(),
        ..Recipe::app("logger", "3.0.0", 8)
    };
    let x86 = release(place, fleet.app_uuid, &x86).await;
    let refused = tenant
        .try_install(&arm_hub, &json!({"appReleaseUuid": x86}))
        .await
        .expect(409)
        .problem();
    assert_eq!(refused.code, "OTHER_ARCHITECTURE");
    assert!(
        refused.message.contains("x86_64") && refused.message.contains("aarch64"),
        "{}",
        refused.message
    );
    tenant.install(&arm_hub, fleet.release_uuid).await;
    tenant.install(hub, x86).await;

    place
        .admin
        .post(&format!("/platform/hubs/{}/block", hub.hub_uuid))
        .call()
        .await
        .expect(200);
    let blocked = tenant
        .try_install(hub, &json!({"appReleaseUuid": fleet.release_uuid}))
        .await
        .expect(409)
        .problem();
    assert_eq!(blocked.code, "HUB_BLOCKED");
    assert_eq!(
        tenant
            .client
            .post(&format!("{path}?appUuid={}", fleet.app_uuid))
            .call()
            .await
            .expect(409)
            .problem()
            .code,
        "HUB_BLOCKED"
    );
}

on_each_database!(open_jobs_per_hub_are_limited_to_100);
async fn open_jobs_per_hub_are_limited_to_100(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let (tenant, hub) = (fleet.tenant(), &fleet.hub);
    for _ in 0..100 {
        let job = tenant.remove(hub, fleet.app_uuid).await;
        hub.tell(job, "ACCEPTED", json!({})).await.expect(204);
    }
    let refused = tenant
        .try_install(hub, &json!({"appReleaseUuid": fleet.release_uuid}))
        .await
        .expect(409);
    assert_eq!(refused.problem().code, "TOO_MANY_JOBS");
    let jobs = hub.desired_jobs().await;
    assert_eq!(jobs.len(), 100);
    tenant.cancel(hub, jobs[0].hub_job_uuid).await.expect(200);
    tenant.install(hub, fleet.release_uuid).await;
}

on_each_database!(job_of_a_silent_hub_is_dispatched_again_and_fails_in_the_end);
async fn job_of_a_silent_hub_is_dispatched_again_and_fails_in_the_end(backend: Backend) {
    let (fleet, micros) = Fleet::with_clock(backend).await;
    let (tenant, hub) = (fleet.tenant(), &fleet.hub);
    let other_app = make_app(tenant, "other").await;
    let first = tenant.install(hub, fleet.release_uuid).await;
    let behind = tenant.remove(hub, other_app).await;
    let etag = hub.desired_reply().await.header("etag").to_owned();
    let attempts = async |job: HubJobUuid| {
        tenant.job(hub, job).await["attempts"]
            .as_i64()
            .expect("a number")
    };
    for expected in 1..=20 {
        for (wait_secs, what) in [(59, "given again"), (1, "trusted to be at it")] {
            assert_eq!(
                hub.desired_reply().await.header("etag"),
                etag,
                "giving it is no change"
            );
            assert_eq!(
                (attempts(first).await, attempts(behind).await),
                (expected, 1),
                "{what}"
            );
            fleet.upkeep().await;
            micros.fetch_add(wait_secs * SECOND, Ordering::Relaxed);
        }
    }
    assert_eq!(tenant.status(hub, first).await, "DISPATCHED");
    let now = fleet.place.app.app.clock.now();
    assert_eq!(fleet.upkeep().await, Done::RunAt(now.plus_secs(10)));
    let given_up = tenant.job(hub, first).await;
    assert_eq!(
        (&given_up["status"], &given_up["result"]),
        (&json!("FAILED"), &json!({"reason": "NO_RESPONSE"}))
    );
    assert!(
        given_up["detail"]
            .as_str()
            .expect("text")
            .contains("20 times")
    );
    let reply = hub.desired_reply().await;
    assert_ne!(reply.header("etag"), etag);
    assert_eq!(hub.desired_jobs().await[0].hub_job_uuid, behind);
    // Who has said anything is not given up.
    hub.tell(behind, "LOG", json!({})).await.expect(204);
    for _ in 0..25 {
        micros.fetch_add(60 * SECOND, Ordering::Relaxed);
        hub.desired_jobs().await;
    }
    micros.fetch_add(60 * SECOND, Ordering::Relaxed);
    fleet.upkeep().await;
    assert_eq!(tenant.status(hub, behind).await, "DISPATCHED");
}

on_each_database!(job_expires_at_its_deadline);
async fn job_expires_at_its_deadline(backend: Backend) {
    let (fleet, micros) = Fleet::with_clock(backend).await;
    let (tenant, hub) = (fleet.tenant(), &fleet.hub);
    let body = json!({"appReleaseUuid": fleet.release_uuid, "validForSeconds": 3600});
    let job: HubJobUuid = tenant.try_install(hub, &body).await.expect(201).data();
    let lasting = {
        let other_app = make_app(tenant, "other").await;
        tenant.remove(hub, other_app).await
    };
    let etag = hub.desired_reply().await.header("etag").to_owned();
    micros.fetch_add(3599 * SECOND, Ordering::Relaxed);
    fleet.upkeep().await;
    assert_eq!(tenant.status(hub, job).await, "DISPATCHED");
    micros.fetch_add(SECOND, Ordering::Relaxed);
    let jobs: Vec<_> = hub
        .desired_jobs()
        .await
        .into_iter()
        .map(|job| job.hub_job_uuid)
        .collect();
    assert_eq!(jobs, [lasting], "what is overdue is not handed out");
    fleet.upkeep().await;
    let expired = tenant.job(hub, job).await;
    assert_eq!(
        (&expired["status"], &expired["detail"]),
        (&json!("EXPIRED"), &json!("its deadline passed"))
    );
    assert_ne!(hub.desired_reply().await.header("etag"), etag);
    assert_eq!(
        hub.tell(job, "SUCCEEDED", json!({}))
            .await
            .expect(409)
            .problem()
            .code,
        "JOB_FINISHED"
    );
    assert_eq!(tenant.status(hub, lasting).await, "DISPATCHED");
    let log: Value = tenant
        .client
        .get("/tenant/audit-logs?action=hub_job.expire")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&log["content"][0]["objectId"], &log["totalElements"]),
        (&json!(job), &json!(1))
    );
}

on_each_database!(hub_reports_only_its_own_jobs_and_valid_events);
async fn hub_reports_only_its_own_jobs_and_valid_events(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let (tenant, hub) = (fleet.tenant(), &fleet.hub);
    let neighbour = SimulatedHub::claim(tenant).await;
    let job = tenant.install(hub, fleet.release_uuid).await;
    neighbour.tell(job, "ACCEPTED", json!({})).await.expect(404);
    let as_neighbour = neighbour
        .client
        .post(&format!("/v1/hubs/{}/jobs/{job}/events", hub.hub_uuid));
    assert_eq!(
        as_neighbour
            .json(&json!({}))
            .call()
            .await
            .expect(403)
            .problem()
            .code,
        "OTHER_HUB"
    );
    hub.tell(HubJobUuid::new(), "ACCEPTED", json!({}))
        .await
        .expect(404);
    let deep = (0..70).fold(json!(1), |inner, _| json!({"a": inner}));
    for (kind, more, field) in [
        ("BEGUN", json!({}), "kind"),
        ("PROGRESS", json!({"progress": 101}), "progress"),
        ("PROGRESS", json!({"progress": -1}), "progress"),
        ("PROGRESS", json!({"progress": 0.5}), "progress"),
        ("LOG", json!({"message": "x".repeat(2001)}), "message"),
        ("LOG", json!({"message": "a\u{0}"}), "message"),
        ("LOG", json!({"detail": [1]}), "detail"),
        (
            "LOG",
            json!({"detail": {"text": "x".repeat(16 * 1024)}}),
            "detail",
        ),
        ("LOG", json!({"detail": deep}), "detail"),
        ("LOG", json!({"eventUuid": "1"}), "eventUuid"),
        ("LOG", json!({"occurredAt": "now"}), "occurredAt"),
    ] {
        let problem = hub
            .tell(job, kind, more.clone())
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{more}");
    }
    assert_eq!(
        tenant.status(hub, job).await,
        "PENDING",
        "what is refused has changed nothing"
    );

    // Jobs are not counted as uploads are, and a key of the hub's own choosing is kept to.
    let with_key = async |key: &str, event: Value| {
        let request = hub
            .client
            .post(&format!("/v1/hubs/{}/jobs/{job}/events", hub.hub_uuid));
        request
            .header("idempotency-key", key)
            .json(&event)
            .call()
            .await
    };
    for number in 0..150 {
        hub.tell(job, "PROGRESS", json!({"progress": number % 100}))
            .await
            .expect(204);
    }
    let event = |message: &str| json!({"eventUuid": Uuid::new_v4(), "kind": "LOG", "message": message, "occurredAt": "2026-01-31T08:00:00Z"});
    with_key("k1", event("once")).await.expect(204);
    with_key("k1", event("the same key")).await.expect(204);
    let own = event("its own uuid as its key");
    with_key(own["eventUuid"].as_str().expect("text"), own.clone())
        .await
        .expect(204);
    with_key("two words", event("x")).await.expect(400);
    let page = format!(
        "/tenant/hub-monitoring/{}/jobs/{job}/events?sort=receivedAt,desc",
        hub.hub_uuid
    );
    let page: Value = tenant.client.get(&page).call().await.expect(200).data();
    assert_eq!(page["totalElements"], 152);
    assert_eq!(
        (
            &page["content"][1]["message"],
            &page["content"][0]["eventUuid"]
        ),
        (&json!("once"), &own["eventUuid"])
    );
}

on_each_database!(hub_reports_its_installed_apps);
async fn hub_reports_its_installed_apps(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let (tenant, hub) = (fleet.tenant(), &fleet.hub);
    let path = format!("/v1/hubs/{}/installed-apps", hub.hub_uuid);
    let report = async |apps: Value| {
        hub.client
            .put(&path)
            .json(&json!({"apps": apps}))
            .call()
            .await
    };
    let listed = async || -> Vec<Value> {
        tenant
            .client
            .get(&format!("/tenant/hubs/{}/installed-apps", hub.hub_uuid))
            .call()
            .await
            .expect(200)
            .data()
    };
    let app = |app_uuid: Uuid, state: &str| {
        json!({"appUuid": app_uuid, "releaseUuid": Uuid::new_v4(), "version": "1.0.0", "state": state,
            "message": "m", "since": "2026-01-31T08:00:00.000000Z", "restarts": 3})
    };
    let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
    assert!(listed().await.is_empty());
    report(json!([app(two, "FAILED"), app(one, "RUNNING")]))
        .await
        .expect(204);
    let apps = listed().await;
    assert_eq!(
        (&apps[0]["appUuid"], &apps[1]["appUuid"], apps.len()),
        (&json!(one), &json!(two), 2)
    );
    assert_eq!(
        (&apps[1]["state"], &apps[1]["restarts"], &apps[1]["since"]),
        (
            &json!("FAILED"),
            &json!(3),
            &json!("2026-01-31T08:00:00.000000Z")
        )
    );
    for (apps, field) in [
        (
            json!([app(one, "RUNNING"), app(one, "RUNNING")]),
            "apps[1].appUuid",
        ),
        (json!([app(one, "IDLE")]), "apps[0].state"),
        (
            json!(
                (0..257)
                    .map(|n| app(Uuid::from_u128(n), "RUNNING"))
                    .collect::<Vec<_>>()
            ),
            "apps",
        ),
    ] {
        assert_eq!(
            report(apps).await.expect(400).problem().errors[0].field,
            field
        );
    }
    // The first of two entries of one app is valid, and is what is left.
    assert_eq!(listed().await.len(), 1);
    let mut bad = app(one, "RUNNING");
    bad["version"] = json!("");
    report(json!([bad, app(two, "FAILED")])).await.expect(400);
    assert_eq!(
        listed().await[0]["appUuid"],
        json!(two),
        "the good entry is stored"
    );
    report(json!([app(two, "STOPPED")])).await.expect(204);
    assert_eq!(
        listed()
            .await
            .iter()
            .map(|app| app["state"].clone())
            .collect::<Vec<_>>(),
        ["STOPPED"]
    );
    report(json!([])).await.expect(204);
    assert!(listed().await.is_empty());
}

on_each_database!(platform_administrator_creates_self_update_jobs);
async fn platform_administrator_creates_self_update_jobs(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let (tenant, hub, place) = (fleet.tenant(), &fleet.hub, &fleet.place);
    let older = uuid_of(
        &make_agent(
            &place.admin,
            &place.maker,
            &Recipe::agent("1.0.0", 1),
            json!({}),
        )
        .await,
    );
    let newer = uuid_of(
        &make_agent(
            &place.admin,
            &place.maker,
            &Recipe::agent("1.1.0", 2),
            json!({}),
        )
        .await,
    );
    let path = format!("/platform/hubs/{}/jobs/self-update", hub.hub_uuid);
    tenant
        .client
        .post(&path)
        .json(&json!({"releaseUuid": newer}))
        .call()
        .await
        .expect(403);
    place
        .admin
        .post(&path)
        .json(&json!({"releaseUuid": Uuid::new_v4()}))
        .call()
        .await
        .expect(404);
    let nowhere = format!("/platform/hubs/{}/jobs/self-update", Uuid::new_v4());
    place
        .admin
        .post(&nowhere)
        .json(&json!({"releaseUuid": newer}))
        .call()
        .await
        .expect(404);
    let first = self_update(&place.admin, hub, older).await;
    assert_eq!(
        (&first["type"], &first["status"], &first["force"]),
        (&json!("SELF_UPDATE"), &json!("PENDING"), &json!(true))
    );
    let second = self_update(&place.admin, hub, newer).await;
    let jobs = hub.desired_jobs().await;
    assert_eq!(
        (jobs.len(), jobs[0].release_uuid, jobs[0].app_uuid),
        (1, Some(newer), None)
    );
    let job = jobs[0].hub_job_uuid;
    assert_eq!(json!(job), second["hubJobUuid"]);

    // A rollout leaves it at that.
    let app = &place.app.app;
    let now = app.clock.now();
    let terms = jobs::Terms {
        deadline_at: now.plus_secs(3600),
        force: false,
    };
    let roll_out = async || {
        let mut tx = app.db.begin().await.expect("a transaction");
        let release = hub_fleet::releases::agent_release_for_job(&mut tx, newer)
            .await
            .expect("an answer");
        let release = release.expect("the release");
        let window = MaintenanceWindow {
            start: "22:00".to_owned(),
            end: "04:00".to_owned(),
        };
        let policy_uuid = Uuid::from_u128(7);
        let update = SelfUpdate {
            release: &release,
            policy_uuid,
            window: Some(window),
            terms,
        };
        let changes = &app.parts().hubs.changes;
        let made = jobs::create_self_update(&mut tx, changes, hub.hub_uuid, update, now);
        let made = made.await.expect("an answer");
        tx.commit_unaudited("a test's own").await.expect("a commit");
        made
    };
    assert_eq!(roll_out().await, Err(Refusal::UpdateOpen));
    hub.tell(job, "ACCEPTED", json!({})).await.expect(204);
    assert_eq!(roll_out().await, Err(Refusal::UpdateOpen));
    hub.tell(job, "SUCCEEDED", json!({})).await.expect(204);
    let detail: Value = tenant
        .client
        .get(&format!("/tenant/hubs/{}", hub.hub_uuid))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        detail["agentVersion"], "1.1.0",
        "the hub said that it runs it"
    );
    let rolled_out = roll_out().await.expect("a job");
    let job = tenant.job(hub, rolled_out).await;
    assert_eq!(
        (&job["policyUuid"], &job["window"]),
        (
            &json!(Uuid::from_u128(7)),
            &json!({"start": "22:00", "end": "04:00"})
        )
    );
    assert_eq!(
        hub.desired_jobs().await[0]
            .window
            .as_ref()
            .map(|window| window.start.as_str()),
        Some("22:00")
    );
}

on_each_database!(event_of_a_job_counts_as_its_dispatch);
async fn event_of_a_job_counts_as_its_dispatch(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let (tenant, hub) = (fleet.tenant(), &fleet.hub);
    for (kind, status) in [("LOG", "DISPATCHED"), ("ACCEPTED", "RUNNING")] {
        let job = tenant.install(hub, fleet.release_uuid).await;
        hub.tell(job, kind, json!({})).await.expect(204);
        let detail = tenant.job(hub, job).await;
        assert_eq!(detail["status"], status);
        assert!(detail["dispatchedAt"].is_string(), "{detail}");
    }
}

on_each_database!(job_events_are_deleted_long_after_the_job_ended);
async fn job_events_are_deleted_long_after_the_job_ended(backend: Backend) {
    let (fleet, micros) = Fleet::with_clock(backend).await;
    let (tenant, hub, app) = (fleet.tenant(), &fleet.hub, &fleet.place.app.app);
    let over = tenant.install(hub, fleet.release_uuid).await;
    for kind in ["ACCEPTED", "LOG", "SUCCEEDED"] {
        hub.tell(over, kind, json!({})).await.expect(204);
    }
    let body = json!({"appReleaseUuid": fleet.release_uuid, "validForSeconds": 365 * 24 * 3600});
    let open: HubJobUuid = tenant.try_install(hub, &body).await.expect(201).data();
    hub.tell(open, "ACCEPTED", json!({})).await.expect(204);
    let events = async |job: HubJobUuid| {
        let path = format!("/tenant/hub-monitoring/{}/jobs/{job}/events", hub.hub_uuid);
        tenant.client.get(&path).call().await.expect(200).json()["data"]["content"]
            .as_array()
            .expect("a page")
            .len()
    };
    let pass = |days: i64| micros.fetch_add(days * 24 * 3600 * SECOND, Ordering::Relaxed);
    pass(89);
    upkeep_of(app, "retention.job_events").await;
    assert_eq!((events(over).await, events(open).await), (3, 1));
    pass(2);
    upkeep_of(app, "retention.job_events").await;
    assert_eq!((events(over).await, events(open).await), (0, 1));
    assert_eq!(
        tenant.status(hub, over).await,
        "SUCCEEDED",
        "the job itself stays"
    );
}
