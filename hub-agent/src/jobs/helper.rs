//! Calls of the helper on a thread that may wait, and its refusals as reasons of failed jobs.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use hub_agent::helper_api::{AppState, Helper, HelperError, Reason, Refusal};

use super::job::{Failed, Trouble, reason};
use crate::backoff::Backoff;

/// Attempts to reach the helper when a job begins. systemd has its socket long before the agent
/// runs, so a helper that does not answer by then is not installed.
const ATTEMPTS_TO_REACH: u32 = 5;

/// The time for which the request of a change that was begun is repeated.
pub const PATIENCE: Duration = Duration::from_secs(1_800);

#[derive(Clone, Debug)]
pub struct HelperClient(Helper);

/// Why the helper did not do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HelperFailure {
    /// Whether it was done is unknown.
    NoAnswer {
        message: String,
        is_absent: bool,
    },
    Refused(Refusal),
}

impl From<HelperError> for HelperFailure {
    fn from(error: HelperError) -> Self {
        let message = error.to_string();
        match error {
            HelperError::NoAnswer(error) => {
                // A socket that nobody listens at is left by a helper that is installed.
                let is_absent = error.kind() == ErrorKind::NotFound;
                Self::NoAnswer { message, is_absent }
            }
            // The helper itself failed, and may succeed later.
            HelperError::Refused(refusal) if refusal.reason == Reason::Internal => Self::NoAnswer {
                message,
                is_absent: false,
            },
            HelperError::Refused(refusal) => Self::Refused(refusal),
        }
    }
}

impl From<HelperFailure> for Trouble {
    fn from(failure: HelperFailure) -> Self {
        match failure {
            HelperFailure::NoAnswer { message, .. } => {
                Self::later(reason::HELPER_UNAVAILABLE, message)
            }
            HelperFailure::Refused(refusal) if refusal.reason == Reason::NoSpace => {
                Self::Later(failed(refusal))
            }
            HelperFailure::Refused(refusal) => Self::Fatal(failed(refusal)),
        }
    }
}

/// The failure of a job that a refusal causes.
pub fn failed(refusal: Refusal) -> Failed {
    let reason = match refusal.reason {
        Reason::Untrusted => reason::BAD_SIGNATURE,
        Reason::WrongArchitecture => reason::WRONG_ARCHITECTURE,
        Reason::CounterTooLow => reason::COUNTER_TOO_LOW,
        Reason::DigestMismatch => reason::DIGEST_MISMATCH,
        Reason::NoSpace => reason::NO_SPACE,
        Reason::StartFailed => reason::DID_NOT_START,
        Reason::WrongKind | Reason::WrongName | Reason::ArchiveRefused | Reason::Conflict => {
            reason::BAD_RELEASE
        }
        Reason::Forbidden
        | Reason::BadRequest
        | Reason::FileUnreadable
        | Reason::NotStaged
        | Reason::Internal => reason::HELPER_UNAVAILABLE,
    };
    Failed::new(reason, refusal.message)
}

impl HelperClient {
    pub fn at(socket: &Path) -> Self {
        Self(Helper::at(socket))
    }

    /// Calls once. A caller that stops waiting does not stop the helper: each request can be
    /// repeated.
    pub async fn call<T: Send + 'static>(
        &self,
        request: impl FnOnce(&Helper) -> Result<T, HelperError> + Send + 'static,
    ) -> Result<T, HelperFailure> {
        let helper = self.0.clone();
        match tokio::task::spawn_blocking(move || request(&helper)).await {
            Ok(answered) => answered.map_err(HelperFailure::from),
            Err(error) => Err(HelperFailure::NoAnswer {
                message: error.to_string(),
                is_absent: false,
            }),
        }
    }

    /// Calls for a change that must be finished, until the helper answers or [`PATIENCE`] ends.
    pub async fn finish(
        &self,
        request: impl Fn(&Helper) -> Result<(), HelperError> + Clone + Send + 'static,
    ) -> Result<(), Failed> {
        let began = tokio::time::Instant::now();
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        loop {
            match self.call(request.clone()).await {
                Ok(()) => return Ok(()),
                Err(HelperFailure::Refused(refusal)) => return Err(failed(refusal)),
                Err(HelperFailure::NoAnswer { message, .. }) if began.elapsed() >= PATIENCE => {
                    return Err(Failed::new(reason::HELPER_UNAVAILABLE, message));
                }
                Err(HelperFailure::NoAnswer { message, .. }) => {
                    tracing::debug!(reason = message, "the helper is called again");
                }
            }
            tokio::time::sleep(backoff.next(None)).await;
        }
    }

    /// Every app on this hub, from a helper that answers within some seconds. One that is not
    /// installed is not waited for.
    pub async fn reach(&self) -> Result<Vec<AppState>, Trouble> {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(8));
        let mut last = Trouble::later(reason::HELPER_UNAVAILABLE, "");
        for _ in 0..ATTEMPTS_TO_REACH {
            last = match self.call(Helper::app_states).await {
                Ok(apps) => return Ok(apps),
                Err(HelperFailure::NoAnswer {
                    message,
                    is_absent: true,
                }) => Trouble::fatal(reason::HELPER_UNAVAILABLE, message),
                Err(failure @ HelperFailure::NoAnswer { .. }) => failure.into(),
                Err(failure) => return Err(failure.into()),
            };
            tokio::time::sleep(backoff.next(None)).await;
        }
        Err(last)
    }
}
