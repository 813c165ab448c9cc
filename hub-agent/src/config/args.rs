//! The command line: every setting of the agent, once, as a flag, as an environment variable
//! `HUB_AGENT_<FLAG>`, and as a key of the configuration file with the flag's name.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use hub_agent::helper_api;
use hub_agent::size::Size;
use secrecy::SecretString;

use super::values::{
    ProxyUrl, Span, identity_text, log_filter, positive_size, positive_time, replay_speed, share,
};

pub const DEFAULT_CONFIG_FILE: &str = "/etc/hub-agent/config.toml";

/// Receives Bluetooth Low Energy advertisements around this hub, stores them on disk, and uploads
/// them.
#[derive(Parser, Debug)]
#[command(name = "hub-agent", version, max_term_width = 110, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Cmd,
}

const EXAMPLES: &str = "\
Examples:
  hub-agent scan                                       what the adapters receive now
  hub-agent check                                      what is wrong with this machine, and how to fix it
  hub-agent run --service-url https://hubs.example.com
  hub-agent claim --code ABCD-EFGH-JKMN-PQRS           bind the hub to its owner while the agent runs
  hub-agent status                                     what the running agent is doing

Every option is also a key of /etc/hub-agent/config.toml, such as
  service-url = \"https://hubs.example.com\"
and an environment variable, such as HUB_AGENT_SERVICE_URL.
Options override the environment, the environment overrides the file.

Exit codes: 0 success, 1 failure, 2 wrong usage, 3 configuration refused, 75 try again later.";

#[derive(Subcommand, Debug)]
pub enum Cmd {
    /// Scan, spool and upload until stopped. systemd runs this.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Bind this hub to its owner with a claim code, in the running agent if there is one.
    Claim(ClaimArgs),
    /// Show what the running agent is doing. Fails if none is running, or if the service refuses
    /// the hub.
    Status(StatusArgs),
    /// Check everything the agent needs of this machine and of the service, and show how to fix
    /// what is wrong.
    Check(Box<CheckArgs>),
    /// Show the advertisements that this machine receives, live: as a table on a terminal, else one
    /// line each.
    Scan(ScanArgs),
    /// Print the version.
    Version,
    /// Print the completions of a shell. The package installs those of bash, zsh and fish.
    #[command(
        after_help = "Example: hub-agent completions bash > /etc/bash_completion.d/hub-agent"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

const RUN_EXAMPLES: &str = "\
Examples:
  hub-agent run --service-url https://hubs.example.com
  hub-agent run --service-url http://127.0.0.1:8080 --state-dir ./hub --claim-code-file ./code
  hub-agent run --service-url http://127.0.0.1:8080 --state-dir ./hub --replay trace.jsonl.zst

A power cut loses at most what was received within --spool-commit before it.";

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
    /// Stop when standard input, a pipe, is closed: the agent ends with the process at the other
    /// end.
    #[arg(long)]
    pub stop_with_stdin: bool,
    #[command(flatten)]
    pub logs: LogArgs,
    #[command(flatten)]
    pub software: SoftwareArgs,
}

// Where the software of a hub is read, and how often its files are looked at: only tests give other
// values. Plain comments: others would describe the command.
#[derive(Args, Debug)]
pub struct SoftwareArgs {
    #[arg(long, hide = true, value_name = "DIR")]
    pub software_root: Option<PathBuf>,
    #[arg(long, hide = true, value_name = "TIME", default_value = "10m", value_parser = positive_time)]
    pub software_every: Span,
}

#[derive(Args, Debug)]
pub struct ClaimArgs {
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(flatten)]
    pub service: ServiceArgs,
    /// The claim code. Other users of this machine can see it in the list of processes; --code-file
    /// avoids that.
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
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct CommonArgs {
    /// Configuration file [default: /etc/hub-agent/config.toml, where it exists]
    #[arg(long, env = "HUB_AGENT_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Directory of the credentials and the spool. Only one agent at a time can use it.
    #[arg(
        long,
        env = "HUB_AGENT_STATE_DIR",
        value_name = "DIR",
        default_value = "/var/lib/hub-agent"
    )]
    pub state_dir: PathBuf,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Logs")]
pub struct LogArgs {
    /// What to log: error, warn, info, debug, or a filter such as `info,hub_agent::ble=debug`.
    #[arg(long, env = "HUB_AGENT_LOG", value_name = "FILTER", default_value = "info", value_parser = log_filter)]
    pub log: String,
    /// How to write logs: text, json, or auto (text on a terminal and under systemd, else JSON).
    #[arg(
        long,
        env = "HUB_AGENT_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "auto"
    )]
    pub log_format: LogFormat,
    /// Which of the agent's own logs are sent to the service: off, error, warn, info or debug.
    #[arg(
        long,
        env = "HUB_AGENT_SHIP_LOGS",
        value_name = "LEVEL",
        default_value = "warn"
    )]
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
    /// HTTP proxy for all connections to the service and to servers of files, such as
    /// http://proxy.example.com:3128 [default: HTTPS_PROXY and HTTP_PROXY of the environment]
    #[arg(
        long,
        env = "HUB_AGENT_PROXY_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub proxy_url: Option<ProxyUrl>,
    /// This hub's hardware identity, 1 to 200 characters [default: derived from /etc/machine-id]
    #[arg(long, env = "HUB_AGENT_DEVICE_INSTANCE_ID", value_name = "ID", value_parser = identity_text)]
    pub device_instance_id: Option<String>,
    /// A label to display, sent to the service when the hub is claimed.
    #[arg(long, env = "HUB_AGENT_HUB_IDENTIFIER", value_name = "LABEL", value_parser = identity_text)]
    pub hub_identifier: Option<String>,
    /// How long connecting may take.
    #[arg(long, env = "HUB_AGENT_CONNECT_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = positive_time)]
    pub connect_timeout: Span,
    /// How long an answer may take.
    #[arg(long, env = "HUB_AGENT_REQUEST_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = positive_time)]
    pub request_timeout: Span,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Claim")]
pub struct ClaimCodeArgs {
    /// Claim code to use while this hub has no credentials. Other users of this machine can see it
    /// in the list of processes; the environment variable and --claim-code-file avoid that.
    #[arg(
        long,
        env = "HUB_AGENT_CLAIM_CODE",
        value_name = "CODE",
        hide_env_values = true
    )]
    pub claim_code: Option<SecretString>,
    /// Read the claim code from a file. It is read whenever a code is needed, so the file may be
    /// created later.
    #[arg(long, env = "HUB_AGENT_CLAIM_CODE_FILE", value_name = "FILE")]
    pub claim_code_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Radio")]
pub struct RadioArgs {
    /// Adapters to use, by address, with commas between [default: all]
    #[arg(
        long,
        env = "HUB_AGENT_ADAPTERS",
        value_name = "ADDRESSES",
        value_delimiter = ','
    )]
    pub adapters: Vec<String>,
    /// passive saves the advertisers' batteries, active also receives scan responses, auto is
    /// passive where BlueZ supports it.
    #[arg(
        long,
        env = "HUB_AGENT_SCAN_MODE",
        value_name = "MODE",
        default_value = "auto"
    )]
    pub scan_mode: ScanMode,
    /// Restart scanning on an adapter that receives nothing for this long.
    #[arg(long, env = "HUB_AGENT_SILENCE", value_name = "TIME", default_value = "60s", value_parser = positive_time)]
    pub silence: Span,
    /// Play a recording instead of scanning: btsnoop, pcap, pcapng, diagnostics of Home Assistant,
    /// or a trace of JSON lines; plain or compressed with zstd.
    #[arg(long, env = "HUB_AGENT_REPLAY", value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// Speed of the recording: 1 as recorded, 2 twice as fast, 0 as fast as possible.
    #[arg(long, env = "HUB_AGENT_REPLAY_SPEED", value_name = "FACTOR", default_value = "1", value_parser = replay_speed)]
    pub replay_speed: f64,
    /// Restart the recording when it ends.
    #[arg(long, env = "HUB_AGENT_REPLAY_LOOP")]
    pub replay_loop: bool,
}

/// How an adapter listens. Plain comments: help of single values would make `--help` three times as
/// long.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScanMode {
    // Passive where BlueZ supports it, else active.
    #[default]
    Auto,
    // Only listens: costs advertisers no battery, receives no scan responses.
    Passive,
    // Requests a scan response from each advertiser.
    Active,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Reports")]
pub struct ReportArgs {
    /// What to report: events (each advertisement), windows (each device once a --report-window),
    /// or both.
    #[arg(
        long,
        env = "HUB_AGENT_REPORT",
        value_name = "WHAT",
        default_value = "events"
    )]
    pub report: ReportKind,
    /// The same payload of the same advertiser is one event in this time; 0s reports every
    /// advertisement.
    #[arg(
        long,
        env = "HUB_AGENT_DEDUP_WINDOW",
        value_name = "TIME",
        default_value = "10s"
    )]
    pub dedup_window: Span,
    /// Length of a window of --report windows.
    #[arg(long, env = "HUB_AGENT_REPORT_WINDOW", value_name = "TIME", default_value = "60s", value_parser = positive_time)]
    pub report_window: Span,
    /// How often to report the state of the machine and of the agent.
    #[arg(long, env = "HUB_AGENT_TELEMETRY_INTERVAL", value_name = "TIME", default_value = "60s", value_parser = positive_time)]
    pub telemetry_interval: Span,
    /// Share of events whose way to the receiver is traced, from 0 to 1; the service needs a
    /// collector (otlp-endpoint).
    #[arg(long, env = "HUB_AGENT_TRACE_RATIO", value_name = "SHARE", default_value = "0", value_parser = share)]
    pub trace_ratio: f64,
    /// Serve what is reported to apps on this hub, as JSON lines, on a socket at this path.
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

#[derive(Args, Debug)]
#[command(next_help_heading = "Spool and upload")]
pub struct SpoolArgs {
    /// Maximum size of the spool. When it is full, the oldest advertisements are dropped first.
    #[arg(long, env = "HUB_AGENT_SPOOL_MAX", value_name = "SIZE", default_value = "256MiB", value_parser = positive_size)]
    pub spool_max: Size,
    /// The spool stops growing when the disk has less free space than this.
    #[arg(
        long,
        env = "HUB_AGENT_DISK_HEADROOM",
        value_name = "SIZE",
        default_value = "64MiB"
    )]
    pub disk_headroom: Size,
    /// Advertisements are on disk after this time at the latest, and with each upload. A longer
    /// time saves flash memory and loses more in a power cut.
    #[arg(
        long,
        env = "HUB_AGENT_SPOOL_COMMIT",
        value_name = "TIME",
        default_value = "2s"
    )]
    pub spool_commit: Span,
    /// Shortest time between two uploads of one kind. It grows while the service answers that there
    /// are too many.
    #[arg(
        long,
        env = "HUB_AGENT_UPLOAD_INTERVAL",
        value_name = "TIME",
        default_value = "1s"
    )]
    pub upload_interval: Span,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Jobs")]
pub struct JobArgs {
    /// Directory of the public keys (minisign) that releases must be signed with: agent/*.pub and
    /// app/*.pub.
    #[arg(
        long,
        env = "HUB_AGENT_RELEASE_KEYS",
        value_name = "DIR",
        default_value = "/etc/hub-agent/release-keys"
    )]
    pub release_keys: PathBuf,
    /// Socket of hub-agent-helper, which installs releases.
    #[arg(long, env = "HUB_AGENT_HELPER_SOCKET", value_name = "FILE", default_value = helper_api::SOCKET)]
    pub helper_socket: PathBuf,
}

#[derive(Args, Debug)]
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

#[derive(Args, Debug)]
pub struct ScanArgs {
    /// Print one JSON object per advertisement and line, with the fields of the upload format
    #[arg(long)]
    pub json: bool,
    /// Use only this adapter; can be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub adapter: Vec<String>,
    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub duration: Option<u64>,
    /// Request scan responses (mostly names) from advertisers
    #[arg(long, conflicts_with = "passive")]
    pub active: bool,
    /// Only listen; BlueZ needs advertisement monitors (bluetoothd --experimental)
    #[arg(long)]
    pub passive: bool,
    /// Play a recording instead of scanning: btsnoop, pcap, pcapng, diagnostics of Home Assistant,
    /// or a trace of JSON lines; plain or compressed with zstd
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// With --replay: 2 is twice as fast as recorded, 0 as fast as possible
    #[arg(long, value_name = "N", default_value_t = 1.0, requires = "replay")]
    pub replay_speed: f64,
    /// State directory of this hub's agent, which has the names of its owner's devices
    #[arg(
        long,
        env = "HUB_AGENT_STATE_DIR",
        value_name = "DIR",
        default_value = "/var/lib/hub-agent"
    )]
    pub state_dir: PathBuf,
}
