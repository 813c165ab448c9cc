//! What is published is brought in by `hub-cloud`, and `hub` says who is exposed.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use hub_tests::process::program;
use hub_tests::{Backend, Call, Client, Cloud};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::process::Command;

use super::{PATIENCE, Terminal};

const CVE: &str = "CVE-2023-5678";

/// Runs `hub-cloud vulnerabilities` beside the service; exit code and everything said.
async fn vulnerabilities(cloud: &Cloud, arguments: &[&str]) -> (Option<i32>, String) {
    let data_dir = cloud.data_dir().display().to_string();
    let output = Command::new(program("hub-cloud"))
        .arg("vulnerabilities")
        .args(arguments)
        .args(["--data-dir", &data_dir])
        .stdin(Stdio::null())
        .output();
    let output = tokio::time::timeout(PATIENCE, output).await;
    let output = output.expect("it ends").expect("it starts");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (output.status.code(), said)
}

fn record() -> String {
    json!({
        "id": format!("DEBIAN-{CVE}"),
        "upstream": [CVE],
        "summary": "Excessive time in checks of keys",
        "modified": "2026-01-01T00:00:00Z",
        "affected": [{
            "package": {"ecosystem": "Debian:12", "name": "openssl"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "3.0.13-1"}]}],
        }],
    })
    .to_string()
}

/// A catalog that comes in two pieces.
fn catalog() -> String {
    let known = json!({
        "catalogVersion": "2026.01.05", "dateReleased": "2026-01-05T12:00:00.000Z", "count": 1,
        "vulnerabilities": [{"cveID": CVE, "dateAdded": "2026-01-05", "dueDate": "2026-01-26",
            "knownRansomwareCampaignUse": "Unknown"}],
    });
    known.to_string() + &" ".repeat(17 << 20)
}

/// Answers with the part of the file that is asked for.
async fn part(State(files): State<Arc<[String; 2]>>, request: Request) -> Response {
    let file = match request.uri().path() {
        "/osv/Debian/all.zip" => &files[0],
        "/osv/known_exploited_vulnerabilities.json" => &files[1],
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let range = request.headers()[header::RANGE].to_str().expect("a range");
    let (first, last) = range
        .strip_prefix("bytes=")
        .and_then(|range| range.split_once('-'))
        .expect("a range");
    let first: usize = first.parse().expect("a number");
    let end = last.parse::<usize>().expect("a number").min(file.len() - 1) + 1;
    let headers = [
        (header::ETAG, "\"1\"".to_owned()),
        (
            header::CONTENT_RANGE,
            format!("bytes {first}-{}/{}", end - 1, file.len()),
        ),
    ];
    (
        StatusCode::PARTIAL_CONTENT,
        headers,
        file[first..end].to_owned(),
    )
        .into_response()
}

async fn mirror() -> String {
    let files = Arc::new([record(), catalog()]);
    let router = axum::Router::new().fallback(part).with_state(files);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/osv/")
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_are_fetched_and_hubs_are_listed() {
    let cloud = Cloud::start(Backend::Sqlite, &[]).await;
    let terminal = Terminal::of_new_tenant(&cloud.url).await;
    let code = terminal.json(&["codes", "create", "--label", "roof"]).await["claimCode"].clone();
    let anyone = Client::new(&cloud.url);
    let claim = json!({"claimCode": code, "deviceInstanceId": "hardware"});
    let claim = anyone.post("/v1/hubs/claim").json(&claim).call().await;
    let claimed: Value = claim.expect(201).data();
    let (uuid, token) = (&claimed["hubUuid"], &claimed["accessToken"]);
    let (uuid, token) = (
        uuid.as_str().expect("a uuid"),
        token.as_str().expect("a token"),
    );
    let canonical = "debian\t12\nopenssl\t3.0.11-1\t\t\t\n";
    let report = json!({
        "packagesSha256": hex::encode(Sha256::digest(canonical)),
        "packageList": {"distribution": "debian", "distributionVersion": "12",
            "packages": [{"name": "openssl", "version": "3.0.11-1"}]},
        "agent": "1.4.0",
    });
    let path = format!("/v1/hubs/{uuid}/packages");
    let hub = anyone.bearer(token);
    hub.post(&path).json(&report).call().await.expect(200);

    let (code, said) = vulnerabilities(&cloud, &["status"]).await;
    assert!(code == Some(0) && said.contains("no feed"), "{said}");
    let (code, said) = vulnerabilities(&cloud, &["update"]).await;
    assert!(
        code == Some(2) && said.contains("vulnerability-mirror"),
        "{said}"
    );
    let (code, said) = vulnerabilities(&cloud, &["import", "/nowhere"]).await;
    assert!(code == Some(1) && said.contains("/nowhere"), "{said}");
    let mirror = mirror().await;
    let update = ["update", "Debian", "--vulnerability-mirror", &mirror];
    let (code, said) = vulnerabilities(&cloud, &update).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("Debian/all.zip: 1 records, of which 1 are new"),
        "{said}"
    );
    let (code, said) =
        vulnerabilities(&cloud, &["update", "Go", "--vulnerability-mirror", &mirror]).await;
    assert!(code == Some(1) && said.contains("404"), "{said}");
    let (_, said) = vulnerabilities(&cloud, &["status", "--json"]).await;
    let status: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(
        (&status["feeds"][0]["feed"], &status["feeds"][1]["feed"]),
        (&json!("Debian"), &json!("KEV"))
    );
    assert_eq!(status["feeds"][1]["records"], 1);

    // The service, which runs, finds what is new by itself.
    let began = Instant::now();
    let listed = loop {
        let listed = terminal
            .json(&["vulnerabilities", "list", "--exploited", "--hub", "roof"])
            .await;
        if listed != json!([]) {
            break listed;
        }
        assert!(began.elapsed() < PATIENCE, "nothing is found");
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    };
    assert_eq!(
        (&listed[0]["id"], &listed[0]["exploited"]),
        (&json!(CVE), &json!(true))
    );
    let table = terminal.run(&["vulnerabilities", "list"]).await.expect(0);
    assert!(
        table.stdout.contains("openssl 3.0.13-1"),
        "{}",
        table.stdout
    );
    let shown = terminal
        .run(&["vulnerabilities", "show", CVE])
        .await
        .expect(0);
    assert!(
        shown.stdout.contains("roof") && shown.stdout.contains("openssl 3.0.11-1"),
        "{}",
        shown.stdout
    );
    let draft = terminal
        .run(&["vulnerabilities", "export", CVE])
        .await
        .expect(0);
    assert!(
        draft.stdout.contains("listed by CISA since 2026-01-05"),
        "{}",
        draft.stdout
    );
    let csaf = terminal
        .run(&["vulnerabilities", "export", CVE, "--csaf"])
        .await
        .expect(0);
    assert_eq!(csaf.json()["vulnerabilities"][0]["cve"], CVE);
    // What is signed is the file, byte for byte.
    let folder = terminal.home.path().join("evidence");
    terminal
        .run(&["vulnerabilities", "evidence", CVE, "--out", "evidence"])
        .await
        .expect(0);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file");
    let (lines, jws) = (read("evidence.ndjson"), read("evidence.jws"));
    assert!(lines.contains("\"exposure\"") && !lines.contains("\"signature\""));
    let claims = jws.split('.').nth(1).expect("claims");
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims);
    let claims: Value = serde_json::from_slice(&claims.expect("base64url")).expect("JSON");
    assert_eq!(claims["sha256"], hex::encode(Sha256::digest(&lines)));
    assert!(read("keys.json").contains("\"ES256\""));
    let openvex = terminal
        .run(&["vulnerabilities", "openvex"])
        .await
        .expect(1);
    assert!(
        openvex.stderr.contains("nothing has been stated yet"),
        "{}",
        openvex.stderr
    );
    terminal
        .run(&["vulnerabilities", "show", "CVE-1999-1"])
        .await
        .expect(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_of_dependency_track_is_set_and_removed() {
    let cloud = Cloud::start(Backend::Sqlite, &[]).await;
    let terminal = Terminal::of_new_tenant(&cloud.url).await;
    let url = "https://dtrack.example.com";
    let set = ["dependency-track", "set", "--url", url];
    let refused = terminal.run(&set).await.expect(2);
    assert!(refused.stderr.contains("api key"), "{}", refused.stderr);
    let said = terminal.run_with(&set, "odt_a1b2c3\n").await.expect(0);
    assert!(
        said.stdout.contains(url) && !said.stdout.contains("odt_a1b2c3"),
        "{}",
        said.stdout
    );
    let shown = terminal.json(&["dependency-track", "show"]).await;
    assert_eq!(
        (&shown["project"], &shown["waiting"]),
        (&json!("hubs"), &json!(0))
    );
    terminal
        .run(&["dependency-track", "remove"])
        .await
        .expect(0);
    let none = terminal.run(&["dependency-track", "show"]).await.expect(0);
    assert!(none.stderr.contains("No server is set"), "{}", none.stderr);
}
