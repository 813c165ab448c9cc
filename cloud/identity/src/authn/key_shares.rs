//! Counts requests against the limit of an API key, across replicas. The database grants the
//! requests of a minute in shares. A replica that uses a key alone gets growing shares, so that a
//! busy key costs few writes. Once another replica uses the key too, small limits are counted
//! request by request. All replicas together never allow more than the limit. A replica returns
//! granted requests that it does not use within a second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hub_base::error::{Error, Result};
use hub_core::Core;
use uuid::Uuid;

use super::key_windows::{self, Window};
use super::lease::LEASE;
use super::principal::ApiKey;

/// A share that was not used for this long is returned.
const IDLE: Duration = Duration::from_millis(500);

/// The number of keys whose requests can query the database at the same time.
const QUERY_LOCKS: usize = 64;

/// The requests that this replica may still allow, by key.
#[derive(Debug)]
pub struct Shares {
    /// Identifies this replica to the database.
    replica: Uuid,
    held: Mutex<HashMap<i64, Share>>,
    /// Serialises the queries of a key. A waiting request first checks the share that the query
    /// before it obtained, and no request is refused while another one fetches a share.
    query_locks: [tokio::sync::Mutex<()>; QUERY_LOCKS],
}

#[derive(Debug)]
struct Share {
    /// Minutes since 1970, as counted by the database.
    minute: i64,
    /// The key's limit when the share was granted.
    limit: i64,
    left: i64,
    /// Requests allowed in this minute. The size of the next share is estimated from it.
    used: i64,
    used_at: Instant,
    /// When the database last had no requests left.
    refused_at: Option<Instant>,
}

/// What to do with a request.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Allow,
    Refuse,
    /// Query the database for another share. The number is the requests allowed so far in this
    /// minute.
    Query(i64),
}

impl Shares {
    #[allow(clippy::new_without_default, reason = "created once, by the app")]
    pub fn new() -> Self {
        Self {
            replica: Uuid::new_v4(),
            held: Mutex::default(),
            query_locks: std::array::from_fn(|_| tokio::sync::Mutex::default()),
        }
    }

    async fn lock_queries(&self, key: &ApiKey) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let index = key.api_key_id.rem_euclid(QUERY_LOCKS as i64);
        match usize::try_from(index)
            .ok()
            .and_then(|index| self.query_locks.get(index))
        {
            Some(lock) => Some(lock.lock().await),
            None => None,
        }
    }

    fn use_one(&self, key: &ApiKey, minute: i64) -> Verdict {
        let mut held = self.lock();
        let Some(share) = held
            .get_mut(&key.api_key_id)
            .filter(|share| share.is_of(minute))
        else {
            return Verdict::Query(0);
        };
        if share.limit != key.rate_limit_per_minute {
            return Verdict::Query(0);
        }
        // During a flood beyond the limit, requests are refused without a query each.
        if share.left == 0 && share.refused_at.is_some_and(|at| at.elapsed() < LEASE) {
            return Verdict::Refuse;
        }
        if share.left == 0 {
            return Verdict::Query(share.used);
        }
        share.left -= 1;
        share.used += 1;
        share.used_at = Instant::now();
        Verdict::Allow
    }

    /// Adds what the database granted and uses one request of it at once.
    fn add(&self, key: &ApiKey, window: Window) {
        let mut held = self.lock();
        let now = Instant::now();
        let (minute, limit) = (window.minute, key.rate_limit_per_minute);
        let fresh = Share {
            minute,
            limit,
            left: 0,
            used: 0,
            used_at: now,
            refused_at: None,
        };
        let share = held.entry(key.api_key_id).or_insert(fresh);
        if share.minute < minute || share.limit != limit {
            *share = Share {
                minute,
                limit,
                left: 0,
                used: 0,
                used_at: now,
                refused_at: None,
            };
        }
        if share.minute > minute {
            // The share was granted for a minute that is already over.
            return;
        }
        match window.share {
            0 => share.refused_at = Some(now),
            requests => {
                share.left += requests - 1;
                share.used += 1;
                share.used_at = now;
                share.refused_at = None;
            }
        }
    }

    /// Removes the unused requests that are to be returned: key, minute and number.
    fn remove_unused(&self, idle: Duration, minute: i64) -> Vec<(i64, i64, i64)> {
        let mut held = self.lock();
        held.retain(|_, share| share.is_of(minute));
        let idle = held
            .iter_mut()
            .filter(|(_, share)| share.left > 0 && share.used_at.elapsed() >= idle);
        idle.map(|(api_key_id, share)| (*api_key_id, share.minute, std::mem::take(&mut share.left)))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Share>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// The database may be a minute ahead if another replica's clock is.
    fn is_of(&self, minute: i64) -> bool {
        self.minute == minute || self.minute == minute + 1
    }
}

/// Counts one request against the key's limit; 429 when the limit is reached.
pub async fn charge(core: &Core, shares: &Shares, key: &ApiKey) -> Result<()> {
    let now = core.clock.now();
    let minute = now.as_secs().div_euclid(60);
    match shares.use_one(key, minute) {
        Verdict::Allow => return Ok(()),
        Verdict::Refuse => return Err(refused(key, now.as_secs())),
        Verdict::Query(_) => {}
    }
    let _guard = shares.lock_queries(key).await;
    let used = match shares.use_one(key, minute) {
        Verdict::Allow => return Ok(()),
        Verdict::Refuse => return Err(refused(key, now.as_secs())),
        Verdict::Query(used) => used,
    };
    let window =
        key_windows::grant_share(&core.db, key.api_key_id, shares.replica, minute, used, now)
            .await?;
    let is_refused = window.share == 0;
    shares.add(key, window);
    if is_refused {
        Err(refused(key, now.as_secs()))
    } else {
        Ok(())
    }
}

fn refused(key: &ApiKey, now_secs: i64) -> Error {
    let wait_secs = (60 - now_secs.rem_euclid(60)).unsigned_abs();
    let limit = key.rate_limit_per_minute;
    Error::too_many_requests(
        format!("this API key is limited to {limit} requests a minute; wait for the next minute"),
        wait_secs,
    )
    .with_header("ratelimit-limit", limit)
    .with_header("ratelimit-remaining", 0)
    .with_header("ratelimit-reset", wait_secs)
}

/// Returns unused shares periodically, and all of them when the service ends.
pub async fn return_unused(core: Core, shares: Arc<Shares>) {
    loop {
        let is_ending = tokio::select! {
            () = tokio::time::sleep(IDLE) => false,
            () = core.shutdown.cancelled() => true,
        };
        let idle = if is_ending { Duration::ZERO } else { IDLE };
        for (api_key_id, minute, requests) in
            shares.remove_unused(idle, core.clock.now().as_secs().div_euclid(60))
        {
            if let Err(error) =
                key_windows::return_share(&core.db, api_key_id, minute, requests).await
            {
                // They then count as used, until the minute is over.
                tracing::debug!(%error, api_key_id, "cannot return the unused requests of an API key");
            }
        }
        if is_ending {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use hub_protocol::TenantUuid;

    use super::*;
    use crate::authn::grants::KeyScopes;

    fn key(api_key_id: i64, rate_limit_per_minute: i64) -> ApiKey {
        ApiKey {
            api_key_id,
            tenant_uuid: TenantUuid::new(),
            key_prefix: String::new(),
            name: String::new(),
            scopes: KeyScopes::from_stored("*"),
            rate_limit_per_minute,
            expires_at: None,
        }
    }

    #[test]
    fn share_belongs_to_one_key_and_one_minute() {
        let shares = Shares::new();
        let (one, other) = (key(1, 600), key(2, 600));
        assert_eq!(shares.use_one(&one, 10), Verdict::Query(0));
        shares.add(
            &one,
            Window {
                minute: 10,
                share: 3,
            },
        );
        assert_eq!(shares.use_one(&other, 10), Verdict::Query(0));
        assert_eq!(shares.use_one(&one, 10), Verdict::Allow);
        assert_eq!(shares.use_one(&one, 10), Verdict::Allow);
        assert_eq!(shares.use_one(&one, 10), Verdict::Query(3));
        shares.add(
            &one,
            Window {
                minute: 10,
                share: 3,
            },
        );
        assert_eq!(shares.use_one(&one, 11), Verdict::Query(0));
        shares.add(
            &one,
            Window {
                minute: 11,
                share: 2,
            },
        );
        shares.add(
            &one,
            Window {
                minute: 10,
                share: 9,
            },
        );
        assert_eq!(shares.use_one(&one, 11), Verdict::Allow);
        assert_eq!(
            shares.use_one(&one, 11),
            Verdict::Query(2),
            "the late share belongs to a minute that is over"
        );
    }

    #[test]
    fn a_replica_whose_clock_is_behind_counts_in_the_databases_minute() {
        let shares = Shares::new();
        let key = key(1, 600);
        shares.add(
            &key,
            Window {
                minute: 11,
                share: 2,
            },
        );
        assert_eq!(shares.use_one(&key, 10), Verdict::Allow);
        assert_eq!(shares.use_one(&key, 11), Verdict::Query(2));
        assert_eq!(shares.use_one(&key, 12), Verdict::Query(0));
    }

    #[test]
    fn changed_limit_ends_a_share_and_a_refusal_is_cached() {
        let shares = Shares::new();
        shares.add(
            &key(1, 600),
            Window {
                minute: 10,
                share: 9,
            },
        );
        assert_eq!(shares.use_one(&key(1, 5), 10), Verdict::Query(0));
        shares.add(
            &key(1, 5),
            Window {
                minute: 10,
                share: 0,
            },
        );
        assert_eq!(shares.use_one(&key(1, 5), 10), Verdict::Refuse);
        std::thread::sleep(LEASE);
        assert_eq!(shares.use_one(&key(1, 5), 10), Verdict::Query(0));
    }

    #[test]
    fn idle_share_is_returned_once() {
        let shares = Shares::new();
        shares.add(
            &key(1, 600),
            Window {
                minute: 10,
                share: 9,
            },
        );
        assert_eq!(shares.remove_unused(Duration::from_secs(60), 10), []);
        assert_eq!(shares.remove_unused(Duration::ZERO, 10), [(1, 10, 8)]);
        assert_eq!(shares.remove_unused(Duration::ZERO, 10), []);
        assert_eq!(shares.use_one(&key(1, 600), 10), Verdict::Query(1));
    }
}
