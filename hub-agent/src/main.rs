//! The agent's entry point: arguments, configuration, logs, start. Nothing else.
//!
//! One thread runs all tasks, one more the spool; `run` connects the parts. No task waits for the
//! disk: what the running agent writes to its state directory goes through `StateDir::on_disk`.
//!
//! A power cut loses at most what was received within `spool-commit`, a kill nothing that was
//! committed, and an outage of the service nothing until the spool is full.

mod backoff;
mod ble;
mod bluetoothd;
mod clock;
mod cloud;
mod commands;
mod config;
mod control;
mod desired;
mod device_commands;
mod error;
mod heartbeat;
mod hold;
mod identity;
mod jobs;
mod logs;
mod moved;
mod os_release;
mod packages;
mod pauses;
mod program;
mod recording;
mod run;
mod scan_config;
mod set_aside;
mod signals;
mod spool;
mod standby;
mod status;
mod systemd;
mod telemetry;
mod update;
mod uplink;

use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use config::{Cmd, Refusal};
use error::Failure;
use run::Ended;

fn main() -> ExitCode {
    let cli = match config::load(std::env::args_os()) {
        Ok(cli) => cli,
        Err(Refusal::Usage(error)) => error.exit(),
        Err(Refusal::Config(failure)) => return fail(&failure),
    };
    cloud::install_crypto();
    // The runtime has one thread, beside the spool's: the agent mostly waits, and each further
    // thread costs memory.
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&Failure::Failed(format!("cannot start: {error}"))),
    };
    let ended = runtime.block_on(start(cli.command));
    // A call of the helper may still be waiting on a thread of its own.
    runtime.shutdown_background();
    match ended {
        Ok(Ended::Stopped) => {
            hub_logging::finish();
            ExitCode::SUCCESS
        }
        Ok(Ended::Moved) => {
            hub_logging::finish();
            start_again();
            ExitCode::SUCCESS
        }
        Err(failure) => fail(&failure),
    }
}

/// Replaces this process by the same program with the same arguments. Returns if that fails, as
/// after the removal of the program's file: what has started the agent starts it again then.
fn start_again() {
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    let error = std::process::Command::new(program)
        .args(std::env::args_os().skip(1))
        .exec();
    hub_logging::say(format_args!(
        "hub-agent: it cannot start again by itself: {error}"
    ));
}

async fn start(command: Cmd) -> Result<Ended, Failure> {
    let ended = match command {
        Cmd::Run(args) => {
            let outbox = logs::init(&args.logs)?;
            return run::run(*args, outbox).await;
        }
        Cmd::Claim(args) => commands::claim::claim(args).await,
        Cmd::Status(args) => commands::status::status(&args),
        Cmd::Check(args) => commands::check::run(*args).await,
        Cmd::Scan(args) => commands::scan::scan(args).await,
        Cmd::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut config::command(), "hub-agent", &mut text);
            commands::output::print(&String::from_utf8_lossy(&text))
        }
        Cmd::Version => {
            commands::output::print(concat!("hub-agent ", env!("CARGO_PKG_VERSION"), "\n"))
        }
    };
    ended.map(|()| Ended::Stopped)
}

fn fail(failure: &Failure) -> ExitCode {
    // If standard error is closed, the exit code still shows the failure.
    hub_logging::say(format_args!("hub-agent: {failure}"));
    failure.exit_code()
}
