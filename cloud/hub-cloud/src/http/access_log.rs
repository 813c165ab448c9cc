//! The access log: one line for each request, or for some of them. The line is written in the span
//! of the request, which adds its id, method and path.

use std::time::Duration;

use axum::extract::Request;
use axum::http::{StatusCode, header};
use hub_base::sealing;
use hub_core::config::AccessLog;

/// The target of the lines, for filters.
pub const TARGET: &str = "access";

/// The kind of caller, by the credential that the request shows.
pub fn caller_of(request: &Request) -> &'static str {
    let headers = request.headers();
    match () {
        () if headers.contains_key("x-api-key") => "key",
        () if !headers.contains_key(header::AUTHORIZATION) => "public",
        () if request.uri().path().starts_with("/v1/") => "hub",
        () => "user",
    }
}

/// A random number from 0 to 1.
fn chance() -> f64 {
    f64::from(u32::from_le_bytes(sealing::random())) / f64::from(u32::MAX)
}

/// Writes the line if this request is to be logged.
pub fn write(
    which: AccessLog,
    route: &str,
    caller: &'static str,
    status: StatusCode,
    duration: Duration,
) {
    let is_logged = match which {
        AccessLog::Off => false,
        AccessLog::Errors => {
            !status.is_success() && !status.is_redirection() && !status.is_informational()
        }
        AccessLog::All => true,
        AccessLog::Sample(share) => status.is_server_error() || chance() < share,
    };
    if is_logged {
        let duration_ms = duration.as_micros() as f64 / 1000.0;
        tracing::info!(target: TARGET, route, caller, status = status.as_u16(), duration_ms, "request");
    }
}
