//! Keys, requests and certificates: made quickly in this process, or made and checked by OpenSSL's
//! command line as anybody would.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use hub_protocol::certificate::CertificateIssueResponse;
use rcgen::{CertificateParams, DnType, KeyPair};
use reqwest::header::HeaderMap;
use reqwest::{Certificate, Identity};
use serde_json::json;
use tempfile::TempDir;

use crate::client::{Call, Client, Reply, install_tls};
use crate::hub::SimulatedHub;

/// A new key and a request for it, both in PEM form.
pub fn request() -> (String, String) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "anything");
    let request = params.serialize_request(&key).expect("a request");
    (key.serialize_pem(), request.pem().expect("PEM"))
}

impl SimulatedHub {
    /// Asks for a certificate with this request.
    pub async fn ask_for_certificate(&self, csr: &str) -> Reply {
        let path = format!("/v1/hubs/{}/certificates", self.hub_uuid);
        self.client
            .post(&path)
            .json(&json!({"csr": csr}))
            .call()
            .await
    }

    /// A certificate for a new key, with the parts a client connects with.
    pub async fn certificate(&self) -> HubCertificate {
        let (key, csr) = request();
        HubCertificate {
            key,
            issued: self.ask_for_certificate(&csr).await.expect(200).data(),
        }
    }
}

#[derive(Clone)]
pub struct HubCertificate {
    pub key: String,
    pub issued: CertificateIssueResponse,
}

/// The certificate that a service speaks TLS with, in files.
pub struct ServerCertificate {
    dir: TempDir,
    certificate: String,
}

impl ServerCertificate {
    /// For 127.0.0.1.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("parameters");
        let certificate = params.self_signed(&key).expect("a certificate").pem();
        std::fs::write(dir.path().join("cert.pem"), &certificate).expect("a file");
        std::fs::write(dir.path().join("key.pem"), key.serialize_pem()).expect("a file");
        Self { dir, certificate }
    }

    pub fn certificate_file(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }

    pub fn key_file(&self) -> PathBuf {
        self.dir.path().join("key.pem")
    }

    /// A caller who trusts it, and shows `shown` when asked for a certificate.
    pub fn client(&self, url: &str, shown: Option<&HubCertificate>) -> Client {
        let chain =
            |shown: &HubCertificate| format!("{}{}", shown.issued.certificate, shown.issued.chain);
        self.client_showing(url, shown.map(|shown| (shown.key.clone(), chain(shown))))
    }

    /// As `client`, with any key and certificates.
    pub fn client_showing(&self, url: &str, shown: Option<(String, String)>) -> Client {
        install_tls();
        let own = Certificate::from_pem(self.certificate.as_bytes()).expect("a certificate");
        let mut builder = reqwest::Client::builder()
            .timeout(Duration::from_secs(30))
            .no_proxy()
            .tls_certs_only([own]);
        if let Some((key, certificates)) = shown {
            let pem = format!("{key}{certificates}");
            builder = builder
                .identity(Identity::from_pem(pem.as_bytes()).expect("a key and certificates"));
        }
        Client {
            http: builder.build().expect("a client"),
            url: url.to_owned(),
            headers: HeaderMap::new(),
        }
    }
}

impl Default for ServerCertificate {
    fn default() -> Self {
        Self::new()
    }
}

/// OpenSSL's command line, in a folder of its own.
pub struct Openssl {
    dir: TempDir,
}

impl Openssl {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().expect("a directory"),
        }
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.dir.path().join(name), text).expect("a file");
    }

    /// Whether it went well, and all it said.
    pub fn try_run(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new("openssl")
            .args(arguments)
            .current_dir(self.dir.path())
            .output()
            .expect("openssl runs");
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    }

    /// What it said, having done what it was asked.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> String {
        let (went_well, said) = self.try_run(arguments);
        assert!(went_well, "openssl {arguments:?}: {said}");
        said
    }

    /// A request for a new key, which is kept in `key.pem`.
    #[track_caller]
    pub fn request(&self, new_key: &[&str], more: &[&str]) -> String {
        let mut arguments = vec![
            "req",
            "-new",
            "-nodes",
            "-keyout",
            "key.pem",
            "-out",
            "request.pem",
            "-newkey",
        ];
        arguments.extend(new_key.iter().chain(more));
        self.run(&arguments);
        std::fs::read_to_string(self.dir.path().join("request.pem")).expect("the request")
    }

    /// Whether a client's certificate is good under this bundle, at a time in seconds since 1970.
    pub fn verifies(
        &self,
        issued: &CertificateIssueResponse,
        bundle: &str,
        at_secs: i64,
    ) -> (bool, String) {
        self.write("certificate.pem", &issued.certificate);
        self.write("chain.pem", &issued.chain);
        self.write("bundle.pem", bundle);
        let at = at_secs.to_string();
        self.try_run(&[
            "verify",
            "-x509_strict",
            "-purpose",
            "sslclient",
            "-attime",
            &at,
            "-CAfile",
            "bundle.pem",
            "-untrusted",
            "chain.pem",
            "certificate.pem",
        ])
    }
}

impl Default for Openssl {
    fn default() -> Self {
        Self::new()
    }
}
