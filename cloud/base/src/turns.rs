//! Turns to write: whoever is known by a key does one thing at a time, and only so many in a
//! minute. Counted by each replica for itself, in memory that is bounded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hub_protocol::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use crate::error::{Error, Result};

/// Requests of one key that may wait for its turn. Clients send one at a time; a client that gave
/// up waiting for an answer may repeat its request.
const MAX_WAITING: usize = 8;
/// How long a request waits for its turn.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The most keys that are remembered.
const MAX_KEYS: usize = 100_000;
const MINUTE_MICROS: i64 = 60_000_000;

/// Limits of writes by hubs and people, other than uploads, which have a limit of their own.
#[derive(Clone, Debug)]
pub struct WriteTurns {
    /// A hub's reports about itself: adapters, installed apps.
    pub reports: Turns,
    /// Job events of hubs.
    pub job_events: Turns,
    /// A hub's refreshes of its token, which are counted in the database.
    pub refreshes: Turns,
    /// A login's refreshes of its token, which are counted in the database.
    pub logins: Turns,
    /// A person's links to suppliers, which ask the suppliers' servers about themselves.
    pub supplier_links: Turns,
    /// Signed messages of suppliers.
    pub webhooks: Turns,
    /// Requests of a tenant to the billing service.
    pub billing: Turns,
    /// Submissions of device forms to suppliers.
    pub device_ui: Turns,
    /// Failed logins at one e-mail, and all of them, that are noted in the audit log.
    pub failed_logins: Turns,
    pub all_failed_logins: Turns,
    /// A tenant's requests with values of another service, of which each writes thousands.
    pub history_imports: Turns,
    /// A tenant's dry runs of reprocessing, which write nothing and read much.
    pub dry_runs: Turns,
}

impl WriteTurns {
    pub fn new(reports_per_minute: i64) -> Self {
        Self {
            reports: Turns::new(reports_per_minute),
            job_events: Turns::new(600),
            refreshes: Turns::uncounted(),
            logins: Turns::uncounted(),
            supplier_links: Turns::uncounted(),
            webhooks: Turns::new(600),
            billing: Turns::new(600),
            device_ui: Turns::new(120),
            failed_logins: Turns::new(6),
            all_failed_logins: Turns::new(60),
            history_imports: Turns::new(120),
            dry_runs: Turns::uncounted(),
        }
    }
}

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Turns(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    a_minute: i64,
    keys: Mutex<HashMap<Uuid, Key>>,
}

#[derive(Debug)]
struct Key {
    /// The end of all counted requests if they were evenly spread, in microseconds since 1970.
    spread_until: i64,
    place: Arc<Semaphore>,
    /// Requests that have the turn or wait for it.
    present: usize,
}

/// The turn of a key; the next one begins when it is dropped.
#[derive(Debug)]
pub struct Turn {
    turns: Turns,
    key: Uuid,
    _place: Option<OwnedSemaphorePermit>,
}

impl Turns {
    pub fn new(a_minute: i64) -> Self {
        Self(Arc::new(Inner {
            a_minute: a_minute.max(1),
            keys: Mutex::default(),
        }))
    }

    /// Turns without a count of requests.
    fn uncounted() -> Self {
        Self::new(i64::MAX)
    }

    /// Counts a request, or refuses it with 429. A burst may have the size of the limit.
    pub fn count(&self, key: Uuid, now: Timestamp) -> Result<()> {
        let (now, interval) = (now.as_micros(), MINUTE_MICROS / self.0.a_minute);
        let mut keys = self.lock();
        make_room(&mut keys, now);
        let key = keys.entry(key).or_insert_with(Key::new);
        // Later than that only if the clock was set back.
        let begins = if key.spread_until > now + MINUTE_MICROS {
            now
        } else {
            key.spread_until.max(now)
        };
        let spread_until = begins + interval;
        let early_micros = spread_until - now - MINUTE_MICROS;
        if early_micros > 0 {
            let message = format!(
                "at most {} such requests a minute; send fewer",
                self.0.a_minute
            );
            return Err(Error::too_many_requests(
                message,
                early_micros.unsigned_abs().div_ceil(1_000_000),
            ));
        }
        key.spread_until = spread_until;
        Ok(())
    }

    /// Waits for the turn; 429 if too many requests of the key wait already.
    pub async fn take(&self, key: Uuid) -> Result<Turn> {
        let place = {
            let mut keys = self.lock();
            // A key that was never counted and has no request now needs no entry.
            if keys.len() >= MAX_KEYS {
                keys.retain(|_, key| key.present > 0 || key.spread_until > i64::MIN);
            }
            let key = keys.entry(key).or_insert_with(Key::new);
            if key.present > MAX_WAITING {
                return Err(one_at_a_time());
            }
            key.present += 1;
            key.place.clone()
        };
        // Counts as present from here on, whether or not it gets its turn.
        let mut turn = Turn {
            turns: self.clone(),
            key,
            _place: None,
        };
        match tokio::time::timeout(MAX_WAIT, place.acquire_owned()).await {
            Ok(Ok(place)) => {
                turn._place = Some(place);
                Ok(turn)
            }
            _ => Err(one_at_a_time()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Key>> {
        self.0.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn one_at_a_time() -> Error {
    Error::too_many_requests("too many such requests at once; send one at a time", 1)
}

/// Forgets keys whose requests are long over; if that is not enough, all that have no request now.
fn make_room(keys: &mut HashMap<Uuid, Key>, now_micros: i64) {
    if keys.len() < MAX_KEYS {
        return;
    }
    keys.retain(|_, key| key.present > 0 || key.spread_until > now_micros);
    if keys.len() >= MAX_KEYS {
        keys.retain(|_, key| key.present > 0);
    }
}

impl Key {
    fn new() -> Self {
        Self {
            spread_until: i64::MIN,
            place: Arc::new(Semaphore::new(1)),
            present: 0,
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(key) = self.turns.lock().get_mut(&self.key) {
            key.present = key.present.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000 + secs * 1_000_000)
    }

    #[test]
    fn requests_of_a_minute_are_counted_by_key() {
        let turns = Turns::new(60);
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        for _ in 0..60 {
            turns.count(one, at(0)).expect("within the limit");
        }
        assert_eq!(
            turns
                .count(one, at(0))
                .expect_err("a refusal")
                .status()
                .as_u16(),
            429
        );
        turns.count(two, at(0)).expect("another key");
        turns.count(one, at(1)).expect("one more a second");
        turns.count(one, at(1)).expect_err("and no more");
        turns
            .count(one, at(-3600))
            .expect("a clock that was set back blocks nobody");
        for _ in 0..60 {
            turns.count(one, at(300)).expect("all of them again");
        }
    }

    #[tokio::test]
    async fn key_has_one_turn_at_a_time() {
        let turns = Turns::new(60);
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let turn = turns.take(one).await.expect("a turn");
        let _other = turns.take(two).await.expect("another key's turn");
        let mut waiting: Vec<_> = (0..MAX_WAITING)
            .map(|_| Box::pin(turns.take(one)))
            .collect();
        assert!(
            waiting
                .iter_mut()
                .all(|waiting| waiting.as_mut().now_or_never().is_none()),
            "they wait"
        );
        let refused = turns.take(one).await.expect_err("too many");
        assert_eq!(refused.status().as_u16(), 429);
        drop(turn);
        let next = waiting.remove(0).await.expect("the next turn");
        drop((next, waiting));
        assert_eq!(
            turns.lock().get(&one).map(|key| key.present),
            Some(0),
            "nobody is left"
        );
        turns.take(one).await.expect("a turn");
    }

    #[tokio::test]
    async fn keys_that_only_took_turns_are_bounded() {
        let turns = Turns::uncounted();
        for number in 0..=MAX_KEYS as u128 {
            drop(turns.take(Uuid::from_u128(number)).await.expect("a turn"));
        }
        assert_eq!(turns.lock().len(), 1);
    }

    #[test]
    fn keys_that_are_over_are_forgotten() {
        let turns = Turns::new(60);
        for number in 0..MAX_KEYS as u128 {
            turns
                .count(Uuid::from_u128(number), at(0))
                .expect("within the limit");
        }
        turns
            .count(Uuid::from_u128(u128::MAX), at(100))
            .expect("room");
        assert_eq!(turns.lock().len(), 1);
    }
}
