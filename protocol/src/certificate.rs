//! How a hub gets a client certificate: it makes a key, asks for a certificate for it, and never shows the key to anybody.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// `POST /v1/hubs/{hubUuid}/certificates`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CertificateIssueRequest {
    /// A PKCS#10 request in PEM form, at most 16 KiB, for a P-256, P-384, Ed25519 or RSA key (2,048 to 8,192 bits), signed with that key. What it
    /// says about the subject is not looked at.
    pub csr: String,
}

/// The answer: a client certificate that names the hub, whatever the request asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CertificateIssueResponse {
    /// In PEM form.
    pub certificate: String,
    /// The certificate that issued it, in PEM form: a hub shows both.
    pub chain: String,
    /// In lower-case hex.
    pub serial_number: String,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
}
