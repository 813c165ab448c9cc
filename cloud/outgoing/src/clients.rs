//! The clients that calls are made with: one for all receivers, and one for each TLS of a
//! receiver's own. They are made again after the trusted authorities of this machine have changed.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hub_trust::FilesNow;
use reqwest::Client;
use reqwest::redirect::Policy;
use rustls::ClientConfig;

use super::failure::{CallError, CallErrorKind};
use super::names::{JudgedNames, Names};
use super::tls::{self, OwnTls};

const MAX_IDLE_EACH_HOST: usize = 8;
const IDLE_FOR: Duration = Duration::from_secs(30);
pub const MAX_ANSWER_HEADERS: usize = 64;
const MAX_ANSWER_HEADER_BYTES: u32 = 16 * 1024;
pub const USER_AGENT: &str = concat!("hub-cloud/", env!("CARGO_PKG_VERSION"));

/// How often the files of the authorities are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Clients of receivers with a TLS of their own; the one that was used longest ago ends.
const MAX_OWN: usize = 256;

#[derive(Clone)]
pub struct Clients {
    pub http: Client,
    pub tls: Arc<ClientConfig>,
}

/// Makes clients when a call needs them: to read the authorities of the system takes a while, and
/// most commands make no calls.
pub struct ClientCache {
    names: Names,
    ca: Option<PathBuf>,
    made: Mutex<Made>,
}

#[derive(Default)]
struct Made {
    shared: Option<Clients>,
    own: HashMap<Vec<u8>, (Instant, Clients)>,
    /// The authorities that they trust.
    files: Option<FilesNow>,
    looked_at: Option<Instant>,
}

impl ClientCache {
    pub fn new(names: Names, ca: Option<PathBuf>) -> Self {
        Self {
            names,
            ca,
            made: Mutex::default(),
        }
    }

    pub fn get(&self, own: Option<&OwnTls>) -> Result<Clients, CallError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        self.follow_files(&mut made);
        let Some(own) = own else {
            if made.shared.is_none() {
                made.shared = Some(self.make(None).map_err(unusable)?);
            }
            return made.shared.clone().ok_or_else(|| unusable(String::new()));
        };
        if let Some((used_at, clients)) = made.own.get_mut(own.fingerprint()) {
            *used_at = Instant::now();
            return Ok(clients.clone());
        }
        let clients = self.make(Some(own)).map_err(unusable)?;
        if made.own.len() >= MAX_OWN {
            let oldest = made.own.iter().min_by_key(|(_, (used_at, _))| *used_at);
            if let Some(oldest) = oldest.map(|(fingerprint, _)| fingerprint.clone()) {
                made.own.remove(&oldest);
            }
        }
        let entry = (Instant::now(), clients.clone());
        made.own.insert(own.fingerprint().to_vec(), entry);
        Ok(clients)
    }

    /// Forgets the clients if the authorities have changed. Files that cannot be used, as in the
    /// midst of their update, change nothing yet.
    fn follow_files(&self, made: &mut Made) {
        if made.looked_at.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return;
        }
        made.looked_at = Some(Instant::now());
        let files = FilesNow::of_authorities(self.ca.as_deref());
        match &made.files {
            None => made.files = Some(files),
            Some(known) if *known == files => {}
            Some(_) => match self.make(None) {
                Ok(clients) => {
                    tracing::info!("the trusted authorities have changed and are read again");
                    *made = Made {
                        shared: Some(clients),
                        files: Some(files),
                        looked_at: made.looked_at,
                        own: HashMap::new(),
                    };
                }
                Err(error) => {
                    tracing::warn!(error, "the trusted authorities cannot be read again");
                }
            },
        }
    }

    fn make(&self, own: Option<&OwnTls>) -> Result<Clients, String> {
        let authorities = tls::authorities(self.ca.as_deref())?;
        let tls = tls::client_config(&authorities, own).map_err(|error| error.to_string())?;
        let mut https = tls.clone();
        https.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let http = Client::builder()
            .tls_backend_preconfigured(https)
            .dns_resolver(JudgedNames(self.names.clone()))
            .no_proxy()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .user_agent(USER_AGENT)
            .pool_max_idle_per_host(MAX_IDLE_EACH_HOST)
            .pool_idle_timeout(IDLE_FOR)
            .http1_max_headers(MAX_ANSWER_HEADERS)
            .http2_max_header_list_size(MAX_ANSWER_HEADER_BYTES)
            .tcp_nodelay(true)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Clients {
            http,
            tls: Arc::new(tls),
        })
    }
}

fn unusable(error: String) -> CallError {
    tracing::error!(error, "calls to addresses of tenants are not possible");
    CallError::new(CallErrorKind::Tls, "the service cannot verify certificates")
}
