//! `scan` and `check` as a person runs them: against a mocked bluetoothd, against recordings, and
//! without any radio.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

#[path = "../src/ble/bluez/mock.rs"]
mod mock;
#[path = "../../protocol/recordings/tests/samples/mod.rs"]
mod samples;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use mock::Mock;
use serde_json::{Value, json};

const TRACE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tests/data/ble/trace.jsonl.zst"
);
const ADAPTER: &str = "00:11:22:33:44:55";
const NO_BUS: &str = "unix:path=/nonexistent/bus";

fn agent(bus: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hub-agent"));
    command
        .args(arguments)
        .env("DBUS_SYSTEM_BUS_ADDRESS", bus)
        .env_remove("HUB_AGENT_SERVICE_URL")
        .stdin(Stdio::null());
    command
}

fn output(bus: &str, arguments: &[&str]) -> Output {
    agent(bus, arguments).output().expect("the agent runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it is text")
}

/// The findings of `check --json`, and whether it succeeded.
fn check(bus: &str, arguments: &[&str]) -> (bool, Vec<Value>) {
    let output = output(bus, &[&["check", "--json"], arguments].concat());
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report in JSON");
    assert_eq!(report["ok"], json!(output.status.success()), "{report}");
    (
        output.status.success(),
        report["findings"].as_array().expect("findings").clone(),
    )
}

fn finding<'f>(findings: &'f [Value], check: &str) -> &'f Value {
    findings
        .iter()
        .find(|finding| finding["check"] == check)
        .unwrap_or_else(|| panic!("{check} in {findings:?}"))
}

#[test]
fn scan_prints_every_byte_of_an_advertisement() {
    let Some(mut mock) = Mock::start() else {
        return;
    };
    mock.order(json!({"cmd": "add_adapter", "address": ADAPTER}));
    let mut scan = agent(&mock.address, &["scan", "--json", "--active"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the agent runs");
    mock.order(json!({"cmd": "wait", "discovering": true}));
    mock.order(json!({
        "cmd": "report", "address": "C0:00:00:00:00:01", "rssi": -61,
        "manufacturer_data": {"0499": "05ff00"}, "service_data": {"fcd2": "4001"},
    }));
    let mut lines = BufReader::new(scan.stdout.take().expect("it was piped")).lines();
    let line = lines.next().expect("a line").expect("it is text");
    let mut event: Value = serde_json::from_str(&line).expect("JSON");
    assert!(event["observedAt"].take().is_string());
    assert_eq!(
        event,
        json!({
            "observedAt": null, "adapterAddress": ADAPTER, "address": "C0:00:00:00:00:01", "addressType": "random", "rssi": -61,
            "manufacturerData": {"0499": "Bf8A"}, "serviceData": {"fcd2": "QAE="}, "what": "BTHome",
        })
    );
    // The reader disconnects, like `head`: not an error.
    drop(lines);
    for rssi in [-62, -63] {
        mock.order(json!({"cmd": "report", "address": "C0:00:00:00:00:01", "rssi": rssi}));
        if scan.try_wait().expect("it is ours").is_some() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    assert!(scan.wait().expect("it is ours").success());
    mock.order(json!({"cmd": "wait", "discovering": false}));
}

#[test]
fn scan_plays_a_recorded_trace_to_its_end() {
    let all = output(
        NO_BUS,
        &["scan", "--json", "--replay", TRACE, "--replay-speed", "0"],
    );
    assert!(all.status.success(), "{}", text(&all.stderr));
    assert_eq!(text(&all.stdout).lines().count(), 17_762);
    let lines = output(NO_BUS, &["scan", "--replay", TRACE, "--replay-speed", "0"]);
    let ruuvi = text(&lines.stdout)
        .lines()
        .filter(|line| line.contains("Ruuvi (RAWv2)"))
        .count();
    assert!(ruuvi > 100, "{ruuvi} lines of Ruuvi's");
    let short = output(NO_BUS, &["scan", "--replay", TRACE, "--duration", "1"]);
    assert!(short.status.success() && text(&short.stdout).lines().count() < 2_000);
}

#[test]
fn scan_plays_recordings_of_every_format() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, content) in samples::all() {
        let file = directory.path().join(name);
        std::fs::write(&file, content).expect("it is written");
        let file = file.to_str().expect("it is text");
        let played = output(
            NO_BUS,
            &["scan", "--json", "--replay", file, "--replay-speed", "0"],
        );
        assert!(played.status.success(), "{name}: {}", text(&played.stderr));
        assert_eq!(text(&played.stderr), "", "{name}");
        let events: Vec<Value> = text(&played.stdout)
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(events.len(), 3, "{name}");
        for event in &events {
            assert_eq!(event["address"], samples::ADDRESS, "{name}");
            assert_eq!(event["adapterAddress"], "00:00:00:00:00:00", "{name}");
        }
        assert_eq!(events[0]["model"], "ruuvi/ruuvitag", "{name}");
        assert_eq!(events[1]["name"], "Ruuvi 884F", "{name}");
        let time_us = |event: &Value| {
            let at = event["observedAt"].as_str().expect("a time");
            at.parse::<hub_protocol::Timestamp>()
                .expect("a time")
                .as_micros()
        };
        let took_us = time_us(&events[2]) - time_us(&events[0]);
        assert_eq!(took_us, 1_500_000, "{name}");
    }
}

#[test]
fn scan_plays_a_recording_that_is_cut_short_and_refuses_one_that_is_wrong() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("snoop.log");
    let scan = |content: &[u8]| {
        std::fs::write(&file, content).expect("it is written");
        let file = file.to_str().expect("it is text");
        output(NO_BUS, &["scan", "--replay", file, "--replay-speed", "0"])
    };
    let (_, mut content) = samples::all().remove(0);
    let cut = scan(&content[..content.len() - 3]);
    assert!(cut.status.success(), "{}", text(&cut.stderr));
    assert_eq!(text(&cut.stdout).lines().count(), 2);
    let end = format!("byte {}: the recording ends within", content.len() - 3);
    assert!(text(&cut.stderr).contains(&end), "{}", text(&cut.stderr));

    content[14] = 0xFF;
    let wrong = scan(&content);
    assert_eq!(wrong.status.code(), Some(1));
    let message = text(&wrong.stderr);
    assert!(message.contains("byte 12: datalink 65513"), "{message}");
}

#[test]
fn scan_without_a_radio_shows_what_to_do_next() {
    let blind = output(NO_BUS, &["scan"]);
    assert_eq!(blind.status.code(), Some(1));
    assert!(
        text(&blind.stderr).contains("/nonexistent/bus")
            && text(&blind.stderr).contains("hub-agent check")
    );
    let wrong = output(NO_BUS, &["scan", "--adapter", "hci0"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        text(&wrong.stderr).contains("AA:BB:CC:DD:EE:FF"),
        "{}",
        text(&wrong.stderr)
    );

    let Some(mut mock) = Mock::start() else {
        return;
    };
    let none = output(&mock.address, &["scan"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(
        text(&none.stderr).contains("no Bluetooth adapter"),
        "{}",
        text(&none.stderr)
    );
    mock.order(json!({"cmd": "add_adapter", "address": ADAPTER}));
    mock.order(json!({"cmd": "fault", "call": "StartDiscovery", "error": "org.freedesktop.DBus.Error.AccessDenied"}));
    let denied = output(&mock.address, &["scan", "--active"]);
    assert_eq!(denied.status.code(), Some(1));
    assert!(
        text(&denied.stderr).contains("may not use Bluetooth"),
        "{}",
        text(&denied.stderr)
    );
    mock.order(json!({"cmd": "stop_daemon"}));
    let stopped = output(&mock.address, &["scan"]);
    assert_eq!(stopped.status.code(), Some(1));
    assert!(
        text(&stopped.stderr).contains("systemctl start bluetooth"),
        "{}",
        text(&stopped.stderr)
    );
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_is_not() {
    for arguments in [
        &["version"] as &[&str],
        &["check"],
        &["scan", "--replay", TRACE, "--replay-speed", "0"],
    ] {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .expect("it is always there");
        let full = agent(NO_BUS, arguments)
            .stdout(full)
            .output()
            .expect("the agent runs");
        assert_eq!(full.status.code(), Some(1), "{arguments:?}");
        assert!(
            text(&full.stderr).contains("cannot write: No space"),
            "{arguments:?}: {}",
            text(&full.stderr)
        );
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let gone = agent(NO_BUS, arguments)
            .stdout(writer)
            .output()
            .expect("the agent runs");
        assert!(
            !text(&gone.stderr).contains("write"),
            "{arguments:?}: {}",
            text(&gone.stderr)
        );
        // There is no radio here, which the exit code of a check also shows.
        assert_eq!(
            gone.status.success(),
            !arguments.contains(&"check"),
            "{arguments:?}"
        );
    }
}

#[test]
fn check_reports_faults_of_the_radio() {
    let (good, findings) = check(NO_BUS, &[]);
    assert!(!good);
    assert_eq!(finding(&findings, "D-Bus")["state"], "fail");
    assert!(finding(&findings, "D-Bus")["mend"].is_string());

    let Some(mut mock) = Mock::start() else {
        return;
    };
    let (good, findings) = check(&mock.address, &[]);
    assert!(!good);
    assert_eq!(finding(&findings, "D-Bus")["state"], "ok");
    assert_eq!(
        finding(&findings, "adapter")["state"],
        "fail",
        "there is none"
    );
    mock.order(json!({"cmd": "add_adapter", "address": ADAPTER}));
    let (_, findings) = check(&mock.address, &[]);
    let adapter = finding(&findings, "adapter");
    assert_eq!(adapter["state"], "ok", "{adapter}");
    assert!(
        adapter["finding"]
            .as_str()
            .is_some_and(|text| text.contains(ADAPTER))
    );
    assert_eq!(
        mock.order(json!({"cmd": "state"}))["adapters"]["hci0"]["calls"],
        json!({}),
        "it changes nothing"
    );
    mock.order(json!({"cmd": "stop_daemon"}));
    let (good, findings) = check(&mock.address, &[]);
    assert!(!good);
    assert_eq!(finding(&findings, "bluetoothd")["state"], "fail");
}

#[test]
fn check_reports_faults_of_the_service_and_the_state() {
    let folder = tempfile::tempdir().expect("a directory");
    let state = folder.path().to_str().expect("its name is text");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700))
        .expect("it is ours");
    let (_, findings) = check(
        NO_BUS,
        &["--state-dir", state, "--service-url", "http://127.0.0.1:1"],
    );
    let service = finding(&findings, "service");
    assert_eq!(service["state"], "fail");
    assert!(
        service["finding"]
            .as_str()
            .is_some_and(|text| text.contains("nothing listens there")),
        "{service}"
    );
    assert_eq!(finding(&findings, "state")["state"], "ok");
    assert_eq!(
        finding(&findings, "identity")["state"],
        "warn",
        "not claimed yet"
    );
    assert_eq!(finding(&findings, "disk")["check"], "disk");

    // A server without TLS.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("it is bound"));
    let server = std::thread::spawn(move || {
        // One connection to test the port, one for TLS.
        for connection in listener.incoming().take(2) {
            let mut connection = connection.expect("a connection");
            let mut greeting = [0; 64];
            let _ = connection.read(&mut greeting);
            let _ = std::io::Write::write_all(&mut connection, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let (_, findings) = check(NO_BUS, &["--state-dir", state, "--service-url", &url]);
    let service = finding(&findings, "service");
    assert!(
        service["finding"]
            .as_str()
            .is_some_and(|text| text.contains("TLS fails")),
        "{service}"
    );
    server.join().expect("it ends");
}
