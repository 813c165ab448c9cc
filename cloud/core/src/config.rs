//! The configuration, read once at the start: flags override the environment, the environment
//! overrides the file. Unknown keys are refused with the nearest known ones. Secrets are wrapped,
//! so that printing a configuration never shows them.

mod backup;
mod collector;
mod file;
mod files;
mod mail;
mod misspelt;
mod oidc;
mod partners;
mod retention;
mod settings;
mod streams;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http::HeaderValue;
use hub_base::db::DEFAULT_CONNECTIONS;
use hub_base::sealing;
use hub_outgoing::{OutgoingConfig, OutgoingProxy};
use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

pub use backup::{BackupConfig, BackupPlace};
pub use collector::CollectorConfig;
use collector::collector;
pub use file::installed;
pub use files::FilesConfig;
use files::files;
use mail::mail;
pub use mail::{Encryption, MailConfig};
pub use misspelt::check_variables;
use oidc::oidc;
pub use oidc::{AdministratorClaim, OidcConfig};
pub use partners::BillingConfig;
use partners::{billing, partner_projects_secret, vulnerability_mirror};
use retention::DEFAULT_RESERVE_BYTES;
pub use retention::{QuotaConfig, RetentionConfig};
pub use settings::{SETTINGS, Settings};
pub use streams::StreamTimes;

/// A hub reports its adapters and apps when they change, and every few minutes.
const HUB_REPORTS_PER_MINUTE: i64 = 120;

/// This program, also after its file was replaced by another version.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// One for each processor, and 2 at least: a tenant may use half of them.
const DEFAULT_DELIVERY_SLOTS: usize = 128;

fn default_script_processes() -> usize {
    std::thread::available_parallelism().map_or(2, |threads| threads.get().clamp(2, 256))
}

/// The validated settings, with defaults filled in.
#[derive(Clone, Debug)]
pub struct Config {
    pub listen: SocketAddr,
    pub database_url: SecretString,
    /// Connections to PostgreSQL, besides those in the background.
    pub database_connections: u32,
    pub database_layout: DatabaseLayout,
    pub data_dir: PathBuf,
    pub public_url: Option<String>,
    pub security_contact: Option<String>,
    pub security_policy: Option<String>,
    pub bus: Option<SecretString>,
    pub tls: Option<TlsFiles>,
    pub client_certificates: ClientCertificates,
    pub master_key: Option<SecretString>,
    pub upload_limit_per_minute: i64,
    pub uploads_per_commit: usize,
    pub hubs_per_tenant: i64,
    pub streams_per_tenant: i64,
    pub stream_times: StreamTimes,
    /// Reports that a hub may send in a minute; no setting.
    pub hub_reports_per_minute: i64,
    pub body_memory_bytes: usize,
    /// Script processes at a time.
    pub script_processes: usize,
    /// Whether this process works on pipelines; no setting.
    pub delivers: bool,
    /// Messages of pipelines that this replica works on at a time.
    pub delivery_slots: usize,
    pub scripts_without_seccomp: bool,
    pub metrics: MetricsAccess,
    /// The program that runs scripts; not a setting.
    pub script_program: PathBuf,
    pub hub_token_lifetime: Duration,
    pub hub_refresh_lifetime: Duration,
    /// What hashing a password costs; no setting.
    pub password_cost: PasswordCost,
    pub builtin_login: bool,
    pub registration: RegistrationPolicy,
    pub second_factor: SecondFactorPolicy,
    /// Whether the platform approves what tenants change of their OAuth configuration.
    pub require_approval: bool,
    pub oidc: Option<OidcConfig>,
    pub mail: Option<MailConfig>,
    pub collector: Option<CollectorConfig>,
    pub billing: Option<BillingConfig>,
    /// Where advisories are fetched from.
    pub vulnerability_mirror: Option<String>,
    /// The secret of the signatures of the partner that announces projects.
    pub partner_projects_secret: Option<SecretString>,
    /// Whether `/dev` is there.
    pub dev_endpoints: bool,
    pub cors_origins: Vec<HeaderValue>,
    pub trusted_proxies: Vec<IpNet>,
    pub files: FilesConfig,
    pub release_keys: PathBuf,
    pub outgoing: OutgoingConfig,
    pub retention: RetentionConfig,
    /// How long after its end a day moves to files; None for never.
    pub history_after: Option<Duration>,
    /// Events of a row group of its files; no setting.
    pub history_group_events: usize,
    pub quotas: QuotaConfig,
    /// The size of the reserve; 0 for none.
    pub storage_reserve_bytes: u64,
    pub backup: BackupConfig,
    /// The log filter; None for the default of the command.
    pub log: Option<String>,
    pub log_format: LogFormat,
    pub access_log: AccessLog,
}

/// The parameters of Argon2id.
#[derive(Clone, Copy, Debug)]
pub struct PasswordCost {
    pub memory_kib: u32,
    pub passes: u32,
}

impl Default for PasswordCost {
    /// What OWASP recommends (Password Storage Cheat Sheet, Argon2id).
    fn default() -> Self {
        Self {
            memory_kib: 19_456,
            passes: 2,
        }
    }
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

/// The requests that are logged.
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
        _ => Err(ConfigError(
            "access-log must be off, errors, all, or a share from 0 to 1".into(),
        )),
    }
}

/// Where PostgreSQL keeps the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DatabaseLayout {
    /// All on one server
    #[default]
    Plain,
    /// On a cluster of Citus: the growing tables on its workers, by tenant
    Citus,
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

/// Who needs a second factor to log in with e-mail and password.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecondFactorPolicy {
    /// Whoever has set one up
    #[default]
    Optional,
    /// Platform administrators, too
    Administrators,
    /// Everybody
    Everyone,
}

/// Who reads the metrics, and where.
#[derive(Clone, Debug)]
pub struct MetricsAccess {
    /// The listener that serves nothing else.
    pub listen: Option<SocketAddr>,
    /// The token that is required.
    pub token: Option<SecretString>,
}

/// The shortest token that cannot be guessed.
const MIN_METRICS_TOKEN_CHARS: usize = 16;

fn metrics_access(
    listen: Option<SocketAddr>,
    token: Option<String>,
) -> Result<MetricsAccess, ConfigError> {
    let is_short = |token: &String| token.trim().chars().count() < MIN_METRICS_TOKEN_CHARS;
    if token.as_ref().is_some_and(is_short) {
        let message = format!(
            "metrics-token must have at least {MIN_METRICS_TOKEN_CHARS} characters; make one with `openssl rand -hex 32`"
        );
        return Err(ConfigError(message));
    }
    Ok(MetricsAccess {
        listen,
        token: token.map(|token| SecretString::from(token.trim())),
    })
}

/// A URI of one of these schemes, which is written into a text of lines.
fn uri(key: &str, uri: Option<String>, schemes: &[&str]) -> Result<Option<String>, ConfigError> {
    let Some(uri) = uri else {
        return Ok(None);
    };
    let is_of_scheme = schemes.iter().any(|scheme| {
        uri.strip_prefix(scheme)
            .is_some_and(|rest| !rest.is_empty())
    });
    let is_plain = uri.bytes().all(|byte| byte.is_ascii_graphic());
    match is_of_scheme && is_plain && uri.len() <= 1024 {
        true => Ok(Some(uri)),
        false => {
            let schemes = schemes.join("` or `");
            let message = format!("{key} must begin with `{schemes}` and have no spaces");
            Err(ConfigError(message))
        }
    }
}

/// The error does not quote the URL, which may have a password.
fn outgoing_proxy(url: Option<String>) -> Result<Option<OutgoingProxy>, ConfigError> {
    url.map(|url| url.parse())
        .transpose()
        .map_err(|message| ConfigError(format!("outgoing-proxy {message}")))
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
    /// How long a replaced signing key verifies: no token that it signed is in use any longer.
    pub fn tokens_live_secs(&self) -> i64 {
        let longest = self.hub_refresh_lifetime.max(self.hub_token_lifetime);
        longest.as_secs().cast_signed() + 3600
    }

    /// The URL at which browsers reach the service, if it is configured or the service listens on
    /// this machine alone. It is never taken from a request, whose sender could name a host of
    /// their own.
    pub fn own_url(&self) -> Option<String> {
        let scheme = if self.is_https() { "https" } else { "http" };
        let local = || {
            self.listen
                .ip()
                .is_loopback()
                .then(|| format!("{scheme}://{}", self.listen))
        };
        self.public_url.clone().or_else(local)
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

    /// Whether the metrics may be read with everything else: nobody but this machine gets there, or
    /// a token is required.
    pub fn serves_metrics(&self) -> bool {
        self.metrics.listen.is_none()
            && (self.metrics.token.is_some() || self.listen.ip().is_loopback())
    }

    /// Whether passwords and tokens may cross a network in plain text: the service listens for more
    /// than this machine, without TLS here or, as `public-url` says, before it.
    pub fn is_exposed_in_plain_text(&self) -> bool {
        self.tls.is_none() && !self.is_https() && !self.listen.ip().is_loopback()
    }

    /// Merges flags (which include the environment) over the file, fills in defaults and validates
    /// the result.
    pub fn load(flags: Settings, file: Option<&Path>) -> Result<Self, ConfigError> {
        let file = match file {
            Some(path) => file::read(path)?,
            None => Settings::default(),
        };
        let retention = RetentionConfig::load(&flags, &file)?;
        let filed = file.history_after.as_deref().unwrap_or("off");
        let history_after = match flags.history_after.as_deref().unwrap_or(filed) {
            "off" => None,
            _ => Some(lifetime(
                "history-after",
                flags.history_after.as_deref(),
                filed,
            )?),
        };
        let quotas = QuotaConfig::load(&flags, &file)?;
        let backup = BackupConfig::load(&flags, &file)?;
        let data_dir = flags
            .data_dir
            .or(file.data_dir)
            .unwrap_or_else(|| PathBuf::from("hub-cloud-data"));
        let database_url = flags.database_url.or(file.database_url);
        let database_url = database_url
            .unwrap_or_else(|| format!("sqlite:{}", data_dir.join("hub-cloud.sqlite").display()));
        if !["sqlite:", "postgres://", "postgresql://"]
            .iter()
            .any(|scheme| database_url.starts_with(scheme))
        {
            return Err(ConfigError(
                "database-url must begin with `sqlite:` or `postgres://`".into(),
            ));
        }
        if ["sqlite:", "sqlite://"].contains(&database_url.trim()) {
            return Err(ConfigError(
                "database-url must name a file, such as `sqlite:hub-cloud.sqlite`".into(),
            ));
        }
        let database_connections = flags
            .database_connections
            .or(file.database_connections)
            .unwrap_or(DEFAULT_CONNECTIONS);
        if !(4..=500).contains(&database_connections) {
            return Err(ConfigError("database-connections must be 4 to 500".into()));
        }
        let database_layout = flags
            .database_layout
            .or(file.database_layout)
            .unwrap_or_default();
        if database_layout == DatabaseLayout::Citus && database_url.starts_with("sqlite:") {
            return Err(ConfigError(
                "database-layout citus needs a database-url that begins with `postgres://`".into(),
            ));
        }
        let master_key = flags.master_key.or(file.master_key);
        if master_key
            .as_ref()
            .is_some_and(|key| !sealing::is_master_key(key))
        {
            return Err(ConfigError(sealing::MASTER_KEY_FORM.into()));
        }
        let bus = flags.bus.or(file.bus);
        if bus
            .as_ref()
            .is_some_and(|bus| !bus.starts_with("nats://") && !bus.starts_with("tls://"))
        {
            return Err(ConfigError(
                "bus must begin with `nats://` or `tls://`".into(),
            ));
        }
        let tls = match (
            flags.tls_cert.or(file.tls_cert),
            flags.tls_key.or(file.tls_key),
        ) {
            (Some(cert), Some(key)) => Some(TlsFiles { cert, key }),
            (None, None) => None,
            (Some(_), None) => {
                return Err(ConfigError(
                    "tls-cert is set without tls-key; set both or neither".into(),
                ));
            }
            (None, Some(_)) => {
                return Err(ConfigError(
                    "tls-key is set without tls-cert; set both or neither".into(),
                ));
            }
        };
        let client_certificates = flags
            .client_certificates
            .or(file.client_certificates)
            .unwrap_or_default();
        if client_certificates != ClientCertificates::Off && tls.is_none() {
            let message = "client-certificates needs tls-cert and tls-key, because TLS must end at the service; \
                           set them, or set client-certificates to off";
            return Err(ConfigError(message.into()));
        }
        let limit = flags
            .upload_limit_per_minute
            .or(file.upload_limit_per_minute)
            .unwrap_or(100);
        if limit == 0 {
            return Err(ConfigError(
                "upload-limit-per-minute must be 1 or more".into(),
            ));
        }
        let uploads_per_commit = flags
            .uploads_per_commit
            .or(file.uploads_per_commit)
            .unwrap_or(1024);
        if !(1..=4096).contains(&uploads_per_commit) {
            return Err(ConfigError("uploads-per-commit must be 1 to 4096".into()));
        }
        let hubs_per_tenant = flags
            .hubs_per_tenant
            .or(file.hubs_per_tenant)
            .unwrap_or(10_000);
        if hubs_per_tenant == 0 {
            return Err(ConfigError("hubs-per-tenant must be 1 or more".into()));
        }
        let streams_per_tenant = flags
            .streams_per_tenant
            .or(file.streams_per_tenant)
            .unwrap_or(500);
        if streams_per_tenant == 0 {
            return Err(ConfigError("streams-per-tenant must be 1 or more".into()));
        }
        let body_memory_mib = flags
            .body_memory_mib
            .or(file.body_memory_mib)
            .unwrap_or(256);
        if !(128..=65_536).contains(&body_memory_mib) {
            return Err(ConfigError("body-memory-mib must be 128 to 65536".into()));
        }
        let script_processes = flags.script_processes.or(file.script_processes);
        let script_processes = script_processes.unwrap_or_else(default_script_processes);
        if !(2..=256).contains(&script_processes) {
            return Err(ConfigError("script-processes must be 2 to 256".into()));
        }
        let delivery_slots = flags
            .delivery_slots
            .or(file.delivery_slots)
            .unwrap_or(DEFAULT_DELIVERY_SLOTS);
        if !(4..=4096).contains(&delivery_slots) {
            return Err(ConfigError("delivery-slots must be 4 to 4096".into()));
        }
        let oidc = oidc(
            flags.oidc_issuer.or(file.oidc_issuer),
            flags.oidc_audience.or(file.oidc_audience),
            flags.oidc_client_id.or(file.oidc_client_id),
            flags.oidc_client_secret.or(file.oidc_client_secret),
            flags
                .oidc_administrator_claim
                .or(file.oidc_administrator_claim),
        )?;
        let builtin_login = flags.builtin_login.or(file.builtin_login).unwrap_or(true);
        if !builtin_login && oidc.is_none() {
            let message = "builtin-login = false needs oidc-issuer: nobody could log in otherwise; set oidc-issuer";
            return Err(ConfigError(message.into()));
        }
        let mail = mail(
            flags.smtp_url.or(file.smtp_url),
            flags.mail_from.or(file.mail_from),
        )?;
        let collector = collector(
            flags.otlp_endpoint.or(file.otlp_endpoint),
            flags.otlp_headers.or(file.otlp_headers),
            flags.trace_ratio.or(file.trace_ratio),
        )?;
        let billing = billing(
            flags.billing_url.or(file.billing_url),
            flags.billing_token.or(file.billing_token),
        )?;
        let vulnerability_mirror =
            vulnerability_mirror(flags.vulnerability_mirror.or(file.vulnerability_mirror))?;
        let partner_projects_secret = partner_projects_secret(
            flags
                .partner_projects_secret
                .or(file.partner_projects_secret),
        )?;
        let public_url = flags.public_url.or(file.public_url);
        if public_url
            .as_ref()
            .is_some_and(|url| !url.starts_with("http://") && !url.starts_with("https://"))
        {
            return Err(ConfigError(
                "public-url must begin with `http://` or `https://`".into(),
            ));
        }
        let security_contact = uri(
            "security-contact",
            flags.security_contact.or(file.security_contact),
            &["mailto:", "https://"],
        )?;
        let security_policy = uri(
            "security-policy",
            flags.security_policy.or(file.security_policy),
            &["https://"],
        )?;
        let files = files(flags.files.or(file.files).as_deref(), &data_dir)?;
        let release_keys = flags
            .release_keys
            .or(file.release_keys)
            .unwrap_or_else(|| data_dir.join("release-keys"));
        Ok(Self {
            listen: flags
                .listen
                .or(file.listen)
                .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8080))),
            database_url: database_url.into(),
            database_connections,
            database_layout,
            data_dir,
            public_url: public_url.map(|url| url.trim_end_matches('/').to_owned()),
            security_contact,
            security_policy,
            bus: bus.map(SecretString::from),
            tls,
            client_certificates,
            master_key: master_key.map(SecretString::from),
            upload_limit_per_minute: i64::from(limit),
            uploads_per_commit,
            hubs_per_tenant: i64::from(hubs_per_tenant),
            streams_per_tenant: i64::from(streams_per_tenant),
            stream_times: StreamTimes::default(),
            hub_reports_per_minute: HUB_REPORTS_PER_MINUTE,
            body_memory_bytes: (body_memory_mib as usize) << 20,
            script_processes,
            delivers: true,
            delivery_slots,
            scripts_without_seccomp: flags
                .scripts_without_seccomp
                .or(file.scripts_without_seccomp)
                .unwrap_or(false),
            metrics: metrics_access(
                flags.metrics_listen.or(file.metrics_listen),
                flags.metrics_token.or(file.metrics_token),
            )?,
            script_program: PathBuf::from(OWN_PROGRAM),
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
            password_cost: PasswordCost::default(),
            builtin_login,
            require_approval: flags
                .require_approval
                .or(file.require_approval)
                .unwrap_or(false),
            registration: flags.registration.or(file.registration).unwrap_or_default(),
            second_factor: flags
                .second_factor
                .or(file.second_factor)
                .unwrap_or_default(),
            oidc,
            mail,
            collector,
            billing,
            vulnerability_mirror,
            partner_projects_secret,
            dev_endpoints: flags.dev_endpoints.or(file.dev_endpoints).unwrap_or(false),
            cors_origins: origins(
                flags
                    .cors_origins
                    .or(file.cors_origins)
                    .as_deref()
                    .unwrap_or_default(),
            )?,
            trusted_proxies: networks(
                flags
                    .trusted_proxies
                    .or(file.trusted_proxies)
                    .as_deref()
                    .unwrap_or_default(),
            )?,
            files,
            release_keys,
            outgoing: OutgoingConfig {
                allow_private_targets: flags
                    .allow_private_targets
                    .or(file.allow_private_targets)
                    .unwrap_or_default(),
                resolver: flags.resolver.or(file.resolver),
                ca: flags.outgoing_ca.or(file.outgoing_ca),
                proxy: outgoing_proxy(flags.outgoing_proxy.or(file.outgoing_proxy))?,
            },
            retention,
            history_after,
            history_group_events: hub_history::GROUP_EVENTS,
            quotas,
            storage_reserve_bytes: flags
                .storage_reserve_bytes
                .or(file.storage_reserve_bytes)
                .unwrap_or(DEFAULT_RESERVE_BYTES),
            backup,
            log: flags.log.or(file.log),
            log_format: flags.log_format.or(file.log_format).unwrap_or_default(),
            access_log: access_log(
                flags
                    .access_log
                    .or(file.access_log)
                    .as_deref()
                    .unwrap_or("off"),
            )?,
        })
    }
}

/// The parts of a comma-separated list.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

// Errors do not repeat the values: they may come from the file, see `file`.

fn origins(text: &str) -> Result<Vec<HeaderValue>, ConfigError> {
    let origin = |(number, part): (usize, &str)| {
        let url = reqwest::Url::parse(part)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"));
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
        let network = part
            .parse::<IpNet>()
            .or_else(|_| part.parse::<IpAddr>().map(IpNet::from));
        network.map_err(|_| {
            ConfigError(format!(
                "trusted-proxies must list networks such as 10.0.0.0/8; number {number} is none"
            ))
        })
    };
    (1..).zip(parts(text)).map(network).collect()
}

/// Parses a duration such as `90s`, `15m`, `24h` or `30d`: the flag, else what the file contains.
fn lifetime(key: &str, flag: Option<&str>, filed: &str) -> Result<Duration, ConfigError> {
    let text = flag.unwrap_or(filed);
    let units = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)];
    let found = units
        .into_iter()
        .find_map(|(unit, secs)| Some((text.trim().strip_suffix(unit)?, secs)));
    match found.map(|(number, unit_secs)| (number.parse::<u32>(), unit_secs)) {
        Some((Ok(number @ 1..=100_000), unit_secs)) => {
            Ok(Duration::from_secs(u64::from(number) * unit_secs))
        }
        _ => {
            let given = flag
                .map(|flag| format!(", not `{flag}`"))
                .unwrap_or_default();
            Err(ConfigError(format!(
                "{key} must be a number and a unit, such as 90s, 15m, 24h or 30d{given}"
            )))
        }
    }
}

#[cfg(test)]
mod tests;
