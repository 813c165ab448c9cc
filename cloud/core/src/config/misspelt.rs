//! Settings that do not exist, in the file or in the environment. All of them are said, with what
//! was probably meant, before a setting is said to be missing: a misspelt one looks like that.

use clap::Args;

use super::{ConfigError, Settings};

/// The longest name that an error repeats: longer ones are none that somebody misspelt.
const MAX_SHOWN_CHARS: usize = 40;
/// Below this likeness, another setting was not meant.
const LEAST_LIKENESS: f64 = 0.7;
const PREFIX: &str = "HUB_CLOUD_";
/// Variables that are no settings: the file itself, and an argument of `hub-cloud move`.
const OTHER_VARIABLES: [&str; 2] = ["config", "move-to"];

/// Refuses keys of a file that are no settings.
pub fn check_keys<'a>(
    file: &str,
    keys: impl Iterator<Item = &'a String>,
) -> Result<(), ConfigError> {
    let known = known_keys();
    let unknown = keys.filter(|key| !known.contains(key));
    refuse(unknown.map(|key| format!("{file}: {}", unknown_key(key, &known))))
}

/// Refuses variables of the environment that are a setting but for a few letters. An empty one
/// counts as not set. Others that begin like a setting are somebody else's: scripts and Kubernetes
/// name variables after services, too.
pub fn check_variables(
    variables: impl Iterator<Item = (String, String)>,
) -> Result<(), ConfigError> {
    let mut known = known_keys();
    known.extend(OTHER_VARIABLES.map(str::to_owned));
    let misspelt = variables.filter_map(|(name, value)| {
        let key = name.strip_prefix(PREFIX)?.to_lowercase().replace('_', "-");
        let meant = known.iter().find(|known| is_misspelt(&key, known))?;
        let is_fine = known.contains(&key) || value.is_empty();
        (!is_fine).then(|| {
            let meant = meant.replace('-', "_").to_uppercase();
            format!("in the environment: there is no setting {name}; did you mean {PREFIX}{meant}?")
        })
    });
    refuse(misspelt)
}

/// Whether at most one letter, of longer names two, is missing, added, wrong or swapped.
fn is_misspelt(key: &str, known: &str) -> bool {
    let most = if known.len() < 8 { 1 } else { 2 };
    key.len().abs_diff(known.len()) <= most && strsim::damerau_levenshtein(key, known) <= most
}

fn refuse(reasons: impl Iterator<Item = String>) -> Result<(), ConfigError> {
    let reasons: Vec<String> = reasons.collect();
    match reasons.is_empty() {
        true => Ok(()),
        false => Err(ConfigError(reasons.join("\n"))),
    }
}

fn unknown_key(key: &str, known: &[String]) -> String {
    let is_word = key
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if !is_word || key.chars().count() > MAX_SHOWN_CHARS {
        return format!(
            "it contains a key that is no setting; known keys are {}",
            known.join(", ")
        );
    }
    match nearest(key, known) {
        Some(nearest) => format!("there is no setting `{key}`; did you mean `{nearest}`?"),
        None => format!(
            "there is no setting `{key}`; known keys are {}",
            known.join(", ")
        ),
    }
}

fn nearest<'a>(key: &str, known: &'a [String]) -> Option<&'a String> {
    let likeness = |name: &String| strsim::jaro_winkler(name, key);
    known
        .iter()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
        .filter(|name| likeness(name) > LEAST_LIKENESS)
}

/// The names of all settings: the long flags.
fn known_keys() -> Vec<String> {
    let command = Settings::augment_args(clap::Command::new("settings"));
    command
        .get_arguments()
        .filter_map(|arg| arg.get_long().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(variables: &[(&str, &str)]) -> Option<String> {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let checked = check_variables(variables.iter().map(owned));
        checked.err().map(|error| error.to_string())
    }

    #[test]
    fn every_misspelt_variable_is_said_without_its_value() {
        let error = refusal(&[
            ("HUB_CLOUD_SMTP_ULR", "smtp://u:hunter2@h"),
            ("HUB_CLOUD_LISTEN", "127.0.0.1:1"),
            ("HUB_CLOUD_LISEN", "127.0.0.1:1"),
        ])
        .expect("a refusal");
        for part in [
            "HUB_CLOUD_SMTP_ULR; did you mean HUB_CLOUD_SMTP_URL?",
            "HUB_CLOUD_LISEN; did you mean HUB_CLOUD_LISTEN?",
        ] {
            assert!(error.contains(part), "{error}");
        }
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn variables_that_are_no_settings_are_no_mistakes() {
        let others = [
            ("HUB_CLOUD_CONFIG", "/etc/x.toml"),
            ("HUB_CLOUD_MOVE_TO", "sqlite:/srv/x.sqlite"),
            ("HUB_CLOUD_SERVICE_HOST", "10.0.0.1"),
            ("HUB_CLOUD_SERVICE_PORT_HTTP", "8080"),
            ("HUB_CLOUD_PORT_8080_TCP_ADDR", "10.0.0.1"),
            ("HUB_CLOUD_PORT", "tcp://10.0.0.1:8080"),
            ("HUB_CLOUD_LISEN", ""),
            ("HUB_CLOUD_BIN", "/usr/bin/hub-cloud"),
            ("HUB_CLOUD_DATABASE", "hub"),
            ("HUB_AGENT_LISEN", "x"),
        ];
        assert_eq!(refusal(&others), None);
    }
}
