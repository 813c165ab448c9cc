//! What operators do: hubs blocked and allowed again, a rollout halted and resumed.

use std::io::Write;
use std::process::Stdio;

use hub_tests::process::program;
use hub_tests::{Backend, Call, Client, Cloud};
use serde_json::{Value, json};

use super::{PASSWORD, PATIENCE, Terminal};

/// Runs `hub-cloud` with this on its standard input.
fn hub_cloud(arguments: &[&str], input: &str) {
    let mut command = std::process::Command::new(program("hub-cloud"));
    let mut child = command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    child
        .stdin
        .take()
        .expect("its input")
        .write_all(input.as_bytes())
        .expect("it reads");
    assert!(child.wait().expect("it ends").success(), "{arguments:?}");
}

/// Publishes a release of the agent, as `hub-publish-release` does.
async fn publish_agent(admin: &Client, key: &str, file: &str) {
    let sign = [
        "release",
        "sign",
        "--key",
        key,
        "--kind",
        "agent",
        "--name",
        "hub-agent",
        "--version",
        "1.0.0",
    ];
    hub_cloud(
        &[
            sign.as_slice(),
            &["--architecture", "x86_64", "--counter", "1", file],
        ]
        .concat(),
        "",
    );
    let read = |suffix: &str| std::fs::read_to_string(format!("{file}{suffix}")).expect("a file");
    let (manifest, signature) = (read(".manifest.json"), read(".manifest.json.minisig"));
    let release = json!({"channel": "stable", "manifest": manifest, "signature": signature});
    let made = admin
        .post("/platform/agent-releases")
        .json(&release)
        .call()
        .await
        .expect(201)
        .json();
    let url = made["data"]["uploadUrl"].as_str().expect("a URL");
    let upload = admin
        .put(url)
        .header("content-type", "application/octet-stream")
        .body(read(""));
    upload.call().await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn hubs_are_blocked_and_rollouts_halted() {
    let keys = tempfile::tempdir().expect("a directory");
    let path = |name: &str| keys.path().join(name).display().to_string();
    hub_cloud(
        &[
            "release",
            "keygen",
            "--out",
            &path("agent"),
            "--no-password",
        ],
        "",
    );
    std::fs::create_dir_all(path("trusted/agent")).expect("a folder");
    std::fs::copy(path("agent.pub"), path("trusted/agent/agent.pub")).expect("a copy");
    let cloud = Cloud::start(Backend::Sqlite, &["--release-keys", &path("trusted")]).await;
    let terminal = Terminal::new();
    let email = [
        "--service-url",
        &cloud.url,
        "--email",
        "ada@example.com",
        "--password-stdin",
    ];
    terminal
        .run_with(&[&["register"], email.as_slice()].concat(), PASSWORD)
        .await
        .expect(0);
    terminal
        .run(&["tenants", "create", "Warehouse"])
        .await
        .expect(0);
    terminal
        .run(&["tenants", "create", "Plant"])
        .await
        .expect(0);

    // A hub of the tenant, and nothing that its owner may do to block it.
    let anyone = Client::new(&cloud.url);
    let claim = async || -> String {
        let code =
            terminal.json(&["codes", "create", "--label", "roof"]).await["claimCode"].clone();
        let claim = json!({"claimCode": code, "deviceInstanceId": "hardware", "agentVersion": "0.9.0",
                           "os": {"name": "debian", "version": "12", "arch": "x86_64"}});
        let claimed = anyone
            .post("/v1/hubs/claim")
            .json(&claim)
            .call()
            .await
            .expect(201)
            .json();
        claimed["data"]["hubUuid"]
            .as_str()
            .expect("a uuid")
            .to_owned()
    };
    let uuid = claim().await;
    terminal
        .run(&["hubs", "block", &uuid, "--yes"])
        .await
        .expect(1);

    // A platform administrator, who keeps the chosen tenant.
    let data_dir = cloud.data_dir().display().to_string();
    let admin = [
        "admin",
        "create",
        "--email",
        "ada@example.com",
        "--password-stdin",
        "--data-dir",
        &data_dir,
    ];
    hub_cloud(&admin, PASSWORD);
    terminal
        .run_with(&[&["login"], email.as_slice()].concat(), PASSWORD)
        .await
        .expect(0)
        .says("Using tenant Plant");
    terminal
        .run(&["hubs", "block", &uuid])
        .await
        .expect(2)
        .says("credentials are revoked immediately");
    assert_eq!(
        terminal
            .json(&["hubs", "list", "--status", "blocked"])
            .await,
        json!([])
    );
    terminal
        .run(&["hubs", "block", &uuid, "--yes"])
        .await
        .expect(0);
    assert_eq!(
        terminal
            .json(&["hubs", "list", "--status", "blocked"])
            .await[0]["hubIdentifier"],
        "roof"
    );
    let shown = terminal
        .run(&["hubs", "show", "roof"])
        .await
        .expect(0)
        .stdout;
    assert!(shown.contains("BLOCKED"), "{shown}");
    terminal.run(&["hubs", "unblock", &uuid]).await.expect(0);
    assert_eq!(claim().await, uuid);

    // A rollout that the tenant's policy begins.
    let stored = terminal.stored();
    let token = stored["profiles"]["default"]["credential"]["session"]["accessToken"]
        .as_str()
        .expect("a token");
    let tenant = stored["profiles"]["default"]["tenantUuid"]
        .as_str()
        .and_then(|uuid| uuid.parse().ok());
    let admin = anyone.bearer(token).tenant(tenant.expect("a tenant"));
    terminal
        .run(&["rollout", "halt", "--yes"])
        .await
        .expect(1)
        .says("no policy has a rollout");
    let policy = json!({"scope": "UNIT", "channel": "stable"});
    admin
        .put("/tenant/agent-update-policies")
        .json(&policy)
        .call()
        .await
        .expect(200);
    std::fs::write(path("hub-agent"), "an agent").expect("a file");
    publish_agent(&admin, &path("agent.key"), &path("hub-agent")).await;
    let begun =
        async { while terminal.json(&["rollout", "status"]).await[0]["rollouts"] == json!([]) {} };
    tokio::time::timeout(PATIENCE, begun)
        .await
        .expect("the rollout begins");
    let state = async || -> Value {
        terminal.json(&["rollout", "status"]).await[0]["rollouts"][0]["state"].clone()
    };
    terminal
        .run(&["rollout", "halt"])
        .await
        .expect(2)
        .says("--yes");
    assert_eq!(state().await, "RUNNING");
    terminal.run(&["rollout", "halt", "--yes"]).await.expect(0);
    assert_eq!(state().await, "HALTED");
    let table = terminal
        .run(&["rollout", "status", "--platform"])
        .await
        .expect(0)
        .stdout;
    assert!(
        table.contains("1.0.0 x86_64") && table.contains("HALTED"),
        "{table}"
    );
    terminal
        .run(&["rollout", "resume", "--yes"])
        .await
        .expect(0);
    assert_eq!(state().await, "RUNNING");
}
