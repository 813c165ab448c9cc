//! One configuration, read once: the file, then the environment, then the flags, each over the one before. A key nobody knows is refused with
//! the nearest one that is known. Secrets are wrapped, so that printing a configuration never shows them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use secrecy::SecretString;
use serde::Deserialize;

use crate::sealing;

/// Every setting, as a flag, as `HUB_CLOUD_<FLAG>`, or as a key of the configuration file. Numbers may begin with a minus, so that the refusal
/// names their setting and not an unknown flag.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Settings {
    /// Address to serve on; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, global = true, env = "HUB_CLOUD_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,

    /// `sqlite:PATH` or `postgres://user:password@host/database` [default: a file in the data directory]
    #[arg(long, global = true, env = "HUB_CLOUD_DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub database_url: Option<String>,

    /// Where keys, and the database unless named, are kept [default: hub-cloud-data]
    #[arg(long, global = true, env = "HUB_CLOUD_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// The URL clients reach the service under, when it is not the address it listens on
    #[arg(long, global = true, env = "HUB_CLOUD_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,

    /// What connects replicas, `nats://HOST:PORT`; one machine needs none
    #[arg(long, global = true, env = "HUB_CLOUD_BUS", hide_env_values = true, value_name = "URL")]
    pub bus: Option<String>,

    /// PEM file of the certificate chain: serve HTTPS
    #[arg(long, global = true, env = "HUB_CLOUD_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// PEM file of the certificate's private key
    #[arg(long, global = true, env = "HUB_CLOUD_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// 64 hex digits that seal every secret in the database; replicas share it [default: master.key in the data directory]
    #[arg(long, global = true, env = "HUB_CLOUD_MASTER_KEY", hide_env_values = true, value_name = "HEX")]
    pub master_key: Option<String>,

    /// Uploads a minute for each tenant and kind of upload [default: 100]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_UPLOAD_LIMIT_PER_MINUTE",
        value_name = "COUNT",
        allow_negative_numbers = true
    )]
    pub upload_limit_per_minute: Option<u32>,

    /// Uploads that share one transaction at most; 1 gives each its own [default: 1024]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_UPLOADS_PER_COMMIT",
        value_name = "COUNT",
        allow_negative_numbers = true
    )]
    pub uploads_per_commit: Option<usize>,

    /// How long a hub's access token lives, such as 24h [default: 24h]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_HUB_TOKEN_LIFETIME",
        value_name = "DURATION",
        allow_hyphen_values = true
    )]
    pub hub_token_lifetime: Option<String>,

    /// How long a hub's refresh token lives after its last use [default: 30d]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_HUB_REFRESH_LIFETIME",
        value_name = "DURATION",
        allow_hyphen_values = true
    )]
    pub hub_refresh_lifetime: Option<String>,

    /// Logs to write: error, warn, info, debug, or a filter such as hub_cloud=debug [default: warn]
    #[arg(long, global = true, env = "HUB_CLOUD_LOG", value_name = "FILTER")]
    pub log: Option<String>,
}

/// Settings checked and complete.
#[derive(Clone, Debug)]
pub struct Config {
    pub listen: SocketAddr,
    pub database_url: SecretString,
    pub data_dir: PathBuf,
    pub public_url: Option<String>,
    pub bus: Option<SecretString>,
    pub tls: Option<TlsFiles>,
    pub master_key: Option<SecretString>,
    pub upload_limit_per_minute: i64,
    pub uploads_per_commit: usize,
    pub hub_token_lifetime: Duration,
    pub hub_refresh_lifetime: Duration,
    pub log: String,
}

#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// What is wrong with the configuration, in words for the person who wrote it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

impl Config {
    /// Puts flags and environment over the file, fills in what is left, and checks all of it.
    pub fn load(flags: Settings, file: Option<&Path>) -> Result<Self, ConfigError> {
        let file = match file {
            Some(path) => read_file(path)?,
            None => Settings::default(),
        };
        let data_dir = flags.data_dir.or(file.data_dir).unwrap_or_else(|| PathBuf::from("hub-cloud-data"));
        let database_url = flags.database_url.or(file.database_url);
        let database_url =
            database_url.unwrap_or_else(|| format!("sqlite:{}", data_dir.join("hub-cloud.sqlite").display()));
        if !["sqlite:", "postgres://", "postgresql://"].iter().any(|scheme| database_url.starts_with(scheme)) {
            return Err(ConfigError("database-url must begin with `sqlite:` or `postgres://`".into()));
        }
        if ["sqlite:", "sqlite://"].contains(&database_url.trim()) {
            return Err(ConfigError("database-url must name a file, such as `sqlite:hub-cloud.sqlite`".into()));
        }
        let master_key = flags.master_key.or(file.master_key);
        if master_key.as_ref().is_some_and(|key| !sealing::is_master_key(key)) {
            return Err(ConfigError("master-key must be 64 hex digits".into()));
        }
        let bus = flags.bus.or(file.bus);
        if bus.as_ref().is_some_and(|bus| !bus.starts_with("nats://") && !bus.starts_with("tls://")) {
            return Err(ConfigError("bus must begin with `nats://` or `tls://`".into()));
        }
        let tls = match (flags.tls_cert.or(file.tls_cert), flags.tls_key.or(file.tls_key)) {
            (Some(cert), Some(key)) => Some(TlsFiles { cert, key }),
            (None, None) => None,
            (Some(_), None) => return Err(ConfigError("tls-cert needs tls-key beside it".into())),
            (None, Some(_)) => return Err(ConfigError("tls-key needs tls-cert beside it".into())),
        };
        let limit = flags.upload_limit_per_minute.or(file.upload_limit_per_minute).unwrap_or(100);
        if limit == 0 {
            return Err(ConfigError("upload-limit-per-minute must be 1 or more".into()));
        }
        let uploads_per_commit = flags.uploads_per_commit.or(file.uploads_per_commit).unwrap_or(1024);
        if !(1..=4096).contains(&uploads_per_commit) {
            return Err(ConfigError("uploads-per-commit must be 1 to 4096".into()));
        }
        let public_url = flags.public_url.or(file.public_url);
        if public_url.as_ref().is_some_and(|url| !url.starts_with("http://") && !url.starts_with("https://")) {
            return Err(ConfigError("public-url must begin with `http://` or `https://`".into()));
        }
        Ok(Self {
            listen: flags.listen.or(file.listen).unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8080))),
            database_url: database_url.into(),
            data_dir,
            public_url: public_url.map(|url| url.trim_end_matches('/').to_owned()),
            bus: bus.map(SecretString::from),
            tls,
            master_key: master_key.map(SecretString::from),
            upload_limit_per_minute: i64::from(limit),
            uploads_per_commit,
            hub_token_lifetime: lifetime(
                "hub-token-lifetime",
                flags.hub_token_lifetime.or(file.hub_token_lifetime).as_deref().unwrap_or("24h"),
            )?,
            hub_refresh_lifetime: lifetime(
                "hub-refresh-lifetime",
                flags.hub_refresh_lifetime.or(file.hub_refresh_lifetime).as_deref().unwrap_or("30d"),
            )?,
            log: flags.log.or(file.log).unwrap_or_else(|| "warn".to_owned()),
        })
    }
}

fn read_file(path: &Path) -> Result<Settings, ConfigError> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError(format!("cannot read {name}: {error}")))?;
    let table: toml::Table = text.parse().map_err(|error| ConfigError(format!("{name} is not TOML: {error}")))?;
    let known = known_keys();
    if let Some(key) = table.keys().find(|key| !known.contains(key)) {
        let nearest = known
            .iter()
            .max_by(|a, b| strsim::jaro_winkler(a, key).total_cmp(&strsim::jaro_winkler(b, key)))
            .filter(|name| strsim::jaro_winkler(name, key) > 0.7);
        let hint = match nearest {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("known keys are {}", known.join(", ")),
        };
        return Err(ConfigError(format!("{name}: there is no setting `{key}`; {hint}")));
    }
    toml::from_str(&text).map_err(|error| ConfigError(format!("{name}: {error}")))
}

/// The names of all settings; each flag is one.
fn known_keys() -> Vec<String> {
    let command = Settings::augment_args(clap::Command::new("settings"));
    command.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned)).collect()
}

/// `90s`, `15m`, `24h`, `30d`.
fn lifetime(key: &str, text: &str) -> Result<Duration, ConfigError> {
    let units = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)];
    let found = units.into_iter().find_map(|(unit, secs)| Some((text.trim().strip_suffix(unit)?, secs)));
    match found.map(|(number, unit_secs)| (number.parse::<u32>(), unit_secs)) {
        Some((Ok(number @ 1..=100_000), unit_secs)) => Ok(Duration::from_secs(u64::from(number) * unit_secs)),
        _ => Err(ConfigError(format!("{key} must be a number and a unit, such as 90s, 15m, 24h or 30d, not `{text}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Config, ConfigError> {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("config.toml");
        std::fs::write(&path, text).expect("a file");
        Config::load(Settings::default(), Some(&path))
    }

    #[test]
    fn flags_win_over_the_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("config.toml");
        std::fs::write(&path, "listen = '127.0.0.1:1'\nupload-limit-per-minute = 7").expect("a file");
        let flags = Settings { listen: Some(SocketAddr::from(([127, 0, 0, 1], 2))), ..Settings::default() };
        let config = Config::load(flags, Some(&path)).expect("a configuration");
        assert_eq!((config.listen.port(), config.upload_limit_per_minute), (2, 7));
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest() {
        let error = load("lisen = '127.0.0.1:1'").expect_err("a refusal").to_string();
        assert!(error.contains("there is no setting `lisen`; did you mean `listen`?"), "{error}");
    }

    #[test]
    fn wrong_values_name_their_key() {
        for (text, key) in [
            ("hub-token-lifetime = 'soon'", "hub-token-lifetime"),
            ("hub-token-lifetime = ''", "hub-token-lifetime"),
            ("hub-token-lifetime = 'é'", "hub-token-lifetime"),
            ("hub-token-lifetime = '24€'", "hub-token-lifetime"),
            ("hub-refresh-lifetime = '24'", "hub-refresh-lifetime"),
            ("hub-refresh-lifetime = '0d'", "hub-refresh-lifetime"),
            ("upload-limit-per-minute = 0", "upload-limit-per-minute"),
            ("uploads-per-commit = 0", "uploads-per-commit"),
            ("database-url = 'mysql://x'", "database-url"),
            ("database-url = 'sqlite:'", "database-url"),
            ("database-url = 'sqlite://'", "database-url"),
            ("master-key = 'zz'", "master-key"),
            ("master-key = '00'", "master-key"),
            ("listen = 'here'", "listen"),
            ("tls-cert = 'a.pem'", "tls-cert"),
        ] {
            let error = load(text).expect_err("a refusal").to_string();
            assert!(error.contains(key), "{error}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let key = "abcdef01".repeat(8);
        let text = format!("database-url = 'postgres://u:hunter2@h/d'\nmaster-key = '{key}'");
        let shown = format!("{:?}", load(&text).expect("a configuration"));
        assert!(!shown.contains("hunter2") && !shown.contains(&key), "{shown}");
        let error = load("master-key = 'abcdef'").expect_err("a refusal").to_string();
        assert!(!error.contains("abcdef"), "{error}");
    }
}
