//! `hub-agent claim`: has the running agent claim the hub, or claims it itself if no agent runs.

use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

use super::output;
use crate::clock::Clock;
use crate::cloud::{self, Service};
use crate::config::{self, ClaimArgs, ServiceArgs};
use crate::control::{self, ClaimReply};
use crate::error::Failure;
use crate::identity::StateDir;
use crate::spool::{Spool, SpoolConfig};
use crate::status::Status;

/// The longest input that is read: far longer than any claim code.
const LONGEST_CODE_BYTES: usize = 256;

/// Set when this command started as another user and has already read the code.
const CODE_ON_STDIN: &str = "HUB_AGENT_CLAIM_CODE_ON_STDIN";

pub async fn claim(args: ClaimArgs) -> Result<(), Failure> {
    let code = read_code(&args)?;
    check_code(code.expose_secret())?;
    if let Some(running) = control::request_status(&args.common.state_dir)? {
        warn_ignored(&args.service, &running);
    }
    let reply = match control::request_claim(&args.common.state_dir, &code)? {
        Some(reply) => reply,
        None => claim_without_agent(&args, &code).await?,
    };
    let hub_uuid = reply.into_result()?;
    let outcome = format!("this hub is claimed: {hub_uuid}");
    // The code is used: the outcome is printed even if standard output fails.
    output::print(&format!("{outcome}\n"))
        .map_err(|failure| Failure::Failed(format!("{outcome}; {failure}")))
}

fn read_code(args: &ClaimArgs) -> Result<SecretString, Failure> {
    let stdin = || {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    };
    let text = match (&args.code, args.code_file.as_deref()) {
        _ if std::env::var_os(CODE_ON_STDIN).is_some() => stdin(),
        (Some(code), _) => return Ok(code.clone()),
        (None, Some(path)) if path == Path::new("-") => stdin(),
        (None, Some(path)) => std::fs::read_to_string(path),
        (None, None) => return Err(Failure::Failed("give --code or --code-file".into())),
    };
    let text =
        text.map_err(|error| Failure::Failed(format!("cannot read the claim code: {error}")))?;
    Ok(SecretString::from(text.trim().to_owned()))
}

/// Text that cannot be a code is not sent anywhere.
fn check_code(code: &str) -> Result<(), Failure> {
    match code.trim().len() {
        0 => Err(Failure::Failed("the claim code is empty".into())),
        1..=LONGEST_CODE_BYTES => Ok(()),
        length => Err(Failure::Failed(format!(
            "that is not a claim code: it has {length} characters"
        ))),
    }
}

/// A running agent claims the hub with its own settings: those of this command that differ have no
/// effect.
fn warn_ignored(given: &ServiceArgs, running: &Status) {
    let url = config::service_url(given).ok().map(|url| url.to_string());
    // The configuration names the service that the hub was moved from.
    let url = url.filter(|url| Some(url) != running.moved_from.as_ref());
    for (setting, given, used) in [
        ("service-url", url.as_ref(), Some(&running.service_url)),
        (
            "device-instance-id",
            given.device_instance_id.as_ref(),
            running.device_instance_id.as_ref(),
        ),
    ] {
        if let (Some(given), Some(used)) = (given, used)
            && given != used
        {
            let _ = writeln!(
                std::io::stderr(),
                "hub-agent: the running agent claims this hub, with its own {setting} {used}; {given} is ignored"
            );
        }
    }
}

/// This command becomes the state directory's owner. Root must not write where another user may
/// have placed links, and files of root would lock the agent out. Returns if the command's user is
/// the owner already.
fn become_owner(state_dir: &Path, code: &SecretString) -> Result<(), Failure> {
    // systemd gives a directory that does not exist yet to the agent's user, with everything in it.
    let Ok(found) = std::fs::metadata(state_dir) else {
        return Ok(());
    };
    if !rustix::process::geteuid().is_root() || found.uid() == 0 {
        return Ok(());
    }
    let cannot = |error: std::io::Error| {
        let (dir, uid) = (state_dir.display(), found.uid());
        Failure::Failed(format!(
            "{dir} belongs to user {uid}, and this command cannot run as that user: {error}"
        ))
    };
    // The code is passed on: its file may be readable by root only, and standard input has been
    // read.
    let (read, mut write) = std::io::pipe().map_err(cannot)?;
    write
        .write_all(code.expose_secret().as_bytes())
        .map_err(cannot)?;
    drop(write);
    let error = Command::new(std::env::current_exe().map_err(cannot)?)
        .args(std::env::args_os().skip(1))
        .env(CODE_ON_STDIN, "1")
        .stdin(read)
        .uid(found.uid())
        .gid(found.gid())
        .exec();
    Err(cannot(error))
}

async fn claim_without_agent(args: &ClaimArgs, code: &SecretString) -> Result<ClaimReply, Failure> {
    become_owner(&args.common.state_dir, code)?;
    let state_dir = Arc::new(StateDir::open(&args.common.state_dir)?);
    let clock = Arc::new(Clock::load(state_dir.path()));
    let service = Service::new(&args.service, state_dir.clone(), clock.clone())?;
    // Records of an owner that the hub no longer has are dropped with the claim.
    let spool = Spool::start(SpoolConfig::of(state_dir.path()), clock, || {})
        .map_err(|error| Failure::Failed(format!("the spool cannot be opened: {error}")))?;
    let claimed = cloud::claim(&service, code, &spool)
        .await
        .map(|credentials| credentials.hub_uuid);
    spool
        .close()
        .await
        .map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(ClaimReply::from(claimed))
}
