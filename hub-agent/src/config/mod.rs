//! Every setting of the agent, once: as a flag, an environment variable `HUB_AGENT_<FLAG>`, and a
//! key of the configuration file with the flag's name. Flags override the environment, which
//! overrides the file. Reads nothing but that file.

mod args;
mod file;
#[cfg(test)]
mod tests;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, Command, CommandFactory, FromArgMatches};

pub use args::{
    CheckArgs, ClaimArgs, Cli, Cmd, CommonArgs, DEFAULT_CONFIG_FILE, JobArgs, LogArgs, LogFormat,
    ReportKind, RunArgs, ScanArgs, ScanMode, ServiceArgs, ShipLogs, StatusArgs,
};

pub use values::ProxyUrl;

use crate::error::Failure;

/// Why there is no command to run.
#[derive(Debug)]
pub enum Refusal {
    /// Help, version or wrong usage: clap prints it and has the exit code.
    Usage(clap::Error),
    Config(Failure),
}

/// The command and its settings from all three sources.
pub fn load(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, Refusal> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let given = command()
        .try_get_matches_from(&arguments)
        .map_err(|error| refusal(error, &arguments))?;
    let Some((name, matches)) = given.subcommand() else {
        return Cli::from_arg_matches(&given).map_err(Refusal::Usage);
    };
    // The command's own arguments are used: matches know their names only in debug builds.
    let all = Cli::command();
    let takes: Vec<&Arg> = all
        .find_subcommand(name)
        .map(|command| command.get_arguments().collect())
        .unwrap_or_default();
    let file = match takes.iter().any(|arg| arg.get_id() == "config") {
        true => file::read(matches.get_one::<PathBuf>("config")).map_err(Refusal::Config)?,
        // `version` and `scan` take nothing from it.
        false => None,
    };
    let Some((path, text)) = file else {
        return Cli::from_arg_matches(&given).map_err(Refusal::Usage);
    };
    let mut flags = Vec::new();
    for setting in file::parse(&path, &text).map_err(Refusal::Config)? {
        let own = takes
            .iter()
            .any(|arg| arg.get_id() == setting.id.as_str() && arg.get_env().is_some());
        let stronger = || {
            matches!(
                matches.value_source(&setting.id),
                Some(ValueSource::CommandLine | ValueSource::EnvVariable)
            )
        };
        if own && !stronger() {
            flags.extend(setting.flags.into_iter().map(OsString::from));
        }
    }
    // Directly after the command's name, the first argument that is not a flag: after a `--` they
    // would no longer be flags.
    let at = arguments
        .iter()
        .skip(1)
        .position(|argument| argument == name)
        .map_or(arguments.len(), |at| at + 2);
    arguments.splice(at..at, flags);
    // The arguments alone were valid, and so was each setting. Clap's message could contain a
    // secret of the file.
    let refuse = |error: clap::Error| {
        let reason = file::clap_reason(&error);
        Refusal::Config(Failure::Config(format!(
            "{} does not fit the command line: {reason}",
            path.display()
        )))
    };
    let matches = command().try_get_matches_from(arguments).map_err(refuse)?;
    Cli::from_arg_matches(&matches).map_err(refuse)
}

/// The command line. An empty environment variable counts as not set.
pub fn command() -> Command {
    let all = Cli::command();
    let names: Vec<String> = all
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect();
    names.into_iter().fold(all, |all, name| {
        all.mut_subcommand(name, |command| {
            command.mut_args(|arg| match arg.get_env().and_then(std::env::var_os) {
                Some(value) if value.is_empty() => arg.env(None::<&str>),
                _ => arg,
            })
        })
    })
}

/// A wrong value on the command line is wrong usage, one in an environment variable a wrong
/// setting. Clap would report both as wrong usage of the flag.
fn refusal(error: clap::Error, arguments: &[OsString]) -> Refusal {
    let wrong_value = match error.kind() {
        // Clap also uses this for a flag without a value.
        ErrorKind::InvalidValue => {
            !matches!(error.get(ContextKind::InvalidValue), Some(ContextValue::String(value)) if value.is_empty())
        }
        kind => kind == ErrorKind::ValueValidation,
    };
    let (true, Some(ContextValue::String(shown))) =
        (wrong_value, error.get(ContextKind::InvalidArg))
    else {
        return Refusal::Usage(error);
    };
    // Shown with the name of its value: `--silence <TIME>`.
    let flag = shown.split([' ', '=']).next().unwrap_or_default();
    let all = Cli::command();
    let env = all
        .get_subcommands()
        .flat_map(Command::get_arguments)
        .find(|arg| {
            arg.get_long()
                .is_some_and(|long| flag.strip_prefix("--") == Some(long))
                && arg.get_env().is_some()
        })
        .and_then(Arg::get_env);
    let Some(env) = env else {
        return Refusal::Usage(error);
    };
    let is_on_the_line = arguments
        .iter()
        .filter_map(|argument| argument.to_str())
        .any(|argument| {
            argument
                .strip_prefix(flag)
                .is_some_and(|value| value.is_empty() || value.starts_with('='))
        });
    if is_on_the_line {
        return Refusal::Usage(error);
    }
    Refusal::Config(Failure::Config(format!(
        "{}: {}",
        env.to_string_lossy(),
        file::clap_reason(&error)
    )))
}

/// Above this likeness, a variable is meant to be another one.
const LEAST_LIKENESS: f64 = 0.85;

/// A misspelt variable looks like a missing one.
fn missing_service_url(mut variables: impl Iterator<Item = String>) -> String {
    const WANTED: &str = "SERVICE_URL";
    let is_meant = |name: &String| {
        let name = name.strip_prefix("HUB_AGENT_").unwrap_or_default();
        name != WANTED && strsim::jaro_winkler(name, WANTED) > LEAST_LIKENESS
    };
    match variables.find(is_meant) {
        Some(name) => format!(
            "in the environment: there is no setting {name}; did you mean HUB_AGENT_{WANTED}?"
        ),
        None => "service-url is not set: give --service-url, HUB_AGENT_SERVICE_URL, or service-url in the \
                 configuration file"
            .to_owned(),
    }
}

/// The service's address, which every command that calls it needs.
pub fn service_url(args: &ServiceArgs) -> Result<reqwest::Url, Failure> {
    let variables = || std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let text = args
        .service_url
        .as_deref()
        .ok_or_else(|| Failure::Config(missing_service_url(variables())))?;
    parse_service_url(text).map_err(|reason| {
        Failure::Config(format!(
            "service-url: {reason}; write it as https://hubs.example.com"
        ))
    })
}

/// The URL of a service. Its path ends with a slash: joining a path replaces what follows the last
/// one.
pub fn parse_service_url(text: &str) -> Result<reqwest::Url, String> {
    let mut url = reqwest::Url::parse(text).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("it must begin with https:// or http:// and name a host".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must not contain a user name or password".into());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it must end with the path".into());
    }
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url)
}
