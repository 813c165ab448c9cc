//! One configuration, read once: the file, then the environment, then the flags, each over the one before. A key nobody knows is refused with
//! the nearest one that is known. Secrets are wrapped, so that printing a configuration never shows them.

mod files;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http::HeaderValue;
use clap::Args;
use ipnet::IpNet;
use lettre::message::Mailbox;
use percent_encoding::percent_decode_str;
use secrecy::SecretString;
use serde::Deserialize;

use crate::sealing;
use files::files;

pub use files::FilesConfig;

/// What settings stand under in the help of commands, apart from the commands' own options.
pub const SETTINGS: &str = "Settings";

/// Every setting, as a flag, as `HUB_CLOUD_<FLAG>`, or as a key of the configuration file. Numbers may begin with a minus, so that the refusal
/// names their setting and not an unknown flag.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = SETTINGS)]
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

    /// Whether hubs show a certificate when they connect; needs tls-cert [default: off]
    #[arg(long, global = true, env = "HUB_CLOUD_CLIENT_CERTIFICATES", value_name = "WHEN")]
    pub client_certificates: Option<ClientCertificates>,

    /// 64 hex digits that seal every secret in the database, or several such keys with commas between them: the first seals, all open. Replicas share
    /// it [default: master.key in the data directory]
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

    /// Whether people may log in here with e-mail and password [default: true]
    #[arg(long, global = true, env = "HUB_CLOUD_BUILTIN_LOGIN", value_name = "BOOL", action = clap::ArgAction::Set)]
    pub builtin_login: Option<bool>,

    /// OpenID Connect issuer whose access tokens are taken too, such as https://login.example.com
    #[arg(long, global = true, env = "HUB_CLOUD_OIDC_ISSUER", value_name = "URL")]
    pub oidc_issuer: Option<String>,

    /// What the issuer's tokens must name as their audience; needed with oidc-issuer
    #[arg(long, global = true, env = "HUB_CLOUD_OIDC_AUDIENCE", value_name = "TEXT")]
    pub oidc_audience: Option<String>,

    /// The client that `hub-cloud login` is at the issuer
    #[arg(long, global = true, env = "HUB_CLOUD_OIDC_CLIENT_ID", value_name = "TEXT")]
    pub oidc_client_id: Option<String>,

    /// The claim of the issuer's tokens that lists roles; dots go into objects [default: roles]
    #[arg(long, global = true, env = "HUB_CLOUD_OIDC_ROLES_CLAIM", value_name = "NAME")]
    pub oidc_roles_claim: Option<String>,

    /// Mail server, `smtp://USER:PASSWORD@HOST:PORT?tls=required` or `smtps://...`; without one no mail is sent
    #[arg(long, global = true, env = "HUB_CLOUD_SMTP_URL", hide_env_values = true, value_name = "URL")]
    pub smtp_url: Option<String>,

    /// Sender of the service's mail, such as `Hubs <hubs@example.com>`; needed with smtp-url
    #[arg(long, global = true, env = "HUB_CLOUD_MAIL_FROM", value_name = "ADDRESS")]
    pub mail_from: Option<String>,

    /// Origins whose pages may call the service from a browser, with commas between them, such as https://console.example.com [default: none]
    #[arg(long, global = true, env = "HUB_CLOUD_CORS_ORIGINS", value_name = "ORIGINS")]
    pub cors_origins: Option<String>,

    /// Networks of proxies whose `X-Forwarded-For` is believed, with commas between them, such as 10.0.0.0/8 [default: none]
    #[arg(long, global = true, env = "HUB_CLOUD_TRUSTED_PROXIES", value_name = "NETWORKS")]
    pub trusted_proxies: Option<String>,

    /// Where the files of releases are kept: `file:///DIR`, or `s3://BUCKET/PREFIX` with credentials from the usual AWS_* variables. Replicas share it
    /// [default: files in the data directory]
    #[arg(long, global = true, env = "HUB_CLOUD_FILES", value_name = "URL")]
    pub files: Option<String>,

    /// Directory of the minisign public keys that releases are checked with: agent/*.pub and app/*.pub [default: release-keys in the data directory]
    #[arg(long, global = true, env = "HUB_CLOUD_RELEASE_KEYS", value_name = "DIR")]
    pub release_keys: Option<PathBuf>,

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
    pub client_certificates: ClientCertificates,
    pub master_key: Option<SecretString>,
    pub upload_limit_per_minute: i64,
    pub uploads_per_commit: usize,
    pub hub_token_lifetime: Duration,
    pub hub_refresh_lifetime: Duration,
    pub builtin_login: bool,
    pub oidc: Option<OidcConfig>,
    pub mail: Option<MailConfig>,
    pub cors_origins: Vec<HeaderValue>,
    pub trusted_proxies: Vec<IpNet>,
    pub files: FilesConfig,
    pub release_keys: PathBuf,
    pub log: String,
}

/// Whether hubs show a certificate when they connect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientCertificates {
    /// Nobody is asked for one
    #[default]
    Off,
    /// One that is shown must be the hub's own and in force
    Optional,
    /// A hub gets in with one alone, except to get one
    Required,
}

/// The external issuer of people's tokens.
#[derive(Clone, Debug)]
pub struct OidcConfig {
    /// Exactly as tokens name it.
    pub issuer: String,
    pub audience: String,
    /// For the command line alone.
    pub client_id: Option<String>,
    /// The path to the list of roles in a token.
    pub roles_claim: Vec<String>,
}

/// Where mail goes out.
#[derive(Clone, Debug)]
pub struct MailConfig {
    pub host: String,
    pub port: u16,
    pub encryption: Encryption,
    /// Name and password.
    pub credentials: Option<(String, SecretString)>,
    pub from: Mailbox,
}

/// How the way to the mail server is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// TLS from the first byte.
    Wrapped,
    /// STARTTLS, or no mail.
    StartTls,
    /// STARTTLS where the server offers it.
    IfOffered,
    None,
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
    /// A hub may show a token this long after it was signed, expired as it is, to get a fresh one; nobody may show one longer.
    pub fn tokens_live_secs(&self) -> i64 {
        let longest = self.hub_refresh_lifetime.max(self.hub_token_lifetime);
        longest.as_secs().cast_signed() + 3600
    }

    /// Whether clients reach the service over TLS, its own or a proxy's.
    pub fn is_https(&self) -> bool {
        match &self.public_url {
            Some(url) => url.starts_with("https://"),
            None => self.tls.is_some(),
        }
    }

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
            return Err(ConfigError(sealing::MASTER_KEY_FORM.into()));
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
        let client_certificates = flags.client_certificates.or(file.client_certificates).unwrap_or_default();
        if client_certificates != ClientCertificates::Off && tls.is_none() {
            let message =
                "client-certificates needs tls-cert and tls-key: the service sees them only where it speaks TLS itself";
            return Err(ConfigError(message.into()));
        }
        let limit = flags.upload_limit_per_minute.or(file.upload_limit_per_minute).unwrap_or(100);
        if limit == 0 {
            return Err(ConfigError("upload-limit-per-minute must be 1 or more".into()));
        }
        let uploads_per_commit = flags.uploads_per_commit.or(file.uploads_per_commit).unwrap_or(1024);
        if !(1..=4096).contains(&uploads_per_commit) {
            return Err(ConfigError("uploads-per-commit must be 1 to 4096".into()));
        }
        let oidc = oidc(
            flags.oidc_issuer.or(file.oidc_issuer),
            flags.oidc_audience.or(file.oidc_audience),
            flags.oidc_client_id.or(file.oidc_client_id),
            flags.oidc_roles_claim.or(file.oidc_roles_claim),
        )?;
        let builtin_login = flags.builtin_login.or(file.builtin_login).unwrap_or(true);
        if !builtin_login && oidc.is_none() {
            return Err(ConfigError("builtin-login = false needs oidc-issuer, or nobody could log in".into()));
        }
        let mail = mail(flags.smtp_url.or(file.smtp_url), flags.mail_from.or(file.mail_from))?;
        let public_url = flags.public_url.or(file.public_url);
        if public_url.as_ref().is_some_and(|url| !url.starts_with("http://") && !url.starts_with("https://")) {
            return Err(ConfigError("public-url must begin with `http://` or `https://`".into()));
        }
        let files = files(flags.files.or(file.files).as_deref(), &data_dir)?;
        let release_keys = flags.release_keys.or(file.release_keys).unwrap_or_else(|| data_dir.join("release-keys"));
        Ok(Self {
            listen: flags.listen.or(file.listen).unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8080))),
            database_url: database_url.into(),
            data_dir,
            public_url: public_url.map(|url| url.trim_end_matches('/').to_owned()),
            bus: bus.map(SecretString::from),
            tls,
            client_certificates,
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
            builtin_login,
            oidc,
            mail,
            cors_origins: origins(flags.cors_origins.or(file.cors_origins).as_deref().unwrap_or_default())?,
            trusted_proxies: networks(flags.trusted_proxies.or(file.trusted_proxies).as_deref().unwrap_or_default())?,
            files,
            release_keys,
            log: flags.log.or(file.log).unwrap_or_else(|| "warn".to_owned()),
        })
    }
}

fn oidc(
    issuer: Option<String>,
    audience: Option<String>,
    client_id: Option<String>,
    roles_claim: Option<String>,
) -> Result<Option<OidcConfig>, ConfigError> {
    let (issuer, audience) = match (issuer, audience) {
        (Some(issuer), Some(audience)) => (issuer, audience),
        (Some(_), None) => return Err(ConfigError("oidc-issuer needs oidc-audience beside it".into())),
        (None, None) if client_id.is_none() && roles_claim.is_none() => return Ok(None),
        (None, _) => {
            return Err(ConfigError("oidc-audience, oidc-client-id and oidc-roles-claim need oidc-issuer".into()));
        }
    };
    // Tokens could be forged by whoever can change the issuer's keys on the way.
    let is_loopback = |url: &reqwest::Url| matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match reqwest::Url::parse(&issuer) {
        Ok(url) if url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url)) => {}
        _ => {
            return Err(ConfigError("oidc-issuer must begin with `https://` (`http://` on this machine alone)".into()));
        }
    }
    let roles_claim = roles_claim.unwrap_or_else(|| "roles".to_owned());
    Ok(Some(OidcConfig {
        issuer,
        audience,
        client_id,
        roles_claim: roles_claim.split('.').map(str::to_owned).collect(),
    }))
}

fn mail(smtp_url: Option<String>, from: Option<String>) -> Result<Option<MailConfig>, ConfigError> {
    let (smtp_url, from) = match (smtp_url, from) {
        (Some(smtp_url), Some(from)) => (smtp_url, from),
        (None, None) => return Ok(None),
        (Some(_), None) => return Err(ConfigError("smtp-url needs mail-from beside it".into())),
        (None, Some(_)) => return Err(ConfigError("mail-from needs smtp-url beside it".into())),
    };
    let from = from.parse::<Mailbox>().map_err(|_| {
        ConfigError("mail-from must be an address such as `hubs@example.com` or `Hubs <hubs@example.com>`".into())
    })?;
    // The URL may hold a password: no message repeats it.
    let refused = |reason: &str| ConfigError(format!("smtp-url {reason}"));
    let url = reqwest::Url::parse(&smtp_url)
        .map_err(|_| refused("must be a URL such as `smtp://USER:PASSWORD@HOST:587?tls=required`"))?;
    let query: Vec<(String, String)> =
        url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let (encryption, default_port) = match (url.scheme(), query.as_slice()) {
        ("smtps", []) => (Encryption::Wrapped, 465),
        ("smtp", [("tls", "required")]) => (Encryption::StartTls, 587),
        ("smtp", [("tls", "opportunistic")]) => (Encryption::IfOffered, 587),
        ("smtp", []) => (Encryption::None, 25),
        ("smtp", _) => return Err(refused("may end in `?tls=required` or `?tls=opportunistic`, and in nothing else")),
        ("smtps", _) => {
            return Err(refused("is encrypted from the start with `smtps://`, and has nothing after a `?`"));
        }
        _ => return Err(refused("must begin with `smtp://` or `smtps://`")),
    };
    // An IPv6 address without its brackets is what sockets and certificates go by.
    let host = url.host_str().map(|host| host.trim_matches(['[', ']']).to_owned()).filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| refused("must name a host"))?;
    let port = url.port().unwrap_or(default_port);
    if port == 0 || !matches!(url.path(), "" | "/") || url.fragment().is_some() {
        return Err(refused("must be no more than `smtp://USER:PASSWORD@HOST:PORT?tls=required`"));
    }
    let decoded = |text: &str| {
        let text = percent_decode_str(text).decode_utf8().map(|text| text.into_owned());
        text.map_err(|_| refused("must have a user and password in UTF-8"))
    };
    let credentials = match (url.username(), url.password()) {
        ("", None) => None,
        (name, Some(password)) if !name.is_empty() => Some((decoded(name)?, SecretString::from(decoded(password)?))),
        _ => return Err(refused("must have both a user and a password, or neither")),
    };
    let is_loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if credentials.is_some() && matches!(encryption, Encryption::None | Encryption::IfOffered) && !is_loopback {
        return Err(refused("would show its password on the way: add `?tls=required`, or begin with `smtps://`"));
    }
    Ok(Some(MailConfig { host, port, encryption, credentials, from }))
}

/// The parts of a list with commas.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

fn origins(text: &str) -> Result<Vec<HeaderValue>, ConfigError> {
    let origin = |part: &str| {
        let url = reqwest::Url::parse(part).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        // Compared as browsers write it: no path, no default port.
        let exact = url.filter(|url| url.origin().ascii_serialization() == part);
        exact.and_then(|_| HeaderValue::from_str(part).ok()).ok_or_else(|| {
            ConfigError(format!("cors-origins must hold origins such as https://console.example.com, not `{part}`"))
        })
    };
    parts(text).map(origin).collect()
}

fn networks(text: &str) -> Result<Vec<IpNet>, ConfigError> {
    let network = |part: &str| {
        let network = part.parse::<IpNet>().or_else(|_| part.parse::<IpAddr>().map(IpNet::from));
        network.map_err(|_| ConfigError(format!("trusted-proxies must hold networks such as 10.0.0.0/8, not `{part}`")))
    };
    parts(text).map(network).collect()
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
            ("client-certificates = 'required'", "client-certificates needs tls-cert"),
            ("client-certificates = 'always'", "client-certificates"),
            ("oidc-issuer = 'https://login.example.com'", "oidc-audience"),
            ("oidc-issuer = 'http://login.example.com'\noidc-audience = 'x'", "oidc-issuer"),
            ("oidc-issuer = 'http://127.0.0.1.example.com'\noidc-audience = 'x'", "oidc-issuer"),
            ("oidc-audience = 'x'", "oidc-issuer"),
            ("builtin-login = false", "builtin-login"),
            ("smtp-url = 'smtp://localhost'", "mail-from"),
            ("smtp-url = 'http://localhost'\nmail-from = 'a@example.com'", "smtp-url"),
            ("mail-from = 'a@example.com'", "smtp-url"),
            ("smtp-url = 'smtp://localhost'\nmail-from = 'Hubs'", "mail-from"),
            ("smtp-url = 'smtp://'\nmail-from = 'a@example.com'", "smtp-url"),
            ("smtp-url = 'smtp://localhost:99999'\nmail-from = 'a@example.com'", "smtp-url"),
            ("smtp-url = 'smtp://localhost/path'\nmail-from = 'a@example.com'", "smtp-url"),
            ("smtp-url = 'smtp://localhost?tls=maybe'\nmail-from = 'a@example.com'", "smtp-url"),
            ("smtp-url = 'smtp://user@localhost'\nmail-from = 'a@example.com'", "smtp-url"),
            ("smtp-url = 'smtp://user:word@mail.example.com'\nmail-from = 'a@example.com'", "smtp-url"),
            ("smtp-url = 'smtps://user:%ff@mail.example.com'\nmail-from = 'a@example.com'", "smtp-url"),
            ("cors-origins = '*'", "cors-origins"),
            ("cors-origins = 'https://a.example/path'", "cors-origins"),
            ("trusted-proxies = '10.0.0.0/33'", "trusted-proxies"),
            ("files = '/srv/files'", "files"),
        ] {
            let error = load(text).expect_err("a refusal").to_string();
            assert!(error.contains(key), "{error}");
        }
    }

    #[test]
    fn a_mail_server_is_read_whole() {
        let mail = |url: &str| {
            let config = load(&format!("smtp-url = '{url}'\nmail-from = 'Hubs <hubs@example.com>'"));
            config.expect(url).mail.expect("mail")
        };
        for (url, host, port, encryption) in [
            ("smtp://localhost", "localhost", 25, Encryption::None),
            ("smtp://relay.internal:2525/", "relay.internal", 2525, Encryption::None),
            ("smtp://mail.example.com?tls=required", "mail.example.com", 587, Encryption::StartTls),
            ("smtp://mail.example.com:25?tls=opportunistic", "mail.example.com", 25, Encryption::IfOffered),
            ("smtps://[2001:db8::1]", "2001:db8::1", 465, Encryption::Wrapped),
        ] {
            let mail = mail(url);
            assert_eq!((mail.host.as_str(), mail.port, mail.encryption), (host, port, encryption), "{url}");
            assert!(mail.credentials.is_none());
        }
        use secrecy::ExposeSecret;
        let (name, password) = mail("smtps://ada%40example.com:p%3A+%25@mail.example.com").credentials.expect("both");
        assert_eq!((name.as_str(), password.expose_secret()), ("ada@example.com", "p:+%"));
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
