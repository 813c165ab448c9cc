//! Every setting of the agent, once: as a flag, an environment variable `HUB_AGENT_<FLAG>`, and a key of the configuration
//! file with the flag's name. The file is the weakest of the three, flags the strongest. Reads nothing but that file.

mod file;

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use hub_agent::helper_api;
use hub_agent::size::{Size, number_and_unit};
use secrecy::SecretString;

use crate::ble::{RadioConfig, Replay, ScanMode, Source};
use crate::commands::check::CheckArgs;
use crate::commands::scan::ScanArgs;
use crate::error::Failure;
use crate::logs;

pub const DEFAULT_CONFIG_FILE: &str = "/etc/hub-agent/config.toml";

/// Hears Bluetooth Low Energy advertisements around this hub, keeps them on disk, and uploads them.
#[derive(Parser, Debug)]
#[command(name = "hub-agent", version, max_term_width = 110, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Cmd,
}

const EXAMPLES: &str = "\
Examples:
  hub-agent scan                                       what the adapters hear now
  hub-agent check                                      what is wrong with this machine, and how to mend it
  hub-agent run --service-url https://hubs.example.com
  hub-agent claim --code ABCD-EFGH-JKMN-PQRS           bind the hub to its owner while the agent runs
  hub-agent status                                     what the running agent is doing

Every option is also a key of /etc/hub-agent/config.toml, such as
  service-url = \"https://hubs.example.com\"
and an environment variable, such as HUB_AGENT_SERVICE_URL.
Options win over the environment, the environment over the file.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 configuration refused, 75 try again later.";

#[derive(Subcommand, Debug)]
pub enum Cmd {
    /// Scan, spool and upload until stopped: what systemd starts.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Bind this hub to its owner with a claim code, in the running agent if there is one.
    Claim(ClaimArgs),
    /// Tell what the running agent is doing. Fails when none runs.
    Status(StatusArgs),
    /// Look into everything the agent needs of this machine and of the service, and say how to mend what is wrong.
    Check(Box<CheckArgs>),
    /// Show the advertisements this machine hears, live: a table on a terminal, else a line for each.
    Scan(ScanArgs),
    /// Print the version.
    Version,
}

const RUN_EXAMPLES: &str = "\
Examples:
  hub-agent run --service-url https://hubs.example.com
  hub-agent run --service-url http://127.0.0.1:8080 --state-dir ./hub --claim-code-file ./code
  hub-agent run --service-url http://127.0.0.1:8080 --state-dir ./hub --replay trace.jsonl.zst

A power cut costs at most what was heard within --spool-commit before it.";

#[derive(Args, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    pub service: ServiceArgs,
    #[command(flatten)]
    pub claim: ClaimCodeArgs,
    #[command(flatten)]
    pub radio: RadioArgs,
    #[command(flatten)]
    pub reports: ReportArgs,
    #[command(flatten)]
    pub spool: SpoolArgs,
    #[command(flatten)]
    pub jobs: JobArgs,
    /// Stop when standard input, a pipe, ends: whoever holds its other end takes the agent along, however it ends itself.
    #[arg(long)]
    pub stop_with_stdin: bool,
    #[command(flatten)]
    pub logs: LogArgs,
}

#[derive(Args, Debug)]
pub struct ClaimArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    pub service: ServiceArgs,
    /// The claim code. Other users of this machine can see it in the list of processes: --code-file keeps it from them.
    #[arg(long, value_name = "CODE", required_unless_present = "code_file")]
    pub code: Option<SecretString>,
    /// Read the claim code from a file, or from standard input with `-`.
    #[arg(long, value_name = "FILE", conflicts_with = "code")]
    pub code_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct StatusArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    /// For machines.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct CommonArgs {
    /// Configuration file [default: /etc/hub-agent/config.toml, where it exists]
    #[arg(long, env = "HUB_AGENT_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where credentials and the spool are kept. One agent at a time may use it.
    #[arg(long, env = "HUB_AGENT_STATE_DIR", value_name = "DIR", default_value = "/var/lib/hub-agent")]
    pub state_dir: PathBuf,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Logs")]
pub struct LogArgs {
    /// What to log: error, warn, info, debug, or a filter such as `info,hub_agent::ble=debug`.
    #[arg(long, env = "HUB_AGENT_LOG", value_name = "FILTER", default_value = "info", value_parser = logs::filter)]
    pub log: String,
    /// How to write logs: text, json, or auto (text on a terminal and under systemd, else JSON).
    #[arg(long, env = "HUB_AGENT_LOG_FORMAT", value_name = "FORMAT", default_value = "auto")]
    pub log_format: LogFormat,
    /// Which of the agent's own logs the service gets: off, error, warn, info or debug.
    #[arg(long, env = "HUB_AGENT_SHIP_LOGS", value_name = "LEVEL", default_value = "warn")]
    pub ship_logs: ShipLogs,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Auto,
    Text,
    Json,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Service")]
pub struct ServiceArgs {
    /// The service this hub belongs to, such as https://hubs.example.com
    #[arg(long, env = "HUB_AGENT_SERVICE_URL", value_name = "URL")]
    pub service_url: Option<String>,
    /// Certificates (PEM) of authorities to trust for the service, beside the system's.
    #[arg(long, env = "HUB_AGENT_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// This hub's hardware identity, 1 to 200 characters [default: derived from /etc/machine-id]
    #[arg(long, env = "HUB_AGENT_DEVICE_INSTANCE_ID", value_name = "ID", value_parser = identity_text)]
    pub device_instance_id: Option<String>,
    /// A label for people, given to the service when the hub is claimed.
    #[arg(long, env = "HUB_AGENT_HUB_IDENTIFIER", value_name = "LABEL", value_parser = identity_text)]
    pub hub_identifier: Option<String>,
    /// Give up connecting after this long.
    #[arg(long, env = "HUB_AGENT_CONNECT_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = some_time)]
    pub connect_timeout: Span,
    /// Give up on an answer that has not come after this long.
    #[arg(long, env = "HUB_AGENT_REQUEST_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = some_time)]
    pub request_timeout: Span,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Claim")]
pub struct ClaimCodeArgs {
    /// Claim code to use while this hub has no credentials. Other users of this machine can see it in the list of
    /// processes: the environment variable and --claim-code-file keep it from them.
    #[arg(long, env = "HUB_AGENT_CLAIM_CODE", value_name = "CODE", hide_env_values = true)]
    pub claim_code: Option<SecretString>,
    /// Read the claim code from a file. It is read again whenever one is needed, so the file may come later.
    #[arg(long, env = "HUB_AGENT_CLAIM_CODE_FILE", value_name = "FILE")]
    pub claim_code_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Radio")]
pub struct RadioArgs {
    /// Adapters to use, by address, with commas between [default: all]
    #[arg(long, env = "HUB_AGENT_ADAPTERS", value_name = "ADDRESSES", value_delimiter = ',')]
    pub adapters: Vec<String>,
    /// passive costs the advertisers no battery, active also hears scan responses, auto is passive where BlueZ can.
    #[arg(long, env = "HUB_AGENT_SCAN_MODE", value_name = "MODE", default_value = "auto", value_parser = scan_mode)]
    pub scan_mode: ScanMode,
    /// An adapter that hears nothing for this long is looked into.
    #[arg(long, env = "HUB_AGENT_SILENCE", value_name = "TIME", default_value = "60s", value_parser = some_time)]
    pub silence: Span,
    /// Play a recorded trace (JSON Lines, or those compressed with zstd) instead of listening.
    #[arg(long, env = "HUB_AGENT_REPLAY", value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// Pace of the trace: 1 as recorded, 2 twice as fast, 0 as fast as possible.
    #[arg(long, env = "HUB_AGENT_REPLAY_SPEED", value_name = "FACTOR", default_value = "1", value_parser = replay_speed)]
    pub replay_speed: f64,
    /// Begin the trace again when it ends.
    #[arg(long, env = "HUB_AGENT_REPLAY_LOOP")]
    pub replay_loop: bool,
}

impl RadioArgs {
    pub fn source(&self) -> Source {
        match &self.replay {
            None => Source::BlueZ,
            Some(file) => {
                Source::Replay(Replay { file: file.clone(), speed: self.replay_speed, repeat: self.replay_loop })
            }
        }
    }
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Reports")]
pub struct ReportArgs {
    /// What to report: events (each advertisement), windows (each device once a --report-window), or both.
    #[arg(long, env = "HUB_AGENT_REPORT", value_name = "WHAT", default_value = "events")]
    pub report: ReportKind,
    /// The same payload of the same advertiser is one event in this time; 0s reports every advertisement.
    #[arg(long, env = "HUB_AGENT_DEDUP_WINDOW", value_name = "TIME", default_value = "10s")]
    pub dedup_window: Span,
    /// How long a window of --report windows is.
    #[arg(long, env = "HUB_AGENT_REPORT_WINDOW", value_name = "TIME", default_value = "60s", value_parser = some_time)]
    pub report_window: Span,
    /// How often to report the state of the machine and of the agent.
    #[arg(long, env = "HUB_AGENT_TELEMETRY_INTERVAL", value_name = "TIME", default_value = "60s", value_parser = some_time)]
    pub telemetry_interval: Span,
    /// Serve what is reported, as JSON lines, to apps on this hub from a socket at this path.
    #[arg(long, env = "HUB_AGENT_BLE_SOCKET", value_name = "PATH")]
    pub ble_socket: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportKind {
    Events,
    Windows,
    Both,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShipLogs {
    Off,
    Error,
    Warn,
    Info,
    Debug,
}

impl RunArgs {
    pub fn radio_config(&self) -> RadioConfig {
        RadioConfig {
            adapters: self.radio.adapters.clone(),
            mode: self.radio.scan_mode,
            single_events: self.reports.report != ReportKind::Windows,
            dedup_window: self.reports.dedup_window.0,
            report_window: (self.reports.report != ReportKind::Events).then_some(self.reports.report_window.0),
            silence: self.radio.silence.0,
        }
    }
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Spool and upload")]
pub struct SpoolArgs {
    /// Most the spool may hold. When it is full the oldest advertisements go first.
    #[arg(long, env = "HUB_AGENT_SPOOL_MAX", value_name = "SIZE", default_value = "256MiB", value_parser = some_size)]
    pub spool_max: Size,
    /// The spool stops growing when the disk has less than this left.
    #[arg(long, env = "HUB_AGENT_DISK_HEADROOM", value_name = "SIZE", default_value = "64MiB")]
    pub disk_headroom: Size,
    /// What was heard is on disk after this long at the latest, and with each upload: longer spares flash memory, and costs more
    /// in a power cut.
    #[arg(long, env = "HUB_AGENT_SPOOL_COMMIT", value_name = "TIME", default_value = "2s")]
    pub spool_commit: Span,
    /// Shortest time between two uploads of one kind. It grows by itself while the service answers that there are too many.
    #[arg(long, env = "HUB_AGENT_UPLOAD_INTERVAL", value_name = "TIME", default_value = "1s")]
    pub upload_interval: Span,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Jobs")]
pub struct JobArgs {
    /// Keys one of which must have signed a release: agent/*.pub and app/*.pub in this directory, minisign public keys.
    #[arg(long, env = "HUB_AGENT_RELEASE_KEYS", value_name = "DIR", default_value = "/etc/hub-agent/release-keys")]
    pub release_keys: PathBuf,
    /// Where hub-agent-helper listens, which installs what jobs bring.
    #[arg(long, env = "HUB_AGENT_HELPER_SOCKET", value_name = "FILE", default_value = helper_api::SOCKET)]
    pub helper_socket: PathBuf,
}

/// A length of time: a number and `ms`, `s`, `m`, `h` or `d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
        let millis =
            number_and_unit(text, &UNITS).ok_or("write it as a whole number and ms, s, m, h or d, such as 30s")?;
        // A year: longer is a slip of the hand, and would overflow sums of times.
        if millis > 366 * 86_400_000 {
            return Err("the longest is 366d".into());
        }
        Ok(Self(Duration::from_millis(millis)))
    }
}

fn some_time(text: &str) -> Result<Span, String> {
    text.parse().and_then(|span: Span| if span.0.is_zero() { Err("it must be longer than 0".into()) } else { Ok(span) })
}

fn some_size(text: &str) -> Result<Size, String> {
    text.parse().and_then(|size: Size| if size.0 == 0 { Err("it must be more than 0".into()) } else { Ok(size) })
}

fn identity_text(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > 200 || text.chars().any(char::is_control) {
        return Err("it must have 1 to 200 printable characters".into());
    }
    Ok(text.to_owned())
}

fn scan_mode(text: &str) -> Result<ScanMode, String> {
    match text {
        "auto" => Ok(ScanMode::Auto),
        "passive" => Ok(ScanMode::Passive),
        "active" => Ok(ScanMode::Active),
        _ => Err("possible values are auto, passive and active".into()),
    }
}

fn replay_speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && speed >= 0.0 => Ok(speed),
        _ => Err("it must be a number, 0 or more".into()),
    }
}

/// Why there is nothing to run.
#[derive(Debug)]
pub enum Refusal {
    /// Help, version or wrong usage: clap says it and knows the exit code.
    Usage(clap::Error),
    Config(Failure),
}

/// The command and its settings from all three sources.
pub fn load(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, Refusal> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let given = command().try_get_matches_from(&arguments).map_err(|error| refusal(error, &arguments))?;
    let Some((name, matches)) = given.subcommand() else {
        return Cli::from_arg_matches(&given).map_err(Refusal::Usage);
    };
    // The command itself is asked what it takes: matches know the names of its arguments in debug builds only.
    let all = Cli::command();
    let takes: Vec<&Arg> =
        all.find_subcommand(name).map(|command| command.get_arguments().collect()).unwrap_or_default();
    let file = match takes.iter().any(|arg| arg.get_id() == "config") {
        true => file::read(matches.get_one::<PathBuf>("config")).map_err(Refusal::Config)?,
        // `version` and `scan` have no settings.
        false => None,
    };
    let Some((path, text)) = file else {
        return Cli::from_arg_matches(&given).map_err(Refusal::Usage);
    };
    let mut flags = Vec::new();
    for setting in file::parse(&path, &text).map_err(Refusal::Config)? {
        let own = takes.iter().any(|arg| arg.get_id() == setting.id.as_str() && arg.get_env().is_some());
        let stronger =
            || matches!(matches.value_source(&setting.id), Some(ValueSource::CommandLine | ValueSource::EnvVariable));
        if own && !stronger() {
            flags.extend(setting.flags.into_iter().map(OsString::from));
        }
    }
    // Right behind the command's name, the first argument that is no flag: after a `--` they would be flags no more.
    let at = arguments.iter().skip(1).position(|argument| argument == name).map_or(arguments.len(), |at| at + 2);
    arguments.splice(at..at, flags);
    // The arguments alone were good and so was each setting. Clap's own words could show a secret of the file.
    let refuse = |error: clap::Error| {
        let reason = file::clap_reason(&error);
        Refusal::Config(Failure::Config(format!("{} does not fit the command line: {reason}", path.display())))
    };
    let matches = command().try_get_matches_from(arguments).map_err(refuse)?;
    Cli::from_arg_matches(&matches).map_err(refuse)
}

/// The command line, for which an empty variable is one that is not set.
fn command() -> Command {
    let all = Cli::command();
    let names: Vec<String> = all.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    names.into_iter().fold(all, |all, name| {
        all.mut_subcommand(name, |command| {
            command.mut_args(|arg| match arg.get_env().and_then(std::env::var_os) {
                Some(value) if value.is_empty() => arg.env(None::<&str>),
                _ => arg,
            })
        })
    })
}

/// A wrong value on the command line is wrong usage, in a variable a wrong setting; clap would call both wrong usage and name the flag.
fn refusal(error: clap::Error, arguments: &[OsString]) -> Refusal {
    let wrong_value = match error.kind() {
        // Also that of a flag without any.
        ErrorKind::InvalidValue => {
            !matches!(error.get(ContextKind::InvalidValue), Some(ContextValue::String(value)) if value.is_empty())
        }
        kind => kind == ErrorKind::ValueValidation,
    };
    let (true, Some(ContextValue::String(shown))) = (wrong_value, error.get(ContextKind::InvalidArg)) else {
        return Refusal::Usage(error);
    };
    // Shown with its value's name: `--silence <TIME>`.
    let flag = shown.split([' ', '=']).next().unwrap_or_default();
    let all = Cli::command();
    let env = all
        .get_subcommands()
        .flat_map(Command::get_arguments)
        .find(|arg| arg.get_long().is_some_and(|long| flag.strip_prefix("--") == Some(long)) && arg.get_env().is_some())
        .and_then(Arg::get_env);
    let Some(env) = env else {
        return Refusal::Usage(error);
    };
    let on_the_line = arguments
        .iter()
        .filter_map(|argument| argument.to_str())
        .any(|argument| argument.strip_prefix(flag).is_some_and(|value| value.is_empty() || value.starts_with('=')));
    if on_the_line {
        return Refusal::Usage(error);
    }
    Refusal::Config(Failure::Config(format!("{}: {}", env.to_string_lossy(), file::clap_reason(&error))))
}

/// The service's address: what every command that calls it needs.
pub fn service_url(args: &ServiceArgs) -> Result<reqwest::Url, Failure> {
    let missing =
        "service-url is not set: give --service-url, HUB_AGENT_SERVICE_URL, or service-url in the configuration file";
    let text = args.service_url.as_deref().ok_or_else(|| Failure::Config(missing.into()))?;
    let wrong = |reason: &str| Failure::Config(format!("service-url: {reason}; write it as https://hubs.example.com"));
    let mut url = reqwest::Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("it must begin with https:// or http:// and name a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it must not hold a user name or password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("it must end with the path"));
    }
    // Paths are joined to it, which replaces what follows the last slash.
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url)
}

#[cfg(test)]
mod tests;
