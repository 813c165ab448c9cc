//! TLS with the service: the agent's own clock, the authorities of the system and of `ca-file`, and
//! the hub's certificate.

use std::path::Path;
use std::sync::Arc;

use hub_protocol::Timestamp;
use hub_trust::{Trust, Validity, read_certificates};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use secrecy::{ExposeSecret, SecretString};

use crate::clock::Clock;
use crate::error::{Failure, chain};

/// A client certificate with its key, as PEM.
pub struct Identity(SecretString);

impl Identity {
    pub fn from_pem(pem: &SecretString) -> Result<Self, String> {
        let identity = Self(pem.clone());
        identity.parsed()?;
        Ok(identity)
    }

    fn parsed(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
        let pem = self.0.expose_secret().as_bytes();
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let certificates = certificates.map_err(|error| error.to_string())?;
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| error.to_string())?;
        Ok((certificates, key))
    }
}

/// The time at which a certificate must be valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidAt {
    /// The clock's.
    Now,
    /// The clock's, or the certificate's beginning if that is later: for nothing but to learn the
    /// time.
    NowOrItsBeginning,
}

pub fn config(
    ca_file: Option<&Path>,
    identity: Option<&Identity>,
    clock: &Arc<Clock>,
    valid_at: ValidAt,
) -> Result<ClientConfig, Failure> {
    let unusable = |reason: String| match ca_file {
        Some(file) => Failure::Config(format!("ca-file: {}: {reason}", file.display())),
        None => Failure::Failed(format!(
            "cannot set up TLS: {reason}; install the system's authorities (Debian: ca-certificates) or set --ca-file"
        )),
    };
    let given = match ca_file {
        Some(file) => std::fs::read(file)
            .map_err(|error| error.to_string())
            .and_then(|pem| read_certificates(&pem))
            .map_err(unusable)?,
        None => Vec::new(),
    };
    let provider = CryptoProvider::get_default()
        .cloned()
        .unwrap_or_else(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    let trust = Trust::beside_system(given, provider.clone());
    let trust = trust.map_err(|error| unusable(chain(&error)))?;
    let builder = ClientConfig::builder_with_details(provider, clock.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::Failed(format!("cannot set up TLS: {}", chain(&error))))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Timed {
            trust,
            clock: clock.clone(),
            valid_at,
        }));
    match identity {
        Some(identity) => {
            let of_identity =
                |error: String| Failure::Failed(format!("client certificate: {error}"));
            let (chain_of_hub, key) = identity.parsed().map_err(of_identity)?;
            builder
                .with_client_auth_cert(chain_of_hub, key)
                .map_err(|error| of_identity(chain(&error)))
        }
        None => Ok(builder.with_no_client_auth()),
    }
}

/// Tells the clock which certificates it may be believed with.
#[derive(Debug)]
struct Timed {
    trust: Trust,
    clock: Arc<Clock>,
    valid_at: ValidAt,
}

impl ServerCertVerifier for Timed {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let mut at = now;
        if self.valid_at == ValidAt::NowOrItsBeginning {
            for certificate in std::iter::once(shown).chain(intermediates) {
                at = at.max(Validity::of(certificate)?.begin);
            }
        }
        let verified =
            self.trust
                .verify_server_cert(shown, intermediates, server_name, ocsp_response, at)?;
        self.clock.accept_until(timestamp(Validity::of(shown)?.end));
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trust
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.trust
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trust.supported_verify_schemes()
    }
}

fn timestamp(time: UnixTime) -> Timestamp {
    let secs = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_micros(secs.saturating_mul(1_000_000))
}
