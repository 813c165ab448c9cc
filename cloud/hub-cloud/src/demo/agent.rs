//! The demo's hub: the real `hub-agent` as a child process. Its standard input is a pipe from this
//! process, and it stops when the pipe closes, so it never outlives the demo.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, ChildStdin, Command};

use super::client::DEVICE_INSTANCE_ID;
use super::demo_dir::{self, DemoDir};
use super::{Failure, Options};

/// Time for the agent to upload or spool its last events.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

pub struct Agent {
    child: Child,
    /// Closing the pipe stops the agent.
    stdin: Option<ChildStdin>,
    log: PathBuf,
}

/// The path of `hub-agent`, expected in the directory of this program.
pub fn find() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().map_err(|error| {
        Failure(format!(
            "cannot determine the path of this program: {error}"
        ))
    })?;
    let program = own.with_file_name("hub-agent");
    if program.is_file() {
        return Ok(program);
    }
    let build = match cfg!(debug_assertions) {
        true => "cargo build",
        false => "cargo build --release",
    };
    Err(Failure(format!(
        "the demo needs hub-agent in the directory of hub-cloud, but {} does not exist; build both with `{build}`",
        program.display()
    )))
}

/// A command of the agent, without the settings of one that is installed on this machine: it is
/// another hub.
pub fn command(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).args(["--config", "/dev/null"]);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HUB_AGENT_") {
            command.env_remove(name);
        }
    }
    command
}

impl Agent {
    pub fn start(
        program: &Path,
        demo_dir: &DemoDir,
        url: &str,
        options: &Options,
    ) -> Result<Self, Failure> {
        let failed =
            |error: std::io::Error| Failure(format!("cannot start {}: {error}", program.display()));
        let mut command = command(program, &["run", "--stop-with-stdin"]);
        command.args(["--log-format", "text", "--service-url", url]);
        command.args([
            "--device-instance-id",
            DEVICE_INSTANCE_ID,
            "--hub-identifier",
            "Demo hub",
        ]);
        command.arg("--state-dir").arg(demo_dir.path(demo_dir::HUB));
        command
            .arg("--claim-code-file")
            .arg(demo_dir.path(demo_dir::CLAIM_CODE));
        // Short intervals, so that events appear immediately.
        command.args(["--spool-commit", "100ms", "--upload-interval", "200ms"]);
        if !options.bluez {
            command
                .arg("--replay")
                .arg(demo_dir.path(demo_dir::RECORDING))
                .arg("--replay-loop");
            command.arg("--replay-speed").arg(options.speed.to_string());
        }
        command
            .env_remove("NOTIFY_SOCKET")
            .env_remove("WATCHDOG_USEC")
            .env("NO_PROXY", "*");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(demo_dir.log(demo_dir::AGENT_LOG)?);
        // A process group of its own: Ctrl-C reaches this process only, which then stops the agent
        // while the service still responds.
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn().map_err(failed)?;
        let stdin = child.stdin.take();
        Ok(Self {
            child,
            stdin,
            log: demo_dir.path(demo_dir::AGENT_LOG),
        })
    }

    /// Waits until the agent exits unexpectedly; returns why.
    pub async fn ended(&mut self) -> Failure {
        let status = match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let last = log.lines().last().unwrap_or_default();
        Failure(format!(
            "hub-agent exited unexpectedly ({status}); last line of {}:\n{last}",
            self.log.display()
        ))
    }

    /// Closes the pipe and waits while the agent uploads what it holds.
    pub async fn stop(mut self) {
        drop(self.stdin.take());
        if tokio::time::timeout(STOP_TIMEOUT, self.child.wait())
            .await
            .is_err()
        {
            let _ = self.child.kill().await;
        }
    }
}
