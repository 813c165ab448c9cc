//! Keeps the hub let in for as long as the agent runs: claims when a code turns up, renews in time, waits where only a person can help.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret, SecretString};

use super::{Access, CallError, ClaimError, Service};
use crate::backoff::Backoff;
use crate::identity::Credentials;
use crate::spool::Spool;

/// A token is renewed when it has this long to go.
const RENEW_BEFORE_SECS: i64 = 5 * 60;

/// How often time is compared with the token's expiry: also finds a clock that was set.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// How often a claim is tried again that someone has to make possible first, and a refresh that was refused: the hub may have been unblocked.
const SLOW_RETRY: Duration = Duration::from_secs(600);

/// How often the file of the claim code is looked at while a code is needed.
const CODE_FILE_EVERY: Duration = Duration::from_secs(5);

/// Where claim codes come from, beside `hub-agent claim`.
#[derive(Debug)]
pub struct CodeSource {
    pub code: Option<SecretString>,
    pub file: Option<PathBuf>,
    /// Refused for good: not tried again.
    refused: Option<SecretString>,
}

impl CodeSource {
    pub fn new(code: Option<SecretString>, file: Option<PathBuf>) -> Self {
        Self { code, file, refused: None }
    }

    /// A code that has not been refused yet. The file may come, and change, at any time.
    fn next(&self) -> Option<SecretString> {
        let from_file = self.file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        let from_file = from_file.map(|text| SecretString::from(text.trim().to_owned()));
        let fresh = |code: &SecretString| {
            let code = code.expose_secret().trim();
            !code.is_empty() && self.refused.as_ref().is_none_or(|refused| refused.expose_secret().trim() != code)
        };
        from_file.filter(fresh).or_else(|| self.code.clone().filter(fresh))
    }
}

impl Service {
    /// Runs until it is dropped.
    pub async fn keep_access(&self, mut codes: CodeSource, spool: &Spool) {
        let mut access = self.access();
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(300));
        let mut said_waiting = false;
        let mut asked_at = Instant::now();
        loop {
            let now = access.borrow_and_update().clone();
            let code = if matches!(now, Access::Granted(_)) { None } else { codes.next() };
            let wait = match (now, code) {
                (Access::Unclaimed | Access::Refused { .. }, Some(code)) => {
                    self.claim_with(code, &mut codes, &mut backoff, spool).await
                }
                (Access::Granted(credentials), _) => {
                    said_waiting = false;
                    if self.unsaved.load(Ordering::Relaxed) {
                        // Said when it failed first, and when it works again.
                        let _ = self.save(&credentials);
                    }
                    let left_secs = credentials.expires_at.as_secs() - self.clock.now().as_secs();
                    if left_secs > RENEW_BEFORE_SECS {
                        backoff.reset();
                        LOOK_EVERY.min(Duration::from_secs((left_secs - RENEW_BEFORE_SECS) as u64))
                    } else {
                        match self.renew(Some(&credentials.access_token)).await {
                            // A lifetime shorter than the margin must not make a busy loop.
                            Ok(_) => Duration::from_secs(1).max(backoff.next(None)),
                            Err(CallError::NoAccess) => Duration::ZERO,
                            Err(CallError::Unreachable(_)) => backoff.next(None),
                        }
                    }
                }
                (Access::Refused { credentials, .. }, None) if asked_at.elapsed() >= SLOW_RETRY => {
                    asked_at = Instant::now();
                    self.ask_again(credentials).await;
                    Duration::ZERO
                }
                (waiting, None) => {
                    if !said_waiting && matches!(waiting, Access::Unclaimed) {
                        tracing::warn!(
                            "this hub is not claimed; run `hub-agent claim --code CODE`. What is heard is kept meanwhile"
                        );
                    }
                    said_waiting = true;
                    if codes.file.is_some() { CODE_FILE_EVERY } else { SLOW_RETRY }
                }
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                // A claim through `hub-agent claim`, or a refusal met by an upload.
                _ = access.changed() => {}
            }
        }
    }

    /// Asks again with credentials that were refused: a hub that was shut out by mistake comes back by itself.
    async fn ask_again(&self, credentials: Credentials) {
        self.access.send_replace(Access::Granted(credentials));
        // Refused again or not, the outcome is in `access`.
        let _ = self.renew(None).await;
    }

    async fn claim_with(
        &self,
        code: SecretString,
        codes: &mut CodeSource,
        backoff: &mut Backoff,
        spool: &Spool,
    ) -> Duration {
        match self.claim(&code, spool).await {
            Ok(_) => {
                backoff.reset();
                Duration::ZERO
            }
            Err(error @ ClaimError::Code(_)) => {
                tracing::error!(%error, "claiming this hub failed");
                codes.refused = Some(code);
                Duration::ZERO
            }
            Err(error @ ClaimError::Hub(_)) => {
                tracing::error!(%error, retry_secs = SLOW_RETRY.as_secs(), "claiming this hub failed");
                SLOW_RETRY
            }
            // Said already, where the service was called.
            Err(ClaimError::Later(_)) => backoff.next(None),
        }
    }
}
