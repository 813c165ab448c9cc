//! The demo's hub: the real `hub-agent` as a child process. It never outlives this process, however that ends: its standard input is a pipe from
//! here, and it stops when the pipe breaks.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, ChildStdin, Command};

use super::client::DEVICE_INSTANCE_ID;
use super::place::{self, Place};
use super::{Failure, Options};

/// What it heard last gets this long to be uploaded or put on disk.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

pub struct Agent {
    child: Child,
    /// Open for as long as the agent is to run.
    leash: Option<ChildStdin>,
    log: PathBuf,
}

/// The agent's program, which is built into the same directory.
pub fn find() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().map_err(|error| Failure(format!("cannot find this program's file: {error}")))?;
    let program = own.with_file_name("hub-agent");
    if program.is_file() {
        return Ok(program);
    }
    let build = match cfg!(debug_assertions) {
        true => "cargo build",
        false => "cargo build --release",
    };
    Err(Failure(format!(
        "the demo needs hub-agent beside hub-cloud, and there is no {}; build both with `{build}`",
        program.display()
    )))
}

impl Agent {
    pub fn start(program: &Path, place: &Place, url: &str, options: &Options) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure(format!("{} cannot be started: {error}", program.display()));
        let mut command = Command::new(program);
        command.args(["run", "--stop-with-stdin", "--log-format", "text", "--service-url", url]);
        command.args(["--device-instance-id", DEVICE_INSTANCE_ID, "--hub-identifier", "Demo hub"]);
        command.arg("--state-dir").arg(place.path(place::HUB));
        command.arg("--claim-code-file").arg(place.path(place::CLAIM_CODE));
        // People watch: what is heard should not wait to be gathered.
        command.args(["--spool-commit", "100ms", "--upload-interval", "200ms"]);
        if !options.bluez {
            command.arg("--replay").arg(place.path(place::TRACE)).arg("--replay-loop");
            command.arg("--replay-speed").arg(options.speed.to_string());
        }
        // An agent that is set up on this machine is another hub: none of its settings are this one's.
        command.args(["--config", "/dev/null"]);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HUB_AGENT_") {
                command.env_remove(name);
            }
        }
        command.env_remove("NOTIFY_SOCKET").env_remove("WATCHDOG_USEC").env("NO_PROXY", "*");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(place.log(place::AGENT_LOG)?);
        // Ctrl-C reaches only this process, which then stops the agent while the service still answers it.
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn().map_err(failed)?;
        let leash = child.stdin.take();
        Ok(Self { child, leash, log: place.path(place::AGENT_LOG) })
    }

    /// Waits for what should not happen: the agent ends by itself. Tells why.
    pub async fn ended(&mut self) -> Failure {
        let how = match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let last = log.lines().last().unwrap_or_default();
        Failure(format!("hub-agent ended by itself ({how}); the last of its log {} is:\n{last}", self.log.display()))
    }

    /// Lets it upload what it still holds, and end.
    pub async fn stop(mut self) {
        drop(self.leash.take());
        if tokio::time::timeout(STOP_TIMEOUT, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }
}
