//! The metrics as Prometheus reads them, and the alert rules and dashboard that are built on them.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hub_base::db::sql;
use hub_cloud::observe;
use hub_core::config::Settings;
use hub_tests::{Backend, Call, Options, SimulatedHub, Tenant, TestApp, on_each_database};
use reqwest::header::ACCEPT;

const RULES: &str = include_str!("../packaging/monitoring/alerts.yml");
const DASHBOARDS: [&str; 2] = [
    include_str!("../packaging/monitoring/dashboard.json"),
    include_str!("../packaging/monitoring/pipelines.json"),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/monitoring")
}

/// A service that has done some of everything.
async fn used(backend: Backend) -> TestApp {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    hub.upload_events(3).await;
    app.client().get("/no/such/path").call().await.expect(404);
    hub.client
        .post(&format!("/v1/hubs/{}/telemetry", hub.hub_uuid))
        .body("{")
        .call()
        .await
        .expect(415);
    let wrong = serde_json::json!({"email": "nobody@example.com", "password": "wrong password"});
    app.client().post("/auth/login").json(&wrong).call().await;
    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql("UPDATE hubs SET flooded_at = $1")
        .bind(app.app.clock.now())
        .run(&mut tx)
        .await
        .expect("a flood");
    tx.commit_unaudited("a test's own").await.expect("a commit");
    observe::once(&app.app)
        .await
        .expect("the metrics are kept current");
    app
}

/// The names of metrics in a text: words with one of the prefixes.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| word.starts_with("hub_cloud_") || word.starts_with("process_"))
        .collect()
}

on_each_database!(alerts_and_dashboard_use_metrics_that_exist);
async fn alerts_and_dashboard_use_metrics_that_exist(backend: Backend) {
    let app = used(backend).await;
    let text = app.client().get("/metrics").call().await.expect(200).body;
    let samples = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect::<Vec<_>>()
        .join("\n");
    let served = names(&samples);
    let used: BTreeSet<&str> = DASHBOARDS
        .into_iter()
        .chain([RULES])
        .flat_map(names)
        .collect();
    let missing: Vec<_> = used.difference(&served).collect();
    assert!(missing.is_empty(), "{missing:?} are not among {served:?}");
    assert!(samples.contains("hub_cloud_hubs 1\n"), "{samples}");
    for dashboard in DASHBOARDS {
        serde_json::from_str::<serde_json::Value>(dashboard).expect("the dashboard is JSON");
    }
}

#[tokio::test]
async fn a_metrics_token_is_required_once_it_is_set() {
    const TOKEN: &str = "metrics-0123456789abcdef";
    let settings = Settings {
        metrics_token: Some(TOKEN.to_owned()),
        ..Settings::default()
    };
    let options = Options {
        settings,
        clock: None,
    };
    let app = TestApp::with(Backend::Sqlite, options).await;
    let metrics = |token| app.client().bearer(token).get("/metrics").call();
    assert_eq!(
        metrics("another-0123456789")
            .await
            .expect(401)
            .problem()
            .code,
        "INVALID_METRICS_TOKEN"
    );
    assert!(metrics(TOKEN).await.expect(200).body.contains("hub_cloud_"));
}

#[tokio::test]
async fn metrics_with_a_listener_of_their_own_are_nowhere_else() {
    let settings = Settings {
        metrics_listen: Some("127.0.0.1:0".parse().expect("an address")),
        ..Settings::default()
    };
    let options = Options {
        settings,
        clock: None,
    };
    let app = TestApp::with(Backend::Sqlite, options).await;
    let metrics = app.client().get("/metrics").call().await.expect(404);
    assert_eq!(metrics.problem().code, "METRICS_NOT_SERVED");
}

#[tokio::test]
async fn the_format_is_what_the_reader_asks_for() {
    let app = used(Backend::Sqlite).await;
    for (accept, content_type, is_open) in [
        ("*/*", "text/plain; version=0.0.4; charset=utf-8", false),
        (
            "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            true,
        ),
    ] {
        let reply = app
            .client()
            .get("/metrics")
            .header(ACCEPT, accept)
            .call()
            .await
            .expect(200);
        assert_eq!(reply.header("content-type"), content_type);
        assert_eq!(reply.body.ends_with("# EOF\n"), is_open);
        let type_line = if is_open {
            "# TYPE hub_cloud_http_requests counter"
        } else {
            "# TYPE hub_cloud_http_requests_total counter"
        };
        assert!(reply.body.contains(type_line), "{}", reply.body);
    }
}

/// `None` where Prometheus is not installed.
fn promtool(arguments: &[&str], input: &str) -> Option<String> {
    let started = Command::new("promtool")
        .args(arguments)
        .current_dir(folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = started else {
        hub_tests::skip("monitoring", "promtool, from the package prometheus");
        return None;
    };
    promtool
        .stdin
        .take()
        .expect("its input")
        .write_all(input.as_bytes())
        .expect("it reads");
    let output = promtool.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "promtool {arguments:?}: {said}");
    Some(said)
}

#[tokio::test]
async fn promtool_accepts_metrics_rules_and_their_tests() {
    let app = used(Backend::Sqlite).await;
    let text = app.client().get("/metrics").call().await.expect(200).body;
    let Some(said) = promtool(&["check", "metrics"], &text) else {
        return;
    };
    assert_eq!(
        said.trim(),
        "",
        "promtool has something to say about the metrics"
    );
    promtool(&["check", "rules", "alerts.yml"], "");
    promtool(&["test", "rules", "alerts.test.yml"], "");
}
