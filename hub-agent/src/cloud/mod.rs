//! The connection to the service: one HTTP client, the hub's credentials and certificate, and the
//! rule that a refused token is renewed once and the call repeated. Never stores data for later
//! (the spool does) and never logs a token.

mod access;
mod certificate;
mod claim;
mod enrolment;
mod http;
mod reach;
mod service;
mod service_time;
mod tls;

pub use access::{CodeSource, keep_access};
pub use claim::{ClaimError, claim, claim_elsewhere, reach_elsewhere};
pub use enrolment::keep_certificate;
pub use http::{Answer, CallError, IDEMPOTENCY_KEY, Request, http_client, install_crypto};
pub use reach::Unreached;
pub use service::{Access, Service};
