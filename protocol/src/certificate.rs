//! How a hub gets a client certificate: it creates a key, requests a certificate for it, and never
//! reveals the key.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// `POST /v1/hubs/{hubUuid}/certificates`: asks for a client certificate for a key of the hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CertificateIssueRequest {
    /// A PKCS#10 request in PEM form, at most 16 KiB, for a P-256, P-384, Ed25519 or RSA key (2,048
    /// to 8,192 bits), signed with that key. Its subject is ignored.
    #[cfg_attr(feature = "schema", schemars(length(max = 16384)))]
    pub csr: String,
}

/// A client certificate that names the hub, whatever the request asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CertificateIssueResponse {
    /// The certificate, in PEM form.
    pub certificate: String,
    /// The certificate that issued it, in PEM form: a hub presents both.
    pub chain: String,
    /// The serial number in lower-case hex.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[0-9a-f]+$")))]
    pub serial_number: String,
    /// When it begins to be valid.
    pub not_before: Timestamp,
    /// When it expires.
    pub not_after: Timestamp,
}
