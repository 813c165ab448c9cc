//! Starts a version of the agent: the one on trial, else the one that was confirmed last, else the
//! package's own. Without a trial the launcher becomes the agent (exec), so that no process is
//! between systemd and the agent. A version on trial is its child: the launcher counts the starts
//! and gives it time to confirm itself; if it does not, the launcher restores the previous version
//! and records why. Every start is on disk before it happens: a version that takes the machine down
//! is not tried for ever. When a version on trial has ended, the launcher ends too: its
//! notifications to systemd hold for the whole unit, so the next start is a new one. The launcher
//! passes its arguments on. It never downloads, never calls the service, and runs only programs in
//! the root-owned versions' directory.
//!
//! For tests and unusual layouts: `HUB_AGENT_STATE_DIR`, `HUB_AGENT_PACKAGED` (the package's
//! binary), `HUB_AGENT_VERSIONS_DIR`, `HUB_AGENT_TRIAL_TIMEOUT_SECS`.

use std::fmt::Display;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hub_agent::launch::{
    FOLDER, Fingerprint, LAUNCHED_VARIABLE, LaunchState, TRIAL_VARIABLE, Trial,
};
use rustix::process::{Pid, Signal, kill_process};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

const BINARY: &str = "hub-agent";
const DEFAULT_TRIAL_TIMEOUT_SECS: u64 = 600;

/// The most starts of a version on trial; a power cut may cost one.
const MAX_BOOTS: u32 = 3;

/// How long a version that failed may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the launcher may then take, before systemd ends both.
const LAUNCHER_TIMEOUT: Duration = Duration::from_secs(60);

/// A stop in the first part (one in this many) of a trial's time was requested. A later one may
/// come from systemd because the version hangs, so it counts.
const FREE_STOP_PART: u32 = 10;

/// The agent's exit codes for wrong usage and a refused configuration: another start would end the
/// same.
const FINAL_EXIT_CODES: [i32; 2] = [2, 3];

const DID_NOT_START: &str = "DID_NOT_START";
const NOT_CONFIRMED: &str = "NOT_CONFIRMED";

fn main() -> ExitCode {
    let mut launcher = Launcher::new();
    let Some(trial) = launcher.state.trial.clone() else {
        return launcher.become_agent();
    };
    match launcher.try_out(trial) {
        Ok(Ended::Final(code)) => code,
        Ok(Ended::Retry) => ExitCode::FAILURE,
        Ok(Ended::Failed { reason, message }) => {
            log(format!(
                "the version on trial failed ({reason}): {message}; the previous version runs again"
            ));
            launcher.state.fail(reason, message);
            // A state that cannot be written would make the next start find the same failure.
            if launcher.write_state() {
                ExitCode::FAILURE
            } else {
                launcher.become_agent()
            }
        }
        // A start that cannot be counted does not happen: it could take the hub down at every boot.
        Err(error) => {
            log(format!("the version on trial is not started: {error}"));
            launcher.become_agent()
        }
    }
}

fn log(what: impl Display) {
    hub_logging::say(format_args!("hub-agent-launcher: {what}"));
}

/// How a version on trial ended.
enum Ended {
    /// The version was stopped, or had confirmed itself before: the launcher exits with its code.
    Final(ExitCode),
    /// The version ended by itself and may be started once more.
    Retry,
    Failed {
        reason: &'static str,
        message: String,
    },
}

struct Launcher {
    folder: PathBuf,
    packaged: PathBuf,
    versions: PathBuf,
    trial_timeout: Duration,
    state: LaunchState,
}

impl Launcher {
    fn new() -> Self {
        let path = |name: &str, default: &str| {
            PathBuf::from(
                std::env::var_os(name)
                    .filter(|value| !value.is_empty())
                    .unwrap_or_else(|| default.into()),
            )
        };
        let folder = path("HUB_AGENT_STATE_DIR", "/var/lib/hub-agent").join(FOLDER);
        let state = LaunchState::read(&folder).unwrap_or_else(|error| {
            log(format!(
                "{}: {error}; the package's own version runs",
                folder.display()
            ));
            LaunchState::default()
        });
        let mut launcher = Self {
            folder,
            packaged: path("HUB_AGENT_PACKAGED", "/usr/bin/hub-agent"),
            versions: path("HUB_AGENT_VERSIONS_DIR", "/var/lib/hub-agent-versions"),
            trial_timeout: Duration::from_secs(
                std::env::var("HUB_AGENT_TRIAL_TIMEOUT_SECS")
                    .ok()
                    .and_then(|text| text.parse().ok())
                    .unwrap_or(DEFAULT_TRIAL_TIMEOUT_SECS),
            ),
            state,
        };
        launcher.prefer_upgraded_package();
        launcher
    }

    /// A package that was upgraded runs instead of the confirmed version.
    fn prefer_upgraded_package(&mut self) {
        if self.state.confirmed.is_none() {
            return;
        }
        let packaged = Fingerprint::of(&self.packaged);
        let is_the_same = match (&self.state.packaged, &packaged) {
            (Some(known), Some(found)) => known.is_of_the_same_file(found),
            (known, found) => known == found,
        };
        if !is_the_same {
            log("the package was upgraded; its own version runs");
            self.state.confirmed = None;
        } else if self.state.packaged == packaged {
            return;
        }
        // The record is replaced even for the same package: an older version may have recorded less
        // of it.
        self.state.packaged = packaged;
        self.write_state();
    }

    /// Writes the state. Returns whether it is on disk.
    fn write_state(&self) -> bool {
        let written = self.state.write(&self.folder);
        if let Err(error) = &written {
            log(format!(
                "{} cannot be written: {error}",
                self.folder.display()
            ));
        }
        written.is_ok()
    }

    /// The version in a directory of the versions' directory, and nowhere else.
    fn version(&self, dir: &str) -> Option<PathBuf> {
        let is_name = !dir.is_empty() && !dir.starts_with('.') && !dir.contains(['/', '\0']);
        is_name.then(|| self.versions.join(dir).join(BINARY))
    }

    /// Returns only if nothing can be started.
    fn become_agent(&self) -> ExitCode {
        let confirmed = self
            .state
            .confirmed
            .as_deref()
            .and_then(|dir| self.version(dir));
        for binary in confirmed.iter().chain([&self.packaged]) {
            let error = Command::new(binary)
                .args(std::env::args_os().skip(1))
                .env(LAUNCHED_VARIABLE, "1")
                .env_remove(TRIAL_VARIABLE)
                .exec();
            log(format!("{} cannot be started: {error}", binary.display()));
        }
        ExitCode::FAILURE
    }

    fn try_out(&mut self, mut trial: Trial) -> io::Result<Ended> {
        let failed = |reason, message| Ok(Ended::Failed { reason, message });
        let Some(binary) = self.version(&trial.dir) else {
            return failed(DID_NOT_START, "its directory name is invalid".to_owned());
        };
        if trial.boots >= MAX_BOOTS {
            let why =
                "and each time it, the machine or the unit went down before it confirmed itself";
            return failed(
                NOT_CONFIRMED,
                format!("it was started {MAX_BOOTS} times, {why}"),
            );
        }
        let signals = Signals::listen()?;
        trial.boots += 1;
        self.state.trial = Some(trial.clone());
        self.state.packaged = Fingerprint::of(&self.packaged);
        self.state.write(&self.folder)?;
        self.extend_systemd_timeout();
        let began = Instant::now();
        let started = Command::new(&binary)
            .args(std::env::args_os().skip(1))
            .env(LAUNCHED_VARIABLE, "1")
            .env(TRIAL_VARIABLE, &trial.dir)
            // The variable names this process; without it the watchdog applies to any process of
            // the unit.
            .env_remove("WATCHDOG_PID")
            .spawn();
        let mut child = match started {
            Ok(child) => child,
            Err(error) => {
                return failed(
                    DID_NOT_START,
                    format!("{} cannot be started: {error}", binary.display()),
                );
            }
        };
        let watched = self.watch(&mut child, &trial, &signals);
        if watched.is_err() {
            // Two agents must never run at once.
            let _ = child.kill().and_then(|()| child.wait());
        }
        let Watched {
            status,
            is_timed_out,
        } = watched?;
        self.state = LaunchState::read(&self.folder)?;
        if !self.state.is_on_trial(&trial) {
            return Ok(Ended::Final(code(status)));
        }
        if is_timed_out {
            let secs = self.trial_timeout.as_secs();
            let why = "it hung, reached no service, or received no advertisements";
            return failed(
                NOT_CONFIRMED,
                format!("it did not confirm itself within {secs} s: {why}"),
            );
        }
        if signals.stop.load(Ordering::Relaxed) {
            if began.elapsed() < self.trial_timeout / FREE_STOP_PART {
                // A requested stop says nothing about the version.
                trial.boots -= 1;
                self.state.trial = Some(trial);
                self.write_state();
            }
            return Ok(Ended::Final(code(status)));
        }
        let message = format!(
            "it ended by itself, start {} of {MAX_BOOTS}: {status}",
            trial.boots
        );
        if trial.boots >= MAX_BOOTS
            || status
                .code()
                .is_some_and(|code| FINAL_EXIT_CODES.contains(&code))
        {
            return failed(DID_NOT_START, message);
        }
        log(message);
        Ok(Ended::Retry)
    }

    /// systemd would end a version that is not ready after `TimeoutStartSec=`, and with it the
    /// launcher, which has to record the outcome. The function does nothing without systemd.
    fn extend_systemd_timeout(&self) {
        let micros = (self.trial_timeout + END_TIMEOUT + LAUNCHER_TIMEOUT).as_micros();
        if let Err(error) = sd_notify::notify(&[NotifyState::Custom(&format!(
            "EXTEND_TIMEOUT_USEC={micros}"
        ))]) {
            log(format!("systemd's timeout cannot be extended: {error}"));
        }
    }

    /// Waits for the version's end and passes signals on. Ends the version when its time is over
    /// and it has not confirmed itself.
    fn watch(&self, child: &mut Child, trial: &Trial, signals: &Signals) -> io::Result<Watched> {
        let mut deadline = Some(Instant::now() + self.trial_timeout);
        let mut is_timed_out = false;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Watched {
                    status,
                    is_timed_out,
                });
            }
            if signals.forward.swap(false, Ordering::Relaxed) {
                send_signal(child, Signal::TERM);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                if is_timed_out {
                    // The version was asked to stop and did not.
                    child.kill()?;
                    deadline = None;
                } else if LaunchState::read(&self.folder)
                    .map_or(true, |state| state.is_on_trial(trial))
                {
                    is_timed_out = true;
                    send_signal(child, Signal::TERM);
                    deadline = Some(Instant::now() + END_TIMEOUT);
                } else {
                    deadline = None;
                }
            }
            signals.wait(deadline);
        }
    }
}

struct Watched {
    status: ExitStatus,
    /// The version was ended because its time was over.
    is_timed_out: bool,
}

fn send_signal(child: &Child, signal: Signal) {
    if let Some(id) = i32::try_from(child.id()).ok().and_then(Pid::from_raw)
        && let Err(error) = kill_process(id, signal)
    {
        log(format!("the version on trial cannot be stopped: {error}"));
    }
}

fn code(status: ExitStatus) -> ExitCode {
    // A shell reports the end by a signal with the same code.
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// The signals that wake the launcher while a version is on trial.
struct Signals {
    wakes: UnixStream,
    /// The launcher was asked to stop.
    stop: Arc<AtomicBool>,
    /// The request to stop has not been passed on to the version yet.
    forward: Arc<AtomicBool>,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        let (wakes, waker) = UnixStream::pair()?;
        let signals = Self {
            wakes,
            stop: Arc::default(),
            forward: Arc::default(),
        };
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, signals.stop.clone())?;
            signal_hook::flag::register(signal, signals.forward.clone())?;
        }
        for signal in [SIGCHLD, SIGTERM, SIGINT, SIGHUP] {
            signal_hook::low_level::pipe::register(signal, waker.try_clone()?)?;
        }
        Ok(signals)
    }

    fn wait(&self, deadline: Option<Instant>) {
        // Zero would mean no timeout.
        let wait = deadline.map(|deadline| {
            deadline
                .saturating_duration_since(Instant::now())
                .max(Duration::from_millis(1))
        });
        // The caller checks all conditions whatever ended the wait.
        let _ = self
            .wakes
            .set_read_timeout(wait)
            .and_then(|()| (&self.wakes).read(&mut [0; 64]));
    }
}
