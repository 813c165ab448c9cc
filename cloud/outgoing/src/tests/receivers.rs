//! Receivers that do what no receiver should.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::super::{CallErrorKind, Outgoing, OwnTls, Security};
use super::{get, get_with, get_within, outgoing};

const SOON: Duration = Duration::from_millis(400);

struct Receiver {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Receiver {
    /// Passes every connection to `serve`.
    async fn start<F: Future<Output = ()> + Send + 'static>(
        serve: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream));
            }
        });
        Self {
            address,
            connections,
        }
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

/// Reads the head of a request; false at the end of the connection.
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> bool {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return false,
        }
    }
    true
}

async fn answer_all(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &str) {
    while read_head(&mut stream).await && stream.write_all(answer.as_bytes()).await.is_ok() {}
}

fn private() -> Outgoing {
    outgoing(true, None, None)
}

#[tokio::test]
async fn connections_are_used_again() {
    let receiver = Receiver::start(|stream| {
        answer_all(stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    })
    .await;
    let outgoing = private();
    for _ in 0..5 {
        let answer = get(&outgoing, &receiver.url()).await.expect("an answer");
        assert_eq!(
            (answer.status, answer.body.as_ref(), answer.is_cut),
            (200, b"ok".as_ref(), false)
        );
    }
    assert_eq!(receiver.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn receiver_of_this_machine_is_not_even_connected_to() {
    let receiver = Receiver::start(|stream| {
        answer_all(stream, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    })
    .await;
    let outgoing = outgoing(false, None, None);
    let refused = get(&outgoing, &receiver.url())
        .await
        .expect_err("a refusal");
    assert_eq!(refused.kind, CallErrorKind::Forbidden);
    assert_eq!(receiver.connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn redirect_is_an_answer() {
    let answer =
        "HTTP/1.1 307 x\r\nlocation: http://169.254.169.254/latest/\r\ncontent-length: 0\r\n\r\n";
    let receiver = Receiver::start(move |stream| answer_all(stream, answer)).await;
    assert_eq!(
        get(&private(), &receiver.url())
            .await
            .expect("an answer")
            .status,
        307
    );
}

#[tokio::test]
async fn answer_that_never_comes_or_never_ends_times_out() {
    let silent = Receiver::start(|mut stream| async move {
        read_head(&mut stream).await;
        std::future::pending::<()>().await;
    });
    let unfinished = Receiver::start(|mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")
            .await;
        std::future::pending::<()>().await;
    });
    let dripping = Receiver::start(|mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
            .await;
        while stream.write_all(b"a").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let dripping_head = Receiver::start(|mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nx-long: ").await;
        while stream.write_all(b"a").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let outgoing = private();
    for receiver in [
        silent.await,
        unfinished.await,
        dripping.await,
        dripping_head.await,
    ] {
        let began = Instant::now();
        let failure = get_within(&outgoing, &receiver.url(), SOON)
            .await
            .expect_err("a failure");
        assert_eq!(failure.kind, CallErrorKind::TimedOut);
        assert!(began.elapsed() >= SOON);
    }
}

#[tokio::test]
async fn endless_answer_is_cut_and_the_connection_closed() {
    let (closed, mut is_closed) = tokio::sync::mpsc::channel(1);
    let receiver = Receiver::start(move |mut stream| {
        let closed = closed.clone();
        async move {
            read_head(&mut stream).await;
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n")
                .await;
            let chunk = vec![b'a'; 65_536];
            while stream.write_all(&chunk).await.is_ok() {}
            let _ = closed.send(()).await;
        }
    });
    let receiver = receiver.await;
    let answer = get(&private(), &receiver.url()).await.expect("an answer");
    assert_eq!((answer.body.len(), answer.is_cut), (1024, true));
    is_closed.recv().await.expect("the connection is closed");
}

#[tokio::test]
async fn what_is_not_http_is_a_broken_connection() {
    let closing = Receiver::start(|mut stream| async move {
        read_head(&mut stream).await;
    });
    let resetting = Receiver::start(|stream| async move {
        // Unread data makes the kernel reset the connection.
        let _ = stream.readable().await;
    });
    let nonsense = Receiver::start(|stream| answer_all(stream, "SSH-2.0-OpenSSH\r\n\r\n"));
    let within = Receiver::start(|mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")
            .await;
    });
    let many_headers = Receiver::start(|mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        while stream.write_all(b"x-header: value\r\n").await.is_ok() {}
    });
    let outgoing = private();
    for receiver in [
        closing.await,
        resetting.await,
        nonsense.await,
        within.await,
        many_headers.await,
    ] {
        let failure = get(&outgoing, &receiver.url())
            .await
            .expect_err("a failure");
        assert_eq!(failure.kind, CallErrorKind::Broken, "{failure}");
    }
}

#[tokio::test]
async fn nobody_listening_is_a_failure_to_connect() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let outgoing = private();
    let http = get(&outgoing, &format!("http://{address}/"))
        .await
        .expect_err("a failure");
    let stream = outgoing
        .connect("127.0.0.1", address.port(), Security::Plain, SOON)
        .await
        .expect_err("a failure");
    assert_eq!(
        [http.kind, stream.kind],
        [CallErrorKind::Connect; 2],
        "{http}"
    );
}

#[tokio::test]
async fn certificates_are_verified_with_the_authorities_of_the_setting() {
    let authority_key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&authority_key).expect("a certificate");
    let issuer = Issuer::new(params, authority_key);
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("ca.pem");
    std::fs::write(&file, authority.pem()).expect("a file");

    let right = tls_receiver(&issuer, "127.0.0.1").await;
    let wrong_name = tls_receiver(&issuer, "example.com").await;
    let with_authority = outgoing(true, None, Some(file));
    let answer = get(&with_authority, &right.url().replace("http:", "https:"))
        .await
        .expect("an answer");
    assert_eq!(answer.status, 200);
    let port = right.address.port();
    let stream = with_authority
        .connect(
            "127.0.0.1",
            port,
            Security::Tls(None),
            Duration::from_secs(30),
        )
        .await
        .expect("a stream");
    assert!(stream.is_tls());

    for (outgoing, receiver) in [(&with_authority, &wrong_name), (&private(), &right)] {
        let http = get(outgoing, &receiver.url().replace("http:", "https:"))
            .await
            .expect_err("a failure");
        let port = receiver.address.port();
        let stream = outgoing
            .connect(
                "127.0.0.1",
                port,
                Security::Tls(None),
                Duration::from_secs(30),
            )
            .await
            .expect_err("a failure");
        assert_eq!([http.kind, stream.kind], [CallErrorKind::Tls; 2], "{http}");
    }
}

#[tokio::test]
async fn a_self_signed_certificate_is_accepted_if_it_is_in_the_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("ca.pem");
    let (known, unknown) = (
        self_signed("127.0.0.1").await,
        self_signed("127.0.0.1").await,
    );
    std::fs::write(&file, &known.1).expect("a file");
    let outgoing = outgoing(true, None, Some(file));
    let https = |receiver: &Receiver| receiver.url().replace("http:", "https:");
    get(&outgoing, &https(&known.0)).await.expect("an answer");
    let failure = get(&outgoing, &https(&unknown.0))
        .await
        .expect_err("a failure");
    assert_eq!(failure.kind, CallErrorKind::Tls, "{failure}");
}

/// A receiver, and its certificate as `openssl req -x509` makes it.
async fn self_signed(name: &str) -> (Receiver, String) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new([name.to_owned()]).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).expect("a certificate");
    let receiver = tls_receiver_with(certificate.der().clone(), &key, None).await;
    (receiver, certificate.pem())
}

#[tokio::test]
async fn a_receiver_with_a_tls_of_its_own_is_trusted_by_it_alone_and_shown_the_certificate() {
    let authority_key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&authority_key).expect("a certificate");
    let issuer = Issuer::new(params, authority_key);
    let ours = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(["service".to_owned()]).expect("parameters");
    let certificate = params
        .signed_by(&ours, &issuer)
        .expect("a certificate")
        .pem();

    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("parameters");
    let of_receiver = params.signed_by(&key, &issuer).expect("a certificate");
    let of_receiver = of_receiver.der().clone();
    let strict = tls_receiver_with(of_receiver, &key, Some(authority.der().clone())).await;
    let url = strict.url().replace("http:", "https:");
    let outgoing = private();
    let ca = authority.pem();
    let other = rcgen::generate_simple_self_signed(["other".to_owned()]).expect("a certificate");
    let with_key = |ca: &str| {
        let key = ours.serialize_pem().into();
        OwnTls::new(Some(ca), Some(&certificate), Some(&key))
    };
    for (tls, is_accepted) in [
        (with_key(&ca), true),
        (OwnTls::new(Some(&ca), None, None), false),
        (with_key(&other.cert.pem()), false),
    ] {
        tls.check().expect("it can be used");
        let answered = get_with(&outgoing, &url, Some(Arc::new(tls))).await;
        assert_eq!(answered.is_ok(), is_accepted, "{answered:?}");
    }
    let another = KeyPair::generate().expect("a key").serialize_pem().into();
    for (tls, member) in [
        (OwnTls::new(Some("x"), None, None), "ca"),
        (OwnTls::new(None, Some(&certificate), None), "key"),
        (OwnTls::new(None, Some(&certificate), Some(&another)), "key"),
        (OwnTls::new(None, Some("x"), Some(&another)), "certificate"),
    ] {
        assert_eq!(tls.check().expect_err("a refusal").member, member);
    }
}

async fn tls_receiver(issuer: &Issuer<'_, KeyPair>, name: &str) -> Receiver {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new([name.to_owned()]).expect("parameters");
    let certificate = params.signed_by(&key, issuer).expect("a certificate");
    tls_receiver_with(certificate.der().clone(), &key, None).await
}

/// One that requires a certificate of the `clients` authority, if there is one.
async fn tls_receiver_with(
    certificate: CertificateDer<'static>,
    key: &KeyPair,
    clients: Option<CertificateDer<'static>>,
) -> Receiver {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("versions");
    let builder = match clients {
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority).expect("an authority");
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
        }
        None => builder.with_no_client_auth(),
    };
    let config = builder
        .with_single_cert(vec![certificate], key)
        .expect("a certificate");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Receiver::start(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            answer_all(stream, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await
}

#[test]
fn file_of_authorities_without_any_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("ca.pem");
    for content in [
        "",
        "hunter2",
        "-----BEGIN CERTIFICATE-----\nhunter2\n-----END CERTIFICATE-----\n",
    ] {
        std::fs::write(&file, content).expect("a file");
        let config = crate::OutgoingConfig {
            ca: Some(file.clone()),
            ..Default::default()
        };
        let error = Outgoing::new(&config, hub_base::metrics::Metrics::new())
            .expect_err("a refusal")
            .to_string();
        assert!(
            error.contains("outgoing-ca") && !error.contains("hunter2"),
            "{error}"
        );
    }
}
