//! Which certificates of servers are trusted: those that an authority of the system or a given
//! certificate has issued, and the given certificates themselves. The last accepts what
//! `openssl req -x509` makes: such a certificate says that it is an authority, which none of the
//! usual verifiers accept of a server.

mod files;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_platform_verifier::Verifier;

pub use files::FilesNow;

#[derive(Debug)]
pub struct Trust {
    authorities: Arc<dyn ServerCertVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl Trust {
    /// The authorities of the system, as they are now, and the given certificates.
    pub fn beside_system(
        given: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let authorities = Verifier::new_with_extra_roots(given.clone(), provider)?;
        Ok(Self {
            authorities: Arc::new(authorities),
            given,
        })
    }

    /// The given certificates and nothing else; at least one.
    pub fn only(
        given: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in &given {
            roots.add(certificate.clone())?;
        }
        let authorities = WebPkiServerVerifier::builder_with_provider(roots.into(), provider);
        let authorities = authorities
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
        Ok(Self { authorities, given })
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let issued = self.authorities.verify_server_cert(
            shown,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        if issued.is_ok() || !self.given.contains(shown) {
            return issued;
        }
        verify_server_name(&ParsedCertificate::try_from(shown)?, server_name)?;
        let Validity { begin, end } = Validity::of(shown)?;
        match now {
            now if now < begin => Err(CertificateError::NotValidYet.into()),
            now if now > end => Err(CertificateError::Expired.into()),
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// The certificates of a PEM text, which has at least one and can be a server's or an authority's.
pub fn read_certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| format!("not PEM certificates: {error}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in &found {
        roots
            .add(certificate.clone())
            .map_err(|error| format!("not usable certificates: {error}"))?;
    }
    match found.is_empty() {
        true => Err("it contains no certificate".to_owned()),
        false => Ok(found),
    }
}

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    pub begin: UnixTime,
    pub end: UnixTime,
}

impl Validity {
    pub fn of(certificate: &[u8]) -> Result<Self, Error> {
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate)
            .map_err(|_| CertificateError::BadEncoding)?;
        let time = |secs: i64| {
            UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(secs).unwrap_or(0)))
        };
        Ok(Self {
            begin: time(parsed.validity().not_before.timestamp()),
            end: time(parsed.validity().not_after.timestamp()),
        })
    }
}
