//! The issuer's keys, as they were last fetched. A key that is known never waits for the issuer: keys past their time are fetched anew beside the requests, and while the issuer is
//! away the old ones go on serving. Only an unknown `kid` waits, briefly, for one fetch that all who need it share.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use super::discovery;
use super::key_set::KeySet;

/// Between the end of one fetch and the next: unknown `kid`s cost no more than this.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Longest that a request waits for a fetch.
const PATIENCE: Duration = Duration::from_secs(3);
/// The issuer says how long its keys may be kept, within these bounds.
const KEEP: std::ops::RangeInclusive<Duration> = Duration::from_secs(5 * 60)..=Duration::from_secs(24 * 3600);
const KEEP_UNLESS_TOLD: Duration = Duration::from_secs(15 * 60);

#[derive(Clone)]
pub struct RemoteKeys(Arc<Inner>);

struct Inner {
    issuer: String,
    http: reqwest::Client,
    held: RwLock<Held>,
    /// Held by the one fetch there is.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Held {
    keys: Arc<KeySet>,
    /// Counts up whenever a key is no longer there: what was checked before has to be checked again.
    generation: u64,
    fresh_until: Option<Instant>,
    attempted_at: Option<Instant>,
    has_failed: bool,
}

/// The keys to check a token with.
pub enum Answer {
    Keys(Arc<KeySet>, u64),
    /// The issuer does not have the key.
    Unknown,
    /// The issuer could not be asked.
    Unreachable,
}

impl RemoteKeys {
    pub fn new(issuer: String, http: reqwest::Client) -> Self {
        Self(Arc::new(Inner { issuer, http, held: RwLock::default(), fetching: tokio::sync::Mutex::default() }))
    }

    pub fn generation(&self) -> u64 {
        self.0.read().generation
    }

    /// Fetches once, and keeps nothing.
    pub async fn try_out(&self) -> Result<(), String> {
        self.0.fetch_keys().await.map(drop)
    }

    /// Keys with `kid` among them.
    pub async fn with(&self, kid: &str) -> Answer {
        let (is_known, is_stale, was_just_tried) = {
            let held = self.0.read();
            (held.keys.has(kid), held.is_stale(), held.was_just_tried())
        };
        let mut is_told = true;
        if !is_known && !was_just_tried {
            is_told = tokio::time::timeout(PATIENCE, self.fetch()).await.is_ok();
        } else if is_stale && !was_just_tried && self.0.fetching.try_lock().is_ok() {
            drop(self.fetch());
        }
        let held = self.0.read();
        match held.keys.has(kid) {
            true => Answer::Keys(held.keys.clone(), held.generation),
            false if held.has_failed || !is_told => Answer::Unreachable,
            false => Answer::Unknown,
        }
    }

    /// Fetches the keys, unless that was tried just now. In a task of its own: whoever stops waiting does not stop the fetch.
    pub fn fetch(&self) -> tokio::task::JoinHandle<()> {
        let inner = self.0.clone();
        tokio::spawn(async move {
            if inner.read().was_just_tried() {
                return;
            }
            let _turn = inner.fetching.lock().await;
            // Whoever had the turn before may have done it.
            if !inner.read().was_just_tried() {
                inner.fetch().await;
            }
        })
    }
}

impl Held {
    fn was_just_tried(&self) -> bool {
        self.attempted_at.is_some_and(|at| at.elapsed() < RETRY_INTERVAL)
    }

    fn is_stale(&self) -> bool {
        self.fresh_until.is_none_or(|until| until <= Instant::now())
    }
}

impl Inner {
    fn read(&self) -> RwLockReadGuard<'_, Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(&self) {
        let fetched = self.fetch_keys().await;
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        held.attempted_at = Some(Instant::now());
        let had_failed = std::mem::replace(&mut held.has_failed, fetched.is_err());
        match fetched {
            Ok((keys, keep)) => {
                if !keys.covers(&held.keys) {
                    held.generation += 1;
                }
                held.keys = Arc::new(keys);
                held.fresh_until = Some(Instant::now() + keep);
                if had_failed {
                    tracing::warn!(issuer = self.issuer, "the issuer's keys can be fetched again");
                }
            }
            // An outage is one fact: its first failure is told, and its end.
            Err(error) if !had_failed => {
                tracing::warn!(
                    issuer = self.issuer,
                    error,
                    "the issuer's keys cannot be fetched; those at hand go on serving"
                );
            }
            Err(error) => tracing::debug!(issuer = self.issuer, error, "the issuer's keys still cannot be fetched"),
        }
    }

    async fn fetch_keys(&self) -> Result<(KeySet, Duration), String> {
        // Asked each time, since the keys may move.
        let discovery = discovery::discover(&self.http, &self.issuer).await?;
        let url = discovery::endpoint(&self.issuer, &discovery.jwks_uri)?;
        let fetched = discovery::get(&self.http, url.as_str()).await?;
        let keys = KeySet::parse(&fetched.body).map_err(|reason| format!("{url}: {reason}"))?;
        let keep = fetched.max_age.unwrap_or(KEEP_UNLESS_TOLD).clamp(*KEEP.start(), *KEEP.end());
        Ok((keys, keep))
    }
}
