//! The arguments of `hub` and their help.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use hub_adverts::encrypted_data::KeyMaterial;
use hub_protocol::{HubUuid, Timestamp};
use uuid::Uuid;

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

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Common options")]
pub struct Global {
    /// URL of the service [default: that of the profile]
    #[arg(long, global = true, value_name = "URL", env = "HUB_SERVICE_URL")]
    pub service_url: Option<String>,

    /// Tenant to use: its uuid or its name
    #[arg(long, global = true, value_name = "TENANT", env = "HUB_TENANT")]
    pub tenant: Option<String>,

    /// Stored login to use
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "HUB_PROFILE",
        default_value = "default"
    )]
    pub profile: String,

    /// Print JSON: one document, or a line for each record of a stream
    #[arg(long, global = true)]
    pub json: bool,

    /// Send credentials over plain http to another machine, where others can read them
    #[arg(long, global = true)]
    pub insecure_http: bool,

    /// API key of the environment: arguments are visible to all users of a machine.
    #[arg(skip)]
    pub api_key: Option<String>,
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

const LOGIN_HELP: &str = "\
The session is stored in $XDG_CONFIG_HOME/hub/credentials.json, readable by you only, and refreshed
automatically. Each profile is a separate login, at any service.

Examples:
  hub login --service-url https://hubs.example.com --email ben@example.com
  hub login --email ben@example.com --password-stdin < password.txt
  hub login --profile plant --service-url https://hubs.plant.example --email ben@example.com
  hub login --api-key --tenant 0198c5d1-… --service-url https://hubs.example.com
  hub login --client-id hub-cli --audience https://hubs.example.com
  hub login --client-id hub-cli --audience https://hubs.example.com --issuer https://login.example.com

Register the client at the issuer as a public client (native app, no secret) with the redirect URI
http://127.0.0.1/callback on any port, and allow the grants authorization code and refresh token.
With --issuer no service is needed: such a login serves `hub token`.";

const TOKEN_HELP: &str = "\
For other programs, which send it as a bearer token. A token that expires within a minute is
refreshed first.

Example:
  curl -H \"Authorization: Bearer $(hub token)\" https://hubs.example.com/tenant/tenants";

#[derive(Debug, clap::Args)]
pub struct LoginOptions {
    /// E-mail of the account
    #[arg(long, conflicts_with_all = ["api_key", "client_id"])]
    pub email: Option<String>,

    /// Read the password from the first line of standard input
    #[arg(long, conflicts_with_all = ["api_key", "client_id"])]
    pub password_stdin: bool,

    /// Code of the authenticator app, or a recovery code, for an account with a second factor
    #[arg(long, value_name = "CODE", requires = "email")]
    pub otp: Option<String>,

    /// Store an API key, typed or from the first line of standard input; requires --tenant with a
    /// uuid
    #[arg(long = "api-key", id = "api_key", conflicts_with = "client_id")]
    pub with_api_key: bool,

    /// Log in with a browser, as this client at the issuer
    #[arg(long, value_name = "ID", requires = "audience")]
    pub client_id: Option<String>,

    /// Identifier of the service at the issuer
    #[arg(long, value_name = "AUDIENCE", requires = "client_id")]
    pub audience: Option<String>,

    /// OpenID Connect issuer [default: that of the service]
    #[arg(long, value_name = "URL", requires = "client_id")]
    pub issuer: Option<String>,

    /// Scopes to request; `offline_access` yields a refresh token
    #[arg(
        long,
        value_name = "SCOPES",
        requires = "client_id",
        default_value = "openid profile email offline_access"
    )]
    pub scope: String,
}

#[derive(Debug, clap::Args)]
pub struct RegisterOptions {
    /// E-mail of the account
    #[arg(long)]
    pub email: String,

    /// Read the password from the first line of standard input
    #[arg(long)]
    pub password_stdin: bool,
}

#[derive(Debug, clap::Args)]
pub struct TenantsOptions {
    #[command(subcommand)]
    pub command: Option<TenantsCommand>,
}

#[derive(Debug, Subcommand)]
pub enum TenantsCommand {
    /// List your tenants
    List,
    /// Create a tenant, and select it
    Create { name: String },
    /// Select a tenant by its uuid or its name
    Use { tenant: String },
}

const HUBS_HELP: &str = "\
A hub is named by its uuid, or by its label or host name if only one hub has it.

Examples:
  hub hubs list --status offline
  hub hubs show roof
  hub hubs watch
  hub hubs logs roof -f
  hub hubs release roof
  hub hubs block 0198c5d1-…          (platform administrators)";

#[derive(Debug, Subcommand)]
pub enum HubsCommand {
    /// List hubs
    List {
        /// Only hubs with this status: online, offline or blocked
        #[arg(long, value_name = "STATUS", value_parser = ["online", "offline", "blocked"])]
        status: Option<String>,
    },
    /// Show a hub with its adapters
    Show { hub: String },
    /// Show hubs and their changes, until Ctrl-C
    Watch {
        /// Seconds between two requests
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
        every: u64,
    },
    /// Show the log of a hub
    Logs {
        hub: String,
        /// Follow new records, until Ctrl-C
        #[arg(short, long)]
        follow: bool,
        /// Number of records to show first
        #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(0..=1000))]
        lines: u16,
    },
    /// Block a hub and revoke its credentials (platform administrators)
    Block {
        hub: HubUuid,
        #[command(flatten)]
        consent: Consent,
    },
    /// Allow a blocked hub to claim again (platform administrators)
    Unblock { hub: HubUuid },
    /// Readmit a hub that was offline for too long, with its current credentials
    Readmit {
        hub: String,
        /// Time in which it can reconnect, such as 12h or 30d
        #[arg(long, default_value = "7d", value_parser = duration)]
        valid: u64,
    },
    /// Release a hub: revoke its credentials, so that its hardware can be claimed again
    Release {
        hub: String,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Consent {
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,
}

const CODES_HELP: &str = "\
Examples:
  hub codes create --qr --label roof
  hub codes create --uses 50 --valid 30d --json
  hub codes list
  hub codes revoke 7K3M-9QXT-0V4B-HD2R";

#[derive(Debug, Subcommand)]
pub enum CodesCommand {
    /// Create a claim code for hubs
    #[command(after_help = CODES_HELP)]
    Create {
        /// Print a QR code
        #[arg(long)]
        qr: bool,
        /// Number of hubs that may claim with it
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        uses: u32,
        /// Validity, such as 12h or 30d
        #[arg(long, default_value = "7d", value_parser = duration)]
        valid: u64,
        /// Label of the hubs
        #[arg(long)]
        label: Option<String>,
        /// Note in the list of codes
        #[arg(long)]
        note: Option<String>,
        /// Bundle that is applied at the claim
        #[arg(long, value_name = "UUID")]
        bundle: Option<Uuid>,
        /// App user that the hubs belong to
        #[arg(long, value_name = "UUID")]
        owner: Option<Uuid>,
    },
    /// List claim codes, the latest first
    List,
    /// Revoke a claim code, so that it can no longer be used
    Revoke {
        /// The code, or its id
        code: String,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, Subcommand)]
pub enum DevicesCommand {
    /// List devices
    List {
        /// Only devices that are online
        #[arg(long, conflicts_with = "offline")]
        online: bool,
        /// Only devices that are offline
        #[arg(long)]
        offline: bool,
        /// Part of the name, the address or the serial number
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// Only devices whose nearest hub is this one: its uuid, label or host name
        #[arg(long)]
        hub: Option<String>,
    },
    /// Show a device with its values
    Show { device: i64 },
}

const EVENTS_HELP: &str = "\
Follows the live stream. A lost connection is resumed after the last event. Shows the values that the
device catalog decodes, else the payload.

Examples:
  hub events tail
  hub events tail --hub roof --min-rssi=-70
  hub events tail --quantity temperature
  hub events tail --since 2026-01-31T08:00:00Z --json | jq .measurements";

const HISTORY_HELP: &str = "Examples:
  hub history show
  hub history files --from 2026-06-01T00:00:00Z
  hub history files --json | jq -r '.[].url' | xargs -n1 curl -sO";

#[derive(Debug, Subcommand)]
pub enum HistoryCommand {
    /// Show how much is in files, and in which folder
    #[command(after_help = HISTORY_HELP)]
    Show,
    /// List the files, which any reader of Parquet reads, oldest first
    #[command(after_help = HISTORY_HELP)]
    Files {
        /// Only files with events received at this time or later
        #[arg(long, value_name = "TIME")]
        from: Option<Timestamp>,
        /// Only files with events received before this time
        #[arg(long, value_name = "TIME")]
        to: Option<Timestamp>,
    },
}

#[derive(Debug, Subcommand)]
pub enum EventsCommand {
    /// Follow BLE events until Ctrl-C
    #[command(after_help = EVENTS_HELP)]
    Tail(TailOptions),
}

#[derive(Debug, clap::Args)]
pub struct TailOptions {
    /// Only what this hub receives: its uuid, label or host name
    #[arg(long)]
    pub hub: Option<String>,
    /// Only this device
    #[arg(long, value_name = "ID")]
    pub device: Option<i64>,
    /// Only addresses with this prefix
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// Only signals of this strength or stronger, in dBm
    #[arg(long, value_name = "DBM", allow_negative_numbers = true)]
    pub min_rssi: Option<i16>,
    /// Only events with a value of this quantity
    #[arg(long)]
    pub quantity: Option<String>,
    /// Only events that the device catalog decodes
    #[arg(long)]
    pub decoded: bool,
    /// Start after this time instead of now
    #[arg(long, value_name = "TIME")]
    pub since: Option<Timestamp>,
    /// End after this number of events
    #[arg(short = 'n', long, value_name = "NUMBER")]
    pub count: Option<u64>,
    /// Show a frame only once if several hubs received it
    #[arg(long)]
    pub once: bool,
}

const APPS_HELP: &str = "\
A release is signed with a key of `hub-cloud release keygen`. Give the key and the manifest is
created and signed here; without --key, FILE.manifest.json and FILE.manifest.json.minisig of
`hub-cloud release sign` are used, so that the key can stay on another machine. After an
interrupted upload, run the same command.

Examples:
  hub apps list
  hub apps publish logger.tar.zst
  hub apps publish logger.tar.zst --key app.key --name logger --version 2.0.0 --run logger.toml
  hub apps publish logger.tar.zst --key app.key --password-stdin --name logger --version 2.0.1 \\
      --architecture aarch64 --run logger.toml < password.txt";

#[derive(Debug, Subcommand)]
pub enum AppsCommand {
    /// List apps with their latest release
    List,
    /// Sign and upload a release of an app; creates the app with its first release
    #[command(after_help = APPS_HELP)]
    Publish(PublishOptions),
}

#[derive(Debug, clap::Args)]
pub struct PublishOptions {
    /// Archive of the app: tar, compressed with zstd
    pub file: PathBuf,
    /// Secret key to sign with
    #[arg(long, value_name = "FILE", requires_all = ["name", "version", "run"])]
    pub key: Option<PathBuf>,
    /// Read the password of the key from the first line of standard input; asked for otherwise
    #[arg(long, requires = "key")]
    pub password_stdin: bool,
    /// The key has no password
    #[arg(long, requires = "key", conflicts_with = "password_stdin")]
    pub no_password: bool,
    /// Name of the app
    #[arg(long, requires = "key")]
    pub name: Option<String>,
    /// Semantic version, such as 2.0.0
    #[arg(long = "version", value_name = "VERSION", requires = "key")]
    pub version: Option<String>,
    /// Architecture as `uname -m` names it; `any` for an app without native code
    #[arg(long, default_value = "any")]
    pub architecture: String,
    /// Number above the counter of every earlier release [default: the next number]
    #[arg(long, requires = "key")]
    pub counter: Option<u64>,
    /// Run configuration of the app (TOML), as `hub-cloud release sign --help` describes it
    #[arg(long, value_name = "FILE", requires = "key")]
    pub run: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct InstallOptions {
    /// Name of the app
    pub app: String,
    /// Hub: its uuid, label or host name
    #[arg(long)]
    pub hub: String,
    /// Version [default: the release with the highest counter]
    #[arg(long = "version", value_name = "VERSION")]
    pub version: Option<String>,
    /// Architecture of the release; required if the app has releases of several
    #[arg(long)]
    pub architecture: Option<String>,
    /// Try a release that failed on this hub before
    #[arg(long)]
    pub force: bool,
    /// Wait until the hub has finished, and fail if it fails
    #[arg(long)]
    pub wait: bool,
}

#[derive(Debug, Subcommand)]
pub enum RolloutCommand {
    /// Show policies and their rollouts
    Status {
        /// Show the status of the platform (platform administrators)
        #[arg(long)]
        platform: bool,
    },
    /// Halt a rollout: no more hubs start the update
    Halt(RolloutOptions),
    /// Resume a halted rollout: more hubs start the update
    Resume(RolloutOptions),
}

#[derive(Debug, clap::Args)]
pub struct RolloutOptions {
    /// Policy; not needed while there is only one with a rollout
    pub policy: Option<Uuid>,
    /// A policy of the platform (platform administrators)
    #[arg(long)]
    pub platform: bool,
    #[command(flatten)]
    pub consent: Consent,
}

const PIPELINES_HELP: &str = "\
A file has one pipeline or a list of them, in the form of the API (docs/api/pipelines.md). A pipeline
is found by its name. Changes are shown first; a second run changes nothing. Secrets stay out of
the file: ${HUB_SECRET_NAME} in `destination.auth` is that environment variable. An absent secret
keeps the stored one.

Examples:
  hub pipelines list
  hub pipelines apply -f readings.json
  hub pipelines apply -f readings.json --dry-run
  HUB_SECRET_PLANT=... hub pipelines apply -f pipelines.json --yes
  hub pipelines delete readings";

#[derive(Debug, Subcommand)]
pub enum PipelinesCommand {
    /// List pipelines with their status
    List,
    /// Create or change the pipelines of a file
    #[command(after_help = PIPELINES_HELP)]
    Apply {
        /// File with one pipeline or a list; `-` for standard input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        /// Show the changes without applying them
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        consent: Consent,
    },
    /// Delete a pipeline: its uuid or its name
    Delete {
        pipeline: String,
        #[command(flatten)]
        consent: Consent,
    },
}

const EXPORT_HELP: &str = "\
Writes apps/, models/, actions/, pipelines/, bundles/ and route.json in a stable order, for version
control: without secrets, ids and times. Files name each other's objects by their names. A secret of
a pipeline becomes ${HUB_SECRET_...}, the environment variable that `hub import` reads. Hubs, devices
and the files of releases are not written.

Example:
  hub export hub-config && git -C hub-config diff";

#[derive(Debug, clap::Args)]
pub struct ExportOptions {
    /// Directory: a new one, or one of an earlier export, whose files are replaced
    pub directory: PathBuf,
}

const IMPORT_HELP: &str = "\
Shows the changes, then asks. A second import changes nothing. Objects without a file are kept,
except for parts of a device model: its identifiers, protocols, versions, forms and manuals are
replaced by those of the file. A published bundle does not change: archive it first, and the import
creates it again.

Examples:
  hub import hub-config --dry-run
  hub import hub-config --tenant Staging --yes";

#[derive(Debug, clap::Args)]
pub struct ImportOptions {
    /// Directory of an export
    pub directory: PathBuf,
    /// Show the changes without applying them
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub consent: Consent,
}

const CATALOG_HELP: &str = "\
Requires no service and no login: the library is part of this program. Exit code 0 if the recording was read
to its end, else 1.

Examples:
  hub catalog test btsnoop_hci.log
  hub catalog test capture.pcapng --all
  hub catalog test diagnostics.json --json | jq 'select(.verdict == \"UNKNOWN\")'";

#[derive(Debug, Subcommand)]
pub enum CatalogCommand {
    /// Show what the library decodes in a recording
    #[command(after_help = CATALOG_HELP)]
    Test(CatalogTestOptions),
}

#[derive(Debug, clap::Args)]
pub struct CatalogTestOptions {
    /// Recording: btsnoop, pcap or pcapng, diagnostics of Home Assistant, or a trace of JSON lines;
    /// `-` for standard input
    pub file: PathBuf,
    /// Show each frame, instead of each payload of an address once
    #[arg(long)]
    pub all: bool,
    /// Key of encrypted advertising data (AD type 0x31): 48 hexadecimal digits, the session key and
    /// the initialization vector, as the characteristic Key Material has them
    #[arg(
        long,
        value_name = "HEX",
        env = "HUB_KEY_MATERIAL",
        hide_env_values = true
    )]
    pub key_material: Option<KeyMaterial>,
}

/// A time span in seconds: a number and its unit.
fn duration(text: &str) -> Result<u64, String> {
    let unit = |suffix: char| match suffix {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3600),
        'd' => Some(86_400),
        _ => None,
    };
    let parsed = text.char_indices().next_back().and_then(|(at, suffix)| {
        text.get(..at)?
            .parse::<u64>()
            .ok()?
            .checked_mul(unit(suffix)?)
            .filter(|seconds| *seconds > 0)
    });
    parsed.ok_or_else(|| "must be a number with its unit, such as 90m, 12h or 30d".to_owned())
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
    fn time_spans_have_units() {
        assert_eq!(duration("30d"), Ok(30 * 86_400));
        for text in [
            "",
            "7",
            "d",
            "-1d",
            "0h",
            "99999999999999999999d",
            "18446744073709551615d",
            "é",
            "1é",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
