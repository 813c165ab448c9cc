//! Jobs that wait, that get no file, that are not understood, and what earlier ones left behind.

use std::time::Duration;

use hub_agent::helper_api::AppRelease;
use hub_protocol::{HubJobUuid, ReleaseUuid, Timestamp};
use serde_json::{Value, json};
use tokio::process::Child;

use super::jobs::{Hub, content, job, keep_running, launched, with};
use super::releases::FileFate;
use super::{stop, until_status};

/// A window of two hours that is open in so many hours from now, by UTC.
fn window(in_hours: i64) -> Value {
    let hour = |hours: i64| (chrono::Utc::now() + chrono::Duration::hours(hours)).format("%H:%M").to_string();
    json!({"start": hour(in_hours - 1), "end": hour(in_hours + 1)})
}

/// The agent by a clock that is six hours ahead, started again whenever it ends, until a job is over.
async fn six_hours_later(hub: &Hub, id: HubJobUuid) -> (String, Child) {
    loop {
        let mut agent = launched(hub).env("TZ", "XXX-6").spawn().unwrap();
        tokio::select! {
            end = hub.end(id) => return (end, agent),
            status = agent.wait() => assert_eq!(status.unwrap().code(), Some(0)),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_that_waits_for_its_window_holds_up_no_app() {
    let hub = Hub::new().await;
    let (new, app) = hub.fleet(|fleet| {
        let program = format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_hub-agent"));
        (fleet.release(None, "99.0.0", program.into_bytes(), |_| {}), fleet.app(hub.app, "1.0.0", content(5_000, 1)))
    });
    let update = with(job("SELF_UPDATE", None, Some(new)), "window", window(6));
    let (install, remove) = (hub.install(app), job("APP_REMOVE", Some(hub.app), None));
    let remove = with(remove, "window", window(6));
    let again = hub.install(app);
    hub.desire(&[update.1, install.1]);
    let mut agent = launched(&hub).spawn().unwrap();
    assert_eq!(hub.end(install.0).await, "SUCCEEDED");
    let told = hub.fleet(|fleet| fleet.told(update.0));
    assert_eq!((told[0].as_str(), told.last().map(String::as_str)), ("ACCEPTED", Some("LOG")));
    let status = until_status(&hub.site, |status| !status["job"].is_null()).await;
    assert!(status["job"]["trouble"].as_str().unwrap().contains("maintenance window"), "{status}");

    // Apps are changed in order: the second waits behind the first, and both of them behind no update.
    let wanted = [remove.1, again.1];
    hub.service.change(|kept| {
        let update = kept.jobs().first().unwrap().clone();
        kept.desire_jobs([vec![update], wanted.to_vec()].concat());
    });
    hub.service
        .until("the removal waits", |kept| kept.fleet.told(remove.0).contains(&"LOG".into()).then_some(()))
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    hub.fleet(|fleet| assert!(fleet.told(again.0).is_empty()));
    assert_eq!(stop(&mut agent).await, Some(0));

    let (end, mut agent) = six_hours_later(&hub, again.0).await;
    assert_eq!([hub.end(update.0).await, hub.end(remove.0).await, end], ["SUCCEEDED"; 3]);
    hub.fleet(|fleet| {
        let begun = |id| fleet.events.iter().filter(|event| event.job == id && event.kind == "ACCEPTED").count();
        assert_eq!([update.0, remove.0, again.0].map(begun), [1, 1, 1], "each is begun once");
    });
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_does_not_pass_unused_because_of_a_slow_download() {
    let hub = Hub::new().await;
    let (new, app) = hub.fleet(|fleet| {
        fleet.file_fate = Box::new(|number| if number == 1 { FileFate::Whole } else { FileFate::Slow(200) });
        let program = format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_hub-agent"));
        (fleet.release(None, "99.0.0", program.into_bytes(), |_| {}), fleet.app(hub.app, "1.0.0", content(300_000, 1)))
    });
    let (update, install) = (with(job("SELF_UPDATE", None, Some(new)), "window", window(6)), hub.install(app));
    hub.desire(&[update.1, install.1]);
    let mut agent = launched(&hub).spawn().unwrap();
    let is_on_its_way =
        hub.service.until("the download", |kept| kept.fleet.told(install.0).contains(&"PROGRESS".into()).then_some(()));
    is_on_its_way.await;
    assert_eq!(stop(&mut agent).await, Some(0));
    let (end, mut agent) = six_hours_later(&hub, install.0).await;
    assert_eq!([hub.end(update.0).await, end], ["SUCCEEDED"; 2]);
    hub.fleet(|fleet| {
        let succeeded: Vec<_> = fleet.events.iter().filter(|event| event.kind == "SUCCEEDED").collect();
        assert_eq!([succeeded[0].job, succeeded[1].job], [update.0, install.0]);
        assert_eq!(fleet.told(install.0).iter().filter(|told| *told == "ACCEPTED").count(), 1);
    });
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_never_comes_fails_the_job_before_its_deadline() {
    let hub = Hub::new().await;
    let release = hub.fleet(|fleet| {
        fleet.file_fate = Box::new(|_| FileFate::Unavailable);
        fleet.app(hub.app, "1.0.0", content(5_000, 1))
    });
    let mut agent = hub.run().spawn().unwrap();
    let deadline_at = Timestamp::from(chrono::Utc::now()).plus_secs(12);
    let (id, install) = with(hub.install(release), "deadlineAt", json!(deadline_at.to_string()));
    assert_eq!(hub.outcome((id, install)).await, "FAILED DOWNLOAD_FAILED");
    assert!(Timestamp::from(chrono::Utc::now()) < deadline_at, "while the service still listens");
    hub.fleet(|fleet| {
        let end = fleet.events.iter().find(|event| event.job == id && event.kind == "FAILED").unwrap();
        assert!(end.body["message"].as_str().unwrap().contains("503"), "{end:?}");
        assert!(fleet.file_requests.len() > 1);
    });
    assert_eq!(hub.downloads(), 0);
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_not_understood_is_refused_and_the_others_go_on() {
    let hub = Hub::new().await;
    let release = hub.fleet(|fleet| fleet.app(hub.app, "1.0.0", content(10, 1)));
    let (unknown, install) = (job("REBOOT", None, None), hub.install(release));
    hub.desire(&[unknown.1, json!({"type": "REBOOT"}), with(install.clone(), "later", json!([1])).1]);
    let mut agent = hub.run().spawn().unwrap();
    assert_eq!(hub.end(unknown.0).await, "FAILED BAD_RELEASE");
    assert_eq!(hub.end(install.0).await, "SUCCEEDED");
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_job_left_behind_is_put_right_at_the_start() {
    let hub = Hub::new().await;
    let (good, unproven) =
        hub.fleet(|fleet| (fleet.app(hub.app, "1.0.0", content(10, 1)), fleet.app(hub.app, "2.0.0", content(10, 2))));
    let mut agent = hub.run().spawn().unwrap();
    assert_eq!(hub.outcome(hub.install(good)).await, "SUCCEEDED");
    assert_eq!(stop(&mut agent).await, Some(0));
    hub.helper.look(|helped| {
        let active = AppRelease { release_uuid: unproven, version: "2.0.0".into(), health_secs: 1 };
        helped.apps.get_mut(&hub.app).unwrap().active = Some(active);
    });
    std::fs::create_dir_all(hub.site.state().join("downloads")).unwrap();
    std::fs::write(hub.site.state().join("downloads/old.part"), "old").unwrap();
    let mut agent = hub.run().spawn().unwrap();
    let runs = |release: ReleaseUuid| {
        hub.helper.look(|helped| helped.apps[&hub.app].active.as_ref().unwrap().release_uuid == release)
    };
    tokio::time::timeout(Duration::from_secs(10), async {
        while !runs(good) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("the version that was kept runs again");
    assert_eq!(hub.downloads(), 0);
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_has_succeeded_when_the_helper_knows_of_it() {
    let hub = Hub::new().await;
    let new = hub.fleet(|fleet| {
        let program = format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_hub-agent"));
        fleet.release(None, "99.0.0", program.into_bytes(), |_| {})
    });
    let (id, update) = job("SELF_UPDATE", None, Some(new));
    // The first is asked for at the start, when there is nothing to do yet.
    hub.helper.look(|helped| helped.silent_cleans = 3);
    hub.desire(&[update]);
    let (end, mut agent) = keep_running(&hub, id).await;
    assert_eq!(end, "SUCCEEDED");
    hub.helper.look(|helped| assert!(helped.confirmed_agent.as_ref().unwrap().starts_with("99.0.0-")));
    assert_eq!(stop(&mut agent).await, Some(0));
}
