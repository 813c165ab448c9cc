//! `hub apps publish` and `hub install`, with keys of `hub-cloud release keygen`.

use std::path::Path;

use hub_core::config::Settings;
use hub_tests::process::program;
use hub_tests::{Backend, Call, Options, SimulatedHub, TestApp};
use serde_json::json;

use super::Terminal;

const KEY_PASSWORD: &str = "the password of the key\n";

/// Runs `hub-cloud release` in a directory.
fn release(directory: &Path, arguments: &[&str]) {
    use std::io::Write;
    let mut command = std::process::Command::new(program("hub-cloud"));
    command
        .arg("release")
        .args(arguments)
        .current_dir(directory)
        .stdin(std::process::Stdio::piped());
    let mut child = command.spawn().expect("hub-cloud starts");
    let written = child
        .stdin
        .take()
        .expect("its input")
        .write_all(KEY_PASSWORD.as_bytes());
    written.expect("it reads the password");
    assert!(child.wait().expect("it ends").success());
}

#[tokio::test]
async fn an_app_is_signed_published_and_installed() {
    let keys = tempfile::tempdir().expect("a directory");
    let settings = Settings {
        release_keys: Some(keys.path().to_owned()),
        ..Settings::default()
    };
    let app = TestApp::with(
        Backend::Sqlite,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await;
    let terminal = Terminal::of_new_tenant(&app.url).await;
    let home = terminal.home.path();
    release(home, &["keygen", "--out", "app", "--password-stdin"]);
    std::fs::create_dir(keys.path().join("app")).expect("a folder");
    std::fs::copy(home.join("app.pub"), keys.path().join("app/app.pub")).expect("a copy");
    std::fs::write(home.join("logger.tar.zst"), vec![7; 300_000]).expect("a file");
    std::fs::write(home.join("run.toml"), "entryPoint = \"bin/logger\"\n").expect("a file");

    let sign = [
        "apps",
        "publish",
        "logger.tar.zst",
        "--key",
        "app.key",
        "--password-stdin",
        "--name",
        "logger",
    ];
    let with = |more: &[&'static str]| [sign.as_slice(), &["--run", "run.toml"], more].concat();
    terminal
        .run_with(&with(&["--version", "1.0.0"]), KEY_PASSWORD)
        .await
        .expect(0)
        .says("logger 1.0.0 any is published");
    terminal
        .run_with(&with(&["--version", "nope"]), KEY_PASSWORD)
        .await
        .expect(2)
        .says("version");
    terminal
        .run_with(&with(&["--version", "1.0.1"]), "wrong\n")
        .await
        .expect(1)
        .says("cannot open the key");
    terminal
        .run_with(
            &with(&["--version", "1.0.1", "--counter", "1"]),
            KEY_PASSWORD,
        )
        .await
        .expect(1);
    let sbom = json!({"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [
        {"type": "library", "name": "serde", "version": "1.0.1", "purl": "pkg:cargo/serde@1.0.1"}]});
    std::fs::write(home.join("bom.json"), sbom.to_string()).expect("a file");
    terminal
        .run_with(
            &with(&["--version", "1.0.1", "--vex", "bom.json"]),
            KEY_PASSWORD,
        )
        .await
        .expect(1)
        .says("bom.json: @context");
    // The next counter is found by itself.
    let made = terminal
        .run_with(
            &with(&["--version", "1.1.0", "--sbom", "bom.json", "--json"]),
            KEY_PASSWORD,
        )
        .await
        .expect(0)
        .json();
    assert_eq!(
        (&made["counter"], &made["status"]),
        (&json!(2), &json!("READY"))
    );
    assert_eq!(
        made["components"],
        json!({"source": "DECLARED", "count": 1})
    );

    // Signed on another machine; an answer that was lost is asked for again.
    terminal
        .run(&["apps", "publish", "logger.tar.zst"])
        .await
        .expect(1)
        .says("hub-cloud release sign");
    let signing = [
        "sign",
        "--key",
        "app.key",
        "--kind",
        "app",
        "--name",
        "logger",
        "--version",
        "1.2.0",
        "--architecture",
    ];
    let more = [
        "any",
        "--counter",
        "9",
        "--app",
        "run.toml",
        "--password-stdin",
        "logger.tar.zst",
    ];
    release(home, &[signing.as_slice(), &more].concat());
    for _ in 0..2 {
        terminal
            .run(&["apps", "publish", "logger.tar.zst"])
            .await
            .expect(0);
    }
    std::fs::write(home.join("logger.tar.zst"), vec![8; 300_000]).expect("a file");
    terminal
        .run(&["apps", "publish", "logger.tar.zst"])
        .await
        .expect(1)
        .says("not the file that was signed");
    let listed = terminal.run(&["apps", "list"]).await.expect(0).stdout;
    assert!(listed.contains("1.2.0"), "{listed}");

    // Installed, and waited for.
    let code = terminal.json(&["codes", "create", "--label", "roof"]).await["claimCode"]
        .as_str()
        .expect("it")
        .to_owned();
    let hub = SimulatedHub::claim_with(&app.client(), &code, "hardware").await;
    terminal
        .run(&["install", "logger", "--hub", "roof", "--version", "9.9.9"])
        .await
        .expect(1)
        .says("publish it first");
    terminal
        .run(&["install", "other", "--hub", "roof"])
        .await
        .expect(1)
        .says("hub apps list");
    let mut waiting = terminal.follow(&["install", "logger", "--hub", "roof", "--wait"]);
    waiting.note("PENDING").await;
    let desired = hub
        .client
        .get(&format!("/v1/hubs/{}/desired-state", hub.hub_uuid))
        .call()
        .await
        .expect(200)
        .json();
    let job = desired["data"]["jobs"][0]["hubJobUuid"]
        .as_str()
        .expect("a job")
        .to_owned();
    for (kind, message) in [
        ("ACCEPTED", "begun"),
        ("FAILED", "no room on \u{202e} the disk"),
    ] {
        let event = json!({"eventUuid": uuid::Uuid::new_v4(), "kind": kind, "message": message,
                           "occurredAt": app.app.clock.now()});
        let path = format!("/v1/hubs/{}/jobs/{job}/events", hub.hub_uuid);
        hub.client.post(&path).json(&event).call().await.expect(204);
    }
    let note = waiting.note("the job ended as FAILED").await;
    assert!(note.contains("no room on \\u{202e} the disk"), "{note}");
    assert_eq!(waiting.child.wait().await.expect("it ends").code(), Some(1));
}
