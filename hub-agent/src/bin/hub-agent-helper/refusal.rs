//! How a request fails.

use std::fmt::Display;
use std::io::{Error, ErrorKind};

use hub_agent::helper_api::{Reason, Refusal};

pub fn refuse(reason: Reason, message: impl Display) -> Refusal {
    Refusal {
        reason,
        message: message.to_string(),
    }
}

/// A failed operation of the system, such as `cannot write the app`.
pub fn internal(what: impl Display) -> impl FnOnce(Error) -> Refusal {
    move |error| {
        let reason = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Reason::NoSpace,
            _ => Reason::Internal,
        };
        refuse(reason, format!("{what}: {error}"))
    }
}
