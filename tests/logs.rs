//! What the service logs, as an operator collects it.

use std::process::Stdio;
use std::time::Duration;

use hub_tests::process::{Process, program};
use hub_tests::{Call, Client};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};

/// A service with these settings. Each line of its log is JSON.
struct Logged {
    process: Process,
    client: Client,
    _data_dir: tempfile::TempDir,
}

impl Logged {
    async fn start(settings: &[&str]) -> Self {
        let data_dir = tempfile::tempdir().expect("a directory");
        let dir = data_dir.path().display().to_string();
        let mut arguments = vec![
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--log-format",
            "json",
            "--data-dir",
            &dir,
        ];
        arguments.extend(settings);
        let mut process = Process::start("hub-cloud", &arguments, &[]);
        let client = Client::new(&process.url().await);
        Self {
            process,
            client,
            _data_dir: data_dir,
        }
    }

    fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        };
        self.process.last_lines().lines().map(parse).collect()
    }

    /// Waits for a line that fits.
    async fn line(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..300 {
            if let Some(line) = self.lines().into_iter().find(&fits) {
                return line;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{what} is not in the log:\n{}", self.process.last_lines());
    }

    async fn get(&self, path: &str, request_id: &str) {
        self.client
            .get(path)
            .header("x-request-id", request_id)
            .call()
            .await;
    }
}

fn is_request(line: &Value, request_id: &str) -> bool {
    line["target"] == "access" && line["span"]["id"] == request_id
}

#[tokio::test(flavor = "multi_thread")]
async fn every_line_is_json_and_every_request_has_one() {
    let service = Logged::start(&["--access-log", "all"]).await;
    service
        .line("the start", |line| {
            line["message"] == "hub-cloud has started"
        })
        .await;
    service.get("/healthz", "one-request").await;
    let line = service
        .line("the request", |line| is_request(line, "one-request"))
        .await;
    assert_eq!(
        (&line["route"], &line["caller"], &line["status"]),
        (&"/healthz".into(), &"public".into(), &200.into())
    );
    assert!(
        line["duration_ms"].is_f64() && line["level"] == "INFO",
        "{line}"
    );
    let invitation = "/public/invitations/U9vCV0qbPXVMcV6m";
    service.get(invitation, "a-secret").await;
    let line = service
        .line("the request", |line| is_request(line, "a-secret"))
        .await;
    assert!(!line.to_string().contains("U9vCV0qbPXVMcV6m"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn access_log_selects_requests() {
    let service = Logged::start(&["--access-log", "errors"]).await;
    service.get("/healthz", "good").await;
    service.get("/nowhere", "bad").await;
    service
        .line("the failure", |line| is_request(line, "bad"))
        .await;
    assert!(!service.lines().iter().any(|line| is_request(line, "good")));

    let service = Logged::start(&[]).await;
    service.get("/nowhere", "bad").await;
    assert!(
        !service
            .lines()
            .iter()
            .any(|line| line["target"] == "access"),
        "it is off unless asked for"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_on_one_bus_see_each_other() {
    let Some(bus) = hub_tests::nats_url() else {
        return;
    };
    let first = Logged::start(&["--bus", &bus]).await;
    let second = Logged::start(&["--bus", &bus]).await;
    for service in [&first, &second] {
        let line = service
            .line("the other replica", |line| {
                line["message"] == "another replica is seen"
            })
            .await;
        assert!(
            line["replica"]
                .as_str()
                .is_some_and(|name| name.starts_with(env!("CARGO_PKG_VERSION"))),
            "{line}"
        );
    }
}

/// A service that logs every request, and its log, which nobody reads any more.
async fn unread() -> (Child, Client, ChildStderr, tempfile::TempDir) {
    let data_dir = tempfile::tempdir().expect("a directory");
    let mut service = Command::new(program("hub-cloud"))
        .args(["serve", "--listen", "127.0.0.1:0", "--access-log", "all"])
        .args(["--log-format", "json", "--data-dir"])
        .arg(data_dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let mut log = BufReader::new(service.stderr.take().expect("its log"));
    let url = loop {
        let mut line = String::new();
        assert!(log.read_line(&mut line).await.expect("a line") > 0);
        if let Some((_, url)) = line.split_once("listening on ") {
            break url.split('"').next().expect("a URL").to_owned();
        }
    };
    (service, Client::new(&url), log.into_inner(), data_dir)
}

/// More requests than the lines that fit into a pipe are answered, and the service stops.
async fn answers_and_stops(mut service: Child, client: &Client) {
    for _ in 0..1_000 {
        let answer = client.get("/healthz").call();
        tokio::time::timeout(Duration::from_secs(20), answer)
            .await
            .expect("an answer")
            .expect(200);
    }
    let id = service
        .id()
        .and_then(|id| Pid::from_raw(id.try_into().ok()?));
    kill_process(id.expect("it runs"), Signal::TERM).expect("a signal");
    let ended = tokio::time::timeout(Duration::from_secs(30), service.wait()).await;
    assert!(ended.expect("it stops").expect("a status").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_closed_decides_over_nothing() {
    let (service, client, log, _data_dir) = unread().await;
    drop(log);
    answers_and_stops(service, &client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_decides_over_nothing() {
    let (service, client, _log, _data_dir) = unread().await;
    answers_and_stops(service, &client).await;
}
