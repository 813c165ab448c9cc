//! Jobs from the desired state to their last event: what a hub does when connections, servers,
//! releases, helpers and the power fail.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use axum::http::HeaderMap;
use hub_agent::helper_api::Reason;
use hub_protocol::{AppUuid, HubJobUuid, ReleaseUuid, TenantUuid, Timestamp};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::helper::FakeHelper;
use super::releases::{FileFate, Fleet, sign};
use super::service::{CODE, Service, Stored};
use super::{Site, kill, random, stop, until_status};

/// A hub with keys and a helper, and its service.
pub struct Hub {
    pub site: Site,
    pub service: Service,
    pub helper: FakeHelper,
    pub app: AppUuid,
}

impl Hub {
    pub async fn new() -> Self {
        let site = Site::new(5, 1);
        let service = Service::start().await;
        let helper = FakeHelper::start(site.dir.path(), site.state());
        let hub = Self {
            site,
            service,
            helper,
            app: AppUuid::new(),
        };
        hub.service.change(|stored| {
            let key = stored.fleet.keys.pk.to_box().unwrap().to_string();
            for kind in ["agent", "app"] {
                std::fs::create_dir_all(hub.keys().join(kind)).unwrap();
                std::fs::write(hub.keys().join(kind).join("test.pub"), &key).unwrap();
            }
        });
        hub
    }

    pub fn keys(&self) -> PathBuf {
        self.site.path("keys")
    }

    pub fn run(&self) -> Command {
        self.run_at(&self.service.url())
    }

    pub fn run_at(&self, url: &str) -> Command {
        let mut agent = self.site.run_at(url);
        agent.env("HUB_AGENT_CLAIM_CODE", CODE);
        agent
            .arg("--release-keys")
            .arg(self.keys())
            .arg("--helper-socket")
            .arg(&self.helper.socket);
        agent
            .args(["--disk-headroom", "1MiB", "--request-timeout", "2s"])
            .env("TZ", "UTC");
        agent
    }

    pub fn fleet<T>(&self, change: impl FnOnce(&mut Fleet) -> T) -> T {
        let mut result = None;
        self.service
            .change(|stored| result = Some(change(&mut stored.fleet)));
        result.unwrap()
    }

    /// Adds jobs to the desired state, in this order.
    pub fn desire(&self, jobs: &[Value]) {
        self.service
            .change(|stored| stored.desire_jobs(jobs.to_vec()));
    }

    pub fn install(&self, release: ReleaseUuid) -> (HubJobUuid, Value) {
        job("APP_INSTALL", Some(self.app), Some(release))
    }

    pub async fn end(&self, job: HubJobUuid) -> String {
        self.service
            .until("the job's end", |stored| stored.fleet.end(job))
            .await
    }

    /// Runs one job to its end.
    pub async fn outcome(&self, (id, job): (HubJobUuid, Value)) -> String {
        self.desire(&[job]);
        self.end(id).await
    }

    pub fn downloads(&self) -> usize {
        std::fs::read_dir(self.site.state().join("downloads")).map_or(0, Iterator::count)
    }
}

pub fn job(kind: &str, app: Option<AppUuid>, release: Option<ReleaseUuid>) -> (HubJobUuid, Value) {
    let id = HubJobUuid::new();
    let deadline = Timestamp::from(chrono::Utc::now())
        .plus_secs(3_600)
        .to_string();
    (
        id,
        json!({"hubJobUuid": id, "type": kind, "appUuid": app, "releaseUuid": release, "deadlineAt": deadline}),
    )
}

pub fn with(mut job: (HubJobUuid, Value), field: &str, value: Value) -> (HubJobUuid, Value) {
    job.1[field] = value;
    job
}

/// Content without repetition.
pub fn content(bytes: usize, seed: u64) -> Vec<u8> {
    (0..bytes as u64).map(|at| random(seed, at) as u8).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_is_installed_over_a_bad_connection_and_every_step_is_reported() {
    let hub = Hub::new().await;
    let release = hub.fleet(|fleet| {
        fleet.file_fate = Box::new(|number| match number {
            1 => FileFate::CutAfter(40_000),
            2 => FileFate::Unavailable,
            3 => FileFate::Expired,
            4 => FileFate::CutAfter(60_000),
            _ => FileFate::Whole,
        });
        fleet.app(hub.app, "1.0.0", content(200_000, 1))
    });
    let mut agent = hub.run().spawn().unwrap();
    assert_eq!(hub.outcome(hub.install(release)).await, "SUCCEEDED");
    hub.service
        .until("the report", |stored| {
            (stored.fleet.installed.len() >= 2).then_some(())
        })
        .await;
    hub.fleet(|fleet| {
        let reported: Vec<&str> = fleet
            .events
            .iter()
            .map(|event| event.kind.as_str())
            .collect();
        assert_eq!(
            (reported.first(), reported.last()),
            (Some(&"ACCEPTED"), Some(&"SUCCEEDED"))
        );
        let progress: Vec<i64> = fleet
            .events
            .iter()
            .filter_map(|event| event.body["progress"].as_i64())
            .collect();
        assert!(progress.is_sorted() && progress.len() > 4, "{progress:?}");
        assert_eq!(fleet.file_requests.len(), 5);
        assert!(
            fleet
                .file_requests
                .iter()
                .all(|headers| !headers.contains_key("authorization"))
        );
        let ranges: Vec<_> = fleet
            .file_requests
            .iter()
            .map(|headers| headers.get("range").map(|range| range.to_str().unwrap()))
            .collect();
        assert_eq!(ranges[0], None);
        assert!(
            ranges[1..].iter().all(Option::is_some),
            "it resumes where it was cut: {ranges:?}"
        );
        assert!(fleet.file_requests[4].contains_key("if-range"));
        assert_eq!(fleet.installed[0], json!({"apps": []}), "at the start");
        let last = fleet.installed.last().unwrap();
        assert_eq!(
            (&last["apps"][0]["state"], &last["apps"][0]["version"]),
            (&json!("RUNNING"), &json!("1.0.0"))
        );
    });
    assert_eq!(
        hub.helper.inspect(|state| state.requests.clone()),
        ["stage 1.0.0", "activate 1.0.0", "commit"]
    );
    assert_eq!(hub.downloads(), 0, "no download is left");
    let status = until_status(&hub.site, |status| !status["installedApps"].is_null()).await;
    assert_eq!(status["installedApps"][0]["version"], "1.0.0");

    assert_eq!(
        hub.outcome(hub.install(release)).await,
        "SUCCEEDED",
        "it is installed already"
    );
    assert_eq!(hub.helper.inspect(|state| state.requests.len()), 3);
    assert_eq!(
        hub.outcome(job("APP_REMOVE", Some(hub.app), None)).await,
        "SUCCEEDED"
    );
    hub.service
        .until("the report", |stored| {
            (stored.fleet.installed.last()? == &json!({"apps": []})).then_some(())
        })
        .await;
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wrong_answer_costs_what_was_downloaded() {
    const CUT_AT: usize = 180_000;
    let hub = Hub::new().await;
    let mut agent = hub.run().spawn().unwrap();
    for (version, fates) in [
        // Of the type that a page has, and of another.
        ("1.0.0", vec![FileFate::LoginPage; 3]),
        ("1.0.1", vec![FileFate::PlainPage; 3]),
        ("1.0.2", vec![FileFate::TooLong, FileFate::TooLong]),
        // A whole file that is cut sooner than the one before.
        (
            "1.0.3",
            vec![FileFate::RangeRefused, FileFate::CutAfter(9_000)],
        ),
    ] {
        let count = fates.len();
        let release = hub.fleet(|fleet| {
            fleet.file_requests.clear();
            fleet.file_fate = Box::new(move |number| match number {
                1 => FileFate::CutAfter(CUT_AT),
                number => fates.get(number - 2).copied().unwrap_or(FileFate::Whole),
            });
            fleet.app(hub.app, version, content(200_000, 1))
        });
        assert_eq!(hub.outcome(hub.install(release)).await, "SUCCEEDED");
        let ranges: Vec<Option<String>> = hub.fleet(|fleet| {
            let range = |headers: &HeaderMap| Some(headers.get("range")?.to_str().ok()?.to_owned());
            fleet.file_requests.iter().map(range).collect()
        });
        assert_eq!(ranges.len(), count + 2, "{version}: {ranges:?}");
        assert_eq!(ranges.last(), ranges.get(1), "{version}: {ranges:?}");
        let kept = ranges[1].as_ref().unwrap().strip_prefix("bytes=").unwrap();
        let kept: usize = kept.strip_suffix('-').unwrap().parse().unwrap();
        assert!(kept > CUT_AT - 10_000, "{version}: {ranges:?}");
    }
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_untrusted_release_is_refused_with_its_reason() {
    let hub = Hub::new().await;
    let mut agent = hub.run().spawn().unwrap();
    let (unsigned, foreign, other_machine, of_another, agents) = hub.fleet(|fleet| {
        let unsigned = fleet.app(hub.app, "1.0.0", content(10, 1));
        fleet
            .releases
            .get_mut(&unsigned)
            .unwrap()
            .manifest
            .push(' ');
        let foreign = fleet.app(hub.app, "1.0.1", content(10, 2));
        let release = fleet.releases.get_mut(&foreign).unwrap();
        release.signature = sign(
            &minisign::KeyPair::generate_unencrypted_keypair().unwrap(),
            &release.manifest,
        );
        let other_machine = fleet.release(Some(hub.app), "1.0.2", content(10, 3), |manifest| {
            manifest.architecture = "pdp11".into()
        });
        let of_another = fleet.app(AppUuid::new(), "1.0.3", content(10, 4));
        let agents = fleet.release(None, "1.0.4", content(10, 5), |_| {});
        fleet.releases.get_mut(&agents).unwrap().app_uuid = Some(hub.app);
        (unsigned, foreign, other_machine, of_another, agents)
    });
    for (release, expected) in [
        (unsigned, "FAILED BAD_SIGNATURE"),
        (foreign, "FAILED BAD_SIGNATURE"),
        (other_machine, "FAILED WRONG_ARCHITECTURE"),
        (of_another, "FAILED BAD_RELEASE"),
        (agents, "FAILED BAD_RELEASE"),
        (ReleaseUuid::new(), "FAILED DOWNLOAD_FAILED"),
    ] {
        assert_eq!(hub.outcome(hub.install(release)).await, expected);
    }
    hub.fleet(|fleet| assert!(fleet.file_requests.is_empty(), "nothing was downloaded"));
    let huge = hub.fleet(|fleet| {
        fleet.release(Some(hub.app), "1.0.5", content(10, 6), |manifest| {
            manifest.size_bytes = 1 << 60
        })
    });
    assert_eq!(hub.outcome(hub.install(huge)).await, "FAILED NO_SPACE");

    hub.fleet(|fleet| fleet.file_fate = Box::new(|_| FileFate::Mixed));
    let release = hub.fleet(|fleet| fleet.app(hub.app, "1.1.0", content(9_000, 7)));
    assert_eq!(
        hub.outcome(hub.install(release)).await,
        "FAILED DIGEST_MISMATCH"
    );
    assert_eq!(hub.downloads(), 0);
    hub.fleet(|fleet| fleet.file_fate = Box::new(|_| FileFate::Whole));
    let release = hub.fleet(|fleet| fleet.app(hub.app, "1.2.0", content(9_000, 8)));
    hub.helper
        .inspect(|state| state.refuse_to_stage = Some(Reason::CounterTooLow));
    assert_eq!(
        hub.outcome(hub.install(release)).await,
        "FAILED COUNTER_TOO_LOW"
    );
    hub.helper.inspect(|state| state.refuse_to_stage = None);
    std::fs::remove_dir_all(hub.keys().join("app")).unwrap();
    assert_eq!(
        hub.outcome(hub.install(release)).await,
        "FAILED BAD_SIGNATURE",
        "without a key nothing is trusted"
    );
    let expired = with(
        hub.install(release),
        "deadlineAt",
        json!("2026-01-01T00:00:00Z"),
    );
    assert_eq!(hub.outcome(expired).await, "FAILED EXPIRED");
    let update = job("SELF_UPDATE", None, Some(release));
    assert_eq!(hub.outcome(update).await, "FAILED NO_LAUNCHER");
    hub.helper.inspect(|state| {
        assert!(
            state.requests.iter().all(|requests| requests == "rollback"),
            "{:?}",
            state.requests
        )
    });
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_that_fails_is_rolled_back_and_tried_again_only_with_force() {
    let hub = Hub::new().await;
    let (good, failing) = hub.fleet(|fleet| {
        (
            fleet.app(hub.app, "1.0.0", content(5_000, 1)),
            fleet.app(hub.app, "2.0.0", content(5_000, 2)),
        )
    });
    hub.helper
        .inspect(|state| state.failing.push("2.0.0".into()));
    let mut agent = hub.run().spawn().unwrap();
    assert_eq!(hub.outcome(hub.install(good)).await, "SUCCEEDED");
    assert_eq!(
        hub.outcome(hub.install(failing)).await,
        "FAILED HEALTH_CHECK_FAILED"
    );
    let active = || {
        hub.helper
            .inspect(|state| state.apps[&hub.app].active.clone().unwrap().version)
    };
    assert_eq!(active(), "1.0.0");
    assert_eq!(stop(&mut agent).await, Some(0));
    let mut agent = hub.run().spawn().unwrap();
    assert_eq!(
        hub.outcome(hub.install(failing)).await,
        "FAILED FAILED_BEFORE"
    );
    hub.fleet(|fleet| assert_eq!(fleet.file_requests.len(), 2));
    hub.helper.inspect(|state| state.failing.clear());
    assert_eq!(
        hub.outcome(with(hub.install(failing), "force", json!(true)))
            .await,
        "SUCCEEDED"
    );
    assert_eq!(active(), "2.0.0");
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_withdrawn_job_is_undone_and_the_next_continues() {
    let hub = Hub::new().await;
    let (slow, quick) = hub.fleet(|fleet| {
        fleet.file_fate = Box::new(|number| {
            if number == 1 {
                FileFate::Slow(100)
            } else {
                FileFate::Whole
            }
        });
        (
            fleet.app(hub.app, "1.0.0", content(500_000, 1)),
            fleet.app(hub.app, "1.0.1", content(5_000, 2)),
        )
    });
    let (first, second) = (hub.install(slow), hub.install(quick));
    hub.desire(&[first.1, second.1.clone()]);
    let mut agent = hub.run().spawn().unwrap();
    hub.service
        .until("the download", |stored| {
            (!stored.fleet.file_requests.is_empty()).then_some(())
        })
        .await;
    hub.desire(&[second.1]);
    assert_eq!(hub.end(second.0).await, "SUCCEEDED");
    hub.fleet(|fleet| {
        assert!(
            !fleet
                .reported(first.0)
                .iter()
                .any(|reported| reported.starts_with("SUCCEEDED") || reported.starts_with("FAILED"))
        );
    });

    // Outside of its window it is prepared and waits; then it is withdrawn.
    let third = hub.fleet(|fleet| fleet.app(hub.app, "1.0.2", content(5_000, 3)));
    let hour = |hours: i64| {
        (chrono::Utc::now() + chrono::Duration::hours(hours))
            .format("%H:%M")
            .to_string()
    };
    let (id, waiting) = with(
        hub.install(third),
        "window",
        json!({"start": hour(2), "end": hour(3)}),
    );
    hub.desire(&[waiting]);
    let reported = hub.service.until("it waits", |stored| {
        let reported = stored.fleet.reported(id);
        reported.contains(&"LOG".to_owned()).then_some(reported)
    });
    let reported = reported.await;
    assert!(
        reported[0] == "ACCEPTED"
            && reported[1..reported.len() - 1]
                .iter()
                .all(|reported| reported == "PROGRESS"),
        "{reported:?}"
    );
    let status = until_status(&hub.site, |status| !status["job"]["trouble"].is_null()).await;
    assert!(
        status["job"]["trouble"]
            .as_str()
            .unwrap()
            .contains("maintenance window"),
        "{status}"
    );
    hub.helper
        .inspect(|state| assert_eq!(state.apps[&hub.app].staged, [third]));
    hub.desire(&[]);
    until_status(&hub.site, |status| status["job"].is_null()).await;
    assert_eq!(
        hub.helper
            .inspect(|state| state.apps[&hub.app].active.clone().unwrap().version),
        "1.0.1"
    );
    let (id, open) = with(
        hub.install(third),
        "window",
        json!({"start": hour(-1), "end": hour(1)}),
    );
    assert_eq!(hub.outcome((id, open)).await, "SUCCEEDED");
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_is_stored_once_and_in_order_whatever_the_service_answers() {
    let hub = Hub::new().await;
    let release = hub.fleet(|fleet| {
        fleet.event_fates = vec![503, 502, 204, 429, 502, 500, 204, 502];
        fleet.app(hub.app, "1.0.0", content(50_000, 1))
    });
    let mut agent = hub.run().spawn().unwrap();
    let (id, install) = hub.install(release);
    assert_eq!(hub.outcome((id, install)).await, "SUCCEEDED");
    hub.fleet(|fleet| {
        assert!(fleet.late_events.is_empty());
        let ids: Vec<&str> = fleet
            .events
            .iter()
            .map(|event| event.uuid.as_str())
            .collect();
        assert!(ids.is_sorted(), "in order");
        assert_eq!(
            fleet.reported(id).first().map(String::as_str),
            Some("ACCEPTED")
        );
        // The service itself ends the next job: the hub's events of it are refused, and block
        // nothing.
        fleet.event_fates = Vec::new();
    });
    let refused = job("APP_REMOVE", Some(hub.app), None);
    let next = hub.install(release);
    hub.fleet(|fleet| {
        let body = json!({"kind": "FAILED"});
        let ended = super::releases::JobEvent {
            job: refused.0,
            uuid: "x".into(),
            kind: "FAILED".into(),
            body,
        };
        fleet.events.push(ended);
    });
    hub.desire(&[refused.1, next.1]);
    assert_eq!(hub.end(next.0).await, "SUCCEEDED");
    hub.fleet(|fleet| assert!(fleet.late_events.iter().all(|event| event.job == refused.0)));
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_helper_a_job_fails_with_its_reason() {
    let hub = Hub::new().await;
    let release = hub.fleet(|fleet| fleet.app(hub.app, "1.0.0", content(10, 1)));
    let mut agent = hub.site.claimed(&hub.service);
    agent
        .arg("--release-keys")
        .arg(hub.keys())
        .arg("--helper-socket")
        .arg(hub.site.path("nobody"));
    let mut agent = agent.spawn().unwrap();
    assert_eq!(
        hub.outcome(hub.install(release)).await,
        "FAILED HELPER_UNAVAILABLE"
    );
    hub.fleet(|fleet| {
        assert!(
            fleet.installed.is_empty(),
            "an unknown state is not reported"
        )
    });
    assert_eq!(stop(&mut agent).await, Some(0));
}

/// Killed at many moments of its jobs, over a bad connection: each job ends once, in the state that
/// it reports.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_survive_being_killed_at_any_moment() {
    const SEED: u64 = 20_261_122;
    let hub = Hub::new().await;
    let mut jobs = Vec::new();
    for version in ["1.0.0", "2.0.0", "3.0.0"] {
        let release = hub.fleet(|fleet| {
            fleet.app(
                hub.app,
                version,
                content(60_000, random(SEED, jobs.len() as u64)),
            )
        });
        jobs.push(hub.install(release));
    }
    hub.helper
        .inspect(|state| state.failing.push("2.0.0".into()));
    hub.fleet(|fleet| {
        fleet.file_fate = Box::new(|number| match random(SEED, number as u64) % 4 {
            0 => FileFate::CutAfter(15_000),
            1 => FileFate::NoRanges,
            _ => FileFate::Slow(800),
        });
        fleet.event_fates = (0..400)
            .map(|number| {
                if random(SEED + 1, number).is_multiple_of(3) {
                    502
                } else {
                    204
                }
            })
            .collect();
    });
    hub.desire(&jobs.iter().map(|(_, job)| job.clone()).collect::<Vec<_>>());
    let is_over = |stored: &Stored| jobs.iter().all(|(id, _)| stored.fleet.end(*id).is_some());
    let mut kills = 0;
    for round in 0..40 {
        let mut agent = hub.run().stderr(Stdio::null()).spawn().unwrap();
        hub.service
            .until("the claim", |stored| {
                (!stored.claims.is_empty()).then_some(())
            })
            .await;
        tokio::time::sleep(Duration::from_millis(100 + random(SEED + 2, round) % 2_500)).await;
        let mut over = false;
        hub.service.change(|stored| over = is_over(stored));
        kill(&agent, rustix::process::Signal::KILL);
        agent.wait().await.unwrap();
        kills += 1;
        if over {
            break;
        }
    }
    assert!(
        kills > 5,
        "the jobs ended before they could be killed: {kills}"
    );
    let mut agent = hub.run().spawn().unwrap();
    hub.service
        .until("all ends", |stored| is_over(stored).then_some(()))
        .await;
    until_status(&hub.site, |status| {
        status["job"].is_null() && status["spool"]["events"] == 0
    })
    .await;
    assert_eq!(stop(&mut agent).await, Some(0));
    let mut stored = None;
    hub.fleet(|fleet| {
        assert_eq!(fleet.late_events, [], "no job ends twice");
        let ends: Vec<_> = jobs.iter().map(|(id, _)| fleet.end(*id).unwrap()).collect();
        // A job that is killed again and again while it watches fails with that reason.
        assert!(
            ends.iter()
                .all(|end| end == "SUCCEEDED" || end == "FAILED HEALTH_CHECK_FAILED"),
            "{ends:?}"
        );
        assert_eq!(ends[1], "FAILED HEALTH_CHECK_FAILED");
        stored = ["1.0.0", "2.0.0", "3.0.0"]
            .into_iter()
            .zip(&ends)
            .rfind(|(_, end)| *end == "SUCCEEDED")
            .map(|(version, _)| version);
        for (id, _) in &jobs {
            assert_eq!(
                fleet
                    .reported(*id)
                    .iter()
                    .filter(|reported| *reported == "ACCEPTED")
                    .count(),
                1
            );
            let of_job = fleet.events.iter().filter(|event| event.job == *id);
            let progress: Vec<i64> = of_job
                .filter_map(|event| event.body["progress"].as_i64())
                .collect();
            assert!(progress.is_sorted(), "{progress:?}");
        }
    });
    hub.helper.inspect(|state| {
        let app = state.apps.get(&hub.app);
        assert_eq!(
            app.map(|app| app.active.as_ref().unwrap().version.as_str()),
            stored,
            "the reports are true"
        );
        assert!(app.is_none_or(|app| app.active == app.committed));
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_apps_of_a_previous_owner_are_removed() {
    let hub = Hub::new().await;
    let release = hub.fleet(|fleet| fleet.app(hub.app, "1.0.0", content(10, 1)));
    let mut agent = hub.run().spawn().unwrap();
    assert_eq!(hub.outcome(hub.install(release)).await, "SUCCEEDED");
    let claim = async |code: &str| {
        hub.service.change(|stored| stored.unblock_with(code));
        let mut claim = hub.site.command("claim");
        claim.args(["--code", code]);
        assert_eq!(super::output(claim).await.status.code(), Some(0));
    };
    claim("2222-2222-2222-2222").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        hub.helper.inspect(|state| state.apps.len()),
        1,
        "the same owner claimed it"
    );
    hub.service
        .change(|stored| stored.tenant = Some(TenantUuid::new()));
    claim("3333-3333-3333-3333").await;
    hub.service
        .until("the report", |stored| {
            (stored.fleet.installed.last()? == &json!({"apps": []})).then_some(())
        })
        .await;
    assert_eq!(hub.helper.inspect(|state| state.apps.len()), 0);
    assert_eq!(stop(&mut agent).await, Some(0));
}

pub fn launched(hub: &Hub) -> Command {
    let agent = hub.run();
    let mut launcher = Command::new(env!("CARGO_BIN_EXE_hub-agent-launcher"));
    launcher.args(agent.as_std().get_args());
    launcher.envs(
        agent
            .as_std()
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    launcher
        .env("HUB_AGENT_STATE_DIR", hub.site.state())
        .env("HUB_AGENT_PACKAGED", env!("CARGO_BIN_EXE_hub-agent"));
    launcher
        .env("HUB_AGENT_VERSIONS_DIR", &hub.helper.versions)
        .env("HUB_AGENT_TRIAL_TIMEOUT_SECS", "3");
    // The watchdog's process is named, and is not a version on trial: that one must be reported of
    // the watchdog all the same.
    launcher
        .env("NOTIFY_SOCKET", hub.site.path("notify"))
        .env("WATCHDOG_USEC", "600000")
        .env("WATCHDOG_PID", "1");
    launcher.kill_on_drop(true).stdin(Stdio::null());
    launcher
}

/// Like systemd: restarts it whenever it ends.
pub async fn keep_running(hub: &Hub, id: HubJobUuid) -> (String, Child) {
    let mut agent = launched(hub).spawn().unwrap();
    loop {
        tokio::select! {
            end = hub.end(id) => return (end, agent),
            // 1 after a failed trial.
            status = agent.wait() => assert!(matches!(status.unwrap().code(), Some(0 | 1))),
        }
        agent = launched(hub).spawn().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_updates_itself_and_restores_the_previous_version_after_a_failure() {
    let hub = Hub::new().await;
    let (new, silent) = hub.fleet(|fleet| {
        // The same program under another version's name.
        let program = format!(
            "#!/bin/sh\nexec {} \"$@\"\n",
            env!("CARGO_BIN_EXE_hub-agent")
        );
        let new = fleet.release(None, "99.0.0", program.into_bytes(), |_| {});
        (
            new,
            fleet.release(
                None,
                "99.1.0",
                b"#!/bin/sh\nexec sleep 60\n".to_vec(),
                |_| {},
            ),
        )
    });
    let systemd = tokio::net::UnixDatagram::bind(hub.site.path("notify")).unwrap();
    let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let mut buffer = [0; 1_024];
            let length = systemd.recv(&mut buffer).await.unwrap();
            let _ = sender.send(super::text(&buffer[..length]));
        }
    });
    let (id, update) = job("SELF_UPDATE", None, Some(new));
    hub.desire(&[update]);
    let (end, mut agent) = keep_running(&hub, id).await;
    assert_eq!(end, "SUCCEEDED");
    let status = until_status(&hub.site, |status| status["update"]["onTrial"] == false).await;
    let dir = status["update"]["versionDir"].as_str().unwrap().to_owned();
    assert!(dir.starts_with("99.0.0-"), "{status}");
    hub.helper
        .inspect(|state| assert_eq!(state.confirmed_agent.as_ref(), Some(&dir)));
    let fed = async { while !heard.recv().await.unwrap().contains("WATCHDOG=1") {} };
    tokio::time::timeout(super::TEN_SECONDS, fed)
        .await
        .expect("the watchdog is fed by the launcher's child");
    assert_eq!(
        stop(&mut agent).await,
        Some(0),
        "the launcher ends as its agent does"
    );

    let (id, update) = job("SELF_UPDATE", None, Some(silent));
    hub.desire(&[update]);
    let (end, mut agent) = keep_running(&hub, id).await;
    assert_eq!(end, "FAILED NOT_CONFIRMED");
    let status = until_status(&hub.site, |status| {
        status["update"]["lastFailed"]["reason"] == "NOT_CONFIRMED"
    })
    .await;
    assert_eq!(
        status["update"]["versionDir"],
        dir.as_str(),
        "the previous version runs again"
    );
    let again = job("SELF_UPDATE", None, Some(silent));
    assert_eq!(hub.outcome(again).await, "FAILED FAILED_BEFORE");
    assert_eq!(stop(&mut agent).await, Some(0));
}
