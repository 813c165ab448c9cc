//! Keeps the hub's access while the agent runs: claims the hub when there is a claim code, renews
//! the access token in time, and waits where only a person can help.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret, SecretString};

use super::claim::{ClaimError, claim};
use super::http::CallError;
use super::service::{Access, Service};
use crate::backoff::Backoff;
use crate::identity::Credentials;
use crate::spool::Spool;

/// A token is renewed this long before it expires, or a fifth of its time if that is less.
const RENEW_BEFORE_SECS: i64 = 5 * 60;

/// A token that is younger is renewed only when the service refuses it, even if it has expired.
const RENEW_EVERY: Duration = Duration::from_secs(10);

/// How often the time is compared with the token's expiry: this also finds a clock that was set.
const CHECK_EVERY: Duration = Duration::from_secs(30);

/// How often a claim is repeated that someone has to make possible first, and a refresh that was
/// refused: the hub may have been unblocked.
const SLOW_RETRY: Duration = Duration::from_secs(600);

/// How often the file of the claim code is read while a code is needed.
const CODE_FILE_EVERY: Duration = Duration::from_secs(5);

/// The backoff before a code that worked is reused, after the hub has lost its access. Two hubs
/// with one identity revoke each other's credentials with every claim, and would use up any code.
const FIRST_REUSE: Duration = Duration::from_secs(60);
const LONGEST_REUSE: Duration = Duration::from_secs(3_600);

/// Credentials that were valid for this long show that no other hub has this identity.
const VALID_FOR: Duration = Duration::from_secs(600);

const SAME_IDENTITY: &str = "Unless this hub was blocked or removed, another hub may have the same identity: \
                             give each its own device-instance-id";

/// The sources of claim codes, beside `hub-agent claim`.
#[derive(Debug)]
pub struct CodeSource {
    pub code: Option<SecretString>,
    pub file: Option<PathBuf>,
    /// The code that was refused permanently: it is not reused.
    refused: Option<SecretString>,
    worked: Option<Worked>,
    reuse: Backoff,
    /// The reasons why the last claim failed and why the file could not be read: each is logged
    /// once.
    failed_with: Option<String>,
    unreadable: Option<String>,
}

/// A code with which this hub was claimed.
#[derive(Debug)]
struct Worked {
    code: SecretString,
    at: Instant,
    /// The time from which the code may be reused, after the credentials were lost.
    reuse_at: Option<Instant>,
}

/// The code for the next claim.
#[derive(Debug)]
enum NextCode {
    Fresh(SecretString),
    /// The code worked before and is reused after `wait`, which begins now if `is_new`.
    Later {
        wait: Duration,
        is_new: bool,
    },
    None,
}

impl CodeSource {
    pub fn new(code: Option<SecretString>, file: Option<PathBuf>) -> Self {
        let reuse = Backoff::new(FIRST_REUSE, LONGEST_REUSE);
        Self {
            code,
            file,
            refused: None,
            worked: None,
            reuse,
            failed_with: None,
            unreadable: None,
        }
    }

    /// A code that has not been refused yet. The file may appear and change at any time.
    fn next(&mut self) -> NextCode {
        let from_file = self.read_file();
        let same = |one: &SecretString, other: &SecretString| {
            one.expose_secret().trim() == other.expose_secret().trim()
        };
        let mut worked_before = None;
        for code in from_file.into_iter().chain(self.code.clone()) {
            if code.expose_secret().trim().is_empty()
                || self
                    .refused
                    .as_ref()
                    .is_some_and(|refused| same(refused, &code))
            {
                continue;
            }
            if self
                .worked
                .as_ref()
                .is_none_or(|worked| !same(&worked.code, &code))
            {
                return NextCode::Fresh(code);
            }
            worked_before = Some(code);
        }
        let (Some(code), Some(worked)) = (worked_before, &mut self.worked) else {
            return NextCode::None;
        };
        let is_new = worked.reuse_at.is_none();
        if is_new && worked.at.elapsed() >= VALID_FOR {
            self.reuse.reset();
        }
        let reuse_at = *worked
            .reuse_at
            .get_or_insert_with(|| Instant::now() + self.reuse.next(None));
        match reuse_at.saturating_duration_since(Instant::now()) {
            Duration::ZERO => NextCode::Fresh(code),
            wait => NextCode::Later { wait, is_new },
        }
    }

    fn read_file(&mut self) -> Option<SecretString> {
        let file = self.file.as_ref()?;
        let unreadable = match std::fs::read_to_string(file) {
            Ok(text) => {
                self.unreadable = None;
                return Some(SecretString::from(text.trim().to_owned()));
            }
            // The file may appear later.
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = &unreadable
            && self.unreadable != unreadable
        {
            tracing::warn!(file = %file.display(), error, "the file of the claim code cannot be read; it is tried again");
        }
        self.unreadable = unreadable;
        None
    }

    fn worked(&mut self, code: SecretString) {
        self.worked = Some(Worked {
            code,
            at: Instant::now(),
            reuse_at: None,
        });
    }
}

/// When to renew the token in use.
struct Renewal {
    token: SecretString,
    /// `None` for the token this run began with, or that came with a claim.
    obtained_at: Option<Instant>,
    before_secs: i64,
}

impl Renewal {
    fn new(token: &SecretString, obtained_at: Option<Instant>, left_secs: i64) -> Self {
        let before_secs = if left_secs > 0 {
            RENEW_BEFORE_SECS.min(left_secs / 5)
        } else {
            RENEW_BEFORE_SECS
        };
        Self {
            token: token.clone(),
            obtained_at,
            before_secs,
        }
    }

    fn due_in(&self, left_secs: i64) -> Duration {
        let too_young_for = self.obtained_at.map_or(Duration::ZERO, |at| {
            RENEW_EVERY.saturating_sub(at.elapsed())
        });
        Duration::from_secs((left_secs - self.before_secs).try_into().unwrap_or(0))
            .max(too_young_for)
    }
}

/// Runs until it is dropped.
pub async fn keep_access(service: &Service, mut codes: CodeSource, spool: &Spool) {
    let mut access = service.access();
    let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(300));
    let mut is_waiting_logged = false;
    let mut tried_at = Instant::now();
    let mut renewal: Option<Renewal> = None;
    loop {
        let now = access.borrow_and_update().clone();
        let code = if matches!(now, Access::Granted(_)) {
            NextCode::None
        } else {
            codes.next()
        };
        let wait = match (now, code) {
            (Access::Unclaimed | Access::Refused { .. }, NextCode::Fresh(code)) => {
                claim_with(service, code, &mut codes, &mut backoff, spool).await
            }
            (Access::Granted(credentials), _) => {
                is_waiting_logged = false;
                service.save_unsaved(&credentials).await;
                renew_if_due(service, &credentials, &mut renewal, &mut backoff).await
            }
            (
                Access::Refused {
                    credentials,
                    reason,
                },
                NextCode::Later { wait, is_new },
            ) if is_new || !reason.contains(SAME_IDENTITY) => {
                explain_reuse(service, credentials, &reason, wait, is_new);
                Duration::ZERO
            }
            (Access::Refused { credentials, .. }, _) if tried_at.elapsed() >= SLOW_RETRY => {
                tried_at = Instant::now();
                retry_refused(service, credentials).await;
                Duration::ZERO
            }
            (_, NextCode::Later { wait, .. }) => wait.min(if codes.file.is_some() {
                CODE_FILE_EVERY
            } else {
                SLOW_RETRY
            }),
            (waiting, NextCode::None) => {
                if !is_waiting_logged && matches!(waiting, Access::Unclaimed) {
                    tracing::warn!(
                        "this hub is not claimed; run `hub-agent claim --code CODE`. Records are kept meanwhile"
                    );
                }
                is_waiting_logged = true;
                if codes.file.is_some() {
                    CODE_FILE_EVERY
                } else {
                    SLOW_RETRY
                }
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            // A claim through `hub-agent claim`, or a refusal of an upload.
            _ = access.changed() => {}
        }
    }
}

/// Returns how long to wait until the next check.
async fn renew_if_due(
    service: &Service,
    credentials: &Credentials,
    renewal: &mut Option<Renewal>,
    backoff: &mut Backoff,
) -> Duration {
    let left_secs = |credentials: &Credentials| {
        credentials.expires_at.as_secs() - service.clock.now().as_secs()
    };
    let left = left_secs(credentials);
    let token = &credentials.access_token;
    let known = renewal.take();
    // An upload may have renewed it.
    let replaced_at = known.is_some().then(Instant::now);
    let current = known
        .filter(|known| known.token.expose_secret() == token.expose_secret())
        .unwrap_or_else(|| Renewal::new(token, replaced_at, left));
    let due_in = current.due_in(left);
    *renewal = Some(current);
    if due_in > Duration::ZERO {
        backoff.reset();
        return CHECK_EVERY.min(due_in);
    }
    match service.renew(Some(token)).await {
        // The time is noted here, because the service may issue the same token twice.
        Ok(renewed) => {
            let left = left_secs(&renewed);
            *renewal = Some(Renewal::new(
                &renewed.access_token,
                Some(Instant::now()),
                left,
            ));
            Duration::ZERO
        }
        Err(CallError::NoAccess) => Duration::ZERO,
        Err(CallError::Unreachable(_)) => backoff.next(None),
    }
}

/// Explains why the configured code is not used at once: in the log when the wait begins, and in
/// the status.
fn explain_reuse(
    service: &Service,
    credentials: Credentials,
    reason: &str,
    wait: Duration,
    is_new: bool,
) {
    if is_new {
        tracing::warn!(
            retry_secs = wait.as_secs(),
            device_instance_id = service.device_instance_id(),
            "the service refuses the credentials from this hub's claim code; the code is used again later. \
             {SAME_IDENTITY}"
        );
    }
    let reason = format!("{reason}. Its claim code is used again later. {SAME_IDENTITY}");
    service.set_access(Access::Refused {
        credentials,
        reason,
    });
}

/// Tries credentials that were refused: a hub that was blocked by mistake recovers by itself.
async fn retry_refused(service: &Service, credentials: Credentials) {
    service.set_access(Access::Granted(credentials));
    // The access has the outcome.
    let _ = service.renew(None).await;
}

async fn claim_with(
    service: &Service,
    code: SecretString,
    codes: &mut CodeSource,
    backoff: &mut Backoff,
    spool: &Spool,
) -> Duration {
    let result = claim(service, &code, spool).await;
    // The access is granted even if the credentials could not be written.
    if service.granted().is_ok() {
        codes.worked(code.clone());
        codes.failed_with = None;
    }
    match result {
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
        Err(error @ ClaimError::Later { retry_after, .. }) => {
            let wait = backoff.next(retry_after);
            let text = error.to_string();
            // The request's id differs each time and is not part of the reason.
            let reason = text
                .split(", request ")
                .next()
                .unwrap_or_default()
                .to_owned();
            // An unreachable service was logged by the call.
            let is_logged = service
                .contact()
                .unreachable
                .is_some_and(|why| text.ends_with(&why));
            if !is_logged && codes.failed_with.as_ref() != Some(&reason) {
                tracing::warn!(error = text, "claiming this hub failed; it is tried again");
            }
            codes.failed_with = Some(reason);
            wait
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_that_worked_is_reused_with_backoff_and_a_new_code_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("code");
        let mut codes = CodeSource::new(Some("ONE".into()), Some(file.clone()));
        let mut longest = Duration::ZERO;
        for _ in 0..8 {
            let NextCode::Fresh(code) = codes.next() else {
                panic!("a code")
            };
            assert_eq!(code.expose_secret(), "ONE");
            codes.worked(code);
            let NextCode::Later { wait, is_new: true } = codes.next() else {
                panic!("not at once")
            };
            assert!(wait > FIRST_REUSE / 3 && wait <= LONGEST_REUSE, "{wait:?}");
            longest = longest.max(wait);
            assert!(matches!(
                codes.next(),
                NextCode::Later { is_new: false, .. }
            ));
            // The wait is over.
            codes.worked.as_mut().unwrap().reuse_at = Some(Instant::now());
        }
        assert!(longest > LONGEST_REUSE / 3, "{longest:?}");
        codes.worked("ONE".into());
        std::fs::write(&file, "TWO\n").unwrap();
        let NextCode::Fresh(code) = codes.next() else {
            panic!("the file's")
        };
        assert_eq!(code.expose_secret(), "TWO");
        codes.refused = Some(code);
        assert!(matches!(codes.next(), NextCode::Later { .. }));
        std::fs::remove_file(&file).unwrap();
        codes.refused = Some("ONE".into());
        assert!(matches!(codes.next(), NextCode::None));
    }

    #[test]
    fn a_token_is_renewed_before_it_expires_and_not_in_a_loop() {
        let token = SecretString::from("token");
        let due = |lifetime_secs, left_secs| {
            Renewal::new(&token, None, lifetime_secs)
                .due_in(left_secs)
                .as_secs()
        };
        assert_eq!((due(86_400, 86_400), due(86_400, 300)), (86_100, 0));
        assert_eq!((due(200, 200), due(200, 40)), (160, 0));
        assert_eq!((due(-3_600, -3_600), due(-3_600, 1_000)), (0, 700));
        for lifetime_secs in [-3_600, 0, 1, 5] {
            let due_in =
                Renewal::new(&token, Some(Instant::now()), lifetime_secs).due_in(lifetime_secs);
            assert!(due_in > RENEW_EVERY / 2, "{lifetime_secs}: {due_in:?}");
        }
    }
}
