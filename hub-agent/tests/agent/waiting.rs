//! Jobs that wait, that get no file, that are not understood, and cleaning up after earlier ones.

use std::time::Duration;

use hub_agent::helper_api::AppRelease;
use hub_protocol::{HubJobUuid, ReleaseUuid, Timestamp};
use serde_json::{Value, json};
use tokio::process::Child;

use super::jobs::{Hub, content, job, keep_running, launched, with};
use super::releases::FileFate;
use super::{stop, until_status};

/// A window of two hours that is open in this many hours, in UTC.
fn window(in_hours: i64) -> Value {
    let hour = |hours: i64| {
        (chrono::Utc::now() + chrono::Duration::hours(hours))
            .format("%H:%M")
            .to_string()
    };
    json!({"start": hour(in_hours - 1), "end": hour(in_hours + 1)})
}

/// Runs the agent with a clock that is six hours ahead, restarted whenever it ends, until a job has
/// finished.
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
async fn an_update_that_waits_for_its_window_delays_no_app() {
    let hub = Hub::new().await;
    let (new, app) = hub.fleet(|fleet| {
        let program = format!(
            "#!/bin/sh\nexec {} \"$@\"\n",
            env!("CARGO_BIN_EXE_hub-agent")
        );
        (
            fleet.release(None, "99.0.0", program.into_bytes(), |_| {}),
            fleet.app(hub.app, "1.0.0", content(5_000, 1)),
        )
    });
    let update = with(job("SELF_UPDATE", None, Some(new)), "window", window(6));
    let (install, remove) = (hub.install(app), job("APP_REMOVE", Some(hub.app), None));
    let remove = with(remove, "window", window(6));
    let again = hub.install(app);
    hub.desire(&[update.1, install.1]);
    let mut agent = launched(&hub).spawn().unwrap();
    assert_eq!(hub.end(install.0).await, "SUCCEEDED");
    let reported = hub.fleet(|fleet| fleet.reported(update.0));
    assert_eq!(
        (reported[0].as_str(), reported.last().map(String::as_str)),
        ("ACCEPTED", Some("LOG"))
    );
    let status = until_status(&hub.site, |status| !status["job"].is_null()).await;
    assert!(
        status["job"]["trouble"]
            .as_str()
            .unwrap()
            .contains("maintenance window"),
        "{status}"
    );

    // Apps are changed in order: the second waits for the first, and neither waits for an update.
    let requested = [remove.1, again.1];
    hub.service.change(|stored| {
        let update = stored.jobs().first().unwrap().clone();
        stored.desire_jobs([vec![update], requested.to_vec()].concat());
    });
    hub.service
        .until("the removal waits", |stored| {
            stored
                .fleet
                .reported(remove.0)
                .contains(&"LOG".into())
                .then_some(())
        })
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    hub.fleet(|fleet| assert!(fleet.reported(again.0).is_empty()));
    assert_eq!(stop(&mut agent).await, Some(0));

    let (end, mut agent) = six_hours_later(&hub, again.0).await;
    assert_eq!(
        [hub.end(update.0).await, hub.end(remove.0).await, end],
        ["SUCCEEDED"; 3]
    );
    hub.fleet(|fleet| {
        let begun = |id| {
            fleet
                .events
                .iter()
                .filter(|event| event.job == id && event.kind == "ACCEPTED")
                .count()
        };
        assert_eq!(
            [update.0, remove.0, again.0].map(begun),
            [1, 1, 1],
            "each begins once"
        );
    });
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_download_is_interrupted_for_an_open_window() {
    let hub = Hub::new().await;
    let (new, app) = hub.fleet(|fleet| {
        fleet.file_fate = Box::new(|number| {
            if number == 1 {
                FileFate::Whole
            } else {
                FileFate::Slow(200)
            }
        });
        let program = format!(
            "#!/bin/sh\nexec {} \"$@\"\n",
            env!("CARGO_BIN_EXE_hub-agent")
        );
        (
            fleet.release(None, "99.0.0", program.into_bytes(), |_| {}),
            fleet.app(hub.app, "1.0.0", content(300_000, 1)),
        )
    });
    let (update, install) = (
        with(job("SELF_UPDATE", None, Some(new)), "window", window(6)),
        hub.install(app),
    );
    hub.desire(&[update.1, install.1]);
    let mut agent = launched(&hub).spawn().unwrap();
    let is_on_its_way = hub.service.until("the download", |stored| {
        stored
            .fleet
            .reported(install.0)
            .contains(&"PROGRESS".into())
            .then_some(())
    });
    is_on_its_way.await;
    assert_eq!(stop(&mut agent).await, Some(0));
    let (end, mut agent) = six_hours_later(&hub, install.0).await;
    assert_eq!([hub.end(update.0).await, end], ["SUCCEEDED"; 2]);
    hub.fleet(|fleet| {
        let succeeded: Vec<_> = fleet
            .events
            .iter()
            .filter(|event| event.kind == "SUCCEEDED")
            .collect();
        assert_eq!([succeeded[0].job, succeeded[1].job], [update.0, install.0]);
        assert_eq!(
            fleet
                .reported(install.0)
                .iter()
                .filter(|reported| *reported == "ACCEPTED")
                .count(),
            1
        );
    });
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_without_its_file_fails_before_its_deadline() {
    let hub = Hub::new().await;
    let release = hub.fleet(|fleet| {
        fleet.file_fate = Box::new(|_| FileFate::Unavailable);
        fleet.app(hub.app, "1.0.0", content(5_000, 1))
    });
    let mut agent = hub.run().spawn().unwrap();
    let deadline_at = Timestamp::from(chrono::Utc::now()).plus_secs(30);
    let (id, install) = with(
        hub.install(release),
        "deadlineAt",
        json!(deadline_at.to_string()),
    );
    assert_eq!(hub.outcome((id, install)).await, "FAILED DOWNLOAD_FAILED");
    assert!(
        Timestamp::from(chrono::Utc::now()) < deadline_at,
        "while the service still accepts events"
    );
    hub.fleet(|fleet| {
        let end = fleet
            .events
            .iter()
            .find(|event| event.job == id && event.kind == "FAILED")
            .unwrap();
        assert!(
            end.body["message"].as_str().unwrap().contains("503"),
            "{end:?}"
        );
        assert!(fleet.file_requests.len() > 1);
    });
    assert_eq!(hub.downloads(), 0);
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_not_understood_is_refused_and_the_others_continue() {
    let hub = Hub::new().await;
    let release = hub.fleet(|fleet| fleet.app(hub.app, "1.0.0", content(10, 1)));
    let (unknown, install) = (job("REBOOT", None, None), hub.install(release));
    hub.desire(&[
        unknown.1,
        json!({"type": "REBOOT"}),
        with(install.clone(), "later", json!([1])).1,
    ]);
    let mut agent = hub.run().spawn().unwrap();
    assert_eq!(hub.end(unknown.0).await, "FAILED BAD_RELEASE");
    assert_eq!(hub.end(install.0).await, "SUCCEEDED");
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn remains_of_a_job_are_cleaned_up_at_the_start() {
    let hub = Hub::new().await;
    let (good, unproven) = hub.fleet(|fleet| {
        (
            fleet.app(hub.app, "1.0.0", content(10, 1)),
            fleet.app(hub.app, "2.0.0", content(10, 2)),
        )
    });
    let mut agent = hub.run().spawn().unwrap();
    assert_eq!(hub.outcome(hub.install(good)).await, "SUCCEEDED");
    assert_eq!(stop(&mut agent).await, Some(0));
    hub.helper.inspect(|state| {
        let active = AppRelease {
            release_uuid: unproven,
            version: "2.0.0".into(),
            health_secs: 1,
        };
        state.apps.get_mut(&hub.app).unwrap().active = Some(active);
    });
    std::fs::create_dir_all(hub.site.state().join("downloads")).unwrap();
    std::fs::write(hub.site.state().join("downloads/old.part"), "old").unwrap();
    let mut agent = hub.run().spawn().unwrap();
    let runs = |release: ReleaseUuid| {
        hub.helper
            .inspect(|state| state.apps[&hub.app].active.as_ref().unwrap().release_uuid == release)
    };
    tokio::time::timeout(Duration::from_secs(10), async {
        while !runs(good) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("the committed version runs again");
    assert_eq!(hub.downloads(), 0);
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_update_succeeds_when_the_helper_has_recorded_it() {
    let hub = Hub::new().await;
    let new = hub.fleet(|fleet| {
        let program = format!(
            "#!/bin/sh\nexec {} \"$@\"\n",
            env!("CARGO_BIN_EXE_hub-agent")
        );
        fleet.release(None, "99.0.0", program.into_bytes(), |_| {})
    });
    let (id, update) = job("SELF_UPDATE", None, Some(new));
    // The first one is at the start, when there is nothing to do yet.
    hub.helper.inspect(|state| state.silent_cleans = 3);
    hub.desire(&[update]);
    let (end, mut agent) = keep_running(&hub, id).await;
    assert_eq!(end, "SUCCEEDED");
    hub.helper.inspect(|state| {
        assert!(
            state
                .confirmed_agent
                .as_ref()
                .unwrap()
                .starts_with("99.0.0-")
        )
    });
    assert_eq!(stop(&mut agent).await, Some(0));
}
