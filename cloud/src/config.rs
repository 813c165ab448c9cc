//! The configuration, read once at the start: flags override the environment, the environment
//! overrides the file. An unknown key is refused with the nearest known key. Secrets are wrapped,
//! so that printing a configuration never shows them.

mod file;
mod files;
mod mail;
mod oidc;
mod retention;
mod streams;

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http::HeaderValue;
use clap::Args;
use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::sealing;
use files::files;
use mail::mail;
use oidc::oidc;

pub use file::installed;
pub use files::FilesConfig;
pub use mail::{Encryption, MailConfig};
pub use oidc::OidcConfig;
use retention::DEFAULT_RESERVE_BYTES;
pub use retention::{QuotaConfig, RetentionConfig};
pub use streams::StreamTimes;

/// Heading of the settings in a command's help, which separates them from the command's own
/// options.
pub const SETTINGS: &str = "Settings";

/// Every setting: a flag, the variable `HUB_CLOUD_<FLAG>`, and a key of the configuration file.
/// Numbers may begin with a minus, so that the error names their setting and not an unknown flag.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = SETTINGS)]
pub struct Settings {
    /// Address to listen on, such as 0.0.0.0:8080 or localhost:8080; port 0 selects a free port
    /// [default: 127.0.0.1:8080]
    #[arg(long, global = true, env = "HUB_CLOUD_LISTEN", value_name = "ADDRESS", value_parser = listen_address)]
    #[serde(default, deserialize_with = "listen_address_of_file")]
    pub listen: Option<SocketAddr>,

    /// `sqlite:PATH` or `postgres://user:password@host/database` [default: a file in the data
    /// directory]
    #[arg(long, global = true, env = "HUB_CLOUD_DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub database_url: Option<String>,

    /// Directory of the keys, the SQLite database and release files [default: hub-cloud-data]
    #[arg(long, global = true, env = "HUB_CLOUD_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// URL at which clients reach the service, if it differs from the listening address
    #[arg(long, global = true, env = "HUB_CLOUD_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,

    /// Bus between replicas, `nats://HOST:PORT`; a single replica needs none
    #[arg(long, global = true, env = "HUB_CLOUD_BUS", hide_env_values = true, value_name = "URL")]
    pub bus: Option<String>,

    /// PEM file with the certificate chain; enables HTTPS, together with tls-key
    #[arg(long, global = true, env = "HUB_CLOUD_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// PEM file with the private key of the certificate
    #[arg(long, global = true, env = "HUB_CLOUD_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// Whether hubs authenticate with a client certificate as well; needs tls-cert [default: off]
    #[arg(long, global = true, env = "HUB_CLOUD_CLIENT_CERTIFICATES", value_name = "WHEN")]
    pub client_certificates: Option<ClientCertificates>,

    /// Master key that seals the secrets in the database: 64 hex digits, or several such keys
    /// separated by commas (the first seals, all open). Replicas share it [default: master.key in
    /// the data directory]
    #[arg(long, global = true, env = "HUB_CLOUD_MASTER_KEY", hide_env_values = true, value_name = "HEX")]
    pub master_key: Option<String>,

    /// Uploads per minute, per tenant and kind of upload [default: 100]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_UPLOAD_LIMIT_PER_MINUTE",
        value_name = "COUNT",
        allow_negative_numbers = true
    )]
    pub upload_limit_per_minute: Option<u32>,

    /// Maximum number of uploads in one transaction (group commit); 1 commits each upload
    /// separately
    /// [default: 1024]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_UPLOADS_PER_COMMIT",
        value_name = "COUNT",
        allow_negative_numbers = true
    )]
    pub uploads_per_commit: Option<usize>,

    /// Hubs that a tenant may have, unless it has a quota of its own [default: 10000]
    #[arg(long, global = true, env = "HUB_CLOUD_HUBS_PER_TENANT", value_name = "COUNT", allow_negative_numbers = true)]
    pub hubs_per_tenant: Option<u32>,

    /// Event streams that a tenant may have open at one replica [default: 500]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_STREAMS_PER_TENANT",
        value_name = "COUNT",
        allow_negative_numbers = true
    )]
    pub streams_per_tenant: Option<u32>,

    /// Lifetime of a hub's access token, such as 24h [default: 24h]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_HUB_TOKEN_LIFETIME",
        value_name = "DURATION",
        allow_hyphen_values = true
    )]
    pub hub_token_lifetime: Option<String>,

    /// Lifetime of a hub's refresh token after its last use [default: 30d]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_HUB_REFRESH_LIFETIME",
        value_name = "DURATION",
        allow_hyphen_values = true
    )]
    pub hub_refresh_lifetime: Option<String>,

    /// Whether users may log in at this service with e-mail and password [default: true]
    #[arg(long, global = true, env = "HUB_CLOUD_BUILTIN_LOGIN", value_name = "BOOL", action = clap::ArgAction::Set)]
    pub builtin_login: Option<bool>,

    /// Who may create an account with e-mail and password: anybody, people with a pending
    /// invitation, or nobody [default: open]
    #[arg(long, global = true, env = "HUB_CLOUD_REGISTRATION", value_name = "WHO")]
    pub registration: Option<RegistrationPolicy>,

    /// OpenID Connect issuer whose access tokens are accepted as well, such as
    /// https://login.example.com
    #[arg(long, global = true, env = "HUB_CLOUD_OIDC_ISSUER", value_name = "URL")]
    pub oidc_issuer: Option<String>,

    /// Required audience of the issuer's tokens; required with oidc-issuer
    #[arg(long, global = true, env = "HUB_CLOUD_OIDC_AUDIENCE", value_name = "TEXT")]
    pub oidc_audience: Option<String>,

    /// Client id of `hub-cloud login` at the issuer
    #[arg(long, global = true, env = "HUB_CLOUD_OIDC_CLIENT_ID", value_name = "TEXT")]
    pub oidc_client_id: Option<String>,

    /// Claim of the issuer's tokens that lists roles; a dot selects a member of an object [default:
    /// roles]
    #[arg(long, global = true, env = "HUB_CLOUD_OIDC_ROLES_CLAIM", value_name = "NAME")]
    pub oidc_roles_claim: Option<String>,

    /// Mail server, `smtp://USER:PASSWORD@HOST:PORT?tls=required` or `smtps://...` [default: none,
    /// no mail is sent]
    #[arg(long, global = true, env = "HUB_CLOUD_SMTP_URL", hide_env_values = true, value_name = "URL")]
    pub smtp_url: Option<String>,

    /// Sender of mail, such as `Hubs <hubs@example.com>`; required with smtp-url
    #[arg(long, global = true, env = "HUB_CLOUD_MAIL_FROM", value_name = "ADDRESS")]
    pub mail_from: Option<String>,

    /// Origins allowed to call the service from a browser (CORS), separated by commas, such as
    /// https://console.example.com [default: none]
    #[arg(long, global = true, env = "HUB_CLOUD_CORS_ORIGINS", value_name = "ORIGINS")]
    pub cors_origins: Option<String>,

    /// Networks of proxies whose `X-Forwarded-For` is trusted, separated by commas, such as
    /// 10.0.0.0/8 [default: none]
    #[arg(long, global = true, env = "HUB_CLOUD_TRUSTED_PROXIES", value_name = "NETWORKS")]
    pub trusted_proxies: Option<String>,

    /// Store of release files: `file:///DIR`, or `s3://BUCKET/PREFIX` with credentials from the
    /// usual AWS_* variables. Replicas share it [default: files in the data directory]
    #[arg(long, global = true, env = "HUB_CLOUD_FILES", value_name = "URL")]
    pub files: Option<String>,

    /// Directory of the minisign public keys that verify releases: agent/*.pub and app/*.pub
    /// [default: release-keys in the data directory]
    #[arg(long, global = true, env = "HUB_CLOUD_RELEASE_KEYS", value_name = "DIR")]
    pub release_keys: Option<PathBuf>,

    /// How long BLE events are kept, such as 30d [default: 30d]
    #[arg(long, global = true, env = "HUB_CLOUD_BLE_RETENTION", value_name = "DURATION", allow_hyphen_values = true)]
    pub ble_retention: Option<String>,

    /// How long telemetry is kept [default: 90d]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_TELEMETRY_RETENTION",
        value_name = "DURATION",
        allow_hyphen_values = true
    )]
    pub telemetry_retention: Option<String>,

    /// How long the logs of hubs are kept [default: 14d]
    #[arg(long, global = true, env = "HUB_CLOUD_LOG_RETENTION", value_name = "DURATION", allow_hyphen_values = true)]
    pub log_retention: Option<String>,

    /// How long the events of a job are kept after it is over [default: 90d]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_JOB_EVENT_RETENTION",
        value_name = "DURATION",
        allow_hyphen_values = true
    )]
    pub job_event_retention: Option<String>,

    /// How long entries of the audit log are kept, at least 1d [default: 400d]
    #[arg(long, global = true, env = "HUB_CLOUD_AUDIT_RETENTION", value_name = "DURATION", allow_hyphen_values = true)]
    pub audit_retention: Option<String>,

    /// Bytes that a tenant may store, unless it has a limit of its own [default: 107374182400]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_STORED_BYTES_PER_TENANT",
        value_name = "BYTES",
        allow_negative_numbers = true
    )]
    pub stored_bytes_per_tenant: Option<u64>,

    /// Bytes that a tenant may upload in a day, unless it has a limit of its own [default:
    /// 10737418240]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_BYTES_PER_DAY_PER_TENANT",
        value_name = "BYTES",
        allow_negative_numbers = true
    )]
    pub bytes_per_day_per_tenant: Option<u64>,

    /// Bytes of the database's disk held back for what has to go on when it is full; 0 for none
    /// [default: 67108864]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_STORAGE_RESERVE_BYTES",
        value_name = "BYTES",
        allow_negative_numbers = true
    )]
    pub storage_reserve_bytes: Option<u64>,

    /// Log level: error, warn, info, debug, or a filter such as hub_cloud=debug [default: info for
    /// the service, warn for its libraries and for other commands]
    #[arg(long, global = true, env = "HUB_CLOUD_LOG", value_name = "FILTER")]
    pub log: Option<String>,

    /// Format of all lines of the log [default: auto]
    #[arg(long, global = true, env = "HUB_CLOUD_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,

    /// Requests to log: off, errors (4xx and 5xx), all, or a share such as 0.01, to which every 5xx
    /// is added [default: off]
    #[arg(long, global = true, env = "HUB_CLOUD_ACCESS_LOG", value_name = "WHICH")]
    pub access_log: Option<String>,
}

/// An address and a port, or a host name and a port. Of several addresses the first of IPv4 is used:
/// `localhost` is 127.0.0.1.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let resolved = text.to_socket_addrs().map_err(|_| {
        "must be an address or host name of this machine, and a port, such as 127.0.0.1:8080".to_owned()
    })?;
    let addresses: Vec<SocketAddr> = resolved.collect();
    let first = addresses.iter().find(|address| address.is_ipv4()).or_else(|| addresses.first());
    first.copied().ok_or_else(|| "has no address".to_owned())
}

fn listen_address_of_file<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    listen_address(&text).map(Some).map_err(|error| serde::de::Error::custom(format!("listen {error}")))
}

/// The validated settings, with defaults filled in.
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
    pub hubs_per_tenant: i64,
    pub streams_per_tenant: i64,
    pub stream_times: StreamTimes,
    pub hub_token_lifetime: Duration,
    pub hub_refresh_lifetime: Duration,
    pub builtin_login: bool,
    pub registration: RegistrationPolicy,
    pub oidc: Option<OidcConfig>,
    pub mail: Option<MailConfig>,
    pub cors_origins: Vec<HeaderValue>,
    pub trusted_proxies: Vec<IpNet>,
    pub files: FilesConfig,
    pub release_keys: PathBuf,
    pub retention: RetentionConfig,
    pub quotas: QuotaConfig,
    /// 0 for none.
    pub storage_reserve_bytes: u64,
    /// None: what the command usually logs.
    pub log: Option<String>,
    pub log_format: LogFormat,
    pub access_log: AccessLog,
}

/// The format of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text on a terminal, else JSON; `listening on URL` is always text
    #[default]
    Auto,
    /// Lines for people
    Text,
    /// One JSON object a line, without exception
    Json,
}

/// Which requests are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum AccessLog {
    #[default]
    Off,
    Errors,
    All,
    /// A share of all, from 0 to 1, and every 5xx.
    Sample(f64),
}

fn access_log(which: &str) -> Result<AccessLog, ConfigError> {
    match (which, which.parse::<f64>()) {
        ("off", _) => Ok(AccessLog::Off),
        ("errors", _) => Ok(AccessLog::Errors),
        ("all", _) => Ok(AccessLog::All),
        (_, Ok(share)) if (0.0..=1.0).contains(&share) => Ok(AccessLog::Sample(share)),
        _ => Err(ConfigError("access-log must be off, errors, all, or a share from 0 to 1".into())),
    }
}

/// Whether hubs authenticate with a client certificate in addition to their token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientCertificates {
    /// No certificate is requested
    #[default]
    Off,
    /// A presented certificate must belong to the hub and be valid
    Optional,
    /// A valid certificate is required, except to claim, to refresh and to obtain the first one
    /// after a claim
    Required,
}

/// Who may create an account with e-mail and password.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RegistrationPolicy {
    /// Anybody
    #[default]
    Open,
    /// Whoever has a pending invitation to a tenant
    Invited,
    /// Nobody; accounts are created on the command line
    Closed,
}

#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// A configuration error, with a message for the operator.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

impl Config {
    /// How long after its signing a token may be presented at all: a hub may refresh with an
    /// expired access token. Signing keys are kept for this long.
    pub fn tokens_live_secs(&self) -> i64 {
        let longest = self.hub_refresh_lifetime.max(self.hub_token_lifetime);
        longest.as_secs().cast_signed() + 3600
    }

    /// Whether the database is a file.
    pub fn is_sqlite(&self) -> bool {
        self.database_url.expose_secret().starts_with("sqlite:")
    }

    /// Whether clients reach the service over TLS, terminated here or at a proxy.
    pub fn is_https(&self) -> bool {
        match &self.public_url {
            Some(url) => url.starts_with("https://"),
            None => self.tls.is_some(),
        }
    }

    /// Merges flags (which include the environment) over the file, fills in defaults and validates
    /// the result.
    pub fn load(flags: Settings, file: Option<&Path>) -> Result<Self, ConfigError> {
        let file = match file {
            Some(path) => file::read(path)?,
            None => Settings::default(),
        };
        let retention = RetentionConfig::load(&flags, &file)?;
        let quotas = QuotaConfig::load(&flags, &file)?;
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
            (Some(_), None) => return Err(ConfigError("tls-cert is set without tls-key; set both or neither".into())),
            (None, Some(_)) => return Err(ConfigError("tls-key is set without tls-cert; set both or neither".into())),
        };
        let client_certificates = flags.client_certificates.or(file.client_certificates).unwrap_or_default();
        if client_certificates != ClientCertificates::Off && tls.is_none() {
            let message = "client-certificates needs tls-cert and tls-key, because TLS must end at the service; \
                           set them, or set client-certificates to off";
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
        let hubs_per_tenant = flags.hubs_per_tenant.or(file.hubs_per_tenant).unwrap_or(10_000);
        if hubs_per_tenant == 0 {
            return Err(ConfigError("hubs-per-tenant must be 1 or more".into()));
        }
        let streams_per_tenant = flags.streams_per_tenant.or(file.streams_per_tenant).unwrap_or(500);
        if streams_per_tenant == 0 {
            return Err(ConfigError("streams-per-tenant must be 1 or more".into()));
        }
        let oidc = oidc(
            flags.oidc_issuer.or(file.oidc_issuer),
            flags.oidc_audience.or(file.oidc_audience),
            flags.oidc_client_id.or(file.oidc_client_id),
            flags.oidc_roles_claim.or(file.oidc_roles_claim),
        )?;
        let builtin_login = flags.builtin_login.or(file.builtin_login).unwrap_or(true);
        if !builtin_login && oidc.is_none() {
            let message = "builtin-login = false needs oidc-issuer: nobody could log in otherwise; set oidc-issuer";
            return Err(ConfigError(message.into()));
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
            hubs_per_tenant: i64::from(hubs_per_tenant),
            streams_per_tenant: i64::from(streams_per_tenant),
            stream_times: StreamTimes::default(),
            hub_token_lifetime: lifetime(
                "hub-token-lifetime",
                flags.hub_token_lifetime.as_deref(),
                file.hub_token_lifetime.as_deref().unwrap_or("24h"),
            )?,
            hub_refresh_lifetime: lifetime(
                "hub-refresh-lifetime",
                flags.hub_refresh_lifetime.as_deref(),
                file.hub_refresh_lifetime.as_deref().unwrap_or("30d"),
            )?,
            builtin_login,
            registration: flags.registration.or(file.registration).unwrap_or_default(),
            oidc,
            mail,
            cors_origins: origins(flags.cors_origins.or(file.cors_origins).as_deref().unwrap_or_default())?,
            trusted_proxies: networks(flags.trusted_proxies.or(file.trusted_proxies).as_deref().unwrap_or_default())?,
            files,
            release_keys,
            retention,
            quotas,
            storage_reserve_bytes: flags
                .storage_reserve_bytes
                .or(file.storage_reserve_bytes)
                .unwrap_or(DEFAULT_RESERVE_BYTES),
            log: flags.log.or(file.log),
            log_format: flags.log_format.or(file.log_format).unwrap_or_default(),
            access_log: access_log(flags.access_log.or(file.access_log).as_deref().unwrap_or("off"))?,
        })
    }
}

/// The parts of a comma-separated list.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

// Errors do not repeat the values: they may come from the file, see `file`.

fn origins(text: &str) -> Result<Vec<HeaderValue>, ConfigError> {
    let origin = |(number, part): (usize, &str)| {
        let url = reqwest::Url::parse(part).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        // Browsers send an origin without path and default port, and it is compared as text.
        let exact = url.filter(|url| url.origin().ascii_serialization() == part);
        exact.and_then(|_| HeaderValue::from_str(part).ok()).ok_or_else(|| {
            ConfigError(format!(
                "cors-origins must list origins such as https://console.example.com; number {number} is none"
            ))
        })
    };
    (1..).zip(parts(text)).map(origin).collect()
}

fn networks(text: &str) -> Result<Vec<IpNet>, ConfigError> {
    let network = |(number, part): (usize, &str)| {
        let network = part.parse::<IpNet>().or_else(|_| part.parse::<IpAddr>().map(IpNet::from));
        network.map_err(|_| {
            ConfigError(format!("trusted-proxies must list networks such as 10.0.0.0/8; number {number} is none"))
        })
    };
    (1..).zip(parts(text)).map(network).collect()
}

/// Parses a duration such as `90s`, `15m`, `24h` or `30d`: the flag, else what the file contains.
fn lifetime(key: &str, flag: Option<&str>, filed: &str) -> Result<Duration, ConfigError> {
    let text = flag.unwrap_or(filed);
    let units = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)];
    let found = units.into_iter().find_map(|(unit, secs)| Some((text.trim().strip_suffix(unit)?, secs)));
    match found.map(|(number, unit_secs)| (number.parse::<u32>(), unit_secs)) {
        Some((Ok(number @ 1..=100_000), unit_secs)) => Ok(Duration::from_secs(u64::from(number) * unit_secs)),
        _ => {
            let given = flag.map(|flag| format!(", not `{flag}`")).unwrap_or_default();
            Err(ConfigError(format!("{key} must be a number and a unit, such as 90s, 15m, 24h or 30d{given}")))
        }
    }
}

#[cfg(test)]
mod tests;
