//! Password hashing with Argon2id. The number of concurrent hashes and of queued requests is
//! bounded, so that a flood of logins exhausts neither memory nor CPU. Each kind of work has places
//! of its own: what anybody can ask for never takes the places of those who are known. Where one
//! caller may succeed again and again, each has a share of the places only. Passwords are never
//! stored, and errors never reveal which part of a login was wrong.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};
use hub_base::error::{Error, Result};
use hub_core::config::PasswordCost;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The hash that the password of an unknown account is compared with, so that the comparison takes
/// as long as for a known account.
const NO_ACCOUNT: &str = "$argon2id$v=19$m=19456,t=2,p=1$3p/lR8sSbpddImrGqb1osg$tmUg/9s8yLLzr+ZQOg+CoBRlIs4LYD2tyUgLzz7LvSY";

/// The purpose of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A login from a network that the account logged in from before, or the command line.
    Known,
    /// A login from anywhere else.
    Login,
    /// A new account.
    Registration,
    /// A new password for a person who is logged in, or who has a mailed token.
    Change,
}

/// Hashes and verifies passwords, with bounded concurrency.
pub struct Passwords {
    cost: PasswordCost,
    known: Places,
    login: Places,
    registration: Places,
    change: Places,
}

/// The places of one purpose. One hash takes 19 MiB and about 30 ms at the default cost.
struct Places {
    /// Requests that compute or wait; further ones are refused with 503.
    pending: Arc<Semaphore>,
    /// Concurrent hashes.
    concurrent: Arc<Semaphore>,
    /// The share of one caller.
    share: usize,
    callers: Callers,
}

/// The places that each caller has: never more entries than places.
type Callers = Arc<Mutex<HashMap<String, usize>>>;

impl Places {
    fn new(concurrent: usize, pending: usize, share: usize) -> Self {
        Self {
            pending: Arc::new(Semaphore::new(pending)),
            concurrent: Arc::new(Semaphore::new(concurrent)),
            share,
            callers: Callers::default(),
        }
    }
}

/// A place of a caller's share, which is returned when it is dropped.
struct Share {
    caller: String,
    callers: Callers,
}

impl Share {
    fn of(places: &Places, caller: &str) -> Option<Self> {
        let mut callers = places
            .callers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let count = callers.entry(caller.to_owned()).or_default();
        if *count >= places.share {
            return None;
        }
        *count += 1;
        Some(Self {
            caller: caller.to_owned(),
            callers: Arc::clone(&places.callers),
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = callers.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                callers.remove(&self.caller);
            }
        }
    }
}

/// A request's place in the queue. It does not wait for its turn yet.
pub struct Place {
    cost: PasswordCost,
    pending: OwnedSemaphorePermit,
    concurrent: Arc<Semaphore>,
    share: Share,
}

/// The permit to compute one hash. It moves into the blocking task, so that a client that
/// disconnects does not free the permit before the work is done.
pub struct HashPermit {
    cost: PasswordCost,
    _pending: OwnedSemaphorePermit,
    _concurrent: OwnedSemaphorePermit,
    _share: Share,
}

impl Passwords {
    pub fn new(cost: PasswordCost) -> Self {
        Self {
            cost,
            known: Places::new(2, 128, 32),
            // The throttle limits both for each address.
            login: Places::new(1, 32, 32),
            registration: Places::new(1, 16, 16),
            change: Places::new(1, 16, 2),
        }
    }

    /// A place in the queue for a caller: a network, or a user. Fails immediately when all are
    /// occupied, or the caller's share of them.
    pub fn place(&self, purpose: Purpose, caller: &str) -> Result<Place> {
        let places = match purpose {
            Purpose::Known => &self.known,
            Purpose::Login => &self.login,
            Purpose::Registration => &self.registration,
            Purpose::Change => &self.change,
        };
        let busy =
            || Error::unavailable("BUSY", "too many logins are in progress; try again shortly");
        let pending = Arc::clone(&places.pending)
            .try_acquire_owned()
            .map_err(|_| busy())?;
        let share = Share::of(places, caller).ok_or_else(busy)?;
        Ok(Place {
            cost: self.cost,
            pending,
            concurrent: Arc::clone(&places.concurrent),
            share,
        })
    }

    /// Waits for a permit. Fails immediately when too many requests wait already.
    pub async fn permit(&self, purpose: Purpose, caller: &str) -> Result<HashPermit> {
        self.place(purpose, caller)?.turn().await
    }
}

impl Place {
    /// Waits for its turn.
    pub async fn turn(self) -> Result<HashPermit> {
        let concurrent = self
            .concurrent
            .acquire_owned()
            .await
            .map_err(Error::internal)?;
        Ok(HashPermit {
            cost: self.cost,
            _pending: self.pending,
            _concurrent: concurrent,
            _share: self.share,
        })
    }
}

impl HashPermit {
    /// Returns the hash to store.
    pub async fn hash(self, password: String) -> Result<String> {
        let work = move || {
            let PasswordCost { memory_kib, passes } = self.cost;
            let _permit = self;
            let salt: [u8; 16] = hub_base::sealing::random();
            let params = Params::new(memory_kib, passes, 1, None)?;
            Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
                .hash_password_with_salt(password.as_bytes(), &salt)
                .map(|hash: PasswordHash| hash.to_string())
        };
        tokio::task::spawn_blocking(work)
            .await
            .map_err(Error::internal)?
            .map_err(Error::internal)
    }

    /// Whether the password matches the hash. Without a hash the result is false, after the same
    /// amount of work.
    pub async fn verify(self, password: String, hash: Option<String>) -> Result<bool> {
        let work = move || {
            let _permit = self;
            let parsed = PasswordHash::new(hash.as_deref().unwrap_or(NO_ACCOUNT))
                .map_err(Error::internal)?;
            let matches = Argon2::default()
                .verify_password(password.as_bytes(), &parsed)
                .is_ok();
            Ok(matches && hash.is_some())
        };
        tokio::task::spawn_blocking(work)
            .await
            .map_err(Error::internal)?
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    async fn permit(passwords: &Passwords) -> HashPermit {
        passwords
            .permit(Purpose::Login, "192.0.2.1")
            .await
            .expect("a permit")
    }

    #[tokio::test]
    async fn only_the_right_password_matches() {
        let passwords = Passwords::new(PasswordCost::default());
        let hash = permit(&passwords)
            .await
            .hash("correct horse".into())
            .await
            .expect("a hash");
        assert!(
            hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{hash}"
        );
        for (password, expected) in [
            ("correct horse", true),
            ("correct horsf", false),
            ("", false),
        ] {
            let matches = permit(&passwords)
                .await
                .verify(password.into(), Some(hash.clone()))
                .await;
            assert_eq!(matches.expect("a result"), expected);
        }
    }

    /// The parameters in the hash determine the time: they must equal those of a stored hash.
    #[tokio::test]
    async fn the_hash_for_unknown_accounts_has_the_parameters_of_stored_ones() {
        let passwords = Passwords::new(PasswordCost::default());
        let stored = permit(&passwords)
            .await
            .hash("x".into())
            .await
            .expect("a hash");
        let stored = PasswordHash::new(&stored).expect("a hash");
        let none = PasswordHash::new(NO_ACCOUNT).expect("a hash");
        assert_eq!(none.algorithm, stored.algorithm);
        assert_eq!(none.version, stored.version);
        assert_eq!(none.params.to_string(), stored.params.to_string());
        assert_eq!(
            none.salt.map(|salt| salt.len()),
            stored.salt.map(|salt| salt.len())
        );
        assert_eq!(
            none.hash.map(|hash| hash.len()),
            stored.hash.map(|hash| hash.len())
        );
        assert!(
            !permit(&passwords)
                .await
                .verify("x".into(), None)
                .await
                .expect("a result")
        );
    }

    #[tokio::test]
    async fn further_requests_are_refused_with_503() {
        let passwords = Passwords::new(PasswordCost::default());
        let permit = permit(&passwords).await;
        let mut waiting = Vec::new();
        let refused = loop {
            match passwords.place(Purpose::Login, "192.0.2.1") {
                Ok(place) => waiting.push(place),
                Err(error) => break error,
            }
        };
        assert_eq!(
            (refused.status().as_u16(), refused.code(), waiting.len()),
            (503, "BUSY", 31)
        );
        let mut turn = Box::pin(waiting.pop().expect("a place").turn());
        assert!(
            turn.as_mut().now_or_never().is_none(),
            "the only permit is held"
        );
        drop(permit);
        assert!(turn.now_or_never().is_some_and(|turn| turn.is_ok()));
    }

    /// Known callers have places at once, for any number of strangers.
    #[tokio::test]
    async fn each_purpose_has_places_of_its_own() {
        let passwords = Passwords::new(PasswordCost::default());
        let purposes = [
            Purpose::Known,
            Purpose::Login,
            Purpose::Registration,
            Purpose::Change,
        ];
        for full in purposes {
            let _permit = passwords.permit(full, "192.0.2.0").await.expect("a permit");
            let strangers = (1..=255).map(|number| format!("192.0.2.{number}"));
            let places: Vec<Place> = strangers
                .filter_map(|stranger| passwords.place(full, &stranger).ok())
                .collect();
            assert!(
                places.len() < 255 && passwords.place(full, "198.51.100.1").is_err(),
                "{full:?} is full"
            );
            for other in purposes.into_iter().filter(|other| *other != full) {
                let permit = passwords.permit(other, "198.51.100.1").now_or_never();
                assert!(
                    permit.is_some_and(|permit| permit.is_ok()),
                    "{other:?} while {full:?} is full"
                );
            }
        }
    }

    /// The holder of an account can log in to it all the time.
    #[tokio::test]
    async fn caller_has_no_more_than_a_share() {
        let passwords = Passwords::new(PasswordCost::default());
        for (purpose, share) in [(Purpose::Known, 32), (Purpose::Change, 2)] {
            let mut places: Vec<Place> = (0..200)
                .filter_map(|_| passwords.place(purpose, "192.0.2.1").ok())
                .collect();
            assert_eq!(places.len(), share, "{purpose:?}");
            passwords
                .place(purpose, "192.0.2.2")
                .expect("another's share");
            places.pop();
            passwords
                .place(purpose, "192.0.2.1")
                .expect("what was given back");
            drop(places);
            let callers = if purpose == Purpose::Known {
                &passwords.known
            } else {
                &passwords.change
            };
            assert!(callers.callers.lock().expect("the callers").is_empty());
        }
    }
}
