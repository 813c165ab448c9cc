//! The hub's client certificate: how the hub gets and renews it, which servers receive it, and that
//! a bad one does not lock the hub out.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use hub_protocol::Timestamp;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::jobs::{Hub, content};
use super::{stop, until_status};

/// TLS in front of the service, like a load balancer: records of each connection whether it had a
/// certificate.
#[derive(Clone)]
pub struct Front {
    address: SocketAddr,
    shown: Arc<Mutex<Vec<bool>>>,
    /// Closes connections that have a certificate without an answer.
    refuses: Arc<AtomicBool>,
}

impl Front {
    pub async fn start(hub: &Hub) -> Self {
        let authority = hub.fleet(|fleet| fleet.authority.clone());
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        Self::with(hub, certificate.der().clone(), &key).await
    }

    /// With a certificate that is valid from and to these times, in seconds from now.
    pub async fn valid(hub: &Hub, from_secs: i64, to_secs: i64) -> Self {
        let authority = hub.fleet(|fleet| fleet.authority.clone());
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let now = chrono::Utc::now().timestamp();
        let at = |secs: i64| time::OffsetDateTime::from_unix_timestamp(now + secs).unwrap();
        (params.not_before, params.not_after) = (at(from_secs), at(to_secs));
        let certificate = params.signed_by(&key, &authority).unwrap();
        Self::with(hub, certificate.der().clone(), &key).await
    }

    /// With a certificate of its own, as `openssl req -x509` makes it, which is also in this file.
    async fn self_signed(hub: &Hub, file: &str) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(hub.site.path(file), certificate.pem()).unwrap();
        Self::with(hub, certificate.der().clone(), &key).await
    }

    async fn with(hub: &Hub, certificate: CertificateDer<'static>, key: &rcgen::KeyPair) -> Self {
        let authority = hub.fleet(|fleet| fleet.authority.clone());
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.allow_unauthenticated().build().unwrap())
            .with_single_cert(
                vec![certificate],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let front = Self {
            address: listener.local_addr().unwrap(),
            shown: Arc::default(),
            refuses: Arc::default(),
        };
        let (serving, service) = (front.clone(), hub.service.address);
        let shown_ports = hub.fleet(|fleet| fleet.shown_ports.clone());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, serving, shown_ports) =
                    (acceptor.clone(), serving.clone(), shown_ports.clone());
                tokio::spawn(async move {
                    let Ok(mut inside) = acceptor.accept(stream).await else {
                        return;
                    };
                    let is_shown = inside.get_ref().1.peer_certificates().is_some();
                    serving.shown.lock().unwrap().push(is_shown);
                    if is_shown && serving.refuses.load(Ordering::Relaxed) {
                        return;
                    }
                    let mut outside = TcpStream::connect(service).await.unwrap();
                    if is_shown {
                        shown_ports
                            .lock()
                            .unwrap()
                            .insert(outside.local_addr().unwrap().port());
                    }
                    let _ = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
                });
            }
        });
        front
    }

    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// How many there were.
    pub fn connections(&self) -> usize {
        self.shown().len()
    }

    fn shown(&self) -> Vec<bool> {
        self.shown.lock().unwrap().clone()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_service_receives_the_certificate_and_a_refused_one_is_replaced() {
    let hub = Hub::new().await;
    let (front, store) = (Front::start(&hub).await, Front::start(&hub).await);
    let release = hub.fleet(|fleet| {
        fleet.certificate_secs = Some(86_400);
        fleet.store = Some(store.url());
        std::fs::write(hub.site.path("ca.pem"), fleet.authority.pem()).unwrap();
        fleet.app(hub.app, "1.0.0", content(1_000, 1))
    });
    let run = || {
        let mut agent = hub.run_at(&front.url());
        agent.arg("--ca-file").arg(hub.site.path("ca.pem"));
        agent.env_remove("SSL_CERT_FILE").env_remove("SSL_CERT_DIR");
        agent
    };
    let mut agent = run().spawn().unwrap();
    assert_eq!(hub.outcome(hub.install(release)).await, "SUCCEEDED");
    until_status(&hub.site, |status| !status["certificateNotAfter"].is_null()).await;
    assert_eq!(stop(&mut agent).await, Some(0));
    assert!(
        !front.shown()[0] && front.shown().contains(&true),
        "{:?}",
        front.shown()
    );
    assert_eq!(store.shown(), [false], "another server receives none");
    hub.fleet(|fleet| assert!(!fleet.file_requests[0].contains_key("authorization")));

    front.shown.lock().unwrap().clear();
    front.refuses.store(true, Ordering::Relaxed);
    let mut agent = run().spawn().unwrap();
    hub.service
        .until("another one", |stored| {
            (stored.fleet.certificate_requests.len() == 2).then_some(())
        })
        .await;
    assert!(front.shown()[0], "it is presented from the start");
    front.refuses.store(false, Ordering::Relaxed);
    until_status(&hub.site, |status| {
        status["unreachable"].is_null() && !status["certificateNotAfter"].is_null()
    })
    .await;
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_self_signed_certificate_is_accepted_if_it_is_in_the_ca_file() {
    let hub = Hub::new().await;
    let (known, unknown) = (
        Front::self_signed(&hub, "ca.pem").await,
        Front::self_signed(&hub, "other.pem").await,
    );
    for (front, is_accepted) in [(&known, true), (&unknown, false)] {
        let mut agent = hub.run_at(&front.url());
        agent.arg("--ca-file").arg(hub.site.path("ca.pem"));
        let mut agent = agent.spawn().unwrap();
        let status = until_status(&hub.site, |status| {
            !status["unreachable"].is_null() || !status["lastContactAt"].is_null()
        });
        let status = status.await;
        assert_eq!(status["unreachable"].is_null(), is_accepted, "{status}");
        assert_eq!(front.shown().is_empty(), !is_accepted);
        assert_eq!(stop(&mut agent).await, Some(0));
    }
}

/// Whether the agent has a certificate that is valid for more than an hour.
fn is_long(status: &Value) -> bool {
    let in_an_hour = Timestamp::from(chrono::Utc::now()).plus_secs(3_600);
    let not_after = status["certificateNotAfter"].as_str();
    not_after.is_some_and(|text| {
        text.parse::<Timestamp>()
            .is_ok_and(|time| time > in_an_hour)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_stored_and_renewed_and_replaced_with_a_new_claim() {
    let hub = Hub::new().await;
    let path = hub.site.state().join("client-certificate.json");
    let mut agent = hub.run().spawn().unwrap();
    let requests = |at_least: usize| {
        hub.service.until("requests", move |stored| {
            (stored.fleet.certificate_requests.len() >= at_least).then_some(())
        })
    };
    requests(1).await;
    assert_eq!(stop(&mut agent).await, Some(0));
    hub.fleet(|fleet| {
        assert_eq!(
            fleet.certificate_requests.len(),
            1,
            "a service that issues none is not asked again soon"
        );
        let csr = fleet.certificate_requests[0]["csr"].as_str().unwrap();
        assert!(
            csr.contains("CERTIFICATE REQUEST") && !csr.contains("PRIVATE"),
            "{csr}"
        );
        fleet.certificate_secs = Some(9);
    });
    let mut agent = hub.run().spawn().unwrap();
    requests(3).await;
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    hub.fleet(|fleet| {
        assert_ne!(
            fleet.certificate_requests[1], fleet.certificate_requests[2],
            "a new key each time"
        );
        fleet.certificate_secs = Some(86_400);
    });
    // How many were issued for seconds until then depends on the speed of the machine.
    until_status(&hub.site, is_long).await;
    assert_eq!(stop(&mut agent).await, Some(0));
    let issued = hub.fleet(|fleet| fleet.certificate_requests.len());
    let mut agent = hub.run().spawn().unwrap();
    until_status(&hub.site, is_long).await;
    hub.fleet(|fleet| {
        assert_eq!(
            fleet.certificate_requests.len(),
            issued,
            "it survives a restart"
        )
    });
    let before = std::fs::read(&path).unwrap();
    hub.service
        .change(|stored| stored.unblock_with("3333-3333-3333-3333"));
    let mut claim = hub.site.command("claim");
    claim.args(["--code", "3333-3333-3333-3333"]);
    assert_eq!(super::output(claim).await.status.code(), Some(0));
    requests(issued + 1).await;
    until_status(&hub.site, is_long).await;
    assert_ne!(std::fs::read(&path).unwrap(), before);
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_certificate_is_replaced_and_the_token_is_kept() {
    let hub = Hub::new().await;
    hub.fleet(|fleet| fleet.certificate_secs = Some(86_400));
    let mut agent = hub.run().spawn().unwrap();
    until_status(&hub.site, |status| !status["certificateNotAfter"].is_null()).await;
    let mut refreshes = 0;
    hub.service.change(|stored| {
        refreshes = stored.refreshes;
        stored.fleet.certificate_refused = Some(("CLIENT_CERTIFICATE_REVOKED", 2));
        // The hub calls again when it has received a change.
        stored.desire(json!({}));
    });
    hub.service
        .until("another one", |stored| {
            (stored.fleet.certificate_requests.len() == 2).then_some(())
        })
        .await;
    until_status(&hub.site, |status| {
        status["unreachable"].is_null() && !status["certificateNotAfter"].is_null()
    })
    .await;
    // A service that refuses that one too is not asked for a third at once.
    hub.service.change(|stored| {
        stored.fleet.certificate_refused = Some(("CLIENT_CERTIFICATE_EXPIRED", 3));
        stored.desire(json!({}));
    });
    let status = until_status(&hub.site, |status| status["certificateNotAfter"].is_null()).await;
    assert_eq!(
        status["access"], "CLAIMED",
        "the hub keeps its access: {status}"
    );
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    hub.service.change(|stored| {
        assert_eq!(
            (stored.refreshes, stored.fleet.certificate_requests.len()),
            (refreshes, 2)
        );
    });
    assert_eq!(stop(&mut agent).await, Some(0));
}

/// The agent of this hub, behind TLS.
fn run_behind(front: &Front, hub: &Hub) -> tokio::process::Command {
    hub.fleet(|fleet| std::fs::write(hub.site.path("ca.pem"), fleet.authority.pem()).unwrap());
    let mut agent = hub.run_at(&front.url());
    agent.arg("--ca-file").arg(hub.site.path("ca.pem"));
    agent.env_remove("SSL_CERT_FILE").env_remove("SSL_CERT_DIR");
    agent
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_certificate_is_shown_to_get_another_one() {
    let hub = Hub::new().await;
    let front = Front::start(&hub).await;
    hub.fleet(|fleet| (fleet.certificate_secs, fleet.certificates_required) = (Some(86_400), true));
    let mut agent = run_behind(&front, &hub).spawn().unwrap();
    until_status(&hub.site, |status| !status["certificateNotAfter"].is_null()).await;
    hub.service.change(|stored| {
        stored.fleet.certificate_refused = Some(("CLIENT_CERTIFICATE_EXPIRED", 2));
        stored.desire(json!({}));
    });
    hub.service
        .until("another one", |stored| {
            (stored.fleet.certificate_requests.len() == 2).then_some(())
        })
        .await;
    let status = until_status(&hub.site, |status| !status["certificateNotAfter"].is_null()).await;
    assert!(status["certificateRefused"].is_null(), "{status}");
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_lost_its_key_says_so_and_begins_anew_with_a_claim() {
    let hub = Hub::new().await;
    let front = Front::start(&hub).await;
    hub.fleet(|fleet| (fleet.certificate_secs, fleet.certificates_required) = (Some(86_400), true));
    let mut agent = run_behind(&front, &hub).spawn().unwrap();
    until_status(&hub.site, |status| !status["certificateNotAfter"].is_null()).await;
    assert_eq!(stop(&mut agent).await, Some(0));
    assert!(!hub.site.state().join("client-certificate.key").exists());

    std::fs::remove_file(hub.site.state().join("client-certificate.json")).unwrap();
    let mut agent = run_behind(&front, &hub).spawn().unwrap();
    let status = until_status(&hub.site, |status| !status["certificateRefused"].is_null()).await;
    assert!(
        status["certificateRefused"]
            .as_str()
            .unwrap()
            .contains("CLIENT_CERTIFICATE_REQUIRED"),
        "{status}"
    );
    assert_eq!(
        status["access"], "CLAIMED",
        "its token is in force: {status}"
    );

    hub.service
        .change(|stored| stored.unblock_with("3333-3333-3333-3333"));
    let mut claim = hub.site.command("claim");
    claim.args(["--code", "3333-3333-3333-3333"]);
    assert_eq!(super::output(claim).await.status.code(), Some(0));
    let status = until_status(&hub.site, |status| !status["certificateNotAfter"].is_null()).await;
    assert!(status["certificateRefused"].is_null(), "{status}");
    assert_eq!(stop(&mut agent).await, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_answer_is_lost_is_repeated_with_the_same_key() {
    let hub = Hub::new().await;
    // As a service that was reached and whose answer was not: there is no certificate, and the key
    // stays.
    let key = hub.site.state().join("client-certificate.key");
    let public_key = |request: &serde_json::Value| {
        let csr = request["csr"].as_str().unwrap();
        let request = rcgen::CertificateSigningRequestParams::from_pem(csr).unwrap();
        rcgen::PublicKeyData::subject_public_key_info(&request.public_key)
    };
    for count in 1..=2 {
        let mut agent = hub.run().spawn().unwrap();
        let all = |stored: &super::service::Stored| {
            (stored.fleet.certificate_requests.len() >= count).then_some(())
        };
        hub.service.until("a request", all).await;
        assert_eq!(stop(&mut agent).await, Some(0));
        let mode = std::fs::metadata(&key).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    hub.fleet(|fleet| {
        let [first, again] = &fleet.certificate_requests[..] else {
            panic!("two requests")
        };
        assert_eq!(public_key(first), public_key(again));
    });
}
