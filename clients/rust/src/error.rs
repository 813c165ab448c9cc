//! Why a call failed.

use std::time::Duration;

use hub_protocol::Problem;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The service refused the call.
    #[error("{}", of_problem(problem))]
    Refused {
        status: u16,
        problem: Box<Problem>,
        retry_after: Option<Duration>,
    },
    /// There was no response: the call may or may not have been carried out.
    #[error("{0}")]
    Unreachable(String),
    /// The response is not one of hub-cloud.
    #[error("{0}")]
    Unexpected(String),
    /// There is no session, or it has ended.
    #[error("{0}")]
    NoSession(String),
    /// The address or the credential cannot be used.
    #[error("{0}")]
    Configuration(String),
}

impl Error {
    /// Whether the same call can succeed later.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Refused { status, .. } => matches!(status, 408 | 429 | 502 | 503 | 504 | 507),
            Self::Unreachable(_) => true,
            Self::Unexpected(_) | Self::NoSession(_) | Self::Configuration(_) => false,
        }
    }

    /// The status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The code of a refusal.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { problem, .. } => Some(&problem.code),
            _ => None,
        }
    }
}

/// The message, with the field errors that it does not mention.
fn of_problem(problem: &Problem) -> String {
    let mut text = problem.message.clone();
    for error in &problem.errors {
        if !text.contains(&error.message) || !text.contains(&error.field) {
            text.push_str(&format!("; {}: {}", error.field, error.message));
        }
    }
    text
}
