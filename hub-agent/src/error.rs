//! How a command fails: the message for the person, and the exit code for scripts and systemd.
//! Never contains a secret.

use std::fmt;
use std::process::ExitCode;

/// A command failed. The message says what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Exit code 1.
    Failed(String),
    /// Exit code 3: a setting is missing, unknown or wrong.
    Config(String),
    /// Exit code 75 (`EX_TEMPFAIL`): the same command may succeed later.
    TryAgain(String),
}

impl Failure {
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Failed(_) => 1,
            Self::Config(_) => 3,
            Self::TryAgain(_) => 75,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message) | Self::Config(message) | Self::TryAgain(message) => {
                f.write_str(message)
            }
        }
    }
}

impl std::error::Error for Failure {}

/// An error and all its causes on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // The text of an error may repeat its cause.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
