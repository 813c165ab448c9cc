//! The arguments of `hub`. The options of a command are beside its code.

use clap::{Parser, Subcommand};

use crate::apps::args::{APPS_HELP, AppsCommand, InstallOptions};
use crate::catalog::{CATALOG_HELP, CatalogCommand};
use crate::codes::{CODES_HELP, CodesCommand};
use crate::config::args::{EXPORT_HELP, ExportOptions, IMPORT_HELP, ImportOptions};
use crate::dependency_track::{DEPENDENCY_TRACK_HELP, DependencyTrackCommand};
use crate::devices::DevicesCommand;
use crate::events::{EVENTS_HELP, EventsCommand};
use crate::global::Global;
use crate::history::{HISTORY_HELP, HistoryCommand};
use crate::hubs::{HUBS_HELP, HubsCommand};
use crate::login::args::{LOGIN_HELP, LoginOptions, RegisterOptions, TOKEN_HELP};
use crate::pipelines::args::{PIPELINES_HELP, PipelinesCommand};
use crate::rollouts::RolloutCommand;
use crate::tenants::TenantsOptions;
use crate::vulnerabilities::{VULNERABILITIES_HELP, VulnerabilitiesCommand};

const HELP: &str = "\
The first hour:
  hub register --service-url https://hubs.example.com --email ben@example.com
  hub tenants create Warehouse
  hub codes create --qr
  hub hubs watch
  hub events tail

Scripts use an API key, from the environment or from `hub login --api-key`:
  HUB_SERVICE_URL=https://hubs.example.com HUB_API_KEY=hmk_... HUB_TENANT=UUID hub hubs list --json

Environment: HUB_SERVICE_URL, HUB_TENANT, HUB_PROFILE as the options below, HUB_API_KEY, NO_COLOR.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 configuration refused, 75 try again later.";

/// Manages hubs, devices and pipelines of hub-cloud from a terminal
#[derive(Debug, Parser)]
#[command(name = "hub", version, after_help = HELP, disable_help_subcommand = true)]
pub struct Args {
    #[command(flatten)]
    pub global: Global,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Log in, and store the session
    #[command(after_help = LOGIN_HELP)]
    Login(LoginOptions),
    /// Print a valid access token of the stored login, and nothing else
    #[command(after_help = TOKEN_HELP)]
    Token,
    /// Create an account, and store its session
    #[command(after_help = "Example:
  hub register --service-url https://hubs.example.com --email ben@example.com")]
    Register(RegisterOptions),
    /// End the session, and remove it
    Logout,
    /// List, create and select tenants
    #[command(after_help = "Examples:
  hub tenants
  hub tenants create Warehouse
  hub tenants use Warehouse")]
    Tenants(TenantsOptions),
    /// List, watch, block and release hubs
    #[command(subcommand, after_help = HUBS_HELP)]
    Hubs(HubsCommand),
    /// Create, list and revoke claim codes
    #[command(subcommand, after_help = CODES_HELP)]
    Codes(CodesCommand),
    /// List devices and show their values
    #[command(
        subcommand,
        after_help = "Examples:
  hub devices list --online
  hub devices list --search roof --json
  hub devices show 17"
    )]
    Devices(DevicesCommand),
    /// Follow the BLE events of hubs
    #[command(subcommand, after_help = EVENTS_HELP)]
    Events(EventsCommand),
    /// Show where the files of older BLE events are
    #[command(subcommand, after_help = HISTORY_HELP)]
    History(HistoryCommand),
    /// List vulnerabilities of what hubs run, and who is exposed
    #[command(subcommand, after_help = VULNERABILITIES_HELP)]
    Vulnerabilities(VulnerabilitiesCommand),
    /// Send the packages that hubs run to a server of Dependency-Track
    #[command(subcommand, after_help = DEPENDENCY_TRACK_HELP)]
    DependencyTrack(DependencyTrackCommand),
    /// List apps and publish their releases
    #[command(subcommand, after_help = APPS_HELP)]
    Apps(AppsCommand),
    /// Install an app on a hub
    #[command(after_help = "Examples:
  hub install logger --hub roof
  hub install logger --hub 0198c5d1-… --version 2.0.0 --wait")]
    Install(InstallOptions),
    /// Show, halt and resume the rollout of an agent update
    #[command(
        subcommand,
        after_help = "Examples:
  hub rollout status
  hub rollout halt
  hub rollout resume 0198c5d1-…
  hub rollout halt 0198c5d1-… --platform"
    )]
    Rollout(RolloutCommand),
    /// List, apply and delete data pipelines
    #[command(subcommand, after_help = PIPELINES_HELP)]
    Pipelines(PipelinesCommand),
    /// Write catalog, pipelines, route and bundles to files
    #[command(after_help = EXPORT_HELP)]
    Export(ExportOptions),
    /// Apply catalog, pipelines, route and bundles from files
    #[command(after_help = IMPORT_HELP)]
    Import(ImportOptions),
    /// Test the library of device models
    #[command(subcommand, after_help = CATALOG_HELP)]
    Catalog(CatalogCommand),
    /// Print a completion script for a shell
    #[command(after_help = "Examples:
  hub completions bash > ~/.local/share/bash-completion/completions/hub
  hub completions zsh > ~/.zfunc/_hub
  hub completions fish > ~/.config/fish/completions/hub.fish")]
    Completions { shell: clap_complete::Shell },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn help_fits_in_100_columns() {
        use clap::CommandFactory;
        let mut commands = vec![Args::command()];
        while let Some(command) = commands.pop() {
            let texts = [command.get_after_help(), command.get_after_long_help()];
            for text in texts.into_iter().flatten().map(ToString::to_string) {
                let long: Vec<&str> = text.lines().filter(|line| line.len() > 100).collect();
                assert!(long.is_empty(), "{}: {long:?}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }
}
