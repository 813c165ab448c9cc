//! Password hashing with Argon2id. The number of concurrent hashes and of queued requests is
//! bounded, so that a flood of logins exhausts neither memory nor CPU. Passwords are never stored,
//! and errors never reveal which part of a login was wrong.

use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Error, Result};

/// Concurrent hashes. One takes 19 MiB and about 30 ms with the parameters of `Argon2::default`,
/// which OWASP recommends.
const CONCURRENT: usize = 2;
/// Requests that compute or wait; further ones are refused with 503.
const MAX_PENDING: usize = 64;

/// The hash that a password is compared with when the account does not exist, so that the
/// comparison takes as long as for an existing account.
const NO_ACCOUNT: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$3p/lR8sSbpddImrGqb1osg$tmUg/9s8yLLzr+ZQOg+CoBRlIs4LYD2tyUgLzz7LvSY";

/// Hashes and verifies passwords, with bounded concurrency.
pub struct Passwords {
    pending: Arc<Semaphore>,
    concurrent: Arc<Semaphore>,
}

/// The permit to compute one hash. It moves into the blocking task, so that a client that
/// disconnects does not free the permit before the work is done.
pub struct HashPermit {
    _pending: OwnedSemaphorePermit,
    _concurrent: OwnedSemaphorePermit,
}

impl Passwords {
    #[allow(clippy::new_without_default, reason = "created once, by the app")]
    pub fn new() -> Self {
        Self { pending: Arc::new(Semaphore::new(MAX_PENDING)), concurrent: Arc::new(Semaphore::new(CONCURRENT)) }
    }

    /// Waits for a permit. Fails immediately when too many requests wait already.
    pub async fn permit(&self) -> Result<HashPermit> {
        let pending = Arc::clone(&self.pending)
            .try_acquire_owned()
            .map_err(|_| Error::unavailable("BUSY", "too many logins are in progress; try again shortly"))?;
        let concurrent = Arc::clone(&self.concurrent).acquire_owned().await.map_err(Error::internal)?;
        Ok(HashPermit { _pending: pending, _concurrent: concurrent })
    }
}

impl HashPermit {
    /// Returns the hash to store.
    pub async fn hash(self, password: String) -> Result<String> {
        let work = move || {
            let _permit = self;
            let salt: [u8; 16] = crate::sealing::random();
            Argon2::default()
                .hash_password_with_salt(password.as_bytes(), &salt)
                .map(|hash: PasswordHash| hash.to_string())
        };
        tokio::task::spawn_blocking(work).await.map_err(Error::internal)?.map_err(Error::internal)
    }

    /// Whether the password matches the hash. Without a hash the result is false, after the same
    /// amount of work.
    pub async fn verify(self, password: String, hash: Option<String>) -> Result<bool> {
        let work = move || {
            let _permit = self;
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
        let hash = passwords.permit().await.expect("a permit").hash("correct horse".into()).await.expect("a hash");
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        for (password, expected) in [("correct horse", true), ("correct horsf", false), ("", false)] {
            let permit = passwords.permit().await.expect("a permit");
            assert_eq!(permit.verify(password.into(), Some(hash.clone())).await.expect("a result"), expected);
        }
    }

    /// The parameters in the hash determine the time: they must equal those of a stored hash.
    #[tokio::test]
    async fn the_hash_for_unknown_accounts_has_the_parameters_of_stored_ones() {
        let stored = Passwords::new().permit().await.expect("a permit").hash("x".into()).await.expect("a hash");
        let stored = PasswordHash::new(&stored).expect("a hash");
        let none = PasswordHash::new(NO_ACCOUNT).expect("a hash");
        assert_eq!(none.algorithm, stored.algorithm);
        assert_eq!(none.version, stored.version);
        assert_eq!(none.params.to_string(), stored.params.to_string());
        assert_eq!(none.salt.map(|salt| salt.len()), stored.salt.map(|salt| salt.len()));
        assert_eq!(none.hash.map(|hash| hash.len()), stored.hash.map(|hash| hash.len()));
        let passwords = Passwords::new();
        assert!(!passwords.permit().await.expect("a permit").verify("x".into(), None).await.expect("a result"));
    }

    #[tokio::test]
    async fn further_requests_are_refused_with_503() {
        let passwords = Passwords::new();
        let _permits = (passwords.permit().await.expect("a permit"), passwords.permit().await.expect("a permit"));
        let waiting: Vec<_> = (CONCURRENT..MAX_PENDING)
            .map(|_| {
                let mut permit = Box::pin(passwords.permit());
                assert!(futures_util::FutureExt::now_or_never(permit.as_mut()).is_none(), "it waits");
                permit
            })
            .collect();
        let error = passwords.permit().await.err().expect("a refusal");
        assert_eq!((error.status().as_u16(), error.code()), (503, "BUSY"));
        drop(waiting);
        assert!(
            futures_util::FutureExt::now_or_never(passwords.permit()).is_none(),
            "a pending slot is free, both permits are held"
        );
    }
}
