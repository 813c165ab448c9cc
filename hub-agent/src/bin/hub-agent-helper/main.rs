//! The part of the agent that runs as root: it installs releases and has systemd run them. systemd
//! starts it when a client connects to its socket; it ends after some time without a request, and
//! can be killed at any moment.
//!
//! It trusts no request. Every release must be signed with a key that the hub's owner installed,
//! and is copied to a directory to which only root can write before it is verified.

mod adapters;
mod agents;
mod apps;
mod counters;
mod durable;
mod headroom;
mod refusal;
mod release;
mod root;
mod server;
mod systemd;
mod unit;
mod unpack;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use hub_agent::helper_api::{Done, Reason, Refusal, Request};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use serde::Serialize;

use apps::Apps;
use refusal::refuse;
use root::Root;
use systemd::Systemd;

/// The helper ends after this time without a request: an idle helper must cost nothing.
const IDLE: Duration = Duration::from_secs(30);

/// Installs, runs and removes what hub-agent has downloaded. systemd starts it.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Work on the system in this directory. If it is not /, that system is not running: units are
    /// written and not started
    #[arg(long, default_value = "/", value_name = "DIR")]
    root: PathBuf,
    /// Create a socket and listen on it. Without this option, standard input is a listening socket,
    /// as systemd passes it
    #[arg(long, value_name = "PATH")]
    listen: Option<PathBuf>,
    /// Bytes that stay free after an installation [default: disk-headroom of
    /// /etc/hub-agent/config.toml, else 64 MiB]
    #[arg(long, value_name = "BYTES")]
    disk_headroom: Option<u64>,
    /// Run this program instead of systemctl, even if the system is not running
    #[arg(long, value_name = "PROGRAM")]
    systemctl: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(format_args!("cannot run: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> io::Result<()> {
    // Created files are readable by all users unless a mode is given.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let root = Root::new(&args.root)?;
    let own = root.join("var/lib/hub-agent-helper");
    durable::create_dir(&own)?;
    // Two helpers on the same files would undo each other's work.
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(own.join("lock"))?;
    lock.lock()?;
    let listener = match &args.listen {
        Some(path) => {
            durable::remove(path)?;
            UnixListener::bind(path)?
        }
        None => {
            let listener = UnixListener::from(io::stdin().as_fd().try_clone_to_owned()?);
            set_socket_timeout(&listener, Timeout::Recv, Some(IDLE))?;
            listener
        }
    };
    let headroom = args
        .disk_headroom
        .unwrap_or_else(|| headroom::configured(&root));
    let systemd = Systemd::of(&root, args.systemctl.clone());
    let mut helper = Helper {
        systemd,
        root,
        headroom,
        is_clean: false,
    };
    server::serve(&listener, &mut helper)
}

/// The functions of the helper.
struct Helper {
    root: Root,
    systemd: Systemd,
    headroom: u64,
    /// Whether the remains of an earlier request have been cleaned up.
    is_clean: bool,
}

impl Helper {
    /// Executes a request. Returns the answer as JSON.
    fn answer(&mut self, request: Request) -> Result<serde_json::Value, Refusal> {
        let apps = Apps {
            root: &self.root,
            systemd: &self.systemd,
            headroom: self.headroom,
        };
        if !self.is_clean {
            counters::clean_up(&self.root)?;
            apps.clean_up()?;
            agents::clean_up(&self.root)?;
            self.is_clean = true;
        }
        let answer = match request {
            Request::StageApp {
                app_uuid,
                release_uuid,
                manifest,
                signature,
                file,
            } => json(apps.stage(app_uuid, release_uuid, &manifest, &signature, &file)),
            Request::ActivateApp {
                app_uuid,
                release_uuid,
            } => done(apps.activate(app_uuid, release_uuid)),
            Request::RollbackApp { app_uuid } => done(apps.roll_back(app_uuid)),
            Request::CommitApp { app_uuid } => done(apps.commit(app_uuid)),
            Request::RemoveApp { app_uuid } => done(apps.remove(app_uuid)),
            Request::AppStates {} => json(apps.states()),
            Request::AdapterFirmware {} => json(Ok(adapters::firmware(&self.root))),
            Request::StageAgent {
                manifest,
                signature,
                file,
                in_use,
            } => json(agents::stage(
                &self.root,
                self.headroom,
                &manifest,
                &signature,
                &file,
                &in_use,
            )),
            Request::CleanAgent { in_use, confirmed } => {
                done(agents::clean(&self.root, &in_use, confirmed.as_deref()))
            }
        };
        // After a failure the next request begins with a cleanup.
        self.is_clean = answer.is_ok();
        answer
    }
}

fn done(result: Result<(), Refusal>) -> Result<serde_json::Value, Refusal> {
    json(result.map(|()| Done {}))
}

fn json<T: Serialize>(result: Result<T, Refusal>) -> Result<serde_json::Value, Refusal> {
    serde_json::to_value(result?).map_err(|error| refuse(Reason::Internal, error))
}

/// Logs to the journal.
fn log(text: impl std::fmt::Display) {
    // If standard error is closed, the work continues.
    let _ = writeln!(io::stderr(), "hub-agent-helper: {text}");
}
