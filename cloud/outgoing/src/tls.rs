//! Which certificates of receivers are trusted, and which one they are shown: those of the service,
//! or a receiver's own.

use std::path::Path;
use std::sync::Arc;

use hub_trust::{Trust, read_certificates};
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use secrecy::{ExposeSecret, SecretString};

/// Reads the authorities of the setting.
pub fn authorities(file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, String> {
    let Some(file) = file else {
        return Ok(Vec::new());
    };
    std::fs::read(file)
        .map_err(|error| error.to_string())
        .and_then(|pem| read_certificates(&pem))
        .map_err(|error| {
            let file = file.display();
            format!("cannot use the file {file} of outgoing-ca: {error}")
        })
}

/// The TLS of one receiver, in PEM texts.
pub struct OwnTls {
    /// The certificates that are trusted instead of those of the service.
    ca: Option<String>,
    certificate: Option<String>,
    key: Option<SecretString>,
    fingerprint: Vec<u8>,
}

impl std::fmt::Debug for OwnTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnTls").finish_non_exhaustive()
    }
}

/// What is wrong with the TLS of a receiver: the member, and why.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{member} {message}")]
pub struct OwnTlsError {
    pub member: &'static str,
    pub message: String,
}

impl OwnTls {
    pub fn new(ca: Option<&str>, certificate: Option<&str>, key: Option<&SecretString>) -> Self {
        let fingerprint = hub_base::sealing::hash(&format!(
            "{}\n{}\n{}",
            ca.unwrap_or_default(),
            certificate.unwrap_or_default(),
            key.map_or("", |key| key.expose_secret())
        ));
        Self {
            ca: ca.map(str::to_owned),
            certificate: certificate.map(str::to_owned),
            key: key.cloned(),
            fingerprint,
        }
    }

    /// Checks that connections can be made with it.
    pub fn check(&self) -> Result<(), OwnTlsError> {
        client_config(&[], Some(self)).map(|_| ())
    }

    /// Tells one from another.
    pub fn fingerprint(&self) -> &[u8] {
        &self.fingerprint
    }

    fn trusted(&self) -> Result<Vec<CertificateDer<'static>>, OwnTlsError> {
        match &self.ca {
            Some(ca) => read_certificates(ca.as_bytes())
                .map_err(|error| wrong("ca", format!("must be PEM certificates: {error}"))),
            None => Ok(Vec::new()),
        }
    }

    /// The certificate that is shown, with its key.
    fn identity(&self) -> Result<Option<Identity>, OwnTlsError> {
        let (certificate, key) = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => (certificate, key),
            (None, None) => return Ok(None),
            (Some(_), None) => return Err(wrong("key", "is missing")),
            (None, Some(_)) => return Err(wrong("certificate", "is missing")),
        };
        let certificates: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
        let certificates = certificates.ok().filter(|found| !found.is_empty());
        let certificates =
            certificates.ok_or_else(|| wrong("certificate", "must be a PEM certificate"))?;
        let key = PrivateKeyDer::from_pem_slice(key.expose_secret().as_bytes())
            .map_err(|_| wrong("key", "must be a private key in PEM, not encrypted"))?;
        Ok(Some((certificates, key)))
    }
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn wrong(member: &'static str, message: impl Into<String>) -> OwnTlsError {
    OwnTlsError {
        member,
        message: message.into(),
    }
}

/// With the authorities of the system, those given, and what a receiver has of its own.
pub fn client_config(
    authorities: &[CertificateDer<'static>],
    own: Option<&OwnTls>,
) -> Result<ClientConfig, OwnTlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let trusted = own.map(OwnTls::trusted).transpose()?.unwrap_or_default();
    let trust = match trusted.is_empty() {
        true => Trust::beside_system(authorities.to_vec(), provider.clone()),
        false => Trust::only(trusted, provider.clone()),
    };
    let trust = trust.map_err(|error| wrong("ca", error.to_string()))?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong("ca", error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust));
    match own.map(OwnTls::identity).transpose()?.flatten() {
        Some((certificates, key)) => builder
            .with_client_auth_cert(certificates, key)
            .map_err(|_| wrong("key", "must be the key of `certificate`")),
        None => Ok(builder.with_no_client_auth()),
    }
}
