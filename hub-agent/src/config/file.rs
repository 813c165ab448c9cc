//! The configuration file: TOML whose keys are the names of the flags. Each key is converted to the
//! equivalent flags and checked like them. The text of an error goes to the journal, so it names
//! file, line and key, and does not repeat what the file contains.

use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Command, CommandFactory};
use toml::de::{DeTable, DeValue};

use super::args::{Cli, DEFAULT_CONFIG_FILE};
use crate::error::Failure;

/// The text of the configured file, or of the default one if it exists.
pub fn read(given: Option<&PathBuf>) -> Result<Option<(PathBuf, String)>, Failure> {
    let path = given.map_or_else(|| PathBuf::from(DEFAULT_CONFIG_FILE), PathBuf::clone);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && given.is_none() => Ok(None),
        Err(error) => Err(Failure::Config(format!(
            "cannot read the configuration file {}: {error}",
            path.display()
        ))),
    }
}

/// A key of the file, as the equivalent flags.
pub struct FileSetting {
    pub id: String,
    pub flags: Vec<String>,
}

/// Every setting of the file. Each is checked by itself, so that an error names file, line and key.
pub fn parse(path: &Path, text: &str) -> Result<Vec<FileSetting>, Failure> {
    let refuse = |at: usize, message: String| {
        let line = text
            .get(..at)
            .map_or(1, |before| before.matches('\n').count() + 1);
        Failure::Config(format!("{}, line {line}: {message}", path.display()))
    };
    let table = DeTable::parse(text).map_err(|error| {
        refuse(
            error.span().map_or(0, |span| span.start),
            error.message().to_owned(),
        )
    })?;
    let known = known_settings();
    let mut settings = Vec::new();
    for (key, value) in table.get_ref() {
        let at = key.span().start;
        let key = key.get_ref().as_ref();
        let Some(arg) = known.iter().find(|arg| arg.get_long() == Some(key)) else {
            return Err(refuse(at, unknown_key(key, &known)));
        };
        let flags = to_flags(key, arg, value.get_ref()).map_err(|message| refuse(at, message))?;
        // Checked by itself, so that the error can name its line.
        let trial = std::iter::once("hub-agent").chain(flags.iter().map(String::as_str));
        if let Err(error) = Command::new("hub-agent")
            .arg(arg.clone().env(None::<&str>))
            .try_get_matches_from(trial)
        {
            return Err(refuse(at, format!("{key}: {}", clap_reason(&error))));
        }
        settings.push(FileSetting {
            id: arg.get_id().to_string(),
            flags,
        });
    }
    Ok(settings)
}

/// The keys that the file may have: every flag that is also an environment variable, except the
/// file's own path.
fn known_settings() -> Vec<Arg> {
    let mut known: Vec<Arg> = Vec::new();
    for command in Cli::command().get_subcommands() {
        for arg in command
            .get_arguments()
            .filter(|arg| arg.get_env().is_some() && arg.get_long() != Some("config"))
        {
            if !known.iter().any(|seen| seen.get_id() == arg.get_id()) {
                known.push(arg.clone());
            }
        }
    }
    known
}

/// The longest key that an error repeats: a longer one is no misspelt key.
const MAX_SHOWN_KEY_CHARS: usize = 40;

fn unknown_key(key: &str, known: &[Arg]) -> String {
    let is_word = key
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if !is_word || key.chars().count() > MAX_SHOWN_KEY_CHARS {
        return "unknown setting; `hub-agent run --help` lists all settings".to_owned();
    }
    let nearest = known
        .iter()
        .filter_map(Arg::get_long)
        .map(|name| (strsim::jaro_winkler(key, name), name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(similarity, _)| *similarity > 0.8);
    match nearest {
        Some((_, name)) => format!("there is no setting `{key}`; did you mean `{name}`?"),
        None => format!("there is no setting `{key}`; `hub-agent run --help` lists all settings"),
    }
}

fn to_flags(key: &str, arg: &Arg, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
    match value {
        DeValue::Boolean(true) if is_switch => Ok(vec![format!("--{key}")]),
        DeValue::Boolean(false) if is_switch => Ok(Vec::new()),
        _ if is_switch => Err(format!("{key} must be true or false")),
        DeValue::Array(items) if matches!(arg.get_action(), ArgAction::Append) => items
            .iter()
            .map(|item| scalar(key, item.get_ref()).map(|text| format!("--{key}={text}")))
            .collect(),
        other => scalar(key, other).map(|text| vec![format!("--{key}={text}")]),
    }
}

fn scalar(key: &str, value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.to_string()),
        DeValue::Float(number) => Ok(number.to_string()),
        _ => Err(format!(
            "{key} must be a string or a number; write its value in quotes"
        )),
    }
}

/// Clap's reason. Omits the flag and the hints, which suit a command line and not a file, and the
/// value, which may be a secret.
pub fn clap_reason(error: &clap::Error) -> String {
    match (
        std::error::Error::source(error),
        error.get(ContextKind::ValidValue),
    ) {
        (Some(reason), _) => reason.to_string(),
        (None, Some(ContextValue::Strings(values))) if !values.is_empty() => {
            format!("possible values are {}", values.join(", "))
        }
        _ => error.kind().to_string(),
    }
}
