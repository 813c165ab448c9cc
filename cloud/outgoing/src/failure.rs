//! Why a call failed, in words for the people of a tenant: no secrets, nothing of this machine.

use std::error::Error as StdError;
use std::io;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    pub kind: CallErrorKind,
    /// A plain sentence without secrets.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallErrorKind {
    /// The address is none that may be called.
    Forbidden,
    Dns,
    Connect,
    Tls,
    TimedOut,
    /// Reset, or not the protocol that was expected.
    Broken,
}

impl CallErrorKind {
    /// The label of the metric.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::TimedOut => "timed_out",
            Self::Broken => "broken",
        }
    }
}

impl CallError {
    pub fn new(kind: CallErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    pub fn forbidden(host: &str, reason: &str) -> Self {
        Self::new(
            CallErrorKind::Forbidden,
            format!("{host} must not be called: it is {reason}"),
        )
    }

    pub fn timed_out() -> Self {
        Self::new(
            CallErrorKind::TimedOut,
            "the receiver did not answer in time",
        )
    }

    pub(super) fn connecting(error: &io::Error) -> Self {
        Self::new(
            CallErrorKind::Connect,
            format!("cannot connect: {}", reason(error)),
        )
    }

    /// The failure of a TLS handshake.
    pub(super) fn securing(error: &io::Error) -> Self {
        match tls_cause(error) {
            Some(error) => Self::tls(error),
            None => Self::new(
                CallErrorKind::Tls,
                format!("the TLS handshake failed: {}", reason(error)),
            ),
        }
    }

    fn tls(error: &rustls::Error) -> Self {
        Self::new(
            CallErrorKind::Tls,
            format!("the TLS handshake failed: {error}"),
        )
    }

    pub(super) fn of_request(error: &reqwest::Error) -> Self {
        let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
        let mut io_error = None;
        while let Some(error) = cause {
            if let Some(own) = error.downcast_ref::<Self>() {
                return own.clone();
            }
            if let Some(error) = error.downcast_ref::<rustls::Error>() {
                return Self::tls(error);
            }
            if let Some(error) = error.downcast_ref::<io::Error>() {
                if let Some(error) = tls_cause(error) {
                    return Self::tls(error);
                }
                io_error = Some(error);
            }
            cause = error.source();
        }
        match io_error {
            _ if error.is_timeout() => Self::timed_out(),
            Some(io_error) if error.is_connect() => Self::connecting(io_error),
            _ if error.is_connect() => Self::new(CallErrorKind::Connect, "cannot connect"),
            Some(io_error) => Self::broken(io_error),
            None => Self::new(
                CallErrorKind::Broken,
                "the receiver ended the connection, or does not speak HTTP",
            ),
        }
    }

    /// The connection ended within a message.
    pub fn broken(error: &io::Error) -> Self {
        Self::new(
            CallErrorKind::Broken,
            format!("the connection broke: {}", reason(error)),
        )
    }
}

/// The error of TLS that an error of a stream wraps, once or twice.
fn tls_cause(error: &io::Error) -> Option<&rustls::Error> {
    let inner = error.get_ref()?;
    let nested = || inner.downcast_ref::<io::Error>().and_then(tls_cause);
    inner.downcast_ref::<rustls::Error>().or_else(nested)
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "the connection was refused".to_owned(),
        io::ErrorKind::ConnectionReset => "the receiver reset the connection".to_owned(),
        io::ErrorKind::UnexpectedEof => "the receiver closed the connection".to_owned(),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            "there is no route to it".to_owned()
        }
        io::ErrorKind::TimedOut => "the receiver did not answer".to_owned(),
        kind => kind.to_string(),
    }
}
