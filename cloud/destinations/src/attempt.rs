//! How a try ended, in a way that decides what happens next.

use std::time::Duration;

use hub_outgoing::{CallError, CallErrorKind};

/// The end of one try.
#[derive(Debug)]
pub struct Attempt {
    pub result: Result<(), Failure>,
    pub response_status: Option<u16>,
    /// The first KiB, without control characters.
    pub response_body: Option<String>,
    pub duration: Duration,
}

impl Attempt {
    /// The state of the message: DELIVERED, DEAD if the receiver does not accept this one, FAILED
    /// if it has to be sent again.
    pub fn status(&self) -> &'static str {
        match &self.result {
            Ok(()) => "DELIVERED",
            Err(Failure::Message { .. }) => "DEAD",
            Err(Failure::Receiver { .. } | Failure::Credentials { .. } | Failure::Gone { .. }) => {
                "FAILED"
            }
        }
    }

    /// The same, with these statuses as failures of the receiver.
    #[must_use]
    pub fn retried_on(mut self, statuses: &[u16]) -> Self {
        let is_retried = self
            .response_status
            .is_some_and(|status| statuses.contains(&status));
        if is_retried {
            self.result = self.result.map_err(|failure| match failure {
                Failure::Receiver { .. } => failure,
                other => Failure::receiver(other.into_reason()),
            });
        }
        self
    }
}

/// Why a message was not accepted, with reasons as they are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The receiver is at fault, for all messages: the circuit counts it.
    Receiver {
        reason: String,
        retry_after: Option<Duration>,
    },
    /// The receiver does not accept the credentials.
    Credentials { reason: String },
    /// This message is at fault; others may be accepted.
    Message { reason: String },
    /// There is no such receiver any more, or it must not be called.
    Gone { reason: String },
}

impl Failure {
    pub fn into_reason(self) -> String {
        match self {
            Self::Receiver { reason, .. }
            | Self::Credentials { reason }
            | Self::Message { reason }
            | Self::Gone { reason } => reason,
        }
    }

    pub fn receiver(reason: impl Into<String>) -> Self {
        Self::Receiver {
            reason: reason.into(),
            retry_after: None,
        }
    }

    pub fn message(reason: impl Into<String>) -> Self {
        Self::Message {
            reason: reason.into(),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error.kind {
            CallErrorKind::Forbidden => Self::Gone {
                reason: error.message,
            },
            CallErrorKind::Dns
            | CallErrorKind::Connect
            | CallErrorKind::Tls
            | CallErrorKind::TimedOut
            | CallErrorKind::Broken => Self::receiver(error.message),
        }
    }
}

/// What came back, whatever it means.
#[derive(Debug, Default)]
pub struct Answer {
    pub status: Option<u16>,
    pub body: Option<String>,
}

/// Bytes of an answer that are read, and those that are kept.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024;
const KEPT_ANSWER_BYTES: usize = 1024;

impl Answer {
    pub fn new(status: u16, body: &[u8]) -> Self {
        let head = body
            .get(..KEPT_ANSWER_BYTES.min(body.len()))
            .unwrap_or_default();
        let is_plain = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
        let text: String = String::from_utf8_lossy(head)
            .chars()
            .filter(is_plain)
            .collect();
        Self {
            status: Some(status),
            body: (!text.is_empty()).then_some(text),
        }
    }
}

/// An answer and what it means, or why there is none.
pub type Sent = Result<(Answer, Result<(), Failure>), Failure>;

pub fn credentials_missing() -> Failure {
    Failure::Credentials {
        reason: "the credentials of the destination are missing: give them again".to_owned(),
    }
}
