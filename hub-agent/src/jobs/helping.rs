//! The helper, as the jobs ask it: on a thread that may wait, with its refusals as the words jobs fail with.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use hub_agent::helper_api::{AppState, Helper, HelperError, Reason, Refusal};

use super::{Failed, Trouble, reason};
use crate::backoff::Backoff;

/// Tries before a helper that does not answer counts as none, when a job begins: systemd has its socket long before the agent runs.
const TRIES_TO_REACH: u32 = 5;

/// How long a change that was begun is asked for again and again.
pub const PATIENCE: Duration = Duration::from_secs(1_800);

#[derive(Clone, Debug)]
pub struct Helping(Helper);

/// What the helper did not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// It may be done, or not.
    NoAnswer {
        message: String,
        is_absent: bool,
    },
    Refused(Refusal),
}

impl From<HelperError> for NotDone {
    fn from(error: HelperError) -> Self {
        let message = error.to_string();
        match error {
            HelperError::NoAnswer(error) => {
                let is_absent = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused);
                Self::NoAnswer { message, is_absent }
            }
            // A disk that is full is no passing trouble of the helper's.
            HelperError::Refused(refusal) if refusal.reason == Reason::Internal => {
                Self::NoAnswer { message, is_absent: false }
            }
            HelperError::Refused(refusal) => Self::Refused(refusal),
        }
    }
}

impl From<NotDone> for Trouble {
    fn from(not_done: NotDone) -> Self {
        match not_done {
            NotDone::NoAnswer { message, .. } => Self::Later(message),
            NotDone::Refused(refusal) => Self::Fatal(failed(refusal)),
        }
    }
}

/// A refusal in the words of jobs.
pub fn failed(refusal: Refusal) -> Failed {
    let word = match refusal.reason {
        Reason::Untrusted => reason::BAD_SIGNATURE,
        Reason::WrongArchitecture => reason::WRONG_ARCHITECTURE,
        Reason::CounterTooLow => reason::COUNTER_TOO_LOW,
        Reason::DigestMismatch => reason::DIGEST_MISMATCH,
        Reason::NoSpace => reason::NO_SPACE,
        Reason::StartFailed => reason::DID_NOT_START,
        Reason::WrongKind | Reason::WrongName | Reason::ArchiveRefused | Reason::Conflict => reason::BAD_RELEASE,
        Reason::Forbidden | Reason::BadRequest | Reason::FileUnreadable | Reason::NotStaged | Reason::Internal => {
            reason::HELPER_UNAVAILABLE
        }
    };
    Failed { reason: word, message: refusal.message }
}

impl Helping {
    pub fn at(socket: &Path) -> Self {
        Self(Helper::at(socket))
    }

    /// Asks once. A caller that no longer waits does not stop the helper: each request can be repeated.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Helper) -> Result<T, HelperError> + Send + 'static,
    ) -> Result<T, NotDone> {
        let helper = self.0.clone();
        match tokio::task::spawn_blocking(move || question(&helper)).await {
            Ok(answered) => answered.map_err(NotDone::from),
            Err(error) => Err(NotDone::NoAnswer { message: error.to_string(), is_absent: false }),
        }
    }

    /// Asks for something that is to be finished, until there is an answer or the patience ends.
    pub async fn finish(
        &self,
        question: impl Fn(&Helper) -> Result<(), HelperError> + Clone + Send + 'static,
    ) -> Result<(), Failed> {
        let began = tokio::time::Instant::now();
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        loop {
            match self.ask(question.clone()).await {
                Ok(()) => return Ok(()),
                Err(NotDone::Refused(refusal)) => return Err(failed(refusal)),
                Err(NotDone::NoAnswer { message, .. }) if began.elapsed() >= PATIENCE => {
                    return Err(Failed { reason: reason::HELPER_UNAVAILABLE, message });
                }
                Err(NotDone::NoAnswer { message, .. }) => tracing::debug!(why = message, "the helper is asked again"),
            }
            tokio::time::sleep(backoff.next(None)).await;
        }
    }

    /// Every app there is, from a helper that answers within some seconds.
    pub async fn reach(&self) -> Result<Vec<AppState>, Trouble> {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(8));
        let mut last = String::new();
        for _ in 0..TRIES_TO_REACH {
            match self.ask(Helper::app_states).await {
                Ok(apps) => return Ok(apps),
                Err(NotDone::Refused(refusal)) => return Err(Trouble::Fatal(failed(refusal))),
                Err(NotDone::NoAnswer { message, .. }) => last = message,
            }
            tokio::time::sleep(backoff.next(None)).await;
        }
        Err(Trouble::fatal(reason::HELPER_UNAVAILABLE, last))
    }
}
