//! The real agent, as a process, against a service over real HTTP: what it delivers, and which
//! failures it survives.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect fails"
)]

mod certificates;
mod claim;
mod commands;
mod helper;
mod jobs;
mod machine;
mod moves;
mod packages;
mod path;
mod pauses;
mod releases;
mod scan_config;
mod service;
mod waiting;
mod whole;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use service::{CODE, Fate, HUB, Service, Stored};
use tokio::process::{Child, Command};

const TEN_SECONDS: Duration = Duration::from_secs(10);

/// A directory with a trace and the agent's state.
struct Site {
    dir: tempfile::TempDir,
}

impl Site {
    /// `events` advertisements, `every_ms` apart, each with its own name.
    fn new(events: usize, every_ms: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let trace: String = (0..events)
            .map(|number| {
                let line = json!({"t_ms": number * every_ms, "address": "AA:BB:CC:DD:EE:FF", "addressType": "public", "rssi": -60,
                    "name": format!("event {number}"), "manufacturerData": {"0499": format!("{number:08x}")}});
                format!("{line}\n")
            })
            .collect();
        std::fs::write(dir.path().join("trace.jsonl"), trace).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn state(&self) -> PathBuf {
        self.path("state")
    }

    fn command(&self, command: &str) -> Command {
        let mut agent = Command::new(env!("CARGO_BIN_EXE_hub-agent"));
        agent
            .arg(command)
            .arg("--state-dir")
            .arg(self.state())
            .env("HUB_AGENT_DEVICE_INSTANCE_ID", "test-hub");
        // As on a machine without authorities' certificates: plain HTTP needs none.
        agent
            .env("SSL_CERT_FILE", "/nowhere")
            .env("SSL_CERT_DIR", "/nowhere");
        // The machine's own configuration must not affect a test.
        std::fs::write(self.path("config.toml"), "").unwrap();
        agent.arg("--config").arg(self.path("config.toml"));
        agent.kill_on_drop(true).stdin(Stdio::null());
        agent
    }

    fn run(&self, service: &Service) -> Command {
        self.run_at(&service.url())
    }

    fn run_at(&self, url: &str) -> Command {
        let mut agent = self.command("run");
        agent.args([
            "--service-url",
            url,
            "--dedup-window",
            "0s",
            "--telemetry-interval",
            "1s",
        ]);
        agent.args([
            "--spool-commit",
            "50ms",
            "--upload-interval",
            "20ms",
            "--log",
            "info",
        ]);
        agent.arg("--replay").arg(self.path("trace.jsonl"));
        agent
    }

    fn claimed(&self, service: &Service) -> Command {
        let mut agent = self.run(service);
        agent.env("HUB_AGENT_CLAIM_CODE", CODE);
        agent
    }

    /// The names and times of all events on disk.
    fn spooled(&self) -> BTreeSet<(String, String)> {
        let database = rusqlite::Connection::open(self.state().join("spool.db")).unwrap();
        let mut statement = database
            .prepare("SELECT body FROM segments WHERE kind = 1")
            .unwrap();
        let bodies = statement
            .query_map([], |row| row.get::<_, Vec<u8>>(0))
            .unwrap();
        let mut found = BTreeSet::new();
        for body in bodies {
            let json = zstd::stream::decode_all(body.unwrap().as_slice()).unwrap();
            let events: Vec<Value> =
                serde_json::from_slice(&[b"[".as_slice(), &json, b"]"].concat()).unwrap();
            found.extend(events.iter().map(identity));
        }
        found
    }
}

fn identity(event: &Value) -> (String, String) {
    (
        event["name"].as_str().unwrap().to_owned(),
        event["observedAt"].as_str().unwrap().to_owned(),
    )
}

async fn output(mut command: Command) -> Output {
    tokio::time::timeout(TEN_SECONDS, command.output())
        .await
        .expect("a command ends")
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn kill(agent: &Child, signal: rustix::process::Signal) {
    let id = rustix::process::Pid::from_raw(agent.id().unwrap() as i32).unwrap();
    rustix::process::kill_process(id, signal).unwrap();
}

/// Stops the agent. Returns its exit code.
async fn stop(agent: &mut Child) -> Option<i32> {
    kill(agent, rustix::process::Signal::TERM);
    tokio::time::timeout(Duration::from_secs(5), agent.wait())
        .await
        .expect("stops within 5 s")
        .unwrap()
        .code()
}

/// No event is in two batches, and no batch changed between two uploads.
fn assert_once(stored: &Stored) {
    assert_eq!(
        stored.changed,
        Vec::<String>::new(),
        "batches whose content changed"
    );
    let mut seen: HashMap<(String, String), &str> = HashMap::new();
    for (batch, events) in &stored.events {
        for event in events {
            if let Some(other) = seen.insert(identity(event), batch) {
                panic!("{event} is in {other} and in {batch}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_itself_and_delivers_every_advertisement() {
    let site = Site::new(200, 5);
    let service = Service::start().await;
    let mut agent = site.claimed(&service).spawn().unwrap();
    service
        .until("all events", |stored| {
            (stored.event_count() == 200).then_some(())
        })
        .await;
    service
        .until("telemetry", |stored| {
            (!stored.telemetry.is_empty()).then_some(())
        })
        .await;
    service
        .until("adapters", |stored| {
            (!stored.adapters.is_empty()).then_some(())
        })
        .await;
    assert_eq!(stop(&mut agent).await, Some(0));
    service.change(|stored| {
        assert_once(stored);
        let claim = &stored.claims[0];
        assert_eq!(
            (
                claim["deviceInstanceId"].as_str(),
                claim["agentVersion"].as_str()
            ),
            (Some("test-hub"), Some("0.1.0"))
        );
        let names: Vec<String> = stored
            .order
            .iter()
            .flat_map(|batch| &stored.events[batch])
            .map(|event| identity(event).0)
            .collect();
        assert_eq!(
            names,
            (0..200)
                .map(|number| format!("event {number}"))
                .collect::<Vec<_>>(),
            "in order"
        );
        let telemetry = &stored.telemetry[0];
        for figure in [
            "/machine/memoryTotalBytes",
            "/agent/residentBytes",
            "/spool/batches",
            "/adapters/00:00:00:00:00:00/state",
        ] {
            assert!(
                telemetry.pointer(figure).is_some(),
                "{figure} is missing in {telemetry}"
            );
        }
    });
    let credentials = std::fs::metadata(site.state().join("credentials.json")).unwrap();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&credentials.permissions()) & 0o777,
        0o600
    );
}

/// Killed at many moments while the service fails in every way: what reached the disk is delivered
/// once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_being_killed_at_any_moment() {
    const SEED: u64 = 20_261_121;
    let site = Site::new(4_000, 1);
    let service = Service::with_fate(|number| match random(SEED, number as u64) % 20 {
        0..3 => Fate::StoredUnanswered,
        3..5 => Fate::Unavailable,
        5 => Fate::TokenRefused,
        6 => Fate::TooMany,
        _ => Fate::Stored,
    })
    .await;
    let mut must_arrive = BTreeSet::new();
    for round in 0..12 {
        let mut agent = site
            .claimed(&service)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        service
            .until("the claim", |stored| {
                (!stored.claims.is_empty()).then_some(())
            })
            .await;
        tokio::time::sleep(Duration::from_millis(50 + random(SEED + 1, round) % 900)).await;
        kill(&agent, rustix::process::Signal::KILL);
        agent.wait().await.unwrap();
        must_arrive.extend(site.spooled());
    }
    assert!(
        must_arrive.len() > 100,
        "the kills came too early to prove anything: {}",
        must_arrive.len()
    );
    let mut agent = site.claimed(&service).spawn().unwrap();
    service
        .until("all that was spooled", |stored| {
            let arrived: BTreeSet<_> = stored.all_events().map(identity).collect();
            must_arrive.is_subset(&arrived).then_some(())
        })
        .await;
    assert_eq!(stop(&mut agent).await, Some(0));
    service.change(|stored| assert_once(stored));
}

/// Pseudo-random numbers that are the same for the same seed (splitmix64).
fn random(seed: u64, number: u64) -> u64 {
    let mut x = seed.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_whose_answer_is_lost_does_not_lock_the_hub_out() {
    let site = Site::new(100, 30);
    let service = Service::with_fate(|number| {
        if number == 2 {
            Fate::TokenRefused
        } else {
            Fate::Stored
        }
    })
    .await;
    service.change(|stored| stored.lose_refreshes(3));
    let mut agent = site.claimed(&service).spawn().unwrap();
    service
        .until("all events", |stored| {
            (stored.event_count() == 100).then_some(())
        })
        .await;
    service
        .until("refreshes", |stored| (stored.refreshes >= 4).then_some(()))
        .await;
    assert_eq!(stop(&mut agent).await, Some(0));
    service.change(|stored| {
        assert_once(stored);
        assert_eq!(stored.claims.len(), 1, "no second claim was needed");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_and_a_refresh_come_no_earlier_than_the_service_accepts_them() {
    let site = Site::new(400, 30);
    let is_token_refused = Arc::new(AtomicBool::new(false));
    let refuse = is_token_refused.clone();
    let service = Service::with_fate(move |_| {
        if refuse.swap(false, Ordering::Relaxed) {
            Fate::TokenRefused
        } else {
            Fate::Stored
        }
    })
    .await;
    service.change(|stored| stored.limit(Duration::from_secs(5)));
    let mut agent = site.claimed(&service).spawn().unwrap();
    service
        .until("a claim", |stored| (stored.claims.len() == 1).then_some(()))
        .await;
    service.change(|stored| {
        assert_eq!(stored.limited, 1, "claims");
        stored.limit(Duration::from_secs(5));
    });
    is_token_refused.store(true, Ordering::Relaxed);
    service
        .until("all events", |stored| {
            (stored.event_count() == 400).then_some(())
        })
        .await;
    assert_eq!(stop(&mut agent).await, Some(0));
    service.change(|stored| {
        assert_eq!(stored.limited, 2, "a claim and a refresh");
        assert_once(stored);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_expires_at_once_is_not_renewed_in_a_loop() {
    for (lifetime_secs, at_least) in [(-3_600, 1), (5, 0), (13, 1)] {
        let site = Site::new(10, 10);
        let service = Service::start().await;
        service.change(|stored| stored.set_lifetime_secs(lifetime_secs));
        let mut agent = site.claimed(&service).spawn().unwrap();
        service
            .until("all events", |stored| {
                (stored.event_count() == 10).then_some(())
            })
            .await;
        service
            .until("a refresh", |stored| {
                (stored.refreshes >= at_least).then_some(())
            })
            .await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        service.change(|stored| assert!(stored.refreshes <= 2, "{} refreshes", stored.refreshes));
        assert_eq!(stop(&mut agent).await, Some(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_hub_stores_its_records_and_delivers_them_after_a_new_claim() {
    let site = Site::new(300, 10);
    let service = Service::start().await;
    let mut agent = site.claimed(&service).spawn().unwrap();
    service
        .until("first events", |stored| {
            (stored.event_count() > 0).then_some(())
        })
        .await;
    service.change(Stored::block);
    let status = until_status(&site, |status| status["access"] == "REFUSED").await;
    assert!(
        status["accessReason"]
            .as_str()
            .unwrap()
            .contains("HUB_BLOCKED"),
        "{status}"
    );

    let claim = |code: &str| {
        let mut command = site.command("claim");
        command.args(["--code", code]);
        output(command)
    };
    let refused = claim("2222-2222-2222-2222").await;
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stderr));
    service.change(|stored| stored.unblock_with("3333-3333-3333-3333"));
    let wrong = claim("2222-2222-2222-2222").await;
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        text(&wrong.stderr).contains("CLAIM_CODE_INVALID"),
        "{}",
        text(&wrong.stderr)
    );
    let claimed = claim("3333-3333-3333-3333").await;
    assert_eq!(claimed.status.code(), Some(0), "{}", text(&claimed.stderr));
    assert!(text(&claimed.stdout).contains(HUB));
    service
        .until("all events", |stored| {
            (stored.event_count() == 300).then_some(())
        })
        .await;
    service
        .until("the log entry", |stored| {
            stored
                .logs
                .iter()
                .find(|entry| {
                    entry["level"] == "ERROR"
                        && entry["message"]
                            .as_str()
                            .unwrap()
                            .contains("refuses this hub")
                })
                .cloned()
        })
        .await;
    assert_eq!(stop(&mut agent).await, Some(0));
    service.change(|stored| assert_once(stored));
}

/// Requests the running agent's status until it fits.
async fn until_status(site: &Site, fits: impl Fn(&Value) -> bool) -> Value {
    until_status_within(Duration::from_secs(30), site, fits).await
}

async fn until_status_within(
    longest: Duration,
    site: &Site,
    fits: impl Fn(&Value) -> bool,
) -> Value {
    let requesting = async {
        loop {
            let mut command = site.command("status");
            command.arg("--json");
            let answer = output(command).await;
            // It also fails with a status: if the service refuses the hub.
            if let Ok(status) = serde_json::from_slice(&answer.stdout)
                && fits(&status)
            {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(longest, requesting)
        .await
        .expect("the status fits in time")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_uploads_become_fewer_and_larger_ones() {
    let site = Site::new(400, 10);
    let service = Service::with_fate(|number| {
        if number == 3 {
            Fate::TooMany
        } else {
            Fate::Stored
        }
    })
    .await;
    let mut agent = site.claimed(&service).spawn().unwrap();
    service
        .until("all events", |stored| {
            (stored.event_count() == 400).then_some(())
        })
        .await;
    assert_eq!(stop(&mut agent).await, Some(0));
    service.change(|stored| {
        assert_once(stored);
        let sizes: Vec<usize> = stored
            .order
            .iter()
            .map(|batch| stored.events[batch].len())
            .collect();
        let largest = sizes.iter().max().unwrap();
        assert!(*largest >= 5 * sizes[0], "{sizes:?}");
        // A log entry would be one more upload, of every hub of a fleet.
        let about: Vec<_> = stored
            .logs
            .iter()
            .filter(|entry| entry.to_string().contains("upload"))
            .collect();
        assert!(about.is_empty(), "{about:?}");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_of_a_login_page_is_ignored() {
    let site = Site::new(200, 5);
    let service = Service::with_fate(|number| {
        if number == 2 {
            Fate::LoginPage
        } else {
            Fate::Stored
        }
    })
    .await;
    let log = std::fs::File::create(site.path("log")).unwrap();
    let mut agent = site.claimed(&service).stderr(log).spawn().unwrap();
    service
        .until("all events", |stored| {
            (stored.event_count() == 200).then_some(())
        })
        .await;
    assert_eq!(stop(&mut agent).await, Some(0));
    service.change(|stored| {
        assert!(
            stored
                .all_events()
                .all(|event| identity(event).1.as_str() < "2050")
        )
    });
    // The service's next answer would have corrected it: it must not happen even for a moment.
    let log = std::fs::read_to_string(site.path("log")).unwrap();
    assert!(!log.contains("clock differs"), "{log}");
}

/// An agent of 200 events, uploaded to a service that refuses uploads with some of them, until each
/// is uploaded or refused.
async fn upload_with_refused(refused_names: &[&str]) -> (Site, Service) {
    let site = Site::new(200, 5);
    let service = Service::start().await;
    let names = refused_names.iter().map(|name| (*name).to_owned());
    service.change(|stored| stored.refused_names = names.collect());
    let mut agent = site.claimed(&service).spawn().unwrap();
    let others = 200 - refused_names.len();
    service
        .until("the other events", |stored| {
            (stored.event_count() == others).then_some(())
        })
        .await;
    until_status(&site, |status| {
        status["refusedRecords"] == refused_names.len()
    })
    .await;
    assert_eq!(stop(&mut agent).await, Some(0));
    (site, service)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_is_refused_costs_no_other() {
    let (site, service) = upload_with_refused(&["event 57"]).await;
    let refused = std::fs::read_dir(site.state().join("refused")).unwrap();
    assert_eq!(refused.count(), 1);
    service.change(|stored| assert_once(stored));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_uploads_block_nothing_and_are_logged_once() {
    let (_site, service) = upload_with_refused(&["event 3", "event 4", "event 57"]).await;
    service.change(|stored| {
        let is_refusal = |entry: &&Value| {
            let message = entry["message"].as_str().unwrap();
            message.contains("refuses an upload")
        };
        let refusals = stored.logs.iter().filter(is_refusal).count();
        assert_eq!(refusals, 1, "{:?}", stored.logs);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reason_of_a_failed_claim_is_logged_once() {
    let site = Site::new(1, 1);
    let service = Service::start().await;
    service.change(|stored| stored.claims_fail_with = vec![403, 403, 200, 404]);
    let log = std::fs::File::create(site.path("log")).unwrap();
    let mut agent = site.run(&service);
    // A directory exists but cannot be read as a file.
    agent
        .env("HUB_AGENT_CLAIM_CODE", CODE)
        .arg("--claim-code-file")
        .arg(site.dir.path())
        .stderr(log);
    let mut agent = agent.spawn().unwrap();
    service
        .until("the event", |stored| {
            (stored.event_count() == 1).then_some(())
        })
        .await;
    assert_eq!(stop(&mut agent).await, Some(0));
    let log = std::fs::read_to_string(site.path("log")).unwrap();
    for (reason, times) in [
        ("403 CLAIM_FAILED", 1),
        (
            "the answer (status 200) does not have the service's format",
            1,
        ),
        ("something else answers in place of the service", 1),
        ("claiming this hub failed", 2),
        ("the file of the claim code cannot be read", 1),
    ] {
        assert_eq!(log.matches(reason).count(), times, "{reason}: {log}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hubs_with_one_identity_do_not_use_up_their_code() {
    let service = Service::start().await;
    service.change(|stored| stored.endless_codes = true);
    let sites = [Site::new(600, 10), Site::new(600, 10)];
    let mut agents = Vec::new();
    for (number, site) in sites.iter().enumerate() {
        agents.push(site.claimed(&service).spawn().unwrap());
        service
            .until("the claim", |stored| {
                (stored.claims.len() > number).then_some(())
            })
            .await;
    }
    let status = until_status(&sites[0], |status| {
        status["accessReason"].as_str().is_some_and(|reason| {
            reason.contains("another hub may have the same identity") && reason.contains("401")
        })
    })
    .await;
    assert_eq!(status["access"], "REFUSED");
    tokio::time::sleep(Duration::from_secs(3)).await;
    service.change(|stored| assert_eq!(stored.claims.len(), 2));
    for agent in &mut agents {
        assert_eq!(stop(agent).await, Some(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_that_a_login_page_answers_are_sent_again() {
    let site = Site::new(200, 5);
    let service = Service::start().await;
    let mut agent = site.claimed(&service).spawn().unwrap();
    service
        .until("some events", |stored| {
            (stored.event_count() > 20).then_some(())
        })
        .await;
    service.change(|stored| stored.login_page(true));
    let status = until_status(&site, |status| {
        status["spool"]["events"].as_u64().unwrap() > 100
    })
    .await;
    let reason = status["uploadsNotTaken"]["bleEvents"]["reason"]
        .as_str()
        .unwrap();
    assert!(
        reason.contains("status 200") && reason.contains("something else"),
        "{status}"
    );
    service.change(|stored| stored.login_page(false));
    until_status(&site, |status| status["uploadsNotTaken"].is_null()).await;
    service
        .until("all events", |stored| {
            (stored.event_count() == 200).then_some(())
        })
        .await;
    assert_eq!(stop(&mut agent).await, Some(0));
    service.change(|stored| assert_once(stored));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operators_roles_are_applied_at_once_and_stored() {
    let site = Site::new(10, 10);
    let service = Service::start().await;
    let mut agent = site.claimed(&service).spawn().unwrap();
    service
        .until("the events", |stored| {
            (stored.event_count() == 10).then_some(())
        })
        .await;
    service
        .change(|stored| stored.desire(json!({"adapterRoles": {"aa:bb:cc:dd:ee:01": "DISABLED"}})));
    let roles = site.state().join("adapter-roles.json");
    let written = async {
        loop {
            if let Ok(text) = std::fs::read_to_string(&roles) {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let text = tokio::time::timeout(TEN_SECONDS, written)
        .await
        .expect("the roles are written");
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        json!({"AA:BB:CC:DD:EE:01": "DISABLED"})
    );
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stops_with_everything_delivered_and_notifies_systemd() {
    let site = Site::new(10_000, 1);
    let service = Service::start().await;
    let socket = site.path("notify");
    let systemd = tokio::net::UnixDatagram::bind(&socket).unwrap();
    let mut command = site.claimed(&service);
    command
        .env("NOTIFY_SOCKET", &socket)
        .env("WATCHDOG_USEC", "600000");
    let mut agent = command.spawn().unwrap();
    let mut output_text = Vec::new();
    while !["READY=1", "WATCHDOG=1", "STATUS="].iter().all(|expected| {
        output_text
            .iter()
            .any(|line: &String| line.contains(expected))
    }) {
        output_text.push(receive(&systemd).await);
    }
    service
        .until("some events", |stored| {
            (stored.event_count() > 500).then_some(())
        })
        .await;
    assert_eq!(stop(&mut agent).await, Some(0));
    while !output_text.iter().any(|line| line.contains("STOPPING=1")) {
        output_text.push(receive(&systemd).await);
    }
    assert_eq!(
        site.spooled(),
        BTreeSet::new(),
        "everything received until the end is delivered"
    );
    service.change(|stored| assert_once(stored));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loss_of_the_terminal_stops_the_agent_cleanly() {
    let site = Site::new(50, 1);
    let service = Service::start().await;
    let mut command = site.command("run");
    command.args([
        "--service-url",
        &service.url(),
        "--dedup-window",
        "0s",
        "--spool-commit",
        "10s",
    ]);
    command.arg("--replay").arg(site.path("trace.jsonl"));
    let mut agent = with_default_hangup(&command).spawn().unwrap();
    until_status(&site, |status| {
        status["spool"]["events"].as_u64().unwrap() >= 50
    })
    .await;
    kill(&agent, rustix::process::Signal::HUP);
    let ended = tokio::time::timeout(TEN_SECONDS, agent.wait())
        .await
        .expect("SIGHUP stops it");
    assert_eq!(ended.unwrap().code(), Some(0));
    assert_eq!(site.spooled().len(), 50);
}

/// The same command with SIGHUP at its default. Under `nohup` the tests ignore it, every process
/// inherits that, and the agent rightly keeps ignoring it.
fn with_default_hangup(command: &Command) -> Command {
    let command = command.as_std();
    let mut env = Command::new("env");
    env.arg("--default-signal=HUP")
        .arg(command.get_program())
        .args(command.get_args());
    env.envs(
        command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    env.kill_on_drop(true).stdin(Stdio::null());
    env
}

async fn receive(socket: &tokio::net::UnixDatagram) -> String {
    let mut buffer = [0; 1_024];
    let length = tokio::time::timeout(TEN_SECONDS, socket.recv(&mut buffer))
        .await
        .expect("systemd is notified")
        .unwrap();
    text(&buffer[..length])
}
