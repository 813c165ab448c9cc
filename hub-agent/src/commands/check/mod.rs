//! `hub-agent check`: checks everything that the agent needs of this machine and of the service,
//! and shows how to fix each problem. Changes nothing permanently, and shows no secret.

mod bluetooth;
mod machine;
mod releases;
mod service;

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use hub_protocol::check::{self, Finding};

use crate::clock::Clock;
use crate::config::CheckArgs;
use crate::error::Failure;

/// Fails if any check fails.
pub async fn run(args: CheckArgs) -> Result<(), Failure> {
    let state_dir = &args.common.state_dir;
    let clock = Arc::new(Clock::load(state_dir));
    let (bluetooth, service) = tokio::join!(
        bluetooth::check(),
        service::check(&args.service, state_dir, &clock)
    );
    let mut findings = bluetooth;
    findings.extend(machine::check(&args.common).await);
    findings.extend(releases::check(&args.jobs).await);
    findings.extend(service);
    crate::commands::output::written(print(&findings, args.json))?;
    check::failure(&findings).map_or(Ok(()), |failed| Err(Failure::Failed(failed)))
}

fn print(findings: &[Finding], json: bool) -> io::Result<()> {
    let mut output = io::stdout().lock();
    let colours = check::colours(output.is_terminal());
    let text = if json {
        check::json(findings)?
    } else {
        check::text(findings, colours)
    };
    output.write_all(text.as_bytes())?;
    output.flush()
}
