//! From nothing to a decoded value, its delivery, and the same configuration in another tenant,
//! with `hub` alone and a real agent.

use std::path::Path;

use hub_tests::{Backend, Cloud, Process, Receiver};
use serde_json::{Value, json};

use super::{PASSWORD, PATIENCE, Terminal};

const MODEL: &str = r#"{
  "name": "Tag of the hall", "autoRegister": true, "brand": "Ruuvi",
  "identifiers": [{"conditions": [{"kind": "MANUFACTURER_PREFIX", "value": "0499:05"}]}],
  "protocols": [{"name": "format 5", "kind": "BUILTIN", "definition": {"decoder": "ruuvi"}}],
  "versions": [{"version": "1", "protocol": "format 5", "released": true}]
}"#;

fn write(directory: &Path, path: &str, text: &str) {
    let path = directory.join(path);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_hour_in_a_terminal() {
    let cloud = Cloud::start(Backend::Sqlite, &["--allow-private-targets"]).await;
    let receiver = Receiver::start().await;
    let terminal = Terminal::new();

    // An account, a tenant, a code.
    let registering = [
        "register",
        "--service-url",
        &cloud.url,
        "--email",
        "ben@example.com",
        "--password-stdin",
    ];
    terminal
        .run_with(&registering, PASSWORD)
        .await
        .expect(0)
        .says("hub tenants create");
    terminal
        .run(&["tenants", "create", "Warehouse"])
        .await
        .expect(0)
        .says("Using tenant Warehouse");
    terminal
        .run(&["hubs", "list"])
        .await
        .expect(0)
        .says("hub codes create");
    let drawn = terminal
        .run(&["codes", "create", "--qr", "--label", "roof"])
        .await
        .expect(0);
    let mut lines = drawn.stdout.lines().rev();
    let code = lines.next().expect("a code").to_owned();
    let is_code = code.len() == 19
        && code
            .chars()
            .all(|c| c == '-' || c.is_ascii_uppercase() || c.is_ascii_digit());
    assert!(is_code, "{}", drawn.stdout);
    let modules = lines.filter(|line| !line.is_empty());
    assert!(
        modules.clone().count() > 10
            && modules
                .clone()
                .all(|line| line.chars().all(|c| "█▀▄ ".contains(c)))
    );
    drawn.says(&code);

    // The hub claims itself, and is seen.
    let mut watching = terminal.follow(&["hubs", "watch", "--every", "1", "--json"]);
    let state = terminal.home.path().join("agent").display().to_string();
    let trace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("data/ble/trace.jsonl.zst")
        .display()
        .to_string();
    let agent = [
        "run",
        "--service-url",
        &cloud.url,
        "--claim-code",
        &code,
        "--state-dir",
        &state,
        "--replay",
        &trace,
    ];
    let agent = Process::start(
        "hub-agent",
        &[agent.as_slice(), &["--replay-loop", "--log", "warn"]].concat(),
        &[],
    );
    assert_eq!(watching.json().await["hubIdentifier"], "roof");
    assert_eq!(watching.interrupt().await, Some(0));
    let listed = terminal.json(&["codes", "list"]).await;
    assert_eq!(
        (&listed[0]["status"], &listed[0]["useCount"]),
        (&json!("USED"), &json!(1))
    );

    // What it hears, then a device model from a file, a device, and its value.
    let mut tail = terminal.follow(&["events", "tail", "--json", "--hub", "roof"]);
    assert!(tail.json().await["address"].is_string());
    assert_eq!(tail.interrupt().await, Some(0));
    let configuration = terminal.home.path().join("config");
    write(&configuration, "hub-export.json", r#"{"form": 1}"#);
    write(&configuration, "models/tag.json", MODEL);
    let planned = terminal
        .run(&["import", "config", "--dry-run"])
        .await
        .expect(0);
    assert!(
        planned.stdout.contains("+ create model Tag of the hall"),
        "{}",
        planned.stdout
    );
    terminal.run(&["import", "config", "--yes"]).await.expect(0);
    assert_eq!(
        terminal
            .run(&["import", "config", "--yes"])
            .await
            .expect(0)
            .stdout,
        "Nothing to change.\n"
    );
    let mut tail = terminal.follow(&["events", "tail", "--json", "--quantity", "temperature"]);
    let device = loop {
        if let Some(id) = tail.json().await["deviceInstanceId"].as_i64() {
            break id.to_string();
        }
    };
    drop(tail);
    let shown = terminal.json(&["devices", "show", &device]).await;
    assert_eq!(shown["deviceName"], "Tag of the hall", "{shown}");
    assert!(
        shown["state"]["temperature"]["value"].is_number(),
        "{shown}"
    );
    let listed = terminal
        .run(&["devices", "list", "--online"])
        .await
        .expect(0)
        .stdout;
    assert!(listed.contains("Tag of the hall"), "{listed}");

    // A pipeline from a file, which delivers.
    let pipeline = json!({
        "name": "readings", "source": {"known": true},
        "destination": {"kind": "HTTP", "url": receiver.url, "auth": {"type": "BEARER", "token": "${HUB_SECRET_PLANT}"}},
    });
    write(terminal.home.path(), "readings.json", &pipeline.to_string());
    terminal
        .run(&["pipelines", "apply", "-f", "readings.json", "--yes"])
        .await
        .expect(2)
        .says("HUB_SECRET_PLANT");
    let terminal = terminal.with("HUB_SECRET_PLANT", "the token of the plant");
    terminal
        .run(&["pipelines", "apply", "-f", "readings.json", "--yes"])
        .await
        .expect(0)
        .says("whsec_");
    let again = terminal
        .run(&["pipelines", "apply", "-f", "readings.json", "--yes"])
        .await
        .expect(0);
    assert_eq!(again.stdout, "Nothing to change.\n");
    receiver
        .until(PATIENCE, |received| !received.is_empty())
        .await;
    assert_eq!(
        receiver.take()[0].header("authorization"),
        "Bearer the token of the plant"
    );

    // The same in another tenant.
    terminal.run(&["export", "here"]).await.expect(0);
    let exported =
        std::fs::read_to_string(terminal.home.path().join("here/pipelines/readings.json"))
            .expect("a file");
    assert!(
        exported.contains("${HUB_SECRET_READINGS_TOKEN}") && !exported.contains("of the plant"),
        "{exported}"
    );
    terminal
        .run(&["tenants", "create", "Plant"])
        .await
        .expect(0);
    let terminal = terminal.with("HUB_SECRET_READINGS_TOKEN", "another token");
    terminal.run(&["import", "here", "--yes"]).await.expect(0);
    terminal.run(&["export", "there"]).await.expect(0);
    super::files::assert_same(
        &terminal.home.path().join("here"),
        &terminal.home.path().join("there"),
    );
    let there: Value = terminal.json(&["pipelines", "list"]).await;
    assert_eq!(there[0]["name"], "readings");
    drop(agent);
}
