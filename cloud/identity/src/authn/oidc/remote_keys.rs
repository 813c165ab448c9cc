//! A cache of the issuer's keys and of its discovery document. A request with a known key never
//! waits for the issuer: expired keys are fetched again in the background, and the old ones remain
//! in use while the issuer is unreachable. Only an unknown `kid` waits, briefly, for one fetch that
//! all such requests share.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use super::discovery::{self, Discovery};
use super::key_set::KeySet;

/// The shortest time from the end of one fetch to the next, so that unknown `kid`s cause few
/// fetches.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// How long a request waits for a fetch.
const FETCH_WAIT: Duration = Duration::from_secs(3);
/// The bounds of the cache lifetime that the issuer announces.
const LIFETIME_BOUNDS: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(5 * 60)..=Duration::from_secs(24 * 3600);
const DEFAULT_LIFETIME: Duration = Duration::from_secs(15 * 60);

#[derive(Clone)]
pub struct RemoteKeys(Arc<Inner>);

struct Inner {
    issuer: String,
    http: reqwest::Client,
    cached: RwLock<Cached>,
    /// Held during a fetch, so that there is only one.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Cached {
    keys: Arc<KeySet>,
    discovery: Option<Arc<Discovery>>,
    /// Increases whenever a key is withdrawn. Tokens verified before that must be verified again.
    generation: u64,
    fresh_until: Option<Instant>,
    attempted_at: Option<Instant>,
    has_failed: bool,
}

/// The result of looking up a key.
pub enum Lookup {
    Keys(Arc<KeySet>, u64),
    /// The issuer has no such key.
    Unknown,
    /// The issuer could not be reached.
    Unreachable,
}

impl RemoteKeys {
    pub fn new(issuer: String, http: reqwest::Client) -> Self {
        Self(Arc::new(Inner {
            issuer,
            http,
            cached: RwLock::default(),
            fetching: tokio::sync::Mutex::default(),
        }))
    }

    pub fn generation(&self) -> u64 {
        self.0.read().generation
    }

    /// Fetches the keys once and does not cache them.
    pub async fn try_out(&self) -> Result<(), String> {
        self.0.fetch_keys().await.map(drop)
    }

    /// The keys, if they contain `kid`.
    pub async fn lookup(&self, kid: &str) -> Lookup {
        let (is_known, is_stale, was_just_tried) = {
            let cached = self.0.read();
            (
                cached.keys.has(kid),
                cached.is_stale(),
                cached.was_just_tried(),
            )
        };
        let mut has_result = true;
        if !is_known && !was_just_tried {
            has_result = tokio::time::timeout(FETCH_WAIT, self.fetch()).await.is_ok();
        } else if is_stale && !was_just_tried && self.0.fetching.try_lock().is_ok() {
            drop(self.fetch());
        }
        let cached = self.0.read();
        match cached.keys.has(kid) {
            true => Lookup::Keys(cached.keys.clone(), cached.generation),
            false if cached.has_failed || !has_result => Lookup::Unreachable,
            false => Lookup::Unknown,
        }
    }

    /// The discovery document; `None` while it was never fetched.
    pub async fn discovery(&self) -> Option<Arc<Discovery>> {
        let (is_known, is_stale, was_just_tried) = {
            let cached = self.0.read();
            (
                cached.discovery.is_some(),
                cached.is_stale(),
                cached.was_just_tried(),
            )
        };
        if !is_known && !was_just_tried {
            // What was fetched by then counts.
            let _ = tokio::time::timeout(FETCH_WAIT, self.fetch()).await;
        } else if is_stale && !was_just_tried && self.0.fetching.try_lock().is_ok() {
            drop(self.fetch());
        }
        self.0.read().discovery.clone()
    }

    /// Fetches the keys, unless that was tried a moment ago. It runs as a task of its own, so that
    /// a request that stops waiting does not cancel the fetch.
    pub fn fetch(&self) -> tokio::task::JoinHandle<()> {
        let inner = self.0.clone();
        tokio::spawn(async move {
            if inner.read().was_just_tried() {
                return;
            }
            let _guard = inner.fetching.lock().await;
            // The previous holder of the lock may have fetched the keys.
            if !inner.read().was_just_tried() {
                inner.fetch().await;
            }
        })
    }
}

impl Cached {
    fn was_just_tried(&self) -> bool {
        self.attempted_at
            .is_some_and(|at| at.elapsed() < RETRY_INTERVAL)
    }

    fn is_stale(&self) -> bool {
        self.fresh_until.is_none_or(|until| until <= Instant::now())
    }
}

impl Inner {
    fn read(&self) -> RwLockReadGuard<'_, Cached> {
        self.cached.read().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(&self) {
        let fetched = self.fetch_keys().await;
        let mut cached = self.cached.write().unwrap_or_else(PoisonError::into_inner);
        cached.attempted_at = Some(Instant::now());
        let had_failed = std::mem::replace(&mut cached.has_failed, fetched.is_err());
        match fetched {
            Ok((keys, discovery, lifetime)) => {
                if !keys.covers(&cached.keys) {
                    cached.generation += 1;
                }
                cached.keys = Arc::new(keys);
                cached.discovery = Some(Arc::new(discovery));
                cached.fresh_until = Some(Instant::now() + lifetime);
                if had_failed {
                    tracing::warn!(issuer = self.issuer, "the issuer's keys were fetched again");
                }
            }
            // An outage is one fact: its first failure and its end are logged.
            Err(error) if !had_failed => {
                tracing::warn!(
                    issuer = self.issuer,
                    error,
                    "cannot fetch the issuer's keys; the cached ones remain in use"
                );
            }
            Err(error) => tracing::debug!(
                issuer = self.issuer,
                error,
                "still cannot fetch the issuer's keys"
            ),
        }
    }

    async fn fetch_keys(&self) -> Result<(KeySet, Discovery, Duration), String> {
        // Discovered for each fetch, since the URL of the keys may change.
        let discovery = discovery::discover(&self.http, &self.issuer).await?;
        let url = discovery::endpoint(&self.issuer, &discovery.jwks_uri)?;
        let fetched = discovery::get(&self.http, url.as_str()).await?;
        let keys = KeySet::parse(&fetched.body).map_err(|reason| format!("{url}: {reason}"))?;
        let lifetime = fetched
            .max_age
            .unwrap_or(DEFAULT_LIFETIME)
            .clamp(*LIFETIME_BOUNDS.start(), *LIFETIME_BOUNDS.end());
        Ok((keys, discovery, lifetime))
    }
}
