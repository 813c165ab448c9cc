//! What happens to jobs at the same moment, and how soon a hub and whoever watches hear of them.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hub_core::config::Settings;
use hub_protocol::HubJobUuid;
use hub_tests::{
    Backend, Call, Follower, Options, Reply, SimulatedHub, TestApp, assert_at_once,
    on_each_database, on_postgres,
};
use reqwest::header::IF_NONE_MATCH;
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};

use super::jobs::{Fleet, upkeep};

const ROUNDS: usize = 12;

on_each_database!(concurrent_jobs_leave_the_newest_one);
async fn concurrent_jobs_leave_the_newest_one(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let (tenant, hub) = (fleet.tenant(), &fleet.hub);
    let replica = TestApp::replica_of(&fleet.place.app, Options::default()).await;
    let mut there = tenant.clone();
    there.client = tenant.client.at(&replica.url);
    let mut making = JoinSet::new();
    for number in 0..20 {
        let tenant = if number % 2 == 0 {
            tenant.clone()
        } else {
            there.clone()
        };
        let (hub, release_uuid, app_uuid) = (hub.clone(), fleet.release_uuid, fleet.app_uuid);
        making.spawn(async move {
            match number % 5 {
                0 => tenant.remove(&hub, app_uuid).await,
                _ => tenant.install(&hub, release_uuid).await,
            }
        });
    }
    making.join_all().await;
    let listed: Vec<Value> = tenant
        .client
        .get(&format!("/tenant/hubs/{}/jobs?size=100", hub.hub_uuid))
        .call()
        .await
        .expect(200)
        .data();
    let statuses: Vec<_> = listed
        .iter()
        .map(|job| job["status"].as_str().expect("a status"))
        .collect();
    assert_eq!(
        (listed.len(), statuses[0]),
        (20, "PENDING"),
        "the newest is what counts"
    );
    assert!(
        statuses[1..].iter().all(|status| *status == "CANCELLED"),
        "{statuses:?}"
    );
    // Each names the one right after it.
    for pair in listed.windows(2) {
        let by = format!(
            "superseded by job {}",
            pair[0]["hubJobUuid"].as_str().expect("a uuid")
        );
        assert_eq!(pair[1]["detail"], by);
    }
    let state = hub.desired().await;
    assert_eq!(json!(state.jobs[0].hub_job_uuid), listed[0]["hubJobUuid"]);
    assert_eq!(
        state.apps.len(),
        usize::from(listed[0]["type"] == "APP_INSTALL")
    );
}

on_each_database!(cancellation_and_the_hubs_final_event_have_one_winner);
async fn cancellation_and_the_hubs_final_event_have_one_winner(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let (tenant, hub) = (fleet.tenant(), &fleet.hub);
    let mut cancelled = 0;
    for _ in 0..ROUNDS {
        let job = tenant.install(hub, fleet.release_uuid).await;
        hub.tell(job, "ACCEPTED", json!({})).await.expect(204);
        let (cancel, reply) = tokio::join!(
            tenant.cancel(hub, job),
            hub.tell(job, "SUCCEEDED", json!({}))
        );
        let status = tenant.status(hub, job).await;
        match (cancel.status.as_u16(), reply.status.as_u16()) {
            (200, 409) => assert_eq!(status, "CANCELLED"),
            (409, 204) => assert_eq!(status, "SUCCEEDED"),
            other => panic!("{other:?}, and then {status}"),
        }
        cancelled += usize::from(status == "CANCELLED");
        assert_eq!(
            tenant.cancel(hub, job).await.expect(409).problem().code,
            "JOB_FINISHED"
        );
        assert!(hub.desired_jobs().await.is_empty());
    }
    println!("{cancelled} of {ROUNDS} were cancelled");
    assert_eq!(
        tenant
            .cancel(hub, HubJobUuid::new())
            .await
            .expect(404)
            .problem()
            .code,
        "NOT_FOUND"
    );
}

on_each_database!(expiry_and_the_hubs_final_event_have_one_winner);
async fn expiry_and_the_hubs_final_event_have_one_winner(backend: Backend) {
    let (fleet, micros) = Fleet::with_clock(backend).await;
    let (tenant, hub) = (fleet.tenant(), &fleet.hub);
    for _ in 0..ROUNDS {
        let body = json!({"appReleaseUuid": fleet.release_uuid, "validForSeconds": 3600});
        let job: HubJobUuid = tenant.try_install(hub, &body).await.expect(201).data();
        hub.tell(job, "ACCEPTED", json!({})).await.expect(204);
        micros.fetch_add(3600 * 1_000_000, Ordering::Relaxed);
        let (_, reply) = tokio::join!(
            upkeep(&fleet.place.app.app),
            hub.tell(job, "SUCCEEDED", json!({}))
        );
        let status = tenant.status(hub, job).await;
        match reply.status.as_u16() {
            204 => assert_eq!(status, "SUCCEEDED"),
            409 => assert_eq!(status, "EXPIRED"),
            other => panic!("{other}, and then {status}"),
        }
    }
}

on_each_database!(concurrent_polls_dispatch_a_job_once);
async fn concurrent_polls_dispatch_a_job_once(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let (tenant, hub) = (fleet.tenant(), &fleet.hub);
    for _ in 0..ROUNDS {
        let job = tenant.install(hub, fleet.release_uuid).await;
        let mut asking = JoinSet::new();
        for _ in 0..4 {
            let hub = hub.clone();
            asking.spawn(async move { hub.desired_reply().await });
        }
        let replies = asking.join_all().await;
        assert!(
            replies
                .iter()
                .all(|reply| reply.header("etag") == replies[0].header("etag"))
        );
        let jobs = replies
            .iter()
            .map(|reply| reply.json()["data"]["jobs"].as_array().expect("jobs").len());
        assert!(
            jobs.clone().all(|count| count == 1),
            "the requester gets the reason: {:?}",
            jobs.collect::<Vec<_>>()
        );
        assert_eq!(tenant.job(hub, job).await["attempts"], 1);
    }
}

on_each_database!(cancelled_job_is_never_dispatched);
/// What is cancelled before it was given is not given; what is cancelled after is gone from the
/// next state.
async fn cancelled_job_is_never_dispatched(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let (tenant, hub) = (fleet.tenant(), &fleet.hub);
    for _ in 0..ROUNDS {
        let job = tenant.install(hub, fleet.release_uuid).await;
        let (cancelled, given) = tokio::join!(tenant.cancel(hub, job), hub.desired_reply());
        let cancelled: Value = cancelled.expect(200).data();
        let was_given = !given.json()["data"]["jobs"]
            .as_array()
            .expect("jobs")
            .is_empty();
        assert_eq!(
            was_given,
            cancelled["dispatchedAt"].is_string(),
            "{cancelled}"
        );
        assert!(hub.desired_jobs().await.is_empty());
    }
}

/// A request for the desired state that is held, seen to be waiting before this returns.
async fn wait(app: &TestApp, hub: &SimulatedHub) -> JoinHandle<(Reply, Instant)> {
    let etag = hub.desired_reply().await.header("etag").to_owned();
    let waiting = app.app.metrics.hub_waits.get();
    let request = hub
        .client
        .get(&format!("/v1/hubs/{}/desired-state?wait=50", hub.hub_uuid));
    let request = request.header(IF_NONE_MATCH, etag);
    let held = tokio::spawn(async move { (request.call().await, Instant::now()) });
    while app.app.metrics.hub_waits.get() <= waiting {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    held
}

/// The times until a hub that waits at this replica has jobs that others make and cancel.
async fn times_of_changes(fleet: &Fleet, at: &TestApp, hub: &SimulatedHub) -> Vec<Duration> {
    let tenant = fleet.tenant();
    let mut times = Vec::new();
    for _ in 0..5 {
        let held = wait(at, hub).await;
        let made_at = Instant::now();
        let job = tenant.install(&fleet.hub, fleet.release_uuid).await;
        let (reply, arrived_at) = held.await.expect("an answer");
        times.push(arrived_at - made_at);
        let jobs = &reply.expect(200).json()["data"]["jobs"];
        assert_eq!(jobs.as_array().map(Vec::len), Some(1));
        assert_eq!(jobs[0]["hubJobUuid"], json!(job));
        // It hears of the end of what it was given, too.
        let held = wait(at, hub).await;
        let cancelled_at = Instant::now();
        tenant.cancel(&fleet.hub, job).await.expect(200);
        let (reply, arrived_at) = held.await.expect("an answer");
        times.push(arrived_at - cancelled_at);
        assert_eq!(reply.expect(200).json()["data"]["jobs"], json!([]));
    }
    times
}

on_each_database!(waiting_hub_receives_a_job_at_once);
async fn waiting_hub_receives_a_job_at_once(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let (tenant, hub) = (fleet.tenant(), &fleet.hub);
    let bystander = SimulatedHub::claim(tenant).await;
    let still_held = wait(&fleet.place.app, &bystander).await;
    assert_at_once(times_of_changes(&fleet, &fleet.place.app, hub).await);
    assert!(
        !still_held.is_finished(),
        "what concerns one hub wakes no other"
    );
    still_held.abort();
}

on_each_database!(hub_waiting_at_another_replica_gets_its_job);
async fn hub_waiting_at_another_replica_gets_its_job(backend: Backend) {
    job_reaches_another_replica(backend, None).await;
}

on_postgres!(hub_waiting_at_another_replica_gets_its_job_over_nats);
async fn hub_waiting_at_another_replica_gets_its_job_over_nats(backend: Backend) {
    if let Some(bus) = hub_tests::nats_url() {
        job_reaches_another_replica(backend, Some(bus)).await;
    }
}

async fn job_reaches_another_replica(backend: Backend, bus: Option<String>) {
    let settings = Settings {
        bus: bus.clone(),
        ..Settings::default()
    };
    let fleet =
        Fleet::at(super::releases::Place::with_settings(backend, settings.clone(), None).await)
            .await;
    let replica = TestApp::replica_of(
        &fleet.place.app,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let mut there = fleet.hub.clone();
    there.client = fleet.hub.client.at(&replica.url);
    // The bus connects in the background.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let times = times_of_changes(&fleet, &replica, &there).await;
    let longest = times.iter().max();
    assert!(longest < Some(&Duration::from_secs(4)), "{times:?}");
    if bus.is_some() {
        assert_at_once(times);
    }
}

on_each_database!(job_events_are_streamed_once_and_in_order);
async fn job_events_are_streamed_once_and_in_order(backend: Backend) {
    const HUBS: usize = 4;
    const EVENTS: usize = 25;
    let fleet = Fleet::new(backend).await;
    let tenant = fleet.tenant();
    let replica = TestApp::replica_of(&fleet.place.app, Options::default()).await;
    let mut hubs = vec![fleet.hub.clone()];
    while hubs.len() < HUBS {
        hubs.push(SimulatedHub::claim(tenant).await);
    }
    let path = format!("/tenant/stream/hubs/{}/jobs", fleet.hub.hub_uuid);
    // One that begins late and is cut off again and again, one on another replica.
    let followers = [
        Follower::start(&tenant.client, &path, 7, 1),
        Follower::start(&tenant.client.at(&replica.url), &path, 9, 2),
    ];
    let mut telling = JoinSet::new();
    for (number, hub) in hubs.into_iter().enumerate() {
        let job = tenant.install(&hub, fleet.release_uuid).await;
        let url = if number % 2 == 0 {
            replica.url.clone()
        } else {
            fleet.place.app.url.clone()
        };
        telling.spawn(async move {
            let reporter = SimulatedHub {
                client: hub.client.at(&url),
                ..hub
            };
            for number in 0..EVENTS {
                reporter
                    .tell(job, "PROGRESS", json!({"progress": number}))
                    .await
                    .expect(204);
            }
            job
        });
    }
    telling.join_all().await;
    let jobs: Vec<Value> = tenant
        .client
        .get(&format!("/tenant/hubs/{}/jobs", fleet.hub.hub_uuid))
        .call()
        .await
        .expect(200)
        .data();
    let job = jobs[0]["hubJobUuid"].as_str().expect("a uuid");
    let events = format!(
        "/tenant/hub-monitoring/{}/jobs/{job}/events?size=100",
        fleet.hub.hub_uuid
    );
    let page: Value = tenant.client.get(&events).call().await.expect(200).data();
    let listed = page["content"].as_array().expect("events");
    assert_eq!(listed.len(), EVENTS);
    for follower in &followers {
        let in_time = tokio::time::timeout(Duration::from_secs(20), follower.until(EVENTS)).await;
        in_time.expect("all events in time");
        let seen = follower.seen();
        assert_eq!(
            seen.iter().map(|event| &event.data).collect::<Vec<_>>(),
            listed.iter().collect::<Vec<_>>()
        );
        assert!(
            seen.iter()
                .all(|event| event.data["receivedAt"] == json!(event.id))
        );
    }
    // Ids are the tenant's, whichever hub and replica.
    let ids = all_ids(&fleet).await;
    assert_eq!(ids.len(), HUBS * EVENTS);
}

/// The ids of all events of the tenant, each once.
async fn all_ids(fleet: &Fleet) -> Vec<i64> {
    let mut conn = fleet.place.app.app.db.read().await.expect("a connection");
    let rows: Vec<(i64,)> = hub_base::db::sql(
        "SELECT DISTINCT hub_job_event_id FROM hub_job_events \
             WHERE tenant_uuid = $1",
    )
    .bind(fleet.tenant().tenant_uuid)
    .all(&mut conn)
    .await
    .expect("the ids");
    rows.into_iter().map(|(id,)| id).collect()
}

on_each_database!(job_stream_names_its_events_and_is_limited_to_the_tenant);
async fn job_stream_names_its_events_and_is_limited_to_the_tenant(backend: Backend) {
    let fleet = Fleet::new(backend).await;
    let path = format!("/tenant/stream/hubs/{}/jobs", fleet.hub.hub_uuid);
    let mut response = fleet
        .tenant()
        .client
        .get(&path)
        .send()
        .await
        .expect("an answer");
    assert_eq!(response.status(), 200);
    let job = fleet.tenant().install(&fleet.hub, fleet.release_uuid).await;
    fleet.hub.tell(job, "ACCEPTED", json!({})).await.expect(204);
    let mut text = String::new();
    while !text.contains("event: ") {
        let chunk = tokio::time::timeout(Duration::from_secs(10), response.chunk())
            .await
            .expect("in time");
        text += &String::from_utf8_lossy(&chunk.expect("a chunk").expect("the stream goes on"));
    }
    assert!(text.contains("event: hub_job_event\n"), "{text}");
    let stranger = hub_tests::Tenant::create(&fleet.place.app.client()).await;
    stranger.client.get(&path).call().await.expect(404);
    fleet
        .tenant()
        .client
        .get(&path)
        .header("last-event-id", "soon")
        .call()
        .await
        .expect(400);
}
