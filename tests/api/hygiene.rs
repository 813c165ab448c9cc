//! Headers for browsers, and the address that a request comes from.

use hub_core::config::Settings;
use hub_tests::{Backend, Call, Client, Options, TestApp};
use reqwest::Method;
use reqwest::header::HeaderName;
use serde_json::json;

const ORIGIN: &str = "https://console.example.com";

async fn app(settings: Settings) -> TestApp {
    TestApp::with(
        Backend::Sqlite,
        Options {
            settings,
            ..Options::default()
        },
    )
    .await
}

fn preflight(client: &Client, origin: &str) -> reqwest::RequestBuilder {
    client
        .request(Method::OPTIONS, "/tenant/hubs")
        .header("origin", origin)
        .header("access-control-request-method", "GET")
        .header(
            "access-control-request-headers",
            "authorization,x-tenant-uuid",
        )
}

#[tokio::test(flavor = "multi_thread")]
async fn cors_admits_configured_origins_only() {
    let cors_origins = Some(format!("{ORIGIN}, http://localhost:3000"));
    let app = app(Settings {
        cors_origins,
        ..Settings::default()
    })
    .await;
    let client = app.client();
    for origin in [ORIGIN, "http://localhost:3000"] {
        let reply = preflight(&client, origin).call().await.expect(200);
        assert_eq!(reply.header("access-control-allow-origin"), origin);
        assert!(
            reply
                .header("access-control-allow-headers")
                .contains("x-tenant-uuid")
        );
        assert_eq!(
            reply.header("access-control-allow-credentials"),
            "",
            "nothing of ours is a cookie"
        );
        // Also what is refused can be read.
        let reply = client
            .get("/tenant/hubs")
            .header("origin", origin)
            .call()
            .await
            .expect(401);
        assert_eq!(reply.header("access-control-allow-origin"), origin);
        assert!(
            reply
                .header("access-control-expose-headers")
                .contains("x-total-count")
        );
        assert!(reply.header("vary").contains("origin"));
    }
    for origin in [
        "https://console.example.com.evil.example",
        "https://example.com",
        "http://console.example.com",
        "null",
    ] {
        let reply = preflight(&client, origin).call().await;
        assert_eq!(reply.header("access-control-allow-origin"), "", "{origin}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cors_admits_no_origin_by_default() {
    let app = app(Settings::default()).await;
    let reply = preflight(&app.client(), ORIGIN).call().await;
    assert_eq!(reply.header("access-control-allow-origin"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_response_has_security_headers() {
    let app = app(Settings::default()).await;
    let client = app.client();
    for (path, status) in [
        ("/healthz", 200),
        ("/tenant/hubs", 401),
        ("/nowhere", 404),
        ("/docs", 200),
    ] {
        let reply = client.get(path).call().await.expect(status);
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        assert_eq!(reply.header("x-frame-options"), "DENY");
        assert_eq!(reply.header("referrer-policy"), "no-referrer");
        assert!(
            reply
                .header("content-security-policy")
                .starts_with("default-src 'none'")
        );
        assert_eq!(
            reply.header("strict-transport-security"),
            "",
            "it is not served over TLS"
        );
    }
    let public_url = Some("https://hubs.example.com".to_owned());
    let behind_tls = self::app(Settings {
        public_url,
        ..Settings::default()
    })
    .await;
    let reply = behind_tls.client().get("/healthz").call().await.expect(200);
    assert_eq!(
        reply.header("strict-transport-security"),
        "max-age=31536000"
    );
}

/// Failures until an address that guesses has to wait.
async fn attempts_until_slowed(client: &Client, forwarded: impl Fn(usize) -> String) -> usize {
    let header = HeaderName::from_static("x-forwarded-for");
    for attempt in 0..120 {
        let body = json!({"email": format!("{}@example.com", uuid::Uuid::new_v4().simple()), "password": "no such person"});
        let client = client.header(header.clone(), &forwarded(attempt));
        let reply = client.post("/auth/login").json(&body).call().await;
        if reply.status == 429 {
            return attempt;
        }
        reply.expect(401);
    }
    panic!("nobody was slowed");
}

#[tokio::test(flavor = "multi_thread")]
async fn client_address_is_read_from_trusted_proxies_only() {
    // Who talks to the service directly can claim whatever they like: it is one address.
    let direct = app(Settings {
        trusted_proxies: Some("203.0.113.1".to_owned()),
        ..Settings::default()
    })
    .await;
    let attempts =
        attempts_until_slowed(&direct.client(), |attempt| format!("198.51.100.{attempt}")).await;
    assert_eq!(attempts, 50);
    // Behind a proxy the client's claims stand left of what the proxy saw.
    let proxied = app(Settings {
        trusted_proxies: Some("127.0.0.0/8".to_owned()),
        ..Settings::default()
    })
    .await;
    let client = proxied.client();
    let attempts =
        attempts_until_slowed(&client, |attempt| format!("10.9.8.{attempt}, 203.0.113.7")).await;
    assert_eq!(attempts, 50);
    let another = client.header(HeaderName::from_static("x-forwarded-for"), "203.0.113.8");
    let body = json!({"email": "nobody@example.com", "password": "no such person"});
    another
        .post("/auth/login")
        .json(&body)
        .call()
        .await
        .expect(401);
}
