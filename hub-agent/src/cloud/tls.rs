//! TLS with `ca-file`: the service is trusted if one of the system's authorities or of the file's
//! certificates has issued its certificate, or if the file contains that certificate itself. The
//! latter accepts what `openssl req -x509` makes: such a certificate says that it is an authority,
//! which none of the usual verifiers accept of a server.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;
use secrecy::{ExposeSecret, SecretString};

use crate::error::chain;

/// A client certificate with its key, as PEM.
pub struct Identity(SecretString);

impl Identity {
    pub fn from_pem(pem: &SecretString) -> Result<Self, String> {
        let identity = Self(pem.clone());
        identity.parsed()?;
        Ok(identity)
    }

    pub fn pem(&self) -> &[u8] {
        self.0.expose_secret().as_bytes()
    }

    fn parsed(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(self.pem()).collect();
        let certificates = certificates.map_err(|error| error.to_string())?;
        let key = PrivateKeyDer::from_pem_slice(self.pem()).map_err(|error| error.to_string())?;
        Ok((certificates, key))
    }
}

/// The error says what is wrong with the file or the certificate.
pub fn config(ca_file: &Path, identity: Option<&Identity>) -> Result<ClientConfig, String> {
    let pem = std::fs::read(ca_file).map_err(|error| error.to_string())?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates = certificates.map_err(|error| format!("not PEM certificates: {error}"))?;
    if certificates.is_empty() {
        return Err("it contains no certificate".to_owned());
    }
    let provider = CryptoProvider::get_default()
        .cloned()
        .unwrap_or_else(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    let authorities = Verifier::new_with_extra_roots(certificates.clone(), provider.clone());
    let authorities =
        authorities.map_err(|error| format!("not usable certificates: {}", chain(&error)))?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| chain(&error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trust {
            authorities,
            certificates,
        }));
    match identity {
        Some(identity) => {
            let (chain_of_hub, key) = identity.parsed()?;
            builder
                .with_client_auth_cert(chain_of_hub, key)
                .map_err(|error| chain(&error))
        }
        None => Ok(builder.with_no_client_auth()),
    }
}

#[derive(Debug)]
struct Trust {
    authorities: Verifier,
    /// The certificates of the file.
    certificates: Vec<CertificateDer<'static>>,
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
        if issued.is_ok() || !self.certificates.contains(shown) {
            return issued;
        }
        verify_server_name(&ParsedCertificate::try_from(shown)?, server_name)?;
        verify_time(shown, now)?;
        Ok(ServerCertVerified::assertion())
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

fn verify_time(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let refused = |reason| Err(Error::InvalidCertificate(reason));
    let Ok((_, parsed)) = x509_parser::parse_x509_certificate(certificate) else {
        return refused(CertificateError::BadEncoding);
    };
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    match parsed.validity() {
        validity if now < validity.not_before.timestamp() => refused(CertificateError::NotValidYet),
        validity if now > validity.not_after.timestamp() => refused(CertificateError::Expired),
        _ => Ok(()),
    }
}
