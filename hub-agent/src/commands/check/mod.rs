//! `hub-agent check`: looks into everything the agent needs of this machine and of the service, and says of each finding what it means and
//! how to mend it. Changes nothing that lasts, and shows no secret.

mod bluetooth;
mod machine;
mod releases;
mod service;

use std::io::{self, IsTerminal, Write};
use std::process::Stdio;
use std::time::Duration;

use hub_protocol::check::{self, Finding};

use crate::config::{CommonArgs, JobArgs, ServiceArgs};
use crate::error::Failure;

/// Programs that are asked for their version or state answer at once or not at all.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    pub service: ServiceArgs,
    #[command(flatten)]
    pub jobs: JobArgs,
    /// One JSON object: {"ok": bool, "findings": [{"check", "state", "finding", "mend"}]}
    #[arg(long)]
    pub json: bool,
}

/// Fails when any check does.
pub async fn run(args: CheckArgs) -> Result<(), Failure> {
    let (bluetooth, service) = tokio::join!(bluetooth::check(), service::check(&args.service));
    let mut findings = bluetooth;
    findings.extend(machine::check(&args.common).await);
    findings.extend(releases::check(&args.jobs).await);
    findings.extend(service);
    super::written(print(&findings, args.json))?;
    check::failure(&findings).map_or(Ok(()), |failed| Err(Failure::Failed(failed)))
}

fn print(findings: &[Finding], json: bool) -> io::Result<()> {
    let mut output = io::stdout().lock();
    let colours = output.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let text = if json { check::json(findings)? } else { check::text(findings, colours) };
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// What a program prints, if it is there, ends in time, and succeeds.
async fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PROGRAM_TIMEOUT, command.output()).await.ok()?.ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
