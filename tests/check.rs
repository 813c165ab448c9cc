//! `hub-cloud check`: what it says of a place where all is well, and of one thing after the other
//! that is not.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use hub_base::db::sql;
use hub_tests::app::MASTER_KEY;
use hub_tests::cluster::Cluster;
use hub_tests::process::{Process, program};
use hub_tests::{
    Backend, Supplier, SupplierAnswer, TestApp, nats_url, on_each_database, on_postgres,
};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use sqlx::{Connection, Executor};
use sqlx_postgres::PgConnection;
use tokio::process::Command;

/// Exit code, and the findings as JSON.
async fn check(data_dir: &Path, arguments: &[&str]) -> (Option<i32>, Vec<Value>) {
    let mut command = Command::new(program("hub-cloud"));
    command
        .args(["check", "--json", "--data-dir"])
        .arg(data_dir)
        .args(arguments);
    command
        .env("HUB_CLOUD_LISTEN", "127.0.0.1:0")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(60), command.output()).await;
    let output = output.expect("it ends").expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let report: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(report["ok"], output.status.success(), "{text}");
    (
        output.status.code(),
        report["findings"].as_array().expect("a list").clone(),
    )
}

fn state<'a>(findings: &'a [Value], check: &str) -> &'a str {
    let of_check = findings.iter().filter(|finding| finding["check"] == check);
    let states: Vec<&str> = of_check
        .map(|finding| finding["state"].as_str().expect("a state"))
        .collect();
    ["fail", "warn", "ok"]
        .into_iter()
        .find(|state| states.contains(state))
        .unwrap_or("nothing")
}

/// The failed checks. Each has to say what to do.
async fn failures(data_dir: &Path, arguments: &[&str]) -> Vec<String> {
    let (code, findings) = check(data_dir, arguments).await;
    let failed: Vec<&Value> = findings
        .iter()
        .filter(|finding| finding["state"] == "fail")
        .collect();
    assert_eq!(
        code,
        Some(if failed.is_empty() { 0 } else { 1 }),
        "{findings:?}"
    );
    assert!(
        failed.iter().all(|finding| finding["mend"]
            .as_str()
            .is_some_and(|mend| !mend.is_empty())),
        "{failed:?}"
    );
    failed
        .iter()
        .map(|finding| format!("{}: {}", finding["check"], finding["finding"]))
        .collect()
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

/// As a first start leaves it.
async fn served_once(dir: &Path) {
    let dir = dir.to_str().expect("a path");
    let mut service = Process::start(
        "hub-cloud",
        &["serve", "--listen", "127.0.0.1:0", "--data-dir", dir],
        &[],
    );
    service.url().await;
    service.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn check_passes_before_and_after_the_first_start_and_changes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let data_dir = dir.path().join("data");
    let (code, findings) = check(&data_dir, &[]).await;
    assert_eq!(code, Some(0), "{findings:?}");
    assert_eq!(
        state(&findings, "release keys"),
        "warn",
        "nobody can publish yet"
    );
    assert!(!data_dir.exists(), "it makes nothing");

    served_once(&data_dir).await;
    let files = || {
        let entries = std::fs::read_dir(&data_dir).expect("a directory").flatten();
        let mut names: Vec<_> = entries
            .map(|entry| entry.file_name().into_string().expect("a name"))
            .collect();
        // SQLite's own, which come and go.
        names.retain(|name| !name.ends_with("-wal") && !name.ends_with("-shm"));
        names.sort();
        names
    };
    let before = files();
    let (code, findings) = check(&data_dir, &[]).await;
    assert_eq!(code, Some(0), "{findings:?}");
    for name in [
        "data-dir",
        "disk",
        "database",
        "master key",
        "files",
        "listen",
    ] {
        assert_eq!(state(&findings, name), "ok", "{name}: {findings:?}");
    }
    assert_eq!(files(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn check_finds_each_fault_and_names_the_fix() {
    let dir = tempfile::tempdir().expect("a directory");
    let data_dir = dir.path().join("data");
    served_once(&data_dir).await;
    let path = |name: &str| data_dir.join(name);

    chmod(&data_dir, 0o755);
    assert!(failures(&data_dir, &[]).await.concat().contains("data-dir"));
    chmod(&data_dir, 0o700);

    chmod(&path("master.key"), 0o644);
    assert!(
        failures(&data_dir, &[])
            .await
            .concat()
            .contains("is accessible to other users")
    );
    chmod(&path("master.key"), 0o600);

    let key = std::fs::read_to_string(path("master.key")).expect("a key");
    for (text, expected) in [
        (Some("0".repeat(64)), "sealed with"),
        (Some("zz".into()), "64 hex"),
        (None, "is missing"),
    ] {
        match text {
            Some(text) => std::fs::write(path("master.key"), text).expect("a file"),
            None => std::fs::remove_file(path("master.key")).expect("a file"),
        }
        let failed = failures(&data_dir, &[]).await;
        assert!(
            failed.len() == 1 && failed[0].contains(expected) && !failed[0].contains("000000"),
            "{failed:?}"
        );
    }
    std::fs::write(path("master.key"), key).expect("a file");
    chmod(&path("master.key"), 0o600);

    std::fs::create_dir_all(path("release-keys/app")).expect("a folder");
    std::fs::write(path("release-keys/app/ours.pub"), "no key").expect("a file");
    assert!(failures(&data_dir, &[]).await.concat().contains("ours.pub"));
    std::fs::remove_file(path("release-keys/app/ours.pub")).expect("a file");

    std::fs::write(
        path("rubbish.sqlite"),
        "no database, but long enough to be taken for one".repeat(50),
    )
    .expect("a file");
    let rubbish = format!("sqlite:{}", path("rubbish.sqlite").display());
    for (arguments, expected) in [
        (&["--database-url", &rubbish][..], "database"),
        (
            &["--database-url", "postgres://u:hunter2@127.0.0.1:1/none"],
            "database",
        ),
        (&["--bus", "nats://127.0.0.1:1"], "bus"),
        (
            &[
                "--oidc-issuer",
                "http://127.0.0.1:1",
                "--oidc-audience",
                "x",
            ],
            "issuer",
        ),
        (
            &[
                "--smtp-url",
                "smtp://127.0.0.1:1",
                "--mail-from",
                "hubs@example.com",
            ],
            "mail",
        ),
        (
            &[
                "--billing-url",
                "http://127.0.0.1:1",
                "--billing-token",
                "hunter2",
            ],
            "billing",
        ),
        (
            &["--tls-cert", "none.pem", "--tls-key", "none.key"],
            "tls-cert: none.pem",
        ),
        (&["--listen", "192.0.2.1:80"], "192.0.2.1:80"),
    ] {
        let failed = failures(&data_dir, arguments).await;
        assert!(
            failed.len() == 1 && failed[0].contains(expected),
            "{arguments:?}: {failed:?}"
        );
        assert!(!failed[0].contains("hunter2"), "{failed:?}");
    }
    assert_eq!(failures(&data_dir, &[]).await, [""; 0], "all is well again");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_finds_an_expired_certificate() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name).display().to_string();
    let key = rcgen::KeyPair::generate().expect("a key");
    let now = time::OffsetDateTime::now_utc();
    let day = time::Duration::DAY;
    for (from, until, expected) in [
        (now - day, now + 90 * day, "ok"),
        (now - day, now + 5 * day, "warn"),
        (now - 9 * day, now - day, "fail"),
        (now + day, now + 9 * day, "fail"),
    ] {
        let mut params =
            rcgen::CertificateParams::new(vec!["hubs.example.com".to_owned()]).expect("a name");
        (params.not_before, params.not_after) = (from, until);
        std::fs::write(
            path("cert.pem"),
            params.self_signed(&key).expect("a certificate").pem(),
        )
        .expect("a file");
        std::fs::write(path("key.pem"), key.serialize_pem()).expect("a file");
        let (_, findings) = check(
            &dir.path().join("data"),
            &[
                "--tls-cert",
                &path("cert.pem"),
                "--tls-key",
                &path("key.pem"),
            ],
        )
        .await;
        assert_eq!(
            state(&findings, "TLS"),
            expected,
            "{from} to {until}: {findings:?}"
        );
    }
}

on_each_database!(check_reports_a_schema_of_another_version);
async fn check_reports_a_schema_of_another_version(backend: Backend) {
    let service = TestApp::new(backend).await;
    let url = service.app.config.database_url.expose_secret();
    for (change, expected) in [
        ("", "ok"),
        (
            "UPDATE _sqlx_migrations SET version = 9000 WHERE version = 9",
            "fail",
        ),
        ("DELETE FROM _sqlx_migrations WHERE version = 9000", "warn"),
        (
            "UPDATE _sqlx_migrations SET checksum = \
             (SELECT checksum FROM _sqlx_migrations WHERE version = 2) WHERE version = 1",
            "fail",
        ),
    ] {
        if !change.is_empty() {
            let mut tx = service.app.db.begin().await.expect("a transaction");
            sql(change).execute(&mut tx).await.expect("a change");
            tx.commit_unaudited("a test").await.expect("a commit");
        }
        let (_, findings) = check(
            service.data_dir(),
            &["--database-url", url, "--master-key", MASTER_KEY],
        )
        .await;
        assert_eq!(
            state(&findings, "database"),
            expected,
            "{change}: {findings:?}"
        );
        assert_eq!(
            state(&findings, "master key"),
            "ok",
            "{change}: {findings:?}"
        );
    }
}

on_postgres!(check_compares_connections_with_those_of_the_server);
async fn check_compares_connections_with_those_of_the_server(backend: Backend) {
    let service = TestApp::new(backend).await;
    let url = service.app.config.database_url.expose_secret();
    for (connections, expected) in [("4", "ok"), ("500", "warn")] {
        let arguments = [
            "--database-url",
            url,
            "--database-connections",
            connections,
            "--master-key",
            MASTER_KEY,
        ];
        let (_, findings) = check(service.data_dir(), &arguments).await;
        assert_eq!(state(&findings, "connections"), expected, "{findings:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_reports_whether_the_server_archives_its_log() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let (data, url) = (dir.path().join("data"), cluster.url());
    for (setting, expected) in [
        ("", "warn"),
        // Nothing is archived before the first piece is full or switched.
        ("archive_mode = on\narchive_command = 'false'", "warn"),
        ("", "fail"),
        ("archive_command = 'true'", "ok"),
    ] {
        if !setting.is_empty() {
            cluster.restart_with(setting);
        }
        let mut conn = PgConnection::connect(&url).await.expect("a connection");
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let (_, findings) = check(&data, &["--database-url", &url]).await;
            if state(&findings, "write-ahead log") == expected {
                break;
            }
            assert!(Instant::now() < deadline, "{setting}: {findings:?}");
            // A piece is switched only if there is something in it.
            for statement in ["SELECT txid_current()", "SELECT pg_switch_wal()"] {
                conn.execute(statement).await.expect("a statement");
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_reaches_the_bus() {
    let Some(bus) = nats_url() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let (code, findings) = check(&dir.path().join("data"), &["--bus", &bus]).await;
    assert_eq!(
        (code, state(&findings, "bus")),
        (Some(0), "ok"),
        "{findings:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn check_asks_the_billing_service() {
    let dir = tempfile::tempdir().expect("a directory");
    let billing = Supplier::start().await;
    let arguments = ["--billing-url", &billing.url, "--billing-token", "hunter2"];
    for (said, expected) in [
        // The tenant that is asked for does not exist.
        (SupplierAnswer::json(404, json!({})), "ok"),
        (SupplierAnswer::json(200, json!({})), "ok"),
        (SupplierAnswer::json(401, json!({})), "fail"),
        (SupplierAnswer::html(500), "fail"),
        (SupplierAnswer::redirect(), "fail"),
    ] {
        billing.say_otherwise(said.clone());
        let (_, findings) = check(&dir.path().join("data"), &arguments).await;
        assert_eq!(
            state(&findings, "billing"),
            expected,
            "{said:?}: {findings:?}"
        );
        assert!(!format!("{findings:?}").contains("hunter2"), "{findings:?}");
    }
    assert!(
        billing
            .take_all()
            .iter()
            .all(|asked| asked.headers["authorization"] == "Bearer hunter2")
    );
}
