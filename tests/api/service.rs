//! The service itself: health, description, numbers, and what every answer has.

use hub_core::config::Settings;
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::{Backend, Call, Options, TestApp, on_each_database};
use reqwest::Method;

on_each_database!(health_metrics_and_api_description_are_public);
async fn health_metrics_and_api_description_are_public(backend: Backend) {
    let app = TestApp::new(backend).await;
    let client = app.client();
    assert_eq!(
        client.get("/healthz").call().await.expect(200).json()["data"]["status"],
        "ok"
    );
    client.get("/readyz").call().await.expect(200);
    let document = client.get("/openapi.json").call().await.expect(200).json();
    assert!(document["paths"]["/healthz"].is_object(), "{document}");
    let paths = document["paths"].as_object().expect("paths");
    assert!(!paths.keys().any(|path| path.starts_with("/dev/")));
    let settings = Settings {
        dev_endpoints: Some(true),
        ..Settings::default()
    };
    let options = Options {
        settings,
        ..Options::default()
    };
    let developed = TestApp::with(backend, options).await;
    let described = developed
        .client()
        .get("/openapi.json")
        .call()
        .await
        .expect(200)
        .json();
    let paths = described["paths"].as_object().expect("paths");
    assert!(paths.keys().any(|path| path.starts_with("/dev/")));
    let page = client.get("/docs").call().await.expect(200).body;
    assert!(page.contains("/openapi.json"), "{page}");
    let outside = ["src=\"http", "href=\"http", "src=\"//", "href=\"//"]
        .into_iter()
        .find(|link| page.contains(link));
    assert_eq!(outside, None, "the page needs the internet");
    let numbers = client.get("/metrics").call().await.expect(200).body;
    assert!(numbers.contains(
        "hub_cloud_http_requests_total{method=\"GET\",route=\"/healthz\",status=\"200\"} 1"
    ));
}

on_each_database!(vulnerabilities_are_reported_where_the_operator_says);
async fn vulnerabilities_are_reported_where_the_operator_says(backend: Backend) {
    const PATH: &str = "/.well-known/security.txt";
    let silent = TestApp::new(backend).await;
    let problem = silent.client().get(PATH).call().await.expect(404).problem();
    assert_eq!(problem.code, "SECURITY_CONTACT_NOT_SET");
    let (clock, _) = set_clock(Timestamp::from_micros(1_800_057_600_123_456));
    let options = Options {
        clock: Some(clock),
        settings: Settings {
            security_contact: Some("mailto:security@example.com".to_owned()),
            security_policy: Some("https://example.com/security".to_owned()),
            public_url: Some("https://hubs.example.com/".to_owned()),
            ..Settings::default()
        },
    };
    let app = TestApp::with(backend, options).await;
    let reply = app.client().get(PATH).call().await.expect(200);
    assert_eq!(reply.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(
        reply.body,
        "Contact: mailto:security@example.com\nExpires: 2027-07-15T00:00:00.000000Z\n\
         Policy: https://example.com/security\n\
         Canonical: https://hubs.example.com/.well-known/security.txt\n"
    );
}

on_each_database!(unknown_path_gets_the_usual_error_body);
async fn unknown_path_gets_the_usual_error_body(backend: Backend) {
    let app = TestApp::new(backend).await;
    let client = app.client();
    // The link of the demo is no part of the service.
    for path in ["/no/such/path", "/demo/code"] {
        let unknown = client.get(path).call().await.expect(404);
        assert_eq!(unknown.problem().code, "UNKNOWN_PATH", "{path}");
    }
    let wrong = client
        .request(Method::PUT, "/healthz")
        .call()
        .await
        .expect(405);
    assert_eq!(wrong.problem().code, "METHOD_NOT_ALLOWED");
    assert!(wrong.header("allow").contains("GET"), "{:?}", wrong.headers);
}

on_each_database!(every_response_carries_its_request_id);
async fn every_response_carries_its_request_id(backend: Backend) {
    let client = TestApp::new(backend).await;
    let client = client.client();
    let given = client
        .get("/healthz")
        .header("x-request-id", "mine-1.2_3")
        .call()
        .await
        .expect(200);
    assert_eq!(given.header("x-request-id"), "mine-1.2_3");
    for refused in ["", "has space", "x".repeat(65).as_str(), "a\"b", "é"] {
        let answer = client
            .get("/healthz")
            .header("x-request-id", refused)
            .call()
            .await
            .expect(200);
        let made = answer.header("x-request-id");
        assert!(
            made.len() == 32 && made != refused,
            "{refused:?} became {made:?}"
        );
    }
}
