//! Brokers as programs of their own, which end with the test.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::net::TcpStream;

pub struct Broker {
    pub port: u16,
    pub dir: TempDir,
    child: Child,
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the program is here. It has to be where all tests are required.
pub fn has(program: &str) -> bool {
    let is_here = ["/usr/bin", "/usr/sbin", "/usr/local/bin"]
        .iter()
        .any(|dir| Path::new(dir).join(program).exists());
    assert!(
        is_here || std::env::var_os("HUB_TESTS_REQUIRE").is_none(),
        "{program} is missing"
    );
    if !is_here {
        eprintln!("skipped: {program} is missing");
    }
    is_here
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port")
        .port()
}

impl Broker {
    /// Starts a program with the arguments that `configure` makes of its directory and port.
    pub async fn start(program: &str, configure: impl FnOnce(&Path, u16) -> Vec<String>) -> Self {
        Self::start_on(program, free_port(), configure).await
    }

    pub async fn start_on(
        program: &str,
        port: u16,
        configure: impl FnOnce(&Path, u16) -> Vec<String>,
    ) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let arguments = configure(dir.path(), port);
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("the broker starts");
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            assert!(
                child.try_wait().expect("a state").is_none(),
                "{program} has ended"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Self { port, dir, child }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// `ca.pem`, `cert.pem` and `key.pem` for 127.0.0.1.
pub fn certificates(dir: &Path) {
    let authority_key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&authority_key).expect("a certificate");
    let key = KeyPair::generate().expect("a key");
    let mut certificate = CertificateParams::new(["127.0.0.1".to_owned()]).expect("parameters");
    // OpenSSL takes a certificate with the name of its authority for self-signed.
    let name = &mut certificate.distinguished_name;
    name.push(rcgen::DnType::CommonName, "a broker, or a client");
    let certificate = certificate
        .signed_by(&key, &Issuer::new(params, authority_key))
        .expect("a certificate");
    for (name, text) in [
        ("ca.pem", authority.pem()),
        ("cert.pem", certificate.pem()),
        ("key.pem", key.serialize_pem()),
    ] {
        std::fs::write(dir.join(name), text).expect("a file");
    }
}
