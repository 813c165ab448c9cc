//! The running agent from the view of an app on the hub: a socket with the received advertisements.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect fails"
)]

use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

#[path = "../../protocol/recordings/tests/samples/mod.rs"]
mod samples;

/// An agent that replays a file in a directory, and what an app reads from its socket.
struct Running {
    agent: Child,
    lines: Lines<BufReader<UnixStream>>,
}

impl Running {
    fn start(directory: &Path, file: &str) -> Self {
        let path = |name: &str| directory.join(name);
        std::fs::write(path("config.toml"), "").unwrap();
        let agent = Command::new(env!("CARGO_BIN_EXE_hub-agent"))
            .args([
                "run",
                "--service-url",
                "http://127.0.0.1:1",
                "--replay-loop",
                "--dedup-window",
                "0s",
                "--config",
            ])
            .arg(path("config.toml"))
            .arg("--state-dir")
            .arg(path("state"))
            .arg("--replay")
            .arg(path(file))
            .arg("--ble-socket")
            .arg(path("ble/socket"))
            .env("HUB_AGENT_DEVICE_INSTANCE_ID", "test-hub")
            .arg("--stop-with-stdin")
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        let stream = loop {
            match UnixStream::connect(path("ble/socket")) {
                Ok(stream) => break stream,
                Err(error) => assert!(started.elapsed() < Duration::from_secs(10), "{error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let lines = BufReader::new(stream).lines();
        Self { agent, lines }
    }

    fn line(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    fn stop(mut self) {
        drop(self.agent.stdin.take());
        assert!(self.agent.wait().unwrap().success());
    }
}

#[test]
fn an_app_reads_advertisements_without_the_service() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let advertisement = json!({"t_ms": 20, "address": "AA:BB:CC:DD:EE:FF", "addressType": "public", "rssi": -60,
        "manufacturerData": {"0499": "05ff00"}});
    std::fs::write(path("trace.jsonl"), format!("{advertisement}\n")).unwrap();
    let mut running = Running::start(dir.path(), "trace.jsonl");
    for _ in 0..3 {
        let line = running.line();
        assert_eq!(
            (&line["type"], &line["address"]),
            (&json!("event"), &advertisement["address"]),
            "{line}"
        );
        assert_eq!(line["manufacturerData"]["0499"], json!("Bf8A"));
    }
    for (name, expected) in [("ble", 0o755), ("ble/socket", 0o666)] {
        assert_eq!(
            std::fs::metadata(path(name)).unwrap().permissions().mode() & 0o777,
            expected,
            "{name}"
        );
    }
    running.stop();
}

#[test]
fn the_agent_plays_recordings_of_every_format() {
    for (name, content) in samples::all() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(name), content).unwrap();
        let mut running = Running::start(dir.path(), name);
        assert_eq!(running.line()["address"], samples::ADDRESS, "{name}");
        running.stop();
    }
}
