//! The agent fetches its scan configuration, applies it, and keeps it: without the service, and
//! when the next one cannot be understood.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tokio::process::Command;

use super::service::Service;
use super::{Site, output, stop, text, until_status};

const MODEL: &str = "0190a000-0000-7000-8000-0000000000aa";
const BIND_KEY: &str = "231d39c1d7cc1ab1aee224cd096db932";

/// The trace's device is known by its address, and what it sends is dropped or not.
fn config(revision: i64, action: &str) -> Value {
    json!({
        "revision": revision,
        "devices": [
            {"deviceUuid": MODEL, "name": "Counter", "deviceProtocolId": 21},
            {"deviceUuid": MODEL, "deviceInstanceId": 7, "name": "Door", "address": "AA:BB:CC:DD:EE:FF"},
        ],
        "identifiers": [{"id": 11, "deviceUuid": MODEL, "conditions": [{"kind": "MANUFACTURER_ID", "value": "0499"}]}],
        "protocols": [
            {"deviceProtocolId": 21, "revision": 1, "kind": "BUILTIN", "definition": {"decoder": "ruuvi"}},
        ],
        "routes": [{"layer": "HUB", "match": {"deviceInstanceId": 7}, "action": action}],
        "otherwise": "FORWARD",
        "keys": [{"deviceInstanceId": 7, "bindKey": BIND_KEY}],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_configuration_is_kept_over_restarts_and_mistakes() {
    let site = Site::new(100, 10);
    let service = Service::start().await;
    service.change(|stored| stored.configure(config(4, "DROP")));
    let mut agent = site.claimed(&service).spawn().unwrap();
    let status = until_status(&site, |status| status["scanConfigRevision"] == 4).await;
    assert_eq!(status["scanConfigRules"], 1);
    assert_eq!(stop(&mut agent).await, Some(0));
    for name in ["scan-config.json", "seal-key"] {
        let path = site.state().join(name);
        assert!(
            !std::fs::read_to_string(&path).unwrap().contains(BIND_KEY),
            "{name}"
        );
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600,
            "{name}"
        );
    }

    // In force right after a start, without the service.
    let before = service
        .until("what was spooled before", |stored| {
            Some(stored.event_count())
        })
        .await;
    let spooled = site.spooled().len();
    let mut agent = site.run(&service);
    agent.args(["--proxy-url", "http://127.0.0.1:9"]);
    agent.env_remove("NO_PROXY").env_remove("no_proxy");
    let mut agent = agent.spawn().unwrap();
    until_status(&site, |status| {
        status["advertisements"] == 100 && status["scanConfigRevision"] == 4
    })
    .await;
    assert_eq!(stop(&mut agent).await, Some(0));
    assert_eq!(site.spooled().len(), spooled);

    // `scan` names the device beside an agent, or without one.
    let mut scan = Command::new(env!("CARGO_BIN_EXE_hub-agent"));
    scan.arg("scan").arg("--state-dir").arg(site.state());
    scan.args(["--replay-speed", "0", "--replay"])
        .arg(site.path("trace.jsonl"));
    let lines = text(&output(scan).await.stdout);
    assert_eq!(lines.matches("Door").count(), 100, "{lines}");

    let mut broken = config(5, "DROP");
    broken["protocols"][0]["kind"] = json!("MAGIC");
    service.change(|stored| stored.configure(broken));
    let log = std::fs::File::create(site.path("log")).unwrap();
    let mut agent = site.run(&service).stderr(log).spawn().unwrap();
    service
        .until("the broken one", |stored| {
            (stored.scan_config_requests.len() == 2).then_some(())
        })
        .await;
    until_status(&site, |status| {
        status["advertisements"] == 100 && status["scanConfigRevision"] == 4
    })
    .await;
    service.change(|stored| {
        let known = Some("\"scan-4\"".to_owned());
        assert_eq!(stored.scan_config_requests, [(None, true), (known, true)]);
        assert_eq!(
            stored.event_count(),
            before + spooled,
            "all that comes now is dropped"
        );
        stored.configure(config(6, "FORWARD"));
    });
    until_status(&site, |status| status["scanConfigRevision"] == 6).await;
    assert_eq!(stop(&mut agent).await, Some(0));
    let log = std::fs::read_to_string(site.path("log")).unwrap();
    assert_eq!(log.matches("is not understood").count(), 1, "{log}");
    assert_eq!(
        log.matches("a scan configuration is in force").count(),
        1,
        "{log}"
    );
    assert!(!log.contains(BIND_KEY));
    service.change(|stored| {
        let named: Vec<Option<&str>> = stored
            .scan_config_requests
            .iter()
            .map(|(known, _)| known.as_deref())
            .collect();
        assert_eq!(named, [None, Some("\"scan-4\""), Some("\"scan-5\"")]);
    });

    let mut agent = site.run(&service).spawn().unwrap();
    let all = before + spooled + 100;
    service
        .until("events again", |stored| {
            (stored.event_count() == all).then_some(())
        })
        .await;

    // Another owner has nothing of it.
    service.change(|stored| stored.give_away("3333-3333-3333-3333"));
    let mut claim = site.command("claim");
    claim.args(["--code", "3333-3333-3333-3333"]);
    assert_eq!(output(claim).await.status.code(), Some(0));
    until_status(&site, |status| status.get("scanConfigRevision").is_none()).await;
    assert_eq!(stop(&mut agent).await, Some(0));
    assert!(!site.state().join("scan-config.json").exists());
}
