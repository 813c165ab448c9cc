//! How often an API key may be used, counted across replicas. The database hands out a minute's requests, and a replica that is alone with a key takes
//! them in growing shares, so that a busy key costs few writes. Once another replica is seen, small limits are counted one by one. All replicas together
//! never let through more than the limit; what a replica took and does not use goes back within a second.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::api_key::ApiKey;
use crate::app::App;
use crate::authz::LEASE;
use crate::domain::api_keys::{self, Window};
use crate::error::{Error, Result};

/// A share nobody used for so long goes back.
const IDLE: Duration = Duration::from_millis(500);

/// Keys that ask at the same time.
const TURNS: usize = 64;

/// What this replica may still let through, key by key.
#[derive(Debug)]
pub struct Shares {
    /// By which the database tells replicas apart.
    replica: Uuid,
    held: Mutex<HashMap<i64, Share>>,
    /// Whose turn it is to ask the database. A key's requests ask one after the other: the next one finds what the one before brought, and none is
    /// refused while another holds a share.
    turns: [tokio::sync::Mutex<()>; TURNS],
}

#[derive(Debug)]
struct Share {
    /// Minutes since 1970, as the database counts them.
    minute: i64,
    /// The key's limit when the share was handed out.
    limit: i64,
    left: i64,
    /// Let through this minute: what a replica needs is guessed from what it needed so far.
    used: i64,
    used_at: Instant,
    /// When the database last had none left.
    refused_at: Option<Instant>,
}

/// What to do with a request.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Refuse,
    /// Ask the database for more; so many were let through this minute.
    Ask(i64),
}

impl Shares {
    #[allow(clippy::new_without_default, reason = "made once, by the app")]
    pub fn new() -> Self {
        Self {
            replica: Uuid::new_v4(),
            held: Mutex::default(),
            turns: std::array::from_fn(|_| tokio::sync::Mutex::default()),
        }
    }

    async fn turn(&self, key: &ApiKey) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let index = key.api_key_id.rem_euclid(TURNS as i64);
        match usize::try_from(index).ok().and_then(|index| self.turns.get(index)) {
            Some(turn) => Some(turn.lock().await),
            None => None,
        }
    }

    fn take(&self, key: &ApiKey, minute: i64) -> Verdict {
        let mut held = self.lock();
        let Some(share) = held.get_mut(&key.api_key_id).filter(|share| share.is_of(minute)) else {
            return Verdict::Ask(0);
        };
        if share.limit != key.rate_limit_per_minute {
            return Verdict::Ask(0);
        }
        // A flood beyond the limit is refused without a question each.
        if share.left == 0 && share.refused_at.is_some_and(|at| at.elapsed() < LEASE) {
            return Verdict::Refuse;
        }
        if share.left == 0 {
            return Verdict::Ask(share.used);
        }
        share.left -= 1;
        share.used += 1;
        share.used_at = Instant::now();
        Verdict::Pass
    }

    /// Notes what the database handed out, one of which is used at once.
    fn add(&self, key: &ApiKey, window: Window) {
        let mut held = self.lock();
        let now = Instant::now();
        let (minute, limit) = (window.minute, key.rate_limit_per_minute);
        let fresh = Share { minute, limit, left: 0, used: 0, used_at: now, refused_at: None };
        let share = held.entry(key.api_key_id).or_insert(fresh);
        if share.minute < minute || share.limit != limit {
            *share = Share { minute, limit, left: 0, used: 0, used_at: now, refused_at: None };
        }
        if share.minute > minute {
            // Handed out of a minute that is over by now.
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

    /// Takes out what is to go back: key, minute and number.
    fn unused(&self, idle: Duration, minute: i64) -> Vec<(i64, i64, i64)> {
        let mut held = self.lock();
        held.retain(|_, share| share.is_of(minute));
        let idle = held.iter_mut().filter(|(_, share)| share.left > 0 && share.used_at.elapsed() >= idle);
        idle.map(|(api_key_id, share)| (*api_key_id, share.minute, std::mem::take(&mut share.left))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Share>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// The database may be a minute ahead, by another replica's clock.
    fn is_of(&self, minute: i64) -> bool {
        self.minute == minute || self.minute == minute + 1
    }
}

/// Counts one request against the key's limit, or refuses it with 429.
pub async fn charge(app: &App, key: &ApiKey) -> Result<()> {
    let now = app.clock.now();
    let minute = now.as_secs().div_euclid(60);
    match app.key_shares.take(key, minute) {
        Verdict::Pass => return Ok(()),
        Verdict::Refuse => return Err(refused(key, now.as_secs())),
        Verdict::Ask(_) => {}
    }
    let _turn = app.key_shares.turn(key).await;
    let used = match app.key_shares.take(key, minute) {
        Verdict::Pass => return Ok(()),
        Verdict::Refuse => return Err(refused(key, now.as_secs())),
        Verdict::Ask(used) => used,
    };
    let window = api_keys::take_share(&app.db, key.api_key_id, app.key_shares.replica, minute, used, now).await?;
    let is_refused = window.share == 0;
    app.key_shares.add(key, window);
    if is_refused { Err(refused(key, now.as_secs())) } else { Ok(()) }
}

fn refused(key: &ApiKey, now_secs: i64) -> Error {
    let wait_secs = (60 - now_secs.rem_euclid(60)).unsigned_abs();
    let limit = key.rate_limit_per_minute;
    Error::too_many_requests(format!("this API key may make {limit} requests a minute"), wait_secs)
        .with_header("ratelimit-limit", limit)
        .with_header("ratelimit-remaining", 0)
        .with_header("ratelimit-reset", wait_secs)
}

/// Gives back what is not used, until the service ends, and then all of it.
pub async fn give_back(app: App) {
    loop {
        let is_ending = tokio::select! {
            () = tokio::time::sleep(IDLE) => false,
            () = app.shutdown.cancelled() => true,
        };
        let idle = if is_ending { Duration::ZERO } else { IDLE };
        for (api_key_id, minute, requests) in app.key_shares.unused(idle, app.clock.now().as_secs().div_euclid(60)) {
            if let Err(error) = api_keys::return_share(&app.db, api_key_id, minute, requests).await {
                // They count as used then, which is forgotten with the minute.
                tracing::debug!(%error, api_key_id, "unused requests of an API key were not given back");
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
    use crate::authz::KeyScopes;

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
    fn a_share_is_one_keys_and_ends_with_its_minute() {
        let shares = Shares::new();
        let (one, other) = (key(1, 600), key(2, 600));
        assert_eq!(shares.take(&one, 10), Verdict::Ask(0));
        shares.add(&one, Window { minute: 10, share: 3 });
        assert_eq!(shares.take(&other, 10), Verdict::Ask(0));
        assert_eq!(shares.take(&one, 10), Verdict::Pass);
        assert_eq!(shares.take(&one, 10), Verdict::Pass);
        assert_eq!(shares.take(&one, 10), Verdict::Ask(3));
        shares.add(&one, Window { minute: 10, share: 3 });
        assert_eq!(shares.take(&one, 11), Verdict::Ask(0));
        shares.add(&one, Window { minute: 11, share: 2 });
        shares.add(&one, Window { minute: 10, share: 9 });
        assert_eq!(shares.take(&one, 11), Verdict::Pass);
        assert_eq!(shares.take(&one, 11), Verdict::Ask(2), "what came late is of a minute that is over");
    }

    #[test]
    fn a_replica_whose_clock_is_behind_counts_in_the_databases_minute() {
        let shares = Shares::new();
        let key = key(1, 600);
        shares.add(&key, Window { minute: 11, share: 2 });
        assert_eq!(shares.take(&key, 10), Verdict::Pass);
        assert_eq!(shares.take(&key, 11), Verdict::Ask(2));
        assert_eq!(shares.take(&key, 12), Verdict::Ask(0));
    }

    #[test]
    fn another_limit_ends_a_share_and_a_refusal_is_remembered() {
        let shares = Shares::new();
        shares.add(&key(1, 600), Window { minute: 10, share: 9 });
        assert_eq!(shares.take(&key(1, 5), 10), Verdict::Ask(0));
        shares.add(&key(1, 5), Window { minute: 10, share: 0 });
        assert_eq!(shares.take(&key(1, 5), 10), Verdict::Refuse);
        std::thread::sleep(LEASE);
        assert_eq!(shares.take(&key(1, 5), 10), Verdict::Ask(0));
    }

    #[test]
    fn what_lies_idle_goes_back_once() {
        let shares = Shares::new();
        shares.add(&key(1, 600), Window { minute: 10, share: 9 });
        assert_eq!(shares.unused(Duration::from_secs(60), 10), []);
        assert_eq!(shares.unused(Duration::ZERO, 10), [(1, 10, 8)]);
        assert_eq!(shares.unused(Duration::ZERO, 10), []);
        assert_eq!(shares.take(&key(1, 600), 10), Verdict::Ask(1));
    }
}
