//! The settings as they are given: flags, environment, file.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use clap::Args;
use hub_outgoing::PrivateTargets;
use serde::Deserialize;

use super::{
    ClientCertificates, DatabaseLayout, LogFormat, RegistrationPolicy, SecondFactorPolicy,
};

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
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_DATABASE_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub database_url: Option<String>,

    /// Connections to PostgreSQL that a replica keeps for requests and work, and 4 more for
    /// reading in the background [default: 20]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_DATABASE_CONNECTIONS",
        value_name = "COUNT",
        allow_negative_numbers = true
    )]
    pub database_connections: Option<u32>,

    /// How PostgreSQL keeps the tables: `plain`, or `citus` for a cluster of Citus [default: plain]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_DATABASE_LAYOUT",
        value_name = "LAYOUT"
    )]
    pub database_layout: Option<DatabaseLayout>,

    /// Directory of the keys, the SQLite database and release files [default: hub-cloud-data]
    #[arg(long, global = true, env = "HUB_CLOUD_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// URL at which clients reach the service, if it differs from the listening address
    #[arg(long, global = true, env = "HUB_CLOUD_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,

    /// Where vulnerabilities are reported, for `/.well-known/security.txt`:
    /// `mailto:security@example.com`, or an https URL
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_SECURITY_CONTACT",
        value_name = "URI"
    )]
    pub security_contact: Option<String>,

    /// The https URL of the policy for such reports
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_SECURITY_POLICY",
        value_name = "URL"
    )]
    pub security_policy: Option<String>,

    /// Bus between replicas, `nats://HOST:PORT`; a single replica needs none
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_BUS",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub bus: Option<String>,

    /// PEM file with the certificate chain; enables HTTPS, together with tls-key
    #[arg(long, global = true, env = "HUB_CLOUD_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// PEM file with the private key of the certificate
    #[arg(long, global = true, env = "HUB_CLOUD_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// Whether hubs authenticate with a client certificate as well; needs tls-cert [default: off]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_CLIENT_CERTIFICATES",
        value_name = "WHEN"
    )]
    pub client_certificates: Option<ClientCertificates>,

    /// Master key that seals the secrets in the database: 64 hex digits, or several such keys
    /// separated by commas (the first seals, all open). Replicas share it [default: master.key in
    /// the data directory]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_MASTER_KEY",
        hide_env_values = true,
        value_name = "HEX"
    )]
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
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_HUBS_PER_TENANT",
        value_name = "COUNT",
        allow_negative_numbers = true
    )]
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

    /// Memory in MiB for the bodies of requests and responses that are in progress; more are
    /// refused until there is room [default: 256]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_BODY_MEMORY_MIB",
        value_name = "MIB",
        allow_negative_numbers = true
    )]
    pub body_memory_mib: Option<u32>,

    /// Processes that run scripts of tenants at a time, 2 at least; a tenant uses at most half
    /// [default: one for each processor]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_SCRIPT_PROCESSES",
        value_name = "COUNT",
        allow_negative_numbers = true
    )]
    pub script_processes: Option<usize>,

    /// Whether scripts of tenants run where the kernel does not filter their system calls
    /// [default: false]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_SCRIPTS_WITHOUT_SECCOMP",
        value_name = "BOOL",
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub scripts_without_seccomp: Option<bool>,

    /// Address of a listener of its own for `/metrics`, without TLS, such as 127.0.0.1:9100
    /// [default: `/metrics` is served with everything else]
    #[arg(long, global = true, env = "HUB_CLOUD_METRICS_LISTEN", value_name = "ADDRESS", value_parser = listen_address)]
    #[serde(default, deserialize_with = "listen_address_of_file")]
    pub metrics_listen: Option<SocketAddr>,

    /// Token that `/metrics` requires, as `Authorization: Bearer ...`
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_METRICS_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub metrics_token: Option<String>,

    /// Messages of pipelines that this replica works on at a time; a tenant has at most a quarter
    /// of them [default: 128]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_DELIVERY_SLOTS",
        value_name = "COUNT",
        allow_negative_numbers = true
    )]
    pub delivery_slots: Option<usize>,

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
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_REGISTRATION",
        value_name = "WHO"
    )]
    pub registration: Option<RegistrationPolicy>,

    /// Who needs a second factor to log in with e-mail and password [default: optional]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_SECOND_FACTOR",
        value_name = "WHO"
    )]
    pub second_factor: Option<SecondFactorPolicy>,

    /// Whether changes that tenants make to their supplier OAuth configuration wait until the
    /// platform approves them [default: false]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_REQUIRE_APPROVAL",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub require_approval: Option<bool>,

    /// OpenID Connect issuer whose access tokens are accepted as well, such as
    /// https://login.example.com
    #[arg(long, global = true, env = "HUB_CLOUD_OIDC_ISSUER", value_name = "URL")]
    pub oidc_issuer: Option<String>,

    /// Required audience of the issuer's tokens; required with oidc-issuer
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_OIDC_AUDIENCE",
        value_name = "TEXT"
    )]
    pub oidc_audience: Option<String>,

    /// Client id of the service at the issuer, so that people can sign in with a browser
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_OIDC_CLIENT_ID",
        value_name = "TEXT"
    )]
    pub oidc_client_id: Option<String>,

    /// Secret of that client, if the issuer gave the service one
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_OIDC_CLIENT_SECRET",
        hide_env_values = true,
        value_name = "SECRET"
    )]
    pub oidc_client_secret: Option<String>,

    /// Claim of the issuer's tokens, and the value of it, that make a person a platform
    /// administrator, such as `realm_access.roles=hub-administrators`; a dot selects a member of an
    /// object [default: nobody of the issuer's people is one]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_OIDC_ADMINISTRATOR_CLAIM",
        value_name = "CLAIM=VALUE"
    )]
    pub oidc_administrator_claim: Option<String>,

    /// Mail server, `smtp://USER:PASSWORD@HOST:PORT?tls=required` or `smtps://...` [default: none,
    /// no mail is sent]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_SMTP_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub smtp_url: Option<String>,

    /// Sender of mail, such as `Hubs <hubs@example.com>`; required with smtp-url
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_MAIL_FROM",
        value_name = "ADDRESS"
    )]
    pub mail_from: Option<String>,

    /// Collector that gets traces and metrics (OTLP over HTTP), such as http://127.0.0.1:4318
    /// [default: none]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_OTLP_ENDPOINT",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub otlp_endpoint: Option<String>,

    /// Headers for the collector, `NAME=VALUE`, separated by commas
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_OTLP_HEADERS",
        hide_env_values = true,
        value_name = "HEADERS"
    )]
    pub otlp_headers: Option<String>,

    /// Share of traces that the collector gets, from 0 to 1 [default: 0.01]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_TRACE_RATIO",
        value_name = "SHARE",
        allow_negative_numbers = true
    )]
    pub trace_ratio: Option<f64>,

    /// Billing service that `/tenant/billing` asks, such as https://billing.example.com [default:
    /// none]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_BILLING_URL",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub billing_url: Option<String>,

    /// Bearer token for the billing service
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_BILLING_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub billing_token: Option<String>,

    /// Mirror of advisories that `vulnerabilities update` fetches from, with `Debian/all.zip` and
    /// `known_exploited_vulnerabilities.json` below it [default: none]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_VULNERABILITY_MIRROR",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub vulnerability_mirror: Option<String>,

    /// Secret of 16 bytes or more that the partner signs its messages about projects with [default:
    /// none, there are no projects]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_PARTNER_PROJECTS_SECRET",
        hide_env_values = true,
        value_name = "SECRET"
    )]
    pub partner_projects_secret: Option<String>,

    /// Whether `/dev` is there, for platform administrators of a service under development
    #[arg(long, global = true, env = "HUB_CLOUD_DEV_ENDPOINTS", value_name = "BOOL", num_args = 0..=1,
        default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub dev_endpoints: Option<bool>,

    /// Origins allowed to call the service from a browser (CORS), separated by commas, such as
    /// https://console.example.com [default: none]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_CORS_ORIGINS",
        value_name = "ORIGINS"
    )]
    pub cors_origins: Option<String>,

    /// Networks of proxies whose `X-Forwarded-For` is trusted, separated by commas, such as
    /// 10.0.0.0/8 [default: none]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_TRUSTED_PROXIES",
        value_name = "NETWORKS"
    )]
    pub trusted_proxies: Option<String>,

    /// Store of release files: `file:///DIR`, or `s3://BUCKET/PREFIX` with credentials from the
    /// usual AWS_* variables. Replicas share it [default: files in the data directory]
    #[arg(long, global = true, env = "HUB_CLOUD_FILES", value_name = "URL")]
    pub files: Option<String>,

    /// Directory of the minisign public keys that verify releases: agent/*.pub and app/*.pub
    /// [default: release-keys in the data directory]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_RELEASE_KEYS",
        value_name = "DIR"
    )]
    pub release_keys: Option<PathBuf>,

    /// Whether calls to addresses that tenants choose may go to this machine and to private
    /// networks: `true` for development, or networks such as 10.2.0.0/16, separated by commas
    #[arg(long, global = true, env = "HUB_CLOUD_ALLOW_PRIVATE_TARGETS", value_name = "BOOL|NETWORKS", num_args = 0..=1,
        default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    #[serde(default, deserialize_with = "private_targets_of_file")]
    pub allow_private_targets: Option<PrivateTargets>,

    /// Name server for the addresses that tenants choose, `ADDRESS:PORT` [default: those of the
    /// system]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_RESOLVER",
        value_name = "ADDRESS"
    )]
    pub resolver: Option<SocketAddr>,

    /// PEM file of certificate authorities that calls to addresses of tenants trust beside those of
    /// the system
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_OUTGOING_CA",
        value_name = "FILE"
    )]
    pub outgoing_ca: Option<PathBuf>,

    /// HTTP proxy of these calls, such as http://proxy.example.com:3128
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_OUTGOING_PROXY",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub outgoing_proxy: Option<String>,

    /// How long BLE events are kept, such as 30d [default: 30d]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_BLE_RETENTION",
        value_name = "DURATION",
        allow_hyphen_values = true
    )]
    pub ble_retention: Option<String>,

    /// How long after its end a day of BLE events moves from the database to Parquet files in
    /// `files`, such as 7d; `off` moves none [default: off]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_HISTORY_AFTER",
        value_name = "DURATION",
        allow_hyphen_values = true
    )]
    pub history_after: Option<String>,

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
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_LOG_RETENTION",
        value_name = "DURATION",
        allow_hyphen_values = true
    )]
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

    /// How long deliveries are kept after they ended, such as registration events [default: 7d]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_DELIVERY_RETENTION",
        value_name = "DURATION",
        allow_hyphen_values = true
    )]
    pub delivery_retention: Option<String>,

    /// How long entries of the audit log are kept, at least 1d [default: 400d]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_AUDIT_RETENTION",
        value_name = "DURATION",
        allow_hyphen_values = true
    )]
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

    /// Where backups go: a directory, or `s3://BUCKET/PREFIX` with credentials from the usual AWS_*
    /// variables; the service makes one whenever it is due [default: none]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_BACKUP_TO",
        value_name = "DIR|URL"
    )]
    pub backup_to: Option<String>,

    /// The interval of backups to backup-to, at least 1m [default: 24h]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_BACKUP_EVERY",
        value_name = "DURATION",
        allow_hyphen_values = true
    )]
    pub backup_every: Option<String>,

    /// Backups that are kept at backup-to [default: 7]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_BACKUP_KEEP",
        value_name = "COUNT",
        allow_negative_numbers = true
    )]
    pub backup_keep: Option<u32>,

    /// File whose first line is the passphrase, 12 characters or more, that the master keys in
    /// backups are sealed with [default: none, scheduled backups are without the keys]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_BACKUP_PASSPHRASE_FILE",
        value_name = "FILE"
    )]
    pub backup_passphrase_file: Option<PathBuf>,

    /// Log level: error, warn, info, debug, or a filter such as hub=debug [default: info for
    /// the service, warn for its libraries and for other commands]
    #[arg(long, global = true, env = "HUB_CLOUD_LOG", value_name = "FILTER")]
    pub log: Option<String>,

    /// Format of all lines of the log [default: auto]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_LOG_FORMAT",
        value_name = "FORMAT"
    )]
    pub log_format: Option<LogFormat>,

    /// Requests to log: off, errors (4xx and 5xx), all, or a share such as 0.01, to which every 5xx
    /// is added [default: off]
    #[arg(
        long,
        global = true,
        env = "HUB_CLOUD_ACCESS_LOG",
        value_name = "WHICH"
    )]
    pub access_log: Option<String>,
}

/// An address and a port, or a host name and a port. Of several addresses the first of IPv4 is
/// used: `localhost` is 127.0.0.1.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let resolved = text.to_socket_addrs().map_err(|_| {
        "must be an address or host name of this machine, and a port, such as 127.0.0.1:8080"
            .to_owned()
    })?;
    let addresses: Vec<SocketAddr> = resolved.collect();
    let first = addresses
        .iter()
        .find(|address| address.is_ipv4())
        .or_else(|| addresses.first());
    first.copied().ok_or_else(|| "has no address".to_owned())
}

fn private_targets_of_file<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<PrivateTargets>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        All(bool),
        Text(String),
        List(Vec<String>),
    }
    let refused = |_| {
        let message = "must be true, false, or a list of networks such as 10.2.0.0/16";
        serde::de::Error::custom(message)
    };
    match Given::deserialize(deserializer).map_err(refused)? {
        Given::All(all) => Ok(Some(all.into())),
        Given::Text(text) => text.parse().map(Some).map_err(serde::de::Error::custom),
        Given::List(list) => {
            let parsed = list.join(",").parse();
            parsed.map(Some).map_err(serde::de::Error::custom)
        }
    }
}

fn listen_address_of_file<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    listen_address(&text)
        .map(Some)
        .map_err(|error| serde::de::Error::custom(format!("listen {error}")))
}
