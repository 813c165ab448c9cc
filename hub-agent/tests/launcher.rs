//! The launcher as a real process, with scripts as versions of the agent: which of them it starts,
//! and what follows from how they end. A power cut is a SIGKILL of the launcher and everything it
//! started.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect fails"
)]

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use hub_agent::launch::{FOLDER, Fingerprint, LaunchState, Trial};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

const DIR: &str = "2.0.0-abcdefabcdef";

struct Hub {
    dir: tempfile::TempDir,
}

impl Hub {
    /// The package's own version writes to the log and ends; `trial` is the version on trial.
    fn new(trial: &str) -> Self {
        let hub = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        script(&hub.packaged(), "echo packaged $@ >>$LOG");
        script(&hub.version(DIR), trial);
        hub.write(&LaunchState {
            trial: Some(on_trial(DIR)),
            ..LaunchState::default()
        });
        hub
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn packaged(&self) -> PathBuf {
        self.path("packaged")
    }

    fn version(&self, dir: &str) -> PathBuf {
        self.path("versions").join(dir).join("hub-agent")
    }

    fn state(&self) -> LaunchState {
        LaunchState::read(&self.path("state").join(FOLDER)).unwrap()
    }

    fn write(&self, state: &LaunchState) {
        state.write(&self.path("state").join(FOLDER)).unwrap();
    }

    fn start(&self) -> Child {
        self.start_with(1, None)
    }

    fn start_with(&self, trial_secs: u32, notify_socket: Option<&Path>) -> Child {
        let mut launcher = Command::new(env!("CARGO_BIN_EXE_hub-agent-launcher"));
        launcher
            .args(["run", "--flag"])
            .env("HUB_AGENT_STATE_DIR", self.path("state"));
        launcher
            .env("HUB_AGENT_PACKAGED", self.packaged())
            .env("HUB_AGENT_VERSIONS_DIR", self.path("versions"));
        launcher.env("HUB_AGENT_TRIAL_TIMEOUT_SECS", trial_secs.to_string());
        launcher
            .env("LOG", self.path("log"))
            .env("WATCHDOG_PID", "1");
        launcher
            .env("STATE", self.path("state").join(FOLDER))
            .process_group(0);
        launcher
            .env_remove("NOTIFY_SOCKET")
            .envs(notify_socket.map(|socket| ("NOTIFY_SOCKET", socket)));
        launcher.spawn().unwrap()
    }

    /// Runs it like systemd, again while it fails. Returns the number of starts and the last exit
    /// code.
    fn run(&self) -> (u32, Option<i32>) {
        for start in 1..=5 {
            match end(&mut self.start()) {
                Some(1) => {}
                code => return (start, code),
            }
        }
        panic!("it never ends: {}", self.log())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn until_logged(&self, part: &str) {
        let began = Instant::now();
        while !self.log().contains(part) {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "{part:?} is not in {:?}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn on_trial(dir: &str) -> Trial {
    Trial {
        dir: dir.into(),
        job_uuid: "job".into(),
        boots: 0,
        radio_heard: false,
    }
}

fn script(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn end(launcher: &mut Child) -> Option<i32> {
    let began = Instant::now();
    loop {
        if let Some(status) = launcher.try_wait().unwrap() {
            return status.code();
        }
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "the launcher does not end"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn id(launcher: &Child) -> Pid {
    Pid::from_raw(i32::try_from(launcher.id()).unwrap()).unwrap()
}

/// The script of a version that works.
const CONFIRMS: &str = r#"
    echo "trial $HUB_AGENT_TRIAL $HUB_AGENT_LAUNCHED ${WATCHDOG_PID:-none} $@" >>$LOG
    printf '{"confirmed": "2.0.0-abcdefabcdef", "packaged": %s, "failed": []}' \
        "$(tr -d '\n ' <$STATE/state.json | sed 's/.*"packaged":\({[^}]*}\).*/\1/')" >$STATE/new
    mv $STATE/new $STATE/state.json
    trap 'exit 7' TERM
    while :; do sleep 0.05; done"#;

#[test]
fn without_a_trial_it_becomes_the_agent() {
    let hub = Hub::new("echo trial >>$LOG");
    hub.write(&LaunchState::default());
    script(
        &hub.packaged(),
        "echo packaged $$ $@ ${HUB_AGENT_TRIAL:-none} >>$LOG",
    );
    let mut launcher = hub.start();
    let process = launcher.id();
    assert_eq!(end(&mut launcher), Some(0));
    assert_eq!(hub.log(), format!("packaged {process} run --flag none\n"));
    std::fs::write(hub.path("state").join(FOLDER).join("state.json"), "{").unwrap();
    assert_eq!(
        hub.run(),
        (1, Some(0)),
        "a damaged file is no reason not to start"
    );
}

#[test]
fn a_version_that_ends_by_itself_is_tried_three_times() {
    let hub = Hub::new("echo trial >>$LOG; exit 1");
    assert_eq!(hub.run(), (4, Some(0)), "each start is one of systemd's");
    assert_eq!(hub.log(), "trial\ntrial\ntrial\npackaged run --flag\n");
    let state = hub.state();
    assert_eq!((&state.trial, state.failed.len()), (&None, 1));
    assert_eq!(
        (
            state.failed[0].reason.as_str(),
            state.failed[0].job_uuid.as_str()
        ),
        ("DID_NOT_START", "job")
    );
}

#[test]
fn a_version_that_cannot_start_is_tried_once() {
    for (trial, starts) in [
        ("echo trial >>$LOG; exit 3", "trial\n"),
        ("echo trial >>$LOG; exit 2", "trial\n"),
    ] {
        let hub = Hub::new(trial);
        assert_eq!(hub.run(), (2, Some(0)));
        assert_eq!(hub.log(), format!("{starts}packaged run --flag\n"));
        assert_eq!(hub.state().failed[0].reason, "DID_NOT_START");
    }
    for dir in ["../versions/2.0.0-abcdefabcdef", "", ".", "3.0.0-nowhere"] {
        let hub = Hub::new("echo trial >>$LOG");
        hub.write(&LaunchState {
            trial: Some(on_trial(dir)),
            ..LaunchState::default()
        });
        assert_eq!(hub.run(), (2, Some(0)));
        assert_eq!(hub.log(), "packaged run --flag\n", "{dir:?}");
        assert_eq!(hub.state().failed[0].reason, "DID_NOT_START");
    }
}

#[test]
fn a_version_that_never_confirms_itself_is_ended_and_the_confirmed_one_runs() {
    for trial in [
        "echo trial >>$LOG; exec sleep 60",
        "trap '' TERM; echo trial >>$LOG; while :; do sleep 0.1; done",
    ] {
        let hub = Hub::new(trial);
        script(&hub.version("1.5.0-123456123456"), "echo confirmed >>$LOG");
        hub.write(&LaunchState::default());
        // Confirmed with the current package.
        hub.write(&LaunchState {
            trial: Some(on_trial("1.5.0-123456123456")),
            ..LaunchState::default()
        });
        hub.run();
        let packaged = hub.state().packaged;
        let _ = std::fs::remove_file(hub.path("log"));
        hub.write(&LaunchState {
            confirmed: Some("1.5.0-123456123456".into()),
            packaged,
            trial: Some(on_trial(DIR)),
            failed: Vec::new(),
        });
        assert_eq!(hub.run(), (2, Some(0)));
        assert_eq!(hub.log(), "trial\nconfirmed\n");
        assert_eq!(hub.state().failed[0].reason, "NOT_CONFIRMED");
        assert_eq!(hub.state().confirmed.as_deref(), Some("1.5.0-123456123456"));
    }
}

#[test]
fn a_version_that_confirms_itself_stays_until_the_package_is_upgraded() {
    let hub = Hub::new(CONFIRMS);
    let mut launcher = hub.start();
    hub.until_logged("trial");
    // Longer than a trial.
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!(
        launcher.try_wait().unwrap(),
        None,
        "it is not ended as unconfirmed"
    );
    kill_process(id(&launcher), Signal::TERM).unwrap();
    assert_eq!(
        end(&mut launcher),
        Some(7),
        "the signal and the exit code are passed on"
    );
    assert_eq!(hub.log(), format!("trial {DIR} 1 none run --flag\n"));
    assert_eq!(
        (hub.state().confirmed.as_deref(), hub.state().trial),
        (Some(DIR), None)
    );

    script(&hub.version(DIR), "echo confirmed $$ >>$LOG");
    let mut launcher = hub.start();
    let process = launcher.id();
    assert_eq!(end(&mut launcher), Some(0));
    assert!(
        hub.log().ends_with(&format!("confirmed {process}\n")),
        "{}",
        hub.log()
    );

    std::fs::remove_file(hub.version(DIR)).unwrap();
    assert_eq!(hub.run(), (1, Some(0)));
    assert!(
        hub.log().ends_with("packaged run --flag\n"),
        "the package's own version always remains: {}",
        hub.log()
    );

    script(&hub.version(DIR), "echo confirmed >>$LOG");
    // Another program of the same size and time: packages give all their files the time of their
    // changelog.
    let modified = std::fs::metadata(hub.packaged())
        .unwrap()
        .modified()
        .unwrap();
    script(&hub.packaged(), "echo upgraded $@ >>$LOG");
    std::fs::File::options()
        .write(true)
        .open(hub.packaged())
        .unwrap()
        .set_modified(modified)
        .unwrap();
    assert_eq!(hub.run(), (1, Some(0)));
    assert!(
        hub.log().ends_with("upgraded run --flag\n"),
        "{}",
        hub.log()
    );
    assert_eq!(hub.state().confirmed, None);
}

#[test]
fn the_fingerprint_of_an_older_launcher_is_used() {
    for (later_secs, runs) in [(0, "confirmed\n"), (1, "packaged run --flag\n")] {
        let hub = Hub::new("echo confirmed >>$LOG");
        let found = std::fs::metadata(hub.packaged()).unwrap();
        let packaged = Fingerprint {
            bytes: found.len(),
            modified_secs: found.mtime() - later_secs,
            sha256: None,
        };
        hub.write(&LaunchState {
            confirmed: Some(DIR.into()),
            packaged: Some(packaged),
            ..LaunchState::default()
        });
        assert_eq!(hub.run(), (1, Some(0)));
        assert_eq!(hub.log(), runs);
        assert!(
            hub.state().packaged.unwrap().sha256.is_some(),
            "the next time its content is compared"
        );
    }
}

#[test]
fn a_version_that_takes_the_hub_down_is_started_three_times() {
    let hub = Hub::new("echo trial >>$LOG; exec sleep 60");
    for start in 1..=3 {
        let mut launcher = hub.start();
        hub.until_logged(&"trial\n".repeat(start));
        kill_process_group(id(&launcher), Signal::KILL).unwrap();
        end(&mut launcher);
        assert_eq!(
            hub.state().trial.map(|trial| trial.boots as usize),
            Some(start)
        );
    }
    assert_eq!(hub.run(), (2, Some(0)));
    assert_eq!(hub.log(), "trial\ntrial\ntrial\npackaged run --flag\n");
    assert_eq!(hub.state().failed[0].reason, "NOT_CONFIRMED");
}

#[test]
fn a_requested_stop_does_not_count_as_a_start() {
    let hub = Hub::new(
        "trap 'echo stopped >>$LOG; exit 0' TERM; echo trial >>$LOG; while :; do sleep 0.05; done",
    );
    for _ in 0..4 {
        let mut launcher = hub.start_with(60, None);
        hub.until_logged("trial");
        kill_process(id(&launcher), Signal::TERM).unwrap();
        assert_eq!(end(&mut launcher), Some(0));
        assert!(hub.log().ends_with("stopped\n"));
        assert_eq!(
            (hub.state().trial, hub.state().failed.len()),
            (Some(on_trial(DIR)), 0)
        );
        std::fs::remove_file(hub.path("log")).unwrap();
    }
}

#[test]
fn a_stop_after_a_while_counts_as_a_start() {
    // For example systemd's: the version did not become ready.
    let hub = Hub::new("echo trial >>$LOG; exec sleep 60");
    for start in 1..=3 {
        let mut launcher = hub.start_with(5, None);
        hub.until_logged(&"trial\n".repeat(start));
        std::thread::sleep(Duration::from_millis(600));
        kill_process(id(&launcher), Signal::TERM).unwrap();
        assert_eq!(end(&mut launcher), Some(128 + 15));
        assert_eq!(
            hub.state().trial.map(|trial| trial.boots as usize),
            Some(start)
        );
    }
    assert_eq!(hub.run(), (2, Some(0)));
    assert_eq!(hub.log(), "trial\ntrial\ntrial\npackaged run --flag\n");
    assert_eq!(hub.state().failed[0].reason, "NOT_CONFIRMED");
}

#[test]
fn the_timeout_of_systemd_is_extended_only_for_a_trial() {
    let hub = Hub::new("echo trial >>$LOG; exec sleep 60");
    let systemd = UnixDatagram::bind(hub.path("notify")).unwrap();
    systemd.set_nonblocking(true).unwrap();
    let received = || {
        let mut buffer = [0; 256];
        systemd
            .recv(&mut buffer)
            .ok()
            .map(|length| String::from_utf8_lossy(&buffer[..length]).into_owned())
    };
    assert_eq!(
        end(&mut hub.start_with(2, Some(&hub.path("notify")))),
        Some(1),
        "it hung, and its time was over"
    );
    let micros: u64 = received()
        .unwrap()
        .trim()
        .strip_prefix("EXTEND_TIMEOUT_USEC=")
        .unwrap()
        .parse()
        .unwrap();
    assert!(
        micros > 12_000_000,
        "the trial's time, and the time to end: {micros}"
    );
    assert_eq!(received(), None);
    assert_eq!(hub.state().failed[0].reason, "NOT_CONFIRMED");
    assert_eq!(
        end(&mut hub.start_with(2, Some(&hub.path("notify")))),
        Some(0)
    );
    assert_eq!(
        (hub.log().as_str(), received()),
        ("trial\npackaged run --flag\n", None)
    );
}
