//! TLS where the service speaks it itself, and the certificates that hubs show there. Whom those are checked against follows the database, so that a
//! new root is taken up without a restart. That a certificate has expired or was revoked is no reason to end a connection: the request is told, with a
//! code a hub can act on, and the hub can get another certificate over the same connection.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::middleware::AddExtension;
use axum_server::accept::Accept;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use futures_util::future::BoxFuture;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ResolvesServerCert, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme,
};
use tokio::net::TcpStream;
use tower::Layer;

use super::serve::Tuned;
use crate::app::{App, StartError, unread};
use crate::authn::client_certificate::ClientCertificate;
use crate::clock::Clock;
use crate::config::{ClientCertificates, TlsFiles};
use crate::domain::certificates::{self, Trust, x509};
use crate::error::{Error, Result};

/// How soon an authority that another process made is known here. It signs only after a minute.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The listener's TLS.
#[derive(Clone)]
pub struct Tls {
    config: RustlsConfig,
    own: Arc<dyn ResolvesServerCert>,
    /// Whom hubs' certificates are checked against; nothing where nobody is asked for one.
    trust: Option<Trust>,
}

impl Tls {
    pub async fn load(app: &App, files: &TlsFiles) -> Result<Self, StartError> {
        let config = server_config(files)?;
        let own = config.cert_resolver.clone();
        let (config, trust) = match app.config.client_certificates {
            ClientCertificates::Off => (config, None),
            ClientCertificates::Optional | ClientCertificates::Required => {
                let trust = certificates::trust(app).await.map_err(unread)?;
                (asking_config(own.clone(), &trust, &app.clock).map_err(StartError::Keys)?, Some(trust))
            }
        };
        Ok(Self { config: RustlsConfig::from_config(Arc::new(config)), own, trust })
    }

    /// Takes up what becomes of the authorities, until the service ends.
    pub async fn follow_authorities(self, app: App) {
        let Some(mut trust) = self.trust else { return };
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = app.shutdown.cancelled() => return,
            }
            // While the database is away, the ones at hand still serve.
            let Ok(found) = certificates::trust(&app).await else { continue };
            if found == trust {
                continue;
            }
            match asking_config(self.own.clone(), &found, &app.clock) {
                Ok(config) => self.config.reload_from_config(Arc::new(config)),
                Err(error) => tracing::error!(%error, "new authorities of hubs' certificates cannot be used"),
            }
            trust = found;
        }
    }

    pub fn acceptor(&self) -> Acceptor {
        Acceptor(RustlsAcceptor::new(self.config.clone()).acceptor(Tuned))
    }
}

/// Accepts a connection, and hands what the client showed to each of its requests.
#[derive(Clone)]
pub struct Acceptor(RustlsAcceptor<Tuned>);

impl<S: Send + 'static> Accept<TcpStream, S> for Acceptor {
    type Stream = <RustlsAcceptor<Tuned> as Accept<TcpStream, S>>::Stream;
    type Service = AddExtension<S, ClientCertificate>;
    type Future = BoxFuture<'static, io::Result<(Self::Stream, Self::Service)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let accepted = self.0.accept(stream, service);
        Box::pin(async move {
            let (stream, service) = accepted.await?;
            let (_, session) = stream.get_ref();
            let shown = match session.peer_certificates().and_then(<[_]>::first) {
                Some(der) => Some(x509::read(der).ok_or_else(|| io::Error::other("an unreadable certificate"))?),
                None => None,
            };
            let certificate = ClientCertificate(shown.map(Arc::new));
            Ok((stream, Extension(certificate).layer(service)))
        })
    }
}

/// The two files are read apart, so that the message can name the one at fault.
fn server_config(files: &TlsFiles) -> Result<ServerConfig, StartError> {
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
        return Err(wrong_cert("it holds no certificate in PEM form".into()));
    }
    let text = std::fs::read(&files.key).map_err(|error| wrong_key(error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => wrong_key("it holds no private key in PEM form".into()),
        error => wrong_key(format!("it is not PEM: {error}")),
    })?;
    let builder = ServerConfig::builder().with_no_client_auth();
    let config = builder.with_single_cert(chain, key).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => wrong_key(format!("it is not the key of {}", files.cert.display())),
        rustls::Error::InvalidCertificate(_) => wrong_cert(error.to_string()),
        error => wrong_key(error.to_string()),
    })?;
    Ok(with_protocols(config))
}

/// From when until when the service's own certificate is valid, when both files are what they have to be.
pub fn own_validity(files: &TlsFiles) -> Result<x509::Validity, StartError> {
    server_config(files)?;
    let wrong = |reason: String| StartError::Tls { key: "tls-cert", file: files.cert.display().to_string(), reason };
    let own = CertificateDer::from_pem_file(&files.cert).map_err(|error| wrong(error.to_string()))?;
    let shown = x509::read(&own).ok_or_else(|| wrong("it cannot be read".to_owned()))?;
    Ok(shown.validity)
}

fn with_protocols(mut config: ServerConfig) -> ServerConfig {
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

/// As the one without, but clients are asked for a certificate. Whoever has none may connect: which paths want one is for the request.
fn asking_config(own: Arc<dyn ResolvesServerCert>, trust: &Trust, clock: &Clock) -> Result<ServerConfig> {
    let certificate = |text: &String| CertificateDer::from_pem_slice(text.as_bytes()).map_err(Error::internal);
    let mut roots = RootCertStore::empty();
    for root in &trust.roots {
        roots.add(certificate(root)?).map_err(Error::internal)?;
    }
    let issuers = trust.issuers.iter().map(certificate).collect::<Result<_>>()?;
    // Told the roots' names, a browser asks nobody to pick a certificate that would not do.
    let by_roots = WebPkiClientVerifier::builder(Arc::new(roots)).allow_unauthenticated().build();
    let verifier = HubVerifier { by_roots: by_roots.map_err(Error::internal)?, issuers, clock: clock.clone() };
    let builder = ServerConfig::builder().with_client_cert_verifier(Arc::new(verifier));
    Ok(with_protocols(builder.with_cert_resolver(own)))
}

/// Checks certificates against the roots as of the last moment they were valid. It knows what issues below the roots, so that a hub need not send that.
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
        let validity = x509::read(end_entity).ok_or(malformed)?.validity;
        let as_of = self.clock.now().max(validity.not_before).min(validity.not_after);
        let as_of = UnixTime::since_unix_epoch(Duration::from_secs(as_of.as_secs().max(0).unsigned_abs()));
        let chain: Vec<CertificateDer<'_>> = intermediates.iter().chain(&self.issuers).cloned().collect();
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
