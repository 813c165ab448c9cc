//! Password hashes: Argon2id, one hash at a time on each core and few more waiting, so that a flood of logins can exhaust neither memory nor
//! processor. Never keeps a password, never says which part of a login was wrong.

use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Error, Result};

/// Hashes computed at once. One takes 19 MiB and some 30 ms with the parameters of `Argon2::default`, which OWASP recommends.
const AT_ONCE: usize = 2;
/// Requests that hold a place, computing or waiting; the next one is answered 503.
const PLACES: usize = 64;

/// What a password is compared with when there is no such account, so that the comparison takes as long as with one.
const NO_ACCOUNT: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$3p/lR8sSbpddImrGqb1osg$tmUg/9s8yLLzr+ZQOg+CoBRlIs4LYD2tyUgLzz7LvSY";

/// Where passwords are hashed and compared.
pub struct Passwords {
    places: Arc<Semaphore>,
    at_once: Arc<Semaphore>,
}

/// The right to compute one hash now. It goes where the work goes, so that a client that hangs up makes no room before the work is done.
pub struct Turn {
    _place: OwnedSemaphorePermit,
    _at_once: OwnedSemaphorePermit,
}

impl Passwords {
    #[allow(clippy::new_without_default, reason = "made once, by the app")]
    pub fn new() -> Self {
        Self { places: Arc::new(Semaphore::new(PLACES)), at_once: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Waits until a hash may be computed; refused at once when too many wait already.
    pub async fn turn(&self) -> Result<Turn> {
        let place = Arc::clone(&self.places)
            .try_acquire_owned()
            .map_err(|_| Error::unavailable("BUSY", "too many people log in at this moment; try again shortly"))?;
        let at_once = Arc::clone(&self.at_once).acquire_owned().await.map_err(Error::internal)?;
        Ok(Turn { _place: place, _at_once: at_once })
    }
}

impl Turn {
    /// The hash to store.
    pub async fn hash(self, password: String) -> Result<String> {
        let work = move || {
            let _turn = self;
            let salt: [u8; 16] = crate::sealing::random();
            Argon2::default()
                .hash_password_with_salt(password.as_bytes(), &salt)
                .map(|hash: PasswordHash| hash.to_string())
        };
        tokio::task::spawn_blocking(work).await.map_err(Error::internal)?.map_err(Error::internal)
    }

    /// Whether the password is the one that was hashed. Without a hash the answer is no, after the same work.
    pub async fn verify(self, password: String, hash: Option<String>) -> Result<bool> {
        let work = move || {
            let _turn = self;
            let parsed = PasswordHash::new(hash.as_deref().unwrap_or(NO_ACCOUNT)).map_err(Error::internal)?;
            let matches = Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok();
            Ok(matches && hash.is_some())
        };
        tokio::task::spawn_blocking(work).await.map_err(Error::internal)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_right_password_matches() {
        let passwords = Passwords::new();
        let hash = passwords.turn().await.expect("a turn").hash("correct horse".into()).await.expect("a hash");
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        for (password, expected) in [("correct horse", true), ("correct horsf", false), ("", false)] {
            let turn = passwords.turn().await.expect("a turn");
            assert_eq!(turn.verify(password.into(), Some(hash.clone())).await.expect("an answer"), expected);
        }
    }

    /// Time spent is decided by the parameters in the hash: they have to be those of a stored one.
    #[tokio::test]
    async fn no_account_costs_what_an_account_costs() {
        let stored = Passwords::new().turn().await.expect("a turn").hash("x".into()).await.expect("a hash");
        let stored = PasswordHash::new(&stored).expect("a hash");
        let none = PasswordHash::new(NO_ACCOUNT).expect("a hash");
        assert_eq!(none.algorithm, stored.algorithm);
        assert_eq!(none.version, stored.version);
        assert_eq!(none.params.to_string(), stored.params.to_string());
        assert_eq!(none.salt.map(|salt| salt.len()), stored.salt.map(|salt| salt.len()));
        assert_eq!(none.hash.map(|hash| hash.len()), stored.hash.map(|hash| hash.len()));
        let turn = Passwords::new();
        assert!(!turn.turn().await.expect("a turn").verify("x".into(), None).await.expect("an answer"));
    }

    #[tokio::test]
    async fn too_many_at_once_are_told_to_come_back() {
        let passwords = Passwords::new();
        let _turns = (passwords.turn().await.expect("a turn"), passwords.turn().await.expect("a turn"));
        let waiting: Vec<_> = (AT_ONCE..PLACES)
            .map(|_| {
                let mut turn = Box::pin(passwords.turn());
                assert!(futures_util::FutureExt::now_or_never(turn.as_mut()).is_none(), "it waits");
                turn
            })
            .collect();
        let error = passwords.turn().await.err().expect("a refusal");
        assert_eq!((error.status().as_u16(), error.code()), (503, "BUSY"));
        drop(waiting);
        assert!(futures_util::FutureExt::now_or_never(passwords.turn()).is_none(), "a place is free, both turns taken");
    }
}
