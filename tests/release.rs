//! `hub-cloud release` as a person uses it, beside the minisign program it has to get on with.

use std::path::Path;
use std::process::Stdio;

use hub_protocol::release::ReleaseManifest;
use hub_tests::process::program;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

struct Output {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Output {
    #[track_caller]
    fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        self
    }
}

/// Runs a program in a directory with this on its standard input.
async fn run(
    program: impl AsRef<std::ffi::OsStr>,
    dir: &Path,
    arguments: &[&str],
    input: &str,
) -> Output {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // It may end without reading.
    let _ = child
        .stdin
        .take()
        .expect("its input")
        .write_all(input.as_bytes())
        .await;
    let output = child.wait_with_output().await.expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Output {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

async fn release(dir: &Path, arguments: &[&str], input: &str) -> Output {
    run(
        program("hub-cloud"),
        dir,
        &[&["release"], arguments].concat(),
        input,
    )
    .await
}

const AGENT: [&str; 11] = [
    "--kind",
    "agent",
    "--name",
    "hub-agent",
    "--version",
    "1.4.2",
    "--architecture",
    "aarch64",
    "--counter",
    "42",
    "hub-agent",
];

async fn sign(dir: &Path, key: &str, more: &[&str], input: &str) -> Output {
    release(
        dir,
        &[&["sign", "--key", key], more, &AGENT].concat(),
        input,
    )
    .await
}

fn read(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join(name)).expect(name)
}

/// A directory with a file to release and keys without a password, `maker.key` and `maker.pub`.
async fn workshop() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("hub-agent"), vec![7; 200_000]).expect("a file");
    release(
        dir.path(),
        &["keygen", "--out", "maker", "--no-password"],
        "",
    )
    .await
    .expect(0);
    dir
}

#[tokio::test(flavor = "multi_thread")]
async fn verify_accepts_only_what_was_signed() {
    use std::os::unix::fs::PermissionsExt;
    let dir = workshop().await;
    let dir = dir.path();
    let mode = std::fs::metadata(dir.join("maker.key"))
        .expect("the key")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(
        release(dir, &["keygen", "--out", "maker", "--no-password"], "")
            .await
            .expect(1)
            .stderr
            .contains("already")
    );
    sign(dir, "maker.key", &[], "").await.expect(0);
    let manifest: ReleaseManifest =
        serde_json::from_str(&read(dir, "hub-agent.manifest.json")).expect("a manifest");
    assert_eq!(
        (
            manifest.version.as_str(),
            manifest.counter,
            manifest.size_bytes
        ),
        ("1.4.2", 42, 200_000)
    );
    assert_eq!((manifest.downgrade, manifest.app.is_none()), (false, true));
    let verify =
        async |keys: &str| release(dir, &["verify", "--keys", keys, "hub-agent"], "").await;
    let text = verify("maker.pub").await.expect(0).stdout;
    assert!(
        text.contains("hub-agent 1.4.2 aarch64, counter 42"),
        "{text}"
    );
    // In the layout that services and hubs have.
    std::fs::create_dir_all(dir.join("keys/agent")).expect("a directory");
    std::fs::copy(dir.join("maker.pub"), dir.join("keys/agent/maker.pub")).expect("a copy");
    verify("keys").await.expect(0);
    std::fs::rename(dir.join("keys/agent"), dir.join("keys/app")).expect("another kind");
    assert!(verify("keys").await.expect(1).stderr.contains("no key"));
    release(dir, &["keygen", "--out", "other", "--no-password"], "")
        .await
        .expect(0);
    assert!(
        verify("other.pub")
            .await
            .expect(1)
            .stderr
            .contains("none of the 1 trusted keys")
    );
    std::fs::write(dir.join("hub-agent"), vec![8; 200_000]).expect("a file");
    assert!(
        verify("maker.pub")
            .await
            .expect(1)
            .stderr
            .contains("SHA-256")
    );
    std::fs::write(dir.join("hub-agent"), vec![7; 199_999]).expect("a file");
    assert!(
        verify("maker.pub")
            .await
            .expect(1)
            .stderr
            .contains("199999 bytes")
    );
    let altered =
        read(dir, "hub-agent.manifest.json").replace("\"counter\": 42", "\"counter\": 43");
    std::fs::write(dir.join("hub-agent.manifest.json"), altered).expect("a file");
    assert!(
        verify("maker.pub")
            .await
            .expect(1)
            .stderr
            .contains("does not match")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn app_release_describes_how_the_app_runs() {
    let dir = workshop().await;
    let dir = dir.path();
    let sign = async |app: &[&str]| {
        let fixed = [
            "sign",
            "--key",
            "maker.key",
            "--kind",
            "app",
            "--name",
            "logger",
            "--version",
            "2.0.0",
        ];
        let more = [
            "--architecture",
            "any",
            "--counter",
            "7",
            "--downgrade",
            "hub-agent",
        ];
        release(dir, &[&fixed[..], app, &more].concat(), "").await
    };
    std::fs::write(
        dir.join("app.toml"),
        "entryPoint = 'bin/logger'\nble = true\n[environment]\nLEVEL = 'info'\n",
    )
    .expect("a file");
    sign(&["--app", "app.toml"]).await.expect(0);
    let manifest: ReleaseManifest =
        serde_json::from_str(&read(dir, "hub-agent.manifest.json")).expect("a manifest");
    let app = manifest.app.expect("how it runs");
    assert!(
        app.entry_point == "bin/logger"
            && app.ble
            && app.environment["LEVEL"] == "info"
            && manifest.downgrade
    );
    release(dir, &["verify", "--keys", "maker.pub", "hub-agent"], "")
        .await
        .expect(0);
    assert!(sign(&[]).await.expect(2).stderr.contains("--app"));
    for (text, part) in [
        ("entryPoint = '../x'", "entryPoint"),
        ("entrypoint = 'x'", "entrypoint"),
        ("entryPoint = 'x'\nmemoryBytes = 1", "memoryBytes"),
        ("entryPoint", "app.toml"),
    ] {
        std::fs::write(dir.join("app.toml"), text).expect("a file");
        let stderr = sign(&["--app", "app.toml"]).await.expect(2).stderr;
        assert!(stderr.contains(part), "{text}: {stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_usage_is_reported_and_signs_nothing() {
    let dir = workshop().await;
    let dir = dir.path();
    for (place, value, part) in [
        (3, "Hub", "--name"),
        (5, "1.4", "--version"),
        (7, "ARM", "--architecture"),
        (9, "0", "--counter"),
        (9, "many", "--counter"),
        (1, "film", "--kind"),
    ] {
        let mut arguments = AGENT;
        arguments[place] = value;
        let output = release(
            dir,
            &[&["sign", "--key", "maker.key"][..], &arguments].concat(),
            "",
        )
        .await
        .expect(2);
        assert!(output.stderr.contains(part), "{value}: {}", output.stderr);
    }
    assert!(!dir.join("hub-agent.manifest.json").exists());
    sign(dir, "missing.key", &[], "").await.expect(1);
    assert!(
        sign(dir, "hub-agent", &[], "")
            .await
            .expect(1)
            .stderr
            .contains("hub-agent")
    );
    release(dir, &["keygen", "--out", "x"], "").await.expect(2);
    release(dir, &["keygen", "--out", "x", "--password-stdin"], "\n")
        .await
        .expect(2);
    release(
        dir,
        &["keygen", "--out", "no/such/folder", "--no-password"],
        "",
    )
    .await
    .expect(1);
    for help in [
        &["--help"][..],
        &["keygen", "--help"],
        &["sign", "--help"],
        &["verify", "--help"],
    ] {
        assert!(
            release(dir, help, "")
                .await
                .expect(0)
                .stdout
                .contains("hub-cloud release"),
            "{help:?}"
        );
    }
}

/// Both directions, with and without a password.
#[tokio::test(flavor = "multi_thread")]
async fn files_are_compatible_with_minisign() {
    if std::process::Command::new("minisign")
        .arg("-v")
        .output()
        .is_err()
    {
        hub_tests::skip(
            "files of the minisign program",
            "the Debian package minisign",
        );
        return;
    }
    let dir = workshop().await;
    let dir = dir.path();
    let minisign =
        async |arguments: &[&str], input: &str| run("minisign", dir, arguments, input).await;
    let check = ["-V", "-p", "maker.pub", "-m", "hub-agent.manifest.json"];
    // Ours, checked by it.
    sign(dir, "maker.key", &[], "").await.expect(0);
    let text = minisign(&check, "").await.expect(0).stdout;
    assert!(text.contains("file:hub-agent.manifest.json"), "{text}");
    std::fs::write(dir.join("hub-agent.manifest.json"), "{}").expect("a file");
    minisign(&check, "").await.expect(1);
    // Signed by it with our key, and checked by us.
    sign(dir, "maker.key", &[], "").await.expect(0);
    std::fs::remove_file(dir.join("hub-agent.manifest.json.minisig")).expect("our signature");
    minisign(
        &[
            "-S",
            "-W",
            "-s",
            "maker.key",
            "-m",
            "hub-agent.manifest.json",
        ],
        "",
    )
    .await
    .expect(0);
    release(dir, &["verify", "--keys", "maker.pub", "hub-agent"], "")
        .await
        .expect(0);
    // Its key, without a password and with one.
    minisign(&["-G", "-W", "-s", "its.key", "-p", "its.pub"], "")
        .await
        .expect(0);
    sign(dir, "its.key", &[], "").await.expect(0);
    release(dir, &["verify", "--keys", "its.pub", "hub-agent"], "")
        .await
        .expect(0);
    let password = "correct horse\n";
    release(
        dir,
        &["keygen", "--out", "safe", "--password-stdin"],
        password,
    )
    .await
    .expect(0);
    assert!(
        sign(dir, "safe.key", &[], "")
            .await
            .expect(1)
            .stderr
            .contains("--password-stdin")
    );
    assert!(
        sign(dir, "safe.key", &["--password-stdin"], "wrong\n")
            .await
            .expect(1)
            .stderr
            .contains("password")
    );
    sign(dir, "safe.key", &["--password-stdin"], password)
        .await
        .expect(0);
    release(dir, &["verify", "--keys", "safe.pub", "hub-agent"], "")
        .await
        .expect(0);
    std::fs::remove_file(dir.join("hub-agent.manifest.json.minisig")).expect("our signature");
    minisign(
        &["-S", "-s", "safe.key", "-m", "hub-agent.manifest.json"],
        password,
    )
    .await
    .expect(0);
    release(dir, &["verify", "--keys", "safe.pub", "hub-agent"], "")
        .await
        .expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_signed_with_the_release() {
    let dir = workshop().await;
    let dir = dir.path();
    let sbom = r#"{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": []}"#;
    let vex = r#"{"@context": "https://openvex.dev/ns/v0.2.0", "author": "A",
        "timestamp": "2026-01-01T00:00:00Z",
        "statements": [{"vulnerability": {"name": "CVE-2026-1"}, "status": "fixed"}]}"#;
    for (name, text) in [
        ("sbom.json", sbom),
        ("vex.json", vex),
        ("bom.xml", "<bom/>"),
    ] {
        std::fs::write(dir.join(name), text).expect("a file");
    }
    for (more, part) in [
        (["--sbom", "bom.xml"], "bom.xml: the document is XML"),
        (["--sbom", "vex.json"], "vex.json: @context"),
        (["--vex", "sbom.json"], "sbom.json: @context"),
    ] {
        let output = sign(dir, "maker.key", &more, "").await.expect(2);
        assert!(output.stderr.contains(part), "{more:?}: {}", output.stderr);
    }
    assert!(!dir.join("hub-agent.manifest.json").exists());
    let both = ["--sbom", "sbom.json", "--vex", "vex.json"];
    sign(dir, "maker.key", &both, "").await.expect(0);
    let manifest: ReleaseManifest =
        serde_json::from_str(&read(dir, "hub-agent.manifest.json")).expect("a manifest");
    let named = [manifest.sbom, manifest.vex].map(|document| {
        let document = document.expect("a document");
        (document.format, document.size_bytes)
    });
    assert_eq!(
        named,
        [
            ("CYCLONEDX".to_owned(), sbom.len() as u64),
            ("OPENVEX".to_owned(), vex.len() as u64)
        ]
    );
    release(dir, &["verify", "--keys", "maker.pub", "hub-agent"], "")
        .await
        .expect(0);
}
