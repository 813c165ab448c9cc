//! The part of the agent that is root: it puts releases in place and tells systemd to run them. systemd starts it when somebody connects to
//! its socket; it ends when nobody has asked for a while, and can be killed at any moment.
//!
//! It trusts nothing it is told. Whatever it acts on was signed with a key that the hub's owner installed, and was copied to where only
//! root can write before it was checked.

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

/// Without a question for so long it ends: most of the time there is nothing for it to do, and then it is to cost nothing.
const IDLE: Duration = Duration::from_secs(30);

/// Installs, runs and removes what hub-agent has downloaded. systemd starts it.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Work on the system in this directory. Where it is not /, that system does not run: units are written and nothing is started
    #[arg(long, default_value = "/", value_name = "DIR")]
    root: PathBuf,
    /// Make a socket and listen on it. Without this, standard input is a listening socket, as systemd gives it
    #[arg(long, value_name = "PATH")]
    listen: Option<PathBuf>,
    /// Bytes that the disk has to have left after an installation [default: disk-headroom of /etc/hub-agent/config.toml, else 64 MiB]
    #[arg(long, value_name = "BYTES")]
    disk_headroom: Option<u64>,
    /// Ask this program in place of systemctl, also where the system does not run
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
    // What it makes is for all to read; what is not says so.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let root = Root::new(&args.root)?;
    let own = root.join("var/lib/hub-agent-helper");
    durable::make_dir(&own)?;
    // Two at work on the same files would undo each other's.
    let lock = File::options().create(true).truncate(false).write(true).mode(0o600).open(own.join("lock"))?;
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
    let headroom = args.disk_headroom.unwrap_or_else(|| headroom::configured(&root));
    let systemd = Systemd::of(&root, args.systemctl.clone());
    let mut helper = Helper { systemd, root, headroom, is_settled: false };
    server::serve(&listener, &mut helper)
}

/// All the helper can do.
struct Helper {
    root: Root,
    systemd: Systemd,
    headroom: u64,
    /// Whether what an earlier request left unfinished has been seen to.
    is_settled: bool,
}

impl Helper {
    /// Does what is asked; the answer as JSON.
    fn answer(&mut self, request: Request) -> Result<serde_json::Value, Refusal> {
        let apps = Apps { root: &self.root, systemd: &self.systemd, headroom: self.headroom };
        if !self.is_settled {
            counters::settle(&self.root)?;
            apps.settle()?;
            agents::settle(&self.root)?;
            self.is_settled = true;
        }
        let answer = match request {
            Request::StageApp { app_uuid, release_uuid, manifest, signature, file } => {
                json(apps.stage(app_uuid, release_uuid, &manifest, &signature, &file))
            }
            Request::ActivateApp { app_uuid, release_uuid } => done(apps.activate(app_uuid, release_uuid)),
            Request::RollbackApp { app_uuid } => done(apps.roll_back(app_uuid)),
            Request::CommitApp { app_uuid } => done(apps.commit(app_uuid)),
            Request::RemoveApp { app_uuid } => done(apps.remove(app_uuid)),
            Request::AppStates {} => json(apps.states()),
            Request::StageAgent { manifest, signature, file, in_use } => {
                json(agents::stage(&self.root, self.headroom, &manifest, &signature, &file, &in_use))
            }
            Request::CleanAgent { in_use, confirmed } => done(agents::clean(&self.root, &in_use, confirmed.as_deref())),
        };
        // After something went wrong on the way, the next request begins with a look at what is there.
        self.is_settled = answer.is_ok();
        answer
    }
}

fn done(result: Result<(), Refusal>) -> Result<serde_json::Value, Refusal> {
    json(result.map(|()| Done {}))
}

fn json<T: Serialize>(result: Result<T, Refusal>) -> Result<serde_json::Value, Refusal> {
    serde_json::to_value(result?).map_err(|error| refuse(Reason::Internal, error))
}

/// To the journal.
fn log(text: impl std::fmt::Display) {
    // Where nobody listens the work goes on.
    let _ = writeln!(io::stderr(), "hub-agent-helper: {text}");
}
