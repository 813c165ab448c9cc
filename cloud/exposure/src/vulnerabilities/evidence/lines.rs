//! The lines of evidence that are about all of it: what it is about, and the signature.

use hub_protocol::Timestamp;
use serde::Serialize;

use crate::severity::VulnerabilitySeverity;

/// What the statement is about, as of when.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Head<'a> {
    pub format: &'static str,
    pub vulnerability_id: &'a str,
    pub title: &'a str,
    pub severity: VulnerabilitySeverity,
    /// The day on which CISA listed it as exploited.
    pub exploited_since: Option<&'a str>,
    pub first_seen_at: Timestamp,
    pub tenant_uuid: String,
    pub tenant: String,
    pub as_of: Timestamp,
}

/// The claims of the signature. It is a JWT (RFC 7519) whose audience no token has.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Claims<'a> {
    pub iss: &'a str,
    pub aud: &'a str,
    pub sub: String,
    pub iat: i64,
    pub vulnerability_id: &'a str,
    pub as_of: Timestamp,
    pub lines: u64,
    pub bytes: u64,
    pub sha256: String,
}

#[derive(Serialize)]
pub struct Signature {
    pub jws: String,
}

/// One line.
#[derive(Serialize)]
pub struct Line<'a, T> {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub data: &'a T,
}
