//! The `hub` program: reads the arguments, runs one command, and ends with its exit code.
//!
//! A module imports only from earlier lines:
//!
//! ```layers
//! global text
//! failure
//! issuer terminal
//! diff evidence follow lookup profiles
//! connect
//! jobs
//! apps/args login/args pipelines/args switching/args
//! config/args hub_moves release_documents
//! apps catalog codes dependency_track devices events history hubs login pipelines rollouts tenants
//! vulnerabilities
//! config
//! switching
//! args
//! main
//! ```

mod apps;
mod args;
mod catalog;
mod codes;
mod config;
mod connect;
mod dependency_track;
mod devices;
mod diff;
mod events;
mod evidence;
mod failure;
mod follow;
mod global;
mod history;
mod hub_moves;
mod hubs;
mod issuer;
mod jobs;
mod login;
mod lookup;
mod pipelines;
mod profiles;
mod release_documents;
mod rollouts;
mod switching;
mod tenants;
mod terminal;
mod text;
mod vulnerabilities;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command};
use config::args::{ExportCommand, ImportCommand};
use failure::Failure;

fn main() -> ExitCode {
    // Wrong usage ends here, with code 2.
    let mut args = Args::parse();
    args.global.api_key = std::env::var("HUB_API_KEY")
        .ok()
        .filter(|key| !key.is_empty());
    // One TLS and crypto provider for the whole process.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    // One thread beside the first: Ctrl-C is heard while the output waits for its reader.
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            hub_logging::say(format_args!(
                "hub: cannot start: {error}; check the limits of this user (ulimit -n)"
            ));
            return ExitCode::from(failure::FAILED);
        }
    };
    match runtime.block_on(run(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { exit_code, message }) => {
            if !message.is_empty() {
                hub_logging::say(format_args!("hub: {message}"));
            }
            ExitCode::from(exit_code)
        }
    }
}

async fn run(args: Args) -> Result<(), Failure> {
    let global = args.global;
    match args.command {
        Command::Login(options) => login::log_in(&global, options).await,
        Command::Token => login::print_token(&global).await,
        Command::Register(options) => login::register(&global, &options).await,
        Command::Logout => login::log_out(&global).await,
        Command::Tenants(options) => tenants::run(&global, options).await,
        Command::Hubs(command) => hubs::run(&global, command).await,
        Command::Codes(command) => codes::run(&global, command).await,
        Command::Devices(command) => devices::run(&global, command).await,
        Command::Events(command) => events::run(&global, command).await,
        Command::History(command) => history::run(&global, command).await,
        Command::Vulnerabilities(command) => vulnerabilities::run(&global, command).await,
        Command::DependencyTrack(command) => dependency_track::run(&global, command).await,
        Command::Apps(command) => apps::run(&global, command).await,
        Command::Install(options) => apps::install(&global, &options).await,
        Command::Rollout(command) => rollouts::run(&global, command).await,
        Command::Pipelines(command) => pipelines::run(&global, command).await,
        Command::Export(options) => match &options.command {
            None => config::export(&global, &options).await,
            Some(_) if options.directory.is_some() => Err(Failure::usage(
                "give either a directory, or `tenant` with its options",
            )),
            Some(ExportCommand::Tenant(options)) => switching::export(&global, options).await,
        },
        Command::Import(options) => match &options.command {
            None => config::import(&global, &options).await,
            // `--dry-run` must not get lost.
            Some(_) if options.dry_run || options.consent.yes || options.directory.is_some() => {
                Err(Failure::usage("give all options after `tenant`"))
            }
            Some(ImportCommand::Tenant(options)) => switching::import(&global, options).await,
        },
        Command::Catalog(command) => catalog::run(&global, command),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "hub", &mut text);
            terminal::print(&String::from_utf8_lossy(&text))
        }
    }
}
