//! Has systemd run units, and reads their states. Uses `systemctl` with separate arguments, without
//! a shell.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hub_agent::helper_api::{Reason, Refusal, UnitState};
use rustix::time::{ClockId, clock_gettime};

use crate::refusal::refuse;
use crate::root::Root;

/// The time limit of systemctl: longer than any unit of an app may take to stop and to start.
const PATIENCE: Duration = Duration::from_secs(120);

/// The most units in one request: the answer must fit into a pipe.
const UNITS_AT_ONCE: usize = 32;

const PROPERTIES: &str = "--property=Id,ActiveState,SubState,Result,NRestarts,ExecMainCode,ExecMainStatus,StateChangeTimestampMonotonic";

/// systemd, if it runs the system that the helper works on.
pub struct Systemd {
    /// The program to call.
    systemctl: Option<PathBuf>,
}

impl Systemd {
    pub fn of(root: &Root, systemctl: Option<PathBuf>) -> Self {
        Self {
            systemctl: systemctl.or_else(|| root.is_running().then(|| "systemctl".into())),
        }
    }

    pub fn runs(&self) -> bool {
        self.systemctl.is_some()
    }

    /// Has systemd restart the unit as it is loaded now.
    pub fn restart(&self, unit: &str) -> Result<(), Refusal> {
        self.start_with("restart", unit)
    }

    /// Starts a unit that may have ended.
    pub fn start(&self, unit: &str) -> Result<(), Refusal> {
        self.start_with("start", unit)
    }

    fn start_with(&self, verb: &str, unit: &str) -> Result<(), Refusal> {
        // A unit that ended too often would not be started. The call fails if systemd does not know
        // the unit yet.
        let _ = self.systemctl(&["reset-failed", unit]);
        let Err(error) = self.systemctl(&[verb, unit]) else {
            return Ok(());
        };
        let shown = self
            .systemctl(&["show", PROPERTIES, "--property=LoadState", unit])
            .map_err(failed)?;
        match is_fault_of_unit(&shown) {
            true => Err(refuse(Reason::StartFailed, error)),
            // A busy systemd, or an unavailable bus, says nothing about the release.
            false => Err(failed(error)),
        }
    }

    /// Stops a unit, if systemd knows it.
    pub fn stop(&self, unit: &str) -> Result<(), Refusal> {
        let known = self
            .systemctl(&["show", "--property=LoadState", unit])
            .map_err(failed)?;
        if known.trim() == "LoadState=not-found" {
            return Ok(());
        }
        self.systemctl(&["stop", unit]).map(drop).map_err(failed)
    }

    /// Has systemd forget a unit whose file was removed.
    pub fn forget(&self, unit: &str) -> Result<(), Refusal> {
        // The call fails if the unit has not failed.
        let _ = self.systemctl(&["reset-failed", unit]);
        self.reload()
    }

    /// Has systemd load changed units.
    pub fn reload(&self) -> Result<(), Refusal> {
        self.systemctl(&["daemon-reload"]).map(drop).map_err(failed)
    }

    /// The states of units, by name.
    pub fn states(&self, units: &[String]) -> Result<HashMap<String, UnitState>, Refusal> {
        let mut states = HashMap::new();
        for units in units.chunks(UNITS_AT_ONCE) {
            let mut arguments = vec!["show", PROPERTIES];
            arguments.extend(units.iter().map(String::as_str));
            let shown = self.systemctl(&arguments).map_err(failed)?;
            let now = clock_gettime(ClockId::Monotonic);
            let now_micros = now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000;
            states.extend(parse(&shown, now_micros));
        }
        Ok(states)
    }

    /// The output of systemctl; empty if systemd does not run the system.
    fn systemctl(&self, arguments: &[&str]) -> Result<String, String> {
        let Some(systemctl) = &self.systemctl else {
            return Ok(String::new());
        };
        let verb = arguments.first().copied().unwrap_or_default();
        run(systemctl, arguments).map_err(|error| format!("systemctl {verb}: {error}"))
    }
}

fn failed(message: String) -> Refusal {
    refuse(Reason::Internal, message)
}

fn run(systemctl: &Path, arguments: &[&str]) -> io::Result<String> {
    let mut child = Command::new(systemctl)
        .args(["--no-pager", "--no-ask-password"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait()?.is_none() {
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::other(format!(
                "no answer within {} s",
                PATIENCE.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        // The lines after the first are advice for a user at a terminal.
        false => {
            let output_text = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(
                output_text.lines().next().unwrap_or_default().to_owned(),
            ))
        }
    }
}

/// Whether the unit itself is the reason that it was not started, by the output of `systemctl
/// show`.
fn is_fault_of_unit(shown: &str) -> bool {
    let is = |name: &str, values: &[&str]| {
        let mut lines = shown.lines().filter_map(|line| line.split_once('='));
        lines.any(|(found, value)| found == name && values.contains(&value))
    };
    is("ActiveState", &["failed"])
        || is("LoadState", &["bad-setting", "error"])
        || !is("Result", &["success", ""])
}

/// The output of `systemctl show`: a paragraph per unit, a property per line.
fn parse(shown: &str, now_micros: u64) -> HashMap<String, UnitState> {
    let mut states = HashMap::new();
    for paragraph in shown.split("\n\n") {
        let properties: HashMap<&str, &str> = paragraph
            .lines()
            .filter_map(|line| line.split_once('='))
            .collect();
        let text = |name: &str| {
            properties
                .get(name)
                .map(|value| (*value).to_owned())
                .unwrap_or_default()
        };
        let number = |name: &str| {
            properties
                .get(name)
                .and_then(|value| value.parse::<u64>().ok())
                .unwrap_or(0)
        };
        let changed_micros = match number("StateChangeTimestampMonotonic") {
            0 => now_micros,
            changed => changed,
        };
        // The codes are those of waitid(2).
        let exit = match number("ExecMainCode") {
            1 => Some(format!("exit status {}", number("ExecMainStatus"))),
            2 | 3 => Some(format!("signal {}", number("ExecMainStatus"))),
            _ => None,
        };
        let state = UnitState {
            active_state: text("ActiveState"),
            sub_state: text("SubState"),
            result: text("Result"),
            exit,
            restarts: number("NRestarts"),
            for_secs: now_micros.saturating_sub(changed_micros) / 1_000_000,
        };
        if properties.contains_key("Id") {
            states.insert(text("Id"), state);
        }
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failed_unit_is_a_fault_of_the_release() {
        let shown = |load: &str, active: &str, result: &str| {
            format!(
                "Id=a.service\nLoadState={load}\nActiveState={active}\nResult={result}\nNRestarts=0\n"
            )
        };
        for (load, active, result, is_its_own) in [
            ("loaded", "failed", "exit-code", true),
            ("loaded", "activating", "exit-code", true),
            ("bad-setting", "inactive", "success", true),
            ("loaded", "inactive", "success", false),
            ("loaded", "activating", "success", false),
            ("not-found", "inactive", "success", false),
        ] {
            let shown = shown(load, active, result);
            assert_eq!(is_fault_of_unit(&shown), is_its_own, "{shown}");
        }
    }

    #[test]
    fn the_states_of_all_units_are_parsed() {
        let shown = "Id=a.service\nActiveState=active\nSubState=running\nResult=success\nNRestarts=2\nExecMainCode=0\n\
                     ExecMainStatus=0\nStateChangeTimestampMonotonic=5000000\n\n\
                     Id=b.service\nActiveState=activating\nSubState=auto-restart\nResult=exit-code\nNRestarts=7\n\
                     ExecMainCode=1\nExecMainStatus=3\nStateChangeTimestampMonotonic=0\n\n\
                     Id=c.service\nActiveState=failed\nSubState=failed\nResult=signal\nNRestarts=\nExecMainCode=2\n\
                     ExecMainStatus=9\nStateChangeTimestampMonotonic=9000000\n";
        let states = parse(shown, 8_000_000);
        assert_eq!(states.len(), 3);
        let (a, b, c) = (
            &states["a.service"],
            &states["b.service"],
            &states["c.service"],
        );
        assert_eq!(
            (
                a.active_state.as_str(),
                a.restarts,
                a.for_secs,
                a.exit.as_deref()
            ),
            ("active", 2, 3, None)
        );
        assert_eq!(
            (b.sub_state.as_str(), b.for_secs, b.exit.as_deref()),
            ("auto-restart", 0, Some("exit status 3"))
        );
        assert_eq!(
            (c.result.as_str(), c.restarts, c.for_secs, c.exit.as_deref()),
            ("signal", 0, 0, Some("signal 9"))
        );
        assert!(parse("", 0).is_empty());
    }
}
