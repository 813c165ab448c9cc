//! The night's incidents as the log of a running service tells them: for each, one line when it
//! begins and one when it is over, a metric that shows it meanwhile, and an alert on that metric.

use std::path::Path;
use std::time::{Duration, Instant};

use hub_base::clock::Clock;
use hub_tests::cluster::{Cluster, Stop};
use hub_tests::disk::SmallDisk;
use hub_tests::hub::events;
use hub_tests::process::{Process, program};
use hub_tests::{Answer, Call, Client, MailServer, Person, Receiver, SimulatedHub, Tenant};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::interruptions::nats;

const RULES: &str = include_str!("../../packaging/monitoring/alerts.yml");
/// The service looks every 15 seconds.
const SOON: Duration = Duration::from_secs(60);
/// A mail, and the receiver of a pipeline, are tried again after growing pauses.
const RETRIED: Duration = Duration::from_secs(150);

/// A service whose log is read.
struct Logged {
    process: Process,
    client: Client,
    dir: TempDir,
}

/// What a metric has to be.
type Wanted = fn(f64) -> bool;

impl Logged {
    async fn start(settings: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().expect("a directory"), settings).await
    }

    async fn start_in(dir: TempDir, settings: &[&str]) -> Self {
        let data_dir = dir.path().display().to_string();
        let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--log-format", "json"];
        arguments.extend(["--data-dir", &data_dir]);
        arguments.extend(settings);
        let mut process = Process::start("hub-cloud", &arguments, &[]);
        let client = Client::new(&process.url().await);
        Self {
            process,
            client,
            dir,
        }
    }

    /// The warnings and errors so far.
    fn said(&self) -> Vec<String> {
        let lines = self.process.last_lines();
        let parse = |line: &str| -> Value {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        };
        lines
            .lines()
            .map(parse)
            .filter(|line| line["level"] == "WARN" || line["level"] == "ERROR")
            .map(|line| line["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// The value of a metric, summed over its labels; 0 if there is none.
    async fn metric(&self, name: &str) -> f64 {
        let text = self.client.get("/metrics").call().await.expect(200).body;
        let samples = text.lines().filter(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with([' ', '{']) || name.ends_with('}'))
        });
        samples
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
            .sum()
    }

    /// Waits for a line and for what the metric then is.
    async fn until(&self, line: &str, metric: &str, is: Wanted, within: Duration) {
        let began = Instant::now();
        loop {
            let is_said = self.said().iter().any(|said| said.contains(line));
            let value = self.metric(metric).await;
            if is_said && is(value) {
                return;
            }
            assert!(
                began.elapsed() < within,
                "`{line}`, {metric} {value}:\n{}",
                self.process.last_lines()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Executes SQL on the SQLite database.
    fn sql(&self, statement: &str, parameter: &str) {
        let file = self.dir.path().join("hub-cloud.sqlite");
        let database = rusqlite::Connection::open(file).expect("the database");
        database
            .busy_timeout(Duration::from_secs(10))
            .expect("a timeout");
        database
            .execute(statement, [parameter])
            .expect("a statement");
    }
}

/// An incident: how it begins in the log, how it ends there, and its metric.
struct Incident {
    begin: &'static str,
    end: &'static str,
    metric: &'static str,
}

impl Incident {
    async fn begins(&self, service: &Logged, is: Wanted, within: Duration) {
        service.until(self.begin, self.metric, is, within).await;
    }

    /// Waits for the end; each line was there once, and no other warning beside them.
    async fn ends(&self, service: &Logged, before: usize, within: Duration) {
        let is_over: Wanted = |value| value == 0.0;
        service.until(self.end, self.metric, is_over, within).await;
        let said = service.said();
        // Tests claim more hubs in a minute than people do.
        let said: Vec<&String> = said
            .iter()
            .skip(before)
            .filter(|line| !line.starts_with("claims of hubs"))
            .collect();
        assert!(
            said.len() == 2 && said[0].contains(self.begin) && said[1].contains(self.end),
            "{said:?}"
        );
        let name = self.metric.split('{').next().unwrap_or_default();
        let mut rules = RULES.split("- alert:").skip(1);
        let has_metric = |rule: &str| {
            let conditions = rule.split("annotations:").next();
            conditions.is_some_and(|conditions| conditions.contains(name))
        };
        assert!(rules.any(has_metric), "no alert has {name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk() {
    let Some(disk) = SmallDisk::mount(48) else {
        return;
    };
    let incident = Incident {
        begin: "the disk is full",
        end: "the disk has room again",
        metric: "hub_cloud_storage_full",
    };
    let dir = tempfile::tempdir_in(disk.path()).expect("a directory");
    let settings = ["--storage-reserve-bytes", "4194304"];
    let unlimited = ["--upload-limit-per-minute", "1000000"];
    let service = Logged::start_in(dir, &[settings, unlimited].concat()).await;
    let tenant = Tenant::create(&service.client).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let before = service.said().len();
    disk.fill();
    while hub.upload(&events(300)).await.status == 201 {}
    incident.begins(&service, |full| full == 1.0, SOON).await;
    for _ in 0..50 {
        hub.upload(&events(1)).await.expect(507);
    }
    disk.free();
    incident.ends(&service, before, SOON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let incident = Incident {
        begin: "the database is away",
        end: "the database is back",
        metric: "hub_cloud_database_away",
    };
    let service = Logged::start(&["--database-url", &cluster.url()]).await;
    let tenant = Tenant::create(&service.client).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let before = service.said().len();
    cluster.stop(Stop::Fast);
    for _ in 0..50 {
        hub.upload(&events(1)).await.expect(503);
    }
    incident.begins(&service, |away| away == 1.0, SOON).await;
    cluster.go_on();
    incident.ends(&service, before, SOON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bus_that_is_away() {
    let dir = tempfile::tempdir().expect("a directory");
    let port = hub_tests::ports::lasting();
    let Some(mut broker) = nats(dir.path(), port) else {
        return;
    };
    let incident = Incident {
        begin: "the bus is away",
        end: "the bus is back",
        metric: "hub_cloud_bus_away",
    };
    let service = Logged::start(&["--bus", &format!("nats://127.0.0.1:{port}")]).await;
    let connected = async || {
        service
            .process
            .last_lines()
            .contains("connected to the bus")
    };
    while !connected().await && !service.said().iter().any(|line| line.contains("is back")) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let before = service.said().len();
    broker.kill().await;
    incident.begins(&service, |away| away == 1.0, SOON).await;
    let _broker = nats(dir.path(), port);
    incident.ends(&service, before, SOON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_server_that_is_away() {
    let Some(mut server) = MailServer::start_plain().await else {
        return;
    };
    let incident = Incident {
        begin: "mail cannot be sent",
        end: "mail is sent again",
        metric: "hub_cloud_mail_away",
    };
    let url = server.url();
    let service = Logged::start(&["--smtp-url", &url, "--mail-from", "hubs@example.com"]).await;
    server.stop().await;
    let before = service.said().len();
    for _ in 0..3 {
        let person = Person::register(&service.client).await;
        let forgot = json!({"email": person.email});
        let asked = service.client.post("/auth/password/forgot").json(&forgot);
        asked.call().await.expect(204);
    }
    incident.begins(&service, |away| away == 1.0, SOON).await;
    server.go_on().await;
    incident.ends(&service, before, RETRIED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_down() {
    let incident = Incident {
        begin: "a pipeline fails",
        end: "a pipeline delivers again",
        metric: "hub_cloud_pipeline_states{status=\"OPEN_CIRCUIT\"}",
    };
    let service = Logged::start(&["--allow-private-targets"]).await;
    let receiver = Receiver::start().await;
    receiver.answer(|_| Answer::now(503));
    let tenant = Tenant::create(&service.client).await;
    let pipeline = json!({"name": "Night", "source": {}, "steps": [],
        "delivery": {}, "destination": {"kind": "HTTP", "url": receiver.url}});
    let created = tenant.client.post("/tenant/data-pipelines").json(&pipeline);
    created.call().await.expect(201);
    let hub = SimulatedHub::claim(&tenant).await;
    let before = service.said().len();
    hub.upload_events(5).await;
    incident.begins(&service, |open| open == 1.0, SOON).await;
    receiver.answer(|_| Answer::now(200));
    incident.ends(&service, before, RETRIED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_gone() {
    let incident = Incident {
        begin: "a pipeline is suspended until its tenant resumes it",
        // Who resumes it is in the audit log, and that is a line as well.
        end: "pipeline.resume",
        metric: "hub_cloud_pipeline_states{status=\"SUSPENDED\"}",
    };
    let service = Logged::start(&["--allow-private-targets"]).await;
    let receiver = Receiver::start().await;
    receiver.answer(|_| Answer::now(410));
    let tenant = Tenant::create(&service.client).await;
    let pipeline = json!({"name": "Night", "source": {}, "steps": [],
        "delivery": {}, "destination": {"kind": "HTTP", "url": receiver.url}});
    let created = tenant.client.post("/tenant/data-pipelines").json(&pipeline);
    let created = created.call().await.expect(201).json();
    let pipeline_uuid = created["data"]["pipelineUuid"].as_str().expect("an id");
    let hub = SimulatedHub::claim(&tenant).await;
    let before = service.said().len();
    hub.upload_events(5).await;
    incident
        .begins(&service, |suspended| suspended == 1.0, SOON)
        .await;
    receiver.answer(|_| Answer::now(200));
    let resume = format!("/tenant/data-pipelines/{pipeline_uuid}/resume");
    let resumed = tenant.client.post(&resume).call().await;
    assert!(resumed.status.is_success(), "{}", resumed.body);
    receiver
        .until(RETRIED, |all| all.iter().any(|one| one.status.is_success()))
        .await;
    let resumed_by = format!("{} {pipeline_uuid} by ", incident.end);
    assert!(service.process.last_lines().contains(&resumed_by));
    let began = Instant::now();
    while service.metric(incident.metric).await > 0.0 {
        assert!(began.elapsed() < SOON, "it stays suspended in the metrics");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let said = service.said();
    assert_eq!(said.len(), before + 1, "{said:?}");
    assert!(RULES.contains(incident.metric));
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_claims_by_the_dozen_are_counted() {
    let service = Logged::start(&[]).await;
    let tenant = Tenant::create(&service.client).await;
    let code = tenant.claim_code().await;
    SimulatedHub::claim_with(&service.client, &code, "the first").await;
    let before = service.said().len();
    for number in 0..40 {
        let again = json!({"claimCode": code, "deviceInstanceId": format!("another {number}")});
        let claim = service.client.post("/v1/hubs/claim").json(&again);
        let refused = claim.call().await;
        assert!(refused.status.is_client_error(), "{}", refused.body);
    }
    let said = &service.said()[before..];
    let single = said
        .iter()
        .filter(|line| line.as_str() == "a claim is refused");
    assert!(
        single.count() == 9 && said.len() == 10 && said[9].starts_with("refused claims: many"),
        "{said:?}"
    );
    let refused = service.metric("hub_cloud_refused_credentials_total").await;
    assert!(refused >= 40.0, "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_hubs_that_are_lost() {
    let incident = Incident {
        begin: "50 hubs of a tenant went offline within a minute",
        end: "50 of 50 hubs of a tenant that went offline together are back",
        metric: "hub_cloud_hubs_lost",
    };
    let service = Logged::start(&[]).await;
    let tenant = Tenant::create(&service.client).await;
    for _ in 0..50 {
        SimulatedHub::claim(&tenant).await;
    }
    let lines = service.process.last_lines();
    assert!(
        lines.matches("a hub is claimed").count() == 9
            && lines.matches("claims of hubs: many").count() == 1,
        "{lines}"
    );
    let before = service.said().len();
    let heard = |secs_ago: i64| {
        let at = Clock::System.now().plus_secs(-secs_ago).to_string();
        service.sql("UPDATE hub_contacts SET last_telemetry_at = ?1", &at);
    };
    // Online for another moment.
    heard(595);
    incident.begins(&service, |lost| lost == 50.0, SOON).await;
    heard(0);
    incident.ends(&service, before, SOON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_flooded() {
    let incident = Incident {
        begin: "hubs of a tenant upload far more than their share",
        end: "the hubs of a tenant keep to their shares again",
        metric: "hub_cloud_hubs_flooding",
    };
    let service = Logged::start(&["--upload-limit-per-minute", "10"]).await;
    let tenant = Tenant::create(&service.client).await;
    let hubs = [
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    ];
    let before = service.said().len();
    let began = Instant::now();
    let is_noted = || {
        let said = service.said();
        said.iter().any(|line| line.starts_with(incident.begin))
    };
    // The limit is shared from the minute after the one in which it was reached.
    while !is_noted() && began.elapsed() < Duration::from_secs(200) {
        for hub in &hubs {
            hub.upload(&events(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    incident.begins(&service, |hubs| hubs >= 1.0, SOON).await;
    // It is over when no flood was noted for 150 seconds.
    let long_ago = Clock::System.now().plus_secs(-150).to_string();
    service.sql("UPDATE hubs SET flooded_at = ?1", &long_ago);
    incident.ends(&service, before, SOON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_logins_by_the_hundred_are_counted() {
    let service = Logged::start(&[]).await;
    let before = service.said().len();
    for number in 0..40 {
        let wrong =
            json!({"email": format!("guess{number}@example.com"), "password": "wrong password"});
        service.client.post("/auth/login").json(&wrong).call().await;
    }
    let lines = service.process.last_lines();
    let single = lines.matches("a login failed").count();
    let said = service.said();
    assert!(
        single == 9 && said.len() == before + 1 && said[before].starts_with("failed logins: many"),
        "{lines}"
    );
    let refused = service.metric("hub_cloud_refused_credentials_total").await;
    assert!(refused >= 10.0 && RULES.contains("hub_cloud_refused_credentials_total"));
}

/// How a `serve` ends that cannot serve.
async fn refused(data_dir: &Path, settings: &[&str]) -> (Option<i32>, String) {
    let mut command = tokio::process::Command::new(program("hub-cloud"));
    command.arg("serve").arg("--data-dir").arg(data_dir);
    let output = command.args(settings).kill_on_drop(true).output();
    let output = tokio::time::timeout(SOON, output).await;
    let output = output.expect("it ends").expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_cannot_serve_leaves_nothing_behind() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = other.local_addr().expect("an address").to_string();
    let dir = tempfile::tempdir().expect("a directory");
    let data_dir = dir.path().join("data");
    let missing = dir.path().join("cert.pem").display().to_string();
    let free = "127.0.0.1:0";
    let nobody = hub_tests::ports::lasting();
    let away = format!("postgres://hub@127.0.0.1:{nobody}/hub");
    let away_name = format!("127.0.0.1:{nobody}");
    std::fs::write(dir.path().join("file"), "").expect("a file");
    let no_files = format!("file://{}/file/releases", dir.path().display());
    for (settings, code, part) in [
        (vec!["--listen", &taken], 1, "cannot listen"),
        (
            vec!["--listen", free, "--metrics-listen", &taken],
            1,
            "`metrics-listen`",
        ),
        (
            vec![
                "--listen",
                free,
                "--tls-cert",
                &missing,
                "--tls-key",
                &missing,
            ],
            3,
            "tls-cert",
        ),
        (
            vec!["--listen", free, "--outgoing-ca", &missing],
            3,
            "outgoing-ca",
        ),
        (
            vec!["--listen", free, "--database-url", &away],
            75,
            &away_name,
        ),
        (
            vec!["--listen", free, "--bus", "nats://:::"],
            3,
            "the setting bus",
        ),
        (
            vec!["--listen", free, "--master-key", "0102"],
            3,
            "master-key",
        ),
        (vec!["--listen", free, "--files", &no_files], 3, "`files`"),
    ] {
        let (ended, text) = refused(&data_dir, &settings).await;
        assert!(
            ended == Some(code) && text.contains(part),
            "{settings:?}: {ended:?} {text}"
        );
        assert!(!data_dir.exists(), "{settings:?} left something behind");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_service_at_a_time_runs_on_an_sqlite_database() {
    let mut service = Logged::start(&[]).await;
    let dir = service.dir.path().to_owned();
    let (code, text) = refused(&dir, &["--listen", "127.0.0.1:0"]).await;
    assert!(
        code == Some(1) && text.contains("another hub-cloud is running on"),
        "{code:?} {text}"
    );
    let run = async |arguments: &[&str]| {
        let mut command = tokio::process::Command::new(program("hub-cloud"));
        let output = command.args(arguments).arg("--data-dir").arg(&dir).output();
        let output = output.await.expect("it starts");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), text)
    };
    let (code, text) = run(&["migrate", "--compact"]).await;
    assert!(
        code == Some(1) && text.contains("another hub-cloud is running on"),
        "{code:?} {text}"
    );
    for beside in [&["admin", "list"][..], &["keys", "list"], &["ca", "list"]] {
        let (code, text) = run(beside).await;
        assert_eq!(code, Some(0), "{beside:?}: {text}");
    }
    service.process.kill().await;
    let (code, text) = run(&["migrate", "--compact"]).await;
    assert_eq!(code, Some(0), "a killed service holds no lock: {text}");
}
