//! Names become addresses here, and are judged: one refused address of an answer refuses the name,
//! whatever else the answer holds.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
    ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hub_trust::FilesNow;

use super::addresses::{PrivateTargets, refusal};
use super::failure::{CallError, CallErrorKind};

/// A look-up with all its tries.
const WITHIN: Duration = Duration::from_secs(5);
const TRY_WITHIN: Duration = Duration::from_millis(2_000);
/// Answers in memory.
const CACHED: u64 = 4_096;
const MAX_POSITIVE_TTL: Duration = Duration::from_secs(300);
const MAX_NEGATIVE_TTL: Duration = Duration::from_secs(30);
/// Queries that wait for one name server: those of a dead zone must not hold up all others.
const MAX_QUERIES: usize = 1_024;
/// Addresses of an answer that are tried.
const MAX_TRIED: usize = 8;
const MAX_TEXTS: usize = 64;

/// What the name servers of the system are read from, and how often it is looked at.
const SYSTEM_FILES: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Cheap to clone.
#[derive(Clone)]
pub struct Names {
    resolver: Arc<Mutex<Resolver>>,
    private: PrivateTargets,
}

struct Resolver {
    current: TokioResolver,
    /// The files of the system that it was made of; None if a server is configured.
    files: Option<FilesNow>,
    looked_at: Instant,
}

fn system_files() -> FilesNow {
    FilesNow::of(SYSTEM_FILES.map(PathBuf::from))
}

/// `server` None stands for the name servers of the system.
fn resolver(server: Option<SocketAddr>) -> Result<TokioResolver, NetError> {
    let mut builder = match server {
        Some(server) => {
            let mut config = NameServerConfig::udp_and_tcp(server.ip());
            config.connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()]
                .map(|c| on(c, server))
                .into();
            let config = ResolverConfig::from_name_servers(vec![config]);
            let mut builder =
                TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
            builder.options_mut().use_hosts_file = ResolveHosts::Never;
            builder
        }
        None => TokioResolver::builder_tokio()?,
    };
    set_options(builder.options_mut());
    builder.build()
}

fn set_options(options: &mut ResolverOpts) {
    options.timeout = TRY_WITHIN;
    options.attempts = 2;
    options.cache_size = CACHED;
    options.positive_max_ttl = Some(MAX_POSITIVE_TTL);
    options.negative_max_ttl = Some(MAX_NEGATIVE_TTL);
    options.max_active_requests = MAX_QUERIES;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.try_tcp_on_error = true;
}

impl Names {
    /// `server` None stands for the name servers of the system.
    pub fn new(server: Option<SocketAddr>, private: PrivateTargets) -> Result<Self, NetError> {
        // Before they are read: a change in between is read again.
        let files = server.is_none().then(system_files);
        let current = match resolver(server) {
            Ok(current) => current,
            Err(error) if server.is_none() => {
                tracing::warn!(
                    %error,
                    "cannot read the name servers of this machine: calls to names that tenants choose fail; set resolver"
                );
                let mut builder = TokioResolver::builder_with_config(
                    ResolverConfig::default(),
                    TokioRuntimeProvider::default(),
                );
                set_options(builder.options_mut());
                builder.build()?
            }
            Err(error) => return Err(error),
        };
        let resolver = Resolver {
            current,
            files,
            looked_at: Instant::now(),
        };
        Ok(Self {
            resolver: Arc::new(Mutex::new(resolver)),
            private,
        })
    }

    /// The resolver with the name servers of the system as they are now. Files that cannot be read,
    /// as in the midst of their change, change nothing yet.
    fn current(&self) -> TokioResolver {
        let mut known = self.resolver.lock().unwrap_or_else(PoisonError::into_inner);
        if known.files.is_some() && known.looked_at.elapsed() >= LOOK_EVERY {
            known.looked_at = Instant::now();
            let files = Some(system_files());
            if files != known.files
                && let Ok(current) = resolver(None)
            {
                tracing::info!("the name servers of this machine have changed");
                (known.current, known.files) = (current, files);
            }
        }
        known.current.clone()
    }

    /// The addresses of a name or a literal address, all of which may be called; at least one.
    pub async fn judged(&self, host: &str) -> Result<Vec<IpAddr>, CallError> {
        let found = match literal(host) {
            Some(address) => vec![address],
            None => self.addresses(host).await?,
        };
        if let Some(reason) = found
            .iter()
            .find_map(|address| refusal(*address, &self.private))
        {
            return Err(CallError::forbidden(host, reason));
        }
        Ok(found.into_iter().take(MAX_TRIED).collect())
    }

    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, CallError> {
        let name = full_name(host)?;
        let looking = tokio::time::timeout(WITHIN, self.current().lookup_ip(name)).await;
        let found = looking
            .map_err(|_| slow(host))?
            .map_err(|error| failed(host, &error))?;
        let found: Vec<IpAddr> = found.iter().collect();
        match found.is_empty() {
            true => Err(CallError::new(
                CallErrorKind::Dns,
                format!("the name {host} has no address"),
            )),
            false => Ok(found),
        }
    }

    pub async fn txt(&self, name: &str) -> Result<Vec<String>, CallError> {
        let full = full_name(name)?;
        // A missing record may just have been created.
        let resolver = self.current();
        resolver.clear_lookup_cache(full.clone(), RecordType::TXT);
        let looking = tokio::time::timeout(WITHIN, resolver.txt_lookup(full)).await;
        let found = match looking.map_err(|_| slow(name))? {
            Ok(found) => found,
            Err(error) if error.is_no_records_found() => return Ok(Vec::new()),
            Err(error) => return Err(failed(name, &error)),
        };
        let text = |data: &RData| match data {
            RData::TXT(text) => Some(String::from_utf8_lossy(&text.txt_data.concat()).into_owned()),
            _ => None,
        };
        Ok(found
            .answers()
            .iter()
            .filter_map(|record| text(&record.data))
            .take(MAX_TEXTS)
            .collect())
    }
}

/// The resolver of the HTTP client.
pub struct JudgedNames(pub Names);

impl reqwest::dns::Resolve for JudgedNames {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let names = self.0.clone();
        Box::pin(async move {
            let addresses = names.judged(name.as_str()).await?;
            let addresses: reqwest::dns::Addrs =
                Box::new(addresses.into_iter().map(|address| (address, 0).into()));
            Ok(addresses)
        })
    }
}

fn on(mut connection: ConnectionConfig, server: SocketAddr) -> ConnectionConfig {
    connection.port = server.port();
    connection
}

/// The address that a host of a URL is, if it is none that needs a name server.
pub fn literal(host: &str) -> Option<IpAddr> {
    match host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        Some(host) => host.parse().ok().map(IpAddr::V6),
        None => host.parse().ok(),
    }
}

/// Complete, so that no search domain of this machine is tried.
fn full_name(host: &str) -> Result<Name, CallError> {
    let name = Name::from_ascii(host).ok().filter(|name| !name.is_root());
    let mut name =
        name.ok_or_else(|| CallError::new(CallErrorKind::Dns, format!("{host} is no host name")))?;
    name.set_fqdn(true);
    Ok(name)
}

fn slow(host: &str) -> CallError {
    CallError::new(
        CallErrorKind::Dns,
        format!("the name {host} was not resolved in time"),
    )
}

fn failed(host: &str, error: &NetError) -> CallError {
    let message = match error {
        error if error.is_nx_domain() => format!("the name {host} does not exist"),
        error if error.is_no_records_found() => format!("the name {host} has no such record"),
        NetError::Timeout => return slow(host),
        _ => format!("the name {host} could not be resolved"),
    };
    CallError::new(CallErrorKind::Dns, message)
}
