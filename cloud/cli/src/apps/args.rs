//! The options of `hub apps` and `hub install`.

use std::path::PathBuf;

use clap::Subcommand;

pub const APPS_HELP: &str = "\
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
    Publish(Box<PublishOptions>),
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
    /// Bill of materials of the app: JSON of CycloneDX or SPDX; signed with the release
    #[arg(long, value_name = "FILE")]
    pub sbom: Option<PathBuf>,
    /// Statements about vulnerabilities of the app: JSON of OpenVEX; signed with the release
    #[arg(long, value_name = "FILE")]
    pub vex: Option<PathBuf>,
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
