//! `hub export tenant` and `hub import tenant`: a tenant goes to another service with all it has,
//! interrupted or not, and nothing is there twice.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use hub_base::clock::Clock;
use hub_protocol::{TenantUuid, Timestamp};
use hub_tests::{Backend, Call, Client, SimulatedHub, TestApp, on_each_database};
use serde_json::{Value, json};

use super::files::{assert_same, everything, service_on};
use super::{PATIENCE, Terminal};

const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06\0\0\0 and the rest";
const EVENTS: usize = 250;
/// Hours with values of a device.
const HOURS: i64 = 6000;
const MODEL: &str = "Tag / \u{65e5}\u{672c} \u{2602}";

/// Somebody with a tenant that can have a pipeline with a secret.
pub(super) async fn person(app: &TestApp) -> Terminal {
    Terminal::of_new_tenant(&app.url)
        .await
        .with("HUB_SECRET_BROKER_PASSWORD", "s3cret of the broker")
}

/// The API as that person uses it.
pub(super) async fn client(app: &TestApp, terminal: &Terminal) -> Client {
    let token = terminal.run(&["token"]).await.expect(0).stdout;
    let tenant: TenantUuid = terminal.stored()["profiles"]["default"]["tenantUuid"]
        .as_str()
        .expect("a tenant")
        .parse()
        .expect("a uuid");
    app.client().bearer(token.trim()).tenant(tenant)
}

pub(super) async fn claim(app: &TestApp, terminal: &Terminal, hardware: &str) -> SimulatedHub {
    let code = terminal
        .json(&["codes", "create", "--label", hardware])
        .await;
    let code = code["claimCode"].as_str().expect("a code").to_owned();
    SimulatedHub::claim_with(&app.client(), &code, hardware).await
}

pub(super) async fn post(client: &Client, path: &str, body: Value) -> Value {
    let reply = client.post(path).json(&body).call().await;
    let is_done = reply.status.is_success();
    assert!(is_done, "{path}: {reply:?}");
    reply.json()["data"].clone()
}

pub(super) async fn put(client: &Client, path: &str, body: Value) {
    client.put(path).json(&body).call().await.expect(200);
}

pub(super) async fn get(client: &Client, path: &str) -> Value {
    client.get(path).call().await.expect(200).json()["data"].clone()
}

/// The beginning of this hour.
fn this_hour() -> Timestamp {
    let now = Clock::System.now();
    now.plus_micros(-now.as_micros().rem_euclid(3_600_000_000))
}

/// A tenant with all kinds of objects. Returns its hubs.
async fn fill(app: &TestApp, terminal: &Terminal) -> [SimulatedHub; 2] {
    let home = terminal.home.path().to_owned();
    everything(&home.join("made"));
    terminal.run(&["import", "made", "--yes"]).await.expect(0);
    let client = client(app, terminal).await;
    let hubs = [
        claim(app, terminal, "hardware-1").await,
        claim(app, terminal, "hardware-2").await,
    ];
    hubs[0].upload_events(EVENTS).await;

    let models = get(&client, "/tenant/device-catalog").await;
    let model = models[0]["deviceUuid"].clone();
    let versions = get(&client, "/tenant/device-versions").await;
    let version = versions[0]["deviceVersionUuid"].clone();
    let device = async |body: Value| -> i64 {
        let mut body = body;
        body["deviceUuid"] = model.clone();
        let made = post(&client, "/tenant/devices", body).await;
        made["deviceInstanceId"].as_i64().expect("an id")
    };
    let freezer = device(json!({
        "name": "Freezer", "address": "C4:11:7D:DA:71:13", "addressType": "PUBLIC",
        "deviceVersionUuid": version, "labels": {"hall": "3"},
        "calibration": {"temperature": {"offset": -0.5}}, "bindKey": "00".repeat(16),
    }))
    .await;
    let beacon = json!({"uuid": uuid::Uuid::new_v4(), "major": 1, "minor": 2});
    let door = device(json!({"name": "Door", "beacon": beacon})).await;
    let shelf = device(json!({"serialNumber": "S-17"})).await;
    let old = device(json!({"name": "Old", "address": "C4:11:7D:DA:71:14"})).await;
    for (id, status) in [
        (freezer, "activate"),
        (door, "suspend"),
        (old, "retire"),
        (shelf, "activate"),
    ] {
        post(
            &client,
            &format!("/tenant/devices/{id}/{status}"),
            json!({}),
        )
        .await;
    }
    // More than one request has.
    let hour = this_hour();
    for chunk in (1..=HOURS).collect::<Vec<_>>().chunks(5000) {
        let value = |ago: &i64| {
            json!({"from": hour.plus_secs(-ago * 3600), "quantity": "temperature",
            "count": 60, "min": -20.5, "max": 4, "mean": -18.25, "last": ago % 7})
        };
        let values: Vec<Value> = chunk.iter().map(value).collect();
        let path = format!("/tenant/devices/{freezer}/sensor-data");
        post(&client, &path, json!({"values": values})).await;
    }
    let tiles = json!([{"kind": "VALUE", "deviceInstanceId": freezer, "quantity": "temperature"},
                       {"kind": "STATE", "deviceInstanceId": door, "quantity": null}]);
    let dashboard = json!({"name": "Cold rooms", "onOverview": true, "tiles": tiles});
    post(&client, "/tenant/dashboards", dashboard).await;
    let plan = json!({"name": "Hall 3", "widthMetres": 41.5,
                      "hubs": [{"hubUuid": hubs[0].hub_uuid, "x": 0.25, "y": 0.5}]});
    let plan = post(&client, "/tenant/floor-plans", plan).await;
    let plan = plan["floorPlanUuid"].as_str().expect("a uuid");
    client
        .put(&format!("/tenant/floor-plans/{plan}/image"))
        .body(PNG)
        .call()
        .await
        .expect(200);
    let notice = json!({"type": "HUB_OFFLINE", "channel": "IN_APP", "enabled": false});
    put(&client, "/tenant/notification-settings", notice).await;
    let policy = json!({"scope": "UNIT", "channel": "beta", "autoUpdate": false});
    put(&client, "/tenant/agent-update-policies", policy).await;
    let policy = json!({"scope": "HUB", "hubUuid": hubs[1].hub_uuid, "channel": "slow"});
    put(&client, "/tenant/agent-update-policies", policy).await;
    let secrets = json!({"tradeSecrets": [{"quantity": "humidity", "reason": "a new sensor"}]});
    put(&client, "/tenant/trade-secrets", secrets).await;
    let route = get(&client, "/tenant/ble/route").await;
    let mut rules = route["rules"].as_array().expect("rules").clone();
    let of_device = json!({"deviceInstanceId": freezer});
    rules.push(json!({"layer": "CLOUD", "match": of_device, "action": "FORWARD"}));
    let route = json!({"rules": rules, "otherwise": route["otherwise"]});
    put(&client, "/tenant/ble/route", route).await;
    hubs
}

/// The lines of all files in a folder of an export.
fn lines(folder: &Path) -> Vec<Value> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let texts = entries.map(|entry| {
        let path = entry.expect("an entry").path();
        std::fs::read_to_string(path).expect("lines")
    });
    texts
        .flat_map(|text| {
            text.lines()
                .map(|line| serde_json::from_str(line).expect("JSON"))
                .collect::<Vec<Value>>()
        })
        .collect()
}

/// Devices by what people see of them.
async fn seen(client: &Client) -> Vec<Value> {
    let devices = get(client, "/tenant/devices?size=100").await;
    let mut devices: Vec<Value> = devices
        .as_array()
        .expect("a list")
        .iter()
        .filter(|device| device["activationStatus"] != "RETIRED")
        .map(|device| {
            let shown = ["deviceName", "name", "address", "addressType", "beacon"];
            let more = ["serialNumber", "labels", "calibration", "activationStatus"];
            let names = shown.iter().chain(&more);
            names.map(|name| device[*name].clone()).collect()
        })
        .collect();
    devices.sort_by_key(Value::to_string);
    devices
}

on_each_database!(a_tenant_takes_everything_with_it);
async fn a_tenant_takes_everything_with_it(backend: Backend) {
    let (old, new) = (service_on(backend).await, service_on(backend).await);
    let leaving = person(&old).await;
    let hubs = fill(&old, &leaving).await;
    // A neighbour, of whom nothing may come along.
    let neighbour = person(&old).await;
    let foreign = claim(&old, &neighbour, "hardware-of-a-neighbour").await;
    foreign.upload_events(3).await;

    let exported = leaving
        .run(&["export", "tenant", "--out", "out"])
        .await
        .expect(0);
    exported.says("devices.ndjson: 4 records");
    let folder = leaving.home.path().join("out");
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).expect("a manifest"))
            .expect("JSON");
    assert_eq!(manifest["tenantName"], "Warehouse");
    assert!(!folder.join("begun.json").exists());
    let events = lines(&folder.join("events"));
    let ids: BTreeSet<i64> = events
        .iter()
        .map(|event| event["bleEventId"].as_i64().expect("an id"))
        .collect();
    assert_eq!((events.len(), ids.len()), (EVENTS, EVENTS));
    let audit = lines(&folder.join("audit"));
    let has_claim = audit.iter().any(|entry| entry["action"] == "hub.claim");
    assert!(has_claim && audit.len() > 20, "{} entries", audit.len());
    let all: String = manifest["files"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|file| {
            let path = folder.join(file["path"].as_str().expect("a path"));
            std::fs::read_to_string(path).ok()
        })
        .collect();
    let secrets = ["s3cret of the broker", "hardware-of-a-neighbour"];
    for text in secrets {
        assert!(!all.contains(text), "{text}");
    }
    assert!(!all.contains(&foreign.hub_uuid.to_string()));
    leaving
        .run(&["export", "tenant", "--out", "out"])
        .await
        .expect(2)
        .says("another folder");
    leaving
        .run(&["import", "tenant", "out", "--yes"])
        .await
        .expect(2)
        .says("this is the tenant that was exported");

    // Nothing is changed by a dry run; then everything is there.
    let arriving = person(&new).await;
    let place = folder.display().to_string();
    let api = client(&new, &arriving).await;
    let planned = arriving
        .run(&["import", "tenant", &place, "--dry-run"])
        .await
        .expect(0);
    assert!(
        planned.stdout.contains("+ create devices: 3"),
        "{}",
        planned.stdout
    );
    assert!(
        planned
            .stdout
            .contains("> sends data: pipelines/to the plant: HTTP https://example.com/x"),
        "{}",
        planned.stdout
    );
    assert_eq!(get(&api, "/tenant/devices").await, json!([]));
    assert_eq!(get(&api, "/tenant/device-catalog").await, json!([]));
    let arguments = ["import", "tenant", &place, "--claim-codes", "--yes"];
    let imported = arriving.run(&arguments).await.expect(0);
    for text in [
        "created devices: 3",
        "2 hubs have not claimed here",
        "enter the keys of 1 devices",
        "1 retired devices",
    ] {
        assert!(
            imported.stdout.contains(text),
            "{text}: {}",
            imported.stdout
        );
    }
    let before = client(&old, &leaving).await;
    assert_eq!(seen(&api).await, seen(&before).await);
    let dashboards = get(&api, "/tenant/dashboards").await;
    let freezer = arriving
        .json(&["devices", "list", "--search", "Freezer"])
        .await;
    assert_eq!(
        dashboards[0]["tiles"][0]["deviceInstanceId"],
        freezer[0]["deviceInstanceId"]
    );
    assert_eq!(freezer[0]["deviceName"], MODEL);
    let old = leaving
        .json(&["devices", "list", "--search", "Freezer"])
        .await;
    for ago in [400, HOURS] {
        let from = this_hour().plus_secs(-ago * 3600);
        let values = async |client: &Client, device: &Value| -> Value {
            let path = format!(
                "/tenant/devices/{}/sensor-data?every=1h&from={from}&to={}",
                device[0]["deviceInstanceId"],
                from.plus_secs(300 * 3600)
            );
            get(client, &path).await
        };
        let there = values(&api, &freezer).await;
        assert_eq!(there.as_array().map(Vec::len), Some(300));
        assert_eq!(there, values(&before, &old).await);
    }
    let route = get(&api, "/tenant/ble/route").await;
    let rules = route["rules"].as_array().expect("rules");
    let last = rules.last().expect("a rule");
    assert_eq!(
        last["match"]["deviceInstanceId"],
        freezer[0]["deviceInstanceId"]
    );
    let secrets = get(&api, "/tenant/trade-secrets").await;
    assert_eq!(secrets[0]["quantity"], "humidity");
    let plans = get(&api, "/tenant/floor-plans").await;
    assert_eq!(plans[0]["image"]["sizeBytes"], PNG.len());
    assert_eq!(plans[0]["hubs"], json!([]));
    // The configuration is the same, but for the ids in the route.
    arriving.run(&["export", "there"]).await.expect(0);
    leaving.run(&["export", "here"]).await.expect(0);
    let (here, there) = (
        leaving.home.path().join("here"),
        arriving.home.path().join("there"),
    );
    for folder in [&here, &there] {
        std::fs::remove_file(folder.join("route.json")).expect("a route");
    }
    assert_same(&here, &there);

    // The hubs claim with their codes, and are placed where they were.
    let tenant = arriving.stored()["profiles"]["default"]["tenantUuid"].clone();
    let codes = format!("out.{}.claim-codes.tsv", tenant.as_str().expect("a uuid"));
    let codes = std::fs::read_to_string(leaving.home.path().join(codes)).expect("codes");
    assert_eq!(codes.lines().count(), 2);
    let mut claimed = Vec::new();
    for line in codes.lines() {
        let mut columns = line.split('\t');
        let (code, hardware) = (columns.next().expect("a code"), columns.next());
        let hardware = hardware.expect("a hardware identity");
        claimed.push(SimulatedHub::claim_with(&new.client(), code, hardware).await);
    }
    arriving.run(&arguments).await.expect(0);
    let plans = get(&api, "/tenant/floor-plans").await;
    let first = claimed
        .iter()
        .find(|hub| hub.device_instance_id == hubs[0].device_instance_id);
    let first = first.expect("it has claimed").hub_uuid;
    assert_eq!(
        plans[0]["hubs"],
        json!([{"hubUuid": first, "x": 0.25, "y": 0.5}])
    );
    let policies = get(&api, "/tenant/agent-update-policies").await;
    let scopes: BTreeSet<String> = policies
        .as_array()
        .expect("a list")
        .iter()
        .map(|policy| format!("{} {}", policy["scope"], policy["channel"]))
        .collect();
    for scope in ["\"UNIT\" \"beta\"", "\"HUB\" \"slow\""] {
        assert!(scopes.contains(scope), "{scopes:?}");
    }
    let again = arriving.run(&arguments).await.expect(0).stdout;
    assert!(again.ends_with("Nothing to create.\n"), "{again}");
    assert_eq!(seen(&api).await, seen(&before).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_were_changed_are_refused_by_name() {
    let app = service_on(Backend::Sqlite).await;
    let terminal = person(&app).await;
    let arguments = ["export", "tenant", "--out", "out", "--skip", "events"];
    terminal.run(&arguments).await.expect(0);
    terminal
        .run(&["tenants", "create", "Plant"])
        .await
        .expect(0);
    let folder = terminal.home.path().join("out");
    let import = ["import", "tenant", "out", "--yes"];
    let refused = async |file: &str, reason: &str| {
        let refused = terminal.run(&import).await.expect(1);
        refused.says(file).says(reason);
    };
    let path = folder.join("people.ndjson");
    let text = std::fs::read_to_string(&path).expect("a file");
    std::fs::write(&path, text.replace("OWNER", "owner")).expect("a change");
    refused("people.ndjson", "was changed").await;
    std::fs::remove_file(&path).expect("a file");
    refused("people.ndjson", "is missing").await;
    std::fs::write(&path, &text).expect("as it was");
    let more = folder.join("configuration/models");
    std::fs::create_dir_all(&more).expect("a folder");
    std::fs::write(more.join("more.json"), "{\"name\": \"more\"}").expect("a file");
    refused("more.json", "is not in the manifest").await;
    std::fs::remove_file(more.join("more.json")).expect("a file");
    let outside = terminal.home.path().join("outside.ndjson");
    std::fs::write(&outside, &text).expect("a file");
    std::fs::remove_file(&path).expect("a file");
    std::os::unix::fs::symlink(&outside, &path).expect("a link");
    refused("people.ndjson", "neither a file nor a folder").await;
    std::fs::remove_file(&path).expect("a link");
    std::fs::write(&path, &text).expect("as it was");
    let manifest = folder.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).expect("a manifest");
    let listed = text.replace("\"people.ndjson\"", "\"../outside.ndjson\"");
    std::fs::write(&manifest, listed).expect("a change");
    refused("outside.ndjson", "no name of a file").await;
    std::fs::write(&manifest, text.replace("\"format\": 1", "\"format\": 2")).expect("a change");
    terminal.run(&import).await.expect(2).says("version of hub");
    std::fs::write(&manifest, &text).expect("as it was");
    terminal.run(&import).await.expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_key_may_not_read_is_stated() {
    let app = service_on(Backend::Sqlite).await;
    let terminal = person(&app).await;
    let client = client(&app, &terminal).await;
    let model = post(&client, "/tenant/device-catalog", json!({"name": MODEL})).await;
    let device = json!({"deviceUuid": model["deviceUuid"], "name": "Door"});
    post(&client, "/tenant/devices", device).await;
    let key = json!({"name": "devices", "scopes": ["devices:read"]});
    let key = post(&client, "/tenant/api-keys", key).await;
    let tenant = terminal.stored()["profiles"]["default"]["tenantUuid"].clone();
    let limited = Terminal::new()
        .with("HUB_SERVICE_URL", &app.url)
        .with("HUB_API_KEY", key["apiKey"].as_str().expect("a key"))
        .with("HUB_TENANT", tenant.as_str().expect("a uuid"));
    let said = limited
        .run(&["export", "tenant", "--out", "out"])
        .await
        .expect(1);
    said.says("not everything could be read").says("OWNER");
    let folder = limited.home.path().join("out");
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).expect("a manifest"))
            .expect("JSON");
    let left_out: BTreeSet<&str> = manifest["leftOut"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|part| part["part"].as_str().expect("a name"))
        .collect();
    for part in ["people", "configuration", "hubs", "audit", "events"] {
        assert!(left_out.contains(part), "{part}: {left_out:?}");
    }
    assert!(folder.join("devices.ndjson").exists() && !left_out.contains("devices"));
    assert!(!folder.join("audit").exists() || lines(&folder.join("audit")).is_empty());
}

/// A key with few requests a minute, with which a command stops in the middle for a while.
async fn slow(app: &TestApp, terminal: &Terminal, per_minute: i64) -> Terminal {
    let client = client(app, terminal).await;
    let key = json!({"name": "slow", "scopes": ["*"], "rateLimitPerMinute": per_minute});
    let key = post(&client, "/tenant/api-keys", key).await;
    let tenant = terminal.stored()["profiles"]["default"]["tenantUuid"].clone();
    Terminal::new()
        .with("HUB_SERVICE_URL", &app.url)
        .with("HUB_API_KEY", key["apiKey"].as_str().expect("a key"))
        .with("HUB_TENANT", tenant.as_str().expect("a uuid"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_export_and_a_killed_import_continue() {
    const DEVICES: usize = 120;
    let (old, new) = (
        service_on(Backend::Sqlite).await,
        service_on(Backend::Sqlite).await,
    );
    let leaving = person(&old).await;
    let api = client(&old, &leaving).await;
    let model = json!({"name": "Tag", "brand": "B", "model": "M", "category": "climate"});
    let model = post(&api, "/tenant/device-catalog", model).await["deviceUuid"].clone();
    for number in 0..DEVICES {
        // Half of them have nothing that identifies them.
        let address = format!("C4:11:7D:DA:00:{number:02X}");
        let address = (number % 2 == 0).then_some(address);
        let device = json!({"deviceUuid": model, "name": "Tag", "address": address});
        post(&api, "/tenant/devices", device).await;
    }
    claim(&old, &leaving, "hardware-1")
        .await
        .upload_events(EVENTS)
        .await;

    let folder = leaving.home.path().join("out");
    let place = folder.display().to_string();
    let stopped = slow(&old, &leaving, 10).await;
    let mut running = stopped.follow(&["export", "tenant", "--out", &place]);
    running.note("tenant.ndjson").await;
    running.child.kill().await.expect("it is killed");
    assert!(folder.join("begun.json").exists() && !folder.join("manifest.json").exists());
    let arriving = person(&new).await;
    let import = ["import", "tenant", &place, "--yes"];
    arriving
        .run(&import)
        .await
        .expect(2)
        .says("is not finished");
    // A file that was cut in the middle does not count.
    std::fs::write(folder.join("devices.ndjson.part"), "{\"device").expect("a file");
    leaving
        .run(&["export", "tenant", "--out", "out", "--skip", "events"])
        .await
        .expect(2)
        .says("other options");
    leaving
        .run(&["export", "tenant", "--out", "out"])
        .await
        .expect(0)
        .says(&format!("devices.ndjson: {DEVICES} records"));
    assert_eq!(lines(&folder.join("events")).len(), EVENTS);
    assert!(!folder.join("devices.ndjson.part").exists());

    let stopped = slow(&new, &arriving, 100).await;
    let mut running = stopped.follow(&import);
    let tenant = arriving.stored()["profiles"]["default"]["tenantUuid"].clone();
    let journal = format!("out.{}.import.ndjson", tenant.as_str().expect("a uuid"));
    let journal = leaving.home.path().join(journal);
    let begun = async || {
        loop {
            let text = std::fs::read_to_string(&journal).unwrap_or_default();
            if text.contains("\"done\":\"device/") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // It waits for the next minute before it has done all.
    tokio::time::timeout(PATIENCE * 3, begun())
        .await
        .expect("it has begun");
    running.child.kill().await.expect("it is killed");
    let api = client(&new, &arriving).await;
    let count = async || -> usize {
        let mut number = 0;
        for page in 1..4 {
            let path = format!("/tenant/devices?size=100&page={page}");
            number += get(&api, &path).await.as_array().expect("a list").len();
        }
        number
    };
    let before = count().await;
    assert!(before < DEVICES, "{before}");
    let done = arriving.run(&import).await.expect(0);
    assert!(done.stdout.ends_with("Done.\n"), "{}", done.stdout);
    assert_eq!(count().await, DEVICES);
    let again = arriving.run(&import).await.expect(0);
    assert!(
        again.stdout.ends_with("Nothing to create.\n"),
        "{}",
        again.stdout
    );
    assert_eq!(count().await, DEVICES);
}
