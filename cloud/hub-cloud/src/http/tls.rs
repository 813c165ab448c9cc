//! TLS terminated by the service itself, and the client certificates of hubs. The roots that these
//! are checked against follow the database, so that a new root takes effect without a restart. An
//! expired or revoked certificate does not end a connection: the request is refused with a code
//! that a hub can act on, and the hub can get another certificate over the same connection.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::middleware::AddExtension;
use axum_server::accept::Accept;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use futures_util::future::BoxFuture;
use hub_base::clock::Clock;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::config::{ClientCertificates, TlsFiles};
use hub_fleet::certificates::{self, Trust};
use hub_identity::authn::client_certificate::{self, CertificateInfo, ClientCertificate};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ResolvesServerCert, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig,
    SignatureScheme,
};
use tokio::net::TcpStream;
use tower::Layer;

use super::accept::Tuned;
use crate::start_error::{StartError, read_error};

/// The interval of polls for an authority that another process created. It signs only after a
/// minute.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The listener's TLS.
#[derive(Clone)]
pub struct Tls {
    config: RustlsConfig,
    own: Arc<dyn ResolvesServerCert>,
    /// The authorities that hub certificates are checked against; `None` if no client certificates
    /// are requested.
    trust: Option<Trust>,
}

impl Tls {
    /// With the service's own certificate.
    pub async fn new(core: &Core, config: ServerConfig) -> Result<Self, StartError> {
        let own = config.cert_resolver.clone();
        let (config, trust) = match core.config.client_certificates {
            ClientCertificates::Off => (config, None),
            ClientCertificates::Optional | ClientCertificates::Required => {
                let trust = certificates::trust_for_renewal(core)
                    .await
                    .map_err(read_error)?;
                (
                    client_auth_config(own.clone(), &trust, &core.clock)
                        .map_err(StartError::Keys)?,
                    Some(trust),
                )
            }
        };
        Ok(Self {
            config: RustlsConfig::from_config(Arc::new(config)),
            own,
            trust,
        })
    }

    /// Applies changes of the authorities until the service ends.
    pub async fn follow_authorities(self, core: Core) {
        let Some(mut trust) = self.trust else { return };
        loop {
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = core.shutdown.cancelled() => return,
            }
            // While the database is unreachable, the loaded authorities remain in use.
            let Ok(found) = certificates::trust_for_renewal(&core).await else {
                continue;
            };
            if found == trust {
                continue;
            }
            match client_auth_config(self.own.clone(), &found, &core.clock) {
                Ok(config) => self.config.reload_from_config(Arc::new(config)),
                Err(error) => {
                    tracing::error!(%error, "cannot use the new certificate authorities of hubs; the previous ones remain in use")
                }
            }
            trust = found;
        }
    }

    pub fn acceptor(&self) -> Acceptor {
        Acceptor(RustlsAcceptor::new(self.config.clone()).acceptor(Tuned))
    }
}

/// Accepts a connection and attaches its client certificate to each of its requests.
#[derive(Clone)]
pub struct Acceptor(RustlsAcceptor<Tuned>);

impl<S: Send + 'static> Accept<TcpStream, S> for Acceptor {
    type Stream = <RustlsAcceptor<Tuned> as Accept<TcpStream, S>>::Stream;
    type Service = AddExtension<<Tuned as Accept<TcpStream, S>>::Service, ClientCertificate>;
    type Future = BoxFuture<'static, io::Result<(Self::Stream, Self::Service)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let accepted = self.0.accept(stream, service);
        Box::pin(async move {
            let (stream, service) = accepted.await?;
            let (_, session) = stream.get_ref();
            let presented = match session.peer_certificates().and_then(<[_]>::first) {
                Some(der) => Some(
                    client_certificate::read(der)
                        .ok_or_else(|| io::Error::other("an unreadable certificate"))?,
                ),
                None => None,
            };
            let certificate = ClientCertificate(presented.map(Arc::new));
            Ok((stream, Extension(certificate).layer(service)))
        })
    }
}

/// The service's own certificate. Parses the two files separately, so that the error can name the
/// faulty one.
pub fn server_config(files: &TlsFiles) -> Result<ServerConfig, StartError> {
    let wrong = |key: &'static str, file: &Path, reason: String| StartError::Tls {
        key,
        file: file.display().to_string(),
        reason,
    };
    let wrong_cert = |reason: String| wrong("tls-cert", &files.cert, reason);
    let wrong_key = |reason: String| wrong("tls-key", &files.key, reason);
    let text = std::fs::read(&files.cert).map_err(|error| wrong_cert(error.to_string()))?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong_cert(format!("it is not PEM: {error}")))?;
    if chain.is_empty() {
        return Err(wrong_cert("it contains no certificate in PEM form".into()));
    }
    let text = std::fs::read(&files.key).map_err(|error| wrong_key(error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => wrong_key("it contains no private key in PEM form".into()),
        error => wrong_key(format!("it is not PEM: {error}")),
    })?;
    let builder = ServerConfig::builder().with_no_client_auth();
    let config = builder
        .with_single_cert(chain, key)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                wrong_key(format!("it is not the key of {}", files.cert.display()))
            }
            rustls::Error::InvalidCertificate(_) => wrong_cert(error.to_string()),
            error => wrong_key(error.to_string()),
        })?;
    Ok(with_protocols(config))
}

/// The validity of the service's own certificate, after checking both files.
pub fn own_validity(files: &TlsFiles) -> Result<CertificateInfo, StartError> {
    server_config(files)?;
    let wrong = |reason: String| StartError::Tls {
        key: "tls-cert",
        file: files.cert.display().to_string(),
        reason,
    };
    let own =
        CertificateDer::from_pem_file(&files.cert).map_err(|error| wrong(error.to_string()))?;
    client_certificate::read(&own).ok_or_else(|| wrong("it cannot be read".to_owned()))
}

fn with_protocols(mut config: ServerConfig) -> ServerConfig {
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

/// As the configuration without client certificates, but clients are asked for one. Clients without
/// one may connect too: the path of the request decides whether one is required.
fn client_auth_config(
    own: Arc<dyn ResolvesServerCert>,
    trust: &Trust,
    clock: &Clock,
) -> Result<ServerConfig> {
    let certificate =
        |text: &String| CertificateDer::from_pem_slice(text.as_bytes()).map_err(Error::internal);
    let mut roots = RootCertStore::empty();
    for root in &trust.roots {
        roots.add(certificate(root)?).map_err(Error::internal)?;
    }
    let issuers = trust
        .issuers
        .iter()
        .map(certificate)
        .collect::<Result<_>>()?;
    // The handshake names the roots, so that browsers do not ask the user to select an unsuitable
    // certificate.
    let by_roots = WebPkiClientVerifier::builder(Arc::new(roots))
        .allow_unauthenticated()
        .build();
    let verifier = HubVerifier {
        by_roots: by_roots.map_err(Error::internal)?,
        issuers,
        clock: clock.clone(),
    };
    let builder = ServerConfig::builder().with_client_cert_verifier(Arc::new(verifier));
    Ok(with_protocols(builder.with_cert_resolver(own)))
}

/// Verifies certificates against the roots, at the last time of their validity. The verifier has
/// the issuers below the roots, so that a hub need not send them.
#[derive(Debug)]
struct HubVerifier {
    by_roots: Arc<dyn ClientCertVerifier>,
    issuers: Vec<CertificateDer<'static>>,
    clock: Clock,
}

impl ClientCertVerifier for HubVerifier {
    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let malformed = rustls::Error::InvalidCertificate(CertificateError::BadEncoding);
        let presented = client_certificate::read(end_entity).ok_or(malformed)?;
        let as_of = self
            .clock
            .now()
            .max(presented.not_before)
            .min(presented.not_after);
        let as_of =
            UnixTime::since_unix_epoch(Duration::from_secs(as_of.as_secs().max(0).unsigned_abs()));
        let chain: Vec<CertificateDer<'_>> =
            intermediates.iter().chain(&self.issuers).cloned().collect();
        self.by_roots.verify_client_cert(end_entity, &chain, as_of)
    }

    fn client_auth_mandatory(&self) -> bool {
        self.by_roots.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.by_roots.root_hint_subjects()
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_roots.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_roots.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_roots.supported_verify_schemes()
    }
}
