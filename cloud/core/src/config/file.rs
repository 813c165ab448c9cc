//! The configuration file: TOML whose keys are the names of the flags. What an error says goes to
//! the journal, so it names file, line and key, and never repeats what the file contains.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{ConfigError, Settings, misspelt};

/// The settings of the installed package. Commands use them unless they are given others.
const INSTALLED: &str = "/etc/hub-cloud/config.toml";

/// The file of the installed package, if there is one.
pub fn installed() -> Option<PathBuf> {
    let path = PathBuf::from(INSTALLED);
    // `read` reports a file that exists and cannot be opened.
    match path.try_exists() {
        Ok(false) => None,
        Ok(true) | Err(_) => Some(path),
    }
}

pub fn read(path: &Path) -> Result<Settings, ConfigError> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let fix = match error.kind() {
            ErrorKind::PermissionDenied => {
                "run the command as the user of the service (runuser -u hub-cloud -- hub-cloud ...) or as root, \
                 or name another file with --config"
            }
            _ => "check the path in --config and its permissions",
        };
        ConfigError(format!("cannot read {name}: {error}; {fix}"))
    })?;
    let line_of = |at: usize| {
        text.get(..at)
            .map_or(1, |before| before.matches('\n').count() + 1)
    };
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = line_of(error.span().map_or(0, |span| span.start));
        ConfigError(format!(
            "{name}, line {line}: is not TOML: {}",
            error.message()
        ))
    })?;
    misspelt::check_keys(&name.to_string(), table.keys())?;
    toml::from_str(&text).map_err(|error| {
        let line = line_of(error.span().map_or(0, |span| span.start));
        let key = table
            .iter()
            .find(|(key, value)| is_refused(key, value))
            .map_or("a setting", |(key, _)| key.as_str());
        ConfigError(format!(
            "{name}, line {line}: `{key}` {}",
            reason(error.message())
        ))
    })
}

/// Whether this setting alone is already refused.
fn is_refused(key: &str, value: &toml::Value) -> bool {
    Settings::deserialize(toml::Table::from_iter([(key.to_owned(), value.clone())])).is_err()
}

/// The expected form. The rest of the message quotes the value, which may be a secret.
fn reason(message: &str) -> String {
    // The message of `listen_address_of_file` quotes no value.
    if let Some(own) = message.strip_prefix("listen ") {
        return own.trim_end().to_owned();
    }
    let quotes = ["invalid type", "invalid value", "unknown variant"]
        .iter()
        .any(|start| message.starts_with(start));
    match message.rsplit_once(", expected ") {
        Some((_, expected)) if quotes => format!("must be {}", expected.trim_end()),
        _ => "has a value that is not valid".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn refusal(text: &str) -> String {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("config.toml");
        std::fs::write(&path, text).expect("a file");
        Config::load(Settings::default(), Some(&path))
            .expect_err(text)
            .to_string()
    }

    #[test]
    fn unknown_keys_are_refused_with_the_nearest_known_keys_before_one_is_missing() {
        let error = refusal("lisen = '127.0.0.1:1'\ntls-crt = 'a'\ntls-key = 'b'\nlog = 5");
        for part in [
            "there is no setting `lisen`; did you mean `listen`?",
            "there is no setting `tls-crt`; did you mean `tls-cert`?",
        ] {
            assert!(error.contains(part), "{error}");
        }
    }

    /// The journal, which records start errors, has more readers than the file.
    #[test]
    fn no_mistake_shows_what_the_file_contains() {
        for (text, part) in [
            ("\nsmtp-url = \"smtp://u:hunter2@h", "line 2"),
            ("\nsmtp-url = smtp://u:hunter2@h", "line 2"),
            (
                "listen = '127.0.0.1:1'\n\ndatabase-url = 'postgres://u:hunter2@h/d' x",
                "line 3",
            ),
            ("database-url postgres://u:hunter2@h/d", "line 1"),
            ("hunter2 = \n", "line 1"),
            ("hunter2", "line 1"),
            ("master-key = hunter2", "line 1"),
            ("master-key = 'a'\nmaster-key = 'hunter2'", "line 2"),
            ("smtp-url = '''\nhunter2", "not TOML"),
            ("[hunter2", "line 1"),
            ("'postgres://u:hunter2@h/d' = 1", "known keys are"),
            ("\"smtp://u:hunter2@h\" = 'x'", "known keys are"),
            ("listen = 'hunter2'", "line 1: `listen`"),
            (
                "\nupload-limit-per-minute = 'hunter2'",
                "line 2: `upload-limit-per-minute` must be u32",
            ),
            (
                "upload-limit-per-minute = 'hunter2, expected nothing'",
                "must be u32",
            ),
            (
                "database-url = ['postgres://u:hunter2@h/d']",
                "`database-url` must be a string",
            ),
            (
                "database-url = {password = 'hunter2'}",
                "`database-url` must be a string",
            ),
            (
                "builtin-login = 'hunter2'",
                "`builtin-login` must be a boolean",
            ),
            (
                "registration = 'hunter2'",
                "`registration` must be one of `open`, `invited`, `closed`",
            ),
            (
                "client-certificates = 'hunter2'",
                "`client-certificates` must be one of",
            ),
            ("master-key = 'hunter2'", "master-key must be"),
            ("database-url = 'hunter2://h'", "database-url"),
            (
                "smtp-url = 'hunter2'\nmail-from = 'a@example.com'",
                "smtp-url",
            ),
            (
                "smtp-url = 'smtp://localhost'\nmail-from = 'hunter2'",
                "mail-from",
            ),
            ("hub-token-lifetime = 'hunter2'", "hub-token-lifetime"),
            ("cors-origins = 'hunter2'", "cors-origins"),
            ("trusted-proxies = 'hunter2'", "trusted-proxies"),
            ("files = 's3://key:hunter2@bucket/'", "files"),
            (
                "oidc-issuer = 'hunter2'\noidc-audience = 'x'",
                "oidc-issuer",
            ),
            ("public-url = 'hunter2'", "public-url"),
            ("bus = 'hunter2'", "bus"),
            ("billing-url = 'https://u:hunter2@h'", "billing-url"),
            (
                "billing-url = 'https://h'\nbilling-token = \"hunter2\\n\"",
                "billing-token",
            ),
            (
                "partner-projects-secret = 'hunter2'",
                "partner-projects-secret",
            ),
        ] {
            let error = refusal(text);
            assert!(error.contains(part), "{text}: {error}");
            assert!(!error.contains("hunter2"), "{text}: {error}");
        }
    }
}
