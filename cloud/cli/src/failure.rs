//! A failed command: its exit code, and a message with the next step.

use hub_client::Error;

use crate::text::printable;

pub const FAILED: u8 = 1;
pub const WRONG_USAGE: u8 = 2;
pub const CONFIG_REFUSED: u8 = 3;
/// `EX_TEMPFAIL`: the same command can succeed later.
pub const TRY_LATER: u8 = 75;

#[derive(Debug)]
pub struct Failure {
    pub exit_code: u8,
    pub message: String,
}

impl Failure {
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            exit_code: FAILED,
            message: message.into(),
        }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            exit_code: WRONG_USAGE,
            message: message.into(),
        }
    }

    pub fn configuration(message: impl Into<String>) -> Self {
        Self {
            exit_code: CONFIG_REFUSED,
            message: message.into(),
        }
    }

    /// The reader closed the pipe: it has what it needs, so this is not an error.
    pub fn closed_pipe() -> Self {
        Self {
            exit_code: 0,
            message: String::new(),
        }
    }

    /// The same failure, with its object before the message.
    pub fn about(self, what: &str) -> Self {
        Self {
            message: format!("{}: {}", printable(what), self.message),
            ..self
        }
    }
}

/// Messages of the service may contain names that devices sent, which must not control the
/// terminal.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = printable(&error.to_string());
        let message = match (&error, error.status()) {
            (_, Some(401)) if error.code() == Some("INVALID_API_KEY") => message,
            (Error::NoSession(_), _) | (_, Some(401)) => format!("{message}; run `hub login`"),
            (_, Some(429)) => format!("{message}; wait a minute"),
            (Error::Unreachable(_), _) => {
                format!("{message}; check the service URL and the network, then try again")
            }
            _ => message,
        };
        let exit_code = match &error {
            Error::Configuration(_) => CONFIG_REFUSED,
            _ if error.is_temporary() => TRY_LATER,
            Error::Refused { status: 400, .. } => WRONG_USAGE,
            _ => FAILED,
        };
        Self { exit_code, message }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::failed(format!(
            "the response of the service is not valid: {error}; use the version of hub that \
             matches the service"
        ))
    }
}
