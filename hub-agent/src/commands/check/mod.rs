//! `hub-agent check`: looks into everything the agent needs of this machine and of the service, and says of each finding what it means and
//! how to mend it. Changes nothing that lasts, and shows no secret.

mod bluetooth;
mod machine;
mod service;

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;

use crate::config::{CommonArgs, ServiceArgs};
use crate::error::Failure;

/// Programs that are asked for their version or state answer at once or not at all.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    pub service: ServiceArgs,
    /// One JSON object: {"ok": bool, "findings": [{"check", "state", "finding", "mend"}]}
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Ok,
    Warn,
    Fail,
}

#[derive(Debug, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: &'static str,
    pub state: State,
    pub finding: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, finding: impl Display) -> Self {
        Self { check, state: State::Ok, finding: finding.to_string(), mend: None }
    }

    fn warn(check: &'static str, finding: impl Display, mend: impl Display) -> Self {
        Self { check, state: State::Warn, finding: finding.to_string(), mend: Some(mend.to_string()) }
    }

    fn fail(check: &'static str, finding: impl Display, mend: impl Display) -> Self {
        Self { check, state: State::Fail, finding: finding.to_string(), mend: Some(mend.to_string()) }
    }
}

/// Fails when any check does.
pub async fn check(args: CheckArgs) -> Result<(), Failure> {
    let (bluetooth, service) = tokio::join!(bluetooth::check(), service::check(&args.service));
    let mut findings = bluetooth;
    findings.extend(machine::check(&args.common).await);
    findings.extend(service);
    let failed = findings.iter().filter(|finding| finding.state == State::Fail).count();
    super::written(print(&findings, args.json))?;
    match failed {
        0 => Ok(()),
        1 => Err(Failure::Failed("1 check failed".to_owned())),
        _ => Err(Failure::Failed(format!("{failed} checks failed"))),
    }
}

fn print(findings: &[Finding], json: bool) -> io::Result<()> {
    let mut output = io::stdout().lock();
    if json {
        let ok = findings.iter().all(|finding| finding.state != State::Fail);
        serde_json::to_writer_pretty(&mut output, &serde_json::json!({"ok": ok, "findings": findings}))?;
        writeln!(output)?;
        return output.flush();
    }
    let colours = output.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    for finding in findings {
        let (word, colour) = match finding.state {
            State::Ok => ("ok  ", "\x1b[32m"),
            State::Warn => ("warn", "\x1b[33m"),
            State::Fail => ("FAIL", "\x1b[31m"),
        };
        let (colour, plain) = if colours { (colour, "\x1b[0m") } else { ("", "") };
        writeln!(output, "{colour}{word}{plain}  {:<12} {}", finding.check, finding.finding)?;
        if let Some(mend) = &finding.mend {
            writeln!(output, "{:19}-> {mend}", "")?;
        }
    }
    output.flush()
}

/// What a program prints, if it is there, ends in time, and succeeds.
async fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PROGRAM_TIMEOUT, command.output()).await.ok()?.ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
