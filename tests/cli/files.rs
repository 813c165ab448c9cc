//! `hub export`, `hub import` and `hub pipelines apply`: files that mean the same in every tenant,
//! and nothing changed twice.

use std::collections::BTreeMap;
use std::path::Path;

use hub_core::config::Settings;
use hub_tests::{Backend, Options, TestApp};
use serde_json::{Value, json};

use super::Terminal;

/// All files of an export by their paths.
pub fn files(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"))
    {
        let name = entry.file_name().into_string().expect("a name");
        match entry.path().is_dir() {
            true => found.extend(
                files(&entry.path())
                    .into_iter()
                    .map(|(path, text)| (format!("{name}/{path}"), text)),
            ),
            false => {
                drop(found.insert(name, std::fs::read_to_string(entry.path()).expect("a file")))
            }
        }
    }
    found
}

#[track_caller]
pub fn assert_same(one: &Path, other: &Path) {
    let (one, other) = (files(one), files(other));
    assert_eq!(
        one.keys().collect::<Vec<_>>(),
        other.keys().collect::<Vec<_>>()
    );
    for (path, text) in one {
        assert_eq!(text, other[&path], "{path}");
    }
}

fn write(directory: &Path, path: &str, document: &Value) {
    let path = directory.join(path);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, document.to_string()).expect("a file");
}

async fn service() -> TestApp {
    service_on(Backend::Sqlite).await
}

/// A service whose pipelines may send to this machine.
pub async fn service_on(backend: Backend) -> TestApp {
    let settings = Settings {
        allow_private_targets: Some(true.into()),
        ..Settings::default()
    };
    TestApp::with(
        backend,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await
}

/// Files with all that can be in them.
pub fn everything(directory: &Path) {
    write(directory, "hub-export.json", &json!({"form": 1}));
    write(
        directory,
        "apps/logger.json",
        &json!({"name": "logger", "description": "Logs"}),
    );
    let identifier = |value: &str| json!({"conditions": [{"kind": "MANUFACTURER_PREFIX", "value": value}], "label": value});
    let model = json!({
        "name": "Tag / \u{65e5}\u{672c} \u{2602}", "brand": "B", "model": "M", "category": "climate",
        "description": "About", "aliases": ["A", "B"], "autoRegister": true, "expectedIntervalSeconds": 10,
        "referencePowerDbm": -60, "supportedUntil": "2030-06-30", "imageUrl": "https://example.com/a.png",
        "metrics": [{"quantity": "temperature", "unit": "Cel", "kind": "MEASUREMENT"}],
        "identifiers": [identifier("0499:05"), identifier("0499:03")],
        // In the order in which they were made: the last one is the newest.
        "protocols": [
            {"name": "b first", "kind": "BUILTIN", "definition": {"decoder": "ruuvi"}},
            {"name": "a second", "kind": "BUILTIN", "definition": {"decoder": "ruuvi"}},
        ],
        "versions": [
            {"version": "1", "protocol": "b first", "hardwareVersion": "r1", "notes": "old"},
            {"version": "2", "released": true},
        ],
        "manuals": [
            {"title": "How", "format": "MARKDOWN", "content": "# How", "locale": "en"},
            {"title": "Where", "format": "LINK", "url": "https://example.com/manual"},
        ],
    });
    write(directory, "models/tag.json", &model);
    let reference = "${model:Tag / \u{65e5}\u{672c} \u{2602}}";
    write(
        directory,
        "actions/blink.json",
        &json!({
            "actionId": "blink", "name": "Blink", "deviceUuid": reference, "confirm": true,
            "parameters": {"type": "object", "properties": {"times": {"type": "integer", "minimum": 0, "maximum": 9}}},
            "transport": {"kind": "GATT", "steps": [{"service": "180f", "characteristic": "2a19", "operation": "READ"}]},
        }),
    );
    write(
        directory,
        "pipelines/plant.json",
        &json!({
            "name": "to the plant", "source": {"deviceUuids": [reference]},
            "destination": {"kind": "HTTP", "url": "https://example.com/x"},
        }),
    );
    write(
        directory,
        "pipelines/broker.json",
        &json!({
            "name": "broker", "enabled": false, "source": {"known": false},
            "destination": {"kind": "MQTT", "url": "mqtts://example.com", "topic": "a/{{address}}",
                            "auth": {"type": "BASIC", "username": "me", "password": "${HUB_SECRET_BROKER_PASSWORD}"}},
            "delivery": {"concurrency": 4},
        }),
    );
    write(
        directory,
        "route.json",
        &json!({"otherwise": "WINDOW", "rules": [
            {"layer": "HUB", "match": {"companyId": "004c"}, "action": "DROP"},
            {"layer": "CLOUD", "match": {"deviceUuid": reference}, "action": "FORWARD",
             "pipelineUuids": ["${pipeline:to the plant}"]},
        ]}),
    );
    write(
        directory,
        "bundles/kit.json",
        &json!({
            "name": "Kit", "description": "All of it", "autoApply": true, "published": true,
            "devices": [{"model": reference, "quantity": 3}], "pipelines": ["${pipeline:to the plant}"],
        }),
    );
}

#[tokio::test]
async fn what_is_exported_is_imported_elsewhere() {
    let app = service().await;
    let terminal = Terminal::of_new_tenant(&app.url)
        .await
        .with("HUB_SECRET_BROKER_PASSWORD", "s3cret of the broker");
    let home = terminal.home.path().to_owned();
    everything(&home.join("made"));
    let planned = terminal
        .run(&["import", "made", "--dry-run"])
        .await
        .expect(0);
    assert!(
        planned
            .stdout
            .ends_with("Nothing was changed (--dry-run).\n"),
        "{}",
        planned.stdout
    );
    assert_eq!(terminal.json(&["pipelines", "list"]).await, json!([]));
    terminal
        .run(&["import", "made"])
        .await
        .expect(2)
        .says("--yes");
    terminal.run(&["import", "made", "--yes"]).await.expect(0);
    assert_eq!(
        terminal
            .run(&["import", "made", "--yes"])
            .await
            .expect(0)
            .stdout,
        "Nothing to change.\n"
    );

    // Without secrets, ids and times, and twice the same.
    let said = terminal.run(&["export", "one"]).await.expect(0);
    terminal.run(&["export", "two"]).await.expect(0);
    assert_same(&home.join("one"), &home.join("two"));
    let exported = files(&home.join("one"));
    said.says(&format!("Wrote {} files to one.", exported.len()));
    let all: String = exported.values().map(String::as_str).collect();
    for noise in [
        "s3cret",
        "createdAt",
        "updatedAt",
        "revision",
        "whsec_",
        "cursor",
        "lagEvents",
    ] {
        assert!(!all.contains(noise), "{noise} in {all}");
    }
    assert!(
        all.contains("${HUB_SECRET_BROKER_PASSWORD}") && all.contains("${pipeline:to the plant}"),
        "{all}"
    );
    assert_eq!(exported.len(), 8, "{:?}", exported.keys());

    // Into an empty tenant, and out of it again.
    terminal
        .run(&["tenants", "create", "Plant"])
        .await
        .expect(0);
    terminal.run(&["import", "one", "--yes"]).await.expect(0);
    assert_eq!(
        terminal
            .run(&["import", "one", "--yes"])
            .await
            .expect(0)
            .stdout,
        "Nothing to change.\n"
    );
    terminal.run(&["export", "three"]).await.expect(0);
    assert_same(&home.join("one"), &home.join("three"));
}

#[tokio::test]
async fn a_changed_file_changes_what_it_names_and_nothing_else() {
    let app = service().await;
    let terminal = Terminal::of_new_tenant(&app.url)
        .await
        .with("HUB_SECRET_BROKER_PASSWORD", "s3cret");
    let home = terminal.home.path().to_owned();
    everything(&home.join("made"));
    terminal.run(&["import", "made", "--yes"]).await.expect(0);

    // Members go, parts come and go, a reference moves.
    let path = home.join("made/models/tag.json");
    let mut model: Value =
        serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("JSON");
    for name in [
        "description",
        "imageUrl",
        "referencePowerDbm",
        "supportedUntil",
        "expectedIntervalSeconds",
        "aliases",
        "autoRegister",
    ] {
        model.as_object_mut().expect("an object").remove(name);
    }
    model["identifiers"] = json!([{"conditions": [{"kind": "MANUFACTURER_PREFIX", "value": "0499:05"}], "label": "new"}]);
    model["versions"] = json!([{"version": "1", "protocol": "a second"}, {"version": "3"}]);
    model["protocols"] =
        json!([{"name": "a second", "kind": "BUILTIN", "definition": {"decoder": "ruuvi"}}]);
    model["manuals"] =
        json!([{"title": "How", "format": "MARKDOWN", "content": "# Else", "locale": "en"}]);
    std::fs::write(&path, model.to_string()).expect("a file");
    let changed = terminal
        .run(&["import", "made", "--yes"])
        .await
        .expect(0)
        .stdout;
    assert!(
        changed.contains("~ change model") && changed.contains("- /description: \"About\""),
        "{changed}"
    );
    assert_eq!(changed.matches("change").count(), 1, "{changed}");
    assert_eq!(
        terminal
            .run(&["import", "made", "--yes"])
            .await
            .expect(0)
            .stdout,
        "Nothing to change.\n"
    );

    // A pipeline that is the same but for what is meant anyway; then another one.
    let mut pipeline = json!({
        "name": "broker", "enabled": false, "source": {"known": false, "hubUuids": []}, "steps": [],
        "destination": {"kind": "MQTT", "url": "mqtts://example.com", "topic": "a/{{address}}", "qos": 1,
                        "auth": {"type": "BASIC", "username": "me"}},
        "delivery": {"concurrency": 4, "batchEvents": 1},
    });
    write(&home, "broker.json", &pipeline);
    assert_eq!(
        terminal
            .run(&["pipelines", "apply", "-f", "broker.json"])
            .await
            .expect(0)
            .stdout,
        "Nothing to change.\n"
    );
    pipeline["destination"]["topic"] = json!("b");
    write(&home, "broker.json", &json!([pipeline]));
    terminal
        .run(&["pipelines", "apply", "-f", "broker.json"])
        .await
        .expect(2)
        .says("--yes");
    let shown = terminal
        .run(&["pipelines", "apply", "-f", "broker.json", "--dry-run"])
        .await
        .expect(0)
        .stdout;
    assert!(
        shown.contains("~ /destination/topic: \"a/{{address}}\" -> \"b\""),
        "{shown}"
    );
    terminal
        .run(&["pipelines", "apply", "-f", "broker.json", "--yes"])
        .await
        .expect(0);
    let listed = terminal.json(&["pipelines", "list"]).await;
    let broker = listed
        .as_array()
        .expect("a list")
        .iter()
        .find(|pipeline| pipeline["name"] == "broker")
        .expect("it");
    assert_eq!(
        (&broker["destination"]["topic"], &broker["revision"]),
        (&json!("b"), &json!(2))
    );
    terminal
        .run(&["pipelines", "delete", "broker"])
        .await
        .expect(2)
        .says("--yes");
    terminal
        .run(&["pipelines", "delete", "broker", "--yes"])
        .await
        .expect(0);
    terminal
        .run(&["pipelines", "delete", "broker", "--yes"])
        .await
        .expect(1)
        .says("hub pipelines list");

    // A published bundle is not changed behind the backs of those who claim with it.
    let mut bundle: Value =
        serde_json::from_slice(&std::fs::read(home.join("made/bundles/kit.json")).expect("a file"))
            .expect("JSON");
    bundle["description"] = json!("Else");
    write(&home, "made/bundles/kit.json", &bundle);
    terminal
        .run(&["import", "made", "--yes"])
        .await
        .expect(1)
        .says("archive it first");
}

#[tokio::test]
async fn files_that_are_not_right_change_nothing() {
    let app = service().await;
    let terminal = Terminal::of_new_tenant(&app.url).await;
    let home = terminal.home.path().to_owned();
    write(&home, "not-ours/other.json", &json!({}));
    terminal
        .run(&["import", "not-ours"])
        .await
        .expect(2)
        .says("hub export");
    terminal
        .run(&["export", "not-ours"])
        .await
        .expect(2)
        .says("other files");
    assert!(home.join("not-ours/other.json").exists());
    let refused = [
        ("models/a.json", json!({"name": "a", "nmae": "b"}), "nmae"),
        ("models/a.json", json!({"brand": "b"}), "name"),
        ("models/a.json", json!([1]), "object"),
        (
            "models/a.json",
            json!({"name": "a", "protocols": {}}),
            "protocols",
        ),
        (
            "models/a.json",
            json!({"name": "a", "versions": [{"version": "1", "protocol": "none"}]}),
            "protocol `none`",
        ),
        (
            "models/a.json",
            json!({"name": "a", "versions": [{"version": "1"}, {"version": "1"}]}),
            "two versions",
        ),
        (
            "pipelines/a.json",
            json!({"name": "a", "destnation": {}}),
            "destnation",
        ),
        (
            "pipelines/a.json",
            json!({"name": "a", "source": {}, "destination": {"kind": "HTTP", "url": "https://example.com",
          "auth": {"type": "BEARER", "token": "${HUB_SECRET_NOT_SET}"}}}),
            "HUB_SECRET_NOT_SET",
        ),
        // Of all variables, those that are meant for it are read.
        (
            "pipelines/a.json",
            json!({"name": "a", "source": {}, "destination": {"kind": "HTTP", "url": "https://example.com",
          "auth": {"type": "BEARER", "token": "${XDG_CONFIG_HOME}"}}}),
            "HUB_SECRET_",
        ),
        (
            "route.json",
            json!({"rules": [{"layer": "CLOUD", "action": "FORWARD", "pipelineUuids": ["${pipeline:none}"]}]}),
            "none",
        ),
        ("actions/a.json", json!({"name": "a"}), "actionId"),
    ];
    for (path, document, says) in refused {
        let directory = tempfile::tempdir_in(&home).expect("a directory");
        write(directory.path(), "hub-export.json", &json!({"form": 1}));
        write(directory.path(), path, &document);
        let output = terminal
            .run(&["import", &directory.path().display().to_string(), "--yes"])
            .await;
        assert!(
            matches!(output.code, Some(1 | 2)),
            "{path} {document}: {:?}",
            output.code
        );
        output.says(says);
    }
    write(&home, "later/hub-export.json", &json!({"form": 2}));
    terminal
        .run(&["import", "later"])
        .await
        .expect(2)
        .says("version of hub");
    for text in ["{", "", "\"a\"", "[[]]", "{\"name\": \"\"}"] {
        terminal
            .run_with(&["pipelines", "apply", "-f", "-", "--yes"], text)
            .await
            .expect(2);
    }
    let twice = json!([{"name": "a"}, {"name": "a"}]).to_string();
    terminal
        .run_with(&["pipelines", "apply", "-f", "-", "--yes"], &twice)
        .await
        .expect(2)
        .says("two pipelines");
    assert_eq!(terminal.json(&["pipelines", "list"]).await, json!([]));
}
